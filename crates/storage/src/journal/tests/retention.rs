//! Pruning: what goes, what never does, and that a crash at any step of it harms nothing.

use super::*;
use crate::disk::Faults;
use crate::journal::{Safeguards, Witnessed};
use quorate_types::machine::Release;

const KEPT: u64 = 16 * 1024;

fn config() -> LogConfig {
    LogConfig { segment_bytes: 2_048, durability: Durability::Fsync, retention_bytes: KEPT }
}

fn reopen(disk: &MemoryDisk) -> Result<(Journal, Recovery), StorageError> {
    Journal::open(Box::new(disk.clone()), Box::new(disk.clone()), &Owner::nobody(), config(), None)
}

fn body_of(height: u64) -> Arc<Body> {
    body(height, &[u8::try_from(height % 251).expect("small"); 500])
}

fn release(below: u64, height: u64) -> Entry {
    let bodies = vec![(Height(height), vec![body_of(height).reference])];
    Entry::Release(Release { below: Height(below), bodies })
}

/// One height as a replica writes it: its body, then a promise and the decision; and the height
/// three before it is released. `skip` is a height whose body nobody releases.
fn one_height(journal: &mut Journal, height: u64, skip: u64) -> Result<(), StorageError> {
    write_and_commit(journal, &[Entry::Body(body_of(height))])?;
    write_and_commit(journal, &[safety(&height.to_le_bytes()), decided(height, &[1; 200])])?;
    if let Some(done) = height.checked_sub(3).filter(|done| *done > 0 && *done != skip) {
        write_and_commit(journal, &[release(done + 1, done)])?;
    }
    Ok(())
}

fn incarnation() -> Entry {
    Entry::Record(Record { kind: RecordKind::Incarnation, bytes: Bytes::from("start 7") })
}

#[test]
fn what_was_released_is_pruned_beyond_the_retention() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    let mut files = 0;
    for height in 1..=200 {
        one_height(&mut journal, height, 0).expect("works");
        let stats = journal.stats();
        assert!(stats.bytes_used <= KEPT + 2 * 2_048, "{} bytes at {height}", stats.bytes_used);
        if height == 100 {
            files = disk.list().expect("listed").len();
        }
    }
    assert_eq!(disk.list().expect("listed").len(), files, "files are used again");
    let oldest = journal.stats().oldest;
    assert!(oldest > Height(150) && oldest < Height(198), "{oldest}");
    let indexed = journal.shared.index.lock().bodies.len();
    assert!(indexed < 50, "{indexed} bodies in the index");
    for height in 1..=200 {
        let found = read_one(&mut journal, ReadItem::Body(body_of(height).reference));
        let found = found.expect("works").is_some();
        assert!(found || Height(height) < oldest, "{height} is not here");
        let found = read_one(&mut journal, ReadItem::Decided(Height(height))).expect("works");
        assert!(found.is_some() || Height(height) < oldest, "{height} is not here");
    }
    drop(journal);
    let (journal, recovery) = reopen(&disk).expect("a log that starts anywhere");
    assert_eq!(journal.stats().oldest, oldest, "known after a restart too");
    assert_eq!(recovery.safety, Some(Bytes::copy_from_slice(&200_u64.to_le_bytes())));
    let live: Vec<BodyRef> = (198..=200).map(|height| body_of(height).reference).collect();
    assert_eq!(recovery.bodies, live);
}

