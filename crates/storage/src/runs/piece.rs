//! One piece of a run: blocks of items in a file, and what is kept in memory to find them.
//!
//! ```text
//! block, 4 KiB:  0  checksum [16]    16  items, 74 bytes each: 55 of them, or fewer in the last
//! index:         0  hash [32]        32  the index in borsh
//! ```

use super::files::{damaged, missing, read_file};
use super::manifest::PieceEntry;
use super::{RUN_KEY_BYTES, RUN_VALUE_BYTES, RunItem};
use crate::disk::{Disk, DiskFile};
use crate::{Owner, StorageError};
use borsh::{BorshDeserialize, BorshSerialize};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use xorf::{BinaryFuse16, Descriptor, Filter};

const BLOCK_BYTES: usize = 4_096;
const CHECKSUM_BYTES: usize = 16;
const ITEM_BYTES: usize = RUN_KEY_BYTES + RUN_VALUE_BYTES;
const BLOCK_ITEMS: usize = (BLOCK_BYTES - CHECKSUM_BYTES) / ITEM_BYTES;

/// Blocks that are written, or read in order, at once.
const TOGETHER: usize = 64;

/// Bytes after which a piece that is written is synced: a sync of the log beside it waits for no
/// more than that.
const SYNC_BYTES: u64 = 4 * 1024 * 1024;

/// Secrets that are tried for one filter.
const SECRETS_MAX: usize = 64;

type Key = [u8; RUN_KEY_BYTES];

/// A piece that is found.
#[derive(Debug)]
pub(super) struct Piece {
    entry: PieceEntry,
    first: Key,
    /// What the first key of each block begins with.
    blocks: Box<[u64]>,
    /// Secret that keys are mixed with for the filter.
    secret: [u64; 2],
    filter: BinaryFuse16,
    file: PieceFile,
}

/// The file of a piece's blocks.
pub(super) struct PieceFile {
    place: String,
    file: Arc<dyn DiskFile>,
    /// Key of the blocks' checksums: whose piece it is, and which.
    checksum: [u8; 32],
}

/// What is kept in memory, as it stands in a file.
#[derive(BorshSerialize, BorshDeserialize)]
pub(super) struct Index {
    number: u64,
    items: u64,
    first: Key,
    blocks: Vec<u64>,
    secret: [u64; 2],
    seed: u64,
    segments: [u32; 3],
    fingerprints: Vec<u16>,
}

/// A piece that is written.
pub(super) struct PieceWriter {
    file: PieceFile,
    number: u64,
    items: u64,
    /// Blocks that are whole, and the one that grows.
    buffer: Vec<u8>,
    block_items: usize,
    written: u64,
    unsynced: u64,
    first: Option<Key>,
    blocks: Vec<u64>,
    names: Vec<u64>,
}

impl Piece {
    /// Finds the piece that a manifest names (★): all of it, or an error.
    pub(super) fn open(
        disk: &dyn Disk,
        entry: &PieceEntry,
        owner: &Owner,
    ) -> Result<Self, StorageError> {
        let name = entry.index_name();
        let bytes = read_file(disk, &name)?;
        if *blake3::hash(&bytes).as_bytes() != entry.index_hash {
            return Err(damaged(disk.locate(&name), 0, "it is not what the manifest names"));
        }
        let index = Index::try_from_slice(&bytes)
            .map_err(|_| damaged(disk.locate(&name), 0, "it does not decode"))?;
        let name = entry.name();
        let file = disk.open(&name).map_err(|error| missing(disk.locate(&name), &error))?;
        let file = PieceFile::new(disk.locate(&name), file, entry.number, owner);
        let length = file.file.length().map_err(|error| file.failed("measure", &error))?;
        if length != file_bytes(entry.items) {
            return Err(damaged(file.place, length, "it has another length"));
        }
        Ok(Self::of(*entry, index, file))
    }

    /// Keeps what was written in order to find it again: durable, but for its names.
    pub(super) fn keep(
        disk: &mut dyn Disk,
        index: Index,
        file: PieceFile,
    ) -> Result<Self, StorageError> {
        let bytes = borsh::to_vec(&index).expect("encoding into memory cannot fail");
        let index_hash = *blake3::hash(&bytes).as_bytes();
        let entry = PieceEntry { number: index.number, items: index.items, index_hash };
        let name = entry.index_name();
        let written = disk.write(&name, &bytes);
        written.map_err(|error| StorageError::io("write", disk.locate(&name), &error))?;
        Ok(Self::of(entry, index, file))
    }

