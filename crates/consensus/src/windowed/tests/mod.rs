//! Rules that a single replica keeps, shown at its surface.

mod cluster;
mod costs;

use super::messages::encode;
use super::*;
use crate::{Input, Liveness, Output, ProposalKey, ProtocolConfig, ProtocolKind, Verifier};
use bytes::Bytes;
use quorate_crypto::{Bitmap, Dealing, KeyCache, KeyFile, Policy, SchemeKind, VotingSecret, hash};
use quorate_types::executed::{CheckpointCertificate, checkpoint_statement};
use quorate_types::machine::RecordKind;
use quorate_types::{
    BlockId, BodyRef, Committee, CommitteeFile, Epoch, Groups, Height, Kind, Machine, Member,
    Payload, Peer, Purpose, Rejected, ReplicaId, Time, Verified, Verify, View, Weights, deal_keys,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const MEMBERS: u8 = 4;

fn keys(member: u8) -> KeyFile {
    KeyFile::from_seed(SchemeKind::Ed25519, &[member; 32])
}

fn verifier(protocol: ProtocolKind) -> Arc<Verifier> {
    verifier_of(protocol, MEMBERS, 0)
}

fn verifier_of(protocol: ProtocolKind, members: u8, redundancy: u64) -> Arc<Verifier> {
    verifier_with(protocol, &committee_file(members, redundancy))
}

fn verifier_with(protocol: ProtocolKind, file: &CommitteeFile) -> Arc<Verifier> {
    let committee = Committee::load(file, KeyCache::Off).expect("a sound committee");
    Arc::new(Verifier::new(Arc::new(committee), protocol, ProposalKey::Identity))
}

fn committee_file(members: u8, redundancy: u64) -> CommitteeFile {
    let member = |index: u8| Member {
        identity: keys(index).identity.public().to_string(),
        voting: keys(index).voting.public().to_string(),
        possession: String::new(),
        address: String::new(),
        weight: 1,
    };
    CommitteeFile {
        name: "windowed".into(),
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy,
        groups: None,
        members: (0..members).map(member).collect(),
    }
}

fn dealing(members: usize, redundancy: u64) -> Dealing {
    let weights = Weights::equal(members).with_redundancy(redundancy).expect("3f + 2c + 1");
    deal_keys(&weights, &[7; 32]).expect("members of one weight")
}

/// The same committee, with keys that were dealt.
fn dealt_committee_file(members: u8, redundancy: u64) -> CommitteeFile {
    let dealing = dealing(usize::from(members), redundancy);
    let mut file = committee_file(members, redundancy);
    file.scheme = SchemeKind::BlsThreshold.to_string();
    file.groups = Some(Groups::from(&dealing.groups));
    for (member, secret) in file.members.iter_mut().zip(&dealing.secrets) {
        member.voting = secret.public().to_string();
    }
    file
}

/// What a member of the committee votes with.
fn voting(committee: &Committee, member: u8) -> VotingSecret {
    if !committee.splits_keys() {
        return keys(member).voting;
    }
    let redundancy = committee.weights().redundant_members();
    dealing(committee.size(), redundancy).secrets.swap_remove(usize::from(member))
}

fn place(view: u64, slot: u64, value: &[u8]) -> Place {
    Place { view: View(view), slot: Height(slot), digest: hash(value) }
}

fn certificate(verifier: &Verifier, kind: Kind, at: Place, signers: &[u8]) -> SlotCertificate {
    let message = at.statement(kind, verifier);
    let shares: Vec<_> = signers
        .iter()
        .map(|signer| (usize::from(*signer), keys(*signer).voting.sign(&message)))
        .collect();
    let nobody = Bitmap::new(usize::from(MEMBERS));
    let combined = verifier.voting().combine(&message, &shares, &nobody, Policy::Each);
    SlotCertificate { at, certificate: combined.certificate.expect("good shares") }
}

fn receive(verifier: &Verifier, message: Message) -> Result<Message, Rejected> {
    let message = verifier.protocol().windowed(message);
    let from = Peer::Replica(ReplicaId(1));
    crate::Message::verify(message, from, verifier).map(|it| it.windowed().cloned().expect("ours"))
}

#[test]
fn a_fast_proof_takes_all_but_the_redundant() {
    let verifier = verifier(ProtocolKind::Sbft);
    let proof = |signers: &[u8]| {
        let certificate = certificate(&verifier, Kind::Prepare, place(1, 1, b"a"), signers);
        Message::Proof(Proof { path: Path::Fast, certificate })
    };
    assert_eq!(receive(&verifier, proof(&[0, 1, 2])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, proof(&[0, 1, 2, 3])).is_ok());
}

#[test]
fn a_slow_proof_is_of_votes_to_commit() {
    let verifier = verifier(ProtocolKind::Pbft);
    let proof = |kind, signers: &[u8]| {
        let certificate = certificate(&verifier, kind, place(1, 1, b"a"), signers);
        Message::Proof(Proof { path: Path::Slow, certificate })
    };
    let wrong = Rejected::BadSignature("a slot's certificate");
    assert_eq!(receive(&verifier, proof(Kind::Prepare, &[0, 1, 2])), Err(wrong));
    assert_eq!(receive(&verifier, proof(Kind::Commit, &[0, 1])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, proof(Kind::Commit, &[0, 1, 2])).is_ok());
}

/// What was not checked is not taken for what was, even where it says the same.
#[test]
fn a_known_statement_does_not_excuse_another_signature() {
    let verifier = verifier(ProtocolKind::Pbft);
    let good = certificate(&verifier, Kind::Commit, place(1, 1, b"a"), &[0, 1, 2]);
    let mut bad = good.clone();
    bad.certificate.aggregate.0[0] ^= 1;
    let proof = |certificate| Message::Proof(Proof { path: Path::Slow, certificate });
    assert!(receive(&verifier, proof(good)).is_ok());
    let refused = Rejected::BadSignature("a slot's certificate");
    assert_eq!(receive(&verifier, proof(bad)), Err(refused));
}

/// Several collectors make one certificate each of one statement, and reports of a view change hold them in
/// any order: each is checked once, as long as there are few.
#[test]
fn each_certificate_of_a_statement_is_checked_once() {
    let verifier = verifier(ProtocolKind::Sbft);
    let at = place(1, 5, b"value");
    let some = [[0, 1, 2], [0, 1, 3], [1, 2, 3]]
        .map(|signers| certificate(&verifier, Kind::Commit, at, &signers));
    let knows = |one| verifier.knows_slot(Kind::Commit, Purpose::Vote, one);
    for one in &some[..2] {
        let proof = Proof { path: Path::Slow, certificate: one.clone() };
        assert!(receive(&verifier, Message::Proof(proof)).is_ok());
    }
    assert!(some[..2].iter().all(knows), "whichever came last");
    assert!(!knows(&some[2]), "nobody checked it");
    assert!(!verifier.knows_slot(Kind::Prepare, Purpose::Vote, &some[0]), "another statement");
}

fn new_view(verifier: &Verifier, members: &[u16]) -> Message {
    let changes = members.iter().map(|member| (ReplicaId(*member), hash(b"change"))).collect();
    let mut new_view = NewView { view: View(2), changes, signature: Vec::new() };
    let statement = verifier.statement(Kind::NewView, &new_view.digest());
    new_view.signature = keys(2).identity.sign(&statement).0.to_vec();
    Message::NewView(new_view)
}

#[test]
fn a_new_view_names_as_many_as_are_honest() {
    let verifier = verifier(ProtocolKind::Pbft);
    assert_eq!(receive(&verifier, new_view(&verifier, &[0, 2])), Err(Rejected::BelowThreshold));
    assert!(receive(&verifier, new_view(&verifier, &[0, 2, 3])).is_ok());
    let more = Rejected::RuleBroken("a new view names no more members than are honest");
    assert_eq!(receive(&verifier, new_view(&verifier, &[0, 1, 2, 3])), Err(more));
    let twice = Rejected::RuleBroken("a new view names members, ascending");
    assert_eq!(receive(&verifier, new_view(&verifier, &[0, 2, 2])), Err(twice));
}

/// What a member that knows nothing says as it gives up the view before this one.
fn empty_change(verifier: &Verifier, view: u64, signer: u8) -> ViewChange {
    let identity = keys(signer).identity;
    let (view, signer) = (View(view), ReplicaId(u16::from(signer)));
    let slots = Vec::new();
    let mut change = ViewChange { view, signer, stable: None, slots, signature: Vec::new() };
    let statement = verifier.statement(Kind::ViewChange, &change.digest());
    change.signature = identity.sign(&statement).0.to_vec();
    change
}

/// Members gave up view 1 before there was anything to tell; what they promised in view 2 is in none of
/// these reports.
#[test]
fn a_view_does_not_begin_with_reports_into_an_earlier_one() {
    let verifier = verifier(ProtocolKind::Pbft);
    let begin = |reported: u64| {
        let mut machine = replica(&verifier, 0);
        let changes: Vec<ViewChange> =
            (1..4).map(|member| empty_change(&verifier, reported, member)).collect();
        let named = changes.iter().map(|change| (change.signer, change.digest())).collect();
        for change in changes {
            let signer = u8::try_from(change.signer.0).expect("few");
            tell(&mut machine, &verifier, signer, Message::ViewChange(Box::new(change)));
        }
        let mut new_view = NewView { view: View(3), changes: named, signature: Vec::new() };
        let statement = verifier.statement(Kind::NewView, &new_view.digest());
        new_view.signature = keys(3).identity.sign(&statement).0.to_vec();
        tell(&mut machine, &verifier, 3, Message::NewView(new_view));
        machine.status()
    };
    assert_eq!((begin(3).view, begin(3).view_changes), (View(3), 1));
    assert_eq!((begin(2).view, begin(2).view_changes), (View(2), 0));
}

#[test]
fn a_view_change_reports_each_slot_of_its_window_once() {
    let verifier = verifier(ProtocolKind::Sbft);
    let change = |slots: &[(u64, u64)]| {
        let report = |(slot, view): &(u64, u64)| SlotReport {
            slot: Height(*slot),
            slow: SlowReport::Nothing,
            fast: FastReport::Accepted(View(*view), hash(b"a")),
        };
        let slots = slots.iter().map(report).collect();
        let (view, signer) = (View(2), ReplicaId(3));
        let mut change = ViewChange { view, signer, stable: None, slots, signature: Vec::new() };
        let statement = verifier.statement(Kind::ViewChange, &change.digest());
        change.signature = keys(3).identity.sign(&statement).0.to_vec();
        receive(&verifier, Message::ViewChange(Box::new(change)))
    };
    let window = Rejected::RuleBroken("a view change is of the slots in its window, each once");
    assert_eq!(change(&[(1, 1), (1, 1)]), Err(window.clone()));
    assert_eq!(change(&[(0, 1)]), Err(window.clone()));
    assert_eq!(change(&[(WINDOW + 1, 1)]), Err(window));
    let earlier = Rejected::RuleBroken("a view change reports earlier views of its slots");
    assert_eq!(change(&[(1, 2)]), Err(earlier));
    assert!(change(&[(1, 1), (WINDOW, 1)]).is_ok());
}

fn replica(verifier: &Arc<Verifier>, id: u8) -> Windowed {
    let config = ProtocolConfig {
        id: ReplicaId(u16::from(id)),
        identity: Arc::new(keys(id).identity),
        voting: Arc::new(voting(verifier.committee(), id)),
        verifier: Arc::clone(verifier),
        timeout: Duration::from_secs(1),
        vote_wait: Duration::ZERO,
        policy: Policy::Aggregate,
        clock_drift_max_ms: 1_000,
        wall_origin_ms: 0,
        signs: true,
        liveness: Liveness::default(),
    };
    let rules = verifier.protocol().windowed_rules().expect("a windowed protocol");
    Windowed::new(config, rules)
}

fn drain(machine: &mut Windowed) -> Vec<Output> {
    std::iter::from_fn(|| machine.poll()).collect()
}

fn pre_prepare(verifier: &Verifier, view: u64, payload: Payload) -> Message {
    let (slot, digest) = (payload.header.height, digest_of(&payload));
    let at = Place { view: View(view), slot, digest };
    let primary = keys(u8::try_from(view).expect("small") % MEMBERS);
    let slow = primary.voting.sign(&at.statement(Kind::Prepare, verifier));
    let signature = primary.identity.sign(&at.statement(Kind::PrePrepare, verifier)).0.to_vec();
    let shares = Shares { slow, fast: None };
    Message::PrePrepare(PrePrepare { view: View(view), payload, shares, signature })
}

fn tell(machine: &mut Windowed, verifier: &Verifier, from: u8, message: Message) -> Vec<Output> {
    let from = ReplicaId(u16::from(from));
    let message = verifier.protocol().windowed(message);
    let message = Verified::check(message, Peer::Replica(from), verifier).expect("sound");
    machine.handle(Time(1), Input::Message { from, message: Box::new(message) });
    drain(machine)
}

fn is_wanted(outputs: &[Output]) -> bool {
    outputs.iter().any(|output| matches!(output, Output::WantBodies { .. }))
}

/// After a restart too, the primary's values count only beyond what its view began with.
#[test]
fn what_a_view_began_with_is_not_the_primarys_to_replace() {
    let verifier = verifier(ProtocolKind::Sbft);
    let mut machine = replica(&verifier, 0);
    let began = ViewRecord {
        epoch: Epoch(1),
        view: View(3),
        changing: false,
        base: Height(5),
        stable: None,
    };
    machine.handle(
        Time(0),
        Input::Recovered {
            safety: Some(Bytes::from(encode(&began))),
            slots: Vec::new(),
            executed: None,
            decided: Vec::new(),
            stored: BTreeSet::new(),
        },
    );
    drain(&mut machine);
    let propose = |slot| pre_prepare(&verifier, 3, Payload::new(Height(slot), 7, Vec::new()));
    assert!(!is_wanted(&tell(&mut machine, &verifier, 3, propose(5))));
    assert!(is_wanted(&tell(&mut machine, &verifier, 3, propose(6))));
}

#[test]
fn a_primary_with_two_values_is_convicted_to_everybody() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let propose = |stamp| pre_prepare(&verifier, 1, Payload::new(Height(1), stamp, Vec::new()));
    tell(&mut machine, &verifier, 1, propose(7));
    let outputs = tell(&mut machine, &verifier, 1, propose(8));
    let said = |wanted: fn(&Message) -> bool| {
        outputs.iter().any(|output| match output {
            Output::Send { message, .. } => message.windowed().is_some_and(wanted),
            _ => false,
        })
    };
    assert!(said(|message| matches!(message, Message::Equivocation(_))), "{outputs:?}");
    assert!(said(|message| matches!(message, Message::ViewChange(_))), "{outputs:?}");
}

