mod golden;

use super::{Incoming, Recent, Verifier};
use crate::availability::{Acknowledged, Acknowledgement, AvailabilityCertificate};
use crate::frames::{FrameSetting, FrameTag, NAMES_MAX};
use crate::message::{
    Blocks, Busy, Chain, Chunk, FetchBlocks, Frame, Kept, NotAdmitted, Offer, Query, QueryResponse,
};
use crate::testing::{
    self, FIRST, acknowledge, body, certified, certify, certify_executed, change_body, client,
    committee, content, encoded, hand_over, identity, receive, request, signed_change,
    signed_change_to, signed_hand_over, verifier, voting,
};
use crate::{Availability, Message, ProtocolKind, Settings, Truncation};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_crypto::{Digest, IdentityKey, hash};
use quorate_types::executed::{CertifiedReply, checkpoint_statement};
use quorate_types::request::Answer;
use quorate_types::service::{Admission, Operation, Preparation, Proven};
use quorate_types::{
    AgreedSettings, BlockId, Body, BodyRef, ClientId, Header, Height, Outcome, Peer, Rejected,
    ReplicaId, Reply, Request, Results, Verified,
};
use std::sync::{Arc, Mutex};

const MEMBER: Peer = Peer::Replica(ReplicaId(0));
const LEARNER: Peer = Peer::Learner(ClientId(IdentityKey([7; 32])));

fn customer() -> Peer {
    Peer::Client(ClientId(client().public()))
}

/// Replica 0's proposal for view 1 over these bodies.
fn proposal(bodies: &[Arc<Body>]) -> quorate_consensus::Message {
    testing::proposal(bodies.iter().map(|b| b.reference).collect())
}

fn reply() -> Reply {
    let results = Results::new(vec![Outcome::Applied(Bytes::from_static(b"done"))]);
    let client = ClientId(client().public());
    let answer = Answer { client, sequence: 7, height: Height(3), results, index: None };
    Reply::sign(&identity(0), committee().scope(), ReplicaId(0), answer)
}

fn question() -> FetchBlocks {
    FetchBlocks {
        height: Height(1),
        after: Some(BlockId(hash(b"after"))),
        target: BlockId(hash(b"target")),
    }
}

/// A run that leads nowhere, with bodies.
fn chain(bodies: &[Arc<Body>]) -> Chain {
    let kept = Kept { oldest: Height(1), newest: Height(7) };
    let blocks = Blocks { request: question(), decided: vec![], tail: vec![], kept };
    let heights = vec![Height(4), Height(0)];
    Chain { heights, certificate: Bytes::new(), blocks: vec![blocks], bodies: bodies.to_vec() }
}

fn acknowledgement() -> Acknowledgement {
    acknowledge(0, 1, &[hash(b"a"), hash(b"b")])
}

/// Over two bodies of author 1, by these members.
fn certificate(signers: &[u8]) -> AvailabilityCertificate {
    let signers: Vec<(u8, usize)> = signers.iter().map(|signer| (*signer, 2)).collect();
    certify(1, &[hash(b"a"), hash(b"b")], &signers)
}

/// A height of a snapshot, which members certify in any case.
const CERTIFIED: Height = Height(1_024);

fn executed() -> Header {
    Header { height: CERTIFIED, state: hash(b"state"), ..Header::default() }
}

fn execution_share() -> Message {
    let statement = executed().statement(committee().scope());
    Message::ExecutionShare(CERTIFIED, executed().root(), voting(0).sign(&statement))
}

fn checkpoint_share() -> Message {
    let root = executed().root();
    let scope = committee().scope();
    let statement = checkpoint_statement(scope, CERTIFIED, root);
    Message::CheckpointShare(CERTIFIED, root, voting(0).sign(&statement))
}

fn hand_over_share() -> Message {
    let statement = hand_over().statement(committee().scope());
    Message::HandOverShare(hand_over(), voting(0).sign(&statement))
}

fn certified_reply() -> CertifiedReply {
    let results = Results::new(vec![Outcome::Applied(Bytes::from_static(b"done"))]);
    certified(&request(7, 30), results)
}

