//! Everything that is checked before a machine sees it: form, sender, limits, signatures.

use crate::EpochStart;
use crate::availability::{Acknowledgement, AvailabilityCertificate, Covered};
use crate::frames::{AllowedFrames, FrameTag, NAMES_MAX};
use crate::message::{
    Blocks, Busy, Chain, FetchBlocks, Kept, NotAdmitted, Offer, Query, QueryResponse,
};
use crate::own_signatures::question::{OwnQuestion, OwnSignaturesAnswer};
use crate::settings::Settings;
use crate::snapshots::Offered;
use borsh::BorshDeserialize;
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_crypto::{Digest, IdentityKey, SchemeKind, Share, Signature, hash, verify_batch};
use quorate_types::executed::{CertifiedReply, ExecutionCertificate};
use quorate_types::service::{Admission, Operation, Preparation, REASON_BYTES_MAX};
use quorate_types::{
    BlockId, Body, BodyRef, Change, ChangeError, Committee, CommitteeFile, HandOver, Height,
    Manifest, Peer, Rejected, ReplicaId, Reply, Request, SignedHandOver, Verified, Verify,
};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A decoded and checked message.
#[derive(Clone, Debug)]
pub enum Incoming {
    /// A protocol's own message.
    Consensus(Box<Verified<consensus::Message>>),
    /// A protocol's message with bodies.
    Inline(Box<Verified<consensus::Message>>, Vec<Arc<Body>>),
    /// A body whose requests are all signed and whose digest is its name.
    Body(Arc<Body>),
    /// Names of bodies that the sender stores.
    Announce(Vec<BodyRef>),
    /// Names of bodies that the sender lacks.
    FetchBodies(Vec<BodyRef>),
    /// A replica that fell behind.
    FetchBlocks(FetchBlocks),
    /// Blocks, linked to a certified one, what they answer, and what the sender keeps.
    Blocks(FetchBlocks, Kept, Box<consensus::VerifiedRun>),
    /// Blocks that nobody asked for, each run with the block that it leads to, and their bodies.
    Chain(Vec<Height>, Vec<(BlockId, Box<consensus::VerifiedRun>)>, Vec<Arc<Body>>),
    /// A replica that asks for the snapshots beyond this height.
    FetchSnapshots(Height),
    /// A snapshot of a decided height.
    Offer(Box<Offered>),
    /// A replica that asks for a chunk.
    FetchChunk(Digest, u32),
    /// A chunk with the hash of its bytes; without any when the sender does not have it.
    Chunk((Digest, u32), Option<(Digest, Bytes)>),
    /// A client's signed request.
    Request(Request),
    /// A replica's signed answer (checked by clients).
    Reply(Reply),
    /// A replica that cannot take more.
    Busy(Busy),
    /// A request of which the service admits nothing: to a client a member's word, to a member its
    /// own service's.
    NotAdmitted(NotAdmitted),
    /// A change of committee that is good but for the height that orders it.
    Change(Box<CheckedChange>),
    /// A change that a client brought and that breaks this rule.
    BadChange(String),
    /// A member's word about a change (checked by nobody).
    ChangeAnswer(Result<Digest, String>),
    /// A member's signed acknowledgement of bodies.
    Acknowledgement(Acknowledgement),
    /// Bodies that are certified to be available.
    Available(Box<Covered>),
    /// A member that lacks the receiver's body with this number.
    FetchAvailable(u64),
    /// A member's share over what a height came to, unchecked.
    ExecutionShare(Height, Digest, Share),
    /// A member's share over a checkpoint, unchecked.
    CheckpointShare(Height, Digest, Share),
    /// A member's share over what the epoch ended with, unchecked.
    HandOverShare(HandOver, Share),
    /// What the epoch ended with, certified.
    HandOver(Box<SignedHandOver>),
    /// Certified root of an executed height.
    ExecutionProof(Box<ExecutionCertificate>),
    /// Results of a client's request, certified (checked by clients).
    CertifiedReply(Box<CertifiedReply>),
    /// A client's query of the state.
    Query(Query),
    /// An answer to one; its certificate is checked, its proof is for whoever knows the service. To
    /// a member, what its own service refuses.
    QueryResponse(Box<QueryResponse>),
    /// A member's question after its own newest signatures.
    OwnQuestion(OwnQuestion),
    /// The newest signatures of a member, each of which it made.
    OwnSignatures(Box<OwnSignaturesAnswer>),
}

