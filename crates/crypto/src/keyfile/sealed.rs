//! Key files under a passphrase, format 2 (docs/adr/0010).
//!
//! ```text
//! # Secret keys of a Quorate replica, sealed under a passphrase.
//! # Everything above the last line is authenticated: an edited file does not open.
//! format = "quorate-sealed-keys-2"
//! scheme = "bls"
//! public_identity = "<64 hexadecimal digits>"
//! identity_proof = "<128 hexadecimal digits>"
//! public_voting = "<hexadecimal digits>"
//! possession = "<hexadecimal digits, none for ed25519 and bls-threshold>"
//! kdf = "argon2id"
//! memory_kib = "65536"
//! passes = "3"
//! lanes = "4"
//! salt = "<32 hexadecimal digits>"
//! cipher = "xchacha20-poly1305"
//! nonce = "<48 hexadecimal digits>"
//! sealed = "<160 hexadecimal digits; 288 for bls-threshold>"
//! ```
//!
//! The key is Argon2id (RFC 9106, version 0x13) of the passphrase's bytes under the salt, 32 bytes
//! long. The plaintext is the identity's seed, 32 bytes, and the voting secret, as many (96 for
//! `bls-threshold`). The associated data are the file's bytes up to the line `sealed`, which is the
//! last one, so that no byte of the header can be changed. Salt and nonce are fresh whenever a file
//! is written.
//!
//! The public keys stand in the header so that a file can be told from another without its
//! passphrase. They are compared with the secrets once it is opened, which also ties the file to
//! one passphrase: the cipher by itself does not commit to its key. Format 1 has no
//! `identity_proof`, and is read all the same.

use super::lock::{Lock, SealCost, TAG_BYTES, check_known, last_line, split};
use super::{
    KeyFile, KeyFileError, Passphrase, PublicKeys, decode, fields, malformed, scheme_named,
};
use crate::{IdentityKey, IdentitySecret, PossessionProof, SchemeKind, VotingKey, VotingSecret};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const HEADER: &str = "# Secret keys of a Quorate replica, sealed under a passphrase.\n\
    # Everything above the last line is authenticated: an edited file does not open.\n";
const FORMAT: &str = "quorate-sealed-keys-2";
/// Format without `identity_proof`.
const FORMAT_1: &str = "quorate-sealed-keys-1";

const SEED_BYTES: usize = 32;

/// A sealed key file as it was read.
#[derive(Debug, Clone)]
pub struct SealedKeys {
    path: PathBuf,
    public: PublicKeys,
    lock: Lock,
    /// Everything above the last line.
    header: String,
    sealed: Vec<u8>,
}

impl SealedKeys {
    /// Public half of the keys that the file claims to hold: proven only once it is opened. Without
    /// the identity's proof where the file is of format 1.
    pub fn public(&self) -> &PublicKeys {
        &self.public
    }

    /// Cost of opening the file, as its header says.
    pub fn cost(&self) -> SealCost {
        self.lock.cost
    }

