//! Bit sets over the members of a committee: the signers of a certificate.

use crate::mutants::{self, Mutant};
use borsh::io::{self, Read, Write};
use borsh::{BorshDeserialize, BorshSerialize};
use std::fmt;

/// A set of members of a committee of known size: one bit a member, in exactly `⌈members / 8⌉`
/// bytes.
///
/// There is one encoding of each set: the bits past the last member are zero, and decoding refuses
/// anything else. Its size is part of it, so a bitmap for another committee is never equal and a
/// [`Scheme`](crate::Scheme) refuses it.
///
/// Encoded: `members` as a little-endian `u16`, then the bytes; member `i` is bit `i % 8` (least
/// significant first) of byte `i / 8`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bitmap {
    members: u16,
    bytes: Vec<u8>,
}

/// Reason for which bytes are not a [`Bitmap`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BitmapError {
    /// The byte count does not follow from the number of members.
    #[error("a bitmap for {members} members takes {expected} bytes, but {found} were given")]
    Length {
        /// Members the bitmap is said to be for.
        members: usize,
        /// Bytes such a bitmap takes.
        expected: usize,
        /// Number of bytes that were given.
        found: usize,
    },
    /// A bit past the last member is set.
    #[error("the bitmap names a member beyond the {members} there are")]
    Padding {
        /// Members the bitmap is for.
        members: usize,
    },
}

impl Bitmap {
    /// Nobody, out of `members` (at most 65,535).
    ///
    /// # Panics
    /// If `members` exceeds 65,535.
    pub fn new(members: usize) -> Self {
        let count = u16::try_from(members).expect("a committee has at most 65,535 members");
        Self { members: count, bytes: vec![0; members.div_ceil(8)] }
    }

    /// The members in `indices` (repeats are harmless).
    ///
    /// # Panics
    /// If an index is not below `members`.
    pub fn from_indices(members: usize, indices: impl IntoIterator<Item = usize>) -> Self {
        let mut bitmap = Self::new(members);
        for index in indices {
            bitmap.insert(index);
        }
        bitmap
    }

    /// Reads the bits of a bitmap for `members`, as [`Bitmap::as_bytes`] gives them.
    pub fn from_bytes(members: usize, bytes: &[u8]) -> Result<Self, BitmapError> {
        let mut bitmap = Self::new(members);
        if bytes.len() != bitmap.bytes.len() {
            let (expected, found) = (bitmap.bytes.len(), bytes.len());
            return Err(BitmapError::Length { members, expected, found });
        }
        bitmap.bytes.copy_from_slice(bytes);
        if bitmap.names_beyond_members() && !mutants::active(Mutant::AcceptBitmapPadding) {
            return Err(BitmapError::Padding { members });
        }
        Ok(bitmap)
    }

    /// The bits, without the size.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Size of the committee that this bitmap is for.
    pub fn members(&self) -> usize {
        usize::from(self.members)
    }

    /// Adds member `index`; false if it was there already.
    ///
    /// # Panics
    /// If `index` is not below [`Bitmap::members`].
    pub fn insert(&mut self, index: usize) -> bool {
        assert!(
            index < self.members(),
            "member {index} is out of range for a bitmap of {} members",
            self.members
        );
        let added = !self.contains(index);
        self.bytes[index / 8] |= 1 << (index % 8);
        added
    }

    /// Returns `true` if member `index` is in; `false` for an index out of range.
    pub fn contains(&self, index: usize) -> bool {
        index < self.members() && self.bytes[index / 8] & (1 << (index % 8)) != 0
    }

    /// Number of members that are in.
    pub fn count(&self) -> usize {
        self.bytes.iter().map(|byte| byte.count_ones() as usize).sum()
    }

    /// Returns `true` if no member is in.
    pub fn is_empty(&self) -> bool {
        self.bytes.iter().all(|byte| *byte == 0)
    }

    /// The members that are in, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.members()).filter(|index| self.contains(*index))
    }

    /// The members that are not in, ascending.
    pub fn absent(&self) -> impl Iterator<Item = usize> {
        (0..self.members()).filter(|index| !self.contains(*index))
    }

    fn names_beyond_members(&self) -> bool {
        let used = self.members() % 8;
        used != 0 && self.bytes.last().is_some_and(|last| last >> used != 0)
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()?;
        write!(f, "/{}", self.members)
    }
}

impl BorshSerialize for Bitmap {
    fn serialize<W: Write>(&self, writer: &mut W) -> io::Result<()> {
        self.members.serialize(writer)?;
        writer.write_all(&self.bytes)
    }
}

impl BorshDeserialize for Bitmap {
    fn deserialize_reader<R: Read>(reader: &mut R) -> io::Result<Self> {
        let members = usize::from(u16::deserialize_reader(reader)?);
        let mut bytes = vec![0; members.div_ceil(8)];
        reader.read_exact(&mut bytes)?;
        Self::from_bytes(members, &bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

#[cfg(test)]
pub(crate) mod tests;
