//! Collectors and their turns: paper 002 §V-B and §V-E.

use super::harness::*;
use super::*;
use crate::{Misbehaviour, Rule};
use quorate_types::Recipients;

/// All votes of a slot but the primary's own come to it; the primary is its last collector.
fn votes_come(bench: &mut Bench, slot: u64) -> bool {
    let votes = [0, 2, 3].map(|member| bench.vote(member, at(1, slot, A)));
    votes.iter().any(Outputs::combines)
}

/// §V-E: the first collector acts as soon as it can.
#[test]
fn the_first_collector_does_not_wait() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let slot = slots_of_collector(0).next().expect("one of them");
    bench.accept(1, slot, A);
    let outputs = bench.vote(2, at(1, slot, A));
    assert_eq!(outputs.receivers(is_prepare), [Recipients::All]);
}

/// §V-E: collectors are staggered, the primary is the last.
#[test]
fn the_primary_waits_for_its_turn() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 1);
    let slot = slots_of_collector(3).next().expect("one of them");
    assert!(!votes_come(&mut bench, slot));
    let before = bench.now;
    bench.ring_until(is_prepare);
    assert!(bench.now.since(before) >= Duration::from_millis(5));
}

/// A dead collector costs its delay once, not at each of its slots.
#[test]
fn a_collector_that_missed_its_turn_is_not_waited_for() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 1);
    let mut slots = slots_of_collector(3);
    votes_come(&mut bench, slots.next().expect("one of them"));
    bench.ring_until(is_prepare);
    assert!(votes_come(&mut bench, slots.next().expect("another")), "at once");
    let alive = slots_of_collector(2).next().expect("one of them");
    assert!(!votes_come(&mut bench, alive), "others are waited for as before");
}

/// Its next certificate clears a collector, and so do ten seconds.
#[test]
fn a_collector_that_comes_back_is_waited_for() {
    let missed = || {
        let mut bench = Bench::new(ProtocolKind::LinearPbft, 1);
        let slot = slots_of_collector(3).next().expect("one of them");
        votes_come(&mut bench, slot);
        bench.ring_until(is_prepare);
        bench.tell(2, Message::Payload(value(slot, A)));
        bench
    };
    let mut slots = slots_of_collector(3);
    let [first, second] = [(); 2].map(|()| slots.next().expect("enough of them"));
    let mut bench = missed();
    let proof = proof(&bench.verifier, at(1, first, A));
    bench.tell(3, Message::Proof(proof));
    assert!(!votes_come(&mut bench, second));
    let mut bench = missed();
    bench.now = bench.now + Duration::from_secs(10);
    assert!(!votes_come(&mut bench, second));
}

/// §V-E: who comes later only monitors while an earlier one acts.
#[test]
fn a_later_collector_stays_idle_if_the_first_acts() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 1);
    let slot = slots_of_collector(3).next().expect("one of them");
    votes_come(&mut bench, slot);
    let shown = prepared(&bench.verifier, at(1, slot, A));
    bench.tell(3, Message::Prepare(shown));
    let mut rings = (0..8).map_while(|_| bench.machine.next_timeout().map(|_| bench.ring()));
    assert!(rings.all(|outputs| !outputs.says(is_prepare)));
}

/// §V-B: only the collectors of a slot combine its votes.
#[test]
fn others_do_not_collect() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let slot = slots_of_collector(3).next().expect("one of them");
    bench.accept(1, slot, A);
    assert!((2..4).all(|member| !bench.vote(member, at(1, slot, A)).combines()));
    assert!((0..4).all(|_| !bench.ring().combines()));
}

/// §III, §V-C (3): bad shares are filtered out, and their senders named.
#[test]
fn a_bad_share_does_not_stop_the_good_ones() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    let Message::SignShare(mut bad) = sign_share(&bench.verifier, 2, at(1, 1, A)) else {
        panic!("it is a vote")
    };
    bad.shares.slow.0[0] ^= 1;
    let outputs = bench.tell(2, Message::SignShare(bad));
    let is_named = |output: &Output| match output {
        Output::Misbehaviour(Misbehaviour { member, rule, .. }) => {
            (*member, *rule) == (ReplicaId(2), Rule::InvalidShare)
        }
        _ => false,
    };
    assert!(outputs.0.iter().any(is_named), "{outputs:?}");
    assert!(!outputs.says(is_commit));
    assert!(bench.vote(3, at(1, 1, A)).says(is_commit), "collecting goes on");
}

