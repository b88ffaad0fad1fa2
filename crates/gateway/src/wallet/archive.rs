//! Archive of a wallet: lines of its history on which nothing depends any more, in a file beside
//! the book that only grows, and an [`index`] of it.
//!
//! ```text
//! wallet                 the book; says how far the archive goes, and what is in it
//! wallet.archive-<name>  lines in frames, as those of the book
//! wallet.index-<name>/   made from the archive, and made again where it is lost
//! ```
//!
//! * Lines are durable here before the book goes on without them. What is behind the end that the
//!   book names is of a fold that was interrupted: it is cut off.
//! * ★ An archive that ends before that, or in another line than the book says, is refused: it does
//!   not know what the wallet was ordered and what it spent.
//! * A start reads the last line and the index's filters, and no other line.

mod index;

use super::WalletError;
use super::file::{failed, sync_folder};
use super::frames::{frame, next_frame, read_frame};
use super::mark::Extent;
use super::payment::{Entry, Line, Payment};
use borsh::{BorshDeserialize, BorshSerialize};
use index::{ArchiveIndex, Indexed};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, IdentityKey};
use quorate_node::testnet::system_random;
use quorate_payments::{OutputId, TxId};
use quorate_storage::StorageError;
use quorate_types::NetworkId;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes that are read at once where all lines are.
const READ_BYTES: usize = 1 << 20;

/// Place in an archive from which a book goes on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct ArchivePoint {
    /// Random part of the archive's name.
    name: [u8; 8],
    /// End of the lines that count.
    extent: Extent,
    /// Offset of the last of them, and the chain of all before it.
    last: (u64, Digest),
}

/// An archive that is open beside its book.
#[derive(Debug)]
pub(super) struct Archive {
    file: File,
    path: PathBuf,
    point: ArchivePoint,
    index: ArchiveIndex,
}

impl ArchivePoint {
    fn begin() -> Self {
        let mut name = [0; 8];
        system_random(&mut name);
        Self { name, extent: Extent::EMPTY, last: (0, Digest::ZERO) }
    }

    /// Length of the lines that count, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.extent.end
    }

    fn with(&self, frame: &[u8]) -> Self {
        let last = (self.extent.end, self.extent.chain);
        Self { name: self.name, extent: self.extent.with(frame), last }
    }

    fn path(&self, book: &Path, what: &str) -> PathBuf {
        book.with_extension(format!("{what}-{}", hex::encode(self.name)))
    }
}

