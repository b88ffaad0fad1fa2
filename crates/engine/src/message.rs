//! What travels between replicas and clients, and its wire form.
//!
//! A frame on a connection is `length u32 (LE) ‖ tag u8 ‖ content`, where the length counts tag and
//! content. Each tag has a cap that the transport checks before it allocates ([`frame_bytes_max`]).
//! Bulk content is raw bytes behind a small typed header, so that a body is never copied to be sent.

use crate::ancestry::CHAIN_BYTES_MAX;
use crate::availability::{Acknowledgement, AvailabilityCertificate, certificate_bytes_max};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_crypto::{Digest, Share};
use quorate_types::executed::{CertifiedReply, ExecutionCertificate};
use quorate_types::service::Proven;
use quorate_types::{
    BlockId, Body, BodyRef, Committee, Height, Lane, Manifest, Payload, Reply, Request,
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
    /// What goes ahead of a protocol's message where chains travel (the `truncation` setting).
    Chain(Chain),
    /// Asks for the snapshots beyond a height.
    FetchSnapshots(Height),
    /// The answer, one message for each: what a snapshot is, and that its height is decided.
    Offer(Offer),
    /// Asks for a chunk of a snapshot, by the digest of its manifest.
    FetchChunk(Digest, u32),
    /// The answer.
    Chunk(Chunk),
    /// A client's request.
    Request(Request),
    /// A replica's answer to a client.
    Reply(Reply),
    /// A replica tells a client that it cannot take more now, and why.
    Busy(Busy),
    /// A member acknowledges the receiver's bodies.
    Acknowledgement(Acknowledgement),
    /// An author's bodies are certified to be available.
    Available(AvailabilityCertificate),
    /// Asks an author for its last certificate and for the names of its bodies from this number on: the
    /// sender stores later ones and lacks that one.
    FetchAvailable(u64),
    /// A member's share over the root that a height came to; the signature is checked when shares are
    /// added up.
    ExecutionShare(Height, Digest, Share),
    /// A member's share over a state that may replace everything before it; likewise.
    CheckpointShare(Height, Digest, Share),
    /// A height's root is certified.
    ExecutionProof(ExecutionCertificate),
    /// What a client's request came to, with the proof.
    CertifiedReply(Box<CertifiedReply>),
    /// A client asks about the state.
    Question(Question),
    /// The answer, with the certificate of the height that it is true of.
    Answered(Box<Answered>),
}

/// A question about the state; it changes nothing and is not ordered.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Question {
    /// The client's number for it.
    pub id: u64,
    /// In the service's own words.
    pub question: Bytes,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Answered {
    /// The question's number.
    pub id: u64,
    /// The answer and its proof under the state root of a certified height; or why there is none.
    pub result: Result<(Proven, ExecutionCertificate), String>,
}

/// Asks for the blocks after `height` (whose id is `after`), towards `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FetchBlocks {
    /// The asker's last decided height; or, for a question ahead, the height before the first asked
    /// for.
    pub height: Height,
    /// That height's block; `None` in a question ahead.
    pub after: Option<BlockId>,
    /// A certified block that the asker lacks.
    pub target: BlockId,
}

/// Blocks for a replica that fell behind; each verified by its link to a certified one.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Blocks {
    /// What was asked.
    pub request: FetchBlocks,
    /// Decided records, oldest first.
    pub decided: Vec<Bytes>,
    /// Undecided blocks, oldest first, the last one the target; empty while `decided` is not complete.
    pub tail: Vec<Bytes>,
    /// What the sender has to offer at all.
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

/// The heights that a member keeps blocks and bodies of. A claim: it only decides what is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Kept {
    /// The lowest one.
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
    /// Which chunk, from 0.
    pub index: u32,
    /// Its bytes; none when the sender does not have it any more.
    pub bytes: Bytes,
}

/// Why a request was not taken.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Busy {
    /// Which request.
    pub sequence: u64,
    /// What is full, for people.
    pub reason: String,
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

