//! One record: a header of 64 bytes, the payload, and zeroes up to the next multiple of 8.
//!
//! ```text
//!  0  magic "QLR1"                       24  kind u8
//!  4  length of the payload u32          25  checksum's kind u8, six zeroes
//!  8  sequence number u64                32  checksum of the payload [16]
//! 16  first sequence number of its group 48  checksum of the 48 bytes before [16]
//! ```
//!
//! Numbers are little-endian. The header's checksum is BLAKE3 under the segment's key, cut to 16
//! bytes. It is one of its own so that a torn payload does not take the record's length with it.
//!
//! # Checksum of a payload
//!
//! Kind 1 is CRC-32C in the first 4 bytes, and 12 zeroes. Kind 0 is made as the header's: all
//! records had it before format 5, and the first of a segment has it still, so that every version
//! can read which format a log is of. A header says which kind it is, so a log may have segments of
//! both.
//!
//! A CRC has no key and needs none: the header that holds it has one. Old content of a recycled
//! segment that passes under a new header is, but for one case in 2³², the very content that it
//! stands for. CRC-32C finds every change of up to three bits (of five, in payloads of up to 640
//! bytes) and every run of changed bits no longer than 32; of other damage it misses one case in
//! 2³², where BLAKE3 missed one in 2¹²⁸. That is per damaged record, and disks damage few: etcd,
//! Kafka and RocksDB rely on it for the same purpose. Contents that somebody chose it does not
//! withstand; ADR 46 says why they need not.

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
#[derive(Clone, Copy)]
pub(crate) struct Key([u8; 32]);

impl Key {
    pub(crate) fn of_segment(log: &str, number: u64) -> Self {
        let material = [&number.to_le_bytes(), log.as_bytes()].concat();
        Self(blake3::derive_key("quorate v2 log segment", &material))
    }

    fn checksum(&self, bytes: &[u8]) -> Checksum {
        *blake3::keyed_hash(&self.0, bytes).as_bytes().first_chunk().expect("32 bytes")
    }
}

/// Checksum of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadChecksum {
    /// BLAKE3 under the segment's key, as in every record before format 5.
    Keyed(Checksum),
    /// CRC-32C.
    Crc(u32),
}

impl PayloadChecksum {
    /// Checksum by which every version can check a payload: for the first record of a segment.
    pub(crate) fn keyed(payload: &[u8], key: &Key) -> Self {
        Self::Keyed(key.checksum(payload))
    }

    /// Checksum of the payload `head ‖ tail`.
    pub(crate) fn crc(head: &[u8], tail: &[u8]) -> Self {
        Self::Crc(crc32c::crc32c_append(crc32c::crc32c(head), tail))
    }

    fn is_of(self, payload: &[u8], key: &Key) -> bool {
        let made = match self {
            Self::Keyed(_) => Self::keyed(payload, key),
            Self::Crc(_) => Self::crc(payload, &[]),
        };
        self == made
    }

    /// Number of its kind, and its bytes.
    fn encode(self) -> (u8, Checksum) {
        match self {
            Self::Keyed(checksum) => (0, checksum),
            Self::Crc(crc) => {
                let mut checksum = Checksum::default();
                checksum[..4].copy_from_slice(&crc.to_le_bytes());
                (1, checksum)
            }
        }
    }

    fn decode(kind: u8, checksum: Checksum) -> Option<Self> {
        match kind {
            0 => Some(Self::Keyed(checksum)),
            1 => {
                let (crc, zeroes) = checksum.split_first_chunk()?;
                zeroes.iter().all(|byte| *byte == 0).then(|| Self::Crc(u32::from_le_bytes(*crc)))
            }
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) length: u32,
    pub(crate) sequence: u64,
    pub(crate) group: u64,
    pub(crate) kind: u8,
    pub(crate) payload: PayloadChecksum,
}

impl RecordHeader {
    pub(crate) fn encode(&self, key: &Key) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.group.to_le_bytes());
        let (checksum_kind, payload) = self.payload.encode();
        bytes[24] = self.kind;
        bytes[25] = checksum_kind;
        bytes[32..48].copy_from_slice(&payload);
        let checksum = key.checksum(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&checksum);
        bytes
    }

    /// The header that starts `bytes`, if it is one.
    pub(crate) fn read(bytes: &[u8], key: &Key) -> Option<Self> {
        let bytes = bytes.get(..HEADER_BYTES)?;
        if bytes[..4] != MAGIC || bytes[CHECKED_BYTES..] != key.checksum(&bytes[..CHECKED_BYTES]) {
            return None;
        }
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Some(Self {
            length: u32::from_le_bytes(bytes[4..8].try_into().expect("4 bytes")),
            sequence: number(8),
            group: number(16),
            kind: bytes[24],
            payload: PayloadChecksum::decode(bytes[25], bytes[32..48].try_into().ok()?)?,
        })
    }

    /// The checksum of the header that starts `bytes`: it covers the payload by its checksum.
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
            self.payload.is_of(payload, key) || mutants::active(Mutant::AcceptTornRecord)
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
