//! Steps of members, and their signatures on them.

use super::plan::Plan;
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    BySharing, Digest, Envelope, EnvelopeKey, IdentitySecret, PossessionProof, Signature,
    VotingKey, hash_parts,
};
use quorate_types::{Kind, sign};
use std::fmt;

/// Phase of a key generation: the steps that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum Phase {
    /// Members join, each with a key for envelopes.
    Joining,
    /// Members that joined deal.
    Dealing,
    /// They look at what was dealt to them.
    Checking,
    /// Dealers answer those who complained.
    Answering,
    /// There are keys, or there will be none.
    Over,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Joining => "joining",
            Self::Dealing => "dealing",
            Self::Checking => "checking",
            Self::Answering => "answering",
            Self::Over => "over",
        })
    }
}

/// One member's part in one phase.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Step {
    /// Takes part; its shares are to be sealed for this key.
    Join(EnvelopeKey),
    /// Publishes a deal: commitments, and shares sealed for the others.
    Deal(Box<Deal>),
    /// Has looked at all that was dealt to it, and complains about these dealers, in order.
    Check(Vec<u16>),
    /// The shares of all who complained about this dealer, in their order.
    Answer(Vec<Opening>),
    /// Has done its part in this phase and waits no longer.
    Close(Phase),
    /// Has its keys, which belong to what this names.
    Done(Digest),
}

/// Deal as its dealer publishes it. The lists of three are in the order of
/// [`Sharing::ALL`](quorate_crypto::Sharing::ALL).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Deal {
    /// Commitments to each polynomial's coefficients.
    pub commitments: [Vec<VotingKey>; 3],
    /// Proofs that the constant coefficients are held.
    pub possession: [PossessionProof; 3],
    /// Every joined member's shares sealed for it, in member order; nothing for the dealer itself,
    /// which has them.
    pub envelopes: Vec<(u16, Envelope)>,
}

/// A share in the clear.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Opening {
    /// Member that complained, whose shares these are.
    pub member: u16,
    /// Its shares of all sharings, 96 bytes.
    pub shares: Vec<u8>,
}

/// A step as it is ordered. Whoever hands it in, it is its signer's.
#[derive(Clone, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedStep {
    /// Member that takes the step.
    pub member: u16,
    /// Encoding of the step.
    pub step: Vec<u8>,
    /// Signature of the member's identity, over generation, member and step.
    pub signature: Signature,
}

impl Step {
    /// Decodes what a [`SignedStep`] carries; `None` if it is no step.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        borsh::from_slice(bytes).ok()
    }
}

impl Deal {
    pub(super) fn commitments(&self) -> BySharing<Vec<VotingKey>> {
        BySharing::from_fn(|sharing| self.commitments[sharing as usize].clone())
    }

    pub(super) fn possession(&self) -> BySharing<PossessionProof> {
        BySharing::from_fn(|sharing| self.possession[sharing as usize].clone())
    }
}

impl SignedStep {
    /// Most bytes of an operation that is taken.
    pub const BYTES_MAX: usize = 120 * 1024;

    /// Signs a step of this member.
    #[must_use]
    pub fn sign(plan: &Plan, identity: &IdentitySecret, member: u16, step: &Step) -> Self {
        let step = borsh::to_vec(step).expect("encoding into memory cannot fail");
        let signature = identity.sign(&statement(plan, member, &step));
        Self { member, step, signature }
    }

    /// Encodes it as an operation of [`KeyGeneration`](super::KeyGeneration).
    #[must_use]
    pub fn encode(&self) -> Bytes {
        borsh::to_vec(self).expect("encoding into memory cannot fail").into()
    }

    /// Decodes an operation; `None` if it is none.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        borsh::from_slice(bytes).ok()
    }

    /// The step, if its member signed it for this generation (★) and it decodes.
    #[must_use]
    pub fn open(&self, plan: &Plan) -> Option<Step> {
        let key = plan.identities.get(usize::from(self.member))?;
        let statement = statement(plan, self.member, &self.step);
        if key.verify(&statement, &self.signature).is_err()
            && !mutants::active(Mutant::DkgAnySigner)
        {
            return None;
        }
        Step::decode(&self.step)
    }
}

fn statement(plan: &Plan, member: u16, step: &[u8]) -> Vec<u8> {
    let digest = hash_parts("quorate v1 key generation step", &[&member.to_le_bytes(), step]);
    sign::statement(Kind::KeyGeneration, plan.scope, &digest)
}

impl fmt::Debug for SignedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignedStep({}, {} bytes)", self.member, self.step.len())
    }
}
