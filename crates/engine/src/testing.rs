//! Fixtures that the tests share: a committee with its keys, clients, requests and bodies.

pub(crate) mod history;
pub(crate) mod net;

use crate::availability::{Acknowledged, Acknowledgement, AvailabilityCertificate};
use crate::{Incoming, Message, ReplicaConfig, Settings, Verifier};
use bytes::Bytes;
use quorate_consensus::chained::{self, Block, Phase, Proposal, Qc};
use quorate_consensus::leader::LeaderReputation;
use quorate_crypto::merkle::Tree;
use quorate_crypto::{
    Bitmap, Certificate, Digest, IdentitySecret, KeyCache, KeyFile, Policy, SchemeKind, Share,
    VotingSecret, hash,
};
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::{
    AgreedSettings, Available, BlockId, Body, BodyRef, Change, Committee, CommitteeFile, Epoch,
    HandOver, HandedOver, Header, Height, History, Kind, Member, Payload, Peer, Purpose, Rejected,
    ReplicaId, Request, Results, SignedChange, SignedHandOver, Verified, View, sign,
};
use std::sync::Arc;

pub(crate) fn identity(member: u8) -> IdentitySecret {
    IdentitySecret::from_seed([member + 1; 32])
}

pub(crate) fn voting(member: u8) -> VotingSecret {
    VotingSecret::from_seed(SchemeKind::Ed25519, &[member + 101; 32])
}

pub(crate) fn committee() -> Arc<Committee> {
    weighted(&[1; 4])
}

pub(crate) fn weighted(weights: &[u64]) -> Arc<Committee> {
    with_redundancy(weights, 0)
}

pub(crate) fn with_redundancy(weights: &[u64], redundancy: u64) -> Arc<Committee> {
    let file = committee_file(weights, redundancy);
    Arc::new(Committee::load_simulated(&file, KeyCache::Off).expect("a good file"))
}

fn committee_file(weights: &[u64], redundancy: u64) -> CommitteeFile {
    let member = |(i, weight): (u8, &u64)| {
        let keys = KeyFile { identity: identity(i), voting: voting(i) };
        Member { weight: *weight, ..Member::new(&keys.public(), format!("member{i}:1")) }
    };
    CommitteeFile {
        name: "test".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..).zip(weights).map(member).collect(),
    }
}

/// Change to a committee of the same members that these heights may order: approved and accepted by
/// three of the four.
pub(crate) fn signed_change(not_before: u64, expires: u64) -> SignedChange {
    signed_change_to(AgreedSettings::default(), not_before, expires)
}

/// The same, to a committee of these settings.
pub(crate) fn signed_change_to(
    settings: AgreedSettings,
    not_before: u64,
    expires: u64,
) -> SignedChange {
    let ends = committee();
    let mut file = CommitteeFile { network: Some(ends.network()), ..committee_file(&[1; 4], 0) };
    (file.epoch, file.settings) = (ends.epoch().next(), settings);
    let (not_before, expires) = (Height(not_before), Height(expires));
    let change = Change { network: ends.network(), epoch: ends.epoch(), file, not_before, expires };
    let next = change.check(&ends).expect("a sound change");
    let id = |member: u8| ReplicaId(u16::from(member));
    let approve = |member| change.approve(&ends, id(member), &identity(member));
    let accept = |member| {
        let keys = (&identity(member), &voting(member));
        change.accept((&ends, &next), (id(member), Height(0)), keys)
    };
    let (approvals, acceptances) = ([0, 1, 2].map(approve), [0, 1, 2].map(accept));
    SignedChange { approvals: approvals.into(), acceptances: acceptances.into(), change }
}

pub(crate) fn encoded(change: &SignedChange) -> Bytes {
    borsh::to_vec(change).expect("encoding into memory cannot fail").into()
}

/// The change as members send it to one another.
pub(crate) fn change_body(change: &SignedChange) -> Arc<Body> {
    Arc::new(Body::of_change(encoded(change)).expect("it decodes").0)
}

/// Verifier that takes all frames, whatever the settings say.
pub(crate) fn verifier() -> Verifier {
    Verifier::for_client(committee())
}

/// A member's, in a committee of four.
pub(crate) fn config(member: u8, settings: Settings) -> ReplicaConfig {
    ReplicaConfig {
        id: ReplicaId(u16::from(member)),
        identity: Arc::new(identity(member)),
        voting: Arc::new(voting(member)),
        verifier: Arc::new(Verifier::new(committee(), &settings)),
        settings,
        wall_origin_ms: 1_700_000_000_000,
        signs: true,
        asks_witnesses: false,
    }
}

/// Vote of a member of Jolteon in a view, for the block with this number.
pub(crate) fn vote(member: u8, view: u64, block: u64) -> quorate_consensus::Message {
    let mut vote = chained::Vote {
        view: View(view),
        id: BlockId(quorate_crypto::hash(&block.to_le_bytes())),
        base_view: View(0),
        base_id: BlockId(Digest::ZERO),
        signer: ReplicaId(u16::from(member)),
        share: Share(Vec::new()),
    };
    let message = vote.message(verifier().consensus(), Phase::Prepare);
    vote.share = voting(member).sign(&message);
    quorate_consensus::Message::Jolteon(chained::Message::Vote(vote))
}

/// A height in which only this request took effect, with these results, as all members certify it.
pub(crate) fn certified(request: &Request, results: Results) -> CertifiedReply {
    let completion = Completion {
        client: request.client,
        sequence: request.sequence,
        request: request.digest(),
        results: results.digest(),
    };
    let tree = Tree::new(&[completion.leaf(Height(3), 0)]);
    let header = Header { height: Height(3), requests: tree.root(), ..Header::default() };
    let path = tree.path(0).expect("one leaf");
    CertifiedReply { completion, results, path, executed: certify_executed(header) }
}

