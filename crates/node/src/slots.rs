//! A small file beside a key, or a wallet's book, that is written in place: two slots take turns,
//! each with a checksum, so that a torn write leaves the other.

use crate::durable;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::hash_parts;
use quorate_storage::{Room, StorageError, open_when_possible};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Slots lie so far apart that no page has parts of both.
const SLOT_EVERY: u64 = 4_096;
const SLOT_BYTES: usize = 512;
const CHECKSUM_BYTES: usize = 32;

/// The file. What it says is told apart from other files' by its domain.
#[derive(Debug)]
pub struct SlotFile {
    path: PathBuf,
    file: File,
    /// Room that a write waits for.
    room: Room,
    domain: &'static str,
    /// The slot with the higher turn is the newer one.
    turn: u64,
}

/// What a file said when it was opened.
#[derive(Debug)]
pub struct Found<T> {
    /// Contents that are whole, the newest first.
    pub slots: Vec<T>,
    /// There is something, and nothing of it is whole.
    pub is_damaged: bool,
}

impl SlotFile {
    /// Opens the file, or makes an empty one.
    ///
    /// # Errors
    /// When it cannot be opened or read.
    pub fn open<T: BorshDeserialize>(
        path: PathBuf,
        domain: &'static str,
    ) -> io::Result<(Self, Found<T>)> {
        let open =
            || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = open_when_possible(open)?;
        let mut slots: Vec<(u64, T)> =
            [0, 1].iter().filter_map(|turn| read(&file, domain, *turn)).collect();
        slots.sort_by_key(|(turn, _)| std::cmp::Reverse(*turn));
        let turn = slots.first().map_or(0, |(turn, _)| *turn);
        let is_damaged = slots.is_empty() && file.metadata()?.len() > 0;
        let slots = slots.into_iter().map(|(_, content)| content).collect();
        let opened = Self { path, file, room: Room::unwatched(), domain, turn };
        Ok((opened, Found { slots, is_damaged }))
    }

    /// The same, whose writes wait for room.
    pub(crate) fn within(self, room: &Room) -> Self {
        Self { room: room.clone(), ..self }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a content of some hundred bytes in the place of the older one. Read after the end of
    /// the process; after a power cut where [`SlotFile::sync`] came after it.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&mut self, content: &impl BorshSerialize) -> Result<(), StorageError> {
        self.turn += 1;
        let mut bytes =
            borsh::to_vec(&(self.turn, content)).expect("encoding into memory cannot fail");
        bytes.resize(SLOT_BYTES - CHECKSUM_BYTES, 0);
        let checksum = checksum(self.domain, &bytes);
        bytes.extend_from_slice(&checksum);
        // In place, and yet a file system that copies on writing may have no room for it.
        let written =
            self.room.when_there_is((&self.path.display().to_string(), SLOT_BYTES as u64), || {
                self.file.write_all_at(&bytes, place(self.turn))
            });
        written.map_err(|error| self.failed("write", &error))
    }

    /// Writes both slots, durably, one after the other, and the file's name: what was in one of
    /// them before must not be all that a torn write leaves, and one is whole at any time.
    pub(crate) fn put_both(&mut self, content: &impl BorshSerialize) -> Result<(), StorageError> {
        for _ in 0..2 {
            self.put(content)?;
            self.sync_all()?;
        }
        durable::sync_folder_of(&self.path)
            .map_err(|error| self.failed("sync the directory of", &error))
    }

    /// Makes durable what was put, and the file's length if it grew.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_data().map_err(|error| self.failed("sync", &error))
    }

    /// Makes durable what was put, and the file's length.
    pub(crate) fn sync_all(&self) -> Result<(), StorageError> {
        self.file.sync_all().map_err(|error| self.failed("sync", &error))
    }

    fn failed(&self, action: &'static str, error: &io::Error) -> StorageError {
        StorageError::io(action, self.path.display().to_string(), error)
    }
}

fn place(turn: u64) -> u64 {
    (turn % 2) * SLOT_EVERY
}

/// The turn and the content of a slot that is whole.
fn read<T: BorshDeserialize>(file: &File, domain: &'static str, turn: u64) -> Option<(u64, T)> {
    let mut bytes = [0; SLOT_BYTES];
    file.read_exact_at(&mut bytes, place(turn)).ok()?;
    let (content, found) = bytes.split_at(SLOT_BYTES - CHECKSUM_BYTES);
    let sound = checksum(domain, content) == *found;
    sound.then(|| <(u64, T)>::deserialize(&mut &content[..]).ok()).flatten()
}

fn checksum(domain: &'static str, content: &[u8]) -> [u8; CHECKSUM_BYTES] {
    hash_parts(domain, &[content]).0
}