/// The first byte of a frame's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    Consensus = 1,
    Inline = 2,
    Body = 3,
    Announce = 4,
    FetchBodies = 5,
    FetchBlocks = 6,
    Blocks = 7,
    Request = 8,
    Reply = 9,
    Busy = 10,
    FetchSnapshots = 11,
    Offer = 12,
    FetchChunk = 13,
    Chunk = 14,
    Acknowledgement = 15,
    Available = 16,
    FetchAvailable = 17,
    Chain = 18,
    ExecutionShare = 19,
    ExecutionProof = 20,
    CertifiedReply = 21,
    Question = 22,
    Answered = 23,
    CheckpointShare = 24,
}

impl Tag {
    pub(crate) fn parse(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Consensus,
            2 => Self::Inline,
            3 => Self::Body,
            4 => Self::Announce,
            5 => Self::FetchBodies,
            6 => Self::FetchBlocks,
            7 => Self::Blocks,
            8 => Self::Request,
            9 => Self::Reply,
            10 => Self::Busy,
            11 => Self::FetchSnapshots,
            12 => Self::Offer,
            13 => Self::FetchChunk,
            14 => Self::Chunk,
            15 => Self::Acknowledgement,
            16 => Self::Available,
            17 => Self::FetchAvailable,
            18 => Self::Chain,
            19 => Self::ExecutionShare,
            20 => Self::ExecutionProof,
            21 => Self::CertifiedReply,
            22 => Self::Question,
            23 => Self::Answered,
            24 => Self::CheckpointShare,
            _ => return None,
        })
    }
}

/// Most bytes of a question, its number included.
const QUESTION_BYTES_MAX: usize = 8 * 1024;

/// Most names in one [`Message::Announce`] or [`Message::FetchBodies`].
pub const NAMES_MAX: usize = Payload::BODIES_MAX;

const MIB: usize = 1024 * 1024;

const CONSENSUS_BYTES_MAX: usize = 4 * MIB;

/// The most bytes that a frame with this tag may have, tag included, before anything is allocated;
/// `None` for a tag that does not exist.
#[must_use]
pub fn frame_bytes_max(tag: u8) -> Option<usize> {
    Some(match Tag::parse(tag)? {
        // A view change of 256 slots, each with Ed25519's certificate of 209 members.
        Tag::Consensus => CONSENSUS_BYTES_MAX,
        Tag::Inline => CONSENSUS_BYTES_MAX + Body::BYTES_MAX,
        Tag::Body => 64 + Body::BYTES_MAX,
        Tag::Announce | Tag::FetchBodies => 16 + NAMES_MAX * 42,
        Tag::FetchBlocks | Tag::FetchSnapshots | Tag::FetchChunk => 128,
        Tag::Blocks => 5 * MIB,
        // Decided blocks with their bodies, undecided ones, and the bodies of these.
        Tag::Chain => 3 * CHAIN_BYTES_MAX,
        // 64 decided records at most, and a manifest of 24,576 hashes.
        Tag::Offer => 6 * MIB,
        Tag::Chunk => 64 + Manifest::CHUNK_BYTES,
        Tag::Request => 1 + Request::WIRE_BYTES_MAX,
        Tag::Reply | Tag::CertifiedReply | Tag::Answered => MIB,
        Tag::ExecutionShare | Tag::CheckpointShare => 256,
        Tag::ExecutionProof => 256 + certificate_bytes_max(Committee::MEMBERS_MAX),
        Tag::Question => 1 + QUESTION_BYTES_MAX,
        Tag::Busy => 512,
        Tag::Acknowledgement | Tag::FetchAvailable => 128,
        Tag::Available => certificate_bytes_max(Committee::MEMBERS_MAX),
    })
}

