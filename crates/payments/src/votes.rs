//! Votes for transactions, and certificates of a quorum's votes.
//!
//! Three schemes behind one interface (paper 003 §4.1 to §4.3): a signature a vote, or one
//! signature of a sum, both in `signatures`; and one signature for many votes, in `merkle`. A vote
//! is always for a transaction's name (★), which covers everything that it does: a vote for an
//! output alone, under a name that its payer picks, as in the paper, lets three transactions
//! certify one output with an honest vote each.

mod epochs;
mod merkle;
mod signatures;

pub use merkle::MerkleVote;

pub(crate) use epochs::EpochVotes;

use crate::{PayScheme, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use merkle::MerkleVotes;
use quorate_crypto::{Bitmap, Certificate, Share, VotingSecret};
use quorate_types::{Committee, Epoch, ReplicaId, Scope};
use signatures::SignatureVotes;
use std::fmt;
use std::sync::Arc;

/// One authority's vote for one transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Vote {
    /// A vote with a signature of its own.
    Share(Share),
    /// A vote that shares a signature with others.
    Merkle(MerkleVote),
}

/// A quorum's votes for one transaction. What identifies it is the transaction's name: two
/// certificates for one can differ.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TxCertificate {
    /// Epoch whose authorities voted.
    pub epoch: Epoch,
    /// Votes of a quorum of them.
    pub votes: QuorumVotes,
}

/// Votes of a certificate, as its epoch's scheme has them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum QuorumVotes {
    /// Signatures side by side, or one.
    Signatures(Certificate),
    /// Each signer's way to a root that it signed, in signer order.
    Merkle {
        /// Authorities whose votes it holds.
        signers: Bitmap,
        /// Votes of the signers, in signer order.
        votes: Vec<MerkleVote>,
    },
}

impl TxCertificate {
    /// Authorities that voted, as the certificate claims.
    #[must_use]
    pub fn signers(&self) -> &Bitmap {
        match &self.votes {
            QuorumVotes::Signatures(certificate) => &certificate.signers,
            QuorumVotes::Merkle { signers, .. } => signers,
        }
    }
}

/// Result of counting votes towards a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The certificate, where the good votes are a quorum's. It was checked.
    pub certificate: Option<TxCertificate>,
    /// Authorities with bad votes, in ascending order. Each vote was refused alone.
    pub bad: Vec<usize>,
}

/// Voting scheme of one network's authorities.
pub trait Votes: Send + Sync + fmt::Debug {
    /// Votes for these transactions, in their order.
    fn sign(&self, secret: &VotingSecret, me: ReplicaId, ids: &[TxId]) -> Vec<Vote>;

    /// Number of transactions that are worth waiting for before they are signed together; 1 where
    /// nothing is gained.
    fn batch_size(&self) -> usize;

    /// Makes a certificate of votes for one transaction, if the good ones are enough. Votes of
    /// `suspects`, who sent bad ones before, are checked alone.
    fn count(&self, id: TxId, votes: &[(ReplicaId, Vote)], suspects: &Bitmap) -> Counted;

    /// Checks certificates, each with the name that it is for: enough signers first ★, then their
    /// signatures, all in one batch while none is bad. Returns a verdict for each.
    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool>;
}

/// Implementation of a network's voting scheme.
pub(crate) fn of(scheme: PayScheme, scope: Scope, committee: &Arc<Committee>) -> Arc<dyn Votes> {
    let committee = Arc::clone(committee);
    match scheme {
        PayScheme::Merkle => Arc::new(MerkleVotes::new(scope, committee)),
        PayScheme::Plain | PayScheme::Bls | PayScheme::BlsThreshold => {
            Arc::new(SignatureVotes::new(scope, committee))
        }
    }
}

#[cfg(test)]
mod tests;
