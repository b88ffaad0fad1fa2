//! Every promise to a host is a check that can fail: the mutants at the end show that each does.

mod guarded;
mod index;
mod retention;

use super::{Entry, Journal, JournalStats};
use crate::disk::{Disk, Fault, FaultyDisk, MemoryDisk, RealDisk};
use crate::log::{Durability, LogConfig};
use crate::{Owner, StorageError};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_crypto::hash;
use quorate_types::machine::{
    DecidedRecord, ExecutedUpTo, ReadItem, ReadRequest, Record, RecordKind, Recovery,
};
use quorate_types::{Body, BodyRef, Header, Height, ReplicaId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SMALL: LogConfig = LogConfig {
    segment_bytes: 2_048,
    durability: Durability::Fsync,
    retention_bytes: LogConfig::RETENTION_BYTES_MIN,
};

fn open(disk: &MemoryDisk) -> Result<(Journal, Recovery), StorageError> {
    open_with(disk, SMALL)
}

fn open_with(disk: &MemoryDisk, config: LogConfig) -> Result<(Journal, Recovery), StorageError> {
    Journal::open(Box::new(disk.clone()), Box::new(disk.clone()), &Owner::nobody(), config, None)
}

fn slot(place: u8, bytes: &[u8]) -> Entry {
    let bytes = Bytes::copy_from_slice(bytes);
    Entry::Record(Record { kind: RecordKind::Slot(place), bytes })
}

fn safety(bytes: &[u8]) -> Entry {
    Entry::Record(Record { kind: RecordKind::Safety, bytes: Bytes::copy_from_slice(bytes) })
}

fn decided(height: u64, bytes: &[u8]) -> Entry {
    Entry::Decided(DecidedRecord { height: Height(height), bytes: Bytes::copy_from_slice(bytes) })
}

fn body(sequence: u64, bytes: &[u8]) -> Arc<Body> {
    let reference = BodyRef { author: ReplicaId(3), sequence, digest: hash(bytes) };
    Arc::new(Body { reference, raw: Bytes::copy_from_slice(bytes), requests: Vec::new() })
}

fn write_and_commit(journal: &mut Journal, entries: &[Entry]) -> Result<(), StorageError> {
    for entry in entries {
        journal.write(entry)?;
    }
    journal.commit()
}

/// Hands the group to the operating system without committing it.
fn flush(journal: &mut Journal) {
    journal
        .read(&ReadRequest { ticket: 0, items: Vec::new(), bytes_max: usize::MAX })
        .expect("flushed");
}

fn read_one(journal: &mut Journal, item: ReadItem) -> Result<Option<Bytes>, StorageError> {
    let mut answer =
        journal.read(&ReadRequest { ticket: 5, items: vec![item], bytes_max: usize::MAX })?;
    assert_eq!(answer.ticket, 5);
    Ok(answer.items.remove(0).1)
}

type Check = Result<(), String>;

fn ensure(holds: bool, what: impl Into<String>) -> Check {
    if holds { Ok(()) } else { Err(what.into()) }
}

/// Expected recovery when exactly these entries survived.
fn model(entries: &[Entry]) -> Recovery {
    let mut recovery = Recovery::default();
    let mut slots = BTreeMap::new();
    let mut decided = BTreeMap::new();
    let mut bodies = BTreeSet::new();
    for entry in entries {
        match entry {
            Entry::Record(Record { kind: RecordKind::Safety, bytes }) => {
                recovery.safety = Some(bytes.clone());
            }
            Entry::Record(Record { kind: RecordKind::Incarnation, bytes }) => {
                recovery.incarnation = Some(bytes.clone());
            }
            Entry::Record(Record { kind: RecordKind::HandOver, bytes }) => {
                recovery.hand_over = Some(bytes.clone());
            }
            Entry::Record(Record { kind: RecordKind::Slot(place), bytes }) => {
                drop(slots.insert(*place, bytes.clone()));
            }
            Entry::Decided(record) => drop(decided.insert(record.height, record.clone())),
            Entry::Body(body) => drop(bodies.insert(body.reference)),
            Entry::Release(release) => {
                for (_, names) in &release.bodies {
                    bodies.retain(|name| !names.contains(name));
                }
            }
        }
    }
    recovery.decided = (1..).map_while(|height| decided.get(&Height(height)).cloned()).collect();
    recovery.bodies = bodies.into_iter().collect();
    recovery.slots = slots.into_values().collect();
    recovery
}

// What must hold, as checks.

/// ★ A committed record survives a power cut, and so does the file it is in.
fn what_was_committed_survives() -> Check {
    let disk = MemoryDisk::new();
    for n in 0..30_u8 {
        let (mut journal, _) = open(&disk).map_err(|error| error.to_string())?;
        let promise = safety(&[n; 300]);
        write_and_commit(&mut journal, std::slice::from_ref(&promise)).expect("works");
        drop(journal);
        disk.crash(&mut || true);
        let (_, recovery) = open(&disk).map_err(|error| error.to_string())?;
        ensure(recovery == model(&[promise]), format!("promise {n} is forgotten"))?;
    }
    Ok(())
}

/// ★ A torn record is absent, at whatever byte it was torn; what came before it is there.
fn a_torn_record_is_absent() -> Check {
    let (first, second) = (safety(b"the first promise"), safety(&[0xab; 100]));
    let record_bytes = 64 + 100;
    for kept in 0..=record_bytes + 4 {
        let disk = MemoryDisk::new();
        let (mut journal, _) = open(&disk).expect("opened");
        write_and_commit(&mut journal, std::slice::from_ref(&first)).expect("works");
        journal.write(&second).expect("buffered");
        flush(&mut journal);
        drop(journal);
        disk.crash_with(&mut |write| {
            if write.file.starts_with("body") {
                return Vec::new();
            }
            assert_eq!(write.bytes, record_bytes + 4);
            std::iter::once(0..kept).collect()
        });
        let (_, recovery) = open(&disk).map_err(|error| error.to_string())?;
        let expected = if kept < record_bytes { &first } else { &second };
        let expected = model(std::slice::from_ref(expected));
        ensure(recovery == expected, format!("torn after {kept} bytes: {recovery:?}"))?;
    }
    Ok(())
}

/// ★ The end of a torn group does not come back behind what is written in its place.
fn a_torn_group_leaves_nothing_behind() -> Check {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    write_and_commit(&mut journal, &[safety(b"first")]).expect("works");
    journal.write(&safety(b"second: lost")).expect("buffered");
    journal.write(&safety(b"third: on disk, but never committed")).expect("buffered");
    flush(&mut journal);
    drop(journal);
    disk.crash_with(&mut |write| std::iter::once(write.bytes.min(80)..write.bytes).collect());

    let (mut journal, recovery) = open(&disk).map_err(|error| error.to_string())?;
    ensure(recovery == model(&[safety(b"first")]), "the torn group is absent")?;
    write_and_commit(&mut journal, &[safety(b"instead: new")]).expect("works");
    drop(journal);
    disk.crash(&mut || true);
    let (_, recovery) = open(&disk).map_err(|error| error.to_string())?;
    ensure(recovery == model(&[safety(b"instead: new")]), format!("came back: {recovery:?}"))
}

/// ★ Nothing is acknowledged after a failed write or sync, however often the host asks.
fn nothing_is_acknowledged_after_a_failure() -> Check {
    let plans = [
        Fault::FailSync { nth: 2 },
        Fault::FailDirectorySync { nth: 2 },
        Fault::FailWrite { nth: 2 },
        Fault::TearWrite { nth: 2, bytes: 30 },
        Fault::Full { bytes: 4_300 },
    ];
    for fault in plans {
        let memory = MemoryDisk::new();
        // Opened before the faults, so that they hit the third group.
        let disk = FaultyDisk::new(memory.clone(), vec![fault.clone()]);
        let (mut journal, _) =
            Journal::open(Box::new(disk.clone()), Box::new(disk), &Owner::nobody(), SMALL, None)
                .expect("opened");
        let mut acknowledged = None;
        let mut failure = None;
        for n in 0..8_u8 {
            let promise = safety(&[n; 1_000]);
            match write_and_commit(&mut journal, std::slice::from_ref(&promise)) {
                Ok(()) => {
                    ensure(failure.is_none(), format!("{fault:?}: went on after {failure:?}"))?;
                    acknowledged = Some(promise);
                }
                Err(error) => {
                    let first = failure.get_or_insert_with(|| error.clone());
                    ensure(*first == error, format!("{fault:?}: now it is {error}"))?;
                }
            }
        }
        ensure(failure.is_some(), format!("{fault:?} was not noticed"))?;
        let read =
            journal.read(&ReadRequest { ticket: 0, items: Vec::new(), bytes_max: usize::MAX });
        ensure(read.err() == failure, format!("{fault:?}: still reads"))?;
        drop(journal);
        memory.crash(&mut || true);
        let (_, recovery) = open(&memory).map_err(|error| error.to_string())?;
        let expected = model(acknowledged.as_slice());
        ensure(recovery == expected, format!("{fault:?}: an acknowledged promise is lost"))?;
    }
    Ok(())
}

/// ★ What recovery found is durable before anyone relies on it, also when the process alone had
/// died between its write and its sync.
fn what_was_recovered_survives_the_next_crash() -> Check {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    write_and_commit(&mut journal, &[safety(b"first")]).expect("works");
    journal.write(&safety(b"second")).expect("buffered");
    flush(&mut journal);
    drop(journal);
    let (journal, recovery) = open(&disk).map_err(|error| error.to_string())?;
    ensure(recovery == model(&[safety(b"second")]), "the process died, not the machine")?;
    drop(journal);
    disk.crash(&mut || true);
    let (_, recovery) = open(&disk).map_err(|error| error.to_string())?;
    ensure(recovery == model(&[safety(b"second")]), "what recovery said is forgotten")
}

/// The entries of the log that is damaged below, group by group.
fn groups() -> Vec<Vec<Entry>> {
    vec![
        vec![safety(b"one"), Entry::Body(body(1, &[1; 90]))],
        vec![decided(1, b"decided"), safety(b"two"), Entry::Body(body(2, &[2; 20]))],
        vec![safety(b"three"), decided(2, b"decided too")],
        vec![Entry::Body(body(3, &[3; 300])), safety(b"four")],
    ]
}

/// A bit flipped anywhere is an error or costs the last group, or one body: never wrong data,
/// never an earlier group.
fn no_flipped_bit_is_believed() -> Check {
    let config = LogConfig { segment_bytes: 1_024, ..SMALL };
    let build = || {
        let disk = MemoryDisk::new();
        let (mut journal, _) = open_with(&disk, config.clone()).expect("opened");
        for group in groups() {
            write_and_commit(&mut journal, &group).expect("works");
        }
        disk
    };
    // The last group of the records is one entry; one bit harms one log.
    let (bodies, records): (Vec<Entry>, Vec<Entry>) =
        groups().concat().into_iter().partition(is_body);
    let but = |entries: &[Entry], gone: usize| [&entries[..gone], &entries[gone + 1..]].concat();
    let mut acceptable = vec![
        model(&[records.clone(), bodies.clone()].concat()),
        model(&[but(&records, records.len() - 1), bodies.clone()].concat()),
        // The owner's record is gone, and all that it stood for.
        model(&records),
    ];
    let but_one = |gone| model(&[records.clone(), but(&bodies, gone)].concat());
    acceptable.extend((0..bodies.len()).map(but_one));
    let names = build().list().expect("listed");
    ensure(names.len() == 2, "two segments")?;
    let mut refused = 0;
    for name in names {
        for offset in 0..1_024 {
            let disk = build();
            let bit = u8::try_from(offset % 8).expect("small");
            disk.flip(&name, offset, bit);
            match open_with(&disk, config.clone()) {
                Ok((_, recovery)) => ensure(
                    acceptable.contains(&recovery),
                    format!("{name}, byte {offset}, bit {bit}: recovered {recovery:?}"),
                )?,
                Err(StorageError::Corrupt { file, .. }) => {
                    ensure(file == format!("memory:{name}"), format!("{file} is not {name}"))?;
                    refused += 1;
                }
                Err(error) => return Err(format!("{name}, byte {offset}: {error}")),
            }
        }
    }
    ensure(refused > 300, format!("only {refused} flips of committed bytes were refused"))
}

#[test]
fn committed_records_survive_a_power_cut() {
    what_was_committed_survives().unwrap();
}

#[test]
fn torn_records_are_absent_at_every_length() {
    a_torn_record_is_absent().unwrap();
}

#[test]
fn torn_groups_never_come_back() {
    a_torn_group_leaves_nothing_behind().unwrap();
}

#[test]
fn a_failed_write_or_sync_is_final() {
    nothing_is_acknowledged_after_a_failure().unwrap();
}

#[test]
fn recovery_is_durable() {
    what_was_recovered_survives_the_next_crash().unwrap();
}

#[test]
fn flipped_bits_are_never_believed() {
    no_flipped_bit_is_believed().unwrap();
}

#[test]
fn corruption_names_the_file_and_the_place() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    for promise in [&b"one"[..], b"two", b"three"] {
        write_and_commit(&mut journal, &[safety(promise)]).expect("works");
    }
    drop(journal);
    // The second record begins after the segment's own (168 bytes) and the first (72).
    disk.flip("log-000000000001", 240 + 64, 0);
    let error = open(&disk).err().expect("refused");
    assert_eq!(
        error,
        StorageError::Corrupt {
            file: "memory:log-000000000001".into(),
            offset: 240,
            reason: "record 2 is missing or changed, and it had been committed before record 3"
                .into(),
        }
    );
}

