//! What stands in a segment: its head, frames, and entries in them.

use crate::Owner;
use crate::StorageError;
use crate::owner::OwnerRecord;
use crc32c::{crc32c, crc32c_append};

/// Format of the files, written with the owner.
pub(super) const FORMAT: u32 = 4;

/// Bytes of a segment before its first frame.
pub(super) const START: u32 = 4_096;

/// Bytes of a frame before its entries.
pub(super) const FRAME_HEAD: usize = 40;

/// Bytes of an entry before its key.
pub(super) const ENTRY_HEAD: usize = 10;

/// Stands for the length of a value that was removed.
pub(super) const REMOVED: u32 = u32::MAX;

/// Frames begin at multiples of this.
const ALIGNMENT: usize = 8;

const MAGIC: [u8; 4] = *b"QVF1";

/// Bytes of a segment's head after its owner.
const FIELDS: usize = 29;

/// Place in the order of all frames: where one ends and the next begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Number of its batch.
    pub(super) batch: u64,
    /// Number of its frame in the batch.
    pub(super) part: u32,
    /// True if the batch ends with it.
    pub(super) commits: bool,
    /// Checksum of the entries of all frames of the batch so far.
    pub(super) crc: u32,
}

impl Link {
    /// Before the first frame of a store.
    pub(super) const NONE: Self = Self { batch: 0, part: 0, commits: true, crc: 0 };

    /// Number of batch and frame of the next frame, and the checksum that it names of this one.
    pub(super) fn next(self) -> (u64, u32, u32) {
        match self.commits {
            true => (self.batch + 1, 0, 0),
            false => (self.batch, self.part + 1, self.crc),
        }
    }
}

/// Head of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHead {
    pub(super) number: u32,
    /// Goes into the checksums of the heads of frames: nobody who chooses values can make bytes
    /// that pass for one.
    pub(super) salt: u32,
    /// End of the segment before.
    pub(super) before: Link,
}

impl SegmentHead {
    pub(super) fn encode(&self, owner: &Owner) -> Vec<u8> {
        let mut bytes = owner.record(FORMAT);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&self.salt.to_le_bytes());
        bytes.extend_from_slice(&self.before.batch.to_le_bytes());
        bytes.extend_from_slice(&self.before.part.to_le_bytes());
        bytes.push(u8::from(self.before.commits));
        bytes.extend_from_slice(&self.before.crc.to_le_bytes());
        let crc = crc32c(&bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        assert!(bytes.len() <= START as usize, "an owner is named in a thousand bytes");
        bytes
    }

    /// The head in the first bytes of a file at `place`; `None` where it is none, or damaged.
    ///
    /// # Errors
    /// When it is whole, and of another owner or format.
    pub(super) fn read(
        place: &str,
        bytes: &[u8],
        owner: &Owner,
    ) -> Result<Option<Self>, StorageError> {
        let Some((record, rest)) = OwnerRecord::split(bytes) else { return Ok(None) };
        record.check(place, FORMAT, owner)?;
        let checked = bytes.len() - rest.len() + FIELDS - 4;
        let Some(fields) = rest.get(..FIELDS) else { return Ok(None) };
        if crc32c(&bytes[..checked]) != word(fields, FIELDS - 4) {
            return Ok(None);
        }
        let before = Link {
            batch: long(fields, 8),
            part: word(fields, 16),
            commits: fields[20] == 1,
            crc: word(fields, 21),
        };
        Ok(Some(Self { number: word(fields, 0), salt: word(fields, 4), before }))
    }
}

/// Head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) link: Link,
    /// Checksum of all frames before it in the same batch.
    pub(super) before: u32,
    /// Bytes of its entries.
    pub(super) length: u32,
    /// First segment of the store, once its batch is committed.
    pub(super) first: u32,
}

impl Frame {
    pub(super) fn encode(&self, salt: u32) -> [u8; FRAME_HEAD] {
        let mut bytes = [0; FRAME_HEAD];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.link.batch.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.link.part.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.first.to_le_bytes());
        bytes[24] = u8::from(self.link.commits);
        bytes[28..32].copy_from_slice(&self.before.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.link.crc.to_le_bytes());
        let crc = crc32c_append(salt, &bytes[..36]);
        bytes[36..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The head that starts `bytes`, if it is one.
    pub(super) fn read(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEAD)?;
        if bytes[..4] != MAGIC || crc32c_append(salt, &bytes[..36]) != word(bytes, 36) {
            return None;
        }
        let (batch, part, crc) = (long(bytes, 8), word(bytes, 16), word(bytes, 32));
        Some(Self {
            link: Link { batch, part, commits: bytes[24] == 1, crc },
            before: word(bytes, 28),
            length: word(bytes, 4),
            first: word(bytes, 20),
        })
    }

