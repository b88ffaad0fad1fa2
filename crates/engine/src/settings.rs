//! The settings of a replica: one plain struct, the same in configuration files, benches and
//! simulations.

mod agreed;
mod comparison;
mod table;

pub use agreed::UnknownSetting;
pub use comparison::{Comparison, FlowControl, Sealing};

use quorate_consensus::{Liveness, ProtocolKind};
use quorate_crypto::Policy;
use quorate_types::Payload;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use table::Table;

/// Most times `snapshot_every` heights from one snapshot to the next, however large the state is.
pub const SNAPSHOT_INTERVALS_MAX: u64 = 4;

/// Condition under which a body may be ordered: what a vote for a block that names it needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Availability {
    /// The voter stores the body: the votes for a block are the proof that its bodies are
    /// available.
    #[default]
    Stored,
    /// The voter stores the body or holds a certificate that members of `weak` weight store it.
    Certified,
}

impl std::fmt::Display for Availability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stored => "stored",
            Self::Certified => "certified",
        })
    }
}

impl std::str::FromStr for Availability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "stored" => Ok(Self::Stored),
            "certified" => Ok(Self::Certified),
            other => Err(format!("'{other}' is no availability: use 'stored' or 'certified'")),
        }
    }
}

/// Everything that may be tuned in a replica. What members must have alike comes from their
/// committee file ([`Settings::agree`]); the rest is each member's own. Frames that these rule out
/// are refused ([`crate::FrameSetting`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Table", into = "Table")]
pub struct Settings {
    /// Protocol that orders the payloads.
    pub protocol: ProtocolKind,
    /// A body is sealed when its requests reach this many bytes. 1 KiB to 3 MiB.
    pub batch_bytes: usize,
    /// A body that is not full is sealed after this long. Longer: fewer, larger bodies and a higher
    /// latency when load is light.
    pub batch_delay_ms: u64,
    /// Time that a view may take before it times out, in milliseconds: at least eight round trips
    /// between the farthest members.
    pub timeout_ms: u64,
    /// After a quorum of votes, how long the next leader waits for the rest, so that certificates
    /// name few absentees (000 §3). 0: not at all.
    pub vote_wait_ms: u64,
    /// Way in which votes are checked when they are collected: `each`, `batch` or `aggregate`.
    pub verify: Policy,
    /// Leaders whose last turns came to nothing are passed over, longer each time. **Every member
    /// must say the same**, or they wait for different leaders.
    pub leader_reputation: bool,
    /// Views in a row that a member leads, 1 to 1,000: `⌊v/K⌋ mod n`. **Every member must say the
    /// same.**
    pub leader_tenure: u64,
    /// Slots that a primary has under way at once, 1 to 256, in protocols that order in slots;
    /// never more than ⌊(n−1)/(c+1)⌋. More of them hide long ways, and wait for one another's
    /// processors where those are short.
    pub concurrent_slots: u64,
    /// Views that depend on a member whose last turn came to nothing get an eighth of their span.
    pub shorten_failed_turns: bool,
    /// By how much of itself a view's span grows for each view that timed out since the last
    /// decision, but for the first of each of so many leaders as may be dead; twelve times at most.
    /// 0 to 100, in per cent.
    pub timeout_growth: u32,
    /// Leaders carry their own bodies inside proposals instead of sending them ahead. **Every
    /// member must say the same**: without it such proposals are refused.
    pub inline_bodies: bool,
    /// Condition of a vote on the bodies that a block names: `stored` at the voter, or `certified`,
    /// which costs every member signatures beside the votes and lets it vote for what it does not
    /// hold yet. Not together with `inline_bodies`.
    pub availability: Availability,
    /// Members sign what each height came to, and a client gets one answer that proves itself,
    /// instead of one from each member. It comes two message delays later. Needed for receipts and
    /// for questions about the state. **Every member must say the same**, or too few sign.
    pub execution_certificates: bool,
    /// A height is decided so many milliseconds after the one before at the latest, though there is
    /// nothing to order. 0: never; otherwise 100 to 600,000. **Every member must say the same**, or
    /// a leader that leaves it out is waited for by some.
    pub heartbeat_ms: u64,
    /// A proposal stamped further ahead of the own clock than this gets no vote.
    pub clock_drift_max_ms: u64,
    /// Requests that wait to be ordered, in bytes. Beyond it clients are told to slow down.
    pub mempool_bytes_max: usize,
    /// Undecided bodies kept of each author, in bytes. Beyond it they are fetched when ordered.
    pub author_bytes_max: usize,
    /// Every so many heights a snapshot of the state is taken, 4 to 1,048,576. **Every member must
    /// say the same**: only snapshots of one height can vouch for one another. Blocks are kept from
    /// the last but one on, whatever the retention: rarer snapshots mean more disk, more frequent
    /// ones write the whole state more often.
    pub snapshot_every: u64,
    /// Settings for comparisons with papers: at their defaults in any validator that orders for
    /// others. Files and results name them beside the others.
    pub comparison: Comparison,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            protocol: ProtocolKind::Jolteon,
            batch_bytes: 500_000,
            batch_delay_ms: 5,
            timeout_ms: 1_000,
            vote_wait_ms: 0,
            verify: Policy::Aggregate,
            leader_reputation: true,
            leader_tenure: 1,
            concurrent_slots: Liveness::default().concurrent_slots,
            shorten_failed_turns: true,
            timeout_growth: 50,
            inline_bodies: false,
            availability: Availability::Stored,
            execution_certificates: false,
            heartbeat_ms: 0,
            clock_drift_max_ms: 5_000,
            mempool_bytes_max: 64 * 1024 * 1024,
            author_bytes_max: 64 * 1024 * 1024,
            snapshot_every: 1_024,
            comparison: Comparison::default(),
        }
    }
}

