//! History that one member fetches from another: each slot proves itself, and is the next.

use super::harness::*;
use super::*;
use crate::VerifiedRun;
use quorate_types::BlockId;
use quorate_types::machine::Halt;

/// Records of these slots, with the stamps of their values.
fn records(verifier: &Verifier, slots: &[(u64, u64)]) -> Vec<Bytes> {
    let record = |(slot, stamp): &(u64, u64)| decided(verifier, 1, value(*slot, *stamp)).encode();
    slots.iter().map(record).collect()
}

/// What a member that decided `height` makes of these slots.
fn fetch(height: u64, slots: &[(u64, u64)]) -> Result<Run, Rejected> {
    let verifier = verifier(ProtocolKind::Pbft);
    verify_run(Height(height), None, &records(&verifier, slots), &verifier)
}

fn id(slot: u64, stamp: u64) -> BlockId {
    BlockId(at(1, slot, stamp).digest)
}

#[test]
fn each_slot_of_a_run_is_the_next() {
    assert_eq!(fetch(1, &[(2, A), (3, B), (4, A)]).map(|run| run.decided.len()), Ok(3));
    let rule = Rejected::RuleBroken("each slot of a run is the next");
    for gap in [[(2, A), (4, A)], [(2, A), (2, A)], [(2, B), (1, A)]] {
        assert_eq!(fetch(1, &gap).err(), Some(rule.clone()), "{gap:?}");
    }
    assert_eq!(fetch(1, &[(2, A), (3, A), (5, A)]).err(), Some(rule));
}

#[test]
fn a_run_goes_on_from_where_it_was_asked_for() {
    assert_eq!(fetch(7, &[]).map(|run| run.decided.len()), Ok(0), "the other has no more");
    let rule = Rejected::RuleBroken("a run goes on from where it was asked for");
    for first in [1, 2, 4] {
        assert_eq!(fetch(2, &[(first, A)]).err(), Some(rule.clone()), "{first}");
    }
}

/// Whoever serves history need not be honest: each slot has a proof of its own.
#[test]
fn each_slot_of_a_run_proves_itself() {
    let verifier = verifier(ProtocolKind::Pbft);
    let good = decided(&verifier, 1, value(3, A));
    let check = |slot: &DecidedSlot| {
        let mut run = records(&verifier, &[(2, A)]);
        run.push(slot.encode());
        verify_run(Height(1), None, &run, &verifier).err()
    };
    assert_eq!(check(&good), None);
    let mut few = good.clone();
    few.proof.certificate = certificate(&verifier, Kind::Commit, at(1, 3, A), &[0, 1]);
    assert_eq!(check(&few), Some(Rejected::BelowThreshold));
    let mut votes = good.clone();
    votes.proof.certificate = prepared(&verifier, at(1, 3, A));
    assert_eq!(check(&votes), Some(Rejected::BadSignature("a slot's certificate")));
    let other = DecidedSlot { payload: value(3, B), ..good };
    let rule = Rejected::RuleBroken("a decided slot's value is the one that its proof decides");
    assert_eq!(check(&other), Some(rule));
    let torn = verify_run(Height(1), None, &[Bytes::from_static(b"torn")], &verifier);
    assert!(matches!(torn, Err(Rejected::Malformed(_))));
}

/// Common rules: two decisions for one height are evidence, and stop the asker.
#[test]
fn another_value_at_the_own_height_is_evidence() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    let check = |slots: &[(u64, u64)], verifier: &Verifier| {
        verify_run(Height(1), Some(id(1, A)), &records(verifier, slots), verifier)
    };
    let same = check(&[(1, A), (2, A)], &bench.verifier);
    let rule = Rejected::RuleBroken("a run goes on from where it was asked for");
    assert_eq!(same.err(), Some(rule), "what it has was not asked for");
    let run = check(&[(1, B), (2, A)], &bench.verifier).expect("two proofs of one slot");
    assert!(run.conflicts);
    let outputs = bench.feed(Input::Run(Box::new(VerifiedRun::Windowed(run))));
    assert!(matches!(outputs.halt(), Some(Halt::ConflictingDecisions { .. })), "{outputs:?}");
}

