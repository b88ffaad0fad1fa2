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