#[test]
fn each_part_may_live_on_a_thread_of_its_own() {
    fn sendable<T: Send>() {}
    sendable::<Journal>();
    sendable::<super::JournalReader>();
    sendable::<crate::Executor>();
}

#[test]
fn a_first_start_recovers_nothing() {
    let (_, recovery) = open(&MemoryDisk::new()).expect("opened");
    assert_eq!(recovery, Recovery::default());
}

#[test]
fn decided_heights_are_recovered_up_to_the_first_gap() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let entries = [4, 2, 1, 3, 6].map(|height| decided(height, &[7; 3]));
    write_and_commit(&mut journal, &entries).expect("works");
    drop(journal);
    let heights = |executed: Option<u64>| {
        let executed = executed.map(|height| ExecutedUpTo {
            header: Header { height: Height(height), ..Header::default() },
            decided: Bytes::new(),
            operations: 0,
            recent: Vec::new(),
        });
        let (_, recovery) = Journal::open(
            Box::new(disk.clone()),
            Box::new(disk.clone()),
            &Owner::nobody(),
            SMALL,
            executed.clone(),
        )
        .expect("opened");
        assert_eq!(recovery.executed, executed);
        recovery.decided.iter().map(|record| record.height.0).collect::<Vec<_>>()
    };
    assert_eq!(heights(None), [1, 2, 3, 4]);
    assert_eq!(heights(Some(2)), [3, 4]);
    assert_eq!(heights(Some(4)), [0; 0]);
    assert_eq!(heights(Some(5)), [6]);
}

