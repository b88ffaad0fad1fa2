//! Frames of a wallet's files: contents one after the other, each with its length and checks.
//!
//! ```text
//! length: u32 ‖ check of offset and length: 8 bytes
//!     ‖ content ‖ check of offset and content: 16 bytes ‖ mark
//! ```
//!
//! A process that is killed leaves a beginning of its last frame; a power cut may leave zeroes
//! where its end should be. Both are a **torn tail**. The mark is not zero, so that a whole frame
//! is never taken for one. Anything else that does not check is **damage**.

use super::mark::Extent;
use quorate_crypto::hash_parts;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

const HEAD_BYTES: usize = 12;
const CHECK_BYTES: usize = 16;
const MARK: u8 = 0xa5;

/// A frame's length beside its content.
pub(super) const FRAME_BYTES: usize = HEAD_BYTES + CHECK_BYTES + 1;

/// Longest content: a transaction, or a receipt, of the largest size with room to spare.
pub(super) const CONTENT_BYTES_MAX: usize = 16 << 20;

/// Frames of these contents behind a file's extent, and the extent with them.
pub(super) fn frames(mut extent: Extent, contents: &[Vec<u8>]) -> (Vec<u8>, Extent) {
    let mut records = Vec::new();
    for content in contents {
        assert!(content.len() <= CONTENT_BYTES_MAX, "records are bounded by whoever makes them");
        let record = frame(extent.end, content);
        extent = extent.with(&record);
        records.extend_from_slice(&record);
    }
    (records, extent)
}

pub(super) fn frame(offset: u64, content: &[u8]) -> Vec<u8> {
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
pub(super) enum Found<'a> {
    /// A record: its content, and the length of its frame in bytes.
    Record(&'a [u8], usize),
    /// A record whose end was never written.
    Torn,
    /// Something that no crash leaves.
    Damage,
}

/// The contents of all records and where they end, or the offset of damage.
pub(super) fn scan(bytes: &[u8]) -> Result<(Vec<Vec<u8>>, u64), u64> {
    let (mut contents, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        match look(&bytes[at..], at as u64) {
            Found::Record(content, length) => {
                contents.push(content.to_vec());
                at += length;
            }
            Found::Torn => break,
            Found::Damage => return Err(at as u64),
        }
    }
    Ok((contents, at as u64))
}

pub(super) fn look(rest: &[u8], offset: u64) -> Found<'_> {
    let Some((head, body)) = rest.split_at_checked(HEAD_BYTES) else { return Found::Torn };
    let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
    if head[4..] != head_check(offset, length) {
        let never_written = ends_unwritten(rest, HEAD_BYTES);
        return if never_written { Found::Torn } else { Found::Damage };
    }
    let length = length as usize;
    let Some(body) = body.get(..length + CHECK_BYTES + 1) else { return Found::Torn };
    let (content, end) = body.split_at(length);
    if end[..CHECK_BYTES] == content_check(offset, content) && end[CHECK_BYTES] == MARK {
        return Found::Record(content, FRAME_BYTES + length);
    }
    let is_last = rest.len() == FRAME_BYTES + length;
    if is_last && end[CHECK_BYTES] == 0 { Found::Torn } else { Found::Damage }
}

/// Tells whether nothing but zeroes follows the first few bytes: their record's blocks never
/// reached the disk.
fn ends_unwritten(rest: &[u8], first: usize) -> bool {
    rest[first..].iter().all(|byte| *byte == 0) && rest[first - 1] == 0
}

/// A whole frame as it stands in a file.
pub(super) struct Frame(Vec<u8>);

impl Frame {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn content(&self) -> &[u8] {
        &self.0[HEAD_BYTES..self.0.len() - CHECK_BYTES - 1]
    }
}

/// The frame at an offset of a file; `None` where there is no whole one.
pub(super) fn read_frame(file: &File, offset: u64) -> io::Result<Option<Frame>> {
    let mut file = file;
    file.seek(SeekFrom::Start(offset))?;
    next_frame(&mut file, offset)
}

/// The frame that a reader has next, which is at an offset of its file; `None` where there is no
/// whole one.
pub(super) fn next_frame(reader: &mut impl Read, offset: u64) -> io::Result<Option<Frame>> {
    let mut bytes = vec![0; HEAD_BYTES];
    let mut read = |bytes: &mut [u8]| match reader.read_exact(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    };
    if !read(&mut bytes)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes"));
    if bytes[4..] != head_check(offset, length) {
        return Ok(None);
    }
    bytes.resize(FRAME_BYTES + length as usize, 0);
    if !read(&mut bytes[HEAD_BYTES..])? {
        return Ok(None);
    }
    let is_whole = matches!(look(&bytes, offset), Found::Record(..));
    Ok(is_whole.then_some(Frame(bytes)))
}
