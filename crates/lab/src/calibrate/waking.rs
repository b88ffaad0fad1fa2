//! Time from waking a thread until it runs, where a core is idle.

use super::figures;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

/// Turns of the ball, after some that do not count.
const TURNS: u32 = 4_000;
const WARM_UP: u32 = 500;

/// Two threads wake each other in turn, and neither has anything else to do: half a turn, in
/// microseconds, is the way from one that wakes to the other at work.
pub(super) fn measure() -> f64 {
    let ball = AtomicU32::new(0);
    let this = thread::current();
    let last = 2 * (WARM_UP + TURNS);
    let took = thread::scope(|scope| {
        let other = scope.spawn(|| {
            for count in (1..last).step_by(2) {
                wait(&ball, count);
                ball.store(count + 1, Ordering::Release);
                this.unpark();
            }
        });
        let play = |from: u32, to: u32| {
            for count in (from..to).step_by(2) {
                ball.store(count + 1, Ordering::Release);
                other.thread().unpark();
                wait(&ball, count + 2);
            }
        };
        play(0, 2 * WARM_UP);
        let began = Instant::now();
        play(2 * WARM_UP, last);
        began.elapsed()
    });
    figures(took.as_secs_f64() * 1e6 / f64::from(2 * TURNS))
}

/// Sleeps until the ball was thrown so many times.
fn wait(ball: &AtomicU32, count: u32) {
    while ball.load(Ordering::Acquire) != count {
        thread::park();
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn waking_takes_a_while() {
        let us = super::measure();
        assert!(us > 0.1, "{us} us, less than a call of the system");
    }
}
