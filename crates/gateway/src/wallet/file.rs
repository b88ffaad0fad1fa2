//! The wallet's book: records one after the other in [frames](super::frames), each durable before
//! the next step is taken.
//!
//! A torn tail was never durable, so nothing was done on the strength of it, and it is cut off. Of
//! **damage**, a record that was durable cannot be read, and going on without it could spend a coin
//! twice. The file is then left as it is.
//!
//! A book that grew long is put anew, in the place of the former one ([`RecordFile::renew`]):
//!
//! ```text
//! wallet.new, durable ─▶ mark: this, or that ─▶ renamed ─▶ mark: that
//! ```

use super::WalletError;
use super::frames::{frame, frames, scan};
use super::mark::{self, Extent, Mark};
use quorate_crypto::mutants::{self, Mutant};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A file of records, locked against other processes for as long as it is open.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    path: PathBuf,
    extent: Extent,
    mark: Mark,
    /// True after a write or sync failed: nobody knows what is durable, so nothing more is written.
    has_failed: bool,
}

impl RecordFile {
    /// Makes a new, empty file that only its owner may read, with a durable name.
    pub(super) fn create(path: &Path) -> Result<Self, WalletError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => WalletError::Exists { path: path.to_owned() },
                _ => failed("create", path, source),
            })?;
        lock(&file, path)?;
        let (mark, said) = Mark::open(path, true).map_err(|source| failed("mark", path, source))?;
        if said.is_some_and(|said| said.book.end > 0) {
            // There was a book: an empty one in its place would know nothing of its payments.
            let _ = std::fs::remove_file(path);
            return Err(WalletError::Lost { path: path.to_owned(), mark: mark::path_of(path) });
        }
        sync_folder(path).map_err(|source| failed("sync the folder of", path, source))?;
        Ok(Self { file, path: path.to_owned(), extent: Extent::EMPTY, mark, has_failed: false })
    }

    /// Puts a book of these records in the place of whatever is there, which is kept under another
    /// name; returns that name, if something was there.
    pub(super) fn replace(
        path: &Path,
        contents: &[Vec<u8>],
    ) -> Result<Option<PathBuf>, WalletError> {
        let in_use = OpenOptions::new().read(true).write(true).open(path).ok();
        if let Some(file) = &in_use {
            lock(file, path)?;
            check_name(file, path)?;
        }
        let (records, extent) = frames(Extent::EMPTY, contents);
        let (_, fresh) = write_fresh(path, &records)?;
        let former = in_use.is_some().then(|| free_name(path));
        if let Some(former) = &former {
            // Under both names, so that at no time there is no book.
            std::fs::hard_link(path, former).map_err(|source| failed("keep", path, source))?;
        }
        std::fs::rename(&fresh, path).map_err(|source| failed("rename", &fresh, source))?;
        let marked = Mark::open(path, true).and_then(|(mut mark, _)| mark.write(extent));
        marked.map_err(|source| failed("mark", path, source))?;
        sync_folder(path).map_err(|source| failed("sync the folder of", path, source))?;
        Ok(former)
    }

    /// Opens a file, cuts a torn tail off, and returns the contents of its records in order.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<Vec<u8>>), WalletError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => WalletError::Absent { path: path.to_owned() },
            _ => failed("open", path, source),
        })?;
        lock(&file, path)?;
        check_name(&file, path)?;
        let length = file.metadata().map_err(|source| failed("read", path, source))?.len();
        let mut bytes = vec![0; usize::try_from(length).expect("files fit into memory")];
        file.read_exact_at(&mut bytes, 0).map_err(|source| failed("read", path, source))?;
        let (contents, end) = scan(&bytes)
            .map_err(|offset| WalletError::Damaged { path: path.to_owned(), offset })?;
        let (mark, extent) = check_mark(path, &contents)?;
        if end < length {
            // Before anything is written behind it: else a crash might leave old bytes there.
            file.set_len(end)
                .and_then(|()| file.sync_all())
                .map_err(|source| failed("cut the torn tail off", path, source))?;
        }
        let mut file = Self { file, path: path.to_owned(), extent, mark, has_failed: false };
        file.write_mark()?;
        Ok((file, contents))
    }

    /// Contents of the records that can be read, of a book that need not be sound.
    pub(super) fn salvage(path: &Path) -> Result<Vec<Vec<u8>>, WalletError> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed("read", path, source)),
        };
        let sound = match scan(&bytes) {
            Ok((contents, _)) => contents,
            Err(damage) => {
                let damage = usize::try_from(damage).expect("files fit into memory");
                scan(&bytes[..damage]).map_or_else(|_| Vec::new(), |(contents, _)| contents)
            }
        };
        Ok(sound)
    }

    /// Appends records; they and the mark are durable when this returns.
    ///
    /// # Errors
    /// [`WalletError::Io`] the first time and [`WalletError::Stopped`] ever after: whether the
    /// records are durable is not known before the file is opened again.
    pub(super) fn append(&mut self, contents: &[Vec<u8>]) -> Result<(), WalletError> {
        self.check_usable()?;
        let (records, extent) = frames(self.extent, contents);
        let written = self.file.write_all_at(&records, self.extent.end);
        if let Err(source) = written.and_then(|()| self.file.sync_data()) {
            self.has_failed = true;
            return Err(failed("write", &self.path, source));
        }
        self.extent = extent;
        self.write_mark()
    }

    /// Puts a book of these records in the place of this one, of which it has everything that
    /// counts: after a crash there is one of the two, and the mark goes with either (★).
    ///
    /// # Errors
    /// When the disk fails. Where that was before the mark was written, the book goes on as it was.
    pub(super) fn renew(&mut self, contents: &[Vec<u8>]) -> Result<(), WalletError> {
        self.check_usable()?;
        let (records, extent) = frames(Extent::EMPTY, contents);
        let (file, fresh) = write_fresh(&self.path, &records)?;
        lock(&file, &fresh)?;
        self.has_failed = true;
        let marked = self.mark.write_either(self.extent, extent);
        let renamed = marked.and_then(|()| std::fs::rename(&fresh, &self.path));
        let swapped = renamed.and_then(|()| sync_folder(&self.path));
        swapped.map_err(|source| failed("renew", &self.path, source))?;
        (self.file, self.extent, self.has_failed) = (file, extent, false);
        self.write_mark()
    }

    /// Length of the book, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.extent.end
    }

    fn write_mark(&mut self) -> Result<(), WalletError> {
        self.mark.write(self.extent).map_err(|source| {
            self.has_failed = true;
            failed("mark", &self.path, source)
        })
    }
}

