//! How authorities vote for transactions, and how a quorum of votes becomes a certificate.
//!
//! Three schemes behind one interface (paper 003 §4.1 to §4.3): a signature a vote, or one signature of a
//! sum, both in `signatures`; and one signature for many votes, in `merkle`. A vote is always
//! for a transaction's name (★), which covers everything that it does: a vote for an output
//! alone, under a name that its payer picks, as in the paper, lets three transactions certify one
//! output with an honest vote each.

mod merkle;
mod signatures;

pub use merkle::MerkleVote;

use crate::{PayScheme, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use merkle::MerkleVotes;
use quorate_crypto::{Bitmap, Certificate, Share, VotingSecret};
use quorate_types::{ChainId, Committee, ReplicaId};
use signatures::SignatureVotes;
use std::fmt;
use std::sync::Arc;

/// One authority's vote for one transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Vote {
    /// Signed by itself.
    Share(Share),
    /// Signed with others.
    Merkle(MerkleVote),
}

/// A quorum's votes for one transaction. What identifies it is the transaction's name: two certificates
/// for one can differ.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TxCertificate {
    /// Signatures side by side, or one.
    Signatures(Certificate),
    /// Each signer's way to a root that it signed, in signer order.
    Merkle {
        /// Who voted.
        signers: Bitmap,
        /// Their votes.
        votes: Vec<MerkleVote>,
    },
}

impl TxCertificate {
    /// Who voted, as it says.
    #[must_use]
    pub fn signers(&self) -> &Bitmap {
        match self {
            Self::Signatures(certificate) => &certificate.signers,
            Self::Merkle { signers, .. } => signers,
        }
    }
}

/// What became of votes that were to be a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The certificate, where the good votes are a quorum's. It was checked.
    pub certificate: Option<TxCertificate>,
    /// Whose votes are bad, ascending. Each was refused alone.
    pub bad: Vec<usize>,
}

/// How the authorities of one network vote.
pub trait Votes: Send + Sync + fmt::Debug {
    /// Votes for these transactions, in their order.
    fn sign(&self, secret: &VotingSecret, me: ReplicaId, ids: &[TxId]) -> Vec<Vote>;

    /// How many transactions are worth waiting for before they are signed together; 1 where nothing is
    /// gained.
    fn together(&self) -> usize;

    /// Makes a certificate of votes for one transaction, if the good ones are enough. Votes of
    /// `suspects`, who sent bad ones before, are checked alone.
    fn count(&self, id: TxId, votes: &[(ReplicaId, Vote)], suspects: &Bitmap) -> Counted;

    /// Which of these certificates hold: enough signers first ★, then their signatures, all in one batch
    /// while none is bad.
    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool>;
}

/// The way that a network's authorities vote.
pub(crate) fn of(scheme: PayScheme, chain: ChainId, committee: &Arc<Committee>) -> Arc<dyn Votes> {
    let committee = Arc::clone(committee);
    match scheme {
        PayScheme::Merkle => Arc::new(MerkleVotes::new(chain, committee)),
        PayScheme::Plain | PayScheme::Bls | PayScheme::BlsThreshold => {
            Arc::new(SignatureVotes::new(chain, committee))
        }
    }
}

#[cfg(test)]
mod tests;
