//! Statements that a member signed, each with its proof and without what it rests on: what others
//! can show it after it was restored from an old copy of its disk.
//!
//! A [`SignedStatement`] is evidence by itself. Nobody but its signer can make one up, so whoever
//! shows it need not be trusted; whoever keeps it quiet is why several are asked. It takes a few
//! dozen bytes, a certificate apart: views, ids and digests stand for blocks and reports.
//!
//! Whether its signer knows of it is a question to its machine
//! ([`ProtocolView::accounts_for`](crate::ProtocolView::accounts_for)), for the records that are
//! durable before a signature leaves account for it.

use crate::block_tree::TreeBlock;
use crate::chained::{self, Phase};
use crate::windowed;
use crate::{Family, FamilyMessage, Message, Rule, Verifier};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Certificate, Share};
use quorate_types::{BlockId, Height, Kind, Rejected, ReplicaId, View};
use std::fmt;

/// Statement of a member that its records account for before it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Statement {
    /// Block of a leader.
    Proposal {
        /// View of the block.
        view: View,
        /// Id of the block.
        id: BlockId,
    },
    /// Vote for a block.
    Vote {
        /// Phase of the vote; the first where a view has one.
        phase: Phase,
        /// View and id of the block.
        block: (View, BlockId),
        /// View and id of its base.
        base: (View, BlockId),
    },
    /// Timeout of a view.
    Timeout {
        /// View that timed out.
        view: View,
        /// View of the highest certificate that it reports.
        reported: View,
    },
    /// Value of a primary for a slot.
    PrePrepare(windowed::Proposal),
    /// Vote for a slot's value.
    Prepare(windowed::Proposal),
    /// Vote to decide a slot's value.
    Commit(windowed::Proposal),
    /// Report of a member that leaves a view.
    ViewChange {
        /// View that it moves to.
        view: View,
        /// Digest of the report.
        digest: quorate_crypto::Digest,
    },
    /// Beginning of a view by its primary.
    NewView {
        /// View that its primary begins.
        view: View,
        /// Digest of its content.
        digest: quorate_crypto::Digest,
    },
}

impl Statement {
    /// Number of kinds, each of which one family has alone: the most statements that are kept of
    /// one member.
    pub const KINDS: usize = 8;

    /// Number of its kind, below [`Statement::KINDS`].
    #[must_use]
    pub const fn kind(&self) -> usize {
        match self {
            Self::Proposal { .. } => 0,
            Self::Vote { .. } => 1,
            Self::Timeout { .. } => 2,
            Self::PrePrepare(_) => 3,
            Self::Prepare(_) => 4,
            Self::Commit(_) => 5,
            Self::ViewChange { .. } => 6,
            Self::NewView { .. } => 7,
        }
    }

    /// Place among the statements of its kind: a member makes them in this order, but for slots of
    /// one view.
    #[must_use]
    pub fn position(&self) -> (View, Height, Phase) {
        match self {
            Self::Vote { phase, block: (view, _), .. } => (*view, Height(0), *phase),
            Self::Proposal { view, .. }
            | Self::Timeout { view, .. }
            | Self::ViewChange { view, .. }
            | Self::NewView { view, .. } => (*view, Height(0), Phase::Prepare),
            Self::PrePrepare(value) | Self::Prepare(value) | Self::Commit(value) => {
                (value.view, value.slot, Phase::Prepare)
            }
        }
    }

    /// Rule that whoever signed both broke; `None` if an honest member may sign both. Timeouts,
    /// view changes and beginnings of views may be worded anew.
    #[must_use]
    pub fn conflict_with(&self, other: &Self) -> Option<Rule> {
        if self.position() != other.position() {
            return None;
        }
        let (differ, rule) = match (self, other) {
            (Self::Proposal { id, .. }, Self::Proposal { id: other, .. }) => {
                (id != other, Rule::Equivocation)
            }
            (Self::Vote { block, .. }, Self::Vote { block: other, .. }) => {
                (block != other, Rule::DoubleVote)
            }
            (Self::PrePrepare(value), Self::PrePrepare(other)) => {
                (value != other, Rule::Equivocation)
            }
            (Self::Prepare(value), Self::Prepare(other))
            | (Self::Commit(value), Self::Commit(other)) => (value != other, Rule::DoubleVote),
            _ => return None,
        };
        differ.then_some(rule)
    }

    const fn is_chained(&self) -> bool {
        matches!(self, Self::Proposal { .. } | Self::Vote { .. } | Self::Timeout { .. })
    }

    /// Returns `true` if many sign the same, with shares that make a certificate.
    const fn is_vote(&self) -> bool {
        matches!(
            self,
            Self::Vote { .. } | Self::Timeout { .. } | Self::Prepare(_) | Self::Commit(_)
        )
    }

