use super::*;
use crate::device::GuardedJournal;
use crate::log::Device;
use crate::metrics::Metrics;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_storage::{
    Disk, Fault, FaultyDisk, Findings, Journal, LogConfig, MemoryDisk, Owner, Safeguards,
};
use quorate_types::machine::{Entry, Record, RecordKind};
use std::sync::Arc;
use tempfile::TempDir;

const NETWORK: NetworkId = NetworkId([1; 32]);
const MEMBER: IdentityKey = IdentityKey([2; 32]);

fn open(folder: &TempDir) -> FileGuard {
    FileGuard::beside(&folder.path().join("key.toml"), NETWORK, &MEMBER).expect("opened")
}

fn mark(sequence: u64) -> LogMark {
    LogMark { sequence, checksum: [9; 16] }
}

fn remembered(folder: &TempDir) -> Option<(u64, bool)> {
    open(folder).witnessed().map(|witnessed| (witnessed.mark.sequence, witnessed.is_exact))
}

#[test]
fn the_last_record_is_remembered_and_a_torn_slot_costs_one() {
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(remembered(&folder), None, "a first start");
    let mut guard = open(&folder);
    guard.begin(mark(4)).expect("written");
    for sequence in 5..8 {
        guard.advance(mark(sequence)).expect("written");
    }
    let path = guard.path().to_owned();
    drop(guard);
    assert_eq!(remembered(&folder), Some((7, true)), "written in this boot");

    let whole = fs::read(&path).expect("a file");
    for offset in [3, 100, 4_096 + 3, 4_096 + 400] {
        let mut torn = whole.clone();
        torn[offset] ^= 1;
        fs::write(&path, torn).expect("written");
        let sequence = remembered(&folder).expect("a slot").0;
        assert!(sequence == 6 || sequence == 7, "byte {offset}: {sequence}");
    }
    fs::write(&path, &whole[..200]).expect("written");
    assert_eq!(remembered(&folder), None, "no slot is whole");
}

#[test]
fn a_guard_of_another_boot_is_exact_if_it_was_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut guard = open(&folder);
    guard.next.boot = "before".into();
    guard.begin(mark(4)).expect("written");
    assert_eq!(remembered(&folder), Some((4, false)));
    guard.close().expect("written");
    assert_eq!(remembered(&folder), Some((4, true)));
    guard.next.boot = String::new();
    guard.next.is_closed = false;
    guard.advance(mark(5)).expect("written");
    let mut unknown = open(&folder);
    unknown.next.boot = String::new();
    assert!(!unknown.witnessed().expect("a slot").is_exact, "no boot is no same boot");
}

#[test]
fn another_network_s_guard_says_nothing_and_another_member_s_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    open(&folder).begin(mark(4)).expect("written");
    let key = folder.path().join("key.toml");
    let other = FileGuard::beside(&key, NetworkId([3; 32]), &MEMBER).expect("opened");
    assert_eq!(other.witnessed(), None);
    let mut next = FileGuard::beside(&key, NetworkId([3; 32]), &MEMBER).expect("opened");
    next.advance(mark(1)).expect("written");
    let next = FileGuard::beside(&key, NetworkId([3; 32]), &MEMBER).expect("opened");
    assert_eq!(next.witnessed().expect("the new network's").mark.sequence, 1);
    let refused = FileGuard::beside(&key, NETWORK, &IdentityKey([4; 32])).expect_err("refused");
    let said = refused.to_string();
    assert!(said.contains("validator 0202020202020202…") && said.contains("key.guard"), "{said}");
}

/// ★ What was missed once is missed at every start, until the log has it.
fn a_log_set_back_stays_so() {
    let folder = tempfile::tempdir().expect("a folder");
    open(&folder).begin(mark(7)).expect("written");
    open(&folder).miss(mark(7)).expect("written");
    let witnessed = open(&folder).witnessed().expect("a slot");
    assert_eq!((witnessed.mark, witnessed.is_missed), (mark(7), true));
    open(&folder).begin(mark(8)).expect("written");
    assert!(!open(&folder).witnessed().expect("a slot").is_missed, "the newest was put back");
}

