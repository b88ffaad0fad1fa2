//! Normal case at a backup: PBFT §4.2, paper 002 §V-C and §V-E.

use super::harness::*;
use super::*;
use crate::{Evidence, ProtocolView, Rule};
use quorate_types::machine::Halt;
use quorate_types::{BlockId, BodyRef, Recipients};

/// PBFT §4.2, §V-C (1): the replica is in the view of the pre-prepare.
#[test]
fn a_pre_prepare_is_accepted_in_its_view_alone() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert!(!bench.propose(2, 1, A).wants_bodies());
    assert!(bench.propose(1, 1, A).wants_bodies());
}

/// PBFT §4.2: the signature is the primary's.
#[test]
fn a_pre_prepare_is_signed_by_its_primary() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let forged = signed_pre_prepare(&bench.verifier, 2, 1, value(1, A));
    let refused = Rejected::BadSignature("an identity signature");
    assert_eq!(bench.refusal(Message::PrePrepare(forged)), refused);
}

/// PBFT §4.2: `d` is the digest of `m`; §V-C (4): the value is valid.
#[test]
fn a_payload_is_what_its_header_names() {
    let bench = Bench::new(ProtocolKind::Pbft, 0);
    let body = |author| BodyRef { author: ReplicaId(author), sequence: 1, digest: hash(b"body") };
    let refusal = |payload| bench.refusal(pre_prepare(&bench.verifier, 1, payload));
    let inconsistent = Rejected::RuleBroken("a payload is what its header names, without repeats");
    let mut swapped = value(1, A);
    swapped.bodies.push(body(2));
    assert_eq!(refusal(swapped), inconsistent);
    assert_eq!(refusal(Payload::new(Height(1), A, vec![body(2), body(2)])), inconsistent);
    assert_eq!(refusal(value(0, A)), inconsistent, "there is no slot 0");
    let stranger = Rejected::RuleBroken("a body's author is a member");
    assert_eq!(refusal(Payload::new(Height(1), A, vec![body(4)])), stranger);
}

/// PBFT §4.2: `h < n ≤ H`; §V-C (3).
#[test]
fn slots_beyond_the_window_are_not_looked_at() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert!(bench.propose(1, WINDOW, A).wants_bodies());
    assert!(!bench.propose(1, WINDOW + 1, A).wants_bodies());
}

/// Common rules: a stamp too far ahead of the clock gets no vote.
#[test]
fn a_value_from_the_future_gets_no_vote() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert!(!bench.propose(1, 1, 1_001).wants_bodies());
    assert!(bench.propose(1, 1, 1_000).wants_bodies());
    bench.feed(Input::WallClock(5_000));
    bench.now = Time(2_000_000);
    assert!(!bench.propose(1, 2, 8_001).wants_bodies());
    assert!(bench.propose(1, 2, 8_000).wants_bodies());
}

/// What a primary says against the rules is reported, with what an operator can look for.
#[test]
fn a_primary_that_breaks_a_rule_is_reported() {
    let reported = |outputs: &Outputs| {
        outputs.0.iter().find_map(|output| match output {
            Output::Misbehaviour(found) => Some((found.member, found.rule, found.evidence)),
            _ => None,
        })
    };
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let Proposal { view, slot, digest } = at(1, 1, 1_001);
    let early = Evidence::Proposal { view, digest, height: slot, proposed_at_ms: 1_001 };
    let outputs = bench.propose(1, 1, 1_001);
    assert_eq!(reported(&outputs), Some((ReplicaId(1), Rule::ProposalTime, early)));
    assert_eq!(reported(&bench.propose(1, 1, A)), None);
    let [first, second] = [A, B].map(|stamp| at(1, 1, stamp).digest);
    let both = Evidence::Conflict { view, first, second };
    let outputs = bench.propose(1, 1, B);
    assert_eq!(reported(&outputs), Some((ReplicaId(1), Rule::Equivocation, both)));
}

/// ★ PBFT §4.2, §V-C (2): no other value for the slot was accepted in the view. Both are shown to
/// everybody, and the view is left (§V-G: publicly verifiable contradiction).
#[test]
pub(super) fn one_value_gets_a_vote() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    let outputs = bench.propose(1, 1, B);
    let is_evidence = |message: &Message| matches!(message, Message::Equivocation(_));
    assert_eq!(outputs.receivers(is_evidence), [Recipients::All]);
    assert_eq!(outputs.view_change().view, View(2));
    assert!(!bench.store(1, B).says(is_vote));
}

