//! Blocks, votes, certificates, and what of them is signed and hashed.

use super::rules::{Phase, Rules};
use crate::block_tree::TreeBlock;
use crate::leader::LeaderReputation;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Aggregate, Bitmap, Certificate, Digest, Share, hash_parts};
use quorate_types::{BlockId, EpochId, Lane, Payload, PayloadHeader, ReplicaId, Scope, View};

/// Message of a chained protocol.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// Block of a leader, signed.
    Proposal(Proposal),
    /// A vote for a block, to the next leader or, where a view has several phases, to its own.
    Vote(Vote),
    /// Timeout of a view, by one member.
    Timeout(Timeout),
    /// Certificates that move their receiver: after an older timeout, when a leader decides and has
    /// nothing to propose, or, where a view has several phases, into the next one.
    Certificates {
        /// Highest certificate that the sender has.
        high_qc: Qc,
        /// The sender's highest, when it is what the view was entered by.
        high_tc: Option<Tc>,
    },
    /// A vote of a later phase, to the view's leader.
    PhaseVote(PhaseVote),
    /// A leader's certificate of pre-commit votes: what a replica locks on and asks commit votes
    /// for.
    PreCommitted(Qc),
    /// To the next leader: the certificate that decided the view before.
    NewView(Qc),
}

impl Message {
    /// The view that it is about; of certificates the highest one's.
    #[must_use]
    pub fn view(&self) -> View {
        match self {
            Self::Proposal(proposal) => proposal.block.view,
            Self::Vote(vote) => vote.view,
            Self::Timeout(timeout) => timeout.view,
            Self::Certificates { high_qc, high_tc } => {
                high_tc.as_ref().map_or(high_qc.view, |tc| tc.view.max(high_qc.view))
            }
            Self::PhaseVote(PhaseVote { vote, .. }) => vote.view,
            Self::PreCommitted(qc) | Self::NewView(qc) => qc.view,
        }
    }

    /// The certificate of the block that its receiver has to know to make use of it, if it shows
    /// one: of a proposal the parent's.
    #[must_use]
    pub fn rests_on(&self) -> Option<&Qc> {
        match self {
            Self::Proposal(proposal) => Some(&proposal.block.justify),
            Self::Timeout(Timeout { high_qc: qc, .. })
            | Self::Certificates { high_qc: qc, .. }
            | Self::NewView(qc) => Some(qc),
            Self::Vote(_) | Self::PhaseVote(_) | Self::PreCommitted(_) => None,
        }
    }

    /// Returns `true` if it tells where its sender stands: proposals, new-views and timeouts do.
    #[must_use]
    pub fn reports(&self) -> bool {
        matches!(self, Self::Proposal(_) | Self::Timeout(_) | Self::NewView(_))
    }

    /// The lane that it travels in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        match self {
            Self::Vote(_) | Self::PhaseVote(_) | Self::Timeout(_) => Lane::Votes,
            Self::Proposal(_)
            | Self::Certificates { .. }
            | Self::PreCommitted(_)
            | Self::NewView(_) => Lane::Consensus,
        }
    }
}

/// A block: what is proposed, voted for and decided. Its parent is the block that `justify`
/// certifies.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Block {
    /// Epoch of the committee, by how it began (★).
    pub epoch: EpochId,
    /// The view that it is proposed in.
    pub view: View,
    /// The leader of that view.
    pub author: ReplicaId,
    /// The certificate of its parent.
    pub justify: Qc,
    /// Timeout certificate for which views between `justify` and this one were skipped.
    pub tc: Option<Tc>,
    /// The reputation of leaders after it; empty where leaders have none.
    pub reputation: LeaderReputation,
    /// Payload that it orders. The id covers its header, which covers the rest.
    pub payload: Payload,
}

/// Content that a block's id hashes: every header field. Of certificates the identity, never the
/// signature bytes, so that two valid certificates of one block make no two children.
#[derive(BorshSerialize)]
struct IdContent {
    epoch: EpochId,
    view: View,
    author: ReplicaId,
    justify: (View, BlockId),
    tc: Option<Digest>,
    payload: PayloadHeader,
}

impl TreeBlock for Block {
    fn id(&self) -> BlockId {
        let content = IdContent {
            epoch: self.epoch,
            view: self.view,
            author: self.author,
            justify: (self.justify.view, self.justify.id),
            tc: self.tc.as_ref().map(Tc::content),
            payload: self.payload.header,
        };
        let content = encode(&content);
        let hash = |parts: &[&[u8]]| BlockId(hash_parts("quorate v1 jolteon block", parts));
        if self.reputation.is_empty() {
            return hash(&[&content]);
        }
        hash(&[&content, &encode(&self.reputation)])
    }

    fn parent(&self) -> BlockId {
        self.justify.id
    }

    fn parent_view(&self) -> View {
        self.justify.view
    }

    fn view(&self) -> View {
        self.view
    }

    fn payload(&self) -> &Payload {
        &self.payload
    }

    fn reputation(&self) -> &LeaderReputation {
        &self.reputation
    }
}

