//! Hand-over with the signatures that make it hold.

use crate::executed::check_certificate;
use crate::{Committee, HandOver, Purpose, Rejected};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::Certificate;
use quorate_crypto::mutants::Mutant;
use std::hash::{Hash, Hasher};

/// A hand-over that a quorum of the epoch that ended signed. Its content identifies it, never its
/// signatures: two of one content are equal and hash equally.
#[derive(Clone, Debug, BorshSerialize, BorshDeserialize)]
pub struct SignedHandOver {
    /// Statement that the epoch ended and what the next one begins with.
    pub content: HandOver,
    /// Signatures over [`HandOver::statement`], by members of [`Purpose::HandOver`]'s weight.
    pub certificate: Certificate,
}

impl SignedHandOver {
    /// Checks it as a whole against the committee of the epoch that ended: weight, then signature
    /// (★).
    ///
    /// # Errors
    /// [`Rejected::BelowThreshold`] and [`Rejected::BadSignature`].
    pub fn check(&self, ended: &Committee) -> Result<(), Rejected> {
        let statement = self.content.statement(ended.scope());
        let what = ("a hand-over", Mutant::HandOverByFew);
        check_certificate(ended, Purpose::HandOver, &statement, &self.certificate, what)
    }
}

impl PartialEq for SignedHandOver {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl Eq for SignedHandOver {}

impl Hash for SignedHandOver {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.content.hash(state);
    }
}
