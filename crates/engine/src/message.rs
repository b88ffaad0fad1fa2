//! Messages between replicas and clients, and their wire form.
//!
//! A frame on a connection is `length u32 (LE) ‖ tag u8 ‖ content`, where the length counts tag and
//! content. Each tag has a cap that the transport checks before it allocates ([`FrameTag::rules`]).
//! Bulk content is raw bytes behind a small typed header, so that a body is never copied to be
//! sent.

use crate::availability::{Acknowledgement, AvailabilityCertificate};
use crate::frames::FrameTag;
use crate::own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, Share};
use quorate_types::executed::{CertifiedReply, ExecutionCertificate};
use quorate_types::service::Proven;
use quorate_types::{
    BlockId, Body, BodyRef, HandOver, Height, Lane, Reply, Request, SignedHandOver,
};
use std::sync::Arc;

/// An outgoing message. Cloning shares bulk bytes.
#[derive(Clone, Debug)]
pub enum Message {
    /// A protocol's own message.
    Consensus(consensus::Message),
    /// A protocol's message with the bodies that it orders (the `inline_bodies` setting).
    Inline(consensus::Message, Vec<Arc<Body>>),
    /// A body from its author, or from whoever was asked for it.
    Body(Arc<Body>),
    /// Bodies that the sender stores and that are not yet decided: fetch what you lack.
    Announce(Vec<BodyRef>),
    /// Asks for bodies by name.
    FetchBodies(Vec<BodyRef>),
    /// Asks for the blocks after a decided one, towards a target.
    FetchBlocks(FetchBlocks),
    /// The answer: decided records in order, then undecided blocks up to the target.
    Blocks(Blocks),
    /// Chain that goes ahead of a protocol's message where chains travel (the `truncation`
    /// setting).
    Chain(Chain),
    /// Asks for the snapshots beyond a height.
    FetchSnapshots(Height),
    /// The answer, one message for each: what a snapshot is, and that its height is decided.
    Offer(Offer),
    /// Asks for a chunk of a snapshot, by the digest of its manifest.
    FetchChunk(Digest, u32),
    /// Chunk of a snapshot, in answer.
    Chunk(Chunk),
    /// Request of a client.
    Request(Request),
    /// A replica's answer to a client.
    Reply(Reply),
    /// A replica tells a client that it cannot take more now, and why.
    Busy(Busy),
    /// A replica tells a client that the service admits nothing of its request, and why.
    NotAdmitted(NotAdmitted),
    /// A client brings a signed change of committee, encoded. Members send one another the body.
    Change(Bytes),
    /// A replica has taken the change of this digest, or says why not.
    ChangeAnswer(Result<Digest, String>),
    /// A member acknowledges the receiver's bodies.
    Acknowledgement(Acknowledgement),
    /// An author's bodies are certified to be available.
    Available(AvailabilityCertificate),
    /// Asks an author for its last certificate and for the names of its bodies from this number on:
    /// the sender stores later ones and lacks that one.
    FetchAvailable(u64),
    /// A member's share over the root that a height came to; the signature is checked when shares
    /// are added up.
    ExecutionShare(Height, Digest, Share),
    /// A member's share over a state that may replace everything before it; likewise.
    CheckpointShare(Height, Digest, Share),
    /// A member's share over what the epoch ended with; likewise.
    HandOverShare(HandOver, Share),
    /// What the epoch ended with is certified.
    HandOver(SignedHandOver),
    /// A height's root is certified.
    ExecutionProof(ExecutionCertificate),
    /// Results of a client's request, with the proof.
    CertifiedReply(Box<CertifiedReply>),
    /// A client queries the state.
    Query(Query),
    /// The answer, with the certificate of the height that it is true of.
    QueryResponse(Box<QueryResponse>),
    /// A member asks the others for its own newest signatures.
    OwnQuestion(OwnQuestion),
    /// A member's newest signatures, in answer.
    OwnSignatures(OwnSignaturesAnswer),
}

/// Query of the state; it changes nothing and is not ordered.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Query {
    /// The client's number for it.
    pub id: u64,
    /// Query in the service's own words.
    pub query: Bytes,
}

