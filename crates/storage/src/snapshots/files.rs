//! Names and content of a snapshot folder's files.

use crate::StorageError;
use crate::disk::Disk;
use crate::owner::OwnerRecord;
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_types::Height;
use std::io;

/// Format of a manifest's file, written at its start with the owner.
pub(super) const FORMAT: u32 = 4;
/// The one before, whose chunks had a height and a place for a name.
const FORMAT_BEFORE: u32 = 3;
/// The first, whose files said neither format nor owner.
pub(super) const FORMAT_WITHOUT_OWNER: u32 = 0;

/// The format that a manifest's record is to have: its own, if this program reads that.
pub(super) fn format_of(record: &OwnerRecord) -> u32 {
    if record.format() == FORMAT_BEFORE { FORMAT_BEFORE } else { FORMAT }
}

/// All of a file.
pub(super) fn read_whole(disk: &dyn Disk, name: &str) -> Result<Bytes, StorageError> {
    let read = || {
        let file = disk.open(name)?;
        let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
        let mut bytes = vec![0; length];
        file.read_at(0, &mut bytes)?;
        Ok(Bytes::from(bytes))
    };
    read().map_err(|error| StorageError::io("read", disk.locate(name), &error))
}

/// The chunk in a file; why it is none of this hash.
pub(super) fn read_chunk(disk: &dyn Disk, name: &str, expected: &Digest) -> Result<Bytes, String> {
    let bytes = read_whole(disk, name).map_err(|error| error.to_string())?;
    let is_same = hash(&bytes) == *expected;
    is_same.then_some(bytes).ok_or_else(|| "its content has changed".to_owned())
}

pub(super) fn manifest_name(height: Height) -> String {
    format!("snapshot-{:012}", height.0)
}

pub(super) fn chunk_name(chunk: &Digest) -> String {
    format!("{CHUNK}{}", chunk.to_hex())
}

/// Begins the names of chunks.
pub(super) const CHUNK: &str = "chunk-";

/// Name of a snapshot's chunk in the format before.
pub(super) fn former_chunk_name(height: Height, index: u32) -> String {
    format!("{}-{index:06}", manifest_name(height))
}

pub(super) fn staged_name(chunk: &Digest) -> String {
    format!("{STAGED}{}", chunk.to_hex())
}

/// Begins the names of staged chunks.
pub(super) const STAGED: &str = "staged-";

/// The height in a manifest's name.
pub(super) fn height_of(name: &str) -> Option<Height> {
    let height = Height(name.strip_prefix("snapshot-")?.parse().ok()?);
    (manifest_name(height) == name).then_some(height)
}