fn answered() -> QueryResponse {
    let proven = Proven { answer: "so".into(), proof: Bytes::new() };
    QueryResponse { id: 1, result: Ok((proven, certify_executed(executed()))) }
}

/// One of each, with who may send it.
fn one_of_each() -> Vec<(&'static str, Peer, Message)> {
    let bodies = vec![body(0, 1, 30), body(0, 2, 40)];
    let names: Vec<BodyRef> = bodies.iter().map(|b| b.reference).collect();
    let kept = Kept { oldest: Height(1), newest: Height(7) };
    let blocks = Blocks { request: question(), decided: vec![], tail: vec![], kept };
    vec![
        ("consensus", MEMBER, Message::Consensus(proposal(&bodies))),
        ("inline", MEMBER, Message::Inline(proposal(&bodies), bodies.clone())),
        ("body", MEMBER, Message::Body(Arc::clone(&bodies[0]))),
        ("announce", MEMBER, Message::Announce(names.clone())),
        ("fetch bodies", MEMBER, Message::FetchBodies(names)),
        ("fetch blocks", MEMBER, Message::FetchBlocks(question())),
        ("blocks", MEMBER, Message::Blocks(blocks)),
        ("chain", MEMBER, Message::Chain(chain(&bodies))),
        ("fetch snapshots", MEMBER, Message::FetchSnapshots(Height(9))),
        ("fetch chunk", MEMBER, Message::FetchChunk(hash(b"snapshot"), 3)),
        ("request", customer(), Message::Request(request(7, 30))),
        ("reply", MEMBER, Message::Reply(reply())),
        ("busy", MEMBER, Message::Busy(Busy { sequence: 7, reason: "full".into() })),
        (
            "not-admitted",
            MEMBER,
            Message::NotAdmitted(NotAdmitted {
                sequence: 7,
                request: Digest([1; 32]),
                reason: "no".into(),
            }),
        ),
        ("change", customer(), Message::Change(encoded(&signed_change(1, 9)))),
        ("change body", MEMBER, Message::Body(change_body(&signed_change(1, 9)))),
        ("change answer", MEMBER, Message::ChangeAnswer(Err("no".into()))),
        ("acknowledgement", MEMBER, Message::Acknowledgement(acknowledgement())),
        ("available", MEMBER, Message::Available(certificate(&[0, 1]))),
        ("fetch available", MEMBER, Message::FetchAvailable(7)),
        ("execution share", MEMBER, execution_share()),
        ("checkpoint share", MEMBER, checkpoint_share()),
        ("hand-over share", MEMBER, hand_over_share()),
        ("hand-over", MEMBER, Message::HandOver(signed_hand_over(hand_over()))),
        ("execution proof", MEMBER, Message::ExecutionProof(certify_executed(executed()))),
        ("certified reply", MEMBER, Message::CertifiedReply(Box::new(certified_reply()))),
        ("question", customer(), Message::Query(Query { id: 1, query: "why".into() })),
        ("answered", MEMBER, Message::QueryResponse(Box::new(answered()))),
    ]
}