#[test]
fn what_the_state_store_kept_fills_the_hole_in_the_log() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    write_and_commit(&mut journal, &[decided(1, b"one")]).expect("works");
    drop(journal);
    let record = |height, bytes: &'static [u8]| DecidedRecord {
        height: Height(height),
        bytes: Bytes::from_static(bytes),
    };
    let executed = ExecutedUpTo {
        header: Header { height: Height(3), ..Header::default() },
        decided: Bytes::from_static(b"three"),
        operations: 0,
        recent: vec![record(1, b"one"), record(2, b"two"), record(3, b"three")],
    };
    let (journal, recovery) = Journal::open(
        Box::new(disk.clone()),
        Box::new(disk.clone()),
        &Owner::nobody(),
        SMALL,
        Some(executed),
    )
    .expect("opened");
    assert_eq!(recovery.executed.map(|executed| executed.recent.len()), Some(3));
    assert_eq!(journal.stats().records, 3, "two, and a mark that no body is here");
    drop(journal);
    let (mut journal, _) = open(&disk).expect("opened");
    let two = read_one(&mut journal, ReadItem::Decided(Height(2))).expect("read");
    assert_eq!(two.as_deref(), Some(b"two".as_slice()));
}

#[test]
fn the_latest_record_of_each_kind_is_recovered() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let incarnation = Record { kind: RecordKind::Incarnation, bytes: Bytes::from("start 2") };
    let entries = [
        safety(b"old"),
        slot(7, b"slot 7"),
        slot(8, b"slot 8"),
        Entry::Record(incarnation.clone()),
        safety(b"new"),
        slot(7, b"slot 263"),
        decided(1, b"d"),
    ];
    write_and_commit(&mut journal, &entries).expect("works");
    let (_, recovery) = open(&disk).expect("opened");
    assert_eq!(recovery.slots, [Bytes::from("slot 263"), Bytes::from("slot 8")]);
    assert_eq!(recovery.safety, Some(Bytes::from("new")));
    assert_eq!(recovery.incarnation, Some(incarnation.bytes));
}

