//! A validator's keys: where the passphrase of a sealed file comes from, and whose keys they are.
//!
//! A passphrase is never an argument, which every user of the machine can see. It is one line of
//! the first of these files that is named, and otherwise asked for:
//!
//! 1. `passphrase_file` in the configuration (`--passphrase-file` takes its place);
//! 2. the file that the environment's `QUORATE_PASSPHRASE_FILE` names;
//! 3. the systemd credential `quorate-passphrase`, in the folder that `CREDENTIALS_DIRECTORY`
//!    names.

use crate::{NodeConfig, NodeError, PassphraseFileError};
use quorate_crypto::{KeyFile, Passphrase, PublicKeys, StoredKeys, shared_mode};
use quorate_types::{Committee, CommitteeFile, ReplicaId};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The environment variable that names a passphrase file.
pub const PASSPHRASE_VARIABLE: &str = "QUORATE_PASSPHRASE_FILE";

/// The systemd credential that holds a passphrase.
pub const CREDENTIAL: &str = "quorate-passphrase";

/// Origin of a passphrase file's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The configuration, or an option in its place.
    Configuration,
    /// The environment variable names it.
    Environment,
    /// systemd, which guards the file itself.
    Credential,
}

/// The passphrase file that is named first, and by whom.
#[must_use]
pub fn passphrase_file(config: &NodeConfig) -> Option<(PathBuf, Origin)> {
    if let Some(path) = &config.passphrase_file {
        return Some((path.clone(), Origin::Configuration));
    }
    passphrase_file_of_environment()
}

/// As [`passphrase_file`], without a configuration.
#[must_use]
pub fn passphrase_file_of_environment() -> Option<(PathBuf, Origin)> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = named(PASSPHRASE_VARIABLE) {
        return Some((path, Origin::Environment));
    }
    let credential = named("CREDENTIALS_DIRECTORY")?.join(CREDENTIAL);
    credential.exists().then_some((credential, Origin::Credential))
}

/// Reads a passphrase file.
///
/// # Errors
/// When it cannot be read, is open to others, or holds no passphrase.
pub fn read_passphrase(path: &Path, origin: Origin) -> Result<Passphrase, PassphraseFileError> {
    let failed = |source| PassphraseFileError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    // systemd may let its user in by an access list, which shows as rights of the group.
    if origin != Origin::Credential {
        refuse_shared(&file, path)?;
    }
    // One byte more than a passphrase and its line's end: more is not read.
    let most = Passphrase::BYTES_MAX + 3;
    let mut bytes = Zeroizing::new(Vec::with_capacity(most));
    file.take(most as u64).read_to_end(&mut bytes).map_err(failed)?;
    Passphrase::from_file(&bytes)
        .map_err(|source| PassphraseFileError::Content { path: path.to_owned(), source })
}

/// The keys that a configuration names; a sealed file is opened with the passphrase of the first
/// file named, or of `ask`, which gets the key file's path.
///
/// # Errors
/// When the file, or the passphrase, is refused.
pub fn load(
    config: &NodeConfig,
    ask: &mut dyn FnMut(&Path) -> Option<Passphrase>,
) -> Result<KeyFile, NodeError> {
    open(&config.key, passphrase_file(config), ask)
}

/// The keys in a file; a sealed one is opened with the passphrase in `named`, or of `ask`, which
/// gets the key file's path.
///
/// # Errors
/// When the file, or the passphrase, is refused.
pub fn open(
    key: &Path,
    named: Option<(PathBuf, Origin)>,
    ask: &mut dyn FnMut(&Path) -> Option<Passphrase>,
) -> Result<KeyFile, NodeError> {
    let sealed = match StoredKeys::read(key)? {
        StoredKeys::Open(keys) => return Ok(keys),
        StoredKeys::Sealed(sealed) => sealed,
    };
    let passphrase = match named {
        Some((path, origin)) => Some(read_passphrase(&path, origin)?),
        None => ask(key),
    };
    let missing = || NodeError::NoPassphrase { key: key.to_owned() };
    Ok(sealed.open(&passphrase.ok_or_else(missing)?)?)
}

/// Name of the file beside a member's key file that takes its place in the epoch whose committee
/// file names its voting key: `key.toml` is followed by `key.next.toml`. It is sealed, if it is,
/// under the passphrase of the same file.
#[must_use]
pub fn next_key_file(key: &Path) -> PathBuf {
    key.with_extension("next.toml")
}