impl RecordFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// [`WalletError::Stopped`] after a write failed.
    pub(super) fn check_usable(&self) -> Result<(), WalletError> {
        if self.has_failed {
            return Err(WalletError::Stopped { path: self.path.clone() });
        }
        Ok(())
    }
}

/// ★ Refuses a book that does not have all that its mark says, or has something else there.
fn check_mark(path: &Path, contents: &[Vec<u8>]) -> Result<(Mark, Extent), WalletError> {
    let behind = || WalletError::Behind { path: path.to_owned(), mark: mark::path_of(path) };
    let opened = Mark::open(path, mutants::active(Mutant::PayOpenBehindMark));
    let (mark, said) = opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => behind(),
        _ => failed("read the mark of", path, source),
    })?;
    let is_said =
        |extent| said.is_some_and(|said| said.book == extent || said.next == Some(extent));
    let mut extent = Extent::EMPTY;
    let mut is_there = is_said(extent);
    for content in contents {
        extent = extent.with(&frame(extent.end, content));
        is_there |= is_said(extent);
    }
    // A mark that says nothing was not written by us, or not to its end.
    if !is_there && !mutants::active(Mutant::PayOpenBehindMark) {
        return Err(behind());
    }
    Ok((mark, extent))
}

/// A new file of these bytes beside a book, durable but for its name, and its path.
fn write_fresh(path: &Path, bytes: &[u8]) -> Result<(File, PathBuf), WalletError> {
    let fresh = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&fresh).and_then(|file| {
        file.write_all_at(bytes, 0)?;
        file.sync_all().map(|()| file)
    });
    let file = written.map_err(|source| failed("write", &fresh, source))?;
    Ok((file, fresh))
}

