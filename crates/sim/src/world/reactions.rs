//! Effects that faulty members had on the correct ones, as far as these counted them.

use super::World;
use super::replica::ReplicaHost;
use std::collections::BTreeSet;

/// Counts of what correct members noticed, over all that run at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reactions {
    /// Views that ended without a decision, at the member that saw most.
    pub view_changes: u64,
    /// Frames that did not pass the checks, at any endpoint.
    pub refused: u64,
    /// Messages that passed them and did nothing.
    pub ignored: u64,
    /// Milliseconds from a request's arrival to its answer, on average over those that correct
    /// members answered.
    pub answered_ms: u64,
    /// Rules that somebody was seen to break.
    pub broken: BTreeSet<&'static str>,
}

impl World {
    /// Summarises what correct members noticed so far.
    #[must_use]
    pub fn reactions(&self) -> Reactions {
        let statuses = || self.correct().filter_map(ReplicaHost::status);
        let ignored = |status: quorate_engine::Status| {
            status.ignored.iter().map(|(_, _, count)| count).sum::<u64>()
        };
        let broken = |status: quorate_engine::Status| {
            let named = status.misbehaviour.iter().map(|(_, rule, ..)| rule.name());
            named.collect::<Vec<_>>()
        };
        let requests = || statuses().map(|status| status.request_latency);
        let answered: u64 = requests().map(|requests| requests.count()).sum();
        let waited_ms: u64 = requests().map(|requests| in_ms(requests.sum_seconds())).sum();
        Reactions {
            answered_ms: waited_ms / answered.max(1),
            view_changes: statuses().map(|status| status.view_changes).max().unwrap_or_default(),
            refused: self.refused,
            ignored: statuses().map(ignored).sum(),
            broken: statuses().flat_map(broken).collect(),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, positive")]
fn in_ms(seconds: f64) -> u64 {
    (seconds * 1_000.0).round() as u64
}