#[test]
fn every_message_survives_its_frame() {
    for (name, from, message) in one_of_each() {
        let incoming = receive(&message, from).unwrap_or_else(|e| panic!("{name}: {e}"));
        match (incoming.into_inner(), message) {
            (Incoming::Consensus(found), Message::Consensus(sent)) => assert_eq!(**found, sent),
            (Incoming::Inline(found, bodies), Message::Inline(sent, carried)) => {
                assert_eq!((&**found, bodies), (&sent, carried));
            }
            (Incoming::Chain(heights, runs, bodies), Message::Chain(sent)) => {
                let targets: Vec<_> = sent.blocks.iter().map(|run| run.request.target).collect();
                assert!(runs.iter().map(|(target, _)| *target).eq(targets));
                assert_eq!((heights, bodies), (sent.heights, sent.bodies));
            }
            (Incoming::Body(found), Message::Body(sent)) => assert_eq!(found, sent),
            (Incoming::Announce(found), Message::Announce(sent))
            | (Incoming::FetchBodies(found), Message::FetchBodies(sent)) => {
                assert_eq!(found, sent);
            }
            (Incoming::FetchBlocks(found), Message::FetchBlocks(sent)) => assert_eq!(found, sent),
            (Incoming::FetchSnapshots(found), Message::FetchSnapshots(sent)) => {
                assert_eq!(found, sent);
            }
            (Incoming::FetchChunk(found, index), Message::FetchChunk(sent, of)) => {
                assert_eq!((found, index), (sent, of));
            }
            (Incoming::Blocks(found, kept, run), Message::Blocks(sent)) => {
                assert_eq!((found, kept), (sent.request, sent.kept));
                assert!(run.is_empty());
            }
            (Incoming::Request(found), Message::Request(sent)) => assert_eq!(found, sent),
            (Incoming::Reply(found), Message::Reply(sent)) => assert_eq!(found, sent),
            (Incoming::Busy(found), Message::Busy(sent)) => assert_eq!(found, sent),
            (Incoming::NotAdmitted(found), Message::NotAdmitted(sent)) => assert_eq!(found, sent),
            (Incoming::Acknowledgement(found), Message::Acknowledgement(sent)) => {
                assert_eq!(found, sent);
            }
            (Incoming::Available(found), Message::Available(sent)) => {
                assert_eq!(
                    (found.author, found.first, found.before),
                    (sent.author, FIRST, sent.before)
                );
                assert_eq!((found.bodies, found.signers.len()), (sent.bodies, 2));
            }
            (Incoming::FetchAvailable(found), Message::FetchAvailable(sent)) => {
                assert_eq!(found, sent);
            }
            (Incoming::ExecutionShare(height, root, share), Message::ExecutionShare(h, r, s)) => {
                assert_eq!((height, root, share), (h, r, s));
            }
            (Incoming::CheckpointShare(height, root, share), Message::CheckpointShare(h, r, s)) => {
                assert_eq!((height, root, share), (h, r, s));
            }
            (Incoming::ExecutionProof(found), Message::ExecutionProof(sent)) => {
                assert_eq!(*found, sent);
            }
            (Incoming::CertifiedReply(found), Message::CertifiedReply(sent)) => {
                assert_eq!(found, sent);
            }
            (Incoming::Query(found), Message::Query(sent)) => assert_eq!(found, sent),
            (Incoming::QueryResponse(found), Message::QueryResponse(sent)) => {
                assert_eq!(found, sent);
            }
            (found, sent) => assert!(is_of_an_end(&found, &sent), "{name} became {found:?}"),
        }
    }
}

/// Whether it is what was sent, of changes and the end of an epoch.
fn is_of_an_end(found: &Incoming, sent: &Message) -> bool {
    match (found, sent) {
        (Incoming::Change(found), Message::Change(sent)) => found.body.raw == *sent,
        (Incoming::Change(found), Message::Body(sent)) => found.body == *sent,
        (Incoming::ChangeAnswer(found), Message::ChangeAnswer(sent)) => found == sent,
        (Incoming::HandOverShare(content, share), Message::HandOverShare(c, s)) => {
            (content, share) == (c, s)
        }
        (Incoming::HandOver(found), Message::HandOver(sent)) => **found == *sent,
        _ => false,
    }
}

#[test]
fn only_members_speak_as_members_learners_ask_and_only_the_client_speaks_for_itself() {
    for (name, from, message) in one_of_each() {
        let (other, expected) = match from {
            Peer::Replica(_) => (customer(), Rejected::NotAMember),
            Peer::Client(_) | Peer::Learner(_) => (MEMBER, Rejected::ForeignSender),
        };
        if name.starts_with("fetch ") && name != "fetch available" {
            assert!(receive(&message, LEARNER).is_ok(), "{name}");
        } else {
            assert!(receive(&message, LEARNER).is_err(), "a learner says {name}");
        }
        assert_eq!(receive(&message, other).unwrap_err(), expected, "{name}");
    }
    let stranger = Peer::Client(ClientId(identity(9).public()));
    let foreign = receive(&Message::Request(request(7, 30)), stranger).unwrap_err();
    assert_eq!(foreign, Rejected::ForeignSender);
    let other = receive(&Message::Reply(reply()), Peer::Replica(ReplicaId(1))).unwrap_err();
    assert_eq!(other, Rejected::ForeignSender);
}

