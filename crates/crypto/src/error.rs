//! What can be wrong with a signature, a key, or a name given on a command line.

use crate::{SchemeKind, Sharing};

/// Why a signature, share or certificate was refused. The sender is at fault, never this replica.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The bytes are too few or too many.
    #[error("a signature of {expected} bytes was expected, but {found} came")]
    Length {
        /// Bytes such a signature takes.
        expected: usize,
        /// Bytes there were.
        found: usize,
    },
    /// The bytes do not encode a signature: off the curve, not canonical, scalar out of range.
    #[error("the signature's bytes do not encode a signature")]
    Encoding,
    /// The signature is, or sums with its keys to, the identity point, which anyone can write down.
    #[error(
        "the signature or its signers' combined key is the identity point, which proves nothing"
    )]
    Identity,
    /// The signature's point lies on the curve but outside the prime-order subgroup.
    #[error("the signature's point lies outside the prime-order subgroup")]
    Subgroup,
    /// The key that should check the signature is itself malformed.
    #[error("the signer's public key does not encode a point, so nothing can verify under it")]
    Key,
    /// Well formed, but not a signature of this message by these signers.
    #[error("the signature does not match the message and its signers")]
    Mismatch,
    /// The signer's index is not one of the committee.
    #[error("signer {signer} does not exist in a committee of {members}")]
    Signer {
        /// The index given.
        signer: usize,
        /// Members of the committee.
        members: usize,
    },
    /// The certificate's bitmap is for a committee of another size.
    #[error("the certificate's bitmap is for {found} members, but the committee has {members}")]
    Committee {
        /// Members of the committee.
        members: usize,
        /// Members the bitmap is for.
        found: usize,
    },
    /// The certificate's bitmap names nobody.
    #[error("the certificate names no signers")]
    NoSigners,
    /// The certificate's bitmap names fewer members than it takes to make its signature.
    #[error("the certificate names {found} signers, but its signature takes {threshold}")]
    TooFewSigners {
        /// Members that it takes.
        threshold: usize,
        /// Members that the bitmap names.
        found: usize,
    },
}

/// Why a key, or a committee's list of keys, was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are too few or too many.
    #[error("a {kind} {what} takes {expected} bytes, but {found} were given")]
    Length {
        /// Scheme the key is for.
        kind: SchemeKind,
        /// What was read.
        what: &'static str,
        /// Bytes it takes.
        expected: usize,
        /// Bytes there were.
        found: usize,
    },
    /// The bytes do not encode a point of the curve in the one way allowed.
    #[error(
        "the public key is not the canonical encoding of a point on the curve; copy it again from its owner"
    )]
    Encoding,
    /// The key is the identity point, under which anyone can sign.
    #[error(
        "the public key is the identity point, under which anyone can sign; its owner must generate another"
    )]
    Identity,
    /// The key's point lies outside the prime-order subgroup.
    #[error(
        "the public key lies outside the prime-order subgroup; its owner must generate another"
    )]
    Subgroup,
    /// The proof of possession does not verify: the owner may not hold the secret key.
    #[error(
        "the proof of possession does not match the public key; its owner must send both again"
    )]
    Possession,
    /// A proof of possession was given for a scheme that has none.
    #[error("{kind} keys carry no proof of possession; leave it empty")]
    UnexpectedProof {
        /// Scheme the key is for.
        kind: SchemeKind,
    },
    /// The bytes are not a secret key (zero, or not below the group's order).
    #[error(
        "the secret key is out of range; restore the key file from a backup or generate another"
    )]
    Secret,
    /// Two members have one key.
    #[error("members {first} and {second} have the same voting key; each must generate its own")]
    Duplicate {
        /// The member that has it first.
        first: usize,
        /// The member that has it again.
        second: usize,
    },
    /// A committee of nobody.
    #[error("a committee needs at least one member")]
    NoMembers,
    /// A committee too large for a bitmap.
    #[error("a committee has at most 65535 members, but {members} keys were given")]
    TooManyMembers {
        /// Keys given.
        members: usize,
    },
    /// Keys that a dealer makes were asked for, or given, as if each member made its own.
    #[error(
        "{kind} keys are dealt to a whole committee at once, with a key for the group; no member makes its own"
    )]
    Dealt {
        /// Scheme the keys are for.
        kind: SchemeKind,
    },
    /// Commitments to a polynomial of another degree.
    #[error("{found} commitments were given for a threshold of {expected}, which takes as many")]
    Coefficients {
        /// The threshold.
        expected: usize,
        /// Commitments there were.
        found: usize,
    },
    /// A threshold that nobody need meet or nobody can.
    #[error("a threshold is 1 to the number of members; {threshold} of {members} is none")]
    Threshold {
        /// The threshold.
        threshold: usize,
        /// Members of the committee.
        members: usize,
    },
    /// A member's public share is the group's key: it could sign for the group alone.
    #[error("member {member} has the group's own key for its share; deal anew")]
    GroupSecret {
        /// Whose share.
        member: usize,
    },
    /// The public shares and the group's key do not belong together.
    #[error(
        "the public shares and the group's key do not lie on one polynomial for a threshold of {threshold}: they were altered, or are of different dealings"
    )]
    Polynomial {
        /// The threshold.
        threshold: usize,
    },
    /// Two sharings have one group key, so that shares of one are shares of the other.
    #[error("the {first} and the {second} sharing share one secret; deal anew")]
    OneSecret {
        /// The one.
        first: Sharing,
        /// The other.
        second: Sharing,
    },
    /// One sharing's keys are at fault.
    #[error("the {sharing} sharing: {cause}")]
    Sharing {
        /// Which.
        sharing: Sharing,
        /// What is wrong with it.
        cause: Box<KeyError>,
    },
    /// The text is not hexadecimal.
    #[error("a key is written in hexadecimal digits, two a byte; this text is not")]
    Hex,
    /// One member's key or proof is at fault.
    #[error("member {member}: {cause}")]
    Member {
        /// Whose.
        member: usize,
        /// What is wrong with it.
        cause: Box<KeyError>,
    },
}

/// A name that is none of the choices of an option.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a {what}; choose one of: {choices}")]
pub struct UnknownName {
    /// What was to be chosen.
    pub what: &'static str,
    /// The name given.
    pub name: String,
    /// The names there are.
    pub choices: &'static str,
}