/// Block with its leader's signature.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    /// Block that is proposed.
    pub block: Block,
    /// The author's signature over view and id: by its identity key (64 bytes) or its voting key.
    pub signature: Vec<u8>,
}

/// A vote. It names the block's base too, so that a certificate alone shows what it decides.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Vote {
    /// View of the block.
    pub view: View,
    /// Id of the block that is voted for.
    pub id: BlockId,
    /// View of the block's base.
    pub base_view: View,
    /// Its base: the ancestor so many links below as the protocol's [`Rules`] say; in a view of
    /// several phases the parent, and in the last of them the block itself.
    pub base_id: BlockId,
    /// Member that votes for the block.
    pub signer: ReplicaId,
    /// Its share; checked when it is combined.
    pub share: Share,
}

/// A vote with its phase.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PhaseVote {
    /// Phase of the vote; as a message of its own never the first.
    pub phase: Phase,
    /// Vote that is cast in that phase.
    pub vote: Vote,
}

/// A quorum's votes for one block. Two are equal when they certify the same, whoever signed.
#[derive(Clone, BorshSerialize, BorshDeserialize)]
pub struct Qc {
    /// View of the block.
    pub view: View,
    /// Id of the block that is certified.
    pub id: BlockId,
    /// View of the block's base.
    pub base_view: View,
    /// Its base, as its votes name it.
    pub base_id: BlockId,
    /// Signers of the votes, and their signatures.
    pub certificate: Certificate,
}

impl Qc {
    /// The certificate that everybody starts with: nobody signed it, it is valid by being this one.
    #[must_use]
    pub fn genesis(id: BlockId, members: usize) -> Self {
        Self {
            view: View(0),
            id,
            base_view: View(0),
            base_id: id,
            certificate: Certificate {
                signers: Bitmap::new(members),
                aggregate: Aggregate(Vec::new()),
            },
        }
    }
}

impl PartialEq for Qc {
    fn eq(&self, other: &Self) -> bool {
        (self.view, self.id, self.base_view, self.base_id)
            == (other.view, other.id, other.base_view, other.base_id)
    }
}

impl Eq for Qc {}

impl std::fmt::Debug for Qc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Qc({} {} based on {})", self.view, self.id, self.base_view)
    }
}

/// A timeout of a view. The share covers the view and the high certificate's view.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Timeout {
    /// View that timed out.
    pub view: View,
    /// The signer's highest certificate.
    pub high_qc: Qc,
    /// Present exactly when `high_qc` does not lead to the view: what the view was entered by.
    pub high_tc: Option<Tc>,
    /// The signer's last vote (of a view's first phase or its last one), so that a certificate
    /// which a collector withheld can be made again.
    pub last_vote: Option<Vote>,
    /// Member whose view timed out.
    pub signer: ReplicaId,
    /// Its share; checked when it is combined.
    pub share: Share,
}

impl Qc {
    /// Returns `true` if it decides its block's base: every view from there to its own has a block
    /// (★). Views grow along links, so the distance alone says so.
    #[must_use]
    pub fn is_commit(&self, rules: &Rules) -> bool {
        let (gap, links) = (self.view.0.saturating_sub(self.base_view.0), rules.links());
        gap == links || (gap > links && mutants::active(Mutant::ChainedCommitGap))
    }

    /// View that it leads to: the next one, unless phases of its own are still to come.
    #[must_use]
    pub fn leads_to(&self, rules: &Rules) -> View {
        if rules.is_phased() && !self.is_commit(rules) { self.view } else { self.view.next() }
    }

    /// Returns `true` if it says more than another: it is of a later view, or of a later phase.
    #[must_use]
    pub fn outranks(&self, other: &Self, rules: &Rules) -> bool {
        (self.view, self.leads_to(rules)) > (other.view, other.leads_to(rules))
    }
}

/// Timeouts of a quorum in one view.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct Tc {
    /// View that timed out.
    pub view: View,
    /// The highest certificate among the signers'.
    pub high_qc: Qc,
    /// For each high certificate's view that was signed, ascending: who signed it.
    pub groups: Vec<(View, Certificate)>,
}

impl Tc {
    /// The hash of what it says, without signature bytes.
    #[must_use]
    pub fn content(&self) -> Digest {
        let signers: Vec<(View, &Bitmap)> =
            self.groups.iter().map(|(view, certificate)| (*view, &certificate.signers)).collect();
        let content = (self.view, self.high_qc.view, self.high_qc.id, signers);
        hash_parts("quorate v1 jolteon timeout certificate", &[&encode(&content)])
    }
}

impl PartialEq for Tc {
    fn eq(&self, other: &Self) -> bool {
        self.content() == other.content()
    }
}

impl Eq for Tc {}

/// The id of the block before the first.
pub(crate) fn genesis_id(rules: &Rules, scope: Scope) -> BlockId {
    BlockId(hash_parts(rules.genesis, &[&encode(&scope)]))
}

pub(super) fn encode(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("encoding into memory cannot fail")
}
