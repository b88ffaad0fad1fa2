//! A disk that fails as it was told to.

use super::{Disk, DiskFile};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// One way to fail. Writes, syncs, directory syncs and changes of names are counted from 0, over
/// all files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The write with this number fails and leaves nothing.
    FailWrite {
        /// Number of the write, from 0.
        nth: u64,
    },
    /// The write with this number fails after some of its bytes.
    TearWrite {
        /// Number of the write, from 0.
        nth: u64,
        /// Number of bytes that are written.
        bytes: usize,
    },
    /// The sync with this number fails, and as on a real system every later one of the same file
    /// reports success although what was written to it is not durable.
    FailSync {
        /// Number of the sync, from 0.
        nth: u64,
    },
    /// The directory sync with this number fails.
    FailDirectorySync {
        /// Number of the directory sync, from 0.
        nth: u64,
    },
    /// The change of a name with this number fails: removals and renames.
    FailNameChange {
        /// Number of the change, from 0.
        nth: u64,
    },
    /// No more than this many bytes can be written, new files included. What finds no room takes
    /// none: with another plan it may be done again.
    Full {
        /// Number of bytes that fit.
        bytes: u64,
    },
    /// Writes from this number on find room for some of their bytes only, and say that there is no
    /// more.
    FullAmid {
        /// Number of the first such write, from 0.
        from: u64,
        /// Number of bytes that are written of each.
        bytes: usize,
    },
    /// The sync with this number fails and says that there is no room; otherwise as
    /// [`Fault::FailSync`].
    FullAtSync {
        /// Number of the sync, from 0.
        nth: u64,
    },
    /// A bit reads wrong.
    FlipBit {
        /// Name of the file that reads wrong.
        file: String,
        /// Offset of the byte in the file.
        offset: u64,
        /// Bit in that byte, 0 to 7.
        bit: u8,
    },
}

/// The handle by which a test keeps adding and taking away faults.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Mutex<FaultState>>,
}

#[derive(Debug, Default)]
struct FaultState {
    plan: Vec<Fault>,
    writes: u64,
    syncs: u64,
    directory_syncs: u64,
    name_changes: u64,
    bytes: u64,
    fired: bool,
}

impl Faults {
    /// Replaces the plan. The counts go on.
    pub fn set(&self, plan: Vec<Fault>) {
        self.state.lock().plan = plan;
    }

    /// Writes so far: the number of the next one.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Syncs of files so far: the number of the next one.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.state.lock().syncs
    }

    /// Syncs of the directory so far: the number of the next one.
    #[must_use]
    pub fn directory_syncs(&self) -> u64 {
        self.state.lock().directory_syncs
    }

    /// Removals and renames so far: the number of the next one.
    #[must_use]
    pub fn name_changes(&self) -> u64 {
        self.state.lock().name_changes
    }

    /// Bytes written so far, new files included: what [`Fault::Full`] counts.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Returns `true` once anything failed. A bit that reads wrong is no failure: only a checksum
    /// tells.
    #[must_use]
    pub fn fired(&self) -> bool {
        self.state.lock().fired
    }

    fn on_name_change(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let nth = state.name_changes;
        state.name_changes += 1;
        state.fail_if(&Fault::FailNameChange { nth }, "change of a name")
    }

    /// Counts a write of `bytes`; the error it ends in, with how much of it is written first.
    fn on_write(&self, bytes: usize) -> Option<(usize, io::Error)> {
        let mut state = self.state.lock();
        let number = state.writes;
        state.writes += 1;
        let failure = state.plan.iter().find_map(|fault| match *fault {
            Fault::FailWrite { nth } if nth == number => Some((0, injected("write"))),
            Fault::TearWrite { nth, bytes } if nth == number => Some((bytes, injected("write"))),
            Fault::FullAmid { from, bytes } if from <= number => Some((bytes, no_room())),
            _ => None,
        });
        state.fired |= failure.is_some();
        failure.or_else(|| state.take_space(bytes as u64).map(|error| (0, error)))
    }

    fn on_create(&self, bytes: u64) -> io::Result<()> {
        self.state.lock().take_space(bytes).map_or(Ok(()), Err)
    }

    fn on_sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let nth = state.syncs;
        state.syncs += 1;
        if state.plan.contains(&Fault::FullAtSync { nth }) {
            state.fired = true;
            return Err(no_room());
        }
        state.fail_if(&Fault::FailSync { nth }, "sync")
    }

    fn on_directory_sync(&self) -> io::Result<()> {
        let mut state = self.state.lock();
        let nth = state.directory_syncs;
        state.directory_syncs += 1;
        state.fail_if(&Fault::FailDirectorySync { nth }, "directory sync")
    }

    fn on_read(&self, name: &str, start: u64, buffer: &mut [u8]) {
        for fault in &self.state.lock().plan {
            if let Fault::FlipBit { file, offset, bit } = fault
                && file == name
                && let Some(at) = offset.checked_sub(start)
                && let Some(byte) = usize::try_from(at).ok().and_then(|at| buffer.get_mut(at))
            {
                *byte ^= 1 << (bit % 8);
            }
        }
    }
}

