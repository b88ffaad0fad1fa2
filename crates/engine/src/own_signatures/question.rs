//! The question after a member's own signatures and its answer, as they travel.

use crate::frames::OWN_STATEMENTS_MAX;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_consensus::{self as consensus, SignedStatement};
use quorate_crypto::{IdentitySecret, Signature};
use quorate_types::{Kind, Rejected, ReplicaId};

/// Questions kept of one member: two show that it runs twice.
pub(crate) const QUESTIONS_MAX: usize = 2;

/// Question of a member after its own newest signatures, signed by its identity key.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OwnQuestion {
    /// Number of the start that asks, durable before the question leaves (★).
    pub incarnation: u64,
    /// Time of that start in milliseconds since the Unix epoch: it tells two copies apart that took
    /// one number.
    pub started_ms: u64,
    /// Signature of the member that asks, over number and time.
    pub signature: Signature,
}

impl OwnQuestion {
    pub(crate) fn signed(
        identity: &IdentitySecret,
        verifier: &consensus::Verifier,
        incarnation: u64,
        started_ms: u64,
    ) -> Self {
        let statement = statement(verifier, incarnation, started_ms);
        Self { incarnation, started_ms, signature: identity.sign(&statement) }
    }

    /// Checks that the member asked it.
    ///
    /// # Errors
    /// When it did not.
    pub(crate) fn check(
        &self,
        asker: ReplicaId,
        verifier: &consensus::Verifier,
    ) -> Result<(), Rejected> {
        let statement = statement(verifier, self.incarnation, self.started_ms);
        verifier.verify_identity(asker, &statement, &self.signature)
    }

    /// Number and time of the start that asks, which no two starts share.
    pub(crate) fn start(&self) -> (u64, u64) {
        (self.incarnation, self.started_ms)
    }
}

fn statement(verifier: &consensus::Verifier, incarnation: u64, started_ms: u64) -> Vec<u8> {
    verifier.statement(Kind::OwnQuestion, &(incarnation, started_ms))
}

/// A member's newest signatures, as another one holds them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OwnSignaturesAnswer {
    /// Member whose signatures they are.
    pub signer: ReplicaId,
    /// Number and time of the start that asked.
    pub asked: (u64, u64),
    /// Questions of that member with this number or a later one: this one too, for the answer may
    /// reach another process than the one that asked.
    pub questions: Vec<OwnQuestion>,
    /// Newest statements of the signer, one of each kind and what certificates prove.
    pub statements: Vec<SignedStatement>,
}

impl OwnSignaturesAnswer {
    /// Checks that all of it is the signer's.
    ///
    /// # Errors
    /// When there is too much of it, or something that the signer did not sign.
    pub(crate) fn check(&self, verifier: &consensus::Verifier) -> Result<(), Rejected> {
        let Self { signer, questions, statements, .. } = self;
        if questions.len() > QUESTIONS_MAX || statements.len() > OWN_STATEMENTS_MAX {
            return Err(Rejected::TooLarge("a member's own signatures"));
        }
        questions.iter().try_for_each(|question| question.check(*signer, verifier))?;
        statements.iter().try_for_each(|statement| statement.check(*signer, verifier))
    }
}
