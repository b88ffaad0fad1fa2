//! Checkpoints and the window: PBFT §4.3, paper 002 §V-F.

use super::harness::*;
use super::*;
use quorate_types::{Anchor, Recipients};

/// A member that has executed everything up to the first checkpoint.
fn at_checkpoint(protocol: ProtocolKind) -> Bench {
    let verifier = verifier(protocol);
    let machine = replica(&verifier, 0);
    let executed = decided(&verifier, 1, value(CHECKPOINT_EVERY, A)).encode();
    let mut bench = Bench { verifier, machine, now: Time(0) };
    bench.recover(None, Vec::new(), Some(executed), Vec::new());
    bench
}

fn stable(bench: &Bench, height: u64) -> Message {
    Message::Stable(checkpoint(&bench.verifier, height, &[0, 1, 2]))
}

/// ★ Promises are kept in as many records as the window has slots: the checkpoint is durable before
/// a later slot's takes the place of an earlier one's.
#[test]
pub(super) fn a_window_moves_once_that_is_durable() {
    let mut bench = at_checkpoint(ProtocolKind::Pbft);
    let stable = checkpoint(&bench.verifier, CHECKPOINT_EVERY, &[0, 1, 2]);
    let outputs = bench.feed(Input::Stable(Box::new(stable.clone())));
    let durable = outputs.view_records().pop().and_then(|record| record.stable);
    assert_eq!(durable, Some(stable));
}

/// PBFT §4.3: `h` is the last stable checkpoint, `H = h + k`.
#[test]
fn the_window_lies_above_the_stable_checkpoint() {
    let mut bench = at_checkpoint(ProtocolKind::Pbft);
    let last = CHECKPOINT_EVERY + WINDOW;
    assert!(!bench.propose(1, last, A).wants_bodies());
    let message = stable(&bench, CHECKPOINT_EVERY);
    assert_eq!(bench.tell(2, message).stable(), Some(CHECKPOINT_EVERY));
    assert!(bench.propose(1, last, A).wants_bodies());
    assert!(!bench.propose(1, last + 1, A).wants_bodies());
    assert!(!bench.propose(1, CHECKPOINT_EVERY, A).wants_bodies());
}

/// PBFT §4.3: messages up to the checkpoint are discarded.
#[test]
fn what_is_stable_is_not_reported() {
    let mut bench = at_checkpoint(ProtocolKind::Sbft);
    bench.accept(1, CHECKPOINT_EVERY - 1, A);
    bench.accept(1, CHECKPOINT_EVERY + 1, A);
    let message = stable(&bench, CHECKPOINT_EVERY);
    bench.tell(2, message);
    let outputs = bench.leave_view();
    let change = outputs.view_change();
    assert_eq!(change.stable_height(Anchor::default()), Height(CHECKPOINT_EVERY));
    let slots: Vec<u64> = change.slots.iter().map(|report| report.slot.0).collect();
    assert_eq!(slots, [CHECKPOINT_EVERY + 1]);
}

/// §V-F: a block is stable once it is executed. A checkpoint ahead of this replica waits until its
/// height is here.
#[test]
fn a_checkpoint_waits_for_its_height() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let message = stable(&bench, CHECKPOINT_EVERY);
    assert_eq!(bench.tell(2, message).stable(), None);
    assert!(!bench.propose(1, WINDOW + 1, A).wants_bodies());
    let record = decided(&bench.verifier, 1, value(CHECKPOINT_EVERY, A)).encode();
    assert_eq!(bench.feed(Input::Installed(record)).stable(), Some(CHECKPOINT_EVERY));
}

/// Of two checkpoints that wait, the later one counts.
#[test]
fn the_highest_checkpoint_waits() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for height in [2 * CHECKPOINT_EVERY, CHECKPOINT_EVERY] {
        let message = stable(&bench, height);
        bench.tell(2, message);
    }
    let record = decided(&bench.verifier, 1, value(2 * CHECKPOINT_EVERY, A)).encode();
    assert_eq!(bench.feed(Input::Installed(record)).stable(), Some(2 * CHECKPOINT_EVERY));
}

#[test]
fn an_earlier_checkpoint_moves_nothing_back() {
    let mut bench = at_checkpoint(ProtocolKind::Pbft);
    for height in [CHECKPOINT_EVERY, CHECKPOINT_EVERY, CHECKPOINT_EVERY / 2] {
        let message = stable(&bench, height);
        bench.tell(2, message);
    }
    assert!(bench.propose(1, CHECKPOINT_EVERY + WINDOW, A).wants_bodies());
    assert!(!bench.propose(1, CHECKPOINT_EVERY, A).wants_bodies());
}

/// PBFT §4.3: a quorum proves a checkpoint.
#[test]
fn a_checkpoint_takes_a_quorum() {
    let bench = at_checkpoint(ProtocolKind::Pbft);
    let few = checkpoint(&bench.verifier, CHECKPOINT_EVERY, &[0, 1]);
    assert_eq!(bench.refusal(Message::Stable(few)), Rejected::BelowThreshold);
}

/// A member that is behind is shown the checkpoint.
#[test]
fn a_checkpoint_is_shown_to_those_behind() {
    let mut bench = at_checkpoint(ProtocolKind::Pbft);
    let message = stable(&bench, CHECKPOINT_EVERY);
    bench.tell(2, message);
    let is_stable = |message: &Message| matches!(message, Message::Stable(_));
    let shown = bench.tell(3, Message::Status(status(CHECKPOINT_EVERY)));
    assert_eq!(shown.receivers(is_stable), [Recipients::One(ReplicaId(3))]);
    let same = Status { stable: Height(CHECKPOINT_EVERY), ..status(CHECKPOINT_EVERY) };
    assert!(!bench.tell(2, Message::Status(same)).says(is_stable), "it has it");
}

/// A checkpoint of the height that was executed last counts, whichever later one waits.
#[test]
fn an_earlier_checkpoint_counts_while_a_later_one_waits() {
    let mut bench = at_checkpoint(ProtocolKind::Pbft);
    for (height, moves) in [(2 * CHECKPOINT_EVERY, None), (CHECKPOINT_EVERY, Some(128))] {
        let message = stable(&bench, height);
        assert_eq!(bench.tell(2, message).stable(), moves);
    }
}
