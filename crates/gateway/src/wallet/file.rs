//! The wallet's file: records one after the other, each durable before the next step is taken.
//!
//! ```text
//! length: u32 ‖ check of offset and length: 8 bytes
//!     ‖ content ‖ check of offset and content: 16 bytes ‖ mark
//! ```
//!
//! A process that is killed leaves a beginning of its last record; a power cut may leave zeroes
//! where its end should be. Both are a **torn tail**: the record was never durable, so nothing was
//! done on the strength of it, and it is cut off. The mark is not zero, so that a whole record is
//! never taken for one. Anything else that does not check is **damage**: a record that was durable
//! cannot be read, and going on without it could spend a coin twice. The file is then left as it
//! is.

use super::WalletError;
use quorate_crypto::hash_parts;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const HEAD_BYTES: usize = 12;
const CHECK_BYTES: usize = 16;
const MARK: u8 = 0xa5;

/// A record's length beside its content.
const FRAME_BYTES: usize = HEAD_BYTES + CHECK_BYTES + 1;

/// Longest content: a transaction, or a receipt, of the largest size with room to spare.
pub(super) const CONTENT_BYTES_MAX: usize = 16 << 20;

/// A file of records, locked against other processes for as long as it is open.
#[derive(Debug)]
pub(super) struct RecordFile {
    file: File,
    path: PathBuf,
    end: u64,
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
        sync_folder(path).map_err(|source| failed("sync the folder of", path, source))?;
        Ok(Self { file, path: path.to_owned(), end: 0, has_failed: false })
    }

    /// Opens a file, cuts a torn tail off, and returns the contents of its records in order.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<Vec<u8>>), WalletError> {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => WalletError::Absent { path: path.to_owned() },
            _ => failed("open", path, source),
        })?;
        lock(&file, path)?;
        let length = file.metadata().map_err(|source| failed("read", path, source))?.len();
        let mut bytes = vec![0; usize::try_from(length).expect("files fit into memory")];
        file.read_exact_at(&mut bytes, 0).map_err(|source| failed("read", path, source))?;
        let (contents, end) = scan(&bytes)
            .map_err(|offset| WalletError::Damaged { path: path.to_owned(), offset })?;
        if end < length {
            // Before anything is written behind it: else a crash might leave old bytes there.
            file.set_len(end)
                .and_then(|()| file.sync_all())
                .map_err(|source| failed("cut the torn tail off", path, source))?;
        }
        Ok((Self { file, path: path.to_owned(), end, has_failed: false }, contents))
    }

    /// Appends a record; it is durable when this returns.
    ///
    /// # Errors
    /// [`WalletError::Io`] the first time and [`WalletError::Stopped`] ever after: whether the
    /// record is durable is not known before the file is opened again.
    pub(super) fn append(&mut self, content: &[u8]) -> Result<(), WalletError> {
        self.check_usable()?;
        assert!(content.len() <= CONTENT_BYTES_MAX, "records are bounded by whoever makes them");
        let record = frame(self.end, content);
        let written = self.file.write_all_at(&record, self.end);
        if let Err(source) = written.and_then(|()| self.file.sync_data()) {
            self.has_failed = true;
            return Err(failed("write", &self.path, source));
        }
        self.end += record.len() as u64;
        Ok(())
    }
}

impl RecordFile {
    /// # Errors
    /// [`WalletError::Stopped`] after a write failed.
    pub(super) fn check_usable(&self) -> Result<(), WalletError> {
        if self.has_failed {
            return Err(WalletError::Stopped { path: self.path.clone() });
        }
        Ok(())
    }
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> WalletError {
    WalletError::Io { action, path: path.to_owned(), source }
}

fn lock(file: &File, path: &Path) -> Result<(), WalletError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(WalletError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", path, source)),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn frame(offset: u64, content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len()).expect("contents are far below 2^32");
    let mut record = Vec::with_capacity(FRAME_BYTES + content.len());
    record.extend_from_slice(&length.to_le_bytes());
    record.extend_from_slice(&head_check(offset, length));
    record.extend_from_slice(content);
    record.extend_from_slice(&content_check(offset, content));
    record.push(MARK);
    record
}

fn head_check(offset: u64, length: u32) -> [u8; 8] {
    let parts: [&[u8]; 2] = [&offset.to_le_bytes(), &length.to_le_bytes()];
    let digest = hash_parts("quorate v1 wallet: a record's head", &parts);
    digest.0[..8].try_into().expect("8 bytes")
}

fn content_check(offset: u64, content: &[u8]) -> [u8; CHECK_BYTES] {
    let digest = hash_parts("quorate v1 wallet: a record", &[&offset.to_le_bytes(), content]);
    digest.0[..CHECK_BYTES].try_into().expect("16 bytes")
}

/// Content of the file at an offset.
enum Found<'a> {
    /// A record: its content, and where the next one begins.
    Record(&'a [u8], usize),
    /// A record whose end was never written.
    Torn,
    /// Something that no crash leaves.
    Damage,
}

/// The contents of all records and where they end, or the offset of damage.
fn scan(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, u64), u64> {
    let (mut contents, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match look(bytes, at) {
            Found::Record(content, next) => {
                contents.push(content.to_vec());
                at = next;
            }
            Found::Torn => break,
            Found::Damage => return Err(at as u64),
        }
    }
    Ok((contents, at as u64))
}

fn look(bytes: &[u8], at: usize) -> Found<'_> {
    let rest = &bytes[at..];
    let Some((head, body)) = rest.split_at_checked(HEAD_BYTES) else { return Found::Torn };
    let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
    if head[4..] != head_check(at as u64, length) {
        let never_written = ends_unwritten(rest, HEAD_BYTES);
        return if never_written { Found::Torn } else { Found::Damage };
    }
    let length = length as usize;
    let Some(body) = body.get(..length + CHECK_BYTES + 1) else { return Found::Torn };
    let (content, end) = body.split_at(length);
    if end[..CHECK_BYTES] == content_check(at as u64, content) && end[CHECK_BYTES] == MARK {
        return Found::Record(content, at + FRAME_BYTES + length);
    }
    let is_last = rest.len() == FRAME_BYTES + length;
    if is_last && end[CHECK_BYTES] == 0 { Found::Torn } else { Found::Damage }
}

/// Tells whether nothing but zeroes follows the first few bytes: their record's blocks never
/// reached the disk.
fn ends_unwritten(rest: &[u8], first: usize) -> bool {
    rest[first..].iter().all(|byte| *byte == 0) && rest[first - 1] == 0
}

#[cfg(test)]
mod tests {
    use super::{FRAME_BYTES, Found, RecordFile, look, scan};
    use crate::wallet::WalletError;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn contents() -> Vec<Vec<u8>> {
        vec![b"first".to_vec(), Vec::new(), vec![0; 40], vec![7; 300]]
    }

    /// A file of four records in a folder of its own.
    fn written() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("wallet");
        let mut file = RecordFile::create(&path).expect("made");
        for content in contents() {
            file.append(&content).expect("written");
        }
        drop(file);
        let bytes = fs::read(&path).expect("read");
        (folder, path, bytes)
    }

    fn reopened(path: &Path, bytes: &[u8]) -> Result<Vec<Vec<u8>>, WalletError> {
        fs::write(path, bytes).expect("written");
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
        let (mut file, mut expected) = RecordFile::open(&path).expect("opened");
        file.append(b"again").expect("written");
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
