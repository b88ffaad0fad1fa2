//! Room on the file system of a data folder: what is kept of it, and how writers wait for more.
//!
//! A disk that is full is no broken device. A write that found no room has changed nothing that
//! anybody relied on, and is repeated when there is some (★ whole, and before anything behind it
//! goes). A sync is never repeated, whatever it failed of.
//!
//! Room runs out in three steps ([`RoomLevel`]). Below a threshold the host refuses new work and
//! deletes what it may. The first write that fails releases the *reserve*, a file written for that,
//! so that what was promised before can be finished. What fails then waits.
//!
//! Before [`Room::wait_from_now_on`] and after [`Room::stop`] nobody waits: a validator that starts
//! or stops says that its disk is full.

use crate::StorageError;
use crate::disk::write_zeroes;
use parking_lot::{Condvar, Mutex};
use rustix::fs::statvfs;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Name of the reserve in the data folder.
const RESERVE: &str = "reserve";

/// Folders that may lie on file systems of their own.
const FOLDERS: [&str; 5] = ["", "log", "bodies", "snapshots", "state"];

/// Pause before the second attempt of a write; doubles with each.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_DOUBLINGS_MAX: u32 = 4;

/// The reserve by default: this part of the file system, and no more than so many bytes.
const RESERVE_PART: u64 = 64;
const RESERVE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Room that is kept, and when it counts as low.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomConfig {
    /// Bytes of the reserve; 0: there is none. `None`: a 64th of the file system, at most 64 MiB.
    pub reserve_bytes: Option<u64>,
    /// With less than this free, besides the reserve, room is low.
    pub low_bytes: u64,
}

impl RoomConfig {
    /// Bytes of the reserve in this folder.
    #[must_use]
    pub fn reserve_in(&self, folder: &Path) -> u64 {
        let part = || {
            default_reserve(statvfs(folder).map_or(0, |system| system.f_blocks * system.f_frsize))
        };
        self.reserve_bytes.unwrap_or_else(part)
    }
}

/// Bytes of the reserve on a file system of this size, where none are configured.
fn default_reserve(size: u64) -> u64 {
    (size / RESERVE_PART).min(RESERVE_BYTES_MAX)
}

/// Pause after so many failed attempts.
fn pause_after(attempts: u32) -> Duration {
    PAUSE_MIN * (1 << attempts.min(PAUSE_DOUBLINGS_MAX))
}

/// Room as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoomLevel {
    /// Nothing to be done.
    Enough,
    /// Little is left, or the reserve is in use: no new work is taken.
    Low,
    /// Some write waits for more: this validator stands still.
    Out,
}

/// Figures of the room in a data folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RoomFigures {
    /// How far it ran out.
    pub level: RoomLevel,
    /// Bytes that are free, the reserve not among them.
    pub free_bytes: u64,
    /// Bytes below which room is low.
    pub low_bytes: u64,
    /// Bytes of the reserve; 0 while it is released.
    pub reserve_bytes: u64,
    /// Bytes that the writes ask for that wait; 0 when none does.
    pub needed_bytes: u64,
}

/// Room in one data folder. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Room(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Absent: nobody looks, and nobody waits.
    folder: Option<PathBuf>,
    low_bytes: u64,
    reserve_bytes: u64,
    /// Set while the reserve is in its place.
    reserve: Mutex<bool>,
    is_low: AtomicBool,
    waits: AtomicBool,
    /// Set once a write failed because nobody waits.
    gave_up: AtomicBool,
    waiting: AtomicUsize,
    needed_bytes: AtomicU64,
    turn: Mutex<()>,
    ended: Condvar,
}

/// An error that may say that there was no room.
pub trait WantsRoom {
    /// Returns `true` if it does: nothing was done, and what was tried may be tried again.
    fn wants_room(&self) -> bool;
}