/// A share of another length is refused before it is kept.
#[test]
fn a_share_of_the_wrong_length_is_refused() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let Message::SignShare(mut long) = sign_share(&bench.verifier, 2, at(1, 1, A)) else {
        panic!("it is a vote")
    };
    long.shares.slow.0.push(0);
    let refused = Rejected::BadSignature("a share of the wrong length");
    assert_eq!(bench.refusal(Message::SignShare(long)), refused);
}

/// Votes of the next view may overtake its new-view: they are kept, those further ahead are not.
#[test]
fn votes_of_the_next_view_are_kept() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for member in [2, 3] {
        assert!(!bench.vote(member, at(2, 1, A)).combines());
        assert!(!bench.vote(member, at(3, 1, A)).combines());
    }
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    assert!(bench.accept(2, 1, A).says(is_commit), "with the own one they are a quorum");
}

/// Votes of the next view make nothing before it has begun, however many there are, and count then.
#[test]
fn votes_make_nothing_before_their_view_has_begun() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for member in [1, 2, 3] {
        assert!(!bench.vote(member, at(2, 1, A)).combines(), "of the next view");
    }
    bench.leave_view();
    for member in [1, 2, 3] {
        assert!(!bench.vote(member, at(2, 2, A)).combines(), "in a view change");
    }
    let changes = empty_changes(&bench.verifier, 2);
    bench.enter(2, &changes);
    assert!([1, 2].into_iter().all(|slot| bench.propose(2, slot, A).says(is_commit)));
}

/// PBFT §4.2 has no fast path: votes of all prepare, as those of a quorum do.
#[test]
fn votes_of_all_decide_nothing_without_a_fast_path() {
    let verifier = verifier_of(ProtocolKind::Pbft, 6, 1);
    let mut bench = Bench::started(&verifier, 0).0;
    for member in [1, 3, 4, 5] {
        bench.vote(member, at(2, 1, A));
    }
    let changes: Vec<_> = (1..6).map(|member| change(&verifier, 2, member, Vec::new())).collect();
    bench.enter(2, &changes);
    let outputs = bench.propose(2, 1, A);
    assert!(outputs.says(is_commit), "five of six voted");
    assert_eq!(outputs.decided(), [0_u64; 0]);
}

/// A collector that came to nothing because votes were missing did not miss its turn.
#[test]
fn a_collector_that_lacks_votes_is_waited_for() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 1);
    let mut slots = slots_of_collector(3);
    bench.vote(2, at(1, slots.next().expect("one of them"), A));
    let mut rings = (0..8).map_while(|_| bench.machine.next_timeout().map(|_| bench.ring()));
    assert!(rings.all(|outputs| !outputs.combines()));
    assert!(!votes_come(&mut bench, slots.next().expect("another")));
}

/// PBFT §4.2: a member votes for one value of a slot and view. Whoever collects its votes for two
/// blames it, and counts the first.
#[test]
fn a_member_that_votes_for_two_values_is_blamed() {
    let blamed = |outputs: &Outputs| {
        let blame = |output: &Output| match output {
            Output::Misbehaviour(found) => Some((found.member, found.rule)),
            _ => None,
        };
        outputs.0.iter().filter_map(blame).collect::<Vec<_>>()
    };
    for commits in [false, true] {
        let mut bench = Bench::new(ProtocolKind::Pbft, 0);
        let mut said = |at| if commits { bench.commit(3, at) } else { bench.vote(3, at) };
        for again in [at(1, 1, A), at(1, 1, A), at(1, 2, B)] {
            assert_eq!(blamed(&said(again)), [], "commits: {commits}");
        }
        assert_eq!(blamed(&said(at(1, 1, B))), [(ReplicaId(3), Rule::DoubleVote)]);
    }
}