impl Archive {
    /// Begins an archive beside a book, which does not name it yet.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn begin(
        book: &Path,
        owner: IdentityKey,
        network: NetworkId,
    ) -> Result<Self, WalletError> {
        let point = ArchivePoint::begin();
        let (file, path) = create(book, &point)?;
        let index = open_index(book, &point, owner, network)?;
        Ok(Self { file, path, point, index })
    }

    /// Opens the archive that a book goes on from (★), and cuts off what it does not name.
    ///
    /// # Errors
    /// When it is missing, not the one that it was, or the disk fails.
    pub(super) fn open(
        book: &Path,
        point: ArchivePoint,
        owner: IdentityKey,
        network: NetworkId,
    ) -> Result<Self, WalletError> {
        let path = point.path(book, "archive");
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => refused(&path, "is not there"),
            _ => failed("open the archive of", &path, error),
        })?;
        if !ends_at(&file, &point).map_err(|error| failed("read", &path, error))?
            && !mutants::active(Mutant::PayOpenOtherArchive)
        {
            return Err(refused(
                &path,
                "is not the one that it was: an older copy, cut short, or another one",
            ));
        }
        let cut = file.metadata().and_then(|one| match one.len() > point.end() {
            true => file.set_len(point.end()).and_then(|()| file.sync_all()),
            false => Ok(()),
        });
        cut.map_err(|source| failed("cut a torn tail off", &path, source))?;
        let index = open_index(book, &point, owner, network)?;
        let archive = Self { file, path, point, index };
        archive.extend_index()?;
        Ok(archive)
    }

    /// Makes lines durable behind those that count, and returns the point with them: they count
    /// once the book names it.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn append(&self, lines: &[Vec<u8>]) -> Result<ArchivePoint, WalletError> {
        append(&self.file, &self.point, lines).map_err(|source| failed("write", &self.path, source))
    }

    /// Goes on from a point that the book names now.
    ///
    /// # Errors
    /// When the disk fails.
    pub(super) fn advance(&mut self, point: ArchivePoint) -> Result<(), WalletError> {
        self.point = point;
        self.extend_index()
    }

    fn extend_index(&self) -> Result<(), WalletError> {
        let read = |offset| self.read(offset).map_err(ReadError::Wallet);
        self.index.extend(self.point.end(), read).map_err(|error| match error {
            ReadError::Wallet(error) => error,
            ReadError::Index(error) => self.index_failed(&error),
        })
    }

    /// Length of the lines that count, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.point.end()
    }

    /// The line at an offset, and where the next one begins.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn read(&self, offset: u64) -> Result<(Line, u64), WalletError> {
        let frame = read_frame(&self.file, offset);
        let frame = frame.map_err(|source| failed("read", &self.path, source))?;
        let frame = frame.ok_or_else(|| self.damaged(offset))?;
        let line = borsh::from_slice(frame.content()).map_err(|_| self.damaged(offset))?;
        Ok((line, offset + frame.bytes().len() as u64))
    }

    /// All lines, as they are stored.
    ///
    /// # Errors
    /// When they are not all that they were.
    pub(super) fn contents(&self) -> Result<Vec<Vec<u8>>, WalletError> {
        let mut contents = Vec::new();
        self.visit(|content| {
            contents.push(content.to_vec());
            Ok(())
        })?;
        Ok(contents)
    }

    /// All lines, in the order in which they came here.
    ///
    /// # Errors
    /// When they are not all that they were.
    pub(super) fn lines(&self) -> Result<Vec<Line>, WalletError> {
        let mut lines = Vec::new();
        self.visit(|content| {
            lines.push(borsh::from_slice(content).map_err(|_| self.damaged(0))?);
            Ok(())
        })?;
        Ok(lines)
    }

    fn visit(
        &self,
        mut visit: impl FnMut(&[u8]) -> Result<(), WalletError>,
    ) -> Result<(), WalletError> {
        let failed = |source| failed("read", &self.path, source);
        let mut file = &self.file;
        file.rewind().map_err(failed)?;
        let mut reader = BufReader::with_capacity(READ_BYTES, file);
        let mut extent = Extent::EMPTY;
        while extent.end < self.point.end() {
            let frame = next_frame(&mut reader, extent.end).map_err(failed)?;
            let frame = frame.ok_or_else(|| self.damaged(extent.end))?;
            extent = extent.with(frame.bytes());
            visit(frame.content())?;
        }
        if extent == self.point.extent {
            return Ok(());
        }
        let problem = "is not the one that it was: lines were changed since they were written";
        Err(refused(&self.path, problem))
    }

    /// A payment by its transaction.
    ///
    /// # Errors
    /// When it cannot be looked up.
    pub(super) fn payment(&self, tx: TxId) -> Result<Option<Payment>, WalletError> {
        self.payment_at(self.index.payment(tx))
    }

    /// A payment by the caller's key for it.
    ///
    /// # Errors
    /// When it cannot be looked up.
    pub(super) fn payment_of_key(&self, key: &str) -> Result<Option<Payment>, WalletError> {
        self.payment_at(self.index.payment_of_key(key))
    }

    /// Payment that spent an output.
    ///
    /// # Errors
    /// When it cannot be looked up.
    pub(super) fn spender(&self, id: &OutputId) -> Result<Option<TxId>, WalletError> {
        Ok(self.found(self.index.spender(id))?.map(|one| one.tx))
    }

    fn payment_at(
        &self,
        found: Result<Option<Indexed>, StorageError>,
    ) -> Result<Option<Payment>, WalletError> {
        let Some(Indexed { offset, .. }) = self.found(found)? else { return Ok(None) };
        match self.read(offset)?.0.entry {
            Entry::Payment(payment) => Ok(Some(*payment)),
            Entry::Incoming(_) => Err(self.damaged(offset)),
        }
    }

    /// What the index says, if it says so of all lines: after a write failed it may not.
    fn found(
        &self,
        found: Result<Option<Indexed>, StorageError>,
    ) -> Result<Option<Indexed>, WalletError> {
        if self.index.covered() < self.point.end() {
            let problem = "has an index that was not written to its end: start again";
            return Err(refused(self.index.folder(), problem));
        }
        found.map_err(|error| self.index_failed(&error))
    }

    fn damaged(&self, offset: u64) -> WalletError {
        refused(&self.path, format!("is damaged at byte {offset}"))
    }

    fn index_failed(&self, error: &StorageError) -> WalletError {
        let folder = self.index.folder();
        let problem = format!(
            "has an index that cannot be used ({error}); without the folder it is made again"
        );
        refused(folder, problem)
    }
}

