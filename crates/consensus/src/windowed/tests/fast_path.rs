//! Fast path and fall-back: paper 002 §V-C, §V-E and §V-F.

use super::harness::*;
use super::*;
use crate::ProtocolView;
use quorate_types::Recipients;

/// A member of four, and a slot that it collects first.
fn collector() -> (Bench, u64) {
    let slot = slots_of_collector(0).next().expect("one of them");
    (Bench::new(ProtocolKind::Sbft, 0), slot)
}

/// §V-C: `3f+c+1` sign-shares make a full-commit-proof, which goes to everybody and decides.
#[test]
fn votes_of_all_but_the_redundant_decide_at_once() {
    let (mut bench, slot) = collector();
    bench.accept(1, slot, A);
    assert!(!bench.vote(2, at(1, slot, A)).combines(), "it waits for the last one");
    let outputs = bench.vote(3, at(1, slot, A));
    assert_eq!(outputs.receivers(is_fast_proof), [Recipients::All]);
    assert!(!outputs.says(is_prepare) && !outputs.says(is_commit));
}

/// §V: with `c` redundant members the fast path goes on without them, and does not wait.
#[test]
fn the_redundant_are_not_waited_for() {
    let verifier = verifier_of(ProtocolKind::Sbft, 6, 1);
    let slot = (1..)
        .find(|slot| {
            collectors::collectors(Epoch(1), View(1), Height(*slot), 6, 1)[0] == ReplicaId(0)
        })
        .expect("one of them");
    let mut bench = Bench::started(&verifier, 0).0;
    bench.accept(1, slot, A);
    assert!(!bench.vote(2, at(1, slot, A)).combines());
    assert!(!bench.vote(3, at(1, slot, A)).combines(), "a quorum of four");
    assert!(bench.vote(4, at(1, slot, A)).says(is_fast_proof), "five of six");
}

/// §V-E, trigger for linear PBFT: a quorum's shares, and the timer for the rest has ended.
#[test]
fn a_quorums_votes_take_the_slow_path_after_a_while() {
    let (mut bench, slot) = collector();
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    let before = bench.now;
    let outputs = bench.ring_until(is_prepare);
    assert!(bench.now > before && bench.now.since(before) <= Duration::from_millis(125));
    assert!(!outputs.says(is_fast_proof));
    assert!(outputs.says(is_commit), "its own vote to commit follows");
    let last = bench.vote(3, at(1, slot, A));
    assert!(!last.says(is_fast_proof), "one certificate of a view is enough");
}

/// §V-E, PBFT commit-proof phase: the collector shows a quorum's commits to everybody.
#[test]
fn a_quorums_commits_make_a_slow_proof() {
    let (mut bench, slot) = collector();
    bench.accept(1, slot, A);
    bench.vote(2, at(1, slot, A));
    bench.ring_until(is_prepare);
    assert!(!bench.commit(2, at(1, slot, A)).says(is_proof));
    let outputs = bench.commit(3, at(1, slot, A));
    assert_eq!(outputs.receivers(is_proof), [Recipients::All]);
    assert!(!outputs.says(is_fast_proof));
}

/// §V-G: a value decided on both paths is one decision.
#[test]
fn both_proofs_of_a_value_agree() {
    let mut bench = Bench::new(ProtocolKind::Sbft, 0);
    let certificate = certificate(&bench.verifier, Kind::Prepare, at(1, 1, A), &[0, 1, 2, 3]);
    let fast = Proof { path: Path::Fast, certificate };
    bench.tell(2, Message::Proof(fast));
    let slow = proof(&bench.verifier, at(3, 1, A));
    assert!(bench.tell(2, Message::Proof(slow)).halt().is_none());
    assert_eq!(bench.tell(2, Message::Payload(value(1, A))).decided(), [1]);
    let status = bench.machine.status();
    assert_eq!((status.fast_decisions, status.slow_decisions), (1, 0), "the first one counts");
}

/// §V-F: a replica takes part in the fast path within `win/4` of what it executed. With keys of
/// their own there is no σ share beyond.
#[test]
fn a_fast_share_is_for_slots_that_are_near() {
    let file = dealt_committee_file(4, 0);
    let mut bench = Bench::started(&verifier_with(ProtocolKind::Sbft, &file), 0).0;
    assert!(has_fast_share(&mut bench, WINDOW / 4));
    assert!(!has_fast_share(&mut bench, WINDOW / 4 + 1));
}

/// Where one key serves both thresholds one share does too; without a fast path there is no other.
#[test]
fn a_fast_share_is_for_keys_and_protocols_that_need_it() {
    let dealt = verifier_with(ProtocolKind::LinearPbft, &dealt_committee_file(4, 0));
    for verifier in [verifier(ProtocolKind::Sbft), dealt] {
        let mut bench = Bench::started(&verifier, 0).0;
        assert!(!has_fast_share(&mut bench, 1), "{}", verifier.protocol());
    }
}

/// Whether the vote for a value of this slot has a share for a fast proof.
fn has_fast_share(bench: &mut Bench, slot: u64) -> bool {
    let outputs = bench.accept(1, slot, A);
    let share = outputs.messages().find_map(|(_, message)| match message {
        Message::SignShare(share) => Some(share.shares.fast.is_some()),
        _ => None,
    });
    share.expect("it votes")
}