/// Refuses a file that lost its name to another one since it was opened: whoever renewed the book
/// has it.
fn check_name(file: &File, path: &Path) -> Result<(), WalletError> {
    let read = |metadata: io::Result<Metadata>| {
        metadata.map(|one| (one.dev(), one.ino())).map_err(|source| failed("read", path, source))
    };
    if read(file.metadata())? == read(std::fs::metadata(path))? {
        return Ok(());
    }
    Err(WalletError::InUse { path: path.to_owned() })
}

/// A name beside a book that nothing has.
fn free_name(path: &Path) -> PathBuf {
    let name = |number: u32| path.with_extension(format!("before-restore-{number}"));
    (1..).map(name).find(|name| !name.exists()).expect("there are numbers enough")
}

pub(super) fn failed(action: &'static str, path: &Path, source: io::Error) -> WalletError {
    WalletError::Io { action, path: path.to_owned(), source }
}

fn lock(file: &File, path: &Path) -> Result<(), WalletError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(WalletError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", path, source)),
    }
}

pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::RecordFile;
    use crate::wallet::WalletError;
    use crate::wallet::frames::{FRAME_BYTES, Found, look, scan};
    use crate::wallet::mark::path_of;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn contents() -> Vec<Vec<u8>> {
        vec![b"first".to_vec(), Vec::new(), vec![0; 40], vec![7; 300]]
    }

    /// A file of four records in a folder of its own. Its mark is as a crash leaves it in the midst
    /// of the last one.
    fn written() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wallet");
        let mut file = RecordFile::create(&path).expect("made");
        let mut contents = contents();
        let last = contents.pop().expect("four");
        file.append(&contents).expect("written");
        fs::copy(path_of(&path), saved_mark(&path)).expect("copied");
        file.append(&[last]).expect("written");
        drop(file);
        set_mark_back(&path);
        let bytes = fs::read(&path).expect("read");
        (folder, path, bytes)
    }

    fn saved_mark(path: &Path) -> PathBuf {
        path.with_extension("saved")
    }

    fn set_mark_back(path: &Path) {
        fs::copy(saved_mark(path), path_of(path)).expect("copied");
    }

    fn reopened(path: &Path, bytes: &[u8]) -> Result<Vec<Vec<u8>>, WalletError> {
        fs::write(path, bytes).expect("written");
        set_mark_back(path);
        RecordFile::open(path).map(|(_, contents)| contents)
    }

    #[test]
    fn records_come_back_in_order() {
        let (_folder, path, bytes) = written();
        assert_eq!(reopened(&path, &bytes).expect("opened"), contents());
    }

    #[test]
    fn a_crash_at_every_byte_loses_the_last_record_and_no_other() {
        let (_folder, path, bytes) = written();
        let last = bytes.len() - (FRAME_BYTES + 300);
        for cut in last..bytes.len() {
            let mut expected = contents();
            expected.pop();
            assert_eq!(reopened(&path, &bytes[..cut]).expect("opened"), expected, "cut at {cut}");
            assert_eq!(fs::read(&path).expect("read").len(), last, "cut off");
            let mut zeroes = bytes[..cut].to_vec();
            zeroes.resize(bytes.len(), 0);
            assert_eq!(reopened(&path, &zeroes).expect("opened"), expected, "zeroes from {cut}");
        }
    }

    #[test]
    fn what_follows_a_torn_tail_is_written_in_its_place() {
        let (_folder, path, bytes) = written();
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
        set_mark_back(&path);
        let (mut file, mut expected) = RecordFile::open(&path).expect("opened");
        file.append(&[b"again".to_vec()]).expect("written");
        drop(file);
        expected.push(b"again".to_vec());
        assert_eq!(RecordFile::open(&path).expect("opened").1, expected);
    }

    #[test]
    fn every_flipped_bit_is_damage_and_the_file_stays_as_it_is() {
        let (_folder, path, bytes) = written();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let error = reopened(&path, &damaged).expect_err("refused");
            assert!(matches!(error, WalletError::Damaged { .. }), "byte {at}: {error}");
            assert_eq!(fs::read(&path).expect("read"), damaged);
        }
    }

    #[test]
    fn a_record_in_another_place_is_damage() {
        let (_folder, _path, bytes) = written();
        let Found::Record(_, second) = look(&bytes, 0) else { panic!("a record") };
        assert_eq!(scan(&bytes[second..]), Err(0), "it was the second");
    }

    /// ★ A book that is behind its mark does not know what the wallet signed since.
    #[test]
    fn an_older_a_shorter_and_another_book_are_refused() {
        let (_folder, path, bytes) = written();
        let older = &bytes[..bytes.len() - (FRAME_BYTES + 300)];
        assert!(reopened(&path, older).is_ok(), "the mark was not written yet");
        assert!(reopened(&path, &bytes).is_ok());
        let refused = |bytes: &[u8], what: &str| {
            fs::write(&path, bytes).expect("written");
            let error = RecordFile::open(&path).expect_err(what);
            assert!(matches!(error, WalletError::Behind { .. }), "{what}: {error}");
            assert_eq!(fs::read(&path).expect("read"), bytes, "it was left as it is");
        };
        refused(older, "older");
        refused(&older[..older.len() - 1], "torn before");
        refused(&[], "emptied");
        let other = path.with_file_name("another-book");
        let mut file = RecordFile::create(&other).expect("made");
        file.append(&[vec![9; 5_000]]).expect("written");
        refused(&fs::read(&other).expect("read"), "another, and longer");
        fs::remove_file(path_of(&path)).expect("removed");
        refused(&bytes, "without a mark");
    }

    #[test]
    fn a_book_whose_mark_is_there_is_not_made_anew() {
        let (_folder, path, _) = written();
        fs::remove_file(&path).expect("removed");
        assert!(matches!(RecordFile::create(&path), Err(WalletError::Lost { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn a_book_is_replaced_and_the_former_one_kept() {
        let (_folder, path, bytes) = written();
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
        let salvaged = RecordFile::salvage(&path).expect("read");
        assert_eq!(salvaged, contents()[..3]);
        let former =
            RecordFile::replace(&path, &salvaged).expect("replaced").expect("one was there");
        assert_eq!(fs::read(former).expect("read").len(), bytes.len() - 1);
        assert_eq!(RecordFile::open(&path).expect("opened").1, salvaged);
        fs::remove_file(&path).expect("removed");
        assert_eq!(RecordFile::replace(&path, &salvaged).expect("replaced"), None);
        assert_eq!(RecordFile::open(&path).expect("opened").1, salvaged);
    }

    #[test]
    fn a_file_is_made_once_and_used_by_one() {
        let (_folder, path, _) = written();
        let (held, _) = RecordFile::open(&path).expect("opened");
        assert!(matches!(RecordFile::open(&path), Err(WalletError::InUse { .. })));
        assert!(matches!(RecordFile::create(&path), Err(WalletError::Exists { .. })));
        drop(held);
        let absent = path.with_file_name("absent");
        assert!(matches!(RecordFile::open(&absent), Err(WalletError::Absent { .. })));
    }
}