#[test]
fn what_is_stored_reads_back_before_and_after_the_commit() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let reader = journal.reader();
    let large = body(1, &vec![9; 100_000]);
    let request = ReadRequest {
        ticket: 8,
        items: vec![
            ReadItem::Body(large.reference),
            ReadItem::Decided(Height(1)),
            ReadItem::Decided(Height(2)),
        ],
        bytes_max: usize::MAX,
    };
    journal.write(&Entry::Body(Arc::clone(&large))).expect("buffered");
    journal.write(&decided(1, b"proof")).expect("buffered");
    let nothing = reader.read(&request).expect("works");
    assert!(nothing.items.iter().all(|(_, bytes)| bytes.is_none()), "still in the buffer");

    let answer = journal.read(&request).expect("works");
    let found: Vec<Option<Bytes>> = answer.items.into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(found, [Some(large.raw.clone()), Some(Bytes::from("proof")), None]);
    journal.commit().expect("works");
    let elsewhere = std::thread::spawn(move || reader.read(&request).expect("works"));
    assert_eq!(elsewhere.join().expect("ran").items[0].1, Some(large.raw.clone()));

    drop(journal);
    let (mut journal, _) = open(&disk).expect("opened");
    let item = ReadItem::Body(large.reference);
    assert_eq!(read_one(&mut journal, item), Ok(Some(large.raw.clone())));
}