    /// Opens it. Takes as long and as much memory as its cost says.
    ///
    /// # Errors
    /// [`KeyFileError::Passphrase`] for a wrong passphrase or an altered file, which cannot be told
    /// apart.
    pub fn open(&self, passphrase: &Passphrase) -> Result<KeyFile, KeyFileError> {
        let plain = self.lock.open(&self.header, &self.sealed, passphrase, &self.path)?;
        let (seed, voting) = plain.split_at(SEED_BYTES);
        let seed: [u8; SEED_BYTES] =
            seed.try_into().expect("its length was checked when it was read");
        let voting = VotingSecret::from_bytes(self.public.scheme, voting)
            .map_err(|source| KeyFileError::Key { path: self.path.clone(), source })?;
        let keys = KeyFile { identity: IdentitySecret::from_seed(seed), voting };
        let mut public = keys.public();
        if self.public.identity_proof.0.is_empty() {
            public.identity_proof.0.clear();
        }
        let refused = || KeyFileError::Passphrase { path: self.path.clone() };
        if public == self.public { Ok(keys) } else { Err(refused()) }
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, KeyFileError> {
        let (header, last) = split(text, path)?;
        let (public, lock) = if has_format_1(header) {
            let names = ["format", "scheme", "public_identity", "public_voting", "possession"];
            let [_, scheme, identity, voting, possession, lock @ ..] =
                fields::<12>(header, with_lock(names), path)?;
            (read_public([scheme, identity, "", voting, possession], path)?, lock)
        } else {
            let names = [
                "format",
                "scheme",
                "public_identity",
                "identity_proof",
                "public_voting",
                "possession",
            ];
            let [format, scheme, identity, proof, voting, possession, lock @ ..] =
                fields::<13>(header, with_lock(names), path)?;
            check_known("format", format, FORMAT, path)?;
            if proof.is_empty() {
                return Err(malformed(path, "`identity_proof` is empty".to_owned()));
            }
            (read_public([scheme, identity, proof, voting, possession], path)?, lock)
        };
        let lock = Lock::parse(lock, path)?;
        let sealed = last_line(last, sealed_bytes(public.scheme), path)?;
        Ok(Self { path: path.to_owned(), public, lock, header: header.to_owned(), sealed })
    }
}

/// Names of a header's lines: its own, and the lock's.
fn with_lock<const OWN: usize, const ALL: usize>(own: [&'static str; OWN]) -> [&'static str; ALL] {
    let mut names = own.into_iter().chain(Lock::NAMES);
    std::array::from_fn(|_| names.next().expect("as many as both have"))
}

fn has_format_1(header: &str) -> bool {
    header.lines().any(|line| line == format!("format = \"{FORMAT_1}\""))
}

fn read_public(values: [&str; 5], path: &Path) -> Result<PublicKeys, KeyFileError> {
    let bytes = |text: &str, name| {
        let problem = || malformed(path, format!("`{name}` must be hexadecimal digits"));
        hex::decode(text).map_err(|_| problem())
    };
    let [scheme, identity, proof, voting, possession] = values;
    Ok(PublicKeys {
        scheme: scheme_named(scheme, path)?,
        identity: IdentityKey(*decode(identity, "public_identity", path)?),
        identity_proof: PossessionProof(bytes(proof, "identity_proof")?),
        voting: VotingKey(bytes(voting, "public_voting")?),
        possession: PossessionProof(bytes(possession, "possession")?),
    })
}

fn sealed_bytes(scheme: SchemeKind) -> usize {
    SEED_BYTES + VotingSecret::bytes(scheme) + TAG_BYTES
}

/// Returns `true` if a key file's text is that of a sealed one.
pub(super) fn is_sealed(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("format"))
}

/// The text of a sealed file.
pub(super) fn seal(
    keys: &KeyFile,
    passphrase: &Passphrase,
    cost: SealCost,
    random: &mut dyn FnMut(&mut [u8]),
    path: &Path,
) -> Result<Zeroizing<String>, KeyFileError> {
    let lock = Lock::fresh(cost, random, path)?;
    let mut text = header(&keys.public(), &lock);
    // Room for the tag at once: growing would leave a copy of the secrets behind.
    let mut secrets = Zeroizing::new(Vec::with_capacity(sealed_bytes(keys.voting.kind())));
    secrets.extend_from_slice(&keys.identity.seed()[..]);
    secrets.extend_from_slice(&keys.voting.to_bytes());
    let last = lock.seal(&text, &mut secrets, passphrase, path)?;
    text += &last;
    Ok(Zeroizing::new(text))
}

fn header(public: &PublicKeys, lock: &Lock) -> String {
    let mut text = String::from(HEADER);
    let mut line = |name, value: String| {
        writeln!(text, "{name} = \"{value}\"").expect("memory");
    };
    line("format", FORMAT.into());
    line("scheme", public.scheme.to_string());
    line("public_identity", public.identity.to_string());
    line("identity_proof", public.identity_proof.to_string());
    line("public_voting", public.voting.to_string());
    line("possession", public.possession.to_string());
    Lock::NAMES.into_iter().zip(lock.values()).for_each(|(name, value)| line(name, value));
    text
}

#[cfg(test)]
pub(crate) mod tests;
