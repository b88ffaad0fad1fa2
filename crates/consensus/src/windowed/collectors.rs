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
    let primary = primary(view, members);
    let mut others: Vec<ReplicaId> =
        (0..members as u64).map(member).filter(|other| *other != primary).collect();
    let count = others.len().min(usize::try_from(redundancy).unwrap_or(usize::MAX - 1) + 1);
    for place in 0..count {
        let left = others.len() - place;
        others.swap(place, place + draw(epoch, view, slot, place, left));
    }
    others.truncate(count);
    others.push(primary);
    others
}

fn draw(epoch: Epoch, view: View, slot: Height, place: usize, below: usize) -> usize {
    let content = (epoch, view, slot, place as u64);
    let drawn = hash(&borsh::to_vec(&content).expect("encoding into memory cannot fail"));
    let number = u64::from_le_bytes(drawn.0[..8].try_into().expect("8 of 32 bytes"));
    (number % below as u64) as usize
}

fn member(index: u64) -> ReplicaId {
    ReplicaId(u16::try_from(index).expect("committees are limited to 1,024"))
}

#[cfg(test)]
mod tests;
