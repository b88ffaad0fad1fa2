use super::{RESERVE, Room, RoomConfig, RoomLevel, default_reserve, pause_after};
use crate::disk::{FaultyDisk, MemoryDisk, RoomyDisk};
use crate::{Entry, Fault, Faults, Journal, LogConfig, Owner, StorageError};
use quorate_crypto::mutants::{Mutant, set};
use quorate_types::Height;
use quorate_types::machine::{DecidedRecord, ReadItem, ReadRequest, Record, RecordKind};
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const PAUSE: Duration = Duration::from_millis(1);

/// A reserve of a page, and a threshold that every file system is beyond.
fn roomy(low_bytes: u64) -> (TempDir, Room) {
    let folder = tempfile::tempdir().expect("a folder");
    let config = RoomConfig { reserve_bytes: Some(4_096), low_bytes };
    let room = Room::open(folder.path(), &config).expect("opened");
    (folder, room)
}

/// Waits until a write waits for room, then makes some.
fn make_room_when_out(room: &Room, faults: &Faults) {
    while !room.is_out() {
        thread::sleep(PAUSE);
    }
    faults.set(Vec::new());
}

fn safety(text: &'static str) -> Entry {
    Entry::Record(Record { kind: RecordKind::Safety, bytes: text.into() })
}

/// A journal whose writers wait, over a disk in memory that fails as it is told to.
fn journal() -> (Journal, MemoryDisk, Faults, Room) {
    let (memory, room) = (MemoryDisk::new(), Room::unwatched());
    room.wait_from_now_on();
    let faulty = FaultyDisk::new(memory.clone(), Vec::new());
    let faults = faulty.faults();
    let disk = || Box::new(RoomyDisk::new(faulty.clone(), room.clone()));
    let config = LogConfig { segment_bytes: 4_096, ..LogConfig::default() };
    let opened = Journal::open(disk(), disk(), &Owner::nobody(), config, None);
    (opened.expect("opened").0, memory, faults, room)
}

/// What was acknowledged is there after a power cut.
fn expect_recovered(memory: &MemoryDisk, text: &str) {
    memory.crash(&mut || true);
    let disk = || Box::new(memory.clone());
    let config = LogConfig { segment_bytes: 4_096, ..LogConfig::default() };
    let opened = Journal::open(disk(), disk(), &Owner::nobody(), config, None);
    let (_, recovery) = opened.expect("opened");
    assert_eq!(recovery.safety.as_deref(), Some(text.as_bytes()));
}

#[test]
fn a_write_that_found_no_room_is_done_whole_when_there_is_some() {
    let (mut journal, memory, faults, room) = journal();
    journal.write(&safety("first")).expect("written");
    journal.commit().expect("committed");
    faults.set(vec![Fault::FullAmid { from: faults.writes(), bytes: 21 }]);
    journal.write(&safety("second")).expect("buffered");
    thread::scope(|scope| {
        scope.spawn(|| make_room_when_out(&room, &faults));
        journal.commit().expect("committed once there was room");
    });
    assert!(faults.fired() && !room.is_out());
    expect_recovered(&memory, "second");
}

#[test]
fn the_next_segment_waits_for_room_and_loses_nothing() {
    let (mut journal, memory, faults, room) = journal();
    faults.set(vec![Fault::Full { bytes: faults.bytes() + 3_000 }]);
    let record = |height| DecidedRecord { height: Height(height), bytes: vec![7; 500].into() };
    thread::scope(|scope| {
        scope.spawn(|| make_room_when_out(&room, &faults));
        for height in 1..20 {
            journal.write(&Entry::Decided(record(height))).expect("written, at last");
        }
        journal.write(&safety("last")).expect("written");
        journal.commit().expect("committed");
    });
    assert!(faults.fired());
    let items = (1..20).map(|height| ReadItem::Decided(Height(height))).collect();
    let read =
        journal.read(&ReadRequest { ticket: 0, items, bytes_max: usize::MAX }).expect("read");
    assert!(read.items.iter().all(|(_, bytes)| bytes.as_ref().is_some_and(|b| b[..] == [7; 500])));
    expect_recovered(&memory, "last");
}