/// ★ A log that was set back goes on, for its member follows. It grows past the record that it
/// lacks, and prunes the place where that would stand: whoever remembers that it was missed is
/// believed.
#[test]
fn a_log_that_was_set_back_lacks_the_record_however_far_it_grows() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    (1..=3).for_each(|height| one_height(&mut journal, height, 0).expect("works"));
    let old = disk.copy();
    (4..=6).for_each(|height| one_height(&mut journal, height, 0).expect("works"));
    let mark = journal.committed().expect("some");
    drop(journal);
    let (mut journal, _) = reopen(&old).expect("opened");
    (4..=200).for_each(|height| one_height(&mut journal, height, 0).expect("works"));
    drop(journal);
    let set_back = |disk: &MemoryDisk, is_missed| {
        let witnessed = Some(Witnessed { mark, is_exact: false, is_missed });
        let [log, bodies] = [disk, disk].map(|disk| Box::new(disk.clone()));
        let safeguards = Safeguards { copy: None, witnessed };
        let opened =
            Journal::open_guarded(log, bodies, &Owner::nobody(), config(), None, safeguards);
        opened.expect("opened").2.set_back.map(|set_back| set_back.mark)
    };
    assert_eq!(set_back(&old, true), Some(mark));
    assert_eq!(set_back(&old, false), None, "pruned, as the record of a whole log may be");
    assert_eq!(set_back(&disk, true), None, "the newest, byte for byte");
}

/// A body that a snapshot made superfluous while it was still being written is released all the
/// same.
#[test]
fn what_is_released_in_the_group_that_stores_it_is_gone() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    write_and_commit(&mut journal, &[Entry::Body(body_of(1)), release(2, 1)]).expect("works");
    assert!(!journal.is_live(&body_of(1).reference));
    for height in 2..=100 {
        one_height(&mut journal, height, 0).expect("works");
    }
    assert!(journal.stats().bytes_used <= KEPT + 2 * 2_048, "it keeps nothing from being pruned");
}

/// ★ What was not released stays, with everything after it.
fn nothing_live_is_given_up() -> Check {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    for height in 1..=80 {
        one_height(&mut journal, height, 20).expect("works");
    }
    drop(journal);
    disk.crash(&mut || true);
    let (mut journal, recovery) = reopen(&disk).map_err(|error| error.to_string())?;
    let live = body_of(20).reference;
    ensure(recovery.bodies.contains(&live), "a live body is forgotten")?;
    let found = read_one(&mut journal, ReadItem::Body(live)).map_err(|e| e.to_string())?;
    ensure(found == Some(body_of(20).raw.clone()), "a live body is gone")?;
    // In the end it is executed too, and nothing is in the way any more.
    write_and_commit(&mut journal, &[release(78, 20)]).expect("works");
    let used = journal.stats().bytes_used;
    ensure(used <= KEPT + 2 * 2_048, format!("{used} bytes are kept for nothing"))
}

/// ★ The latest record of each kind survives the segment that it was written to.
fn the_latest_records_move_on() -> Check {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    write_and_commit(&mut journal, &[incarnation(), slot(3, b"slot 3")]).expect("works");
    for height in 1..=120 {
        one_height(&mut journal, height, 0).expect("works");
    }
    drop(journal);
    disk.crash(&mut || true);
    let (_, recovery) = reopen(&disk).map_err(|error| error.to_string())?;
    ensure(recovery.incarnation == Some(Bytes::from("start 7")), "the count of starts is lost")?;
    let last = Bytes::copy_from_slice(&120_u64.to_le_bytes());
    ensure(recovery.safety == Some(last), "the last promise is lost")?;
    ensure(recovery.slots == [Bytes::from("slot 3")], "the promise about a slot is lost")
}

