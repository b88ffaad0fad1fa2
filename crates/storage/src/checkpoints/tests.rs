use super::*;
use crate::{Fault, FaultyDisk, MemoryDisk, Owner};

fn write(checkpoints: &mut Checkpoints, sequence: u64) -> Result<(), StorageError> {
    checkpoints.write(sequence, |writer| {
        (0..sequence)
            .try_for_each(|number| writer.push(&[u8::try_from(number % 251).expect("small"); 64]))
    })
}

fn content(checkpoints: &Checkpoints) -> Vec<u8> {
    let mut all = Vec::new();
    checkpoints
        .read(|part| {
            all.extend_from_slice(part);
            Ok(())
        })
        .expect("reads");
    all
}

#[test]
fn the_newest_complete_one_is_found_and_no_other_stays() {
    let disk = MemoryDisk::new();
    let mut checkpoints =
        Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens");
    assert_eq!((checkpoints.sequence(), content(&checkpoints).len()), (0, 0));
    for sequence in [10, 300_000] {
        write(&mut checkpoints, sequence).expect("writes");
    }
    disk.crash(&mut || true);
    let again = Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens");
    assert_eq!(again.sequence(), 300_000);
    assert_eq!(content(&again).len(), 300_000 * 64);
    let names = disk.list().expect("lists");
    assert_eq!(names.len(), 4, "three parts and a manifest: {names:?}");
}

/// Every step of writing one fails once, with a crash: the one before stays whole, or the new one
/// is there.
#[test]
fn a_crash_while_writing_leaves_a_whole_one() {
    let steps = |nth| {
        [
            Fault::FailWrite { nth },
            Fault::FailSync { nth },
            Fault::FailDirectorySync { nth },
            Fault::FailNameChange { nth },
        ]
    };
    let mut fired = 0;
    for fault in (0..6).flat_map(steps) {
        let disk = MemoryDisk::new();
        write(&mut Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens"), 10)
            .expect("writes");
        let faulty = FaultyDisk::new(disk.clone(), vec![fault.clone()]);
        let faults = faulty.faults();
        let outcome = Checkpoints::open(Box::new(faulty), &Owner::nobody())
            .and_then(|mut checkpoints| write(&mut checkpoints, 20));
        fired += usize::from(faults.fired());
        disk.crash(&mut || true);
        let again = Checkpoints::open(Box::new(disk), &Owner::nobody()).expect("opens");
        let sequence = again.sequence();
        assert!(sequence == 20 || sequence == 10 && outcome.is_err(), "{fault:?}: {sequence}");
        assert_eq!(content(&again).len() as u64, sequence * 64, "{fault:?}");
    }
    assert!(fired >= 6, "{fired} faults had an effect");
}

#[test]
fn a_changed_part_is_refused() {
    let disk = MemoryDisk::new();
    let mut checkpoints =
        Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens");
    write(&mut checkpoints, 10).expect("writes");
    disk.flip(&part_name(10, 0), 40, 2);
    let read = checkpoints.read(|_| Ok(()));
    assert!(matches!(read, Err(StorageError::Corrupt { .. })), "{read:?}");
}

#[test]
fn somebody_else_s_checkpoint_is_refused_and_left() {
    let disk = MemoryDisk::new();
    let open = |owner: &Owner| Checkpoints::open(Box::new(disk.clone()), owner);
    write(&mut open(&Owner::nobody()).expect("opens"), 10).expect("writes");
    let files = disk.list().expect("lists");
    let somebody = Owner { role: crate::Role::Shard(1), ..Owner::nobody() };
    let refused = open(&somebody).expect_err("refused");
    assert!(matches!(refused, StorageError::Foreign { .. }), "{refused}");
    assert_eq!(disk.list().expect("lists"), files);

    // Before owners were written down a manifest had its file for itself.
    let manifest = Manifest { sequence: 10, parts: 1 };
    disk.clone().write(&manifest.name(), &manifest.encode()).expect("writes");
    assert_eq!(open(&somebody).expect("opens").sequence(), 10);
}

/// Parts are filled as far as whole items go, and counted.
#[test]
fn parts_are_filled_with_whole_items() {
    let disk = MemoryDisk::new();
    let mut checkpoints =
        Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens");
    assert_eq!(checkpoints.bytes(), 0);
    assert_eq!(format!("{checkpoints:?}"), "Checkpoints(up to 0)");
    let item = vec![7; PART_BYTES / 4];
    checkpoints.write(9, |writer| (0..9).try_for_each(|_| writer.push(&item))).expect("writes");
    let length = |number| disk.open(&part_name(9, number)).expect("there").length().expect("known");
    let most = (HASH_BYTES + PART_BYTES) as u64;
    assert_eq!([0, 1].map(length), [most; 2]);
    assert_eq!(length(2), (HASH_BYTES + PART_BYTES / 4) as u64);
    assert_eq!(checkpoints.bytes(), 3 * PART_BYTES as u64);
    assert_eq!(format!("{checkpoints:?}"), "Checkpoints(up to 9)");
}

/// What a crash left of one that had no name yet goes; what is not a checkpoint's stays.
#[test]
fn remains_are_removed_and_other_files_are_not() {
    let mut disk = MemoryDisk::new();
    for name in [UNNAMED, "part-00000000000000000003-000000", "notes"] {
        disk.write(name, b"remains").expect("written");
    }
    Checkpoints::open(Box::new(disk.clone()), &Owner::nobody()).expect("opens");
    assert_eq!(disk.list().expect("lists"), ["notes"]);
}

/// A manifest under another's name is none.
#[test]
fn a_manifest_stands_under_its_own_name() {
    let mut disk = MemoryDisk::new();
    let manifest = Manifest { sequence: 10, parts: 0 };
    let name = Manifest { sequence: 11, parts: 0 }.name();
    disk.write(&name, &manifest.encode()).expect("written");
    let opened = Checkpoints::open(Box::new(disk), &Owner::nobody());
    assert!(matches!(opened, Err(StorageError::Corrupt { .. })), "{opened:?}");
}
