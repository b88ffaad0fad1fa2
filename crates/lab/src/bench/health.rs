//! Health of a committee: every validator that should be working is.
//!
//! A committee hides a member's failure from its clients: that is its purpose. So a harness that
//! looks only at the clients' figures reports a cluster of four in which one stands still as fine.
//! This one watches every member and fails the run by name.

use crate::status::ValidatorStatus;

/// Seconds that a member may stand still while others advance.
pub const STALL_SECONDS_MAX: u32 = 5;

/// Fault of one validator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HealthIssue {
    /// Its process ended, and nobody asked it to.
    #[error("validator {0} exited by itself ({1})")]
    Exited(u16, String),
    /// It does not say how it is.
    #[error("validator {0} has not answered /status for {STALL_SECONDS_MAX} seconds")]
    Silent(u16),
    /// The others go on without it.
    #[error(
        "validator {id} has executed nothing for {STALL_SECONDS_MAX} seconds while others advanced \
         (it stands at {own} operations, the furthest at {furthest})"
    )]
    Stalled {
        /// Index of the validator.
        id: u16,
        /// Number of its operations.
        own: u64,
        /// The most that any other has executed.
        furthest: u64,
    },
    /// The load is over and it has not caught up.
    #[error("validator {id} stayed behind: {own} operations executed, the furthest has {furthest}")]
    Behind {
        /// Index of the validator.
        id: u16,
        /// Number of its operations.
        own: u64,
        /// The most that any other has executed.
        furthest: u64,
    },
    /// Two validators disagree about the past. This must never happen.
    #[error("validators {0} and {1} executed height {2} to different roots")]
    Diverged(u16, u16, u64),
}

impl HealthIssue {
    /// Validator whose log explains it.
    #[must_use]
    pub fn validator(&self) -> u16 {
        match self {
            Self::Exited(id, _) | Self::Silent(id) | Self::Diverged(_, id, _) => *id,
            Self::Stalled { id, .. } | Self::Behind { id, .. } => *id,
        }
    }
}

/// Watches a committee, one look a second.
#[derive(Debug)]
pub struct Health {
    members: Vec<Member>,
}

#[derive(Clone, Debug, Default)]
struct Member {
    /// It is not, or not yet again, expected to work.
    excused: bool,
    operations: u64,
    standing_still: u32,
    silent: u32,
}

impl Health {
    /// A committee of `count`, all expected to work.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { members: vec![Member::default(); count] }
    }

    /// From now on nothing is expected of `id`: it was killed.
    pub fn excuse(&mut self, id: u16) {
        self.members[usize::from(id)].excused = true;
    }

    /// Returns `true` if `id` was expected to work all along.
    #[cfg(test)]
    fn is_expected(&self, id: u16) -> bool {
        !self.members[usize::from(id)].excused
    }

    /// Takes in what all validators said within the same second, `None` for silence.
    ///
    /// # Errors
    /// The first issue found.
    pub fn observe(&mut self, looks: &[Option<ValidatorStatus>]) -> Result<(), HealthIssue> {
        let advanced = |member: &Member, look: &Option<ValidatorStatus>| {
            look.as_ref().is_some_and(|status| status.operations > member.operations)
        };
        let expected = |pair: &(&Member, &Option<ValidatorStatus>)| !pair.0.excused;
        let pairs = || self.members.iter().zip(looks).filter(expected);
        let someone_advanced = pairs().any(|(member, look)| advanced(member, look));
        let furthest = furthest(looks);
        for (id, (member, look)) in (0..).zip(self.members.iter_mut().zip(looks)) {
            if member.excused {
                continue;
            }
            let moved = advanced(member, look);
            member.silent = if look.is_some() { 0 } else { member.silent + 1 };
            if moved {
                member.standing_still = 0;
            } else if someone_advanced && look.is_some() {
                member.standing_still += 1;
            }
            member.operations = look.as_ref().map_or(member.operations, |s| s.operations);
            if member.silent >= STALL_SECONDS_MAX {
                return Err(HealthIssue::Silent(id));
            }
            if member.standing_still >= STALL_SECONDS_MAX {
                return Err(HealthIssue::Stalled { id, own: member.operations, furthest });
            }
        }
        agree(looks)
    }
}

/// Checks that all who answered and executed the same height have the same root there. Before the
/// first there is none: who has just started shows an empty one.
///
/// # Errors
/// The first two that differ.
pub fn agree(looks: &[Option<ValidatorStatus>]) -> Result<(), HealthIssue> {
    let answered: Vec<_> =
        (0..).zip(looks).filter_map(|(id, look)| Some((id, look.as_ref()?))).collect();
    for (position, (a, first)) in answered.iter().enumerate() {
        for (b, second) in &answered[position + 1..] {
            let is_same_height = first.executed > 0 && first.executed == second.executed;
            if is_same_height && first.root != second.root {
                return Err(HealthIssue::Diverged(*a, *b, first.executed));
            }
        }
    }
    Ok(())
}

/// Checks that all of `ids` have executed as many operations as the furthest, but for `tolerance`.
///
/// # Errors
/// The first that has not, or that is silent.
pub fn caught_up(
    looks: &[Option<ValidatorStatus>],
    ids: &[u16],
    tolerance: u64,
) -> Result<(), HealthIssue> {
    let furthest = furthest(looks);
    for &id in ids {
        let look = looks[usize::from(id)].as_ref().ok_or(HealthIssue::Silent(id))?;
        if look.operations + tolerance < furthest {
            return Err(HealthIssue::Behind { id, own: look.operations, furthest });
        }
    }
    Ok(())
}

fn furthest(looks: &[Option<ValidatorStatus>]) -> u64 {
    looks.iter().flatten().map(|status| status.operations).max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