#[test]
fn what_decays_after_recovery_is_not_handed_out() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let stored = body(1, &[5; 500]);
    write_and_commit(&mut journal, &[Entry::Body(Arc::clone(&stored))]).expect("works");
    disk.flip("body-000000000001", 168 + 64 + 42 + 250, 3);
    assert_eq!(read_one(&mut journal, ReadItem::Body(stored.reference)), Ok(None));
    // Fetched again, it is stored again.
    write_and_commit(&mut journal, &[Entry::Body(Arc::clone(&stored))]).expect("works");
    let read = read_one(&mut journal, ReadItem::Body(stored.reference));
    assert_eq!(read, Ok(Some(stored.raw.clone())));
}

#[test]
fn a_body_is_written_once() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let entry = Entry::Body(body(1, &[1; 100]));
    write_and_commit(&mut journal, &[entry.clone(), entry.clone()]).expect("works");
    write_and_commit(&mut journal, std::slice::from_ref(&entry)).expect("works");
    assert_eq!(journal.stats().records, 1);
    drop(journal);
    let (mut journal, _) = open(&disk).expect("opened");
    write_and_commit(&mut journal, std::slice::from_ref(&entry)).expect("works");
    let JournalStats { bytes_written, syncs, records, .. } = journal.stats();
    assert_eq!((bytes_written, syncs, records), (0, 0, 0), "nothing to write, nothing to sync");
}

#[test]
fn a_group_takes_one_write_and_one_sync() {
    let disk = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let faults = disk.faults();
    let config = LogConfig { segment_bytes: 1 << 20, ..SMALL };
    let (mut journal, _) =
        Journal::open(Box::new(disk.clone()), Box::new(disk), &Owner::nobody(), config, None)
            .expect("opened");
    write_and_commit(&mut journal, &[safety(b"first")]).expect("works");
    assert_eq!(journal.stats().syncs, 2, "the file and its name");
    let group: Vec<Entry> = (0..50).map(|n| safety(&[n; 10])).collect();
    write_and_commit(&mut journal, &group).expect("works");
    assert_eq!((faults.writes(), faults.syncs(), faults.directory_syncs()), (3, 2, 1));
    write_and_commit(&mut journal, &[decided(1, b"nobody waits for this")]).expect("works");
    assert_eq!((faults.writes(), faults.syncs(), faults.directory_syncs()), (4, 2, 1));
    assert_eq!(journal.stats().records, 52);
}

#[test]
fn without_syncs_the_process_may_die_but_not_the_machine() {
    let disk = MemoryDisk::new();
    let config = LogConfig { durability: Durability::Os, ..SMALL };
    let (mut journal, _) = open_with(&disk, config.clone()).expect("opened");
    write_and_commit(&mut journal, &[safety(b"promise")]).expect("works");
    assert_eq!(journal.stats().syncs, 0);
    drop(journal);
    let (_, recovery) = open_with(&disk, config.clone()).expect("opened");
    assert_eq!(recovery.safety, Some(Bytes::from("promise")));
    disk.crash(&mut || true);
    let (_, recovery) =
        Journal::open(Box::new(disk.clone()), Box::new(disk), &Owner::nobody(), config, None)
            .expect("opened");
    assert_eq!(recovery, Recovery::default());
}

