//! Changes of the network's authorities, as a scenario has them.
//!
//! Authorities are numbered over all epochs: those that the network was founded with first, then
//! newcomers in the order in which they come. Their index in an epoch is another number.

use serde::{Deserialize, Serialize};

/// Change of the authorities at the end of an epoch. Times are microseconds of the world's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityChange {
    /// Time at which it is submitted, unless the epoch that it ends begins later.
    pub at_us: u64,
    /// Authorities that are none in the next epoch. A newcomer takes the place of each while there
    /// are any.
    pub leaving: Vec<usize>,
    /// How many join that were no authorities before.
    pub newcomers: usize,
    /// One of those leaving that lost its disks and keys, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<(usize, u64)>,
    /// Longest time until an authority tries to begin the next epoch, or reads more reports.
    pub begin_us: u64,
    /// Longest time until an owner follows.
    pub follow_us: u64,
}

impl AuthorityChange {
    /// Members of the next epoch by their index, of whom the newcomers have numbers from `first`.
    pub(super) fn apply(&self, members: &[usize], first: usize) -> Vec<usize> {
        let mut newcomers = first..first + self.newcomers;
        let place = |one: &usize| match self.leaving.contains(one) {
            true => newcomers.next(),
            false => Some(*one),
        };
        let mut next: Vec<usize> = members.iter().filter_map(place).collect();
        next.extend(newcomers);
        next
    }
}
