//! Errors of signatures and of keys.

use crate::options::SchemeKind;
use crate::threshold::Sharing;

/// Reason for which a signature, share or certificate was refused. The sender is at fault, never
/// this replica.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The bytes are too few or too many.
    #[error("a signature of {expected} bytes was expected, but {found} came")]
    Length {
        /// Bytes such a signature takes.
        expected: usize,
        /// Number of bytes that came.
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
        /// Index that was given for the signer.
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

/// Reason for which a key, or a committee's list of keys, was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The bytes are too few or too many.
    #[error("a {kind} {what} takes {expected} bytes, but {found} were given")]
    Length {
        /// Scheme the key is for.
        kind: SchemeKind,
        /// Kind of bytes that were read, such as "public key".
        what: &'static str,
        /// Number of bytes that it takes.
        expected: usize,
        /// Number of bytes that were given.
        found: usize,
    },
    /// The bytes do not encode a point of the curve in the one way allowed.
    #[error(
        "the public key is not the canonical encoding of a point on the curve; copy it again from its owner"
    )]
    Encoding,
    /// The key is the identity point, or another of small order: anyone can sign under it.
    #[error(
        "the public key is the identity point or another of small order, under which anyone can sign; its owner must generate another"
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
    /// An identity key without the proof that its secret is held.
    #[error(
        "the proof that its owner holds the identity's secret is missing: its owner prints it with \
         `quorate keys show FILE` (identity_proof), and adding it changes nothing else"
    )]
    NoIdentityProof,
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
        /// Number of keys that were given.
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
        /// Threshold of the sharing, and so the number of commitments that it takes.
        expected: usize,
        /// Number of commitments that were given.
        found: usize,
    },
    /// A threshold that nobody need meet or nobody can.
    #[error("a threshold is 1 to the number of members; {threshold} of {members} is none")]
    Threshold {
        /// Threshold that was asked for.
        threshold: usize,
        /// Members of the committee.
        members: usize,
    },
    /// A member's public share is the group's key: it could sign for the group alone.
    #[error("member {member} has the group's own key for its share; deal anew")]
    GroupSecret {
        /// Member that holds the share.
        member: usize,
    },
    /// The public shares and the group's key do not belong together.
    #[error(
        "the public shares and the group's key do not lie on one polynomial for a threshold of {threshold}: they were altered, or are of different dealings"
    )]
    Polynomial {
        /// Threshold that gives the polynomial's degree.
        threshold: usize,
    },
    /// Two sharings have one group key, so that shares of one are shares of the other.
    #[error("the {first} and the {second} sharing share one secret; deal anew")]
    OneSecret {
        /// One of the two sharings.
        first: Sharing,
        /// The other of the two sharings.
        second: Sharing,
    },
    /// One sharing's keys are at fault.
    #[error("the {sharing} sharing: {cause}")]
    Sharing {
        /// Sharing that the keys are of.
        sharing: Sharing,
        /// Reason for which its keys were refused.
        cause: Box<KeyError>,
    },
    /// The text is not hexadecimal.
    #[error("a key is written in hexadecimal digits, two a byte; this text is not")]
    Hex,
    /// One member's key or proof is at fault.
    #[error("member {member}: {cause}")]
    Member {
        /// Member that the key is of, by its index.
        member: usize,
        /// Reason for which it was refused.
        cause: Box<KeyError>,
    },
}
