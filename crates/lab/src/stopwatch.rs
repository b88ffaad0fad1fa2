//! Time of a piece of work that nothing else gets in the way of.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Mean time of `work` in the best of `spans` spans of this length, in microseconds. The best
/// counts: whatever else runs on the machine only adds.
pub(crate) fn microseconds<T>(spans: usize, span: Duration, mut work: impl FnMut() -> T) -> f64 {
    black_box(work());
    let mut one = || {
        let began = Instant::now();
        let mut times = 0_u32;
        while times == 0 || began.elapsed() < span {
            black_box(work());
            times += 1;
        }
        began.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    };
    (0..spans.max(1)).map(|_| one()).fold(f64::INFINITY, f64::min)
}
