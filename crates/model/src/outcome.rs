//! Results of a run.

use crate::bottleneck::Bottleneck;
use crate::doubt::Doubt;
use crate::station::Station;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// A distribution of latencies, each operation counted once, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Latency below which half are.
    pub p50_ms: f64,
    /// Latency below which nine in ten are.
    pub p90_ms: f64,
    /// Latency below which 99 in a hundred are.
    pub p99_ms: f64,
    /// Mean of all latencies.
    pub mean_ms: f64,
    /// Number of operations counted.
    pub operations: u64,
}

/// One second of the measurement window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PerSecond {
    /// Number of operations offered and not refused: a refusal counts where it is heard.
    pub offered: i64,
    /// Number of operations under way, the mean: offered, not refused and committed nowhere.
    pub under_way: f64,
    /// Number of operations committed anywhere.
    pub committed: u64,
    /// Sum of their latencies, in milliseconds.
    pub first_ms_sum: f64,
    /// Number of operations committed at the validator that they were offered to.
    pub own: u64,
    /// Sum of their latencies, in milliseconds.
    pub own_ms_sum: f64,
}

/// Operations that were offered at one moment and answered at another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    /// Moment at which their client was given them, in microseconds since the beginning.
    pub due_us: u64,
    /// Time until it had equal answers from enough validators to include an honest one, in
    /// microseconds.
    pub latency_us: u64,
    /// Number of the operations.
    pub count: u32,
}

impl LatencySample {
    /// Tells whether others were offered and answered at the same moments.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.due_us, self.latency_us) == (other.due_us, other.latency_us)
    }
}

/// Share of its time that a station is at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Utilisation {
    /// Name of the station ([`Station::name`]).
    pub station: String,
    /// Core time a second, the mean of all validators: 1 is a core.
    pub mean: f64,
    /// Core time a second of the busiest validator.
    pub busiest: f64,
    /// Times a second that a thread of it was woken, the mean of all validators.
    pub wakes_per_second: f64,
}

/// Way in which signatures were made.
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

/// Moments of the first view change after the first crash, in milliseconds since the crash. Only of
/// protocols that order in slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ViewChange {
    /// Moment at which the first member's timer ran out and it reported what it knows.
    pub given_up_ms: f64,
    /// Moment of the last member's report.
    pub last_report_ms: f64,
    /// Moment at which the new primary had checked enough reports and proposed the new view, if it
    /// came to that.
    pub new_view_ms: Option<f64>,
    /// Moment at which something new was decided, if it was.
    pub resumed_ms: Option<f64>,
    /// Bytes of the longest report.
    pub report_bytes: u64,
}

/// Progress of a run so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Virtual time that has passed.
    pub virtual_time: Duration,
    /// Virtual time of the whole run.
    pub total: Duration,
    /// Number of operations committed so far.
    pub committed: u64,
}

/// Result of a run. Latencies are of the operations that were committed (or acknowledged) in the
/// measurement window, from the moment at which their client was given them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Operations a second that were committed at the first validator to do so.
    pub committed_tps: f64,
    /// Time until the validator beside the client knew the operation decided, had its body and
    /// handed it to execution, which takes eight heights ahead: where execution is the bound, it is
    /// in this.
    pub one_validator: Percentiles,
    /// Time until the first of all validators did, as the reference's scripts count.
    pub first_validator: Percentiles,
    /// Time until the last of all validators that do not crash did.
    pub slowest_validator: Percentiles,
    /// Time until the client had equal answers from enough validators to include an honest one.
    /// Without operations where clients are not answered.
    pub acknowledged: Percentiles,
    /// Every operation that was answered, since the beginning, in the order of the answers. It is
    /// not written down with the rest: it is long.
    #[serde(skip)]
    pub answered: Vec<LatencySample>,
    /// Measurement window, in seconds since the beginning.
    pub window_s: (f64, f64),
    /// Doubts about the figures; none of a run that stands.
    pub doubts: Vec<Doubt>,
    /// Seconds of the measurement window, one after the other.
    pub seconds: Vec<PerSecond>,
    /// Operations offered since the beginning.
    pub offered: u64,
    /// Operations refused for want of room, since the beginning.
    pub refused: u64,
    /// Views in the measurement window, as are the figures below unless they say otherwise.
    pub views: u64,
    /// Views that timed out, at the validator at which most did.
    pub timeouts: u64,
    /// Number of heights executed.
    pub heights: u64,
    /// Moments of the first view change after the first crash, if there was one.
    pub view_change: Option<ViewChange>,
    /// Heights decided by the votes of almost all, where the protocol has a fast path, as the
    /// validator saw it that saw most.
    pub fast_decisions: u64,
    /// Heights decided by two quorums' votes, likewise.
    pub slow_decisions: u64,
    /// Messages a second that all validators sent, replies to clients among them.
    pub messages_per_second: f64,
    /// Bytes of the last certificate.
    pub certificate_bytes: u64,
    /// Utilisation of each station.
    pub utilisation: Vec<Utilisation>,
    /// Share of a host's cores at work: the busiest host.
    pub cores_busiest: f64,
    /// Share of the time that the busiest host's uplink was sending.
    pub uplink_busiest: f64,
    /// Resource nearest to its limit.
    pub bottleneck: Bottleneck,
    /// Bytes sent by a validator to other places, a second, on average.
    pub bytes_sent_per_second: f64,
    /// Bulk frames dropped because too much was under way to one peer, or taken back.
    pub dropped: u64,
    /// Pause before a proposal for want of processors, at the end of the run: the longest of any
    /// validator's, in milliseconds.
    pub pace_ms: u64,
    /// Seconds of the wall clock that the run took.
    pub wall_s: f64,
    /// Seconds of virtual time that it simulated.
    pub virtual_s: f64,
    /// Number of events processed.
    pub events: u64,
    /// Way in which signatures were made.
    pub signatures: Signatures,
    /// A hash over all events: equal for equal scenes.
    pub trace_hash: String,
}

impl Estimate {
    /// Utilisation of a station.
    #[must_use]
    pub fn station(&self, station: Station) -> Option<&Utilisation> {
        self.utilisation.iter().find(|one| one.station == station.name())
    }
}
