//! What the members of a windowed protocol say, and what of it is signed and hashed.

use super::records::DecidedSlot;
use crate::Verifier;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Certificate, Digest, Share, hash_parts};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::{BlockId, ChainId, Epoch, Height, Kind, Lane, Payload, ReplicaId, View};

/// A value for a slot, as a view has it: what prepares and commits are about.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
)]
pub struct Place {
    /// The view.
    pub view: View,
    /// The slot: the height that is decided there.
    pub slot: Height,
    /// The value: [`digest_of`] its payload.
    pub digest: Digest,
}

impl Place {
    /// The bytes that are signed to say something of it.
    #[must_use]
    pub fn statement(&self, kind: Kind, verifier: &Verifier) -> Vec<u8> {
        verifier.statement(kind, self)
    }
}

/// The value that a payload is, wherever and by whomever it is proposed.
#[must_use]
pub fn digest_of(payload: &Payload) -> Digest {
    hash_parts("quorate v1 slot value", &[&encode(&payload.header)])
}

/// The name of what is before the first slot.
pub(crate) fn genesis_id(chain: ChainId, epoch: Epoch) -> BlockId {
    BlockId(hash_parts("quorate v1 windowed genesis", &[&encode(&(chain, epoch))]))
}

/// What fills a slot that nothing was decided for: nothing, at no time.
#[must_use]
pub fn null_operation(slot: Height) -> Payload {
    Payload::new(slot, 0, Vec::new())
}

/// What a windowed protocol sends.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// A primary's value for a slot.
    PrePrepare(PrePrepare),
    /// A vote for it: PBFT's prepare, SBFT's sign-share.
    SignShare(SignShare),
    /// A collector's certificate of votes.
    Prepare(SlotCertificate),
    /// A vote to decide what was prepared.
    CommitShare(CommitShare),
    /// What decides a slot.
    Proof(Proof),
    /// The value of a slot, for whoever knows its digest alone.
    Payload(Payload),
    /// A decided slot as a whole, for whoever missed it.
    Decided(Box<DecidedSlot>),
    /// A member gives a view up, and says what it knows.
    ViewChange(Box<ViewChange>),
    /// A primary begins its view.
    NewView(NewView),
    /// Asks for the view changes of these members into a view.
    FetchViewChanges(View, Vec<ReplicaId>),
    /// What its sender lacks.
    Status(Status),
    /// Everything up to a height may be forgotten.
    Stable(CheckpointCertificate),
    /// A primary proposed both: its view is at an end.
    Equivocation(Box<(PrePrepare, PrePrepare)>),
}

impl Message {
    /// The view that it is about; the first for what is about none.
    #[must_use]
    pub fn view(&self) -> View {
        match self {
            Self::PrePrepare(proposed) => proposed.view,
            Self::SignShare(share) => share.at.view,
            Self::Prepare(prepared) => prepared.at.view,
            Self::CommitShare(share) => share.at.view,
            Self::Proof(proof) => proof.certificate.at.view,
            Self::Decided(slot) => slot.proof.certificate.at.view,
            Self::ViewChange(change) => change.view,
            Self::NewView(new_view) => new_view.view,
            Self::FetchViewChanges(view, _) => *view,
            Self::Status(status) => status.view,
            Self::Equivocation(both) => both.0.view,
            Self::Payload(_) | Self::Stable(_) => View(0),
        }
    }

    /// The lane that it travels in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::SignShare(_) | Self::CommitShare(_) | Self::Status(_) => Lane::Votes,
            Self::PrePrepare(_)
            | Self::Prepare(_)
            | Self::Proof(_)
            | Self::Payload(_)
            | Self::Decided(_)
            | Self::ViewChange(_)
            | Self::NewView(_)
            | Self::FetchViewChanges(..)
            | Self::Stable(_)
            | Self::Equivocation(_) => Lane::Consensus,
        }
    }
}

/// A primary's value for a slot, with its own vote for it: it needs no other.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrePrepare {
    /// The view that it leads.
    pub view: View,
    /// The value; its header names the slot.
    pub payload: Payload,
    /// Its vote.
    pub shares: Shares,
    /// By its own key: two of these for one slot convict it.
    pub signature: Vec<u8>,
}