/// It is left for a primary that passes others over; the primary itself does not depose itself.
#[test]
fn a_primary_that_passes_bodies_over_loses_its_view() {
    let verifier = verifier(ProtocolKind::Sbft);
    let gives_up = |member| {
        let mut machine = replica(&verifier, member);
        let is_change = |output: &Output| match output {
            Output::Send { message, .. } => {
                matches!(message.windowed(), Some(Message::ViewChange(_)))
            }
            _ => false,
        };
        machine.handle(Time(1), Input::Overtaken);
        assert!(!drain(&mut machine).iter().any(is_change), "the view began just now");
        machine.handle(Time(10_000_000), Input::Overtaken);
        drain(&mut machine).iter().any(is_change)
    };
    assert!(gives_up(0) && !gives_up(1));
}

#[test]
fn a_view_change_leaves_after_its_record() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let propose = |stamp| pre_prepare(&verifier, 1, Payload::new(Height(1), stamp, Vec::new()));
    tell(&mut machine, &verifier, 1, propose(7));
    let outputs = tell(&mut machine, &verifier, 1, propose(8));
    let is_change = |output: &Output| match output {
        Output::Send { message, .. } => matches!(message.windowed(), Some(Message::ViewChange(_))),
        _ => false,
    };
    let change = outputs.iter().position(is_change).expect("it gives the view up");
    let is_record = |output: &Output| match output {
        Output::Persist(record) => record.kind == RecordKind::Safety,
        _ => false,
    };
    assert!(outputs[..change].iter().any(is_record), "{outputs:?}");
}