/// Lines of the archive that a book goes on from, as far as they can be read.
///
/// # Errors
/// When the disk fails.
pub(super) fn salvage(book: &Path, point: &ArchivePoint) -> Result<Vec<Vec<u8>>, WalletError> {
    let path = point.path(book, "archive");
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed("open the archive of", &path, source)),
    };
    let (mut lines, mut at) = (Vec::new(), 0);
    while at < point.end() {
        let read = read_frame(&file, at).map_err(|source| failed("read", &path, source))?;
        let Some(frame) = read else { break };
        lines.push(frame.content().to_vec());
        at += frame.bytes().len() as u64;
    }
    Ok(lines)
}

/// Writes a new archive of these lines beside a book that is to name its point.
///
/// # Errors
/// When the disk fails.
pub(super) fn write(book: &Path, lines: &[Vec<u8>]) -> Result<ArchivePoint, WalletError> {
    let point = ArchivePoint::begin();
    let (file, path) = create(book, &point)?;
    append(&file, &point, lines).map_err(|source| failed("write", &path, source))
}

fn create(book: &Path, point: &ArchivePoint) -> Result<(File, PathBuf), WalletError> {
    let path = point.path(book, "archive");
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path);
    let made = file.and_then(|file| sync_folder(&path).map(|()| file));
    let file = made.map_err(|source| failed("create the archive of", &path, source))?;
    Ok((file, path))
}

fn append(file: &File, point: &ArchivePoint, lines: &[Vec<u8>]) -> io::Result<ArchivePoint> {
    let (mut bytes, mut next) = (Vec::new(), point.clone());
    for line in lines {
        let frame = frame(next.end(), line);
        next = next.with(&frame);
        bytes.extend_from_slice(&frame);
    }
    file.write_all_at(&bytes, point.end())?;
    file.sync_all()?;
    Ok(next)
}

/// Tells whether the last line that a book names is where it was.
fn ends_at(file: &File, point: &ArchivePoint) -> io::Result<bool> {
    if point.extent == Extent::EMPTY {
        return Ok(true);
    }
    let (end, chain) = point.last;
    let Some(last) = read_frame(file, end)? else { return Ok(false) };
    Ok(Extent { end, chain }.with(last.bytes()) == point.extent)
}

fn open_index(
    book: &Path,
    point: &ArchivePoint,
    owner: IdentityKey,
    network: NetworkId,
) -> Result<ArchiveIndex, WalletError> {
    let folder = point.path(book, "index");
    let owner = index::owner(owner, network, &hex::encode(point.name));
    ArchiveIndex::open(folder.clone(), &owner, point.end())
        .map_err(|error| refused(&folder, format!("has an index that cannot be opened ({error})")))
}

fn refused(path: &Path, problem: impl Into<String>) -> WalletError {
    WalletError::Archive { path: path.to_owned(), problem: problem.into() }
}

/// Failure to index a line.
enum ReadError {
    Wallet(WalletError),
    Index(StorageError),
}

impl From<StorageError> for ReadError {
    fn from(error: StorageError) -> Self {
        Self::Index(error)
    }
}
