//! A wallet in one file: its book and its archive, sealed under a key that follows from the
//! wallet's secret, and its key file if it is wanted there.

use super::archive::{self, Archive};
use super::file::RecordFile;
use super::notes::Notes;
use super::payment::{Entry, Line};
use super::record::{Folded, Record};
use super::{Wallet, WalletError, encode, read};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_node::unix_ms;
use quorate_payments::TxId;
use quorate_types::NetworkId;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 24] = b"quorate wallet backup 2\n";

/// Of backups of before books were folded: the book alone.
const MAGIC_OF_BOOKS: &[u8; 24] = b"quorate wallet backup 1\n";

/// Backup of a wallet. What came after it is taken in from the authorities' records, but for what
/// was folded away since: lines of the history, and callers' keys.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Backup {
    /// Key that the wallet belongs to.
    pub owner: IdentityKey,
    /// Network that it pays in, if it was used.
    pub network: Option<NetworkId>,
    /// Text of the key file, where it was to be part of the backup.
    pub key_file: Option<String>,
    sealed: Vec<u8>,
    /// True for one of before books were folded.
    #[borsh(skip)]
    is_of_book: bool,
}

/// Everything that the files of a wallet say.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Contents {
    /// Lines of the archive.
    archive: Vec<Vec<u8>>,
    /// Records of the book.
    book: Vec<Vec<u8>>,
}

impl Wallet {
    /// A backup of the wallet as it is.
    ///
    /// # Errors
    /// When the book cannot be read.
    pub fn backup(&self, key_file: Option<String>) -> Result<Backup, WalletError> {
        let book = RecordFile::salvage(self.file.path())?;
        let archive = self.archive.as_ref().map_or(Ok(Vec::new()), Archive::contents)?;
        let (owner, network) = (self.owner(), self.state.network);
        let plain = encode(&Contents { archive, book });
        let sealed = Notes::backup_key(&self.secret).seal(&context(MAGIC, owner), &plain);
        Ok(Backup { owner, network, key_file, sealed, is_of_book: false })
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
        let present = Contents::salvage(path)?;
        let mut contents = match backup {
            Some(backup) => present.or_saved(backup.open(secret)?),
            None => present,
        };
        let found = read(&contents.book).ok().and_then(|state| state.owner);
        match found {
            Some(found) if found != owner && backup.is_some() => {
                return Err(WalletError::OtherOwner { expected: found, found: owner });
            }
            Some(found) if found == owner => {}
            // Nothing of this key's is there: the authorities alone know.
            _ => {
                contents =
                    Contents { archive: Vec::new(), book: vec![encode(&Record::Owner(owner))] }
            }
        }
        contents.book.push(encode(&Record::Restored { at_ms: unix_ms() }));
        contents.write(path)
    }
}

impl Contents {
    /// What can be read of the files of a wallet.
    fn salvage(path: &Path) -> Result<Self, WalletError> {
        let book = RecordFile::salvage(path)?;
        let folded = Folded::of(&book).map(|(_, folded)| folded);
        let archive = folded.map_or(Ok(Vec::new()), |one| archive::salvage(path, &one.archive))?;
        Ok(Self { archive, book })
    }

    /// What a wallet begins with again: what is there, where that may be the saved one and go on,
    /// or else what was saved.
    fn or_saved(self, saved: Self) -> Self {
        if self.book.starts_with(&saved.book) {
            // Nothing was folded since: where one archive is shorter, it is damaged.
            let is_whole = self.archive.len() >= saved.archive.len();
            return if is_whole { self } else { Self { archive: saved.archive, ..self } };
        }
        if self.goes_on_from(&saved) { self } else { saved }
    }

    /// Tells whether this knows of every payment and receipt that an earlier one of the same wallet
    /// knows of.
    fn goes_on_from(&self, earlier: &Self) -> bool {
        matches!(
            (self.known(), earlier.known()),
            (Some((of, all)), Some((same, some))) if of == same && some.is_subset(&all)
        )
    }

    /// Owner, and payments (true) and receipts (false) by their transactions; `None` where they
    /// contradict each other.
    fn known(&self) -> Option<(IdentityKey, BTreeSet<(bool, TxId)>)> {
        let state = read(&self.book).ok()?;
        let name = |entry: &Entry| match entry {
            Entry::Payment(payment) => (true, payment.id),
            Entry::Incoming(incoming) => (false, incoming.tx),
        };
        let mut known: BTreeSet<_> = state.entries.values().map(name).collect();
        for line in &self.archive {
            known.insert(name(&borsh::from_slice::<Line>(line).ok()?.entry));
        }
        Some((state.owner?, known))
    }

    /// Writes the files of a wallet, in the place of what is there. An archive is a new one, which
    /// the book names: what was there keeps its own.
    fn write(mut self, path: &Path) -> Result<Option<PathBuf>, WalletError> {
        if let Some((at, former)) = Folded::of(&self.book) {
            let archive = archive::write(path, &self.archive)?;
            let folded = Folded { archive, removed: BTreeMap::new(), ..former };
            self.book[at] = encode(&Record::Folded(folded));
        }
        RecordFile::replace(path, &self.book)
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
        let read =
            |magic: &[u8]| -> Option<Self> { borsh::from_slice(bytes.strip_prefix(magic)?).ok() };
        let of_book = || Some(Self { is_of_book: true, ..read(MAGIC_OF_BOOKS)? });
        read(MAGIC).or_else(of_book).ok_or_else(|| {
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
            file.write_all(&[&self.magic()[..], &content].concat())?;
            file.sync_all()
        });
        written.map_err(|source| {
            WalletError::Backup(format!("cannot write {}: {source}", path.display()))
        })
    }

    fn magic(&self) -> &'static [u8; 24] {
        if self.is_of_book { MAGIC_OF_BOOKS } else { MAGIC }
    }

    fn open(&self, secret: &IdentitySecret) -> Result<Contents, WalletError> {
        let (expected, found) = (self.owner, secret.public());
        if expected != found {
            return Err(WalletError::OtherOwner { expected, found });
        }
        let key = Notes::backup_key(secret);
        let contents = |plain: Vec<u8>| match self.is_of_book {
            true => {
                let book = borsh::from_slice(&plain).ok()?;
                Some(Contents { archive: Vec::new(), book })
            }
            false => borsh::from_slice(&plain).ok(),
        };
        let plain = key.open(&context(self.magic(), found), &self.sealed);
        plain.and_then(contents).ok_or_else(|| {
            let advice = "`quorate pay restore` without it asks the authorities";
            WalletError::Backup(format!("the backup was altered since it was written: {advice}"))
        })
    }
}

fn context(magic: &[u8; 24], owner: IdentityKey) -> Vec<u8> {
    [&magic[..], &owner.0].concat()
}