#[test]
fn slots_beyond_the_window_are_not_looked_at() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let propose = |slot| pre_prepare(&verifier, 1, Payload::new(Height(slot), 7, Vec::new()));
    assert!(is_wanted(&tell(&mut machine, &verifier, 1, propose(WINDOW))));
    assert!(!is_wanted(&tell(&mut machine, &verifier, 1, propose(WINDOW + 1))));
}

#[test]
fn a_value_from_the_future_gets_no_vote() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let propose = |stamp| pre_prepare(&verifier, 1, Payload::new(Height(1), stamp, Vec::new()));
    assert!(!is_wanted(&tell(&mut machine, &verifier, 1, propose(1_001))));
    assert!(is_wanted(&tell(&mut machine, &verifier, 1, propose(1_000))));
}

#[test]
fn records_that_are_not_ours_halt() {
    let verifier = verifier(ProtocolKind::Pbft);
    let recovered = |safety: &'static [u8]| Input::Recovered {
        safety: Some(Bytes::from_static(safety)),
        slots: Vec::new(),
        executed: None,
        decided: Vec::new(),
        stored: BTreeSet::new(),
    };
    let mut machine = replica(&verifier, 0);
    machine.handle(Time(0), recovered(b"torn"));
    let outputs = drain(&mut machine);
    assert!(matches!(outputs.as_slice(), [Output::Halt(_)]), "{outputs:?}");
}

