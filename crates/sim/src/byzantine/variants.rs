//! The truth with one thing wrong: late, twice, not to everybody, or with a byte changed.

use super::Behaviour;
use super::lies::{Outgoing, Pen};
use super::slot_lies;
use quorate_consensus::{FamilyMessage, Message as Said};
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_types::{Recipients, ReplicaId};
use std::collections::VecDeque;

/// Messages kept back at most.
const LATE_MAX: usize = 32;

/// Changes tried until one leaves a message that can be read.
const CHANGES_MAX: usize = 16;

/// Memory of a member that does not say the same to all, or not at once.
#[derive(Debug, Default)]
pub(super) struct VariantMemory {
    /// What it says later, in order.
    late: VecDeque<(Recipients, Message)>,
    /// Members to which it never says a word; drawn with the first.
    estranged: Option<Vec<ReplicaId>>,
}

/// Returns what leaves in the place of a message; `None` where the behaviour is another's.
pub(super) fn twist(
    pen: &Pen<'_>,
    behaviour: Behaviour,
    memory: &mut VariantMemory,
    (to, message): (Recipients, &Message),
    rng: &mut Rng,
) -> Option<Outgoing> {
    let truth = || (to, message.clone());
    Some(match (behaviour, message) {
        (Behaviour::LateSender, _) if !matches!(to, Recipients::Client(_)) => {
            memory.late.push_back(truth());
            let count = rng.index(3).max(memory.late.len().saturating_sub(LATE_MAX));
            memory.late.drain(..count.min(memory.late.len())).collect()
        }
        (Behaviour::DoubleSender, _) => vec![truth(), truth()],
        (Behaviour::Partisan, _) => {
            let estranged = memory
                .estranged
                .get_or_insert_with(|| pen.members().filter(|_| rng.coin()).collect());
            to_others(pen, truth(), estranged)
        }
        (Behaviour::Mutator, Message::Consensus(said)) => {
            vec![(to, Message::Consensus(changed(said, rng)))]
        }
        (Behaviour::SigningMutator, Message::Consensus(said)) => {
            vec![(to, Message::Consensus(signed_again(pen, &changed(said, rng))))]
        }
        (Behaviour::TwoFaced, Message::Consensus(said)) => {
            let other = Message::Consensus(signed_again(pen, &changed(said, rng)));
            let face = |member: ReplicaId| match member.index() % 2 {
                0 => (Recipients::One(member), message.clone()),
                _ => (Recipients::One(member), other.clone()),
            };
            match to {
                Recipients::All => pen.members().map(face).collect(),
                _ => vec![(to, other), truth()],
            }
        }
        _ => return None,
    })
}

fn to_others(
    pen: &Pen<'_>,
    (to, message): (Recipients, Message),
    estranged: &[ReplicaId],
) -> Outgoing {
    match to {
        Recipients::All => {
            let others = pen.members().filter(|member| !estranged.contains(member));
            others.map(|member| (Recipients::One(member), message.clone())).collect()
        }
        Recipients::One(member) if estranged.contains(&member) => Vec::new(),
        _ => vec![(to, message)],
    }
}

/// With one byte changed, any but that of the protocol, so that it can still be read; as it was if
/// no change is like that.
fn changed(said: &Said, rng: &mut Rng) -> Said {
    let bytes = borsh::to_vec(said).expect("encoding into memory cannot fail");
    let mut one = || {
        let mut bytes = bytes.clone();
        let place = 1 + rng.index(bytes.len() - 1);
        bytes[place] ^= u8::try_from(1 + rng.below(255)).expect("a byte");
        borsh::from_slice::<Said>(&bytes).ok()
    };
    (0..CHANGES_MAX).find_map(|_| one()).unwrap_or_else(|| said.clone())
}

fn signed_again(pen: &Pen<'_>, said: &Said) -> Said {
    let protocol = pen.verifier.protocol();
    match said.by_family() {
        FamilyMessage::Chained(said) => protocol.message(pen.signed_again(said.clone())),
        FamilyMessage::Windowed(said) => {
            protocol.windowed(slot_lies::signed_again(pen, said.clone()))
        }
    }
}