#[test]
fn logs_set_back_stay_so() {
    a_log_set_back_stays_so();
    assert_noticed(Mutant::ForgetSetBack, a_log_set_back_stays_so);
}

/// ★ An old copy of the whole folder lacks what the guard remembers.
fn an_old_folder_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let disks = [MemoryDisk::new(), MemoryDisk::new(), MemoryDisk::new()];
    let write = |disks: &[MemoryDisk; 3], guard: &mut FileGuard, text: &'static str| -> Findings {
        let [log, bodies, copy] = disks.clone().map(Box::new);
        let (owner, config) = (Owner::nobody(), LogConfig::default());
        let safeguards = Safeguards { copy: Some(copy), witnessed: guard.witnessed() };
        let opened = Journal::open_guarded(log, bodies, &owner, config, None, safeguards);
        let (mut journal, _, findings) = opened.expect("opened");
        if findings.set_back.is_none() {
            let promise = Record { kind: RecordKind::Safety, bytes: text.into() };
            journal.write(&Entry::Record(promise)).expect("written");
            journal.commit().expect("committed");
            guard.begin(journal.committed().expect("one")).expect("written");
        }
        findings
    };
    assert_eq!(write(&disks, &mut open(&folder), "one"), Findings::default());
    let old = [disks[0].copy(), disks[1].copy(), disks[2].copy()];
    assert_eq!(write(&disks, &mut open(&folder), "two"), Findings::default());
    assert!(write(&old, &mut open(&folder), "another two").set_back.is_some());
    assert_eq!(write(&disks, &mut open(&folder), "three"), Findings::default());
}

#[test]
fn old_folders_are_noticed() {
    an_old_folder_is_noticed();
    assert_noticed(Mutant::SignAfterSetBack, an_old_folder_is_noticed);
}

/// ★ What the guard remembers, the log has for good: of a group whose sync failed it was not told.
fn a_guard_is_never_ahead_of_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, bodies) = (MemoryDisk::new(), MemoryDisk::new());
    let start = |disk: Box<dyn Disk>, guard: &FileGuard| {
        let (owner, config) = (Owner::nobody(), LogConfig::default());
        let safeguards = Safeguards { copy: None, witnessed: guard.witnessed() };
        let bodies = Box::new(bodies.clone());
        Journal::open_guarded(disk, bodies, &owner, config, None, safeguards).expect("opened")
    };
    let promise =
        |text: &'static str| Entry::Record(Record { kind: RecordKind::Safety, bytes: text.into() });
    let disk = FaultyDisk::new(log.clone(), Vec::new());
    let (faults, mut guard) = (disk.faults(), open(&folder));
    let (mut journal, ..) = start(Box::new(disk), &guard);
    journal.begin().expect("begun");
    guard.begin(journal.committed().expect("a record")).expect("written");
    let (metrics, room) = (Arc::new(Metrics::new()), Room::unwatched());
    let least = LogConfig::RETENTION_BYTES_MIN;
    let mut device = GuardedJournal::new(journal, Some(Box::new(guard)), &metrics, &room, least);
    device.write(&promise("kept")).expect("written");
    device.commit().expect("durable");
    faults.set(vec![Fault::FailSync { nth: faults.syncs() }]);
    device.write(&promise("lost")).expect("buffered");
    device.commit().expect_err("not durable");
    drop(device);

    log.crash(&mut || true);
    let (_, recovery, findings) = start(Box::new(log), &open(&folder));
    assert_eq!(findings.set_back, None, "an alarm for ever, and nothing was lost");
    assert_eq!(recovery.safety.as_deref(), Some(&b"kept"[..]));
}

#[test]
fn guards_are_never_ahead_of_their_logs() {
    a_guard_is_never_ahead_of_its_log();
    assert_noticed(Mutant::GuardBeforeSync, a_guard_is_never_ahead_of_its_log);
}