    /// Bytes that it takes in its segment.
    pub(super) fn size(&self) -> u64 {
        frame_bytes(self.length as usize)
    }
}

/// Bytes that a frame with so many bytes of entries takes in its segment.
pub(super) fn frame_bytes(entries: usize) -> u64 {
    (FRAME_HEAD + entries.next_multiple_of(ALIGNMENT)) as u64
}

/// Zeroes after so many bytes of entries.
pub(super) fn padding(entries: usize) -> &'static [u8] {
    &[0; ALIGNMENT][..entries.next_multiple_of(ALIGNMENT) - entries]
}

/// Offsets in `bytes` at which the head of a frame may begin, where there is one.
pub(super) fn heads(bytes: &[u8], salt: u32) -> impl Iterator<Item = Frame> + '_ {
    let places = (0..bytes.len()).step_by(ALIGNMENT);
    places.filter_map(move |at| Frame::read(&bytes[at..], salt))
}

/// An entry as it stands in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    /// `None` where the key was removed.
    pub(super) value: Option<&'a [u8]>,
    /// All of it.
    pub(super) bytes: &'a [u8],
}

impl<'a> Entry<'a> {
    /// The entry that starts `bytes`, its checksum not looked at.
    pub(super) fn split(bytes: &'a [u8]) -> Option<Self> {
        let head = bytes.get(..ENTRY_HEAD)?;
        let key_bytes = u16::from_le_bytes(head[4..6].try_into().expect("2 bytes"));
        let length = word(head, 6);
        let size = entry_bytes(usize::from(key_bytes), length);
        let bytes = bytes.get(..usize::try_from(size).ok()?)?;
        let (key, value) = bytes[ENTRY_HEAD..].split_at(usize::from(key_bytes));
        Some(Self { key, value: (length != REMOVED).then_some(value), bytes })
    }

    /// ★ The entry that is `bytes`, if it is the one that was written there.
    pub(super) fn checked(bytes: &'a [u8]) -> Option<Self> {
        let entry = Self::split(bytes)?;
        let is_whole = entry.bytes.len() == bytes.len() && crc32c(&bytes[4..]) == word(bytes, 0);
        is_whole.then_some(entry)
    }

    /// Length of its value, or [`REMOVED`].
    pub(super) fn length(&self) -> u32 {
        let lengths = |value: &[u8]| u32::try_from(value.len()).expect("as it was read");
        self.value.map_or(REMOVED, lengths)
    }
}

/// Bytes of an entry with a key of so many bytes and a value of this length.
pub(super) fn entry_bytes(key: usize, length: u32) -> u64 {
    let value = if length == REMOVED { 0 } else { u64::from(length) };
    (ENTRY_HEAD + key) as u64 + value
}

/// Appends an entry.
///
/// # Panics
/// When key or value are longer than any that a service has.
pub(super) fn put_entry(bytes: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) {
    let start = bytes.len();
    let key_bytes = u16::try_from(key.len()).expect("keys are shorter than 64 KiB");
    let lengths = |value: &[u8]| u32::try_from(value.len()).ok().filter(|it| *it < REMOVED);
    let length =
        value.map_or(REMOVED, |value| lengths(value).expect("values are shorter than 4 GiB"));
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&key_bytes.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(value.unwrap_or_default());
    let crc = crc32c(&bytes[start + 4..]);
    bytes[start..start + 4].copy_from_slice(&crc.to_le_bytes());
}

/// The entries of a frame, whose checksum was right, with their offsets in it.
pub(super) fn entries(frame: &[u8]) -> impl Iterator<Item = (u32, Entry<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let entry = Entry::split(&frame[at..])?;
        let offset = u32::try_from(at).expect("a frame is shorter");
        at += entry.bytes.len();
        Some((offset, entry))
    })
}

/// The number in these four bytes.
pub(super) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests;