/// ★ Whatever step of writing, pruning and using again fails, and whatever of it reached the
/// disk: the log opens, with every promise that was acknowledged and every body that is live.
fn a_crash_at_any_step_harms_nothing() -> Check {
    let count = |faults: &Faults| {
        [faults.writes(), faults.syncs(), faults.directory_syncs(), faults.name_changes()]
    };
    let kinds: [fn(u64) -> Fault; 4] = [
        |nth| Fault::FailWrite { nth },
        |nth| Fault::FailSync { nth },
        |nth| Fault::FailDirectorySync { nth },
        |nth| Fault::FailNameChange { nth },
    ];
    let (_, whole) = run_until(Vec::new(), &mut |_| {});
    let [writes, syncs, directory_syncs, name_changes] = count(&whole);
    ensure(name_changes > 10, format!("{name_changes} names were changed"))?;
    for (kind, steps) in kinds.iter().zip([writes, syncs, directory_syncs, name_changes]) {
        for nth in 0..steps {
            for lose in [true, false] {
                let mut done = 0;
                let (disk, _) = run_until(vec![kind(nth)], &mut |height| done = height);
                if lose {
                    disk.crash(&mut || true);
                }
                let place = || format!("{:?}, {lose}: ", kind(nth));
                let (_, recovery) = reopen(&disk).map_err(|e| format!("{}{e}", place()))?;
                let promise = recovery.safety.as_deref().and_then(|bytes| bytes.try_into().ok());
                let promised = promise.map_or(0, u64::from_le_bytes);
                ensure(promised >= done, format!("{}promise {done} is {promised}", place()))?;
                // The height under way may have released one more.
                let live = done.saturating_sub(1).max(1)..=done;
                for height in live {
                    let there = recovery.bodies.contains(&body_of(height).reference);
                    ensure(there, format!("{}the live body of {height} is gone", place()))?;
                }
            }
        }
    }
    Ok(())
}

/// Writes heights until something fails; `acknowledged` hears of each that was.
fn run_until(plan: Vec<Fault>, acknowledged: &mut dyn FnMut(u64)) -> (MemoryDisk, Faults) {
    let memory = MemoryDisk::new();
    let disk = FaultyDisk::new(memory.clone(), plan);
    let faults = disk.faults();
    let opened =
        Journal::open(Box::new(disk.clone()), Box::new(disk), &Owner::nobody(), config(), None);
    if let Ok((mut journal, _)) = opened {
        for height in 1..=60 {
            if one_height(&mut journal, height, 0).is_err() {
                break;
            }
            acknowledged(height);
        }
    }
    (memory, faults)
}

#[test]
fn live_bodies_stay() {
    nothing_live_is_given_up().unwrap();
}

#[test]
fn latest_records_move_on() {
    the_latest_records_move_on().unwrap();
}

#[test]
fn crashes_between_any_two_steps_are_survived() {
    a_crash_at_any_step_harms_nothing().unwrap();
}

/// After pruning as before it: a hole in the log is no shorter log. Bodies others have.
#[test]
fn a_missing_segment_is_corruption_wherever_the_log_starts() {
    let build = || {
        let disk = MemoryDisk::new();
        let (mut journal, _) = reopen(&disk).expect("opened");
        for height in 1..=80 {
            one_height(&mut journal, height, 0).expect("works");
        }
        disk
    };
    for log in ["log-0", "body-0"] {
        let is_ours = |name: &String| name.starts_with(log);
        let segments: Vec<String> =
            build().list().expect("listed").into_iter().filter(is_ours).collect();
        assert!(segments.len() >= 3 && !segments[0].ends_with("-000000000001"), "{segments:?}");
        for gone in &segments[..segments.len() - 1] {
            let mut disk = build();
            disk.remove(gone).expect("removed");
            match reopen(&disk).map(|(_, recovery)| recovery) {
                Err(StorageError::Corrupt { .. }) if log == "log-0" => {}
                Ok(_) if log == "body-0" => {}
                other => panic!("{gone} is missing and recovery said {other:?}"),
            }
        }
    }
}

#[test]
fn a_body_that_is_stored_again_is_live_again() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    let again = body(999, &[9; 300]);
    let executed = vec![(Height(1), vec![again.reference])];
    let release = Entry::Release(Release { below: Height(2), bodies: executed });
    for entry in [Entry::Body(Arc::clone(&again)), release, Entry::Body(Arc::clone(&again))] {
        write_and_commit(&mut journal, &[entry]).expect("works");
    }
    for height in 2..=80 {
        one_height(&mut journal, height, 0).expect("works");
    }
    drop(journal);
    let (_, recovery) = reopen(&disk).expect("opened");
    assert!(recovery.bodies.contains(&again.reference));
}

