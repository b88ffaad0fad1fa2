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

/// Entries are found from the nearest place that is kept: every 64th, and the first of a segment.
#[test]
fn few_places_are_kept_and_every_entry_is_found() {
    let disk = MemoryDisk::new();
    let (mut archive, _) = open(&disk, u64::MAX);
    fill(&mut archive, 500);
    let kept = |archive: &Archive| archive.places.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    let places = kept(&archive);
    let firsts = archive.segments.len();
    assert!(firsts > 5 && places.len() <= firsts + 8, "{places:?}");
    assert!((0..500).step_by(64).all(|number| places.contains(&number)), "{places:?}");
    assert_eq!(archive.stats().records, 500);
    assert_eq!(format!("{archive:?}"), "Archive(0 to 500)");
    drop(archive);
    assert_eq!(kept(&open(&disk, u64::MAX).0), places, "the same after a restart");
}

/// ★ Nothing goes that no checkpoint covers: a segment stays as long as it has an entry from there
/// on, and no more goes than the retention asks for.
#[test]
fn a_segment_with_an_entry_that_is_not_covered_stays() {
    let filled = || {
        let disk = MemoryDisk::new();
        let (mut archive, _) = open(&disk, 3 * SEGMENT);
        fill(&mut archive, 400);
        archive
    };
    let firsts: Vec<u64> = {
        let archive = filled();
        let first = |segment| archive.places.iter().find(|(_, at)| at.segment == segment);
        archive.segments.keys().map(|segment| first(*segment).expect("some").0).collect()
    };
    assert!(firsts.len() > 5, "{firsts:?}");
    for (covered, oldest) in [
        (firsts[1] - 1, 0),
        (firsts[1], firsts[1]),
        (firsts[2] - 1, firsts[1]),
        (firsts[2], firsts[2]),
    ] {
        let mut archive = filled();
        archive.prune_below(covered).expect("prunes");
        assert_eq!(archive.oldest(), oldest, "covered up to {covered}");
    }
    let mut archive = filled();
    let (used, before) = (archive.log.used_bytes(), archive.log.full().collect::<Vec<_>>());
    archive.prune_below(400).expect("prunes");
    let mut needed = 0;
    let mut left = used;
    while left > 3 * SEGMENT {
        left -= before[needed].1;
        needed += 1;
    }
    assert_eq!(archive.oldest(), firsts[needed], "and no more than it must");
}