/// Answer to a query, or a refusal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct QueryResponse {
    /// Number that the client gave it.
    pub id: u64,
    /// The answer and its proof under the state root of a certified height; or why there is none.
    pub result: Result<(Proven, ExecutionCertificate), String>,
}

/// Asks for the blocks after `height` (whose id is `after`), towards `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FetchBlocks {
    /// The asker's last decided height; or, for a fetch ahead, the height before the first asked
    /// for.
    pub height: Height,
    /// That height's block; `None` in a fetch ahead.
    pub after: Option<BlockId>,
    /// A certified block that the asker lacks.
    pub target: BlockId,
}

/// Blocks for a replica that fell behind; each verified by its link to a certified one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Blocks {
    /// Blocks that were asked for.
    pub request: FetchBlocks,
    /// Decided records, oldest first.
    pub decided: Vec<Bytes>,
    /// Undecided blocks, oldest first, the last one the target; empty while `decided` is not
    /// complete.
    pub tail: Vec<Bytes>,
    /// Heights that the sender has to offer at all.
    pub kept: Kept,
}

/// The blocks that the message behind it rests on, with their bodies. Nobody asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The heights that members have executed, as far as the sender knows; empty where all blocks
    /// are sent.
    pub heights: Vec<Height>,
    /// Of the block to which the undecided ones lead.
    pub certificate: Bytes,
    /// Decided blocks, then undecided ones, as if they had been asked for.
    pub blocks: Vec<Blocks>,
    /// Bodies that they name.
    pub bodies: Vec<Arc<Body>>,
}

impl Chain {
    /// Most runs of blocks in one.
    pub const RUNS_MAX: usize = 2;
}

/// The heights that a member keeps blocks and bodies of. A claim: it only decides what is asked
/// for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Kept {
    /// Lowest height that is kept.
    pub oldest: Height,
    /// The last decided one.
    pub newest: Height,
}

/// A snapshot that a member has.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Offer {
    /// The bytes of its [`quorate_types::Manifest`].
    pub manifest: Bytes,
    /// The decided records from its height on, up to one that its own certificate commits.
    pub proof: Vec<Bytes>,
}

/// A chunk of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The digest of the snapshot's manifest.
    pub snapshot: Digest,
    /// Index of the chunk, from 0.
    pub index: u32,
    /// Its bytes; none when the sender does not have it any more.
    pub bytes: Bytes,
}

/// Refusal of a request for lack of room.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Busy {
    /// Sequence number of the request.
    pub sequence: u64,
    /// Resource that is full, for people.
    pub reason: String,
}

impl Busy {
    /// Reason of a member that takes nothing new until its disk has room. Sessions know it by its
    /// text, which older ones show as they show any reason.
    pub const DISK_NEARLY_FULL: &str =
        "this member's disk is nearly full: it takes nothing new until there is room";

    /// Refusal of the request with this number for that reason.
    #[must_use]
    pub fn disk_nearly_full(sequence: u64) -> Self {
        Self { sequence, reason: Self::DISK_NEARLY_FULL.to_owned() }
    }

    /// Returns `true` if the disk is what is full.
    #[must_use]
    pub fn is_of_disk(&self) -> bool {
        self.reason == Self::DISK_NEARLY_FULL
    }
}

/// A request of which the service admits nothing. The member takes it from nobody.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NotAdmitted {
    /// Sequence number of the request.
    pub sequence: u64,
    /// Digest of the request: its number may be another's by the time that this arrives.
    pub request: Digest,
    /// The service's reason, of the first operation.
    pub reason: String,
}

/// Refusal of a client's request, query or change (tag and what follows) of which nothing is
/// checked; `None` for what is none of them.
#[must_use]
pub fn refuse_unchecked(content: &[u8], reason: &str) -> Option<Message> {
    let number = |at: usize| {
        let bytes = content.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    };
    let reason = reason.to_owned();
    match FrameTag::of(content)? {
        // After the tag and the client.
        FrameTag::Request => Some(Message::Busy(Busy { sequence: number(1 + 32)?, reason })),
        FrameTag::Query => {
            let refusal = QueryResponse { id: number(1)?, result: Err(reason) };
            Some(Message::QueryResponse(Box::new(refusal)))
        }
        FrameTag::Change => Some(Message::ChangeAnswer(Err(reason))),
        _ => None,
    }
}