    /// Bytes that are signed.
    fn signed_bytes(&self, verifier: &Verifier) -> Vec<u8> {
        match self {
            Self::Proposal { view, id } => chained::proposal_message(verifier, *view, *id),
            Self::Vote { phase, block, base } => {
                chained::vote_message(verifier, *phase, *block, *base)
            }
            Self::Timeout { view, reported } => {
                chained::timeout_message(verifier, *view, *reported)
            }
            Self::PrePrepare(value) => verifier.statement(Kind::PrePrepare, value),
            Self::Prepare(value) => verifier.statement(Kind::Prepare, value),
            Self::Commit(value) => verifier.statement(Kind::Commit, value),
            Self::ViewChange { view, digest } => {
                verifier.statement(Kind::ViewChange, &(*view, *digest))
            }
            Self::NewView { view, digest } => verifier.statement(Kind::NewView, &(*view, *digest)),
        }
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proposal { view, id } => write!(f, "a proposal in {view}, {}", id.0.to_hex()),
            Self::Vote { phase: Phase::Prepare, block: (view, id), .. } => {
                write!(f, "a vote in {view} for {}", id.0.to_hex())
            }
            Self::Vote { phase, block: (view, id), .. } => {
                write!(f, "a vote of phase {phase:?} in {view} for {}", id.0.to_hex())
            }
            Self::Timeout { view, reported } => {
                write!(f, "a timeout of {view} that reports {reported}")
            }
            Self::PrePrepare(value) => write!(f, "a proposal for {}", slot_words(value)),
            Self::Prepare(value) => write!(f, "a vote to prepare {}", slot_words(value)),
            Self::Commit(value) => write!(f, "a vote to commit {}", slot_words(value)),
            Self::ViewChange { view, .. } => write!(f, "a view change into {view}"),
            Self::NewView { view, .. } => write!(f, "the beginning of {view}"),
        }
    }
}

fn slot_words(value: &windowed::Proposal) -> String {
    format!("slot {} in {}, {}", value.slot, value.view, value.digest.to_hex())
}

/// Proof that a member made a statement.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum StatementProof {
    /// Its signature, or its share of a certificate.
    Signature(Vec<u8>),
    /// Certificate that names it among the signers; of keys whose certificates prove who signed.
    Certificate(Certificate),
}

/// Statement of a member with its proof, unchecked until [`SignedStatement::check`].
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedStatement {
    /// Statement of the signer, without what it rests on.
    pub statement: Statement,
    /// Signature or certificate from which the signer follows.
    pub proof: StatementProof,
}

impl SignedStatement {
    fn alone(statement: Statement, signature: &[u8]) -> Self {
        Self { statement, proof: StatementProof::Signature(signature.to_vec()) }
    }

    /// Proven by a certificate, if that names the signer.
    pub(crate) fn certified(
        (statement, certificate): (Statement, &Certificate),
        signer: ReplicaId,
        verifier: &Verifier,
    ) -> Option<Self> {
        let proof = || StatementProof::Certificate(certificate.clone());
        let names = certificate_names(certificate, signer, verifier);
        names.then(|| Self { statement, proof: proof() })
    }

    /// Checks that `signer` made the statement (★): no other can have.
    ///
    /// # Errors
    /// When the proof proves something else, or the statement is of another family's protocol.
    pub fn check(&self, signer: ReplicaId, verifier: &Verifier) -> Result<(), Rejected> {
        let is_chained = matches!(verifier.protocol().family(), Family::Chained(_));
        if is_chained != self.statement.is_chained() {
            return Err(Rejected::RuleBroken("a statement is of the committee's protocol"));
        }
        if !self.is_of_its_phase(verifier) {
            return Err(Rejected::RuleBroken("a later phase is of a protocol that has one"));
        }
        if !verifier.committee().contains(signer) {
            return Err(Rejected::NotAMember);
        }
        let refused = |_| Rejected::BadSignature("a statement of the receiver");
        let signed = self.statement.signed_bytes(verifier);
        match &self.proof {
            StatementProof::Signature(bytes) if self.statement.is_vote() => verifier
                .voting()
                .verify_share(&signed, signer.index(), &Share(bytes.clone()))
                .map_err(refused),
            StatementProof::Signature(bytes) => {
                verifier.check_alone(signer, &signed, bytes, "a statement of the receiver")
            }
            StatementProof::Certificate(certificate) => {
                let names = certificate_names(certificate, signer, verifier);
                if !names || !self.statement.is_vote() {
                    return Err(Rejected::RuleBroken("a certificate names the signer"));
                }
                verifier.voting().verify(&signed, certificate).map_err(refused)
            }
        }
    }

    /// ★ A vote is said to be of a phase that is signed: where votes name none, whoever passes one
    /// on could say another phase, which its signer's records do not account for.
    fn is_of_its_phase(&self, verifier: &Verifier) -> bool {
        match self.statement {
            Statement::Vote { phase, .. } => {
                verifier.rules().has_phase(phase) || mutants::active(Mutant::AnyPhase)
            }
            _ => true,
        }
    }
}