/// The bodies' files are gone, the promises are there: what is kept for others begins anew.
#[test]
fn lost_bodies_leave_promises_and_decisions() {
    let (disk, bodies) = (MemoryDisk::new(), MemoryDisk::new());
    let executed = |height| ExecutedUpTo {
        header: Header { height: Height(height), ..Header::default() },
        decided: Bytes::new(),
        operations: 0,
        recent: Vec::new(),
    };
    let open = |bodies: &MemoryDisk| {
        let executed = Some(executed(10));
        Journal::open(
            Box::new(disk.clone()),
            Box::new(bodies.clone()),
            &Owner::nobody(),
            config(),
            executed,
        )
    };
    let (mut journal, _) = open(&bodies).expect("opened");
    for height in 1..=12 {
        one_height(&mut journal, height, 0).expect("works");
    }
    drop(journal);
    let bodies = MemoryDisk::new();
    for _ in 0..2 {
        let (journal, recovery) = open(&bodies).expect("opened");
        assert_eq!(recovery.safety, Some(Bytes::copy_from_slice(&12_u64.to_le_bytes())));
        assert_eq!(recovery.decided.len(), 2);
        assert_eq!(recovery.bodies, []);
        assert_eq!(journal.stats().oldest, Height(11), "bodies up to 10 are not to be had here");
    }
}

/// Files that an earlier run set aside are used, those of another size are not kept.
#[test]
fn a_restart_takes_over_what_was_set_aside() {
    let disk = MemoryDisk::new();
    let (mut journal, _) = reopen(&disk).expect("opened");
    for height in 1..=80 {
        one_height(&mut journal, height, 0).expect("works");
    }
    drop(journal);
    let spares = || -> usize {
        disk.list().expect("listed").iter().filter(|name| name.contains("spare")).count()
    };
    assert!(spares() > 0);
    let other = LogConfig { segment_bytes: 4_096, ..config() };
    drop(reopen(&disk).expect("opened"));
    assert!(spares() > 0);
    let opened = Journal::open(
        Box::new(disk.clone()),
        Box::new(disk.clone()),
        &Owner::nobody(),
        other,
        None,
    );
    drop(opened.expect("opened"));
    assert_eq!(spares(), 0);
}

mod mutants {
    use super::*;
    use quorate_crypto::mutants::{Mutant, set};

    #[test]
    fn every_rule_is_guarded() {
        let checks: [(Mutant, fn() -> Check); 3] = [
            (Mutant::PruneUnexecuted, nothing_live_is_given_up),
            (Mutant::PruneLatestRecord, the_latest_records_move_on),
            (Mutant::PruneBeforeCommit, a_crash_at_any_step_harms_nothing),
        ];
        for (mutant, check) in checks {
            check().unwrap();
            set(Some(mutant));
            let result = check();
            set(None);
            assert!(result.is_err(), "{mutant:?} went unnoticed");
        }
    }
}

#[test]
fn less_is_kept_from_the_next_commit_on() {
    let disk = MemoryDisk::new();
    let all = LogConfig { retention_bytes: u64::MAX, ..config() };
    let [log, bodies] = [&disk, &disk].map(|disk| Box::new(disk.clone()));
    let opened = Journal::open(log, bodies, &Owner::nobody(), all, None);
    let (mut journal, _) = opened.expect("opened");
    (1..=80).for_each(|height| one_height(&mut journal, height, 0).expect("works"));
    let before = journal.stats();
    assert!(before.bytes_used > 3 * KEPT && before.oldest == Height(1), "{before:?}");
    journal.retain(KEPT);
    journal.commit().expect("works");
    let after = journal.stats();
    assert!(after.bytes_used <= KEPT + 2 * 2_048, "{after:?}");
    assert!(after.oldest > Height(40), "{after:?}");
}
