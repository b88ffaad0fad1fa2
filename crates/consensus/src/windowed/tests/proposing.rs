//! Normal case at the primary: PBFT §4.2, paper 002 §V-C and §VIII.

use super::harness::*;
use super::*;
use crate::ProtocolView;
use quorate_types::{BodyRef, Recipients};

/// Member 1 leads view 1.
fn primary(protocol: ProtocolKind) -> Bench {
    Bench::new(protocol, 1)
}

fn hand_over(bench: &mut Bench, view: u64, slot: u64) -> Outputs {
    let parent = bench.verifier.genesis();
    bench.feed(Input::Payload { view: View(view), parent, payload: value(slot, A) })
}

/// §V-B: the primary of a view is chosen in turn.
#[test]
fn only_the_primary_asks_for_payloads() {
    let verifier = verifier(ProtocolKind::Sbft);
    let asks = |member| Bench::started(&verifier, member).1.payload_slot();
    assert_eq!([0, 1, 2, 3].map(asks), [None, Some(1), None, None]);
}

/// ★ PBFT §4.2, §V-C: pre-prepare to all, its own promise durable before. It holds the primary's
/// vote, which sends no other.
#[test]
pub(super) fn a_pre_prepare_follows_its_record() {
    let outputs = hand_over(&mut primary(ProtocolKind::Pbft), 1, 1);
    assert_eq!(outputs.receivers(is_pre_prepare), [Recipients::All]);
    assert!(!outputs.says(is_vote));
    let before = outputs.before(is_pre_prepare).slot_records();
    let accepted: Vec<_> = before.iter().map(|record| record.accepted).collect();
    assert_eq!(accepted, [Some((View(1), at(1, 1, A).digest))]);
}

/// §V-C: a limited number of concurrent blocks.
#[test]
fn a_primary_fills_as_many_slots_as_are_set() {
    let mut bench = primary(ProtocolKind::Pbft);
    assert_eq!(hand_over(&mut bench, 1, 1).payload_slot(), Some(2));
    assert_eq!(hand_over(&mut bench, 1, 2).payload_slot(), None, "two are under way");
    assert_eq!(bench.decide(2, A).payload_slot(), Some(3), "in whichever order they are decided");
    hand_over(&mut bench, 1, 3);
    assert_eq!(bench.decide(1, A).payload_slot(), Some(4));
}

/// §VIII: the active window is `⌊(n−1)/(c+1)⌋`.
#[test]
fn a_primary_fills_no_more_than_the_active_window() {
    let concurrent = |members, redundancy| {
        let verifier = verifier_of(ProtocolKind::Sbft, members, redundancy);
        let mut config = config(&verifier, 1);
        config.liveness.concurrent_slots = 100;
        let asked = Bench::of(config).1.0.into_iter().find_map(|output| match output {
            Output::RequestPayload(request) => Some(request.concurrent),
            _ => None,
        });
        asked.expect("the primary asks")
    };
    assert_eq!([concurrent(4, 0), concurrent(7, 0), concurrent(6, 1)], [3, 6, 2]);
}

/// PBFT §4.2: sequence numbers are assigned without gaps.
#[test]
fn a_payload_is_for_the_slot_that_it_was_asked_for() {
    let mut bench = primary(ProtocolKind::Pbft);
    assert!(!hand_over(&mut bench, 1, 2).says(is_pre_prepare), "another slot");
    assert!(!hand_over(&mut bench, 2, 1).says(is_pre_prepare), "another view");
    assert!(hand_over(&mut bench, 1, 1).says(is_pre_prepare));
    assert!(!hand_over(&mut bench, 1, 1).says(is_pre_prepare), "it is filled");
}

/// PBFT §4.2: a backup hands out no sequence numbers.
#[test]
fn a_backup_proposes_nothing() {
    assert!(!hand_over(&mut Bench::new(ProtocolKind::Pbft, 0), 1, 1).says(is_pre_prepare));
}

/// §V-C: the primary's vote is the first of the quorum's.
#[test]
fn the_primary_counts_itself() {
    let mut bench = primary(ProtocolKind::Pbft);
    hand_over(&mut bench, 1, 1);
    assert!(!bench.vote(2, at(1, 1, A)).says(is_commit));
    assert!(bench.vote(3, at(1, 1, A)).says(is_commit));
}

/// PBFT §4.4: in a view change the primary of the old view proposes nothing.
#[test]
fn a_primary_that_left_its_view_proposes_nothing() {
    let mut bench = primary(ProtocolKind::Pbft);
    let changes = empty_changes(&bench.verifier, 2);
    for change in &changes[1..] {
        let signer = u8::try_from(change.signer.0).expect("few");
        bench.tell(signer, Message::ViewChange(Box::new(change.clone())));
    }
    assert_eq!(bench.machine.view(), View(2), "it joined the others");
    assert!(!hand_over(&mut bench, 1, 1).says(is_pre_prepare));
}

/// Proposals of earlier views are void: their bodies may be proposed again.
#[test]
fn bodies_of_void_proposals_are_free() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 2);
    let verifier = Arc::clone(&bench.verifier);
    let body = BodyRef { author: ReplicaId(3), sequence: 1, digest: hash(b"body") };
    bench.tell(1, pre_prepare(&verifier, 1, Payload::new(Height(1), A, vec![body])));
    bench.tell(1, Message::ViewChange(Box::new(change(&verifier, 2, 1, Vec::new()))));
    let last = Message::ViewChange(Box::new(change(&verifier, 2, 3, Vec::new())));
    let outputs = bench.tell(3, last);
    let asked = outputs.0.into_iter().find_map(|output| match output {
        Output::RequestPayload(request) => Some((request.height, request.carried)),
        _ => None,
    });
    assert_eq!(asked, Some((Height(1), Vec::new())));
    bench.feed(Input::Payload {
        view: View(2),
        parent: verifier.genesis(),
        payload: Payload::new(Height(1), B, vec![body]),
    });
    assert_eq!(bench.machine.next, Height(2));
}
