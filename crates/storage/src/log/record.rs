//! One record: a header of 64 bytes, the payload, and zeroes up to the next multiple of 8.
//!
//! ```text
//!  0  magic "QLR1"                       24  kind u8, seven zeroes
//!  4  length of the payload u32          32  checksum of the payload [16]
//!  8  sequence number u64                48  checksum of the 48 bytes before [16]
//! 16  first sequence number of its group u64
//! ```
//!
//! Numbers are little-endian. A checksum is BLAKE3 under the segment's key, cut to 16 bytes. The
//! header has one of its own so that a torn payload does not take the record's length with it.

use quorate_crypto::mutants::{self, Mutant};

pub(crate) const HEADER_BYTES: usize = 64;
/// Records begin at multiples of this, so that recovery need not look everywhere.
pub(crate) const ALIGNMENT: usize = 8;
/// The kind of a segment's first record; its payload is the [owner's](crate::owner), or in an older
/// format that format alone.
pub(crate) const SEGMENT: u8 = 0;
/// The kind of a record that gives segments up: its payload is the number of the oldest that is
/// kept.
pub(crate) const FLOOR: u8 = 32;

const MAGIC: [u8; 4] = *b"QLR1";
const CHECKED_BYTES: usize = 48;

/// Cut from 32 bytes: this guards against accidents, not against whoever can write the file.
pub(crate) type Checksum = [u8; 16];

/// A segment's checksum key.
#[derive(Clone)]
pub(crate) struct Key(blake3::Hasher);

impl Key {
    pub(crate) fn of_segment(log: &str, number: u64) -> Self {
        let material = [&number.to_le_bytes(), log.as_bytes()].concat();
        let key = blake3::derive_key("quorate v2 log segment", &material);
        Self(blake3::Hasher::new_keyed(&key))
    }

    pub(crate) fn checksum(&self, parts: &[&[u8]]) -> Checksum {
        let mut hasher = self.0.clone();
        for part in parts {
            hasher.update(part);
        }
        let mut checksum = Checksum::default();
        checksum.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        checksum
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) length: u32,
    pub(crate) sequence: u64,
    pub(crate) group: u64,
    pub(crate) kind: u8,
    pub(crate) payload: Checksum,
}

impl RecordHeader {
    pub(crate) fn encode(&self, key: &Key) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.group.to_le_bytes());
        bytes[24] = self.kind;
        bytes[32..48].copy_from_slice(&self.payload);
        let checksum = key.checksum(&[&bytes[..CHECKED_BYTES]]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum);
        bytes
    }

    /// The header that starts `bytes`, if it is one.
    pub(crate) fn read(bytes: &[u8], key: &Key) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        if bytes[..4] != MAGIC || bytes[CHECKED_BYTES..] != key.checksum(&[&bytes[..CHECKED_BYTES]])
        {
            return None;
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Some(Self {
            length: u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
            sequence: number(8),
            group: number(16),
            kind: bytes[24],
            payload: bytes[32..48].try_into().expect("16 bytes"),
        })
    }

    /// The checksum of the header that starts `bytes`: it covers all of the record.
    pub(crate) fn checksum(bytes: &[u8]) -> Checksum {
        bytes[CHECKED_BYTES..HEADER_BYTES].try_into().expect("16 bytes")
    }

    /// The payload in `bytes`, which start with this header; `None` where they end too soon.
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        bytes.get(HEADER_BYTES..HEADER_BYTES + self.length as usize)
    }

    /// Returns `true` if the payload in `bytes`, which start with this header, is the one it was
    /// made for.
    pub(crate) fn is_whole(&self, bytes: &[u8], key: &Key) -> bool {
        self.payload(bytes).is_some_and(|payload| {
            key.checksum(&[payload]) == self.payload || mutants::active(Mutant::AcceptTornRecord)
        })
    }
}

pub(crate) fn padding(payload: usize) -> usize {
    payload.next_multiple_of(ALIGNMENT) - payload
}

/// Space that a record with a payload of this length takes in the log, in bytes.
pub(crate) fn size(payload: usize) -> u64 {
    (HEADER_BYTES + payload + padding(payload)) as u64
}