/// The same by two values of which neither was accepted yet.
#[test]
fn two_proposals_convict_before_the_vote() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.propose(1, 1, A);
    assert_eq!(bench.propose(1, 1, B).view_change().view, View(2));
    assert!(!bench.store(1, A).says(is_vote), "the view is left");
}

#[test]
fn a_repeated_pre_prepare_changes_nothing() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    assert!(bench.propose(1, 1, A).0.is_empty());
}

/// Common rules ★: a vote says that the bodies are stored here.
#[test]
pub(super) fn a_vote_waits_for_its_bodies() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert!(!bench.propose(1, 1, A).says(is_vote));
    assert!(!bench.store(1, B).says(is_vote), "those of another value");
    assert!(bench.store(1, A).says(is_vote));
}

/// ★ The promise is durable before the vote leaves.
#[test]
pub(super) fn a_vote_follows_its_record() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let outputs = bench.accept(1, 1, A).before(is_vote);
    let records = outputs.slot_records();
    let accepted: Vec<_> = records.iter().map(|record| record.accepted).collect();
    assert_eq!(accepted, [Some((View(1), at(1, 1, A).digest))]);
    assert_eq!(records[0].payloads, [value(1, A)], "a certified value must be somewhere");
}

/// PBFT §4.2: prepares are multicast; §V-B, §V-C: sign-shares go to the slot's collectors.
#[test]
fn votes_go_where_they_are_collected() {
    let slot = slots_of_collector(3).next().expect("one of them");
    let votes = |protocol| Bench::new(protocol, 0).accept(1, slot, A).receivers(is_vote);
    assert_eq!(votes(ProtocolKind::Pbft), [Recipients::All]);
    let collectors = [ReplicaId(3), ReplicaId(1)].map(Recipients::One);
    assert_eq!(votes(ProtocolKind::LinearPbft), collectors, "the primary last");
    assert_eq!(votes(ProtocolKind::Sbft), collectors);
}

/// PBFT §4.2: prepared with `2f` prepares beside the pre-prepare, that is, with a quorum's votes.
#[test]
fn a_quorums_votes_prepare() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let accepted = bench.accept(1, 1, A);
    assert!(!accepted.says(is_commit), "the primary's vote and the own are two");
    let outputs = bench.vote(2, at(1, 1, A));
    assert_eq!(outputs.receivers(is_commit), [Recipients::All]);
}

/// PBFT §4.2: with `n ≠ 3f+1` a quorum is more than `2f+1`.
#[test]
fn a_quorum_of_six_is_four() {
    let verifier = verifier_of(ProtocolKind::Pbft, 6, 0);
    let mut bench = Bench::started(&verifier, 0).0;
    bench.accept(1, 1, A);
    assert!(!bench.vote(2, at(1, 1, A)).says(is_commit));
    assert!(bench.vote(3, at(1, 1, A)).says(is_commit));
}

/// PBFT §4.2: prepares match in view, sequence number and digest.
#[test]
fn votes_for_different_values_do_not_add_up() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    assert!(!bench.vote(2, at(1, 1, B)).combines());
    assert!(!bench.vote(3, at(2, 1, A)).combines(), "of another view");
    assert!(!bench.vote(3, at(1, 2, A)).combines(), "of another slot");
}

/// PBFT §4.2: prepares are of different replicas; §V-C (2): one sign-share of each.
#[test]
fn a_member_is_counted_once() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.propose(1, 1, A);
    bench.vote(2, at(1, 1, A));
    assert!(!bench.vote(2, at(1, 1, A)).combines());
    assert!(bench.vote(3, at(1, 1, A)).combines());

    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    bench.vote(2, at(1, 1, B));
    assert!(!bench.vote(2, at(1, 1, A)).combines(), "it voted for another value before");
}

/// ★ The certificate is durable before the vote to commit leaves.
#[test]
pub(super) fn a_vote_to_commit_follows_its_record() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    let outputs = bench.vote(2, at(1, 1, A)).before(is_commit);
    let prepared = outputs.slot_records().pop().and_then(|record| record.prepared);
    assert_eq!(prepared.map(|certificate| certificate.proposal), Some(at(1, 1, A)));
}