/// ★ Who wants a view knows nothing of its slots until it has begun.
#[test]
fn nothing_of_a_view_counts_before_it_has_begun() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    machine.handle(Time(10_000_000), Input::Overtaken);
    let changes = drain(&mut machine);
    assert!(!changes.is_empty(), "it wants view 2");
    let proposed = pre_prepare(&verifier, 2, Payload::new(Height(1), 7, Vec::new()));
    assert!(!is_wanted(&tell(&mut machine, &verifier, 2, proposed)));
}

fn recovered(machine: &mut Windowed, slots: Vec<Bytes>, executed: Option<Bytes>) -> Vec<Output> {
    let (safety, decided, stored) = (None, Vec::new(), BTreeSet::new());
    machine.handle(Time(0), Input::Recovered { safety, slots, executed, decided, stored });
    drain(machine)
}

/// ★ Promises are kept in as many places as the window has slots: what is stable is durable before one
/// is taken again.
#[test]
fn a_window_moves_once_that_is_durable() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let payload = Payload::new(Height(CHECKPOINT_EVERY), 7, Vec::new());
    let at = Place { digest: digest_of(&payload), ..place(1, CHECKPOINT_EVERY, b"") };
    let certificate = certificate(&verifier, Kind::Commit, at, &[0, 1, 2]);
    let record = DecidedSlot { payload, proof: Proof { path: Path::Slow, certificate } };
    recovered(&mut machine, Vec::new(), Some(record.encode()));
    let (height, root) = (Height(CHECKPOINT_EVERY), hash(b"state"));
    let committee = verifier.committee();
    let statement = checkpoint_statement(committee.chain(), committee.epoch(), height, root);
    let shares: Vec<_> =
        (0..3).map(|member| (usize::from(member), keys(member).voting.sign(&statement))).collect();
    let combined = verifier.voting().combine(&statement, &shares, &Bitmap::new(4), Policy::Each);
    let certificate = combined.certificate.expect("good shares");
    let stable = CheckpointCertificate { height, root, certificate };
    machine.handle(Time(1), Input::Stable(Box::new(stable.clone())));
    let is_durable = |output: &Output| match output {
        Output::Persist(record) if record.kind == RecordKind::Safety => {
            let view: ViewRecord = borsh::from_slice(&record.bytes).expect("a view");
            view.stable.as_ref() == Some(&stable)
        }
        _ => false,
    };
    assert!(drain(&mut machine).iter().any(is_durable));
}