    fn of(entry: PieceEntry, index: Index, file: PieceFile) -> Self {
        let [segment_length, segment_length_mask, segment_count_length] = index.segments;
        let descriptor = Descriptor {
            seed: index.seed,
            segment_length,
            segment_length_mask,
            segment_count_length,
        };
        let filter = BinaryFuse16 { descriptor, fingerprints: index.fingerprints.into() };
        let (first, secret, blocks) = (index.first, index.secret, index.blocks.into());
        Self { entry, first, blocks, secret, filter, file }
    }

    pub(super) fn entry(&self) -> &PieceEntry {
        &self.entry
    }

    pub(super) fn first(&self) -> &Key {
        &self.first
    }

    /// Returns `false` where it is certain that the piece does not have the key named so.
    #[inline]
    pub(super) fn may_have(&self, name: u64) -> bool {
        self.filter.contains(&mixed(name, self.secret))
    }

    /// What a key stands for, read from its block.
    pub(super) fn read(&self, key: &Key) -> Result<Option<[u8; RUN_VALUE_BYTES]>, StorageError> {
        let begins = beginning(key);
        // Several blocks only where their keys begin alike.
        let from = self.blocks.partition_point(|first| *first < begins).saturating_sub(1);
        let to = self.blocks.partition_point(|first| *first <= begins);
        for number in from..to {
            let mut block = [0; BLOCK_BYTES];
            self.read_blocks(number, &mut block)?;
            let items = self.items_of(number, &block);
            if let Ok(found) = items.binary_search_by(|item| item[..RUN_KEY_BYTES].cmp(&key[..])) {
                return Ok(Some(split(&items[found]).1));
            }
        }
        Ok(None)
    }

    /// Hands some blocks from this one on to `items`; returns how many, 0 at the end.
    pub(super) fn read_items(
        &self,
        number: usize,
        mut visit: impl FnMut(RunItem),
    ) -> Result<usize, StorageError> {
        let count = (self.blocks.len() - number).min(TOGETHER);
        let mut bytes = vec![0; count * BLOCK_BYTES];
        self.read_blocks(number, &mut bytes)?;
        for (number, block) in (number..).zip(bytes.as_chunks().0) {
            self.items_of(number, block).iter().for_each(|item| visit(split(item)));
        }
        Ok(count)
    }

    /// Reads whole blocks and checks them.
    fn read_blocks(&self, number: usize, bytes: &mut [u8]) -> Result<(), StorageError> {
        let offset = (number * BLOCK_BYTES) as u64;
        let read = self.file.file.read_at(offset, bytes);
        read.map_err(|error| self.file.failed("read", &error))?;
        for (number, block) in (number..).zip(bytes.chunks(BLOCK_BYTES)) {
            let (checksum, content) = block.split_at(CHECKSUM_BYTES);
            if self.file.checksum(number, content) != *checksum {
                let offset = (number * BLOCK_BYTES) as u64;
                let reason = "a block reads back changed";
                return Err(damaged(self.file.place.clone(), offset, reason));
            }
        }
        Ok(())
    }

    fn items_of<'a>(&self, number: usize, block: &'a [u8; BLOCK_BYTES]) -> &'a [[u8; ITEM_BYTES]] {
        let before = (number * BLOCK_ITEMS) as u64;
        let count = (self.entry.items - before).min(BLOCK_ITEMS as u64) as usize;
        &block[CHECKSUM_BYTES..].as_chunks().0[..count]
    }
}

impl PieceWriter {
    /// A piece of exactly so many items.
    pub(super) fn begin(
        disk: &mut dyn Disk,
        number: u64,
        items: u64,
        owner: &Owner,
    ) -> Result<Self, StorageError> {
        let name = PieceEntry::name_of(number);
        let file = disk.create(&name, file_bytes(items));
        let file = file.map_err(|error| StorageError::io("create", disk.locate(&name), &error))?;
        Ok(Self {
            file: PieceFile::new(disk.locate(&name), file, number, owner),
            number,
            items,
            buffer: Vec::with_capacity(TOGETHER * BLOCK_BYTES),
            block_items: 0,
            written: 0,
            unsynced: 0,
            first: None,
            blocks: Vec::new(),
            names: Vec::new(),
        })
    }

    pub(super) fn push(&mut self, (key, value): &RunItem) -> Result<(), StorageError> {
        if self.block_items == 0 {
            self.blocks.push(beginning(key));
            self.buffer.extend_from_slice(&[0; CHECKSUM_BYTES]);
        }
        self.first.get_or_insert(*key);
        self.names.push(name(key));
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(value);
        self.block_items += 1;
        if self.block_items == BLOCK_ITEMS {
            self.end_block()?;
        }
        Ok(())
    }