/// A change of committee whose every rule but its heights was checked.
#[derive(Clone, Debug)]
pub struct CheckedChange {
    pub(crate) body: Arc<Body>,
    pub(crate) change: Change,
}

/// A host's judgement of the committee file that a change would put in force (★): settings that the
/// machine knows nothing of, under which no host would start.
pub trait NextFileCheck: fmt::Debug + Send + Sync {
    /// Checks the file of the next epoch.
    ///
    /// # Errors
    /// In words, the first setting that is refused.
    fn check(&self, next: &CommitteeFile) -> Result<(), String>;
}

/// Context of the checks, shared by the pool's threads.
#[derive(Debug)]
pub struct Verifier {
    consensus: Arc<consensus::Verifier>,
    /// How the epoch began.
    start: EpochStart,
    /// [`Settings::certified_every`].
    certified_every: u64,
    /// Frames that are looked at; others are refused by their tags.
    allowed: AllowedFrames,
    /// By author: the number after the last body that is certified.
    certified: Vec<AtomicU64>,
    /// Bodies that came with a chain not long ago: where chains travel each comes again and again.
    seen: Mutex<Recent>,
    /// Execution certificates that were checked: many acknowledgements carry the same one.
    executed: Mutex<Recent>,
    /// Roots of replies that were checked, each with its signer: replies of a height share one.
    replies: Mutex<Recent>,
    /// Changes of committee that were checked, with their signatures.
    changes: Mutex<Recent>,
    /// Hand-overs that were checked: whoever has one answers shares with it.
    hand_overs: Mutex<Recent>,
    /// What the host asks of the next epoch's file.
    next_file_check: Option<Arc<dyn NextFileCheck>>,
    /// Work of the service on operations before they are ordered.
    preparation: Option<Arc<dyn Preparation>>,
    /// The service's judgement of what clients send, where it is asked ahead of the order.
    admission: Option<Arc<dyn Admission>>,
}

/// The digests of what was checked, the oldest forgotten first.
#[derive(Debug, Default)]
struct Recent {
    digests: BTreeSet<Digest>,
    order: VecDeque<Digest>,
}

impl Recent {
    /// Most digests that are remembered.
    const MOST: usize = 65_536;

    fn insert(&mut self, digest: Digest) {
        if self.digests.insert(digest) {
            self.order.push_back(digest);
        }
        if self.order.len() > Self::MOST {
            let oldest = self.order.pop_front().expect("there are many");
            self.digests.remove(&oldest);
        }
    }
}

impl Verifier {
    /// Verifier of a replica with these settings. Frames that nobody sends whose settings are the
    /// same are refused before anything of them is decoded.
    #[must_use]
    pub fn new(committee: Arc<Committee>, settings: &Settings) -> Self {
        Self::starting(committee, settings, EpochStart::default())
    }

    /// As [`Verifier::new`], in an epoch that began so.
    #[must_use]
    pub fn starting(committee: Arc<Committee>, settings: &Settings, start: EpochStart) -> Self {
        let (protocol, proposal_key) = (settings.protocol, settings.comparison.proposal_key);
        let consensus = consensus::Verifier::new(committee, protocol, proposal_key);
        let consensus = consensus.starting_after(start.anchor());
        let certified_every = settings.certified_every();
        Self { start, certified_every, ..Self::with(consensus, AllowedFrames::by(settings)) }
    }