/// ★ A vote says that its bodies are stored: whoever lost them says it again once it has them.
#[test]
fn a_vote_is_said_again_once_its_bodies_are_here() {
    let verifier = verifier(ProtocolKind::Pbft);
    let mut machine = replica(&verifier, 0);
    let body = BodyRef { author: ReplicaId(2), sequence: 1, digest: hash(b"body") };
    let payload = Payload::new(Height(1), 7, vec![body]);
    let record = SlotRecord {
        epoch: Epoch(1),
        slot: Height(1),
        accepted: Some((View(1), digest_of(&payload))),
        prepared: None,
        payloads: vec![payload.clone()],
    };
    let votes = |outputs: &[Output]| {
        outputs.iter().any(|output| match output {
            Output::Send { message, .. } => {
                matches!(message.windowed(), Some(Message::SignShare(_)))
            }
            _ => false,
        })
    };
    let said = recovered(&mut machine, vec![record.encode().bytes], None);
    assert!(!votes(&said) && is_wanted(&said), "{said:?}");
    machine.handle(Time(1), Input::Stored(BlockId(digest_of(&payload))));
    assert!(votes(&drain(&mut machine)));
}

#[cfg(feature = "mutants")]
#[test]
fn each_rule_left_out_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    let checks: [(Mutant, fn()); 9] = [
        (Mutant::WindowedActBeforeNewView, nothing_of_a_view_counts_before_it_has_begun),
        (Mutant::WindowedForgetStable, a_window_moves_once_that_is_durable),
        (Mutant::WindowedSayWithoutBodies, a_vote_is_said_again_once_its_bodies_are_here),
        (Mutant::NewViewByOldChanges, a_view_does_not_begin_with_reports_into_an_earlier_one),
        (Mutant::WindowedAcceptTwice, a_primary_with_two_values_is_convicted_to_everybody),
        (Mutant::WindowedChangeBeforePersist, a_view_change_leaves_after_its_record),
        (Mutant::FastProofByQuorum, a_fast_proof_takes_all_but_the_redundant),
        (Mutant::NewViewByFew, a_new_view_names_as_many_as_are_honest),
        (Mutant::WindowedForgetBase, what_a_view_began_with_is_not_the_primarys_to_replace),
    ];
    for (mutant, test) in checks {
        assert_noticed(mutant, test);
    }
}
