use super::{Disk, DiskFile, Fault, FaultyDisk, MemoryDisk, RealDisk, RoomyDisk};
use crate::{Room, StorageError};
use std::io;
use std::sync::Arc;

fn read(file: &Arc<dyn DiskFile>, offset: u64, bytes: usize) -> Vec<u8> {
    let mut buffer = vec![0xee; bytes];
    file.read_at(offset, &mut buffer).expect("inside the file");
    buffer
}

/// A file keeps its length and starts as zeroes, on both disks.
fn files_keep_their_length_and_start_as_zeroes(disk: &mut dyn Disk) {
    let file = disk.create("b", 1_000).expect("made");
    disk.create("a", 10).expect("made");
    assert_eq!(disk.list().expect("listed"), ["a", "b"]);
    assert_eq!(file.length().expect("known"), 1_000);
    assert_eq!(read(&file, 0, 1_000), vec![0; 1_000]);

    file.write_at(600, &[b"one", b"", b"two"]).expect("written");
    file.sync_data().expect("synced");
    disk.sync_directory().expect("synced");
    let again = disk.open("b").expect("opened");
    assert_eq!(read(&again, 599, 8), b"\0onetwo\0");
    let mut past_the_end = [0; 2];
    let error = again.read_at(999, &mut past_the_end).expect_err("too short");
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);

    disk.write("c", b"whole").expect("written");
    let written = disk.open("c").expect("there");
    assert_eq!((written.length().expect("known"), read(&written, 0, 5)), (5, b"whole".to_vec()));
    disk.rename("c", "d").expect("renamed");
    assert_eq!(read(&disk.open("d").expect("there"), 0, 5), b"whole");
    assert_eq!(disk.list().expect("listed"), ["a", "b", "d"]);
    disk.remove("d").expect("removed");
    assert!(disk.locate("b").ends_with('b'), "{}", disk.locate("b"));

    disk.create("b", 20).expect("replaced");
    assert_eq!(read(&disk.open("b").expect("opened"), 0, 20), vec![0; 20]);
    disk.remove("b").expect("removed");
    assert_eq!(disk.list().expect("listed"), ["a"]);
    assert_eq!(disk.open("b").err().expect("gone").kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_memory_disk_is_a_disk() {
    files_keep_their_length_and_start_as_zeroes(&mut MemoryDisk::new());
}

#[test]
fn a_real_disk_is_a_disk() {
    let directory = tempfile::tempdir().expect("made");
    let mut disk = RealDisk::open(directory.path()).expect("opened");
    files_keep_their_length_and_start_as_zeroes(&mut disk);
}

/// More parts than one call takes, empty ones among them.
#[test]
fn a_real_disk_writes_any_number_of_parts() {
    let directory = tempfile::tempdir().expect("made");
    let mut disk = RealDisk::open(directory.path()).expect("opened");
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(5_000).collect();
    let parts: Vec<&[u8]> = bytes.chunks(2).flat_map(|part| [part, &[]]).collect();
    let file = disk.create("a", 5_002).expect("made");
    file.write_at(1, &parts).expect("written");
    file.write_at(0, &[]).expect("nothing to write");
    assert_eq!(read(&file, 0, 5_002), [&[0], &bytes[..], &[0]].concat());
}

#[test]
fn a_disk_over_another_is_a_disk() {
    let memory = MemoryDisk::new();
    let mut faulty = FaultyDisk::new(memory.clone(), Vec::new());
    files_keep_their_length_and_start_as_zeroes(&mut faulty);
    assert_eq!(faulty.list().expect("listed"), memory.list().expect("listed"));
    let mut roomy = RoomyDisk::new(MemoryDisk::new(), Room::unwatched());
    files_keep_their_length_and_start_as_zeroes(&mut roomy);
    let place = "memory:file".to_owned();
    assert_eq!([faulty.locate("file"), roomy.locate("file")], [place.clone(), place]);
}

#[test]
fn a_real_disk_says_where_a_file_is() {
    let directory = tempfile::tempdir().expect("made");
    let disk = RealDisk::open(directory.path()).expect("opened");
    assert_eq!(disk.locate("file"), directory.path().join("file").display().to_string());
}

/// The prepared file itself is handed out, and under its own name and size alone.
#[test]
fn what_was_prepared_is_not_made_again() {
    let directory = tempfile::tempdir().expect("made");
    let mut disk = RealDisk::open(directory.path()).expect("opened");
    let prepare = |disk: &mut RealDisk, name: &str| {
        disk.prepare(name, 100);
        let path = directory.path().join(name);
        while std::fs::metadata(&path).map_or(0, |file| file.len()) < 100 {
            std::thread::yield_now();
        }
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("there");
        std::os::unix::fs::FileExt::write_all_at(&file, b"mark", 0).expect("written");
    };
    prepare(&mut disk, "next");
    assert_eq!(read(&disk.create("next", 100).expect("made"), 0, 4), b"mark");
    prepare(&mut disk, "after");
    assert_eq!(read(&disk.create("other", 100).expect("made"), 0, 4), [0; 4]);
    assert_eq!(disk.list().expect("listed"), ["after", "next", "other"]);

    drop(disk);
    let mut sparse = RealDisk::open(directory.path()).expect("opened").without_zeroing();
    sparse.prepare("never", 100);
    assert_eq!(sparse.create("sparse", 100).expect("made").length().expect("known"), 100);
    assert_eq!(sparse.list().expect("listed"), ["after", "next", "other", "sparse"]);
}

#[test]
fn a_prepared_file_is_the_one_created() {
    let directory = tempfile::tempdir().expect("made");
    let mut disk = RealDisk::open(directory.path()).expect("opened");
    disk.prepare("next", 3_000_000);
    disk.prepare("ignored while another is being prepared", 1);
    let file = disk.create("next", 3_000_000).expect("made");
    assert_eq!(read(&file, 2_999_990, 10), [0; 10]);
    disk.prepare("after", 100);
    let other_size = disk.create("after", 200).expect("made");
    assert_eq!(other_size.length().expect("known"), 200);
    assert_eq!(disk.list().expect("listed"), ["after", "next"]);
}

#[test]
fn two_validators_cannot_share_a_directory() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("made by the first");
    let first = RealDisk::open(&path).expect("opened");
    let refused = RealDisk::open(&path).expect_err("locked");
    assert_eq!(refused, StorageError::InUse { directory: path.display().to_string() });
    assert!(refused.to_string().contains("is in use by another process"), "{refused}");
    drop(first);
    RealDisk::open(&path).expect("free again");
}