    /// Verifier of a client, which need not know its committee's settings: it takes any answer, and
    /// neither protocol nor keys of proposals have a part in those.
    #[must_use]
    pub fn for_client(committee: Arc<Committee>) -> Self {
        let Settings { protocol, comparison, .. } = Settings::default();
        let consensus = consensus::Verifier::new(committee, protocol, comparison.proposal_key);
        Self::with(consensus, AllowedFrames::all())
    }

    fn with(consensus: consensus::Verifier, allowed: AllowedFrames) -> Self {
        let certified = consensus.committee().members().map(|_| AtomicU64::new(0)).collect();
        let [seen, executed, replies, changes, hand_overs] = Default::default();
        let consensus = Arc::new(consensus);
        let (preparation, admission, next_file_check) = (None, None, None);
        Self {
            consensus,
            start: EpochStart::default(),
            certified_every: 1,
            allowed,
            certified,
            seen,
            executed,
            replies,
            changes,
            hand_overs,
            next_file_check,
            preparation,
            admission,
        }
    }

    /// Has the operations of checked requests prepared for their execution.
    #[must_use]
    pub fn with_preparation(mut self, preparation: Option<Arc<dyn Preparation>>) -> Self {
        self.preparation = preparation;
        self
    }

    /// Asks the host of a next epoch's file what the machine knows nothing of.
    #[must_use]
    pub fn with_next_file_check(mut self, check: Arc<dyn NextFileCheck>) -> Self {
        self.next_file_check = Some(check);
        self
    }

    /// Asks this service before it lets a client's request or query through.
    #[must_use]
    pub fn with_admission(mut self, admission: Option<Arc<dyn Admission>>) -> Self {
        self.admission = admission;
        self
    }