/// An encoded frame, length prefix included, in pieces so that bulk bytes are not copied.
#[derive(Clone, Debug)]
pub struct Frame(pub Vec<Bytes>);

impl Frame {
    /// Its whole length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Never: a frame has a length prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Message {
    /// Encodes the message as a frame.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn frame(&self) -> Frame {
        let tag = self.tag();
        match self {
            Self::Consensus(message) => typed(tag, message, &[]),
            Self::Inline(message, bodies) => typed(tag, &(message, named(bodies)), &raw(bodies)),
            Self::Chain(chain) => {
                let Chain { heights, certificate, blocks, bodies } = chain;
                let head = (heights, &certificate[..], blocks, named(bodies));
                typed(tag, &head, &raw(&chain.bodies))
            }
            Self::Body(body) => typed(tag, &body.reference, std::slice::from_ref(&body.raw)),
            Self::Announce(names) => typed(tag, names, &[]),
            Self::FetchBodies(names) => typed(tag, names, &[]),
            Self::FetchBlocks(request) => typed(tag, request, &[]),
            Self::Blocks(blocks) => typed(tag, blocks, &[]),
            Self::FetchSnapshots(above) => typed(tag, above, &[]),
            Self::Offer(offer) => typed(tag, offer, &[]),
            Self::FetchChunk(snapshot, index) => typed(tag, &(snapshot, index), &[]),
            Self::Chunk(chunk) => {
                typed(tag, &(chunk.snapshot, chunk.index), std::slice::from_ref(&chunk.bytes))
            }
            Self::Request(request) => typed(tag, &(), std::slice::from_ref(request.raw())),
            Self::Reply(reply) => typed(tag, reply, &[]),
            Self::Busy(busy) => typed(tag, busy, &[]),
            Self::NotAdmitted(refusal) => typed(tag, refusal, &[]),
            Self::Change(raw) => typed(tag, &(), std::slice::from_ref(raw)),
            Self::ChangeAnswer(answer) => typed(tag, answer, &[]),
            Self::Acknowledgement(given) => typed(tag, given, &[]),
            Self::Available(certificate) => typed(tag, certificate, &[]),
            Self::FetchAvailable(next) => typed(tag, next, &[]),
            Self::ExecutionShare(height, root, share) => typed(tag, &(height, root, share), &[]),
            Self::CheckpointShare(height, root, share) => typed(tag, &(height, root, share), &[]),
            Self::HandOverShare(content, share) => typed(tag, &(content, share), &[]),
            Self::HandOver(signed) => typed(tag, signed, &[]),
            Self::ExecutionProof(certificate) => typed(tag, certificate, &[]),
            Self::CertifiedReply(reply) => typed(tag, reply, &[]),
            Self::Query(query) => typed(tag, query, &[]),
            Self::QueryResponse(answered) => typed(tag, answered, &[]),
            Self::OwnQuestion(question) => typed(tag, question, &[]),
            Self::OwnSignatures(answer) => typed(tag, answer, &[]),
        }
    }

    /// Lane that the message travels in: its protocol's choice, or that of its frames.
    ///
    /// # Panics
    /// Never: the table of frames has a lane for all others.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::Consensus(message) | Self::Inline(message, _) => message.lane(),
            other => other.tag().rules().lane.expect("the table has a lane for it"),
        }
    }

    /// Returns `true` if it must wait for the records persisted before it (★): all do but bodies
    /// and parts of snapshots. Blocks show certificates, and of those that were made here one's own
    /// share is among them.
    #[must_use]
    pub fn waits(&self) -> bool {
        let never = matches!(self, Self::Body(_) | Self::Chunk(_));
        let shown_early = mutants::active(Mutant::ShowBeforePersist) && self.lane() == Lane::Bulk;
        !never && !shown_early
    }

    /// Tag that its frame begins with.
    #[must_use]
    pub const fn tag(&self) -> FrameTag {
        match self {
            Self::Consensus(_) => FrameTag::Consensus,
            Self::Inline(..) => FrameTag::Inline,
            Self::Body(_) => FrameTag::Body,
            Self::Announce(_) => FrameTag::Announce,
            Self::FetchBodies(_) => FrameTag::FetchBodies,
            Self::FetchBlocks(_) => FrameTag::FetchBlocks,
            Self::Blocks(_) => FrameTag::Blocks,
            Self::Chain(_) => FrameTag::Chain,
            Self::FetchSnapshots(_) => FrameTag::FetchSnapshots,
            Self::Offer(_) => FrameTag::Offer,
            Self::FetchChunk(..) => FrameTag::FetchChunk,
            Self::Chunk(_) => FrameTag::Chunk,
            Self::Request(_) => FrameTag::Request,
            Self::Reply(_) => FrameTag::Reply,
            Self::Busy(_) => FrameTag::Busy,
            Self::NotAdmitted(_) => FrameTag::NotAdmitted,
            Self::Change(_) => FrameTag::Change,
            Self::ChangeAnswer(_) => FrameTag::ChangeAnswer,
            Self::Acknowledgement(_) => FrameTag::Acknowledgement,
            Self::Available(_) => FrameTag::Available,
            Self::FetchAvailable(_) => FrameTag::FetchAvailable,
            Self::ExecutionShare(..) => FrameTag::ExecutionShare,
            Self::CheckpointShare(..) => FrameTag::CheckpointShare,
            Self::HandOverShare(..) => FrameTag::HandOverShare,
            Self::HandOver(_) => FrameTag::HandOver,
            Self::ExecutionProof(_) => FrameTag::ExecutionProof,
            Self::CertifiedReply(_) => FrameTag::CertifiedReply,
            Self::Query(_) => FrameTag::Query,
            Self::QueryResponse(_) => FrameTag::QueryResponse,
            Self::OwnQuestion(_) => FrameTag::OwnQuestion,
            Self::OwnSignatures(_) => FrameTag::OwnSignatures,
        }
    }
}