/// Reason for which settings are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting '{name}' is {value}; it must be {rule}")]
pub struct SettingsError {
    name: &'static str,
    value: u64,
    rule: &'static str,
}

impl SettingsError {
    /// The setting that is refused.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Settings {
    /// Checks ranges.
    ///
    /// # Errors
    /// The first setting out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let check = |name, value: u64, ok: bool, rule| {
            if ok { Ok(()) } else { Err(SettingsError { name, value, rule }) }
        };
        let batch = self.batch_bytes as u64;
        check("batch_bytes", batch, (1 << 10..=3 << 20).contains(&batch), "1024 to 3145728")?;
        let delay = self.batch_delay_ms;
        check("batch_delay_ms", delay, delay <= 10_000, "at most 10000")?;
        let timeout = self.timeout_ms;
        check("timeout_ms", timeout, (10..=600_000).contains(&timeout), "10 to 600000")?;
        let wait = self.vote_wait_ms;
        check("vote_wait_ms", wait, wait < timeout, "less than timeout_ms")?;
        let tenure = self.leader_tenure;
        check("leader_tenure", tenure, (1..=1_000).contains(&tenure), "1 to 1000")?;
        let slots = self.concurrent_slots;
        check("concurrent_slots", slots, (1..=256).contains(&slots), "1 to 256")?;
        let growth = u64::from(self.timeout_growth);
        check("timeout_growth", growth, growth <= 100, "at most 100")?;
        let beat = self.heartbeat_ms;
        let is_beat = beat == 0 || (100..=600_000).contains(&beat);
        check("heartbeat_ms", beat, is_beat, "0, or 100 to 600000")?;
        let mempool = self.mempool_bytes_max as u64;
        check("mempool_bytes_max", mempool, mempool >= 2 * batch, "at least 2 x batch_bytes")?;
        let author = self.author_bytes_max as u64;
        check("author_bytes_max", author, author >= 8 << 20, "at least 8388608")?;
        let every = self.snapshot_every;
        check("snapshot_every", every, (4..=1 << 20).contains(&every), "4 to 1048576")?;
        // A body inside its proposal needs no proof that it is somewhere else.
        let inline = self.inline_bodies && self.availability == Availability::Certified;
        check(
            "inline_bodies",
            u64::from(inline),
            !inline,
            "0 (false) when availability is certified",
        )
    }

    /// [`Comparison::block_operations_max`] as a number to compare with.
    #[must_use]
    pub fn block_operations_max(&self) -> usize {
        match self.comparison.block_operations_max {
            0 => usize::MAX,
            most => usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// Most bodies that a block names.
    #[must_use]
    pub fn block_bodies_max(&self) -> usize {
        match self.comparison.block_bodies_max {
            0 => Payload::BODIES_MAX,
            most => usize::try_from(most)
                .map_or(Payload::BODIES_MAX, |most| most.min(Payload::BODIES_MAX)),
        }
    }

    /// Returns `true` if members certify what heights come to: by
    /// [`Settings::execution_certificates`], or because the protocol answers clients so.
    #[must_use]
    pub fn certifies_execution(&self) -> bool {
        self.execution_certificates || self.protocol.certifies_replies()
    }

    /// What members certify of what they executed: each height that is a multiple of this. With the
    /// height of a snapshot, whoever is left of a committee shows others a state.
    #[must_use]
    pub fn certified_every(&self) -> u64 {
        if self.certifies_execution() { 1 } else { self.snapshot_every }
    }

    /// Options that keep the protocol going.
    #[must_use]
    pub fn liveness(&self) -> Liveness {
        Liveness {
            leader_tenure: self.leader_tenure,
            concurrent_slots: self.concurrent_slots,
            leader_reputation: self.leader_reputation,
            shorten_failed_turns: self.shorten_failed_turns,
            timeout_growth: self.timeout_growth,
            vote_salvage: self.comparison.vote_salvage,
        }
    }

    /// [`Settings::timeout_ms`] as a span.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

#[cfg(test)]
mod tests;