impl WantsRoom for io::Error {
    fn wants_room(&self) -> bool {
        matches!(self.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

impl WantsRoom for StorageError {
    fn wants_room(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

impl Room {
    /// Room of a data folder, which is made if there is none, with its reserve. Where there is no
    /// room for that, room is low.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path, config: &RoomConfig) -> Result<Self, StorageError> {
        fs::create_dir_all(folder)
            .map_err(|error| StorageError::io("create", folder.display().to_string(), &error))?;
        let reserve_bytes = config.reserve_in(folder);
        let room = Self::new(Some(folder.to_owned()), reserve_bytes, config.low_bytes);
        let found = fs::metadata(folder.join(RESERVE)).map_or(0, |file| file.len());
        *room.0.reserve.lock() = reserve_bytes > 0 && found == reserve_bytes;
        if found != reserve_bytes {
            room.remove_reserve();
        }
        room.look();
        Ok(room)
    }

    /// Room that nobody looks after: a write that finds none fails.
    #[must_use]
    pub fn unwatched() -> Self {
        Self::new(None, 0, 0)
    }

    fn new(folder: Option<PathBuf>, reserve_bytes: u64, low_bytes: u64) -> Self {
        Self(Arc::new(Shared {
            folder,
            low_bytes,
            reserve_bytes,
            reserve: Mutex::new(false),
            is_low: AtomicBool::new(false),
            waits: AtomicBool::new(false),
            gave_up: AtomicBool::new(false),
            waiting: AtomicUsize::new(0),
            needed_bytes: AtomicU64::new(0),
            turn: Mutex::new(()),
            ended: Condvar::new(),
        }))
    }

    /// From now on a write that finds no room waits for it.
    pub fn wait_from_now_on(&self) {
        self.0.gave_up.store(false, Ordering::SeqCst);
        self.0.waits.store(true, Ordering::SeqCst);
    }

    /// Ends every wait: what finds no room from now on fails.
    pub fn stop(&self) {
        let turn = self.0.turn.lock();
        self.0.waits.store(false, Ordering::SeqCst);
        drop(turn);
        self.0.ended.notify_all();
    }

    /// Returns `true` if a write failed for want of room since [`Room::stop`].
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.0.gave_up.load(Ordering::SeqCst)
    }

    /// Returns `true` while little is left, by the last look.
    #[must_use]
    pub fn is_low(&self) -> bool {
        self.0.is_low.load(Ordering::Relaxed)
    }

    /// Returns `true` while a write waits.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }

    /// Sleeps for so long, or until [`Room::stop`]; `false` then.
    #[must_use]
    pub fn rest(&self, pause: Duration) -> bool {
        let mut turn = self.0.turn.lock();
        if self.0.waits.load(Ordering::SeqCst) {
            self.0.ended.wait_for(&mut turn, pause);
        }
        self.0.waits.load(Ordering::SeqCst)
    }

    /// Bytes that are free, where there is least.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        let Some(folder) = &self.0.folder else { return u64::MAX };
        let free = FOLDERS.iter().filter_map(|name| statvfs(folder.join(name)).ok());
        free.map(|system| system.f_bavail.saturating_mul(system.f_frsize)).min().unwrap_or(0)
    }

    /// Bytes that are free where this file is, or is to be; where that is not known, where there is
    /// least.
    fn free_at(&self, place: &str) -> u64 {
        let is_looked_after = self.0.folder.is_some();
        let mut folders = Path::new(place).ancestors().filter(|_| is_looked_after);
        let system = folders.find_map(|folder| statvfs(folder).ok());
        system.map_or_else(
            || self.free_bytes(),
            |system| system.f_bavail.saturating_mul(system.f_frsize),
        )
    }

    /// Looks how much there is, decides whether that is little, and puts the reserve back where
    /// there is enough for it.
    pub fn look(&self) -> RoomFigures {
        let Shared { low_bytes, reserve_bytes, .. } = *self.0;
        let mut free = self.free_bytes();
        // A little more than what is low ends it: it is not to come and go.
        let again = low_bytes.saturating_add(low_bytes / 4);
        if !self.is_out() && free >= again.saturating_add(reserve_bytes) && self.restore_reserve() {
            free = self.free_bytes();
        }
        let least = if self.is_low() { again } else { low_bytes };
        let lacks_reserve = reserve_bytes > 0 && !*self.0.reserve.lock();
        let is_low = free < least || lacks_reserve || self.is_out();
        self.0.is_low.store(is_low, Ordering::Relaxed);
        self.figures_with(free)
    }

    /// Figures of now, with the level as it was decided last.
    #[must_use]
    pub fn figures(&self) -> RoomFigures {
        self.figures_with(self.free_bytes())
    }

    fn figures_with(&self, free_bytes: u64) -> RoomFigures {
        let level = match (self.is_out(), self.is_low()) {
            (true, _) => RoomLevel::Out,
            (false, true) => RoomLevel::Low,
            (false, false) => RoomLevel::Enough,
        };
        let has_reserve = *self.0.reserve.lock();
        RoomFigures {
            level,
            free_bytes,
            low_bytes: self.0.low_bytes,
            reserve_bytes: if has_reserve { self.0.reserve_bytes } else { 0 },
            needed_bytes: self.0.needed_bytes.load(Ordering::Relaxed),
        }
    }

    /// Does what writes `bytes` to `place`; where there is no room, first releases the reserve,
    /// then waits until there is.
    ///
    /// # Errors
    /// What `attempt` fails of for any other reason; its want of room when nobody waits.
    pub fn when_there_is<T, E: WantsRoom>(
        &self,
        (place, bytes): (&str, u64),
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut waiting = None;
        for attempts in 0.. {
            match attempt() {
                Err(error) if error.wants_room() => {
                    if self.release_reserve() {
                        continue;
                    }
                    if !self.0.waits.load(Ordering::SeqCst) {
                        self.0.gave_up.store(true, Ordering::SeqCst);
                        return Err(error);
                    }
                    waiting.get_or_insert_with(|| Waiting::begin(self, place, bytes));
                    self.pause(attempts, place, bytes);
                }
                result => return result,
            }
        }
        unreachable!("attempts have no end")
    }

    /// Waits at least once, then for as long as there is visibly too little in this place: another
    /// file system may stay full. A quota is not visible: longer with each attempt.
    fn pause(&self, attempts: u32, place: &str, bytes: u64) {
        let pause = pause_after(attempts);
        while self.rest(pause) && self.free_at(place) < bytes {}
    }

    /// Removes the reserve; `false` if there was none.
    fn release_reserve(&self) -> bool {
        let mut reserve = self.0.reserve.lock();
        let was_there = std::mem::take(&mut *reserve);
        if was_there {
            self.remove_reserve();
            self.0.is_low.store(true, Ordering::Relaxed);
            let bytes = self.0.reserve_bytes;
            tracing::warn!(bytes, "the disk is full: its reserve is released");
        }
        was_there
    }

    fn remove_reserve(&self) {
        if let Some(folder) = &self.0.folder {
            // One that is not there takes no room.
            let _ = fs::remove_file(folder.join(RESERVE));
        }
    }

    /// Writes the reserve, if it is not in its place; `true` if it did.
    fn restore_reserve(&self) -> bool {
        let mut reserve = self.0.reserve.lock();
        let bytes = self.0.reserve_bytes;
        let Some(folder) = self.0.folder.as_ref().filter(|_| bytes > 0 && !*reserve) else {
            return false;
        };
        let written = write_zeroes(&folder.join(RESERVE), bytes);
        if let Err(error) = &written {
            tracing::debug!(%error, "the reserve cannot be written");
        }
        *reserve = written.is_ok();
        *reserve
    }
}

/// A write that waits.
struct Waiting<'a> {
    room: &'a Room,
    place: &'a str,
    bytes: u64,
}

impl<'a> Waiting<'a> {
    fn begin(room: &'a Room, place: &'a str, bytes: u64) -> Self {
        let free = room.free_at(place);
        tracing::warn!(
            %place,
            needed = bytes,
            free,
            "the disk is full: this validator takes no part until there is room, and then goes on"
        );
        room.0.needed_bytes.fetch_add(bytes, Ordering::Relaxed);
        room.0.waiting.fetch_add(1, Ordering::Relaxed);
        Self { room, place, bytes }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let shared = &self.room.0;
        shared.needed_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        shared.waiting.fetch_sub(1, Ordering::Relaxed);
        if !self.room.gave_up() {
            let free = self.room.free_at(self.place);
            tracing::info!(place = %self.place, free, "there is room on the disk again");
        }
    }
}

#[cfg(test)]
mod tests;