    /// Refuses a request of which the service admits nothing. Of one that carries something else
    /// besides, the operations are refused one by one when they are executed.
    fn admit(&self, request: &Request) -> Result<(), NotAdmitted> {
        let Some(admission) = &self.admission else { return Ok(()) };
        let (client, sequence) = (request.client, request.sequence);
        let judge = |bytes| admission.judge(Operation { client, bytes });
        let mut verdicts = request.operations.iter().map(judge);
        let first = verdicts.next().expect("a request carries an operation");
        match first {
            Err(reason) if !verdicts.any(|verdict| verdict.is_ok()) => {
                let (request, reason) = (request.digest(), shortened(reason));
                Err(NotAdmitted { sequence, request, reason })
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self, requests: &[Request]) {
        let Some(preparation) = &self.preparation else { return };
        for operation in requests.iter().flat_map(|request| &request.operations) {
            preparation.prepare(operation);
        }
    }

    /// As [`parse_body`], but signatures in a body that was seen before are not checked again: its
    /// digest covers them.
    fn parse_again(&self, reference: BodyRef, raw: Bytes) -> Result<Arc<Body>, Rejected> {
        let seen = || self.seen.lock().expect("nobody panics with it");
        if seen().digests.contains(&reference.digest) {
            check_author(reference, self.committee())?;
            return Body::parse(reference, raw).map(Arc::new).map_err(malformed);
        }
        let body = parse_body(reference, raw, self)?;
        seen().insert(reference.digest);
        Ok(body)
    }

    /// Committee whose messages are checked.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        self.consensus.committee()
    }

    /// How the epoch began.
    #[must_use]
    pub fn start(&self) -> &EpochStart {
        &self.start
    }

    /// Verifier of the protocols' messages.
    #[must_use]
    pub fn consensus(&self) -> &Arc<consensus::Verifier> {
        &self.consensus
    }

    /// Checks an execution certificate, each once. Other signers over the same header are checked
    /// too: what is passed on is what was checked.
    fn check_executed(&self, certificate: &ExecutionCertificate) -> Result<(), Rejected> {
        let digest = hash(&borsh::to_vec(certificate).expect("encoding into memory cannot fail"));
        once(&self.executed, digest, || certificate.check(self.committee()))
    }

    /// Checks the signature of a reply, once for all that were signed with it.
    fn check_signed_replies(&self, reply: &Reply) -> Result<(), Rejected> {
        let statement = reply.statement(self.committee().scope());
        let said = statement.ok_or(Rejected::RuleBroken("a reply's path leads to a root"))?;
        let digest =
            hash(&[&reply.replica.0.to_le_bytes(), &said[..], &reply.signature.0].concat());
        let check = || self.consensus.verify_identity(reply.replica, &said, &reply.signature);
        once(&self.replies, digest, check)
    }

    /// Checks what the epoch ended with, each once with the same signatures.
    fn check_hand_over(&self, signed: &SignedHandOver) -> Result<(), Rejected> {
        let digest = hash(&borsh::to_vec(signed).expect("encoding into memory cannot fail"));
        once(&self.hand_overs, digest, || signed.check(self.committee()))
    }

    /// ★ Checks a change of committee, each once with the same signatures.
    pub(crate) fn check_change(&self, raw: Bytes) -> Result<CheckedChange, ChangeError> {
        let (body, signed) = Body::of_change(raw)?;
        once(&self.changes, hash(&body.raw), || {
            let next = signed.check(self.committee())?;
            check_next_settings(&signed.change.file, &next)?;
            let check = self.next_file_check.as_ref();
            let checked = check.map_or(Ok(()), |check| check.check(&signed.change.file));
            checked.map_err(ChangeError::Settings)
        })?;
        Ok(CheckedChange { body: Arc::new(body), change: signed.change })
    }

    /// The number after the author's last certified body, as far as the machine published it:
    /// acknowledgements and certificates of less die before any cryptography.
    pub(crate) fn certified(&self, author: ReplicaId) -> u64 {
        self.certified.get(author.index()).map_or(u64::MAX, |end| end.load(Ordering::Acquire))
    }

    /// The machine knows a certificate of everything before `end`.
    pub(crate) fn publish_certified(&self, author: ReplicaId, end: u64) {
        if let Some(certified) = self.certified.get(author.index()) {
            certified.fetch_max(end, Ordering::AcqRel);
        }
    }
}

/// Checks what has this digest unless it was good before.
fn once<E>(
    checked: &Mutex<Recent>,
    digest: Digest,
    check: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let checked = || checked.lock().expect("nobody panics with it");
    if !checked().digests.contains(&digest) {
        check()?;
        checked().insert(digest);
    }
    Ok(())
}

impl Verify for Incoming {
    /// A frame's content: tag and what follows, without the length prefix.
    type Raw = Bytes;
    type Verifier = Verifier;