impl FaultState {
    fn take_space(&mut self, bytes: u64) -> Option<io::Error> {
        let with_it = self.bytes + bytes;
        let full = self
            .plan
            .iter()
            .any(|fault| matches!(fault, Fault::Full { bytes } if with_it > *bytes));
        self.fired |= full;
        if full {
            return Some(no_room());
        }
        self.bytes = with_it;
        None
    }

    fn fail_if(&mut self, fault: &Fault, what: &str) -> io::Result<()> {
        let fails = self.plan.contains(fault);
        self.fired |= fails;
        if fails { Err(injected(what)) } else { Ok(()) }
    }
}

fn no_room() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn injected(what: &str) -> io::Error {
    io::Error::other(format!("injected {what} failure"))
}

/// A disk over another that fails according to a plan. Cloning shares the plan and its counts.
#[derive(Clone, Debug)]
pub struct FaultyDisk<D> {
    inner: D,
    faults: Faults,
}

impl<D: Disk> FaultyDisk<D> {
    /// A disk that hands calls on to `inner` until one is due to fail.
    #[must_use]
    pub fn new(inner: D, plan: Vec<Fault>) -> Self {
        let faults = Faults::default();
        faults.set(plan);
        Self { inner, faults }
    }

    /// The handle to change the plan with while the disk is in use.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    fn wrap(&self, name: &str, inner: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let faults = self.faults.clone();
        Arc::new(FaultyFile { name: name.to_owned(), inner, faults, lying: Mutex::new(false) })
    }
}

impl<D: Disk> Disk for FaultyDisk<D> {
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        self.faults.on_create(bytes)?;
        let file = self.inner.create(name, bytes)?;
        Ok(self.wrap(name, file))
    }

    fn prepare(&mut self, name: &str, bytes: u64) {
        self.inner.prepare(name, bytes);
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(name, self.inner.open(name)?))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.faults.on_name_change()?;
        self.inner.rename(from, to)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.faults.on_name_change()?;
        self.inner.remove(name)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        self.faults.on_directory_sync()?;
        self.inner.sync_directory()
    }

    fn locate(&self, name: &str) -> String {
        self.inner.locate(name)
    }
}

struct FaultyFile {
    name: String,
    inner: Arc<dyn DiskFile>,
    faults: Faults,
    /// A sync failed: the pages are marked clean and will never be written.
    lying: Mutex<bool>,
}

impl DiskFile for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)?;
        self.faults.on_read(&self.name, offset, buffer);
        Ok(())
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.iter().map(|part| part.len()).sum();
        let Some((written, error)) = self.faults.on_write(bytes) else {
            return self.inner.write_at(offset, parts);
        };
        let whole = parts.concat();
        self.inner.write_at(offset, &[&whole[..written.min(whole.len())]])?;
        Err(error)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut lying = self.lying.lock();
        if let Err(error) = self.faults.on_sync() {
            *lying = true;
            return Err(error);
        }
        if *lying { Ok(()) } else { self.inner.sync_data() }
    }
}