/// Returns `true` if a certificate names this member among its signers, and proves it: those of
/// threshold keys prove only how many signed.
pub(crate) fn certificate_names(
    certificate: &Certificate,
    signer: ReplicaId,
    verifier: &Verifier,
) -> bool {
    let (signers, committee) = (&certificate.signers, verifier.committee());
    !committee.splits_keys()
        && signers.members() == committee.size()
        && signers.contains(signer.index())
}

impl Message {
    /// Statement in the message that one member signed: its sender, or one whose message is passed
    /// on. A share is unchecked, as everywhere before it is combined.
    #[must_use]
    pub fn signed_statement(
        &self,
        from: ReplicaId,
        verifier: &Verifier,
    ) -> Option<(ReplicaId, SignedStatement)> {
        match self.by_family() {
            FamilyMessage::Chained(message) => of_chained(message),
            FamilyMessage::Windowed(message) => {
                of_windowed(message, from, verifier.committee().size())
            }
        }
    }

    /// Two values of a primary for one slot that the message shows.
    #[must_use]
    pub fn shown_equivocation(
        &self,
        verifier: &Verifier,
    ) -> Option<(ReplicaId, [SignedStatement; 2])> {
        let FamilyMessage::Windowed(windowed::Message::Equivocation(both)) = self.by_family()
        else {
            return None;
        };
        let (first, second) = &**both;
        let primary = windowed::collectors::primary(first.view, verifier.committee().size());
        Some((primary, [of_pre_prepare(first), of_pre_prepare(second)]))
    }

    /// Statement of `signer` that the message's certificate proves; of a message that was checked
    /// it is checked too.
    #[must_use]
    pub fn certified_statement(&self, signer: ReplicaId, verifier: &Verifier) -> Option<Statement> {
        let certified = match self.by_family() {
            FamilyMessage::Chained(message) => message.shown_qc().map(|(phase, qc)| {
                let rules = verifier.rules();
                qc.certified(phase.unwrap_or_else(|| rules.phase_of(qc.view, qc.base_view)))
            }),
            FamilyMessage::Windowed(message) => match message {
                windowed::Message::Prepare(prepared) => Some(prepared.certified()),
                windowed::Message::Proof(proof) => Some(proof.certified()),
                windowed::Message::Decided(slot) => Some(slot.proof.certified()),
                _ => None,
            },
        };
        let (statement, certificate) = certified?;
        certificate_names(certificate, signer, verifier).then_some(statement)
    }
}

fn of_chained(message: &chained::Message) -> Option<(ReplicaId, SignedStatement)> {
    let vote = |phase, vote: &chained::Vote| {
        let (block, base) = ((vote.view, vote.id), (vote.base_view, vote.base_id));
        let statement = Statement::Vote { phase, block, base };
        (vote.signer, SignedStatement::alone(statement, &vote.share.0))
    };
    Some(match message {
        chained::Message::Proposal(proposal) => {
            let (block, id) = (&proposal.block, proposal.block.id());
            let statement = Statement::Proposal { view: block.view, id };
            (block.author, SignedStatement::alone(statement, &proposal.signature))
        }
        chained::Message::Vote(said) => vote(Phase::Prepare, said),
        chained::Message::PhaseVote(said) => vote(said.phase, &said.vote),
        chained::Message::Timeout(timeout) => {
            let (view, reported) = (timeout.view, timeout.high_qc.view);
            let statement = Statement::Timeout { view, reported };
            (timeout.signer, SignedStatement::alone(statement, &timeout.share.0))
        }
        chained::Message::Certificates { .. }
        | chained::Message::PreCommitted(_)
        | chained::Message::NewView(_) => return None,
    })
}

fn of_pre_prepare(proposed: &windowed::PrePrepare) -> SignedStatement {
    SignedStatement::alone(Statement::PrePrepare(proposed.proposal()), &proposed.signature)
}

fn of_windowed(
    message: &windowed::Message,
    from: ReplicaId,
    members: usize,
) -> Option<(ReplicaId, SignedStatement)> {
    let primary = |view| windowed::collectors::primary(view, members);
    Some(match message {
        windowed::Message::PrePrepare(proposed) => {
            (primary(proposed.view), of_pre_prepare(proposed))
        }
        windowed::Message::SignShare(said) => {
            let statement = Statement::Prepare(said.proposal);
            (from, SignedStatement::alone(statement, &said.shares.slow.0))
        }
        windowed::Message::CommitShare(said) => {
            let statement = Statement::Commit(said.proposal);
            (from, SignedStatement::alone(statement, &said.share.0))
        }
        windowed::Message::ViewChange(change) => {
            let (view, digest) = (change.view, change.digest());
            let statement = Statement::ViewChange { view, digest };
            (change.signer, SignedStatement::alone(statement, &change.signature))
        }
        windowed::Message::NewView(new_view) => {
            let (view, digest) = (new_view.view, new_view.digest());
            let statement = Statement::NewView { view, digest };
            (primary(view), SignedStatement::alone(statement, &new_view.signature))
        }
        _ => return None,
    })
}