#[test]
fn a_group_is_quick_where_nothing_is_synced_and_no_segment_ends() {
    let unsynced = LogConfig { segment_bytes: 256 * 1024, durability: Durability::Os, ..SMALL };
    let (mut journal, _) = open_with(&MemoryDisk::new(), unsynced.clone()).unwrap();
    assert_eq!([1_000, 200_000].map(|bytes| journal.is_quick(bytes)), [true, false]);
    let bodies = [1, 2, 3].map(|sequence| Entry::Body(body(sequence, &[7; 64 * 1024])));
    write_and_commit(&mut journal, &bodies).unwrap();
    assert!(!journal.is_quick(1_000), "the segment of bodies is nearly full");
    let synced = LogConfig { durability: Durability::Fsync, ..unsynced };
    let (journal, _) = open_with(&MemoryDisk::new(), synced).unwrap();
    assert!(!journal.is_quick(0));
}

#[test]
fn a_real_directory_recovers_and_fills_many_segments() {
    let directory = tempfile::tempdir().expect("made");
    let config = LogConfig { segment_bytes: 256 * 1024, ..SMALL };
    let open = || {
        let disk = |name| Box::new(RealDisk::open(&directory.path().join(name)).expect("opened"));
        Journal::open(disk("log"), disk("bodies"), &Owner::nobody(), config.clone(), None)
            .expect("opened")
    };
    let mut entries = Vec::new();
    for round in 0..3_u8 {
        let (mut journal, recovery) = open();
        assert_eq!(recovery, model(&entries));
        for n in 0..10_u8 {
            let sequence = u64::from(round * 10 + n);
            let stored = body(sequence, &vec![n; 40_000]);
            let group = [Entry::Body(stored), safety(&[round, n]), decided(sequence + 1, &[n])];
            write_and_commit(&mut journal, &group).expect("works");
            entries.extend(group);
        }
    }
    let (mut journal, recovery) = open();
    assert_eq!(recovery, model(&entries));
    for entry in &entries {
        if let Entry::Body(body) = entry {
            let read = read_one(&mut journal, ReadItem::Body(body.reference));
            assert_eq!(read, Ok(Some(body.raw.clone())));
        }
    }
}

