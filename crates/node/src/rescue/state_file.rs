//! A state as one file.
//!
//! ```text
//! "quorate state v2\n"
//! length of the description u32, description
//! length of each chunk u32, as many as the description names
//! the chunks one after the other
//! ```
//!
//! Numbers are little-endian. The first version had no lengths: chunks of a mebibyte, and the last
//! of the rest. It is read, and not written.

use super::RescueError;
use bytes::Bytes;
use quorate_crypto::hash;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ExportedState, Manifest};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Begins every file, with the version.
const FORMAT: &[u8; 17] = b"quorate state v2\n";
/// Begins those of the version before.
const FORMAT_BEFORE: &[u8; 17] = b"quorate state v1\n";

/// A file that is being read.
#[derive(Debug)]
pub struct StateFile {
    /// Description of the state, of which nothing is believed yet.
    pub state: ExportedState,
    path: PathBuf,
    chunks: BufReader<File>,
    next: usize,
    /// Bytes of each chunk.
    lengths: Vec<u32>,
}

impl StateFile {
    /// Opens a file, and reads what it says of its state.
    ///
    /// # Errors
    /// [`RescueError::File`] and [`RescueError::Form`].
    pub fn open(path: &Path) -> Result<Self, RescueError> {
        let read = |error| RescueError::file("read", path)(error);
        let refused = |problem| RescueError::Form { path: path.to_owned(), problem };
        let file = File::open(path).map_err(read)?;
        let whole = file.metadata().map_err(read)?.len();
        let mut from = BufReader::new(file);
        let (mut format, mut length) = ([0; FORMAT.len()], [0; 4]);
        let begun = from.read_exact(&mut format).and_then(|()| from.read_exact(&mut length));
        if begun.is_err() || ![FORMAT, FORMAT_BEFORE].contains(&&format) {
            return Err(refused("it does not begin as one"));
        }
        let length = u32::from_le_bytes(length);
        let head = (FORMAT.len() + size_of::<u32>()) as u64 + u64::from(length);
        let mut bytes = whole.checked_sub(head).ok_or_else(|| refused("it is cut off"))?;
        if length as usize > ExportedState::BYTES_MAX {
            return Err(refused("its description is too long"));
        }
        let mut description = vec![0; length as usize];
        from.read_exact(&mut description).map_err(read)?;
        let state = ExportedState::decode(&description);
        let state = state.ok_or_else(|| refused("its description cannot be read"))?;
        let count = state.manifest.chunks.len();
        let lengths = if format == *FORMAT {
            let table = (count * size_of::<u32>()) as u64;
            bytes = bytes.checked_sub(table).ok_or_else(|| refused("it is cut off"))?;
            read_lengths(&mut from, count).map_err(read)?
        } else {
            mebibytes(bytes, count)
        };
        let is_chunk = |length: &u32| *length as usize <= Manifest::CHUNK_BYTES;
        let sum: u64 = lengths.iter().copied().map(u64::from).sum();
        if sum != bytes || lengths.len() != count || !lengths.iter().all(is_chunk) {
            return Err(refused("it is cut off, or something follows"));
        }
        Ok(Self { state, path: path.to_owned(), chunks: from, next: 0, lengths })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next chunk, which is the one that the description names (★); `None` behind the last.
    ///
    /// # Errors
    /// [`RescueError::Chunk`] when it is not; [`RescueError::File`] when it cannot be read.
    pub fn next_chunk(&mut self) -> Result<Option<Bytes>, RescueError> {
        let all = &self.state.manifest.chunks;
        let Some(expected) = all.get(self.next) else { return Ok(None) };
        let mut chunk = vec![0; self.lengths[self.next] as usize];
        let read = self.chunks.read_exact(&mut chunk);
        read.map_err(RescueError::file("read", &self.path))?;
        self.next += 1;
        if hash(&chunk) != *expected && !mutants::active(Mutant::StateChunkUnchecked) {
            let (path, index, chunks) = (self.path.clone(), self.next, all.len());
            return Err(RescueError::Chunk { path, index, chunks });
        }
        Ok(Some(chunk.into()))
    }

    /// Writes a file that is not there yet, durably, from the chunks in their order and their
    /// lengths. What cannot be finished is removed.
    ///
    /// # Errors
    /// [`RescueError::File`], and the first among the chunks.
    pub(super) fn write(
        path: &Path,
        (state, lengths): (&ExportedState, &[u32]),
        chunks: impl Iterator<Item = Result<Bytes, RescueError>>,
    ) -> Result<(), RescueError> {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let file = made.map_err(RescueError::file("make", path))?;
        let written = write_to(BufWriter::new(file), path, (state, lengths), chunks);
        written.inspect_err(|_| drop(std::fs::remove_file(path)))
    }
}

/// The lengths of so many chunks.
fn read_lengths(from: &mut impl Read, count: usize) -> io::Result<Vec<u32>> {
    let mut table = vec![0; count * size_of::<u32>()];
    from.read_exact(&mut table)?;
    let lengths = table.chunks_exact(size_of::<u32>());
    Ok(lengths.map(|one| u32::from_le_bytes(one.try_into().expect("4 bytes"))).collect())
}

/// Lengths of chunks in a file of the version before, as far as so many lead.
fn mebibytes(bytes: u64, count: usize) -> Vec<u32> {
    let mut left = bytes;
    let mut next = || {
        let length = left.min(Manifest::CHUNK_BYTES as u64);
        left -= length;
        u32::try_from(length).expect("a megabyte")
    };
    let lengths = (0..count).map(|_| next());
    lengths.filter(|length| *length > 0).collect()
}

fn write_to(
    mut to: BufWriter<File>,
    path: &Path,
    (state, lengths): (&ExportedState, &[u32]),
    mut chunks: impl Iterator<Item = Result<Bytes, RescueError>>,
) -> Result<(), RescueError> {
    let failed = |error| RescueError::file("write", path)(error);
    write_head(&mut to, state, lengths).map_err(failed)?;
    chunks.try_for_each(|chunk| to.write_all(&chunk?).map_err(failed))?;
    let file = to.into_inner().map_err(io::IntoInnerError::into_error).map_err(failed)?;
    file.sync_all().map_err(failed)
}

fn write_head(to: &mut impl Write, state: &ExportedState, lengths: &[u32]) -> io::Result<()> {
    let description = state.encode();
    let length = u32::try_from(description.len()).map_err(io::Error::other)?;
    to.write_all(FORMAT)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&description)?;
    lengths.iter().try_for_each(|length| to.write_all(&length.to_le_bytes()))
}
