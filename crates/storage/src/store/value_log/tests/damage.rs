//! Bytes that are not what they were.

use super::{Map, changed, content, open, some_changes};
use crate::StorageError;
use crate::disk::{Disk, MemoryDisk};
use quorate_crypto::mutants::{Mutant, assert_noticed};

/// A log of some batches, and its content after the last but one and the last.
fn written() -> (MemoryDisk, [Map; 2]) {
    let disk = MemoryDisk::new();
    let log = open(disk.clone()).expect("opened");
    let (mut before, mut map) = (Map::new(), Map::new());
    for number in 0..12 {
        before.clone_from(&map);
        log.write(&changed(&mut map, &some_changes(number))).expect("written");
    }
    (disk, [before, map])
}

fn read(disk: MemoryDisk) -> Result<Map, StorageError> {
    Ok(content(&open(disk)?.snapshot())?)
}

/// ★ Whatever byte decays: the log shows what it had, or says that it is damaged. What the last
/// batch changed may be missing, whole: a power cut leaves the same.
#[test]
fn a_byte_that_decays_is_told_or_does_no_harm() {
    let (disk, [before, map]) = written();
    let (mut told, mut harmless, mut set_back) = (0, 0, 0);
    for (phase, name) in (0..).zip(disk.list().expect("listed")) {
        let length = disk.open(&name).expect("opened").length().expect("known");
        // Every fifth, another in each file: what all files have is harmed everywhere.
        for offset in (phase % 5..length).step_by(5) {
            let damaged = disk.copy();
            damaged.flip(&name, offset, (offset % 8) as u8);
            match read(damaged) {
                Ok(found) if found == map => harmless += 1,
                Ok(found) if found == before => set_back += 1,
                Ok(_) => panic!("{name} at {offset}: something else is shown"),
                Err(error) if error.is_damaged_state() => told += 1,
                Err(error) => panic!("{name} at {offset}: {error}"),
            }
        }
    }
    assert!(told > 500 && harmless > 500, "{told} told, {harmless} harmless");
    // No more than the bytes of one batch: 40 entries with frames around them.
    assert!(set_back < 1_000, "{set_back} set back");
}

#[test]
fn a_value_that_is_believed_is_noticed() {
    assert_noticed(Mutant::TrustValues, a_byte_that_decays_is_told_or_does_no_harm);
}

/// A file that is gone is told, unless it says nothing that others do not.
#[test]
fn a_file_that_is_missing_is_told_or_does_no_harm() {
    let (disk, [before, map]) = written();
    for name in disk.list().expect("listed") {
        let mut damaged = disk.copy();
        damaged.remove(&name).expect("removed");
        match read(damaged) {
            Ok(found) => assert!(found == map || found == before, "without {name}"),
            Err(error) => assert!(error.is_damaged_state(), "without {name}: {error}"),
        }
    }
}