/// Actions of a host, and accidents that may happen to it.
#[derive(Clone, Debug)]
enum Step {
    Write(Entry),
    Commit,
    ProcessDies,
    PowerFails { seed: u64, lost_in_16: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        (any::<u8>(), 0_usize..3_000).prop_map(|(byte, length)| vec![byte; length]),
    ];
    let entry = (0..6, HEIGHTS, bytes).prop_map(|(which, number, bytes)| match which {
        0 => safety(&bytes),
        1 => Entry::Record(Record { kind: RecordKind::Incarnation, bytes: bytes.into() }),
        2 => decided(number, &bytes),
        3 => slot(u8::try_from(number).expect("few"), &bytes),
        4 => Entry::Record(Record { kind: RecordKind::HandOver, bytes: bytes.into() }),
        _ => Entry::Body(body(number, &bytes)),
    });
    prop_oneof![
        6 => entry.prop_map(Step::Write),
        3 => Just(Step::Commit),
        1 => Just(Step::ProcessDies),
        1 => (any::<u64>(), 0_u64..=16)
            .prop_map(|(seed, lost_in_16)| Step::PowerFails { seed, lost_in_16 }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever happens, what is recovered of each log is what was written to it up to some point,
    /// and that point is not before the last commit that a host waited for.
    #[test]
    fn recovery_agrees_with_a_naive_model(steps in prop::collection::vec(step(), 1..60)) {
        let disk = MemoryDisk::new();
        let (mut journal, _) = open(&disk).expect("opened");
        let mut written = [Written::default(), Written::default()];
        for step in steps.into_iter().chain([Step::ProcessDies]) {
            match step {
                Step::Write(entry) => {
                    journal.write(&entry).expect("works");
                    written[usize::from(is_body(&entry))].entries.push(entry);
                }
                Step::Commit => {
                    journal.commit().expect("works");
                    written.iter_mut().for_each(Written::commit);
                }
                Step::ProcessDies | Step::PowerFails { .. } => {
                    drop(journal);
                    if let Step::PowerFails { seed, lost_in_16 } = step {
                        let mut state = seed | 1;
                        disk.crash(&mut || {
                            state ^= state << 13;
                            state ^= state >> 7;
                            state ^= state << 17;
                            state % 16 < lost_in_16
                        });
                    }
                    let (mut reopened, recovery) = open(&disk).expect("never taken for corruption");
                    let bodies = recovery.bodies.clone();
                    let bodies = Recovery { bodies, ..Recovery::default() };
                    let records = Recovery { bodies: Vec::new(), ..recovery };
                    let none = HEIGHTS.map(|_| None).collect();
                    let found = [(records, read_heights(&mut reopened)), (bodies, none)];
                    for (written, found) in written.iter_mut().zip(found) {
                        let survived = (written.committed..=written.entries.len())
                            .find(|count| model_with_heights(&written.entries[..*count]) == found);
                        let Some(survived) = survived else {
                            return Err(TestCaseError::fail("recovered what was never the case"));
                        };
                        written.entries.truncate(survived);
                        written.committed = survived;
                    }
                    journal = reopened;
                }
            }
        }
        for entry in &written[1].entries {
            if let Entry::Body(body) = entry {
                let read = read_one(&mut journal, ReadItem::Body(body.reference));
                prop_assert_eq!(read, Ok(Some(body.raw.clone())));
            }
        }
    }
}

/// Entry that was written to one of the two logs.
#[derive(Default)]
struct Written {
    entries: Vec<Entry>,
    committed: usize,
}

impl Written {
    fn commit(&mut self) {
        let waits = |entry: &Entry| !matches!(entry, Entry::Decided(_));
        if self.entries[self.committed..].iter().any(waits) {
            self.committed = self.entries.len();
        }
    }
}

fn is_body(entry: &Entry) -> bool {
    matches!(entry, Entry::Body(_))
}

/// The heights that [`step`] decides.
const HEIGHTS: std::ops::Range<u64> = 1..9;

/// Every decided height, those behind a gap too.
fn read_heights(journal: &mut Journal) -> Vec<Option<Bytes>> {
    let read = |height| read_one(journal, ReadItem::Decided(Height(height))).expect("reads back");
    HEIGHTS.map(read).collect()
}

fn model_with_heights(entries: &[Entry]) -> (Recovery, Vec<Option<Bytes>>) {
    let latest = |height| {
        entries.iter().rev().find_map(|entry| match entry {
            Entry::Decided(record) if record.height == Height(height) => Some(record.bytes.clone()),
            _ => None,
        })
    };
    (model(entries), HEIGHTS.map(latest).collect())
}

/// Each rule left out is noticed by the check that stands for it.
mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, set};

    fn is_noticed(mutant: Mutant, check: fn() -> Check) {
        check().unwrap();
        set(Some(mutant));
        let result = check();
        set(None);
        assert!(result.is_err(), "{mutant:?} went unnoticed");
    }

    #[test]
    fn every_rule_is_guarded() {
        is_noticed(Mutant::SkipSync, what_was_committed_survives);
        is_noticed(Mutant::SkipDirectorySync, what_was_committed_survives);
        is_noticed(Mutant::AcceptTornRecord, a_torn_record_is_absent);
        is_noticed(Mutant::AcceptTornRecord, no_flipped_bit_is_believed);
        is_noticed(Mutant::KeepTornTail, a_torn_group_leaves_nothing_behind);
        is_noticed(Mutant::TruncateCorruption, no_flipped_bit_is_believed);
        is_noticed(Mutant::RetryFailedSync, nothing_is_acknowledged_after_a_failure);
        is_noticed(Mutant::GoOnAfterFailure, nothing_is_acknowledged_after_a_failure);
        is_noticed(Mutant::TrustPageCache, what_was_recovered_survives_the_next_crash);
    }
}

/// A record that is whole, and too short for its kind, was written by no journal.
#[test]
fn records_without_their_head_are_refused() {
    use crate::log::{BODIES, Log, RECORDS};
    for (name, kind) in [(RECORDS, super::DECIDED), (BODIES, super::BODY)] {
        let disk = MemoryDisk::new();
        let owner = Owner::nobody();
        let log = Log::open(Box::new(disk.clone()), name, &owner, SMALL, &mut |_| Ok(()));
        let mut log = log.expect("opened");
        log.append(kind, b"abc", &Bytes::new()).expect("appended");
        log.commit().expect("committed");
        drop(log);
        let refused = open(&disk).err().expect("refused");
        let reason = format!("a sound record of the unknown kind {kind}");
        assert!(refused.to_string().contains(&reason), "{refused}");
    }
}

