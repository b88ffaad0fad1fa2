use super::*;
use crate::{MemoryDisk, Owner};

const SEGMENT: u64 = 4 * 1024;

fn config(retention_bytes: u64) -> LogConfig {
    LogConfig { segment_bytes: SEGMENT, retention_bytes, ..LogConfig::default() }
}

fn entry(number: u64) -> Vec<u8> {
    vec![
        u8::try_from(number % 251).expect("small");
        40 + usize::try_from(number % 7).expect("small")
    ]
}

fn open(disk: &MemoryDisk, retention: u64) -> (Archive, Vec<u64>) {
    let mut seen = Vec::new();
    let archive = Archive::open(
        Box::new(disk.clone()),
        &Owner::nobody(),
        config(retention),
        |number, bytes| {
            assert_eq!(bytes, entry(number), "entry {number}");
            seen.push(number);
            Ok(())
        },
    );
    (archive.expect("opens"), seen)
}

fn fill(archive: &mut Archive, count: u64) {
    for _ in 0..count {
        let number = archive.next();
        assert_eq!(archive.append(&entry(number)), Ok(number));
    }
    archive.commit().expect("commits");
}

#[test]
fn entries_are_read_back_by_number() {
    let disk = MemoryDisk::new();
    let (mut archive, _) = open(&disk, u64::MAX);
    fill(&mut archive, 500);
    for number in 0..500 {
        assert_eq!(archive.read(number), Ok(Some(Bytes::from(entry(number)))));
    }
    assert_eq!(archive.read(500), Ok(None));
    drop(archive);
    let (archive, seen) = open(&disk, u64::MAX);
    assert_eq!(seen, (0..500).collect::<Vec<_>>());
    for number in [0, 1, 63, 64, 65, 499] {
        assert_eq!(archive.read(number), Ok(Some(Bytes::from(entry(number)))));
    }
}

#[test]
fn committed_entries_survive_and_others_need_not() {
    let disk = MemoryDisk::new();
    let (mut archive, _) = open(&disk, u64::MAX);
    fill(&mut archive, 100);
    archive.append(&entry(100)).expect("appends");
    drop(archive);
    disk.crash(&mut || true);
    let (archive, seen) = open(&disk, u64::MAX);
    assert_eq!((archive.next(), seen.len()), (100, 100));
}

#[test]
fn the_oldest_go_as_far_as_a_checkpoint_and_the_retention_allow() {
    let disk = MemoryDisk::new();
    let (mut archive, _) = open(&disk, 3 * SEGMENT);
    fill(&mut archive, 400);
    archive.prune_below(0).expect("prunes nothing");
    assert_eq!(archive.oldest(), 0, "no checkpoint covers anything");
    archive.prune_below(400).expect("prunes");
    let oldest = archive.oldest();
    assert!(oldest > 0 && oldest < 400, "{oldest}");
    assert_eq!(archive.read(oldest - 1), Ok(None));
    assert_eq!(archive.read(oldest), Ok(Some(Bytes::from(entry(oldest)))));
    assert!(archive.log.used_bytes() <= 4 * SEGMENT);
    drop(archive);
    disk.crash(&mut || true);
    let (mut archive, seen) = open(&disk, 3 * SEGMENT);
    assert_eq!(seen, (oldest..400).collect::<Vec<_>>());
    fill(&mut archive, 10);
    assert_eq!(archive.read(405), Ok(Some(Bytes::from(entry(405)))));
}

#[test]
fn a_damaged_entry_is_an_error() {
    let disk = MemoryDisk::new();
    let (mut archive, _) = open(&disk, u64::MAX);
    fill(&mut archive, 10);
    fill(&mut archive, 10);
    disk.flip(&NAME.file(1), 260, 1);
    drop(archive);
    let opened = Archive::open(Box::new(disk), &Owner::nobody(), config(u64::MAX), |_, _| Ok(()));
    assert!(matches!(opened, Err(StorageError::Corrupt { .. })), "{opened:?}");
}