    fn verify(raw: Bytes, from: Peer, verifier: &Verifier) -> Result<Self, Rejected> {
        let tag = FrameTag::of(&raw).ok_or_else(|| Rejected::Malformed("unknown tag".into()))?;
        verifier.allowed.check(tag)?;
        let content = raw.slice(1..);
        match tag {
            FrameTag::Request => check_request(&content, from, verifier),
            FrameTag::Reply => check_reply(decode(&content)?, from, verifier),
            FrameTag::Busy => from_member(from, Self::Busy(decode(&content)?)),
            FrameTag::NotAdmitted => from_member(from, Self::NotAdmitted(decode(&content)?)),
            FrameTag::Change => check_change(content, from, verifier),
            FrameTag::ChangeAnswer => from_member(from, Self::ChangeAnswer(decode(&content)?)),
            FrameTag::HandOverShare => check_hand_over_share(&content, from),
            FrameTag::HandOver => check_hand_over(&content, from, verifier),
            FrameTag::Consensus => {
                from.replica()?;
                let message =
                    Verified::check(decode(&content)?, from, verifier.consensus.as_ref())?;
                Ok(Self::Consensus(Box::new(message)))
            }
            FrameTag::Inline => check_inline(&content, from, verifier),
            FrameTag::Body => check_body(&content, from, verifier),
            FrameTag::Announce => {
                from_member(from, Self::Announce(check_names(decode(&content)?, verifier)?))
            }
            FrameTag::FetchBodies => {
                from_follower(from, Self::FetchBodies(check_names(decode(&content)?, verifier)?))
            }
            FrameTag::FetchBlocks => from_follower(from, Self::FetchBlocks(decode(&content)?)),
            FrameTag::Blocks => check_blocks(&decode(&content)?, from, verifier),
            FrameTag::FetchSnapshots => {
                from_follower(from, Self::FetchSnapshots(decode(&content)?))
            }
            FrameTag::Chain => check_chain(&content, from, verifier),
            FrameTag::Offer => check_offer(&decode(&content)?, from, verifier),
            FrameTag::FetchChunk => {
                let (snapshot, index) = decode(&content)?;
                from_follower(from, Self::FetchChunk(snapshot, index))
            }
            FrameTag::Chunk => {
                let (which, bytes) = decode_header(&content)?;
                let there = (!bytes.is_empty()).then(|| (hash(&bytes), bytes));
                from_member(from, Self::Chunk(which, there))
            }
            FrameTag::Acknowledgement => check_acknowledgement(decode(&content)?, from, verifier),
            FrameTag::Available => check_available(&content, from, verifier),
            FrameTag::FetchAvailable => from_member(from, Self::FetchAvailable(decode(&content)?)),
            FrameTag::ExecutionShare => {
                let (height, root, share) = decode(&content)?;
                from_member(from, Self::ExecutionShare(height, root, share))
            }
            FrameTag::CheckpointShare => {
                let (height, root, share) = decode(&content)?;
                from_member(from, Self::CheckpointShare(height, root, share))
            }
            FrameTag::ExecutionProof => check_execution_proof(&content, from, verifier),
            FrameTag::CertifiedReply => check_certified_reply(&content, from, verifier),
            FrameTag::Query => check_query(&content, from, verifier),
            FrameTag::QueryResponse => check_query_response(&content, from, verifier),
            FrameTag::OwnQuestion => {
                let question: OwnQuestion = decode(&content)?;
                question.check(from.replica()?, verifier.consensus())?;
                Ok(Self::OwnQuestion(question))
            }
            FrameTag::OwnSignatures => check_own_signatures(&content, from, verifier),
        }
    }
}

fn decode<T: BorshDeserialize>(content: &[u8]) -> Result<T, Rejected> {
    borsh::from_slice(content).map_err(|reason| Rejected::Malformed(reason.to_string()))
}

/// Decodes what starts the content; returns it and the raw bytes behind it.
fn decode_header<T: BorshDeserialize>(content: &Bytes) -> Result<(T, Bytes), Rejected> {
    let mut rest = content.as_ref();
    let header =
        T::deserialize(&mut rest).map_err(|reason| Rejected::Malformed(reason.to_string()))?;
    Ok((header, content.slice(content.len() - rest.len()..)))
}

fn from_member(from: Peer, message: Incoming) -> Result<Incoming, Rejected> {
    from.replica().map(|_| message)
}

fn from_follower(from: Peer, message: Incoming) -> Result<Incoming, Rejected> {
    from.follower().map(|()| message)
}

fn check_names(names: Vec<BodyRef>, verifier: &Verifier) -> Result<Vec<BodyRef>, Rejected> {
    if names.len() > NAMES_MAX {
        return Err(Rejected::TooLarge("a list of bodies"));
    }
    let mut sealed = names.iter().filter(|name| !name.is_change());
    sealed.try_for_each(|name| check_author(*name, verifier.committee()))?;
    Ok(names)
}

/// Refuses a body of no member: what is kept of bodies is bounded for each author.
fn check_author(name: BodyRef, committee: &Committee) -> Result<(), Rejected> {
    let is_member = committee.contains(name.author);
    is_member.then_some(()).ok_or(Rejected::RuleBroken("a body's author is a member"))
}

fn check_inline(content: &Bytes, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let ((message, named), rest): ((consensus::Message, Vec<(BodyRef, u32)>), Bytes) =
        decode_header(content)?;
    let names = named.iter().map(|(name, _)| name);
    if !message.proposed_bodies().is_some_and(|proposed| proposed.iter().eq(names)) {
        return Err(Rejected::RuleBroken("inline bodies are those that their proposal names"));
    }
    let message = Verified::check(message, from, verifier.consensus.as_ref())?;
    let parse = |reference, raw| parse_body(reference, raw, verifier);
    let bodies = check_carried(named, rest, parse)?;
    Ok(Incoming::Inline(Box::new(message), bodies))
}

fn check_chain(content: &Bytes, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    type Head = (Vec<Height>, Bytes, Vec<Blocks>, Vec<(BodyRef, u32)>);
    from.replica()?;
    let ((heights, certificate, blocks, named), rest): (Head, Bytes) = decode_header(content)?;
    if blocks.len() > Chain::RUNS_MAX || heights.len() > verifier.committee().size() {
        return Err(Rejected::TooLarge("a chain"));
    }
    let run = |blocks: &Blocks| {
        let target = blocks.request.target;
        // What was asked for says where it follows; here the sender would say so about itself.
        if !blocks.decided.is_empty() && blocks.request.after.is_some() {
            return Err(Rejected::RuleBroken("a chain's decided blocks follow nothing"));
        }
        if !blocks.tail.is_empty() {
            consensus::check_certified(target, &certificate, verifier.consensus())?;
        }
        Ok((target, Box::new(check_run(blocks, verifier)?)))
    };
    let runs = blocks.iter().map(run).collect::<Result<_, _>>()?;
    let bodies = check_carried(named, rest, |reference, raw| verifier.parse_again(reference, raw))?;
    Ok(Incoming::Chain(heights, runs, bodies))
}

/// Bodies behind a header that says how long each is.
fn check_carried(
    named: Vec<(BodyRef, u32)>,
    mut rest: Bytes,
    parse: impl Fn(BodyRef, Bytes) -> Result<Arc<Body>, Rejected>,
) -> Result<Vec<Arc<Body>>, Rejected> {
    let total: usize = named.iter().map(|(_, length)| *length as usize).sum();
    if total != rest.len() {
        return Err(Rejected::Malformed("the bodies' lengths do not add up".into()));
    }
    let split =
        |(reference, length): (BodyRef, u32)| parse(reference, rest.split_to(length as usize));
    named.into_iter().map(split).collect()
}

fn check_body(content: &Bytes, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let (reference, raw): (BodyRef, Bytes) = decode_header(content)?;
    if reference.is_change() {
        let checked = verifier.check_change(raw).map_err(malformed)?;
        if checked.body.reference != reference {
            return Err(Rejected::RuleBroken("a change's name is its digest"));
        }
        return Ok(Incoming::Change(Box::new(checked)));
    }
    parse_body(reference, raw, verifier).map(Incoming::Body)
}

/// A body is taken only whole: its name is its hash, its author a member, and every request in it
/// is signed by its client.
fn parse_body(reference: BodyRef, raw: Bytes, verifier: &Verifier) -> Result<Arc<Body>, Rejected> {
    let committee = verifier.committee();
    check_author(reference, committee)?;
    let body = Body::parse(reference, raw).map_err(malformed)?;
    let statements: Vec<Vec<u8>> =
        body.requests.iter().map(|r| r.statement(committee.network())).collect();
    let items: Vec<(IdentityKey, &[u8], Signature)> = body
        .requests
        .iter()
        .zip(&statements)
        .map(|(request, statement)| (request.client.0, statement.as_slice(), request.signature()))
        .collect();
    verify_batch(&items).map_err(|_| Rejected::BadSignature("a request inside a body"))?;
    verifier.prepare(&body.requests);
    Ok(Arc::new(body))
}

fn malformed(reason: impl std::fmt::Display) -> Rejected {
    Rejected::Malformed(reason.to_string())
}

fn check_request(content: &Bytes, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    let (request, rest) = Request::split_from(content).map_err(malformed)?;
    if !rest.is_empty() {
        return Err(malformed("bytes after the request"));
    }
    if from != Peer::Client(request.client) {
        return Err(Rejected::ForeignSender);
    }
    let statement = request.statement(verifier.committee().network());
    request
        .client
        .0
        .verify(&statement, &request.signature())
        .map_err(|_| Rejected::BadSignature("the request's signature"))?;
    if let Err(refusal) = verifier.admit(&request) {
        return Ok(Incoming::NotAdmitted(refusal));
    }
    verifier.prepare(std::slice::from_ref(&request));
    Ok(Incoming::Request(request))
}

/// Refuses a next committee file under whose settings members could not run: an epoch that begins
/// with it would be the end of the service. `next` is the committee that the file makes. Settings
/// of services and clients are the host's, and are not looked at.
///
/// # Errors
/// [`ChangeError::Settings`] with the first setting that is refused.
pub fn check_next_settings(file: &CommitteeFile, next: &Committee) -> Result<(), ChangeError> {
    let refused = |reason: &dyn std::fmt::Display| ChangeError::Settings(reason.to_string());
    let mut settings = Settings::default();
    settings.agree(&file.settings).map_err(|reason| refused(&reason))?;
    settings.validate().map_err(|reason| refused(&reason))?;
    let scheme: SchemeKind = file.scheme.parse().map_err(|reason| refused(&reason))?;
    let fits = settings.protocol.check_committee(next.weights(), scheme);
    fits.map_err(|reason| refused(&reason))
}

/// Whoever brings a change hears which rule it breaks.
fn check_change(content: Bytes, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    let Peer::Client(_) = from else { return Err(Rejected::ForeignSender) };
    match verifier.check_change(content) {
        Ok(checked) => Ok(Incoming::Change(Box::new(checked))),
        Err(broken @ ChangeError::Malformed(_)) => Err(malformed(broken)),
        Err(broken) => Ok(Incoming::BadChange(shortened(broken.to_string()))),
    }
}

fn check_own_signatures(
    content: &[u8],
    from: Peer,
    verifier: &Verifier,
) -> Result<Incoming, Rejected> {
    from.replica()?;
    let answer: Box<OwnSignaturesAnswer> = decode(content)?;
    answer.check(verifier.consensus())?;
    Ok(Incoming::OwnSignatures(answer))
}

fn check_hand_over_share(content: &[u8], from: Peer) -> Result<Incoming, Rejected> {
    let (stated, share) = decode(content)?;
    from_member(from, Incoming::HandOverShare(stated, share))
}

fn check_hand_over(content: &[u8], from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let signed: Box<SignedHandOver> = decode(content)?;
    verifier.check_hand_over(&signed)?;
    Ok(Incoming::HandOver(signed))
}

fn check_query(content: &[u8], from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    let Peer::Client(client) = from else { return Err(Rejected::ForeignSender) };
    let query: Query = decode(content)?;
    let judge = |admission: &Arc<dyn Admission>| admission.judge_query(client, &query.query);
    match verifier.admission.as_ref().map_or(Ok(()), judge) {
        Ok(()) => Ok(Incoming::Query(query)),
        Err(reason) => {
            let refusal = QueryResponse { id: query.id, result: Err(shortened(reason)) };
            Ok(Incoming::QueryResponse(Box::new(refusal)))
        }
    }
}

/// The beginning of a reason, as much as a frame has room for.
fn shortened(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}

fn check_reply(reply: Reply, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    if from.replica()? != reply.replica {
        return Err(Rejected::ForeignSender);
    }
    if !reply.is_consistent() {
        return Err(Rejected::RuleBroken("a reply's digest is that of its results"));
    }
    verifier.check_signed_replies(&reply)?;
    Ok(Incoming::Reply(reply))
}

fn check_acknowledgement(
    given: Acknowledgement,
    from: Peer,
    verifier: &Verifier,
) -> Result<Incoming, Rejected> {
    let signer = from.replica()?;
    let (available, committee) = (given.available, verifier.committee());
    if !committee.contains(available.author) {
        return Err(Rejected::NotAMember);
    }
    if available.sequence < verifier.certified(available.author) {
        return Err(Rejected::Stale);
    }
    let statement = available.statement(committee.scope());
    verifier.consensus().verify_identity(signer, &statement, &given.signature)?;
    Ok(Incoming::Acknowledgement(given))
}

fn check_available(content: &[u8], from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let certificate: AvailabilityCertificate = decode(content)?;
    let known = verifier.certified(certificate.author);
    let covered = certificate.check(verifier.committee(), known)?;
    Ok(Incoming::Available(Box::new(covered)))
}

fn check_execution_proof(
    content: &[u8],
    from: Peer,
    verifier: &Verifier,
) -> Result<Incoming, Rejected> {
    from.replica()?;
    let certificate: Box<ExecutionCertificate> = decode(content)?;
    // Before the signatures, which cost their sender nothing where nobody asked for them.
    if !certificate.header.height.0.is_multiple_of(verifier.certified_every) {
        return Err(Rejected::RuleBroken("members certify no such height"));
    }
    verifier.check_executed(&certificate)?;
    Ok(Incoming::ExecutionProof(certificate))
}

fn check_certified_reply(
    content: &[u8],
    from: Peer,
    verifier: &Verifier,
) -> Result<Incoming, Rejected> {
    from.replica()?;
    let reply: Box<CertifiedReply> = decode(content)?;
    reply.check_path()?;
    verifier.check_executed(&reply.executed)?;
    Ok(Incoming::CertifiedReply(reply))
}

fn check_query_response(
    content: &[u8],
    from: Peer,
    verifier: &Verifier,
) -> Result<Incoming, Rejected> {
    from.replica()?;
    let answered: Box<QueryResponse> = decode(content)?;
    if let Ok((_, certificate)) = &answered.result {
        verifier.check_executed(certificate)?;
    }
    Ok(Incoming::QueryResponse(answered))
}

fn check_blocks(blocks: &Blocks, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let run = check_run(blocks, verifier)?;
    Ok(Incoming::Blocks(blocks.request, blocks.kept, Box::new(run)))
}

fn check_run(blocks: &Blocks, verifier: &Verifier) -> Result<consensus::VerifiedRun, Rejected> {
    let FetchBlocks { height, after, target } = blocks.request;
    let (decided, tail) = (&blocks.decided, &blocks.tail);
    consensus::VerifiedRun::check(height, after, target, decided, tail, verifier.consensus())
}

/// A snapshot's height is decided, and its manifest is one. What is in it nobody can check alone.
fn check_offer(offer: &Offer, from: Peer, verifier: &Verifier) -> Result<Incoming, Rejected> {
    from.replica()?;
    let manifest = Manifest::decode(&offer.manifest)
        .ok_or_else(|| Rejected::Malformed("a snapshot's manifest".into()))?;
    let height = manifest.header.height;
    let decided = if height > verifier.start.height() {
        consensus::check_anchor(height, &offer.proof, verifier.consensus.as_ref())?
    } else if verifier.start.is_handed_over(&manifest.header) {
        // ★ The hand-over proves this one, and no other: its block is of the epoch before.
        Bytes::new()
    } else {
        return Err(Rejected::RuleBroken("a snapshot is of the epoch that owns its height"));
    };
    let digest = manifest.digest();
    Ok(Incoming::Offer(Box::new(Offered { manifest, digest, decided })))
}

#[cfg(test)]
mod tests;
