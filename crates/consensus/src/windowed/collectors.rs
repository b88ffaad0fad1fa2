//! Who collects the votes of a slot (paper 002, §V-B and §V-E).

use quorate_crypto::hash;
use quorate_types::{Epoch, Height, ReplicaId, View};

/// Who leads a view: `v mod n`.
#[must_use]
pub fn primary(view: View, members: usize) -> ReplicaId {
    member(view.0 % members as u64)
}

/// The collectors of a slot in their order: `redundancy + 1` of the others, drawn anew for each view
/// and slot, and the primary last, so that with an honest one the slot is decided.
#[must_use]
pub fn collectors(
    epoch: Epoch,
    view: View,
    slot: Height,
    members: usize,
    redundancy: u64,
) -> Vec<ReplicaId> {
    drawn(members, redundancy, primary(view, members), |place| {
        borsh::to_vec(&(epoch, view, slot, place)).expect("encoding into memory cannot fail")
    })
}

/// Who collects what all members say of a height that they executed: `redundancy + 1` of the others, drawn
/// anew for each height, and whoever leads last.
#[must_use]
pub fn execution_collectors(
    epoch: Epoch,
    height: Height,
    members: usize,
    redundancy: u64,
    leader: ReplicaId,
) -> Vec<ReplicaId> {
    drawn(members, redundancy, leader, |place| {
        borsh::to_vec(&(epoch, height, place)).expect("encoding into memory cannot fail")
    })
}

/// So many more than one of all members but `last`, by the hashes of what `content` says of each place;
/// then that one.
fn drawn(
    members: usize,
    redundancy: u64,
    last: ReplicaId,
    content: impl Fn(u64) -> Vec<u8>,
) -> Vec<ReplicaId> {
    let mut others: Vec<ReplicaId> =
        (0..members as u64).map(member).filter(|other| *other != last).collect();
    let count = others.len().min(usize::try_from(redundancy).unwrap_or(usize::MAX - 1) + 1);
    for place in 0..count {
        let left = others.len() - place;
        let drawn = hash(&content(place as u64));
        let number = u64::from_le_bytes(drawn.0[..8].try_into().expect("8 of 32 bytes"));
        others.swap(place, place + (number % left as u64) as usize);
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