#[test]
fn a_crash_takes_back_what_was_not_synced() {
    let mut disk = MemoryDisk::new();
    let file = disk.create("kept", 100).expect("made");
    file.write_at(0, &[b"synced"]).expect("written");
    file.sync_data().expect("synced");
    disk.sync_directory().expect("synced");
    file.write_at(3, &[b"UNSYNCED"]).expect("written");
    disk.create("new", 10).expect("made").sync_data().expect("synced, but not its name");
    assert!(disk.has_unsynced());

    disk.crash(&mut || true);
    assert!(!disk.has_unsynced());
    assert_eq!(disk.list().expect("listed"), ["kept"], "a name that was not synced is gone");
    assert_eq!(read(&disk.open("kept").expect("there"), 0, 12), b"synced\0\0\0\0\0\0");

    disk.remove("kept").expect("removed");
    disk.crash(&mut || true);
    assert_eq!(disk.list().expect("listed"), ["kept"], "a removal that was not synced is undone");
}

#[test]
fn a_crash_tears_between_sectors_or_anywhere() {
    let mut disk = MemoryDisk::new();
    let file = disk.create("file", 2_000).expect("made");
    disk.sync_directory().expect("synced");
    file.write_at(500, &[&[7; 1_000]]).expect("written");
    let mut asked = 0;
    disk.crash(&mut || {
        asked += 1;
        asked == 2
    });
    assert_eq!(asked, 3, "bytes 500 to 1500 lie in three sectors");
    let bytes = read(&file, 0, 2_000);
    assert_eq!(bytes[500..512], [7; 12]);
    assert_eq!(bytes[512..1_024], [0; 512]);
    assert_eq!(bytes[1_024..1_500], [7; 476]);

    file.write_at(0, &[&[9; 10]]).expect("written");
    let mut seen = Vec::new();
    disk.crash_with(&mut |write| {
        seen.push((write.file.clone(), write.offset, write.bytes));
        std::iter::once(0..4).collect()
    });
    assert_eq!(seen, [("file".to_owned(), 0, 10)]);
    assert_eq!(read(&file, 0, 10), [9, 9, 9, 9, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn faults_come_when_they_were_planned() {
    let memory = MemoryDisk::new();
    let mut disk = FaultyDisk::new(
        memory.clone(),
        vec![
            Fault::FailWrite { nth: 1 },
            Fault::TearWrite { nth: 2, bytes: 2 },
            Fault::FailDirectorySync { nth: 1 },
            Fault::FlipBit { file: "file".into(), offset: 1, bit: 0 },
        ],
    );
    let faults = disk.faults();
    let file = disk.create("file", 100).expect("made");
    disk.sync_directory().expect("the first one works");
    file.write_at(0, &[b"aaaa"]).expect("the first one works");
    assert_eq!(read(&file, 0, 4), b"a`aa", "a bit reads wrong");
    file.write_at(0, &[b"bbbb"]).expect_err("planned");
    file.write_at(0, &[b"cc", b"cc"]).expect_err("planned");
    disk.sync_directory().expect_err("planned");
    assert_eq!((faults.writes(), faults.syncs(), faults.directory_syncs()), (3, 0, 2));

    faults.set(vec![Fault::Full { bytes: 107 }]);
    assert_eq!(read(&file, 0, 4), b"ccaa", "torn after two bytes");
    let error = file.write_at(0, &[b"more"]).expect_err("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn after_a_failed_sync_success_means_nothing() {
    let memory = MemoryDisk::new();
    let mut disk = FaultyDisk::new(memory.clone(), vec![Fault::FailSync { nth: 0 }]);
    let file = disk.create("file", 100).expect("made");
    disk.sync_directory().expect("synced");
    file.write_at(0, &[b"lost"]).expect("written");
    file.sync_data().expect_err("planned");
    file.sync_data().expect("reported, as the operating system does");
    memory.crash(&mut || true);
    assert_eq!(read(&memory.open("file").expect("there"), 0, 4), [0; 4]);
}

#[test]
fn a_fork_has_the_same_unsynced_writes_and_its_own_fate() {
    let mut disk = MemoryDisk::new();
    let file = disk.create("a", 10).expect("made");
    disk.sync_directory().expect("synced");
    file.write_at(0, &[b"kept"]).expect("written");
    file.sync_data().expect("synced");
    file.write_at(4, &[b"lost"]).expect("written");
    disk.create("b", 10).expect("made");

    let fork = disk.fork();
    assert_eq!(fork.unsynced(), disk.unsynced());
    assert_eq!(fork.unsynced().len(), 1);
    fork.crash(&mut || true);
    assert_eq!(fork.list().expect("listed"), ["a"]);
    assert_eq!(read(&fork.open("a").expect("opened"), 0, 8), b"kept\0\0\0\0");

    assert_eq!(disk.list().expect("listed"), ["a", "b"]);
    assert_eq!(read(&disk.open("a").expect("opened"), 0, 8), b"keptlost");
    // The file under its durable name is the one under its present name, in a fork too.
    let again = disk.fork();
    again.open("a").expect("opened").sync_data().expect("synced");
    again.crash(&mut || true);
    assert_eq!(read(&again.open("a").expect("opened"), 0, 8), b"keptlost");
}

/// The plan's counts are those of what happened.
#[test]
fn a_faulty_disk_counts_what_it_did() {
    let memory = MemoryDisk::new();
    let mut disk = FaultyDisk::new(memory.clone(), vec![Fault::FullAmid { from: 2, bytes: 1 }]);
    let faults = disk.faults();
    let file = disk.create("file", 100).expect("made");
    file.write_at(0, &[b"one"]).expect("written");
    file.write_at(3, &[b"two"]).expect("written, before the plan says so");
    assert_eq!((faults.bytes(), faults.fired()), (106, false));
    file.write_at(6, &[b"three"]).expect_err("planned");
    assert_eq!((faults.bytes(), faults.fired()), (106, true), "what failed does not count");
    assert_eq!(read(&file, 0, 8), b"onetwot\0");

    // Any bit may read wrong.
    faults.set(vec![Fault::FlipBit { file: "file".into(), offset: 3, bit: 5 }]);
    assert_eq!(read(&file, 0, 6), b"oneTwo");
    memory.flip("file", 3, 5);
    faults.set(Vec::new());
    assert_eq!(read(&file, 0, 6), b"oneTwo");
}