/// §V-E (1): the replica is in the view of the prepare; (2): none was accepted before.
#[test]
fn one_vote_to_commit_a_view() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let (ours, later) =
        (prepared(&bench.verifier, at(1, 1, A)), prepared(&bench.verifier, at(2, 1, A)));
    assert!(!bench.tell(2, Message::Prepare(later)).says(is_commit));
    bench.propose(1, 1, A);
    assert!(bench.tell(2, Message::Prepare(ours.clone())).says(is_commit), "without its bodies");
    assert!(bench.tell(1, Message::Prepare(ours)).0.is_empty(), "it was known");
}

/// ★ PBFT §4.2: prepared is who has the request in its log, whatever certificate it has. A value
/// that is missing is asked for, of who showed the certificate, and the vote follows.
#[test]
pub(super) fn a_vote_to_commit_waits_for_the_value() {
    for protocol in ProtocolKind::WINDOWED {
        let mut bench = Bench::new(protocol, 0);
        let certificate = prepared(&bench.verifier, at(1, 1, A));
        let outputs = bench.tell(2, Message::Prepare(certificate.clone()));
        assert!(!outputs.says(is_commit) && outputs.slot_records().is_empty(), "{protocol}");
        let asked = outputs.messages().find_map(|(to, message)| match message {
            Message::Status(status) => Some((to, status.lacks.clone())),
            _ => None,
        });
        let lacks = vec![(Height(1), at(1, 1, A).digest)];
        assert_eq!(asked, Some((Recipients::One(ReplicaId(2)), lacks)), "{protocol}");
        assert!(bench.tell(3, Message::Prepare(certificate)).0.is_empty(), "{protocol}: known");
        let outputs = bench.tell(2, Message::Payload(value(1, A)));
        assert!(outputs.says(is_commit), "{protocol}");
        assert_eq!(outputs.slot_records()[0].payloads, [value(1, A)], "{protocol}");
    }
}

/// A certificate that still waits for its value when its view ends was not prepared.
#[test]
fn a_certificate_without_its_value_ends_with_its_view() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let certificate = prepared(&bench.verifier, at(1, 1, A));
    bench.tell(2, Message::Prepare(certificate));
    assert_eq!(bench.leave_view().view_change().slots, Vec::new());
    let late = bench.tell(2, Message::Payload(value(1, A)));
    assert!(!late.says(is_commit) && late.slot_records().is_empty());
}

/// Seed 182 of the storms: a slot whose proof came first is delivered with its pre-prepare, though
/// nothing else comes.
#[test]
fn a_pre_prepare_after_the_proof_delivers() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let proof = proof(&bench.verifier, at(1, 1, A));
    assert_eq!(bench.tell(2, Message::Proof(proof)).decided(), [0_u64; 0]);
    assert_eq!(bench.propose(1, 1, A).decided(), [1]);
}

/// PBFT §4.2: committed-local with a quorum's commits, the own among them.
#[test]
fn a_quorums_commits_decide() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.accept(1, 1, A);
    bench.vote(2, at(1, 1, A));
    assert_eq!(bench.commit(2, at(1, 1, A)).decided(), [0_u64; 0]);
    assert_eq!(bench.commit(2, at(1, 1, A)).decided(), [0_u64; 0], "the same again");
    assert_eq!(bench.commit(3, at(1, 1, A)).decided(), [1]);
}

/// PBFT §4.2: commits may come before the slot is prepared here.
#[test]
fn early_commits_count() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    for member in [1, 2] {
        assert!(!bench.commit(member, at(1, 1, A)).combines());
    }
    bench.accept(1, 1, A);
    assert_eq!(bench.vote(2, at(1, 1, A)).decided(), [1]);
}

/// PBFT §4.2: requests are executed in the order of their sequence numbers.
#[test]
fn slots_are_delivered_in_order() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert_eq!(bench.decide(3, A).decided(), [0_u64; 0]);
    assert_eq!(bench.decide(2, A).decided(), [0_u64; 0]);
    assert_eq!(bench.decide(1, A).decided(), [1, 2, 3]);
    assert_eq!(bench.decide(2, A).decided(), [0_u64; 0], "each once");
}

/// §V-C, §V-E: a proof decides whoever shows it; here of whatever view.
#[test]
fn a_proof_of_any_view_decides() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    bench.accept(1, 1, A);
    let proof = proof(&bench.verifier, at(9, 1, A));
    assert_eq!(bench.tell(3, Message::Proof(proof)).decided(), [1]);
    assert_eq!(bench.machine.view(), View(1));
}