fn named(bodies: &[Arc<Body>]) -> Vec<(BodyRef, u32)> {
    bodies.iter().map(|body| (body.reference, length(&body.raw))).collect()
}

fn raw(bodies: &[Arc<Body>]) -> Vec<Bytes> {
    bodies.iter().map(|body| body.raw.clone()).collect()
}

fn length(bytes: &Bytes) -> u32 {
    u32::try_from(bytes.len()).expect("bodies are limited to megabytes")
}

/// Bytes that a frame begins with room for: votes and short replies fit, and are moved to no larger
/// place while they are encoded.
const HEAD_BYTES: usize = 256;

fn typed(tag: FrameTag, header: &impl BorshSerialize, raw: &[Bytes]) -> Frame {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    head.extend([0, 0, 0, 0, tag.number()]);
    header.serialize(&mut head).expect("encoding into memory cannot fail");
    let total = head.len() - 4 + raw.iter().map(Bytes::len).sum::<usize>();
    head[..4].copy_from_slice(&u32::try_from(total).expect("frames are capped").to_le_bytes());
    let mut pieces = vec![Bytes::from(head)];
    pieces.extend(raw.iter().cloned());
    Frame(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_crypto::IdentitySecret;
    use quorate_types::NetworkId;

    fn content(message: &Message) -> Vec<u8> {
        message.frame().0.concat().split_off(4)
    }

    #[test]
    fn what_is_not_checked_is_refused_by_its_number() {
        let secret = IdentitySecret::from_seed([1; 32]);
        let operation = Bytes::from_static(b"op");
        let request = Request::sign(&secret, NetworkId([7; 32]), 77, &[operation]).expect("small");
        let sent = content(&Message::Request(request));
        let Some(Message::Busy(busy)) = refuse_unchecked(&sent, "no") else { panic!("busy") };
        assert_eq!(busy, Busy { sequence: 77, reason: "no".to_owned() });
        let query = Query { id: 78, query: Bytes::from_static(b"?") };
        let sent = content(&Message::Query(query));
        let Some(Message::QueryResponse(refusal)) = refuse_unchecked(&sent, "no") else {
            panic!("an answer")
        };
        assert_eq!((refusal.id, refusal.result), (78, Err("no".to_owned())));
        for content in [&b""[..], &[8; 20], &[9; 60], &[22, 1], &[99; 60]] {
            assert!(refuse_unchecked(content, "no").is_none(), "{content:?}");
        }
    }
}
