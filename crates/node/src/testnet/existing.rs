//! Keys that are there already, for a testnet that is not to make new ones.

use crate::config::{ConfigError, read_committee_file};
use quorate_crypto::{KeyFile, KeyFileError, SchemeKind};
use quorate_types::{Committee, CommitteeFile};
use std::fmt;
use std::path::{Path, PathBuf};

/// A committee, and its members' keys as far as they are at hand.
#[derive(Clone)]
pub struct ExistingKeys {
    /// Committee file that the keys belong to.
    pub committee: CommitteeFile,
    /// Keys in member order; `None` for a member whose keys are elsewhere or lost.
    pub keys: Vec<Option<KeyFile>>,
}

/// Reason that a folder's keys cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExistingKeysError {
    /// There is no committee file.
    #[error(
        "{folder} holds no committee file: it is committee.toml in that folder or in a folder \
         validator-0, validator-1, … in it", folder = .0.display()
    )]
    NoCommittee(PathBuf),
    /// A committee file is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Committee files that say different things.
    #[error("{path} names another committee than the folder's first committee file", path = .0.display())]
    OtherCommittee(PathBuf),
    /// A key file is refused.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A key file that is another member's, or nobody's.
    #[error("the keys in {path} are not those of member {member}", path = path.display())]
    OtherMember {
        /// Path of the key file.
        path: PathBuf,
        /// Index of the member whose keys it should hold.
        member: usize,
    },
    /// A scheme that is none.
    #[error("the voting scheme '{0}' is unknown")]
    Scheme(String),
}

impl ExistingKeys {
    /// Reads a folder as a testnet has it, `committee.toml` and a folder `validator-I` with
    /// `key.toml` for each member, or as key generation leaves it, with the committee file in each
    /// of these.
    ///
    /// # Errors
    /// When there is no committee, files disagree, or a key file is sealed or not its member's.
    pub fn read(folder: &Path) -> Result<Self, ExistingKeysError> {
        let of_member = |member: usize| folder.join(format!("validator-{member}"));
        let folders = (0..Committee::MEMBERS_MAX).map(of_member);
        let places = std::iter::once(folder.to_owned()).chain(folders);
        let mut files =
            places.map(|place| place.join("committee.toml")).filter(|file| file.exists());
        let nothing = || ExistingKeysError::NoCommittee(folder.to_owned());
        let committee = read_committee_file(&files.next().ok_or_else(nothing)?)?;
        for other in files {
            if read_committee_file(&other)? != committee {
                return Err(ExistingKeysError::OtherCommittee(other));
            }
        }
        let read = |member| read_keys(&committee, member, &of_member(member).join("key.toml"));
        let keys = (0..committee.members.len()).map(read).collect::<Result<_, _>>()?;
        Ok(Self { committee, keys })
    }

    /// The members' voting scheme.
    ///
    /// # Errors
    /// When there is no such scheme.
    pub fn scheme(&self) -> Result<SchemeKind, ExistingKeysError> {
        let unknown = |_| ExistingKeysError::Scheme(self.committee.scheme.clone());
        self.committee.scheme.parse().map_err(unknown)
    }

    /// The members whose keys are not at hand.
    #[must_use]
    pub fn absent(&self) -> Vec<usize> {
        (0..self.keys.len()).filter(|member| self.keys[*member].is_none()).collect()
    }
}

fn read_keys(
    committee: &CommitteeFile,
    member: usize,
    path: &Path,
) -> Result<Option<KeyFile>, ExistingKeysError> {
    if !path.exists() {
        return Ok(None);
    }
    let keys = KeyFile::read(path)?;
    let (entry, public) = (&committee.members[member], keys.public());
    if entry.identity != public.identity.to_string() || entry.voting != public.voting.to_string() {
        return Err(ExistingKeysError::OtherMember { path: path.to_owned(), member });
    }
    Ok(Some(keys))
}

impl fmt::Debug for ExistingKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExistingKeys({} members, {:?} absent)", self.keys.len(), self.absent())
    }
}
