//! Messages between members of a windowed protocol, and the parts of them that are signed or
//! hashed.

use super::values::{DecidedSlot, PrePrepare, Proof, Proposal, Shares, SlotCertificate, encode};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, Share, hash_parts};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::{Anchor, Height, Lane, Payload, ReplicaId, View};

/// Message of a windowed protocol.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// Primary's proposal for a slot (PBFT §4.2).
    PrePrepare(PrePrepare),
    /// Vote for a proposal: PBFT's prepare, paper 002's sign-share (§V-C).
    SignShare(SignShare),
    /// Certificate of a quorum's votes, made by a collector (paper 002 §V-E).
    Prepare(SlotCertificate),
    /// Vote to decide a prepared proposal: PBFT's commit.
    CommitShare(CommitShare),
    /// Commit proof of a slot, made by a collector (§V-C, §V-E).
    Proof(Proof),
    /// Payload for a member that knows its digest alone.
    Payload(Payload),
    /// Decided slot with payload and proof, for a member that missed it.
    Decided(Box<DecidedSlot>),
    /// Report of a member that leaves a view (PBFT §4.4, paper 002 §V-G).
    ViewChange(Box<ViewChange>),
    /// Start of a view by its primary (PBFT §4.4).
    NewView(NewView),
    /// Request for the view changes of these members into a view.
    FetchViewChanges(View, Vec<ReplicaId>),
    /// State of a member that waits for something: answered by retransmission.
    Status(Status),
    /// Stable checkpoint: everything up to its height may be discarded (PBFT §4.3).
    Stable(CheckpointCertificate),
    /// Two proposals for one slot and view, signed by the same primary (paper 002 §V-G: publicly
    /// verifiable contradiction).
    Equivocation(Box<(PrePrepare, PrePrepare)>),
    /// Complaint that the primary of a view is slow or passes bodies over; its sender goes on in
    /// that view.
    Suspicion(View),
}

impl Message {
    /// View of the message; zero for messages that are of none.
    #[must_use]
    pub fn view(&self) -> View {
        match self {
            Self::PrePrepare(proposed) => proposed.view,
            Self::SignShare(share) => share.proposal.view,
            Self::Prepare(prepared) => prepared.proposal.view,
            Self::CommitShare(share) => share.proposal.view,
            Self::Proof(proof) => proof.certificate.proposal.view,
            Self::Decided(slot) => slot.proof.certificate.proposal.view,
            Self::ViewChange(change) => change.view,
            Self::NewView(new_view) => new_view.view,
            Self::FetchViewChanges(view, _) | Self::Suspicion(view) => *view,
            Self::Status(status) => status.view,
            Self::Equivocation(both) => both.0.view,
            Self::Payload(_) | Self::Stable(_) => View(0),
        }
    }

    /// Lane in which it travels: votes and statuses are small and go first.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::SignShare(_) | Self::CommitShare(_) | Self::Status(_) | Self::Suspicion(_) => {
                Lane::Votes
            }
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

/// Member's vote for a proposal (PBFT §4.2: prepare; paper 002 §V-C and §V-E: sign-share).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignShare {
    /// Proposal that it votes for.
    pub proposal: Proposal,
    /// Shares over it, for one path or both.
    pub shares: Shares,
}

/// Member's vote to decide a prepared proposal (PBFT §4.2, paper 002 §V-E: commit).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CommitShare {
    /// Prepared proposal that it votes for.
    pub proposal: Proposal,
    /// Share over it, under a kind of its own.
    pub share: Share,
}

/// Member's report as it leaves a view (PBFT §4.4: `⟨VIEW-CHANGE, v+1, n, C, P, i⟩`; paper 002
/// §V-G).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ViewChange {
    /// View that it moves to.
    pub view: View,
    /// Member whose report it is.
    pub signer: ReplicaId,
    /// Its last stable checkpoint (`C`); `None` before the first.
    pub stable: Option<CheckpointCertificate>,
    /// Its evidence of slots after that checkpoint (`P`), ascending by slot, each once.
    pub slots: Vec<SlotReport>,
    /// Signature by the signer's proposal key, over [`ViewChange::signed_content`].
    pub signature: Vec<u8>,
}

impl ViewChange {
    /// Hash by which a new view names it: of everything but the signature.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let content = encode(&(self.view, self.signer, &self.stable, &self.slots));
        hash_parts("quorate v1 view change", &[&content])
    }

    /// What the signature covers (★): the digest has the view too, but whoever is shown a statement
    /// without its report sees the view beside the digest alone.
    #[must_use]
    pub fn signed_content(&self) -> (View, Digest) {
        (self.view, self.digest())
    }

    /// Height of its stable checkpoint; before the first, the one before its epoch (★).
    #[must_use]
    pub fn stable_height(&self, anchor: Anchor) -> Height {
        self.stable.as_ref().map_or(anchor.height, |stable| stable.height)
    }
}

/// Evidence of one slot in a view change (paper 002 §V-G: `x_j = (lm_j, fm_j)`).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SlotReport {
    /// Slot that it is of.
    pub slot: Height,
    /// Evidence on the slow path (`lm`).
    pub slow: SlowReport,
    /// Evidence on the fast path (`fm`); nothing where there is no fast path.
    pub fast: FastReport,
}

/// Evidence of a slot on the slow path.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SlowReport {
    /// Neither prepared nor decided there.
    Nothing,
    /// Prepared certificate of the highest view, and its value: of those who signed it nobody need
    /// have kept that.
    Prepared(SlotCertificate, Payload),
    /// Slow proof, of any view.
    Decided(SlotCertificate),
}

/// Evidence of a slot on the fast path.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FastReport {
    /// No proposal was accepted there.
    Nothing,
    /// Last proposal accepted. The signature of the view change stands for that of the share.
    Accepted(View, Digest),
    /// Fast proof, of any view.
    Decided(SlotCertificate),
}

/// Start of a view (PBFT §4.4): names the view changes from which every member computes the same
/// [safe values](crate::windowed::safe_values).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct NewView {
    /// View that it begins.
    pub view: View,
    /// Signers and [digests](ViewChange::digest) of the view changes, ascending by signer (`V`).
    pub changes: Vec<(ReplicaId, Digest)>,
    /// Signature by the primary's proposal key, over [`NewView::digest`].
    pub signature: Vec<u8>,
}

impl NewView {
    /// Hash of view and changes, which is signed.
    #[must_use]
    pub fn digest(&self) -> Digest {
        hash_parts("quorate v1 new view", &[&encode(&(self.view, &self.changes))])
    }

    /// What the signature covers, as [`ViewChange::signed_content`].
    #[must_use]
    pub fn signed_content(&self) -> (View, Digest) {
        (self.view, self.digest())
    }
}

/// State of a member that waits for something. Members that have what it lacks send it again.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Status {
    /// View that it is in, or that it moves to.
    pub view: View,
    /// `true` while it waits for that view to begin.
    pub in_view_change: bool,
    /// Height of its last stable checkpoint.
    pub stable: Height,
    /// Height up to which it has delivered everything.
    pub decided: Height,
    /// Later slots of which it has the proof.
    pub has: Vec<Height>,
    /// Values of which it knows the digest alone.
    pub lacks: Vec<(Height, Digest)>,
    /// Number of its statuses so far: each is answered by other members.
    pub turn: u32,
}