    /// Makes the blocks durable.
    pub(super) fn finish(mut self) -> Result<(Index, PieceFile), StorageError> {
        if self.block_items > 0 {
            self.end_block()?;
        }
        self.flush()?;
        self.sync()?;
        let (secret, filter) = filter(&self.names);
        let Descriptor { seed, segment_length, segment_length_mask, segment_count_length } =
            filter.descriptor;
        let index = Index {
            number: self.number,
            items: self.items,
            first: self.first.expect("a piece has items"),
            blocks: self.blocks,
            secret,
            seed,
            segments: [segment_length, segment_length_mask, segment_count_length],
            fingerprints: filter.fingerprints.into(),
        };
        Ok((index, self.file))
    }

    fn end_block(&mut self) -> Result<(), StorageError> {
        let number = self.blocks.len() - 1;
        self.buffer.resize(self.buffer.len().next_multiple_of(BLOCK_BYTES), 0);
        let block = self.buffer.len() - BLOCK_BYTES;
        let (checksum, content) = self.buffer[block..].split_at_mut(CHECKSUM_BYTES);
        checksum.copy_from_slice(&self.file.checksum(number, content));
        self.block_items = 0;
        if self.buffer.len() == TOGETHER * BLOCK_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StorageError> {
        let written = self.file.file.write_at(self.written, &[&self.buffer]);
        written.map_err(|error| self.file.failed("write", &error))?;
        self.written += self.buffer.len() as u64;
        self.unsynced += self.buffer.len() as u64;
        self.buffer.clear();
        if self.unsynced >= SYNC_BYTES { self.sync() } else { Ok(()) }
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        self.unsynced = 0;
        self.file.file.sync_data().map_err(|error| self.file.failed("sync", &error))
    }
}

impl PieceFile {
    fn new(place: String, file: Arc<dyn DiskFile>, number: u64, owner: &Owner) -> Self {
        let owner = borsh::to_vec(owner).expect("encoding into memory cannot fail");
        let named = [&number.to_le_bytes()[..], &owner].concat();
        Self { place, file, checksum: blake3::derive_key("quorate v1 run piece", &named) }
    }

    fn checksum(&self, block: usize, content: &[u8]) -> [u8; CHECKSUM_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.checksum);
        hasher.update(&(block as u64).to_le_bytes()).update(content);
        *hasher.finalize().as_bytes().first_chunk().expect("32 bytes")
    }

    fn failed(&self, action: &'static str, error: &io::Error) -> StorageError {
        StorageError::io(action, self.place.clone(), error)
    }
}

impl std::fmt::Debug for PieceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.place)
    }
}

/// What a key begins with, in the order of keys.
pub(super) fn beginning(key: &Key) -> u64 {
    u64::from_be_bytes(*key.first_chunk().expect("34 bytes"))
}

/// A filter of these names, and the secret that they are mixed with.
///
/// Some sets of names make no filter, whatever its own seed is. Whoever picks keys could look for
/// one if it knew how they are mixed: so a secret is drawn for each filter, and another one where
/// that makes none.
fn filter(names: &[u64]) -> ([u64; 2], BinaryFuse16) {
    let made = (0..SECRETS_MAX).find_map(|_| {
        let secret = drawn_secret();
        let mut names: Vec<u64> = names.iter().map(|name| mixed(*name, secret)).collect();
        // Keys that differ may have one name; a filter wants each name once.
        names.sort_unstable();
        names.dedup();
        Some((secret, BinaryFuse16::try_from(&names[..]).ok()?))
    });
    made.expect("names under a fresh secret make a filter but for one time in many")
}

/// Drawn by the system, anew for each.
fn drawn_secret() -> [u64; 2] {
    let random = RandomState::new();
    [0_u8, 1].map(|word| random.hash_one(word))
}

/// Name under a secret.
fn mixed(name: u64, [addend, factor]: [u64; 2]) -> u64 {
    let product = u128::from(name ^ addend) * u128::from(factor | 1);
    (product >> 64) as u64 ^ product as u64
}

/// What a filter knows of a key: keys are hashes, and a place behind them.
pub(super) fn name(key: &Key) -> u64 {
    let (hash, index) = key.split_last_chunk::<2>().expect("34 bytes");
    let part = u64::from_le_bytes(*hash.last_chunk().expect("32 bytes"));
    part ^ u64::from(u16::from_le_bytes(*index)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn split(item: &[u8; ITEM_BYTES]) -> RunItem {
    let (key, value) = item.split_first_chunk().expect("74 bytes");
    (*key, value.try_into().expect("40 bytes"))
}

fn file_bytes(items: u64) -> u64 {
    items.div_ceil(BLOCK_ITEMS as u64) * BLOCK_BYTES as u64
}