impl Message {
    /// Encodes the message as a frame.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn frame(&self) -> Frame {
        match self {
            Self::Consensus(message) => typed(Tag::Consensus, message, &[]),
            Self::Inline(message, bodies) => {
                typed(Tag::Inline, &(message, named(bodies)), &raw(bodies))
            }
            Self::Chain(chain) => {
                let Chain { heights, certificate, blocks, bodies } = chain;
                let head = (heights, &certificate[..], blocks, named(bodies));
                typed(Tag::Chain, &head, &raw(&chain.bodies))
            }
            Self::Body(body) => typed(Tag::Body, &body.reference, std::slice::from_ref(&body.raw)),
            Self::Announce(names) => typed(Tag::Announce, names, &[]),
            Self::FetchBodies(names) => typed(Tag::FetchBodies, names, &[]),
            Self::FetchBlocks(request) => typed(Tag::FetchBlocks, request, &[]),
            Self::Blocks(blocks) => typed(Tag::Blocks, blocks, &[]),
            Self::FetchSnapshots(above) => typed(Tag::FetchSnapshots, above, &[]),
            Self::Offer(offer) => typed(Tag::Offer, offer, &[]),
            Self::FetchChunk(snapshot, index) => typed(Tag::FetchChunk, &(snapshot, index), &[]),
            Self::Chunk(chunk) => typed(
                Tag::Chunk,
                &(chunk.snapshot, chunk.index),
                std::slice::from_ref(&chunk.bytes),
            ),
            Self::Request(request) => typed(Tag::Request, &(), std::slice::from_ref(request.raw())),
            Self::Reply(reply) => typed(Tag::Reply, reply, &[]),
            Self::Busy(busy) => typed(Tag::Busy, busy, &[]),
            Self::Acknowledgement(given) => typed(Tag::Acknowledgement, given, &[]),
            Self::Available(certificate) => typed(Tag::Available, certificate, &[]),
            Self::FetchAvailable(next) => typed(Tag::FetchAvailable, next, &[]),
            Self::ExecutionShare(height, root, share) => {
                typed(Tag::ExecutionShare, &(height, root, share), &[])
            }
            Self::CheckpointShare(height, root, share) => {
                typed(Tag::CheckpointShare, &(height, root, share), &[])
            }
            Self::ExecutionProof(certificate) => typed(Tag::ExecutionProof, certificate, &[]),
            Self::CertifiedReply(reply) => typed(Tag::CertifiedReply, reply, &[]),
            Self::Question(question) => typed(Tag::Question, question, &[]),
            Self::Answered(answered) => typed(Tag::Answered, answered, &[]),
        }
    }

    /// The lane that it travels in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::Consensus(message) | Self::Inline(message, _) => message.lane(),
            Self::Chain(_)
            | Self::Announce(_)
            | Self::FetchBodies(_)
            | Self::FetchBlocks(_)
            | Self::FetchSnapshots(_)
            | Self::FetchChunk(..)
            | Self::Acknowledgement(_)
            | Self::Available(_)
            | Self::FetchAvailable(_)
            | Self::ExecutionShare(..)
            | Self::CheckpointShare(..)
            | Self::ExecutionProof(_) => Lane::Consensus,
            Self::Body(_) | Self::Blocks(_) | Self::Offer(_) | Self::Chunk(_) => Lane::Bulk,
            Self::Request(_)
            | Self::Reply(_)
            | Self::Busy(_)
            | Self::CertifiedReply(_)
            | Self::Question(_)
            | Self::Answered(_) => Lane::Client,
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

fn typed(tag: Tag, header: &impl BorshSerialize, raw: &[Bytes]) -> Frame {
    let mut head = vec![0, 0, 0, 0, tag as u8];
    header.serialize(&mut head).expect("encoding into memory cannot fail");
    let total = head.len() - 4 + raw.iter().map(Bytes::len).sum::<usize>();
    head[..4].copy_from_slice(&u32::try_from(total).expect("frames are capped").to_le_bytes());
    let mut pieces = vec![Bytes::from(head)];
    pieces.extend(raw.iter().cloned());
    Frame(pieces)
}
