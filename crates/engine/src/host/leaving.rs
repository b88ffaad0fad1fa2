//! Rules of hosts at the end of an epoch: members that leave, and for how long a host stays.

use quorate_crypto::IdentityKey;
use quorate_types::{Committee, CommitteeFile, ReplicaId};
use std::time::Duration;

/// View timeouts for which a host stays that is served by members who leave.
const SERVED_TIMEOUTS: u32 = 60;

/// State of a host that knows how its epoch ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtTheEnd {
    /// Its own replica handed over.
    pub is_own: bool,
    /// Its own replica has executed the last height.
    pub has_state: bool,
    /// [`leaves`] is true of it.
    pub leaves: bool,
    /// A member that leaves is connected, and serves the epoch.
    pub is_served: bool,
}

/// Time for which a host stays in an epoch that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// None: the next epoch begins here.
    Over,
    /// Until a quorum of the next members has begun with the state, which it serves them.
    UntilOthersBegan,
    /// So long since it heard of the end, for its own replica to come to the last state.
    For(Duration),
}

impl AtTheEnd {
    /// Time for which it stays.
    ///
    /// A member that leaves with the state serves it, whoever told of the end: one that starts
    /// again hears it from others before its own replica says so. A host without the state stays
    /// longer while such a member is connected, since those that have the state may be too few in
    /// the next epoch to vouch for it.
    #[must_use]
    pub fn stay(self, view_timeout: Duration) -> Stay {
        match self {
            Self { leaves: true, has_state: true, .. } => Stay::UntilOthersBegan,
            Self { is_own: true, .. } => Stay::Over,
            Self { is_served: true, .. } => Stay::For(view_timeout * SERVED_TIMEOUTS),
            _ => Stay::For(view_timeout),
        }
    }
}

/// Returns `true` if this identity is a member's, and none of the next committee's.
#[must_use]
pub fn leaves(ended: &Committee, next: &CommitteeFile, identity: &IdentityKey) -> bool {
    ended.find(identity).is_some() && !has_member(next, identity)
}

/// Members of the epoch that ended who are none of the next.
pub fn leavers(ended: &Committee, next: &CommitteeFile) -> impl Iterator<Item = ReplicaId> {
    let leaves = |member: &ReplicaId| {
        ended.identity(*member).is_some_and(|identity| !has_member(next, identity))
    };
    ended.members().filter(leaves)
}

fn has_member(file: &CommitteeFile, key: &IdentityKey) -> bool {
    let is_it = |text: &str| text.parse::<IdentityKey>().is_ok_and(|other| other == *key);
    file.members.iter().any(|member| is_it(&member.identity))
}

#[cfg(test)]
mod tests;
