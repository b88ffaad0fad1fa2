//! A replica's secret keys on disk, in the clear or sealed under a passphrase ([`sealed`]).
//!
//! ```text
//! # Secret keys of a Quorate replica. Whoever reads this file can sign as this replica.
//! scheme = "bls"
//! identity = "<64 hexadecimal digits: Ed25519 seed>"
//! voting = "<64 hexadecimal digits: voting secret; 192 for bls-threshold>"
//! ```
//!
//! The text is a subset of TOML, read by hand: a general parser would leave copies of the secrets
//! in memory that nobody wipes.

mod files;
mod lock;
mod passphrase;
pub(crate) mod sealed;
mod secret;

pub use files::shared_mode;
pub use lock::SealCost;
pub use passphrase::{Passphrase, PassphraseError};
pub use sealed::SealedKeys;
pub use secret::SecretFile;

use crate::error::KeyError;
use crate::{
    IdentityKey, IdentitySecret, PossessionProof, SchemeKind, UnknownName, VotingKey, VotingSecret,
};
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const HEADER: &str =
    "# Secret keys of a Quorate replica. Whoever reads this file can sign as this replica.\n";

/// The secrets of one replica.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Identity key: opens channels and signs what the replica says for itself.
    pub identity: IdentitySecret,
    /// Voting key: signs the shares of certificates.
    pub voting: VotingSecret,
}

/// Public half of a replica's keys: its entry in a committee file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeys {
    /// The scheme that the voting key belongs to.
    pub scheme: SchemeKind,
    /// Identity key that names the replica.
    pub identity: IdentityKey,
    /// Proof that the identity's secret is held; empty where a sealed file of format 1 was read.
    pub identity_proof: PossessionProof,
    /// Voting key that its shares are checked with.
    pub voting: VotingKey,
    /// Proof that the voting key's secret is held; empty for Ed25519.
    pub possession: PossessionProof,
}

/// A key file as it is found on disk.
#[derive(Debug, Clone)]
pub enum StoredKeys {
    /// Keys in the clear.
    Open(KeyFile),
    /// Sealed: it takes a passphrase to sign with these.
    Sealed(Box<SealedKeys>),
}

/// Reason for which a key file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file system refused.
    #[error("{action} the key file {path} failed: {source}", path = path.display())]
    Io {
        /// Action that was tried, such as "reading".
        action: &'static str,
        /// File that it was tried with.
        path: PathBuf,
        /// Error that the system reported.
        source: io::Error,
    },
    /// A file is there already, and secrets are never overwritten.
    #[error("{path} exists already; move it away first, for keys are never overwritten", path = path.display())]
    Exists {
        /// File that is in the way.
        path: PathBuf,
    },
    /// Others than the owner may read or write the file.
    #[error("{path} is open to others (mode {mode:04o}); run `chmod 600` on it, and replace the keys if it was copied", path = path.display())]
    Permissions {
        /// File that is open to others.
        path: PathBuf,
        /// Permission bits that the file has.
        mode: u32,
    },
    /// The text is not that of a key file.
    #[error("{path} is not a key file: {problem}", path = path.display())]
    Format {
        /// File that was read.
        path: PathBuf,
        /// Reason for which the text is not that of a key file.
        problem: String,
    },
    /// The file is sealed, and nobody gave a passphrase.
    #[error("{path} is sealed under a passphrase, and none was given", path = path.display())]
    Sealed {
        /// File that is sealed.
        path: PathBuf,
    },
    /// The file does not open.
    #[error("the passphrase does not open {path}: it is the wrong one, or the file was altered", path = path.display())]
    Passphrase {
        /// File that was to be opened.
        path: PathBuf,
    },
    /// Opening the file would cost more than a key file may.
    #[error("{path} asks for {what}, more than any key file needs ({most}): it was altered, or made to exhaust this machine", path = path.display())]
    Cost {
        /// File that asks for it.
        path: PathBuf,
        /// Resource that it asks for, with the amount.
        what: String,
        /// Bound that the amount exceeds.
        most: String,
    },
    /// Deriving a key needs memory that the system does not give.
    #[error("the system gave no {memory_kib} KiB of memory to open or seal {path}: free some, or run this where there is more", path = path.display())]
    Memory {
        /// File that was to be opened or sealed.
        path: PathBuf,
        /// Memory that was asked for, in KiB.
        memory_kib: u32,
    },
    /// The file is well formed but a key in it is not.
    #[error("the voting key in {path} is unusable: {source}", path = path.display())]
    Key {
        /// File that holds the key.
        path: PathBuf,
        /// Reason for which the key was refused.
        source: KeyError,
    },
}

impl KeyFile {
    /// New keys. `seed_source` fills its argument with fresh randomness, such as the system's.
    ///
    /// # Errors
    /// [`KeyError::Dealt`] for a scheme whose keys a dealer makes for all members at once
    /// ([`deal`](crate::deal)).
    pub fn generate(
        kind: SchemeKind,
        seed_source: &mut dyn FnMut(&mut [u8]),
    ) -> Result<Self, KeyError> {
        if kind == SchemeKind::BlsThreshold {
            return Err(KeyError::Dealt { kind });
        }
        let mut seed = Zeroizing::new([0; 32]);
        seed_source(&mut seed[..]);
        Ok(Self::from_seed(kind, &seed))
    }

    /// The keys that a seed determines, each derived from it under a name of its own.
    pub fn from_seed(kind: SchemeKind, seed: &[u8; 32]) -> Self {
        let derive = |name| Zeroizing::new(blake3::derive_key(name, seed));
        let identity = derive("quorate 2026-01 key file identity");
        let voting = derive("quorate 2026-01 key file voting");
        Self {
            identity: IdentitySecret::from_seed(*identity),
            voting: VotingSecret::from_seed(kind, &voting),
        }
    }

