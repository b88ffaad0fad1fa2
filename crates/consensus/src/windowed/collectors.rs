//! Primaries of views and collectors of slots (paper 002 §V-B, §V-E).

use quorate_crypto::hash;
use quorate_types::{Epoch, Height, ReplicaId, View};

/// Primary of a view: member `v mod n`.
#[must_use]
pub fn primary(view: View, members: usize) -> ReplicaId {
    member(view.0 % members as u64)
}

/// Collectors of a slot in the order of their turns: `redundancy + 1` of the backups, drawn anew
/// for each view and slot, and the primary last, so that an honest one decides the slot.
#[must_use]
pub fn collectors(
    epoch: Epoch,
    view: View,
    slot: Height,
    members: usize,
    redundancy: u64,
) -> Vec<ReplicaId> {
    drawn(members, redundancy, primary(view, members), |rank| {
        borsh::to_vec(&(epoch, view, slot, rank)).expect("encoding into memory cannot fail")
    })
}

/// Collectors of execution shares over a height (paper 002: E-collectors), in order:
/// `redundancy + 1` of the others, drawn anew for each height, and the leader last.
#[must_use]
pub fn execution_collectors(
    epoch: Epoch,
    height: Height,
    members: usize,
    redundancy: u64,
    leader: ReplicaId,
) -> Vec<ReplicaId> {
    drawn(members, redundancy, leader, |rank| {
        borsh::to_vec(&(epoch, height, rank)).expect("encoding into memory cannot fail")
    })
}

/// Draws `redundancy + 1` of all members but `last` by the hash of `content` at each rank, and puts
/// that one behind them.
fn drawn(
    members: usize,
    redundancy: u64,
    last: ReplicaId,
    content: impl Fn(u64) -> Vec<u8>,
) -> Vec<ReplicaId> {
    let mut others: Vec<ReplicaId> =
        (0..members as u64).map(member).filter(|other| *other != last).collect();
    let wanted = usize::try_from(redundancy).unwrap_or(usize::MAX).saturating_add(1);
    let count = others.len().min(wanted);
    for rank in 0..count {
        let left = others.len() - rank;
        let drawn = hash(&content(rank as u64));
        let number = u64::from_le_bytes(drawn.0[..8].try_into().expect("8 of 32 bytes"));
        others.swap(rank, rank + (number % left as u64) as usize);
    }
    others.truncate(count);
    others.push(last);
    others
}

fn member(index: u64) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("committees are limited to 1,024"))
}

#[cfg(test)]
mod tests;
