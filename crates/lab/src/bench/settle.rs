//! End of a warm-up of no fixed length: the committee has settled under its load.
//!
//! A committee that has just started is slower than the same one seconds later: it maps its memory
//! for the first time, opens its logs, and works off what was offered meanwhile. The more
//! validators share a processor, the longer that takes. So it is not waited for by the clock: it is
//! over once every validator commits what is offered, no less and, with a backlog to work off, no
//! more.

use super::evidence::{Sample, rate};

/// Looks, one a second, over which a committee must have committed what was offered.
const LOOKS: usize = 3;

/// Part of the offered rate by which a settled validator's may differ: a tenth of a second's
/// operations over two seconds, for they are committed a height at a time.
const TOLERANCE: f64 = 0.05;

/// Returns `true` if each of these validators lately committed at the rate that is offered.
pub(super) fn has_settled(samples: &[Sample], validators: &[u16], offered_tps: u64) -> bool {
    let Some(from) = samples.len().checked_sub(LOOKS) else { return false };
    let offered_tps = offered_tps as f64;
    let is_level = |&id: &u16| {
        let committed_tps = rate(&samples[from..], id);
        (committed_tps - offered_tps).abs() <= TOLERANCE * offered_tps
    };
    validators.iter().all(is_level)
}

#[cfg(test)]
mod tests;
