//! A wallet in one file: its book, sealed under a key that follows from the wallet's secret, and
//! its key file if it is wanted there.

use super::file::RecordFile;
use super::notes::Notes;
use super::record::Record;
use super::{Wallet, WalletError, encode, read};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_node::unix_ms;
use quorate_types::NetworkId;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 24] = b"quorate wallet backup 1\n";

/// Backup of a wallet. An old one is as good as a new one where the authorities keep records: what
/// came after is taken in from them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Backup {
    /// Key that the wallet belongs to.
    pub owner: IdentityKey,
    /// Network that it pays in, if it was used.
    pub network: Option<NetworkId>,
    /// Text of the key file, where it was to be part of the backup.
    pub key_file: Option<String>,
    book: Vec<u8>,
}

impl Wallet {
    /// A backup of the wallet as it is.
    ///
    /// # Errors
    /// When the book cannot be read.
    pub fn backup(&self, key_file: Option<String>) -> Result<Backup, WalletError> {
        let contents = RecordFile::salvage(self.file.path())?;
        let plain = borsh::to_vec(&contents).expect("encoding into memory cannot fail");
        let (owner, network) = (self.owner(), self.state.network);
        let book = Notes::backup_key(&self.secret).seal(&context(owner), &plain);
        Ok(Backup { owner, network, key_file, book })
    }

    /// Puts a wallet in the place of whatever is at `path`, from what can be read there, or from a
    /// backup that this does not go on from; it takes in what the authorities keep of it before it
    /// pays (★). Returns where the file is that was there.
    ///
    /// # Errors
    /// When the backup, or what is there, is another key's, and when the disk fails.
    pub fn restore(
        path: &Path,
        secret: &IdentitySecret,
        backup: Option<&Backup>,
    ) -> Result<Option<PathBuf>, WalletError> {
        let owner = secret.public();
        let present = RecordFile::salvage(path)?;
        let mut contents = match backup {
            Some(backup) => {
                let saved = backup.open(secret)?;
                // What is there may be the same book, and go on.
                if present.starts_with(&saved) { present } else { saved }
            }
            None => present,
        };
        let found = read(&contents).ok().and_then(|state| state.owner);
        match found {
            Some(found) if found != owner && backup.is_some() => {
                return Err(WalletError::OtherOwner { expected: found, found: owner });
            }
            Some(found) if found == owner => {}
            // Nothing of this key's is there: the authorities alone know.
            _ => contents = vec![encode(&Record::Owner(owner))],
        }
        contents.push(encode(&Record::Restored { at_ms: unix_ms() }));
        RecordFile::replace(path, &contents)
    }
}

impl Backup {
    /// Reads a backup's file.
    ///
    /// # Errors
    /// When it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Self, WalletError> {
        let bytes = std::fs::read(path).map_err(|source| {
            WalletError::Backup(format!("cannot read {}: {source}", path.display()))
        })?;
        let content = bytes.strip_prefix(MAGIC).and_then(|rest| borsh::from_slice(rest).ok());
        content.ok_or_else(|| {
            WalletError::Backup(format!(
                "{} is no backup of a wallet, or not all of it: `quorate pay restore` without a file \
                 asks the authorities",
                path.display()
            ))
        })
    }

    /// Writes a new file that only its owner may read, durably.
    ///
    /// # Errors
    /// When there is one already, or the disk fails.
    pub fn write(&self, path: &Path) -> Result<(), WalletError> {
        let content = borsh::to_vec(self).expect("encoding into memory cannot fail");
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(path);
        let written = opened.and_then(|mut file| {
            file.write_all(&[&MAGIC[..], &content].concat())?;
            file.sync_all()
        });
        written.map_err(|source| {
            WalletError::Backup(format!("cannot write {}: {source}", path.display()))
        })
    }

    fn open(&self, secret: &IdentitySecret) -> Result<Vec<Vec<u8>>, WalletError> {
        let (expected, found) = (self.owner, secret.public());
        if expected != found {
            return Err(WalletError::OtherOwner { expected, found });
        }
        let plain = Notes::backup_key(secret).open(&context(found), &self.book);
        plain.and_then(|plain| borsh::from_slice(&plain).ok()).ok_or_else(|| {
            let advice = "`quorate pay restore` without it asks the authorities";
            WalletError::Backup(format!("the backup was altered since it was written: {advice}"))
        })
    }
}

fn context(owner: IdentityKey) -> Vec<u8> {
    [&MAGIC[..], &owner.0].concat()
}