    /// Public half of these keys, with fresh proofs of possession.
    pub fn public(&self) -> PublicKeys {
        PublicKeys {
            scheme: self.voting.kind(),
            identity: self.identity.public(),
            identity_proof: self.identity.prove_possession(),
            voting: self.voting.public(),
            possession: self.voting.prove_possession(),
        }
    }

    /// Writes a new file that only its owner may read, and makes it durable. Never overwrites.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        files::create(path, &self.text())
    }

    /// Writes a new file as [`KeyFile::write`] does, sealed under a passphrase. `random` fills its
    /// argument with fresh randomness.
    pub fn write_sealed(
        &self,
        path: &Path,
        passphrase: &Passphrase,
        cost: SealCost,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), KeyFileError> {
        files::create(path, &sealed::seal(self, passphrase, cost, random, path)?)
    }

    /// Replaces a key file by these keys in the clear: durable and at once, or not at all.
    pub fn replace(&self, path: &Path) -> Result<(), KeyFileError> {
        files::replace(path, &self.text())
    }

    /// Replaces a file as [`KeyFile::replace`] does, sealed under a passphrase.
    pub fn replace_sealed(
        &self,
        path: &Path,
        passphrase: &Passphrase,
        cost: SealCost,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), KeyFileError> {
        files::replace(path, &sealed::seal(self, passphrase, cost, random, path)?)
    }

    /// Reads a file that only its owner may read, and that is not sealed.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        match StoredKeys::read(path)? {
            StoredKeys::Open(keys) => Ok(keys),
            StoredKeys::Sealed(_) => Err(KeyFileError::Sealed { path: path.to_owned() }),
        }
    }

    fn text(&self) -> Zeroizing<String> {
        let identity = Zeroizing::new(hex::encode(&self.identity.seed()[..]));
        let voting = Zeroizing::new(hex::encode(&self.voting.to_bytes()[..]));
        Zeroizing::new(format!(
            "{HEADER}scheme = \"{}\"\nidentity = \"{}\"\nvoting = \"{}\"\n",
            self.voting.kind(),
            &*identity,
            &*voting,
        ))
    }
}

impl StoredKeys {
    /// Reads a file that only its owner may read, sealed or not.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let text = files::read(path)?;
        if sealed::is_sealed(&text) {
            return SealedKeys::parse(&text, path).map(|sealed| Self::Sealed(Box::new(sealed)));
        }
        parse(&text, path).map(Self::Open)
    }

    /// Public half of these keys. Of a sealed file it is the file's claim, proven only once it is
    /// opened.
    pub fn public(&self) -> PublicKeys {
        match self {
            Self::Open(keys) => keys.public(),
            Self::Sealed(sealed) => sealed.public().clone(),
        }
    }

    /// Returns `true` if it takes a passphrase to sign with these.
    pub fn is_sealed(&self) -> bool {
        matches!(self, Self::Sealed(_))
    }
}

/// The values of lines `name = "value"`, in the order of `names`.
fn fields<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
    path: &Path,
) -> Result<[&'a str; N], KeyFileError> {
    let mut values = [None; N];
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // The line itself is not repeated: it may hold a secret.
        let problem = || malformed(path, format!("line {} is not `name = \"value\"`", index + 1));
        let (name, value) = line.split_once('=').ok_or_else(problem)?;
        let value = value.trim().strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let value = value.ok_or_else(problem)?;
        let known = names.iter().position(|known| *known == name.trim());
        let Some(known) = known else {
            return Err(malformed(path, format!("line {} has an unknown name", index + 1)));
        };
        if values[known].replace(value).is_some() {
            return Err(malformed(path, format!("line {} repeats a name", index + 1)));
        }
    }
    if let Some(missing) = values.iter().position(Option::is_none) {
        return Err(malformed(path, format!("it lacks the line `{} = …`", names[missing])));
    }
    Ok(values.map(Option::unwrap_or_default))
}

fn parse(text: &str, path: &Path) -> Result<KeyFile, KeyFileError> {
    let [scheme, identity, voting] = fields(text, ["scheme", "identity", "voting"], path)?;
    let kind = scheme_named(scheme, path)?;
    let identity = decode(identity, "identity", path)?;
    let mut secret = Zeroizing::new(vec![0; VotingSecret::bytes(kind)]);
    decode_to(&mut secret, voting, "voting", path)?;
    let voting = VotingSecret::from_bytes(kind, &secret)
        .map_err(|source| KeyFileError::Key { path: path.to_owned(), source })?;
    Ok(KeyFile { identity: IdentitySecret::from_seed(*identity), voting })
}

fn scheme_named(name: &str, path: &Path) -> Result<SchemeKind, KeyFileError> {
    name.parse().map_err(|error: UnknownName| malformed(path, error.to_string()))
}

fn decode<const N: usize>(
    text: &str,
    name: &str,
    path: &Path,
) -> Result<Zeroizing<[u8; N]>, KeyFileError> {
    let mut bytes = Zeroizing::new([0; N]);
    decode_to(&mut bytes[..], text, name, path)?;
    Ok(bytes)
}

fn decode_to(bytes: &mut [u8], text: &str, name: &str, path: &Path) -> Result<(), KeyFileError> {
    let digits = 2 * bytes.len();
    hex::decode_to_slice(text, bytes)
        .map_err(|_| malformed(path, format!("`{name}` must be {digits} hexadecimal digits")))
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Io { action, path: path.to_owned(), source }
}

fn malformed(path: &Path, problem: String) -> KeyFileError {
    KeyFileError::Format { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests;
