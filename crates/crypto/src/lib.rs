//! Keys, signatures, certificates and hashing for Quorate.
//!
//! Two kinds of key live here, and they never mix. An **identity key** ([`IdentityKey`]) is always
//! Ed25519: it names a replica or a client, opens its channels and signs what one party says to
//! others. A **voting key** ([`VotingKey`]) belongs to a committee's [`Scheme`], which turns the
//! members' [`Share`]s over one message into a [`Certificate`].
//!
//! # What a caller must know
//!
//! * **Messages are signed as given.** Domain separation (protocol, chain, epoch, kind) is the
//!   caller's, in the bytes it signs; the schemes add only what their standards prescribe.
//! * **A verified certificate proves a sum.** With an aggregating scheme nothing follows about its
//!   members one by one: two colluders can send `σ₁ + δ` and `σ₂ − δ`. [`Scheme::verify_share`] is
//!   the only statement about a single share, and [`Combined`] says only who was caught.
//! * **Thresholds are the caller's.** [`Scheme::verify`] refuses an empty certificate and one for a
//!   committee of another size; how many signers (or how much weight) is enough it does not know,
//!   and a caller checks that first, since it is cheaper. A threshold scheme knows its own, and a
//!   certificate of it does not prove who signed, only how many.
//! * **One Ed25519 rule everywhere**: ZIP-215, cofactored, so single and batch verification agree
//!   on every input. BLS follows the IETF's proof-of-possession ciphersuite with 48-byte
//!   signatures.
//! * **No ambient randomness.** Batch weights are derived by hashing what they weigh
//!   (Fiat–Shamir), so that everything here is a function of its inputs.
//!
//! # Features
//!
//! * `stub`: a scheme that anyone can forge, and stand-ins for the others' signatures
//!   ([`stand_in`]), for the deterministic simulator only.
//! * `count`: thread-local counts of operations, in [`counts`].
//! * `mutants`: rules that tests can switch off, in [`mutants`].
//!
//! No curve arithmetic is implemented here: it comes from `curve25519-dalek`, `ed25519-zebra`,
//! `secp256k1` and `blst`, through their safe interfaces; but for numbers modulo the order of
//! `blst`'s groups, which have none (`scalar.rs`).

mod batch_weights;
mod bisect;
mod bitmap;
mod bls;
mod committee;
pub mod counts;
mod ecdsa;
mod ed25519;
mod envelope;
mod error;
mod hash;
mod identity;
mod keyfile;
pub mod merkle;
pub mod mutants;
mod options;
mod scalar;
mod scheme;
mod sealing;
pub mod stand_in;
#[cfg(feature = "stub")]
mod stub;
mod threshold;
mod voting;
mod voting_key;

pub use bisect::bad_items;
pub use bitmap::{Bitmap, BitmapError};
pub use committee::committee_scheme;
pub use ecdsa::{EcdsaSecret, EcdsaSignature, recover};
pub use envelope::{Envelope, EnvelopeKey, EnvelopeSecret};
pub use error::{KeyError, SignatureError};
pub use hash::{Digest, ParseDigestError, PartsHasher, hash, hash_keyed, hash_parts};
pub use identity::{
    IDENTITY_POSSESSION, IdentityKey, IdentitySecret, PreparedIdentity, Signature, verify_batch,
};
pub use keyfile::{
    KeyFile, KeyFileError, Passphrase, PassphraseError, PublicKeys, SealCost, SealedKeys,
    SecretFile, StoredKeys, shared_mode,
};
pub use options::{KeyCache, Policy, SchemeKind, UnknownName};
pub use scheme::{Aggregate, Certificate, Combined, Scheme, Share};
pub use sealing::SealingKey;
pub use threshold::{
    BySharing, Commitments, Contribution, Dealing, Sharing, add_shares, contribute, deal,
    threshold_schemes,
};
pub use voting::VotingSecret;
pub use voting_key::{PossessionProof, VotingKey};
