//! A disk whose writers wait for room.

use super::{Disk, DiskFile};
use crate::Room;
use quorate_crypto::mutants::{self, Mutant};
use std::io;
use std::sync::Arc;

/// A disk over another: what finds no room there is done again when there is. A sync that fails is
/// handed on as it is.
#[derive(Debug)]
pub struct RoomyDisk<D> {
    inner: D,
    room: Room,
}

impl<D: Disk> RoomyDisk<D> {
    /// A disk whose writers wait for `room`.
    #[must_use]
    pub fn new(inner: D, room: Room) -> Self {
        Self { inner, room }
    }

    fn wrap(&self, name: &str, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(RoomyFile { place: self.locate(name), inner, room: self.room.clone() })
    }
}

impl<D: Disk> Disk for RoomyDisk<D> {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let place = self.locate(name);
        let file = self.room.when_there_is((&place, bytes), || self.inner.create(name, bytes))?;
        Ok(self.wrap(name, file))
    }

    fn prepare(&mut self, name: &str, bytes: u64) {
        self.inner.prepare(name, bytes);
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(name, self.inner.open(name)?))
    }

    fn write(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let what = (&*self.locate(name), bytes.len() as u64);
        self.room.when_there_is(what, || self.inner.write(name, bytes))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let what = (&*self.locate(to), 0);
        self.room.when_there_is(what, || self.inner.rename(from, to))
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn locate(&self, name: &str) -> String {
        self.inner.locate(name)
    }
}

struct RoomyFile {
    place: String,
    inner: Arc<dyn DiskFile>,
    room: Room,
}

impl DiskFile for RoomyFile {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    /// ★ Whole again after some of it was written: only what is in the file is synced.
    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        self.room.when_there_is((&self.place, bytes), || match self.inner.write_at(offset, parts) {
            Err(_) if mutants::active(Mutant::ForgetFullWrite) => Ok(()),
            result => result,
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }
}
