//! A replica's secret keys on disk.
//!
//! ```text
//! # Secret keys of a Quorate replica. Whoever reads this file can sign as this replica.
//! scheme = "bls"
//! identity = "<64 hexadecimal digits: Ed25519 seed>"
//! voting = "<64 hexadecimal digits: voting secret>"
//! ```
//!
//! The text is a subset of TOML, read by hand: a general parser would leave copies of the secrets in
//! memory that nobody wipes.

use crate::error::KeyError;
use crate::{IdentitySecret, SchemeKind, VotingSecret};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const HEADER: &str =
    "# Secret keys of a Quorate replica. Whoever reads this file can sign as this replica.\n";

/// Longest key file read, in bytes.
const FILE_BYTES_MAX: u64 = 4096;

/// The secrets of one replica.
#[derive(Debug, Clone)]
pub struct KeyFile {
    /// Its identity.
    pub identity: IdentitySecret,
    /// Its vote.
    pub voting: VotingSecret,
}

/// Why a key file was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file system refused.
    #[error("{action} the key file {path} failed: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is there already, and secrets are never overwritten.
    #[error("{path} exists already; move it away first, for keys are never overwritten", path = path.display())]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Others than the owner may read or write the file.
    #[error("{path} is open to others (mode {mode:04o}); run `chmod 600` on it, and replace the keys if it was copied", path = path.display())]
    Permissions {
        /// Which file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The text is not that of a key file.
    #[error("{path} is not a key file: {problem}", path = path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is well formed but a key in it is not.
    #[error("the voting key in {path} is unusable: {source}", path = path.display())]
    Key {
        /// Which file.
        path: PathBuf,
        /// What is wrong with the key.
        source: KeyError,
    },
}

impl KeyFile {
    /// New keys. `seed_source` fills its argument with fresh randomness, such as the system's.
    pub fn generate(kind: SchemeKind, seed_source: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut seed = Zeroizing::new([0; 32]);
        seed_source(&mut seed[..]);
        Self::from_seed(kind, &seed)
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

    /// Writes a new file that only its owner may read, and makes it durable. Never overwrites.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        let mut file = create_private(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => KeyFileError::Exists { path: path.to_owned() },
            _ => failed("creating", path, source),
        })?;
        file.write_all(self.text().as_bytes()).map_err(|e| failed("writing", path, e))?;
        file.sync_all().map_err(|e| failed("syncing", path, e))?;
        sync_directory(path).map_err(|e| failed("syncing the directory of", path, e))
    }

    /// Reads a file that only its owner may read.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        let file = File::open(path).map_err(|e| failed("opening", path, e))?;
        refuse_shared(&file, path)?;
        // Room for the largest file at once: growing would leave copies of the secrets behind.
        let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX as usize + 1));
        file.take(FILE_BYTES_MAX + 1)
            .read_to_string(&mut text)
            .map_err(|e| failed("reading", path, e))?;
        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(malformed(path, format!("it exceeds {FILE_BYTES_MAX} bytes")));
        }
        parse(&text, path)
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

fn parse(text: &str, path: &Path) -> Result<KeyFile, KeyFileError> {
    let (mut scheme, mut identity, mut voting) = (None, None, None);
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
        let slot = match name.trim() {
            "scheme" => &mut scheme,
            "identity" => &mut identity,
            "voting" => &mut voting,
            _ => {
                return Err(malformed(path, format!("line {} has an unknown name", index + 1)));
            }
        };
        if slot.replace(value).is_some() {
            return Err(malformed(path, format!("line {} repeats a name", index + 1)));
        }
    }
    let present = |value: Option<_>, name| {
        value.ok_or_else(|| malformed(path, format!("it lacks the line `{name} = …`")))
    };
    let kind: SchemeKind = present(scheme, "scheme")?
        .parse()
        .map_err(|error: crate::UnknownName| malformed(path, error.to_string()))?;
    let identity = decode(present(identity, "identity")?, "identity", path)?;
    let voting = decode(present(voting, "voting")?, "voting", path)?;
    let voting = VotingSecret::from_bytes(kind, &voting[..])
        .map_err(|source| KeyFileError::Key { path: path.to_owned(), source })?;
    Ok(KeyFile { identity: IdentitySecret::from_seed(*identity), voting })
}

fn decode(text: &str, name: &str, path: &Path) -> Result<Zeroizing<[u8; 32]>, KeyFileError> {
    let mut bytes = Zeroizing::new([0; 32]);
    hex::decode_to_slice(text, &mut bytes[..])
        .map_err(|_| malformed(path, format!("`{name}` must be 64 hexadecimal digits")))?;
    Ok(bytes)
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> KeyFileError {
    KeyFileError::Io { action, path: path.to_owned(), source }
}

fn malformed(path: &Path, problem: String) -> KeyFileError {
    KeyFileError::Format { path: path.to_owned(), problem }
}

#[cfg(unix)]
fn create_private(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

#[cfg(not(unix))]
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Asks the open file, not its name: a name can be made to mean another file in between.
#[cfg(unix)]
fn refuse_shared(file: &File, path: &Path) -> Result<(), KeyFileError> {
    use std::os::unix::fs::PermissionsExt;
    let metadata = file.metadata().map_err(|e| failed("inspecting", path, e))?;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyFileError::Permissions { path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_shared(_file: &File, _path: &Path) -> Result<(), KeyFileError> {
    Ok(())
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests;