#[test]
fn a_sync_that_found_no_room_is_final() {
    let (mut journal, _, faults, room) = journal();
    faults.set(vec![Fault::FullAtSync { nth: faults.syncs() }]);
    journal.write(&safety("lost")).expect("buffered");
    let error = journal.commit().expect_err("not durable");
    assert!(matches!(error, StorageError::Full { action: "sync", .. }), "{error}");
    assert_eq!(journal.commit(), Err(error), "and not tried again");
    assert!(!room.is_out());
}

#[test]
fn whoever_stops_does_not_wait() {
    let (mut journal, memory, faults, room) = journal();
    journal.write(&safety("kept")).expect("written");
    journal.commit().expect("committed");
    faults.set(vec![Fault::Full { bytes: 0 }]);
    journal.write(&safety("promised to nobody")).expect("buffered");
    thread::scope(|scope| {
        scope.spawn(|| {
            while !room.is_out() {
                thread::sleep(PAUSE);
            }
            room.stop();
        });
        let error = journal.commit().expect_err("there is no room");
        assert!(matches!(error, StorageError::Full { action: "write", .. }), "{error}");
    });
    assert!(room.gave_up());
    expect_recovered(&memory, "kept");
}

#[test]
fn the_reserve_goes_first_and_comes_back_with_room() {
    let (folder, room) = roomy(1);
    let reserve = folder.path().join(RESERVE);
    assert_eq!(fs::metadata(&reserve).expect("in its place").len(), 4_096);
    assert_eq!(room.look().level, RoomLevel::Enough);
    // Nobody waits yet, and the reserve makes room all the same.
    let mut full = true;
    let written = room.when_there_is(("file", 1), || {
        if std::mem::take(&mut full) {
            Err(std::io::ErrorKind::QuotaExceeded.into())
        } else {
            Ok(())
        }
    });
    written.map_err(|error: std::io::Error| error.kind()).expect("the reserve was enough");
    assert!(room.is_low() && !reserve.exists());
    assert_eq!(room.look().reserve_bytes, 4_096, "there is room for it");
    assert!(!room.is_low() && reserve.exists());
}

#[test]
fn little_room_is_low_until_there_is_more_than_that() {
    let (_folder, room) = roomy(u64::MAX / 2);
    let figures = room.look();
    assert_eq!((figures.level, figures.reserve_bytes), (RoomLevel::Low, 0), "{figures:?}");
    assert!(room.is_low() && !room.is_out());
}

#[test]
fn the_reserve_is_a_small_part_of_the_file_system() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = RoomConfig { reserve_bytes: None, low_bytes: 0 };
    let size = rustix::fs::statvfs(folder.path()).expect("known");
    let most = size.f_blocks * size.f_frsize / 64;
    assert_eq!(config.reserve_in(folder.path()), most.min(64 << 20));
    let none = RoomConfig { reserve_bytes: Some(0), ..config };
    Room::open(folder.path(), &none).expect("opened");
    assert!(!folder.path().join(RESERVE).exists());
}

/// The rule left out is noticed: what was acknowledged is not there.
#[test]
fn a_full_write_forgotten_is_noticed() {
    let lost = thread::spawn(|| {
        set(Some(Mutant::ForgetFullWrite));
        let (mut journal, memory, faults, _) = journal();
        faults.set(vec![Fault::FullAmid { from: faults.writes(), bytes: 0 }]);
        journal.write(&safety("acknowledged")).expect("buffered");
        journal.commit().expect("acknowledged");
        faults.set(Vec::new());
        set(None);
        expect_recovered(&memory, "acknowledged");
    });
    lost.join().expect_err("it is lost");
}

#[test]
fn the_reserve_and_the_pauses_are_bounded() {
    assert_eq!([64, 6_400, u64::MAX].map(default_reserve), [1, 100, 64 << 20]);
    let pauses = [0, 1, 4, 5, 99].map(|attempts| pause_after(attempts).as_millis());
    assert_eq!(pauses, [100, 200, 1_600, 1_600, 1_600]);
}

