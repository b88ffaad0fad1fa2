//! Judgement of whether a validator is of use now, and of its members, as pages show it.

use quorate_engine::SyncStatus;
use quorate_types::{Height, ReplicaId, Weights};
use serde::Serialize;
use std::time::Duration;
use std::{fmt, mem};

/// Reason for which clients should ask another validator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unready {
    /// It has not listened for long enough to say who is there, and those heard are no quorum.
    Listening,
    /// Those heard, this validator included, are no quorum.
    NoQuorum,
    /// Work waits, and nothing was decided for this long.
    Stalled(Duration),
    /// Blocks, bodies or a snapshot are missing.
    CatchingUp(SyncStatus),
    /// Member that should vote and may not.
    NotSigning,
    /// State that is not the committee's from this height on.
    Diverged(Height),
}

/// Judgement of one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Members heard within the last seconds, this one included.
    pub heard: usize,
    /// Members of the committee.
    pub members: usize,
    /// Weight of those heard.
    pub heard_weight: u64,
    /// Weight of a quorum.
    pub quorum: u64,
    /// Members that were not heard for some seconds.
    pub silent: Vec<ReplicaId>,
    /// Everything that speaks against asking this validator, none if it is ready.
    pub unready: Vec<Unready>,
}

/// Member as a validator sees it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MemberStatus {
    /// Index of the member.
    pub id: ReplicaId,
    /// Weight of its vote.
    pub weight: u64,
    /// Certificates with its vote among the last ones.
    pub votes: u32,
    /// Number of those: the last 100, or fewer after a start.
    pub certificates: usize,
    /// Certificates in a row, the latest ones, without its vote: no more than are counted.
    pub absences: usize,
    /// Views that it led, since the validator started.
    pub turns: u64,
    /// Those of them that were given up.
    pub turns_failed: u64,
    /// Contact with it; none with itself.
    #[serde(flatten)]
    pub contact: Option<MemberContact>,
}

/// Contact with another member now.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MemberContact {
    /// True if all lanes to it are connected.
    pub connected: bool,
    /// True if it was not heard for some seconds.
    pub silent: bool,
    /// Seconds since it was heard, or since the start.
    pub silence_s: f64,
    /// Milliseconds to it and back; `null` while no probe came back.
    pub round_trip_ms: Option<f64>,
}

impl MemberStatus {
    /// Part of the last certificates that carries its vote; `None` while there is none.
    pub(crate) fn votes_ratio(&self) -> Option<f64> {
        (self.certificates > 0).then(|| f64::from(self.votes) / self.certificates as f64)
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heard, members, heard_weight, quorum, silent, .. } = self;
        write!(f, "heard {heard} of {members}")?;
        if *heard_weight != *heard as u64 {
            write!(f, ", which weigh {heard_weight}")?;
        }
        write!(f, ", {quorum} needed")?;
        if silent.is_empty() { Ok(()) } else { write!(f, "; silent: {}", names(silent)) }
    }
}

fn names(members: &[ReplicaId]) -> String {
    members.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Health {
    /// Judgement of a validator that nobody has looked at.
    pub(crate) fn starting(weights: &Weights) -> Self {
        Self {
            heard: 0,
            members: weights.members(),
            heard_weight: 0,
            quorum: weights.quorum(),
            silent: Vec::new(),
            unready: vec![Unready::Listening],
        }
    }

    /// Returns `true` if clients may ask it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.unready.is_empty()
    }

    /// Returns `true` if those heard are a quorum.
    #[must_use]
    pub fn has_quorum(&self) -> bool {
        self.heard_weight >= self.quorum
    }

    /// Returns `true` if work waits and nothing is decided.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.unready.iter().any(|reason| matches!(reason, Unready::Stalled(_)))
    }

    /// Reasons in words, for people.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.unready.iter().map(|reason| self.words(reason)).collect()
    }

    /// One of its reasons in words.
    pub(crate) fn words(&self, reason: &Unready) -> String {
        match reason {
            Unready::Listening => format!("starting: {self}"),
            Unready::NoQuorum => format!("no quorum: {self}"),
            Unready::Stalled(span) => {
                format!("stalled: nothing decided for {} s, though work waits", span.as_secs())
            }
            Unready::CatchingUp(SyncStatus { from, to, why }) => {
                format!("catching up: from {from} to {to}, waits for {why}")
            }
            Unready::NotSigning => "not signing: its log is gone".to_owned(),
            Unready::Diverged(height) => {
                format!("diverged: its state is not the committee's from {height} on")
            }
        }
    }

    /// Returns `true` if it has a reason of this kind.
    pub(crate) fn has_like(&self, reason: &Unready) -> bool {
        let kind = mem::discriminant(reason);
        self.unready.iter().any(|other| mem::discriminant(other) == kind)
    }
}

impl Unready {
    /// What the log says once it no longer holds.
    pub(crate) fn ending(&self) -> Option<&'static str> {
        match self {
            Self::NoQuorum => Some("there is a quorum again"),
            Self::Stalled(_) => Some("no longer stalled"),
            Self::CatchingUp(_) => Some("caught up"),
            Self::Diverged(_) => Some("its state is the committee's again"),
            Self::Listening | Self::NotSigning => None,
        }
    }
}
