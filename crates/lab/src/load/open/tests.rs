use super::{Arrivals, Plan, Shape};
use crate::load::Content;

fn marks(shape: Shape, rate: u64, seed: u64, end: u64) -> Vec<u64> {
    let content = Content::Random;
    let plan = Plan { shape, rate, outstanding: 0, content, operation_bytes: 1, seed, ready: 0 };
    let mut arrivals = Arrivals::new(&plan);
    std::iter::from_fn(|| arrivals.next_before(end)).collect()
}

#[test]
fn even_operations_are_as_many_as_the_rate_says() {
    assert_eq!(marks(Shape::Fixed, 4, 1, 1_000_000), [0, 250_000, 500_000, 750_000]);
    assert_eq!(marks(Shape::Fixed, 333, 1, 3_000_000).len(), 999);
}

#[test]
fn what_is_not_due_yet_comes_later() {
    let (shape, content) = (Shape::Fixed, Content::Random);
    let plan =
        Plan { shape, rate: 10, outstanding: 0, content, operation_bytes: 1, seed: 1, ready: 0 };
    let mut arrivals = Arrivals::new(&plan);
    assert_eq!(arrivals.next_before(100_000), Some(0));
    assert_eq!(arrivals.next_before(100_000), None);
    assert_eq!(arrivals.next_before(100_001), Some(100_000));
}

#[test]
fn random_moments_have_the_rate_the_spread_and_the_seed() {
    let found = marks(Shape::Poisson, 1_000, 7, 100_000_000);
    // A Poisson count of 100,000 has a standard deviation of 316; the seed is fixed.
    assert!(found.len().abs_diff(100_000) < 1_000, "{}", found.len());
    assert!(found.windows(2).all(|pair| pair[0] <= pair[1]));
    // Of exponential gaps 63.2 % are shorter than the mean; of even ones, none.
    let short = found.windows(2).filter(|pair| pair[1] - pair[0] < 1_000).count();
    let share = short as f64 / found.len() as f64;
    assert!((0.62..0.645).contains(&share), "{share}");
    assert_eq!(
        marks(Shape::Poisson, 1_000, 7, 1_000_000),
        marks(Shape::Poisson, 1_000, 7, 1_000_000)
    );
    assert_ne!(
        marks(Shape::Poisson, 1_000, 7, 1_000_000),
        marks(Shape::Poisson, 1_000, 8, 1_000_000)
    );
}