/// Attempts until a write that always fails so comes back with its error.
fn attempts(room: &Room, kind: io::ErrorKind) -> usize {
    let mut attempts = 0;
    let result: Result<(), io::Error> = room.when_there_is(("file", 1), || {
        attempts += 1;
        Err(kind.into())
    });
    assert_eq!(result.expect_err("it fails").kind(), kind);
    attempts
}

/// What fails of anything else is not tried again, and costs no reserve.
#[test]
fn only_want_of_room_is_waited_for() {
    let (folder, room) = roomy(1);
    room.wait_from_now_on();
    assert_eq!(attempts(&room, io::ErrorKind::BrokenPipe), 1);
    assert!(folder.path().join(RESERVE).exists() && !room.is_low() && !room.gave_up());
    room.stop();
    assert!(!room.gave_up(), "nothing failed of it");
    assert_eq!(attempts(&room, io::ErrorKind::StorageFull), 2, "once more with the reserve's room");
    assert!(room.gave_up() && room.is_low());
    assert_eq!(attempts(&room, io::ErrorKind::StorageFull), 1, "there is no reserve any more");
}

#[test]
fn without_a_reserve_there_is_none_to_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = RoomConfig { reserve_bytes: Some(0), low_bytes: 1 };
    let room = Room::open(folder.path(), &config).expect("opened");
    assert_eq!(room.look().level, RoomLevel::Enough, "it lacks nothing");
    assert_eq!(attempts(&room, io::ErrorKind::StorageFull), 1);
    assert!(!room.is_low());
    let scarce = RoomConfig { low_bytes: u64::MAX / 2, ..config };
    let room = Room::open(folder.path(), &scarce).expect("opened");
    assert_eq!(room.look().level, RoomLevel::Low);
}

/// A reserve that is in its place is taken over; one of another size is not worth anything.
#[test]
fn the_reserve_of_an_earlier_run_is_found() {
    let (folder, room) = roomy(1);
    drop(room);
    let reserve = folder.path().join(RESERVE);
    let scarce = |bytes| {
        let config = RoomConfig { reserve_bytes: Some(bytes), low_bytes: u64::MAX / 2 };
        Room::open(folder.path(), &config).expect("opened").look().reserve_bytes
    };
    assert_eq!(scarce(4_096), 4_096);
    assert!(reserve.exists());
    assert_eq!(scarce(8_192), 0, "there is no room to write it anew");
    assert!(!reserve.exists(), "what it took is free");
}

/// Room that is hardly more than what is low does not put the reserve back: it would come and go.
#[test]
fn a_quarter_more_than_low_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = Room::open(folder.path(), &RoomConfig { reserve_bytes: Some(0), low_bytes: 0 });
    let low_bytes = free.expect("opened").free_bytes() / 10 * 9;
    let config = RoomConfig { reserve_bytes: Some(4_096), low_bytes };
    let figures = Room::open(folder.path(), &config).expect("opened").look();
    assert_eq!((figures.level, figures.reserve_bytes), (RoomLevel::Low, 0), "it lacks the reserve");
}

/// Where there is visibly too little in the place, it is not tried again before that changes, or
/// waiting ends.
#[test]
fn what_visibly_has_no_room_is_not_tried_again() {
    let (folder, room) = roomy(1);
    room.wait_from_now_on();
    assert!(room.rest(PAUSE), "it waits");
    let place = folder.path().join("file").display().to_string();
    let mut attempts = 0;
    let failed = thread::scope(|scope| {
        scope.spawn(|| {
            while !room.is_out() {
                thread::sleep(PAUSE);
            }
            thread::sleep(4 * pause_after(1));
            room.stop();
        });
        room.when_there_is((&place, u64::MAX), || {
            attempts += 1;
            Err::<(), io::Error>(io::ErrorKind::StorageFull.into())
        })
    });
    assert_eq!(failed.expect_err("stopped").kind(), io::ErrorKind::StorageFull);
    assert_eq!(attempts, 3, "at first, with the reserve's room, and as waiting ended");
    assert!(!room.rest(PAUSE), "nobody waits any more");
}
