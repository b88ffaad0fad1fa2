//! What came of a run.

use super::milestones::ViewChange;
use super::stations::Kind;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A distribution of latencies, each operation counted once, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Half were quicker.
    pub p50_ms: f64,
    /// Nine in ten were quicker.
    pub p90_ms: f64,
    /// Ninety-nine in a hundred were quicker.
    pub p99_ms: f64,
    /// The mean.
    pub mean_ms: f64,
    /// Operations.
    pub operations: u64,
}

/// One second of the time that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Operations committed.
    pub committed: u64,
    /// Operations committed at the validator that they were offered to.
    pub own: u64,
    /// The sum of their latencies, in milliseconds.
    pub own_ms_sum: f64,
}

/// Operations that were offered at one moment and answered at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    /// When their client was given them, in microseconds since the beginning.
    pub due_us: u64,
    /// Until it had equal answers from enough validators to include an honest one, in microseconds.
    pub latency_us: u64,
    /// How many.
    pub count: u32,
}

impl Answered {
    /// Whether others were offered and answered at the same moments.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.due_us, self.latency_us) == (other.due_us, other.latency_us)
    }
}

/// How much of its time a station is at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Which.
    pub station: String,
    /// Core time a second, the mean of all validators: 1 is a core.
    pub mean: f64,
    /// That of the busiest validator.
    pub busiest: f64,
    /// How often a thread of it was woken a second, the mean of all validators.
    pub wakes_per_second: f64,
}

/// Whether signatures were computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signatures {
    /// Made and checked as in a real run, and charged by the list.
    Real,
    /// Stand-ins with the same sizes and counts, charged by the list.
    Priced,
}

impl fmt::Display for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Priced => "priced",
        })
    }
}

/// What came of a run. Latencies are of the operations that were committed (or acknowledged) in the
/// time that counts, from the moment at which their client was given them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Operations a second that were committed at the first validator to do so.
    pub committed_tps: f64,
    /// Until the validator beside the client knew the operation decided, had its body and handed it to
    /// execution, which takes eight heights ahead: where execution is the bound, it is in this.
    pub one_validator: Percentiles,
    /// Until the first of all validators did, as the reference's scripts count.
    pub first_validator: Percentiles,
    /// Until the last of all validators that live did.
    pub slowest_validator: Percentiles,
    /// Until the client had equal answers from enough validators to include an honest one. Without
    /// operations where clients are not answered.
    pub acknowledged: Percentiles,
    /// Every operation that was answered, since the beginning, in the order of the answers. It is not
    /// written down with the rest: it is long.
    #[serde(skip)]
    pub answered: Vec<Answered>,
    /// By second of the time that counts.
    pub seconds: Vec<Second>,
    /// Operations offered, and refused for want of room, since the beginning.
    pub offered: u64,
    /// See [`Outcome::offered`].
    pub refused: u64,
    /// Views in the time that counts, as are the figures below unless they say otherwise.
    pub views: u64,
    /// Views that were given up, as the validator that gave up most saw it.
    pub timeouts: u64,
    /// Heights executed.
    pub heights: u64,
    /// How the first change of views went, after the first crash.
    pub view_change: Option<ViewChange>,
    /// Heights decided by the votes of almost all, where the protocol has a fast path, as the validator
    /// saw it that saw most.
    pub fast_decisions: u64,
    /// Heights decided by two quorums' votes, likewise.
    pub slow_decisions: u64,
    /// Messages a second that all validators sent, replies to clients among them.
    pub messages_per_second: f64,
    /// Bytes of the last certificate.
    pub certificate_bytes: u64,
    /// By station.
    pub utilisation: Vec<Utilisation>,
    /// Share of a host's cores at work: the busiest host.
    pub cores_busiest: f64,
    /// Share of the time that the busiest host's uplink was sending.
    pub uplink_busiest: f64,
    /// Bytes sent by a validator to other places, a second, on average.
    pub bytes_sent_per_second: f64,
    /// Bulk frames dropped because too much was under way to one peer.
    pub dropped: u64,
    /// Seconds that the run took.
    pub wall_s: f64,
    /// Seconds of virtual time.
    pub virtual_s: f64,
    /// Events processed.
    pub events: u64,
    /// Whether signatures were computed.
    pub signatures: Signatures,
    /// A hash over all events: equal for equal scenes.
    pub trace_hash: String,
}

impl Outcome {
    /// A station's utilisation.
    #[must_use]
    pub fn station(&self, kind: Kind) -> Option<&Utilisation> {
        self.utilisation.iter().find(|one| one.station == kind.name())
    }
}
