//! The power fails.

use super::{Map, SMALL, changed, content, open, some_changes};
use crate::disk::{Disk, DiskFile, MemoryDisk, UnsyncedWrite};
use crate::store::Changes;
use crate::store::value_log::{Sizes, Snapshot, ValueLog};
use crate::{Owner, StorageError};
use parking_lot::Mutex;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A disk as it was when something had been done to it.
struct Moment {
    disk: MemoryDisk,
    /// Batches that were told durable then.
    told: usize,
}

#[derive(Default)]
struct Tape {
    moments: Vec<Moment>,
    told: usize,
}

/// A disk that keeps all its moments.
#[derive(Clone)]
struct Watched {
    disk: MemoryDisk,
    tape: Arc<Mutex<Tape>>,
}

struct WatchedFile {
    file: Arc<dyn DiskFile>,
    disk: Watched,
}

impl Watched {
    fn new(disk: MemoryDisk) -> Self {
        Self { disk, tape: Arc::default() }
    }

    fn keep<T>(&self, done: T) -> T {
        let mut tape = self.tape.lock();
        let told = tape.told;
        tape.moments.push(Moment { disk: self.disk.fork(), told });
        done
    }

    fn tell(&self) {
        self.tape.lock().told += 1;
        self.keep(());
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { file, disk: self.clone() })
    }
}

impl Disk for Watched {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&mut self, name: &str, bytes: u64) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.create(name, bytes)?;
        self.keep(());
        Ok(self.wrap(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(self.disk.open(name)?))
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let done = self.disk.rename(from, to);
        self.keep(done)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let done = self.disk.remove(name);
        self.keep(done)
    }

    fn sync_directory(&mut self) -> io::Result<()> {
        let done = self.disk.sync_directory();
        self.keep(done)
    }

    fn locate(&self, name: &str) -> String {
        self.disk.locate(name)
    }
}

impl DiskFile for WatchedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let done = self.file.write_at(offset, parts);
        self.disk.keep(done)
    }

    fn sync_data(&self) -> io::Result<()> {
        let done = self.file.sync_data();
        self.disk.keep(done)
    }
}

/// The moments of a log's life, and its content after each batch. Batches span segments, old ones
/// are cleaned and removed, and once everything is replaced, after a try that came to nothing.
fn live(disk: MemoryDisk, maps: &mut Vec<Map>, batches: std::ops::Range<u32>) -> Vec<Moment> {
    let watched = Watched::new(disk);
    let log = open(watched.clone()).expect("opened");
    for number in batches {
        let mut map = maps.last().expect("the one before").clone();
        if number == 15 {
            let failed = |number: u32| match number {
                200 => Err(StorageError::StateDamaged { entry: "one" }),
                _ => Ok((number.to_be_bytes().to_vec(), vec![1; 300])),
            };
            log.replace(&mut (0..=200).map(failed)).expect_err("one entry is none");
        }
        if number == 16 {
            let entry = |number: u32| (number.to_be_bytes().to_vec(), vec![number as u8; 90]);
            map = (60..140).map(entry).collect();
            maps.push(map.clone());
            log.replace(&mut map.into_iter().map(Ok)).expect("replaced");
        } else {
            let changes = changed(&mut map, &some_changes(number));
            maps.push(map);
            log.write(&changes).expect("written");
        }
        watched.tell();
    }
    drop(log);
    let tape = std::mem::take(&mut *watched.tape.lock());
    tape.moments
}

/// Parts of each write since the last sync that a power cut leaves, by its number.
type Survivors = fn(usize, &UnsyncedWrite) -> Vec<Range<usize>>;

const SURVIVORS: [Survivors; 7] = [
    |_, _| Vec::new(),
    |_, write| part(0, write.bytes),
    |number, write| whole(number % 2 == 0, write),
    |number, write| whole(number % 3 == 1, write),
    // Torn: its first half, its last, and a byte in its midst lost.
    |_, write| part(0, write.bytes / 2),
    |_, write| part(write.bytes / 2, write.bytes),
    |_, write| vec![0..write.bytes / 3, (write.bytes / 3 + 1).min(write.bytes)..write.bytes],
];

fn whole(survives: bool, write: &UnsyncedWrite) -> Vec<Range<usize>> {
    if survives { part(0, write.bytes) } else { Vec::new() }
}

fn part(from: usize, to: usize) -> Vec<Range<usize>> {
    std::iter::once(from..to).collect()
}

/// What a power cut leaves of a disk; names made or removed and not synced survive or not.
fn cut(disk: &MemoryDisk, survivors: Survivors, names_survive: bool) -> MemoryDisk {
    let mut left = disk.fork();
    if names_survive {
        left.sync_directory().expect("in memory");
    }
    let mut number = 0;
    left.crash_with(&mut |write| {
        number += 1;
        survivors(number, write)
    });
    left
}

/// ★ Wherever the power fails, and whatever was written and not synced then: the log opens as one
/// of its batches left it, and none that was said to be durable is lost. It goes on from there.
#[test]
fn a_power_cut_leaves_a_batch() {
    let mut maps = vec![Map::new()];
    let moments = live(MemoryDisk::new(), &mut maps, 0..24);
    let (mut cuts, mut segments) = (0, 0);
    for (at, moment) in moments.iter().enumerate() {
        for survivors in SURVIVORS {
            for names_survive in [false, true] {
                let left = cut(&moment.disk, survivors, names_survive);
                let found = open(left.clone()).map(|log| content(&log.snapshot()));
                let found = found.expect("opened").expect("read");
                let is_one = maps[moment.told..].iter().take(2).any(|map| *map == found);
                assert!(is_one, "moment {at}: not batch {}, nor the next", moment.told);
                cuts += 1;
            }
        }
        segments = segments.max(moment.disk.list().expect("listed").len());
    }
    assert!(cuts > 3_000 && segments > 5, "{cuts} power cuts, {segments} segments");
}