/// One member could otherwise keep the thread busy that checks votes.
#[test]
fn a_chain_is_refused_undecoded_where_none_travel() {
    let verifier = Verifier::new(committee(), &Settings::default());
    let chain = content(&Message::Chain(chain(&[body(0, 1, 30)])));
    let garbage = Bytes::from(vec![FrameTag::Chain.number(), 255]);
    for content in [chain, garbage] {
        let refused = Verified::<Incoming>::check(content, MEMBER, &verifier).unwrap_err();
        assert_eq!(refused, Rejected::RuledOut { frame: "Chain".into(), setting: "truncation" });
    }
}

/// Settings with only this one other than usual.
fn switched_on(setting: FrameSetting) -> Settings {
    let mut settings = Settings::default();
    match setting {
        FrameSetting::InlineBodies => settings.inline_bodies = true,
        FrameSetting::Truncation => settings.comparison.truncation = Truncation::Heights,
        FrameSetting::Availability => settings.availability = Availability::Certified,
        FrameSetting::ExecutionCertificates => settings.execution_certificates = true,
        FrameSetting::Protocol => settings.protocol = ProtocolKind::Pbft,
    }
    settings
}

#[test]
fn frames_are_taken_exactly_where_their_setting_is_on() {
    let usual = Verifier::new(committee(), &Settings::default());
    for (name, from, message) in one_of_each() {
        let check = |verifier| Verified::<Incoming>::check(content(&message), from, verifier);
        let Some(setting) = message.tag().rules().setting else {
            check(&usual).unwrap_or_else(|e| panic!("{name}: {e}"));
            continue;
        };
        let frame = format!("{:?}", message.tag());
        let refused = Rejected::RuledOut { frame, setting: setting.name() };
        assert_eq!(check(&usual).unwrap_err(), refused, "{name}");
        let verifier = Verifier::new(committee(), &switched_on(setting));
        check(&verifier).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Nobody asked for it: its signatures are not looked at.
#[test]
fn certificates_of_heights_that_nobody_certifies_are_refused_unchecked() {
    let settings =
        |execution_certificates| Settings { execution_certificates, ..Settings::default() };
    let mut forged = certify_executed(Header { height: Height(5), ..executed() });
    forged.header.state = hash(b"another");
    for (settings, refused) in [
        (settings(false), Rejected::RuleBroken("members certify no such height")),
        (settings(true), Rejected::BadSignature("an execution certificate")),
    ] {
        let verifier = Verifier::new(committee(), &settings);
        let proof = content(&Message::ExecutionProof(forged.clone()));
        assert_eq!(Verified::<Incoming>::check(proof, MEMBER, &verifier).unwrap_err(), refused);
    }
}

#[test]
fn what_was_signed_cannot_be_changed() {
    let mut forged = reply();
    forged.height = Height(4);
    let refused = Rejected::BadSignature("an identity signature");
    assert_eq!(receive(&Message::Reply(forged), MEMBER).unwrap_err(), refused);
    let mut forged = reply();
    forged.results = Results::new(vec![]);
    let refused = Rejected::RuleBroken("a reply's digest is that of its results");
    assert_eq!(receive(&Message::Reply(forged), MEMBER).unwrap_err(), refused);
    let mut forged = certified_reply();
    forged.results = Results::new(vec![]);
    let refused = Rejected::RuleBroken("a certified reply's results are those it names");
    let forged = Message::CertifiedReply(Box::new(forged));
    assert_eq!(receive(&forged, MEMBER).unwrap_err(), refused);
    let mut forged = certify_executed(executed());
    forged.header.state = hash(b"another");
    let refused = Rejected::BadSignature("an execution certificate");
    assert_eq!(receive(&Message::ExecutionProof(forged.clone()), MEMBER).unwrap_err(), refused);
    let (proven, _) = answered().result.expect("an answer");
    let forged =
        Message::QueryResponse(Box::new(QueryResponse { id: 1, result: Ok((proven, forged)) }));
    assert_eq!(receive(&forged, MEMBER).unwrap_err(), refused);
    let mut bytes = content(&Message::Request(request(7, 30))).to_vec();
    bytes[1 + 32] ^= 1;
    let refused = Verified::<Incoming>::check(Bytes::from(bytes), customer(), &verifier());
    assert_eq!(refused.unwrap_err(), Rejected::BadSignature("the request's signature"));
}

/// A body is taken whole: its name is its hash, and every request in it is signed.
#[test]
fn a_body_with_one_bad_request_is_refused() {
    let mut raw = body(0, 1, 30).raw.to_vec();
    let misnamed = Body { raw: Bytes::from(raw.clone()), ..Body::clone(&body(0, 1, 31)) };
    let refused = receive(&Message::Body(Arc::new(misnamed)), MEMBER).unwrap_err();
    assert!(matches!(refused, Rejected::Malformed(_)), "{refused:?}");
    *raw.last_mut().unwrap() ^= 1;
    let (request, _) = Request::split_from(&Bytes::from(raw)).unwrap();
    let unsigned = Body::seal(ReplicaId(0), 1, &[request]);
    let refused = receive(&Message::Body(Arc::new(unsigned)), MEMBER).unwrap_err();
    assert_eq!(refused, Rejected::BadSignature("a request inside a body"));
}

/// Nobody pushes bodies past the limits inside a message that does not name them.
/// What is kept of bodies is bounded by author: nobody may make authors up.
#[test]
fn a_body_of_a_stranger_is_refused() {
    let stranger = |sequence| Body::seal(ReplicaId(4), sequence, &[request(1, 10)]);
    let member = Peer::Replica(ReplicaId(0));
    let body = Arc::new(stranger(1));
    let named = vec![body.reference];
    let messages = [
        Message::Body(Arc::clone(&body)),
        Message::Announce(named.clone()),
        Message::FetchBodies(named),
        Message::Consensus(proposal(&[body])),
    ];
    for message in messages {
        let checked = Verified::<Incoming>::check(content(&message), member, &verifier());
        let refused = Err(Rejected::RuleBroken("a body's author is a member"));
        assert_eq!(checked.map(|_| ()), refused, "{message:?}");
    }
}

#[test]
fn inline_bodies_are_those_that_the_proposal_names() {
    let (named, other) = (body(0, 1, 30), body(0, 2, 30));
    let message = proposal(&[Arc::clone(&named)]);
    let rule = Rejected::RuleBroken("inline bodies are those that their proposal names");
    for carried in [vec![Arc::clone(&other)], vec![named, other], vec![]] {
        let refused = receive(&Message::Inline(message.clone(), carried), MEMBER);
        assert_eq!(refused.unwrap_err(), rule);
    }
}

/// The caps that a transport enforces before it allocates fit the largest honest messages.
#[test]
fn every_message_fits_its_cap() {
    for (name, _, message) in one_of_each() {
        let frame: Frame = message.frame();
        assert_eq!(FrameTag::of(&content(&message)), Some(message.tag()), "{name}");
        assert!(frame.len() - 4 <= message.tag().rules().bytes_max, "{name}");
    }
    let names: Vec<BodyRef> = (0..NAMES_MAX as u64)
        .map(|sequence| BodyRef { author: ReplicaId(0), sequence, digest: hash(b"") })
        .collect();
    let largest = [
        Message::Announce(names.clone()),
        Message::FetchBodies(names),
        Message::Request(request(1, quorate_types::Request::BYTES_MAX)),
        Message::FetchBlocks(question()),
        Message::FetchChunk(hash(b""), u32::MAX),
        chunk(quorate_types::Manifest::CHUNK_BYTES),
        Message::Available(largest_certificate()),
    ];
    for message in largest {
        assert!(content(&message).len() <= message.tag().rules().bytes_max);
    }
}

fn chunk(bytes: usize) -> Message {
    let bytes = Bytes::from(vec![7; bytes]);
    Message::Chunk(Chunk { snapshot: hash(b"snapshot"), index: 2, bytes })
}

/// A chunk arrives with the hash of exactly the bytes that came.
#[test]
fn a_chunk_comes_with_its_hash_or_as_none() {
    for (sent, expected) in [(chunk(5), Some(hash(&[7; 5]))), (chunk(0), None)] {
        let Incoming::Chunk(which, found) = receive(&sent, MEMBER).unwrap().into_inner() else {
            panic!("a chunk");
        };
        assert_eq!(which, (hash(b"snapshot"), 2));
        assert_eq!(found.map(|(digest, _)| digest), expected);
        assert_eq!(receive(&sent, customer()).unwrap_err(), Rejected::NotAMember);
    }
}

/// A snapshot whose height nobody proved decided is not even looked at.
#[test]
fn an_offer_without_a_proof_is_refused() {
    let manifest = quorate_types::Manifest {
        service: "noop".into(),
        header: Header { height: Height(8), state: hash(b"state"), ..Header::default() },
        operations: 9,
        chunks: vec![],
    };
    let offer = |manifest: &[u8], proof| {
        let manifest = Bytes::copy_from_slice(manifest);
        receive(&Message::Offer(Offer { manifest, proof }), MEMBER).unwrap_err()
    };
    let unproven = Rejected::RuleBroken("a snapshot comes with the block that it is of");
    assert_eq!(offer(&manifest.encode(), vec![]), unproven);
    assert!(matches!(offer(b"none", vec![]), Rejected::Malformed(_)));
    let torn = offer(&manifest.encode(), vec![Bytes::from_static(b"torn")]);
    assert!(matches!(torn, Rejected::Malformed(_)), "{torn}");
}

/// As much as a certificate of the largest committee can hold; its signatures are not real.
fn largest_certificate() -> AvailabilityCertificate {
    let one = |signer| Acknowledged {
        signer: ReplicaId(signer),
        count: 1_024,
        signature: identity(0).sign(b"anything"),
    };
    AvailabilityCertificate {
        author: ReplicaId(0),
        first: FIRST,
        before: hash(b""),
        bodies: vec![hash(b""); 1_024],
        acknowledged: (0..1_024).map(one).collect(),
    }
}

#[test]
fn an_acknowledgement_is_its_senders() {
    let message = Message::Acknowledgement(acknowledgement());
    let forged = Rejected::BadSignature("an identity signature");
    assert_eq!(receive(&message, Peer::Replica(ReplicaId(2))).unwrap_err(), forged);
    let mut further = acknowledgement();
    further.available.sequence += 1;
    assert_eq!(receive(&Message::Acknowledgement(further), MEMBER).unwrap_err(), forged);
}

#[test]
fn too_many_names_are_refused() {
    let names = vec![body(0, 1, 10).reference; NAMES_MAX + 1];
    let refused = Rejected::TooLarge("a list of bodies");
    for message in [Message::Announce(names.clone()), Message::FetchBodies(names)] {
        assert_eq!(receive(&message, MEMBER).unwrap_err(), refused);
    }
}

#[test]
fn as_many_names_as_a_list_may_have_are_taken() {
    let names = vec![body(0, 1, 10).reference; NAMES_MAX];
    for message in [Message::Announce(names.clone()), Message::FetchBodies(names)] {
        assert!(receive(&message, MEMBER).is_ok(), "{message:?}");
    }
}

/// What is certified already dies before any cryptography; what it does not reach is checked.
#[test]
fn what_is_certified_already_is_stale() {
    let verifier = verifier();
    let check = |message| Verified::<Incoming>::check(content(&message), MEMBER, &verifier).err();
    let given = acknowledgement();
    let end = given.available.sequence + 1;
    let forged = Acknowledgement { signature: identity(2).sign(b"anything"), ..given };
    let of = |certificate: AvailabilityCertificate| check(Message::Available(certificate));
    verifier.publish_certified(ReplicaId(1), end - 1);
    assert_eq!(check(Message::Acknowledgement(given)), None, "it says more");
    assert_eq!(of(certificate(&[0, 1])), None);
    verifier.publish_certified(ReplicaId(1), end);
    // Nothing that is known later takes back what is certified.
    verifier.publish_certified(ReplicaId(1), end - 1);
    assert_eq!(check(Message::Acknowledgement(given)), Some(Rejected::Stale));
    assert_eq!(check(Message::Acknowledgement(forged)), Some(Rejected::Stale), "nor looked at");
    assert_eq!(of(certificate(&[0, 1])), Some(Rejected::Stale));
    let others = acknowledge(0, 2, &[hash(b"a")]);
    assert_eq!(check(Message::Acknowledgement(others)), None, "another author's are its own");
}

/// A chain has a bound for its runs and one for its heights, each by itself.
#[test]
fn a_chain_of_too_much_is_refused() {
    let sound = chain(&[body(0, 1, 30)]);
    let runs = |count| Chain { blocks: vec![sound.blocks[0].clone(); count], ..sound.clone() };
    let heights = |count| Chain { heights: vec![Height(1); count], ..sound.clone() };
    let check = |chain| receive(&Message::Chain(chain), MEMBER).err();
    let members = committee().size();
    assert_eq!((check(runs(Chain::RUNS_MAX)), check(heights(members))), (None, None));
    let refused = Some(Rejected::TooLarge("a chain"));
    assert_eq!(check(runs(Chain::RUNS_MAX + 1)), refused);
    assert_eq!(check(heights(members + 1)), refused);
}

/// What was checked is remembered, the newest of it.
#[test]
fn the_oldest_of_what_was_checked_is_forgotten() {
    let digest = |number: usize| {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&(number as u64).to_le_bytes());
        Digest(bytes)
    };
    let mut recent = Recent::default();
    (0..Recent::MOST).for_each(|number| recent.insert(digest(number)));
    recent.insert(digest(0));
    let holds = |recent: &Recent, number| recent.digests.contains(&digest(number));
    assert!(holds(&recent, 0) && holds(&recent, Recent::MOST - 1), "all of them");
    recent.insert(digest(Recent::MOST));
    assert!(!holds(&recent, 0), "the first is the oldest, though it came twice");
    assert!(holds(&recent, 1) && holds(&recent, Recent::MOST));
    assert_eq!((recent.digests.len(), recent.order.len()), (Recent::MOST, Recent::MOST));
}

#[derive(Debug, Default)]
struct Prepared(Mutex<Vec<Bytes>>);

impl Preparation for Prepared {
    fn prepare(&self, operation: &Bytes) {
        self.0.lock().expect("nobody panics with it").push(operation.clone());
    }
}

/// The service gets the operations of requests that were checked, alone and in bodies, and none of
/// those that were refused.
#[test]
fn operations_of_checked_requests_are_prepared() {
    let prepared = Arc::new(Prepared::default());
    let verifier = verifier().with_preparation(Some(Arc::clone(&prepared) as Arc<dyn Preparation>));
    let check = |content, from| Verified::<Incoming>::check(content, from, &verifier).is_ok();
    let alone = content(&Message::Request(request(7, 30)));
    assert!(check(alone.clone(), customer()));
    assert!(check(content(&Message::Body(body(0, 1, 40))), MEMBER));
    let mut forged = alone.to_vec();
    *forged.last_mut().expect("it has bytes") ^= 1;
    assert!(!check(Bytes::from(forged), customer()));
    let found: Vec<usize> =
        prepared.0.lock().expect("nobody panics with it").iter().map(Bytes::len).collect();
    assert_eq!(found, [30, 40]);
}

/// Admits operations of 30 bytes, and queries of one.
#[derive(Debug)]
struct Thirty;

impl Admission for Thirty {
    fn judge(&self, operation: Operation<'_>) -> Result<(), String> {
        if operation.bytes.len() == 30 { Ok(()) } else { Err("ä".repeat(200)) }
    }

    fn judge_query(&self, _: ClientId, query: &[u8]) -> Result<(), String> {
        if query.len() == 1 { Ok(()) } else { Err("too long".to_owned()) }
    }
}

#[test]
fn a_client_gets_in_what_the_service_admits_and_members_bring_what_they_like() {
    let verifier = verifier().with_admission(Some(Arc::new(Thirty)));
    let check = |message: &Message, from| {
        Verified::<Incoming>::check(content(message), from, &verifier).map(Verified::into_inner)
    };
    let network = committee().network();
    let request = |sizes: &[usize]| {
        let operations: Vec<Bytes> = sizes.iter().map(|size| vec![1; *size].into()).collect();
        Message::Request(Request::sign(&client(), network, 7, &operations).expect("small"))
    };
    for admitted in [&[30][..], &[30, 29], &[29, 30]] {
        assert!(matches!(check(&request(admitted), customer()), Ok(Incoming::Request(_))));
    }
    let Ok(Incoming::NotAdmitted(refusal)) = check(&request(&[29, 31]), customer()) else {
        panic!("refused")
    };
    assert_eq!((refusal.sequence, refusal.reason), (7, "ä".repeat(128)));
    let query = |bytes: &'static [u8]| Message::Query(Query { id: 9, query: bytes.into() });
    assert!(matches!(check(&query(b"?"), customer()), Ok(Incoming::Query(_))));
    let Ok(Incoming::QueryResponse(refusal)) = check(&query(b"why?"), customer()) else {
        panic!("refused")
    };
    assert_eq!((refusal.id, refusal.result), (9, Err("too long".to_owned())));
    let ordered = check(&Message::Body(body(0, 1, 40)), MEMBER);
    assert!(matches!(ordered, Ok(Incoming::Body(_))), "it is judged when it is executed");
}

#[test]
fn bytes_after_a_message_are_refused() {
    for (name, from, message) in one_of_each() {
        let mut bytes = content(&message).to_vec();
        bytes.push(0);
        let found = Verified::<Incoming>::check(Bytes::from(bytes), from, &verifier());
        assert!(matches!(found, Err(Rejected::Malformed(_))), "{name}: {found:?}");
    }
}

fn check_never_panics(bytes: &[u8]) {
    let verifier = verifier();
    for from in [MEMBER, customer()] {
        let _ = Verified::<Incoming>::check(Bytes::copy_from_slice(bytes), from, &verifier);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn random_bytes_never_panic(
        tag in 0u8..20,
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut bytes = vec![tag];
        bytes.extend(rest);
        check_never_panics(&bytes);
    }

    #[test]
    fn damaged_messages_never_panic(
        which in 0usize..15,
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
        cut in any::<prop::sample::Index>(),
        cuts in any::<bool>(),
    ) {
        let mut bytes = content(&one_of_each()[which].2).to_vec();
        let index = at.index(bytes.len());
        bytes[index] = with;
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        check_never_panics(&bytes);
    }
}

/// No epoch begins under settings that nobody can run.
#[test]
fn a_change_to_settings_that_nobody_runs_is_refused() {
    let refusal = |settings: AgreedSettings| {
        let changed = signed_change_to(settings, 1, 9);
        verifier().check_change(encoded(&changed)).map(drop).map_err(|reason| reason.to_string())
    };
    let named = |protocol: &str| AgreedSettings { protocol: protocol.into(), ..Default::default() };
    assert_eq!(refusal(named("pbft")), Ok(()));
    let unknown = refusal(named("paxos")).expect_err("nobody runs that");
    assert!(unknown.starts_with("the next committee file: setting 'protocol': "), "{unknown}");
    let never = AgreedSettings { leader_tenure: 0, ..AgreedSettings::default() };
    let out_of_range = refusal(never).expect_err("no leader leads");
    assert!(out_of_range.contains("leader_tenure"), "{out_of_range}");
}
