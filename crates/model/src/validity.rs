//! Doubts about a result: what must hold of a measurement before its figures mean anything.
//!
//! A mean over a window describes a committee under a load only if the window is stationary and
//! long enough. Each check is of one run by itself; what a run fails is said beside its figures,
//! which stay as they are.

use crate::doubt::Doubt;
use crate::outcome::{Estimate, PerSecond};
use crate::scene::Scene;

/// Fewest operations of a window.
const OPERATIONS_MIN: u64 = 1_000;
/// Fewest heights of a window: their moments are what a mean latency varies by.
const HEIGHTS_MIN: u64 = 20;
/// By how much both halves may differ.
const DRIFT_MAX: f64 = 0.1;
/// By how much what was under way may differ from throughput times latency.
const LITTLE_MAX: f64 = 0.15;

/// Doubts about what a scene came to; none of a result that stands, or of a window in which
/// somebody crashes: that it is not stationary is what it is looked at for.
pub(crate) fn doubts(scene: &Scene, estimate: &Estimate) -> Vec<Doubt> {
    if scene.is_of_a_crash() {
        return Vec::new();
    }
    let latency = estimate.first_validator;
    let mut doubts = Vec::new();
    let (operations, heights) = (latency.operations, estimate.heights);
    if operations < OPERATIONS_MIN || heights < HEIGHTS_MIN {
        doubts.push(Doubt::FewSamples { operations, heights });
    }
    if estimate.timeouts > 0 && scene.crashes().next().is_none() {
        doubts.push(Doubt::ViewChanges { views: estimate.timeouts });
    }
    doubts.extend(drifts(&estimate.seconds));
    // A refusal is taken off what came in when it is heard, however long before that was.
    if estimate.refused == 0 {
        doubts.extend(shrinks(&estimate.seconds));
    }
    let seconds = estimate.seconds.len() as f64;
    let under_way = estimate.seconds.iter().map(|second| second.under_way).sum::<f64>() / seconds;
    let accounted = estimate.committed_tps * latency.mean_ms / 1e3;
    if differ(under_way, accounted, LITTLE_MAX) {
        doubts.push(Doubt::LittlesLaw { under_way, accounted });
    }
    doubts
}

/// Tells whether one window says by itself that too much is offered: the backlog grows in it, or
/// latency does, by samples that suffice.
pub(crate) fn is_too_much(doubts: &[Doubt]) -> bool {
    let few = doubts.iter().any(|doubt| matches!(doubt, Doubt::FewSamples { .. }));
    doubts.iter().any(|doubt| match doubt {
        Doubt::LatencyDrifts { first, second } => second > first && !few,
        other => other.is_growth(),
    })
}

/// What tells the halves of a window apart. An odd second in the middle is in neither.
fn drifts(seconds: &[PerSecond]) -> Vec<Doubt> {
    let half = seconds.len() / 2;
    let sum = |part: &[PerSecond], of: fn(&PerSecond) -> f64| part.iter().map(of).sum::<f64>();
    let both = |of| (sum(&seconds[..half], of), sum(&seconds[seconds.len() - half..], of));
    let mut doubts = Vec::new();
    let (before, after) = both(|second| second.committed as f64);
    if differ(before, after, DRIFT_MAX) {
        doubts.push(Doubt::RateDrifts { first: before, second: after });
    }
    let (_, entered) = both(|second| second.offered as f64);
    if after < (1.0 - DRIFT_MAX) * entered {
        doubts.push(Doubt::BacklogGrows { offered: entered, committed: after });
    }
    let (sums, counts) = (both(|second| second.first_ms_sum), (before, after));
    let (before, after) = (sums.0 / counts.0, sums.1 / counts.1);
    if differ(before, after, DRIFT_MAX) {
        doubts.push(Doubt::LatencyDrifts { first: before, second: after });
    }
    doubts
}

/// A backlog that is worked off. Over the whole window: in a half, a block more or less would show.
fn shrinks(seconds: &[PerSecond]) -> Option<Doubt> {
    let sum = |of: fn(&PerSecond) -> f64| seconds.iter().map(of).sum::<f64>();
    let (offered, committed) =
        (sum(|second| second.offered as f64), sum(|second| second.committed as f64));
    let is_less = offered < (1.0 - DRIFT_MAX) * committed;
    is_less.then_some(Doubt::BacklogShrinks { offered, committed })
}

/// Tells whether two numbers differ by more than a share of the larger one. Nothing beside
/// something does; two that are no numbers do not.
fn differ(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() > share * one.max(other)
}

#[cfg(test)]
mod tests;