/// ★ What a batch that was cut short left behind is not taken for a part of those that come after
/// it, when they are cut short too, or while it is removed.
#[test]
fn a_second_power_cut_leaves_a_batch() {
    let mut maps = vec![Map::new()];
    let moments = live(MemoryDisk::new(), &mut maps, 8..18);
    for moment in moments.iter().step_by(7) {
        for (survivors, again) in SURVIVORS.into_iter().zip(SURVIVORS.into_iter().rev()) {
            let left = cut(&moment.disk, survivors, true);
            let found = content(&open(left.fork()).expect("opened").snapshot()).expect("read");
            let mut maps = vec![found];
            for (at, second) in live(left, &mut maps, 50..51).iter().enumerate() {
                let left = cut(&second.disk, again, at % 2 == 0);
                let found = content(&open(left).expect("opened").snapshot()).expect("read");
                assert!(maps[second.told..].iter().take(2).any(|map| *map == found));
            }
        }
    }
}

/// ★ What is read after a process died, whatever it had not synced, is read after a power cut too.
#[test]
fn what_was_recovered_survives_the_next_power_cut() {
    let mut maps = vec![Map::new()];
    for (at, moment) in live(MemoryDisk::new(), &mut maps, 0..24).iter().enumerate() {
        let left = moment.disk.fork();
        let found = content(&open(left.clone()).expect("opened").snapshot()).expect("read");
        let left = cut(&left, SURVIVORS[0], false);
        let again = content(&open(left).expect("opened").snapshot()).expect("read");
        assert_eq!(again, found, "moment {at}");
    }
}

#[test]
fn a_batch_that_is_only_in_memory_is_noticed() {
    assert_noticed(Mutant::TrustPageCache, what_was_recovered_survives_the_next_power_cut);
}

/// Changes of twelve keys, four in a frame, with values of one length: batches of them have frames
/// of one length.
fn twelve(values: [u8; 3]) -> Changes {
    let put = |key: u8| ([key][..].into(), Some([values[usize::from(key) / 4]; 100][..].into()));
    (0..12).map(put).collect()
}

/// A log of twelve keys, each with a value of ones, after two batches that a power cut tore: the
/// values of their frames, and of the nine parts in which they were written those that it left.
fn torn_twice(batches: [([u8; 3], Survivors); 2]) -> Arc<Snapshot> {
    let sizes = Sizes { segment_min: 20_000, ..SMALL };
    let open = |disk: &dyn Fn() -> Box<dyn Disk>| {
        ValueLog::open(disk(), &Owner::nobody(), sizes).expect("opened")
    };
    let mut disk = MemoryDisk::new();
    open(&|| Box::new(disk.clone())).write(&twelve([1; 3])).expect("written");
    for (values, survivors) in batches {
        let watched = Watched::new(disk);
        open(&|| Box::new(watched.clone())).write(&twelve(values)).expect("written");
        let moments = std::mem::take(&mut watched.tape.lock().moments);
        let unsynced = &moments[moments.len() - 2].disk;
        assert_eq!(unsynced.unsynced().len(), 3 * 3, "three frames, in three parts each");
        disk = cut(unsynced, survivors, true);
    }
    open(&|| Box::new(disk.clone())).snapshot()
}

/// ★ Frames that a torn batch left stand where those of the next would, with its number and theirs:
/// they are no part of it.
#[test]
fn what_a_torn_batch_left_is_no_part_of_the_next() {
    let cases: [[([u8; 3], Survivors); 2]; 2] = [
        // Of the first all but its commit, of the second its first frame and its commit.
        [
            ([2; 3], |number, write| whole(number <= 6, write)),
            ([3; 3], |number, write| whole(number <= 3 || number > 6, write)),
        ],
        // Of the first its commit and the frame before, of the second the frames before its commit,
        // of which the later has the same entries.
        [
            ([2, 2, 2], |number, write| whole(number > 3, write)),
            ([3, 2, 3], |number, write| whole(number <= 6, write)),
        ],
    ];
    for case in cases {
        let snapshot = torn_twice(case);
        for key in 0..12 {
            assert_eq!(snapshot.get(&[key]), Ok(Some(vec![1; 100])), "{key}");
        }
    }
}

#[test]
fn frames_of_a_torn_batch_that_are_taken_are_noticed() {
    assert_noticed(Mutant::KeepTornTail, what_a_torn_batch_left_is_no_part_of_the_next);
}

#[test]
fn a_batch_committed_before_its_files_is_noticed() {
    assert_noticed(Mutant::CommitBeforeFiles, a_power_cut_leaves_a_batch);
}

#[test]
fn frames_without_a_commit_are_noticed() {
    assert_noticed(Mutant::TakeUncommitted, a_power_cut_leaves_a_batch);
}

#[test]
fn a_segment_removed_too_early_is_noticed() {
    assert_noticed(Mutant::RemoveBeforeDurable, a_power_cut_leaves_a_batch);
}

#[test]
fn a_segment_read_again_is_noticed() {
    assert_noticed(Mutant::ReadGivenUp, a_power_cut_leaves_a_batch);
}
