//! Rules that a member broke in a way that only state shows.
//!
//! A message that breaks a rule by itself never reaches a machine: its check refuses it
//! ([`Rejected`](quorate_types::Rejected)). What is here no honest member does, however late or
//! often its messages arrive. The channel proves the sender to this replica. What two signatures
//! prove to anybody ([`Statement::conflict_with`](crate::Statement::conflict_with)) the engine
//! keeps.

use quorate_crypto::Digest;
use quorate_types::{Height, ReplicaId, View};
use std::collections::BTreeMap;
use std::fmt;

/// Rule broken by a member, with what was seen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misbehaviour {
    /// Author of what broke the rule, as its channel or its signature proved it.
    pub member: ReplicaId,
    /// The rule that it broke.
    pub rule: Rule,
    /// Bytes or digests that an operator can look for in logs.
    pub evidence: Evidence,
}

/// Rule that a member can break in a message that is well formed and signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A leader proposes one block a view (HotStuff §4; Jolteon, Block rule), a primary one value a
    /// slot and view (PBFT §4.2, SBFT §V-C).
    Equivocation,
    /// A member votes once in each phase of a view (HotStuff §4 and §5; Jolteon, Vote rule).
    DoubleVote,
    /// A share verifies under its sender's voting key (000, common rules: aggregate first).
    InvalidShare,
    /// A block is of the leader that its parent leads to, where leaders have a reputation.
    WrongLeader,
    /// A block states the leaders' reputation that follows from its parent.
    LeaderReputation,
    /// A block's height is its parent's and one.
    HeightSuccession,
    /// A block's time is not before its parent's, and not further ahead of the receiver's clock
    /// than the clocks of members may differ.
    ProposalTime,
    /// What extends a stop block orders nothing (epochs).
    PayloadAfterStop,
    /// Each start of a member has a number of its own: two processes with one key, or a folder that
    /// was put back, break that.
    SharedKey,
}

impl Rule {
    /// Name in metrics and logs, in lower case with hyphens.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equivocation => "equivocation",
            Self::DoubleVote => "double-vote",
            Self::InvalidShare => "invalid-share",
            Self::WrongLeader => "wrong-leader",
            Self::LeaderReputation => "leader-reputation",
            Self::HeightSuccession => "height-succession",
            Self::ProposalTime => "proposal-time",
            Self::PayloadAfterStop => "payload-after-stop",
            Self::SharedKey => "shared-key",
        }
    }
}

/// Observation of a broken rule: a few dozen bytes, printed in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Two statements of one view where one is allowed.
    Conflict {
        /// The view of both.
        view: View,
        /// Digest of the block or value that was said first.
        first: Digest,
        /// Digest of the other.
        second: Digest,
    },
    /// Two starts under one number.
    Starts {
        /// Number that both took, which counts the starts of a data folder.
        number: u64,
    },
    /// Share over these bytes that does not verify.
    Share {
        /// Hash of the bytes that were to be signed.
        statement: Digest,
    },
    /// Proposal with the header that breaks the rule.
    Proposal {
        /// View that it states.
        view: View,
        /// Digest of the block or value.
        digest: Digest,
        /// The height that it states.
        height: Height,
        /// The time that it states, in milliseconds since the Unix epoch.
        proposed_at_ms: u64,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { view, first, second } => {
                write!(f, "in {view} it said {} and {}", first.to_hex(), second.to_hex())
            }
            Self::Starts { number } => write!(f, "two starts of its key have the number {number}"),
            Self::Share { statement } => {
                write!(
                    f,
                    "a share over the statement with the hash {} does not verify",
                    statement.to_hex()
                )
            }
            Self::Proposal { view, digest, height, proposed_at_ms } => {
                let digest = digest.to_hex();
                write!(f, "proposal {digest} of {view}: height {height}, time {proposed_at_ms} ms")
            }
        }
    }
}

/// Misbehaviour since the start, by member and rule: how often, and the first evidence of each. As
/// large as members times rules at most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MisbehaviourLog(BTreeMap<(ReplicaId, Rule), (u64, Evidence)>);

impl MisbehaviourLog {
    /// Counts it; evidence is kept of the first of each member and rule.
    pub fn count(&mut self, seen: &Misbehaviour) {
        self.0.entry((seen.member, seen.rule)).or_insert((0, seen.evidence)).0 += 1;
    }

    /// Each member and rule, with the number of times and the first evidence.
    pub fn iter(&self) -> impl Iterator<Item = (ReplicaId, Rule, u64, &Evidence)> {
        self.0.iter().map(|((member, rule), (times, first))| (*member, *rule, *times, first))
    }

    /// The first evidence of each member and rule that `earlier` does not know.
    pub fn since<'a>(&'a self, earlier: &'a Self) -> impl Iterator<Item = Misbehaviour> + 'a {
        let is_new = |(member, rule, ..): &(ReplicaId, Rule, u64, &Evidence)| {
            !earlier.0.contains_key(&(*member, *rule))
        };
        self.iter().filter(is_new).map(|(member, rule, _, evidence)| Misbehaviour {
            member,
            rule,
            evidence: *evidence,
        })
    }
}

#[cfg(test)]
mod tests;