/// Signed by all members.
pub(crate) fn certify_executed(header: Header) -> ExecutionCertificate {
    let certificate = sign_by_all(&header.statement(committee().scope()), Purpose::Execute);
    ExecutionCertificate { header, certificate }
}

/// An epoch's end.
pub(crate) fn hand_over() -> HandOver {
    let (stop, root) = (BlockId(hash(b"stop")), hash(b"root"));
    let file = signed_change(1, 9).change.file.digest();
    HandOver { height: Height(9), stop, root, file }
}

/// Signed by all members.
pub(crate) fn signed_hand_over(content: HandOver) -> SignedHandOver {
    let certificate = sign_by_all(&content.statement(committee().scope()), Purpose::HandOver);
    SignedHandOver { content, certificate }
}

/// History of [`committee`] and of the epoch after it, which has these members: all members handed
/// over to it at height 9.
pub(crate) fn history_to(members: &[u8]) -> History {
    let ended = committee();
    let mut file = committee_file(&[1; 16], 0);
    (file.network, file.epoch) = (Some(ended.network()), ended.epoch().next());
    file.members = members.iter().map(|id| file.members[usize::from(*id)].clone()).collect();
    let header = Header { height: Height(9), ..Header::default() };
    let (root, file_digest) = (header.root(), file.digest());
    let content = HandOver { root, file: file_digest, ..hand_over() };
    let step = HandedOver { signed: signed_hand_over(content), header, file };
    let mut history = History::new(ended);
    history.append(step, KeyCache::Off).expect("a sound step");
    history
}

fn sign_by_all(statement: &[u8], purpose: Purpose) -> Certificate {
    let (scheme, _) = committee().scheme(purpose);
    let shares: Vec<_> =
        (0..4u8).map(|member| (usize::from(member), voting(member).sign(statement))).collect();
    let combined = scheme.combine(statement, &shares, &Bitmap::new(4), Policy::Aggregate);
    combined.certificate.expect("good shares")
}

pub(crate) fn client() -> IdentitySecret {
    IdentitySecret::from_seed([200; 32])
}

pub(crate) fn request(sequence: u64, bytes: usize) -> Request {
    let operation = Bytes::from(vec![7; bytes]);
    Request::sign(&client(), committee().network(), sequence, &[operation]).expect("within limits")
}

pub(crate) fn body(author: u16, sequence: u64, bytes: usize) -> Arc<Body> {
    Arc::new(Body::seal(ReplicaId(author), sequence, &[request(sequence, bytes)]))
}

/// Replica 0's proposal for view 1 over these bodies.
pub(crate) fn proposal(bodies: Vec<BodyRef>) -> quorate_consensus::Message {
    proposal_of(Payload::new(Height(1), 0, bodies))
}

/// Replica 0's proposal for view 1 of this payload.
pub(crate) fn proposal_of(payload: Payload) -> quorate_consensus::Message {
    let genesis = verifier().consensus().genesis();
    let block = Block {
        epoch: committee().epoch_id(),
        view: View(1),
        author: ReplicaId(0),
        justify: Qc::genesis(genesis, 4),
        tc: None,
        reputation: LeaderReputation::new(),
        payload,
    };
    let id = quorate_consensus::block_tree::TreeBlock::id(&block);
    let statement = sign::statement(Kind::Propose, committee().scope(), &(View(1), id));
    let signature = identity(0).sign(&statement).0.to_vec();
    quorate_consensus::Message::Jolteon(chained::Message::Proposal(Proposal { block, signature }))
}

/// The message as its receiver gets it: framed, cut from the stream, checked.
pub(crate) fn receive(message: &Message, from: Peer) -> Result<Verified<Incoming>, Rejected> {
    Verified::check(content(message), from, &verifier())
}

/// A frame's content: what follows the length.
pub(crate) fn content(message: &Message) -> Bytes {
    let frame: Vec<u8> = message.frame().0.concat();
    let length = u32::from_le_bytes(frame[..4].try_into().expect("four bytes")) as usize;
    assert_eq!(length, frame.len() - 4, "the length counts tag and content");
    Bytes::from(frame).slice(4..)
}

/// The number of an author's first body since its first start.
pub(crate) const FIRST: u64 = 1 << Available::SEQUENCE_BITS;

/// Acknowledgement that a member signs for these first bodies of an author.
pub(crate) fn acknowledge(signer: u8, author: u16, bodies: &[Digest]) -> Acknowledgement {
    let author = ReplicaId(author);
    let link =
        (FIRST..).zip(bodies).fold(Available::start(author, FIRST), |link, (sequence, body)| {
            Available::link(link, sequence, *body)
        });
    let available = Available { author, sequence: FIRST + bodies.len() as u64 - 1, link };
    let statement = available.statement(committee().scope());
    Acknowledgement { available, signature: identity(signer).sign(&statement) }
}

/// A certificate that names these first bodies of an author, each signer acknowledging so many of
/// them.
pub(crate) fn certify(
    author: u16,
    bodies: &[Digest],
    signers: &[(u8, usize)],
) -> AvailabilityCertificate {
    let one = |(signer, count): &(u8, usize)| Acknowledged {
        signer: ReplicaId(u16::from(*signer)),
        count: u32::try_from(*count).expect("few"),
        signature: acknowledge(*signer, author, &bodies[..*count]).signature,
    };
    AvailabilityCertificate {
        author: ReplicaId(author),
        first: FIRST,
        before: Available::start(ReplicaId(author), FIRST),
        bodies: bodies.to_vec(),
        acknowledged: signers.iter().map(one).collect(),
    }
}