/// What the state store kept is written where the log lacks it, above the first that it has.
#[test]
fn only_what_the_log_lacks_at_its_end_is_taken_over() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    write_and_commit(&mut journal, &[3, 4, 6].map(|height| decided(height, b"in the log")))
        .expect("works");
    drop(journal);
    let record = |height| DecidedRecord { height: Height(height), bytes: Bytes::from("kept") };
    let executed = ExecutedUpTo {
        header: Header { height: Height(7), ..Header::default() },
        decided: Bytes::new(),
        operations: 0,
        recent: (1..=7).map(record).collect(),
    };
    let [log, bodies] = [&disk, &disk].map(|disk| Box::new(disk.clone()));
    let opened = Journal::open(log, bodies, &Owner::nobody(), SMALL, Some(executed));
    let (mut journal, _) = opened.expect("opened");
    let found = (1..=7).map(|height| {
        let read = read_one(&mut journal, ReadItem::Decided(Height(height))).expect("works");
        read.map(|bytes| bytes == "kept")
    });
    let (kept, own) = (Some(true), Some(false));
    assert_eq!(found.collect::<Vec<_>>(), [None, None, own, own, kept, own, kept]);
    assert_eq!(journal.stats().records, 3, "two, and a mark that no body is here");
}

#[test]
fn figures_are_of_both_logs() {
    let (mut journal, _) = open(&MemoryDisk::new()).expect("opened");
    for number in 0..3 {
        let group = [safety(&[1; 10]), safety(&[2; 10]), Entry::Body(body(number, &[3; 50]))];
        write_and_commit(&mut journal, &group).expect("works");
    }
    let (records, bodies) = (journal.records.stats(), journal.bodies.stats());
    let JournalStats { bytes_written, syncs, records: written, bytes_used, .. } = journal.stats();
    assert_eq!((records.records, bodies.records, written), (6, 3, 9));
    assert_eq!(bytes_written, records.bytes_written + bodies.bytes_written);
    assert_eq!(syncs, records.syncs + bodies.syncs);
    assert_eq!(bytes_used, bytes_written, "nothing was pruned");
}

#[test]
fn a_folder_tells_if_a_journal_was_begun_in_it() {
    let directory = tempfile::tempdir().expect("made");
    let path = directory.path().join("log");
    assert_eq!(Journal::has_begun(&path), Ok(false));
    let open = |name| Box::new(RealDisk::open(&directory.path().join(name)).expect("opened"));
    let opened = Journal::open(open("log"), open("bodies"), &Owner::nobody(), SMALL, None);
    let (mut journal, _) = opened.expect("opened");
    assert_eq!(Journal::has_begun(&path), Ok(false), "nothing is committed");
    journal.begin().expect("works");
    assert_eq!(Journal::has_begun(&path), Ok(true));
    assert!(Journal::has_begun(&path.join("log-000000000001")).is_err(), "a file");
}

/// Without syncs a group is committed all the same: what follows it proves that.
#[test]
fn without_syncs_too_a_group_is_committed() {
    let disk = MemoryDisk::new();
    let config = LogConfig { durability: Durability::Os, ..SMALL };
    let (mut journal, _) = open_with(&disk, config.clone()).expect("opened");
    for height in [1, 2] {
        write_and_commit(&mut journal, &[decided(height, b"one")]).expect("works");
    }
    drop(journal);
    disk.flip("log-000000000001", 168 + 66, 1);
    let refused = open_with(&disk, config).err().expect("refused");
    assert!(matches!(refused, StorageError::Corrupt { offset: 168, .. }), "{refused}");
}

/// Whoever asks for much costs no more memory than what it gets.
#[test]
fn reading_ends_once_enough_was_read() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = open(&disk).expect("opened");
    let bodies: Vec<_> = (1..=3).map(|sequence| body(sequence, &[9; 1_000])).collect();
    for body in &bodies {
        journal.write(&Entry::Body(Arc::clone(body))).expect("buffered");
    }
    journal.commit().expect("durable");
    let items: Vec<_> = bodies.iter().map(|body| ReadItem::Body(body.reference)).collect();
    let read = |bytes_max| {
        let request = ReadRequest { ticket: 0, items: items.clone(), bytes_max };
        let answer = journal.reader().read(&request).expect("works");
        answer.items.iter().filter(|(_, bytes)| bytes.is_some()).count()
    };
    assert_eq!([0, 1, 1_000, 1_100, usize::MAX].map(read), [0, 1, 1, 2, 3]);
}
