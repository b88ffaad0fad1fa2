use super::{Attempt, Bisection, readable};
use crate::bench::search::{CONFIRMATIONS_MAX, FIRST_RATE, PROBES_MAX, RATE_MIN};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Most runs of a search that finds nothing: its rates go down by the shares of the steps.
const FRUITLESS_MAX: u32 = PROBES_MAX + 16;

/// A search, and the runs that it made.
struct Searched {
    found: Option<u64>,
    runs: Vec<Attempt>,
    likely: [u64; 2],
}

/// Searches with a committee of which `holds` says whether it keeps up.
fn search(guess: u64, mut holds: impl FnMut(Attempt, usize) -> bool) -> Searched {
    let mut bisection = Bisection::from(guess);
    let mut runs = Vec::new();
    while let Some(attempt) = bisection.next() {
        assert!((runs.len() as u32) < FRUITLESS_MAX, "{runs:?}");
        bisection.learn(attempt, holds(attempt, runs.len()));
        runs.push(attempt);
    }
    Searched { found: bisection.held(), runs, likely: bisection.likely() }
}

fn is_near(found: Option<u64>, capacity: f64) -> bool {
    found.is_some_and(|found| (found as f64 / capacity - 1.0).abs() <= 0.05)
}

/// A committee whose capacity differs from run to run, and that fails now and then whatever it is
/// offered.
struct Noise {
    random: ChaCha8Rng,
    spread: f64,
    unlucky: f64,
}

impl Noise {
    fn new(seed: u64, spread: f64, unlucky: f64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), spread, unlucky }
    }

    /// Between 0 and 1.
    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Of mean 0 and deviation 1: the sum of twelve, as near to normal as is needed.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// Capacity and guess, up to eight times away from it either way.
    fn draw(&mut self) -> (f64, u64) {
        let capacity = 10_f64.powf(3.0 + 2.0 * self.uniform());
        let guess = capacity * 8_f64.powf(2.0 * self.uniform() - 1.0);
        (capacity, guess as u64)
    }

    /// Outcome of a run. One of the whole length varies less, for it averages more.
    fn holds(&mut self, Attempt { rate, whole }: Attempt, capacity: f64) -> bool {
        let spread = if whole { self.spread / 2.0 } else { self.spread };
        let capacity = capacity * (spread * self.normal()).exp();
        self.uniform() >= self.unlucky && rate as f64 <= capacity
    }
}

#[test]
fn the_rate_found_is_within_a_twentieth() {
    for capacity in [11, 100, 1_999, 2_000, 2_001, 31_415, 123_456, 9_999_999] {
        let Searched { found, runs, .. } = search(FIRST_RATE, |run, _| run.rate <= capacity);
        assert!(is_near(found, capacity as f64), "{capacity}: {found:?} by {runs:?}");
        assert!(found <= Some(capacity), "{capacity}: {found:?}");
        assert!(runs.len() as u32 <= PROBES_MAX + CONFIRMATIONS_MAX, "{runs:?}");
    }
}

#[test]
fn probes_double_and_halve_until_the_rate_lies_between_two() {
    let rates = |capacity| {
        let runs = search(FIRST_RATE, |run, _| run.rate <= capacity).runs;
        runs.iter().map(|run| run.rate as f64).take(5).collect::<Vec<_>>()
    };
    let up = rates(100_000);
    assert!(up.windows(2).all(|pair| (1.8..=2.2).contains(&(pair[1] / pair[0]))), "{up:?}");
    let down = rates(20);
    assert!(down.windows(2).all(|pair| (0.45..=0.7).contains(&(pair[1] / pair[0]))), "{down:?}");
}

#[test]
fn noise_does_not_move_what_is_found_by_more_than_a_twentieth() {
    let (mut runs_made, mut far) = (0, Vec::new());
    for seed in 0..1_000 {
        let mut noise = Noise::new(seed, 0.02, 0.0);
        let (capacity, guess) = noise.draw();
        let Searched { found, runs, .. } = search(guess, |run, _| noise.holds(run, capacity));
        assert!(runs.len() as u32 <= PROBES_MAX + CONFIRMATIONS_MAX, "seed {seed}: {runs:?}");
        runs_made += runs.len();
        if !is_near(found, capacity) {
            far.push((seed, found.map_or(0.0, |found| found as f64 / capacity)));
        }
    }
    assert_eq!(far, []);
    assert!(runs_made <= 17 * 1_000, "{runs_made} runs for 1,000 searches");
}

#[test]
fn one_run_in_ten_that_fails_whatever_it_is_offered_does_little() {
    let mut far = Vec::new();
    for seed in 0..1_000 {
        let mut noise = Noise::new(seed, 0.02, 0.1);
        let (capacity, guess) = noise.draw();
        let Searched { found, .. } = search(guess, |run, _| noise.holds(run, capacity));
        if !is_near(found, capacity) {
            far.push((seed, found.map_or(0.0, |found| found as f64 / capacity)));
        }
    }
    assert!(far.len() <= 20, "{far:?}");
    assert!(far.iter().all(|(_, ratio)| *ratio > 0.5), "{far:?}");
}

/// Whichever run it is, and wherever the search began.
#[test]
fn an_unlucky_run_does_not_move_what_is_found() {
    for guess in [3_000, 10_000, 23_000, 80_000] {
        let capacity = 20_000;
        for unlucky in 0..PROBES_MAX as usize {
            let holds = |run: Attempt, index| run.rate <= capacity && index != unlucky;
            let Searched { found, runs, .. } = search(guess, holds);
            assert!(is_near(found, capacity as f64), "run {unlucky}: {found:?} by {runs:?}");
        }
    }
}

/// As a key-value store whose state outgrows its cache only after a while.
#[test]
fn a_rate_that_only_probes_keep_up_with_is_left_for_one_that_holds() {
    for whole in [9_000, 8_000, 5_000, 2_000, 100] {
        let holds = |run: Attempt, _| run.rate <= if run.whole { whole } else { 10_000 };
        let Searched { found, runs, .. } = search(8_000, holds);
        let found = found.expect("a rate");
        assert!(found <= whole && found as f64 >= 0.3 * whole as f64, "{whole}: {runs:?}");
    }
}

#[test]
fn a_committee_that_does_nothing_has_no_rate() {
    let Searched { found, runs, .. } = search(20_000, |_, _| false);
    assert_eq!(found, None);
    assert_eq!(runs.last(), Some(&Attempt { rate: RATE_MIN, whole: true }));
}

#[test]
fn a_search_begins_where_it_is_told() {
    let first = |guess| Bisection::from(guess).next().map(|attempt| attempt.rate);
    assert_eq!(first(40_000), Some(40_000));
    assert_eq!(first(1), Some(RATE_MIN), "nothing below the lowest is tried");
}

#[test]
fn what_is_likely_encloses_what_is_found() {
    let Searched { found, likely: [low, high], .. } = search(9_000, |run, _| run.rate <= 31_415);
    let found = found.expect("a rate");
    assert!(low <= 31_415 && 31_415 <= high && found <= high, "{low} to {high}, found {found}");
    assert!(high as f64 <= 1.06 * low as f64, "{low} to {high}");
}

#[test]
fn rates_have_three_digits() {
    let rates = [10.4, 123.4, 1_234.0, 98_765.0].map(readable);
    assert_eq!(rates, [10, 123, 1_230, 98_800]);
}