impl PrePrepare {
    /// What it proposes.
    #[must_use]
    pub fn place(&self) -> Place {
        let slot = self.payload.header.height;
        Place { view: self.view, slot, digest: digest_of(&self.payload) }
    }
}

/// A vote for a value. Where one key serves both thresholds, one share does.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Shares {
    /// For a certificate of a quorum (paper 002: `τ`).
    pub slow: Share,
    /// For one that decides at once (`σ`), where its keys are others and its signer is close enough
    /// behind what it executed.
    pub fast: Option<Share>,
}

/// A member's vote for a value.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignShare {
    /// What for.
    pub at: Place,
    /// The vote.
    pub shares: Shares,
}

/// A member's vote to decide a value that was prepared.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CommitShare {
    /// What for.
    pub at: Place,
    /// The vote.
    pub share: Share,
}

/// Votes for one value. Two of one value are equal, whoever signed them.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct SlotCertificate {
    /// What for.
    pub at: Place,
    /// The votes.
    pub certificate: Certificate,
}

impl PartialEq for SlotCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for SlotCertificate {}

/// How a slot was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Path {
    /// All but the redundant members voted for it.
    Fast,
    /// A quorum voted to decide what a quorum had voted for.
    Slow,
}

/// What decides a slot, whoever shows it and in whatever view.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proof {
    /// By which of both.
    pub path: Path,
    /// The votes.
    pub certificate: SlotCertificate,
}

/// What a member knows as it gives a view up.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ViewChange {
    /// The view that it wants.
    pub view: View,
    /// Who.
    pub signer: ReplicaId,
    /// Everything up to here may be forgotten; nothing, if absent.
    pub stable: Option<CheckpointCertificate>,
    /// What it knows of each slot after that, ascending; of others it knows nothing.
    pub slots: Vec<SlotReport>,
    /// By its own key, over [`ViewChange::digest`].
    pub signature: Vec<u8>,
}

impl ViewChange {
    /// The hash that a new view names it by: of everything but the signature.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let content = encode(&(self.view, self.signer, &self.stable, &self.slots));
        hash_parts("quorate v1 view change", &[&content])
    }

    /// The height up to which everything may be forgotten.
    #[must_use]
    pub fn stable_height(&self) -> Height {
        self.stable.as_ref().map_or(Height(0), |stable| stable.height)
    }
}

/// What a member knows of a slot.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotReport {
    /// Which.
    pub slot: Height,
    /// How far it came by a quorum's votes (paper 002: `lm`).
    pub slow: SlowReport,
    /// How far by those of almost all (`fm`); absent where no decision is made so.
    pub fast: FastReport,
}

/// How far a slot came by a quorum's votes.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SlowReport {
    /// Not at all.
    Nothing,
    /// Prepared, in the highest such view.
    Prepared(SlotCertificate),
    /// Decided.
    Decided(SlotCertificate),
}

/// How far a slot came by the votes of almost all.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FastReport {
    /// Not at all.
    Nothing,
    /// Accepted, in the highest such view. The signature of the view change stands for the share's.
    Accepted(View, Digest),
    /// Decided.
    Decided(SlotCertificate),
}

/// How a view begins: with these view changes, from which everybody draws the same conclusions.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NewView {
    /// The view.
    pub view: View,
    /// Whose view changes, ascending, each by [`ViewChange::digest`].
    pub changes: Vec<(ReplicaId, Digest)>,
    /// By its primary's own key, over [`NewView::digest`].
    pub signature: Vec<u8>,
}

impl NewView {
    /// The hash of what is signed.
    #[must_use]
    pub fn digest(&self) -> Digest {
        hash_parts("quorate v1 new view", &[&encode(&(self.view, &self.changes))])
    }
}

/// Where a member stands that waits for something: whoever can, helps.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Status {
    /// Its view.
    pub view: View,
    /// Whether it waits for that view to begin.
    pub changing: bool,
    /// Its last stable height.
    pub stable: Height,
    /// Everything up to here is decided for it.
    pub decided: Height,
    /// And these slots beyond.
    pub has: Vec<Height>,
    /// Values that it knows the digests of alone.
    pub lacks: Vec<(Height, Digest)>,
    /// Counts its questions: each is answered by others.
    pub turn: u32,
}

pub(super) fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("encoding into memory cannot fail")
}