/// A validator's keys, with what opens the files that later epochs name: the operator may put one
/// file in the place of the other at any time.
#[derive(Clone, Debug)]
pub struct Keyring {
    keys: KeyFile,
    /// Passphrase that was typed.
    typed: Option<Passphrase>,
}

impl From<KeyFile> for Keyring {
    fn from(keys: KeyFile) -> Self {
        Self { keys, typed: None }
    }
}

impl Keyring {
    /// The keys that a configuration names, as [`load`] opens them. What `ask` returns is kept.
    ///
    /// # Errors
    /// As [`load`].
    pub fn load(
        config: &NodeConfig,
        ask: &mut dyn FnMut(&Path) -> Option<Passphrase>,
    ) -> Result<Self, NodeError> {
        let mut typed = None;
        let keys = load(config, &mut |path| {
            typed = ask(path);
            typed.clone()
        })?;
        Ok(Self { keys, typed })
    }

    /// The keys that were loaded.
    #[must_use]
    pub fn keys(&self) -> &KeyFile {
        &self.keys
    }

    /// The keys that are in force under a committee file: those that were loaded, or those in the
    /// key file as it is now, or in the file that follows it; whichever has the voting key that the
    /// committee file names.
    ///
    /// # Errors
    /// When a file that is needed is refused.
    pub(crate) fn in_force(
        &self,
        config: &NodeConfig,
        committee: &Committee,
        file: &CommitteeFile,
    ) -> Result<KeyFile, NodeError> {
        let named = |keys: &KeyFile| {
            let public = keys.public();
            let id = committee.find(&public.identity);
            id.is_some_and(|id| has_voting_key(file, id, &public))
        };
        let is_member = committee.find(&self.keys.identity.public()).is_some();
        if !is_member || named(&self.keys) {
            return Ok(self.keys.clone());
        }
        for path in [config.key.clone(), next_key_file(&config.key)] {
            if !path.exists() {
                continue;
            }
            let keys = open(&path, passphrase_file(config), &mut |_| self.typed.clone())?;
            if named(&keys) {
                tracing::info!(file = %path.display(), "a new voting key is in force");
                return Ok(keys);
            }
        }
        Ok(self.keys.clone())
    }
}

fn has_voting_key(file: &CommitteeFile, id: ReplicaId, keys: &PublicKeys) -> bool {
    let expected = file.members.get(id.index()).and_then(|member| hex::decode(&member.voting).ok());
    expected.as_ref() == Some(&keys.voting.0) && file.scheme == keys.scheme.to_string()
}

/// The member that these keys belong to.
///
/// # Errors
/// [`NodeError::NotAMember`], or [`NodeError::OtherVotingKey`] when the committee knows the
/// identity with another voting key, whose votes it would refuse.
pub fn member_of(
    config: &NodeConfig,
    committee: &Committee,
    file: &CommitteeFile,
    keys: &PublicKeys,
) -> Result<ReplicaId, NodeError> {
    let id = committee.find(&keys.identity).ok_or_else(|| NodeError::NotAMember {
        key: config.key.clone(),
        committee: config.committee.clone(),
    })?;
    if !has_voting_key(file, id, keys) {
        return Err(NodeError::OtherVotingKey {
            key: config.key.clone(),
            committee: config.committee.clone(),
            member: id,
            next: next_key_file(&config.key),
        });
    }
    Ok(id)
}

/// The index that these keys' owner has: a member's own, or for a learner the first beyond them.
///
/// # Errors
/// As [`member_of`]; [`NodeError::LearnerIsMember`] when the configuration says `learner` of a
/// member.
pub fn place_of(
    config: &NodeConfig,
    committee: &Committee,
    file: &CommitteeFile,
    keys: &PublicKeys,
) -> Result<ReplicaId, NodeError> {
    if !config.learner {
        return member_of(config, committee, file, keys);
    }
    if let Some(member) = committee.find(&keys.identity) {
        return Err(NodeError::LearnerIsMember { key: config.key.clone(), member });
    }
    Ok(ReplicaId(u16::try_from(committee.size()).expect("a committee's indices are 16 bits")))
}

fn refuse_shared(file: &File, path: &Path) -> Result<(), PassphraseFileError> {
    let failed = |source| PassphraseFileError::Read { path: path.to_owned(), source };
    match shared_mode(file, 0o027).map_err(failed)? {
        Some(mode) => Err(PassphraseFileError::Shared { path: path.to_owned(), mode }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
