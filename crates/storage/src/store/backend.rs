//! The file under a redb store, whose writes wait for room.
//!
//! redb takes any failed write for the end of the file: every later call fails, and the store would
//! have to be opened anew. So it is not told of one that found no room, which is done again when
//! there is. A failed sync it is told of.

use crate::Room;
use redb::backends::FileBackend;
use redb::{BackendError, DatabaseError, StorageBackend};
use std::fs::OpenOptions;
use std::io;
use std::ops::Bound;
use std::path::Path;

#[derive(Debug)]
pub(super) struct RoomyFile {
    file: FileBackend,
    place: String,
    room: Room,
}

impl RoomyFile {
    pub(super) fn open(path: &Path, room: Room) -> Result<Self, DatabaseError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self { file: FileBackend::new(file)?, place: path.display().to_string(), room })
    }
}

impl StorageBackend for RoomyFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.room.when_there_is((&self.place, 0), || self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let what = (&*self.place, data.len() as u64);
        self.room.when_there_is(what, || self.file.write(offset, data))
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(
        &self,
        start: Bound<u64>,
        end: Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