/// A commit proof may come before the value: whoever showed it is asked.
#[test]
fn a_decided_value_is_asked_for() {
    let mut bench = Bench::new(ProtocolKind::LinearPbft, 0);
    let proof = proof(&bench.verifier, at(1, 1, A));
    let outputs = bench.tell(3, Message::Proof(proof));
    let asked = outputs.messages().find_map(|(to, message)| match message {
        Message::Status(status) => Some((to, status.lacks.clone())),
        _ => None,
    });
    let lacks = vec![(Height(1), at(1, 1, A).digest)];
    assert_eq!(asked, Some((Recipients::One(ReplicaId(3)), lacks)));
    assert_eq!(bench.tell(3, Message::Payload(value(1, B))).decided(), [0_u64; 0]);
    assert_eq!(bench.tell(3, Message::Payload(value(1, A))).decided(), [1]);
}

#[test]
fn a_value_that_nothing_names_is_not_kept() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let body = BodyRef { author: ReplicaId(2), sequence: 1, digest: hash(b"body") };
    bench.tell(2, Message::Payload(Payload::new(Height(1), A, vec![body])));
    assert_eq!(bench.machine.undecided_bodies().len(), 0);
}

/// Common rules: two conflicting proofs are more than `f` faults. The replica halts.
#[test]
fn conflicting_proofs_halt() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let [one, other] = [A, B].map(|stamp| proof(&bench.verifier, at(1, 1, stamp)));
    bench.tell(2, Message::Proof(one.clone()));
    assert!(bench.tell(3, Message::Proof(one)).halt().is_none(), "the same again");
    let outputs = bench.tell(3, Message::Proof(other));
    let Some(Halt::ConflictingDecisions { height, .. }) = outputs.halt() else {
        panic!("it goes on: {outputs:?}");
    };
    assert_eq!(*height, Height(1));
    assert!(bench.decide(2, A).0.is_empty() && bench.leave_view().0.is_empty());
    assert_eq!(bench.machine.next_timeout(), None);
}

#[test]
fn votes_for_a_decided_slot_are_not_collected() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    assert!((0..4).all(|member| bench.vote(member, at(1, 1, A)).0.is_empty()));
}

/// A slot decided far beyond what is delivered here is not asked for slot by slot.
#[test]
fn a_wide_gap_is_fetched_as_history() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    assert_eq!(bench.decide(32, A).behind(), None);
    assert_eq!(bench.decide(33, A).behind(), Some(BlockId(at(1, 33, A).digest)));
}

/// Common rules ★: a member that lost its disk follows, and never signs.
#[test]
fn a_member_without_promises_signs_nothing() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut bench = Bench::of(ProtocolConfig { signs: false, ..config(&verifier, 0) }).0;
    let said = |outputs: &Outputs| outputs.messages().any(|(_, it)| !is_status(it));
    assert!(!said(&bench.accept(1, 1, A)));
    assert!(!said(&bench.vote(2, at(1, 1, A))) && !said(&bench.vote(3, at(1, 1, A))));
    let shown = prepared(&verifier, at(1, 1, A));
    assert!(!said(&bench.tell(2, Message::Prepare(shown))));
    assert!(!said(&bench.tell(3, Message::Status(status(0)))), "whoever asks");
    bench.feed(Input::Work(true));
    assert!((0..20).all(|_| !said(&bench.ring())), "nor does it leave the view");
    assert_eq!(bench.decide(1, A).decided(), [1]);
}

/// A decided slot gets no bodies: they may be executed and released. One that is decided here and
/// still waits for an earlier one does.
#[test]
fn bodies_of_a_delivered_slot_are_not_asked_for() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    bench.decide(1, A);
    assert!(!bench.propose(1, 1, A).wants_bodies());
    assert!(!bench.store(1, A).says(is_vote));
    bench.decide(3, A);
    assert!(bench.propose(1, 3, A).wants_bodies());
}

/// History is asked for of who showed what lies ahead.
#[test]
fn a_gap_is_fetched_from_who_is_ahead() {
    let mut bench = Bench::new(ProtocolKind::Pbft, 0);
    let far = proof(&bench.verifier, at(1, 33, A));
    let outputs = bench.tell(3, Message::Proof(far));
    let source = outputs.0.iter().find_map(|output| match output {
        Output::Behind { source, .. } => Some(*source),
        _ => None,
    });
    assert_eq!(source, Some(Some(ReplicaId(3))));
}
