//! A state as one file: a line that says so, what describes and proves it, and the chunks of its
//! snapshot one after the other, as members send them to one another.

use super::RescueError;
use bytes::Bytes;
use quorate_crypto::hash;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ExportedState, Manifest};
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Begins every file, with the version.
const FORMAT: &[u8] = b"quorate state v1\n";

/// A file that is being read.
#[derive(Debug)]
pub struct StateFile {
    /// Description of the state, of which nothing is believed yet.
    pub state: ExportedState,
    path: PathBuf,
    chunks: BufReader<File>,
    next: usize,
    /// Bytes of chunks that follow.
    bytes: u64,
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
        let mut chunks = BufReader::new(file);
        let (mut format, mut length) = ([0; FORMAT.len()], [0; 4]);
        let begun = chunks.read_exact(&mut format).and_then(|()| chunks.read_exact(&mut length));
        if begun.is_err() || format != FORMAT {
            return Err(refused("it does not begin as one"));
        }
        let length = u32::from_le_bytes(length);
        let head = (FORMAT.len() + size_of::<u32>()) as u64 + u64::from(length);
        let bytes = whole.checked_sub(head).ok_or_else(|| refused("it is cut off"))?;
        if length as usize > ExportedState::BYTES_MAX {
            return Err(refused("its description is too long"));
        }
        let mut description = vec![0; length as usize];
        chunks.read_exact(&mut description).map_err(read)?;
        let state = ExportedState::decode(&description);
        let state = state.ok_or_else(|| refused("its description cannot be read"))?;
        let count = state.manifest.chunks.len() as u64;
        if bytes.div_ceil(Manifest::CHUNK_BYTES as u64) != count {
            return Err(refused("it is cut off, or something follows"));
        }
        Ok(Self { state, path: path.to_owned(), chunks, next: 0, bytes })
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
        let length = self.bytes.min(Manifest::CHUNK_BYTES as u64);
        let mut chunk = vec![0; usize::try_from(length).expect("a megabyte")];
        let read = self.chunks.read_exact(&mut chunk);
        read.map_err(RescueError::file("read", &self.path))?;
        (self.next, self.bytes) = (self.next + 1, self.bytes - length);
        if hash(&chunk) != *expected && !mutants::active(Mutant::StateChunkUnchecked) {
            let (path, index, chunks) = (self.path.clone(), self.next, all.len());
            return Err(RescueError::Chunk { path, index, chunks });
        }
        Ok(Some(chunk.into()))
    }

    /// Writes a file that is not there yet, durably, from the chunks in their order. What cannot be
    /// finished is removed.
    ///
    /// # Errors
    /// [`RescueError::File`].
    pub(super) fn write(
        path: &Path,
        state: &ExportedState,
        chunks: impl Iterator<Item = Bytes>,
    ) -> Result<(), RescueError> {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let file = made.map_err(RescueError::file("make", path))?;
        let written = write_to(file, state, chunks);
        written.map_err(|error| {
            let _ = std::fs::remove_file(path);
            RescueError::file("write", path)(error)
        })
    }
}

fn write_to(
    file: File,
    state: &ExportedState,
    mut chunks: impl Iterator<Item = Bytes>,
) -> io::Result<()> {
    let description = state.encode();
    let length = u32::try_from(description.len()).map_err(io::Error::other)?;
    let mut to = BufWriter::new(file);
    to.write_all(FORMAT)?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&description)?;
    chunks.try_for_each(|chunk| to.write_all(&chunk))?;
    to.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}