#[test]
fn a_run_is_delivered_in_order_and_once() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    bench.decide(4, A);
    let mut run = |height, slots: &[(u64, u64)]| {
        let records = records(&bench.verifier, slots);
        let run = verify_run(Height(height), None, &records, &bench.verifier).expect("sound");
        bench.feed(Input::Run(Box::new(VerifiedRun::Windowed(run)))).decided()
    };
    assert_eq!(run(0, &[(1, A), (2, A)]), [2], "the first is here");
    assert_eq!(run(2, &[(3, A)]), [3, 4], "and what waited for it");
    assert_eq!(run(2, &[(3, A), (4, A)]), [0_u64; 0]);
}

/// A slot that was decided here, and another value of it in history.
#[test]
fn a_run_against_a_proof_halts() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(2, A);
    let records = records(&bench.verifier, &[(1, A), (2, B)]);
    let run = verify_run(Height(0), None, &records, &bench.verifier).expect("sound");
    let outputs = bench.feed(Input::Run(Box::new(VerifiedRun::Windowed(run))));
    assert!(matches!(outputs.halt(), Some(Halt::ConflictingDecisions { .. })), "{outputs:?}");
}

/// ★ A state is taken over at a height that a quorum decided.
#[test]
fn an_anchor_is_a_decided_slot_of_its_height() {
    let verifier = verifier(ProtocolKind::Sbft);
    let records = records(&verifier, &[(5, A)]);
    assert_eq!(check_anchor(Height(5), &records, &verifier), Ok(records[0].clone()));
    for height in [0, 4, 6] {
        let refused = check_anchor(Height(height), &records, &verifier);
        assert!(matches!(refused, Err(Rejected::RuleBroken(_))), "{height}");
    }
    let nothing = check_anchor(Height(5), &[], &verifier);
    let rule = Rejected::RuleBroken("a snapshot comes with the slot that it is of");
    assert_eq!(nothing, Err(rule));
}

/// The asker names what it decided last: a run that goes on from there is no conflict.
#[test]
fn a_run_that_goes_on_is_no_conflict() {
    let verifier = verifier(ProtocolKind::Pbft);
    let records = records(&verifier, &[(2, A), (3, A)]);
    let run = verify_run(Height(1), Some(id(1, A)), &records, &verifier).expect("sound");
    assert_eq!((run.conflicts, run.decided.len()), (false, 2));
}

/// There is no slot 0, whatever a proof says: a member that decided nothing has nothing to be
/// contradicted.
#[test]
fn nothing_conflicts_with_the_genesis() {
    let verifier = verifier(ProtocolKind::Pbft);
    let records = records(&verifier, &[(0, A)]);
    let run = verify_run(Height(0), Some(verifier.genesis()), &records, &verifier);
    let rule = Rejected::RuleBroken("a run goes on from where it was asked for");
    assert_eq!(run.err(), Some(rule));
}

/// A member with work that decided slot 1 half a second ago, whose checkpoint waits if it did not.
fn fetched(decided: bool, record: fn(Bytes, &Verifier) -> Input) -> (Outputs, Time) {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.feed(Input::Work(true));
    if decided {
        bench.decide(1, A);
    } else {
        let stable = checkpoint(&bench.verifier, 1, &[0, 1, 2]);
        bench.tell(2, Message::Stable(stable));
    }
    bench.now = Time(500_000);
    let slot = records(&bench.verifier, &[(1, A)]).remove(0);
    let input = record(slot, &bench.verifier);
    let outputs = bench.feed(input);
    bench.ring_until(is_view_change);
    (outputs, bench.now)
}

/// What is fetched is progress, as any decision is: the timer restarts, and a checkpoint that
/// waited for it moves the window. What was known is none.
#[test]
fn fetched_slots_are_progress_once() {
    let as_run = |record: Bytes, verifier: &Verifier| {
        let run = verify_run(Height(0), None, &[record], verifier).expect("sound");
        Input::Run(Box::new(VerifiedRun::Windowed(run)))
    };
    let as_state = |record, _: &Verifier| Input::Installed(record);
    for input in [as_run, as_state] {
        let (outputs, timed_out) = fetched(false, input);
        assert_eq!((outputs.stable(), timed_out), (Some(1), Time(1_500_000)));
        let (outputs, timed_out) = fetched(true, input);
        assert_eq!((outputs.stable(), timed_out), (None, Time(1_000_000)));
    }
}
