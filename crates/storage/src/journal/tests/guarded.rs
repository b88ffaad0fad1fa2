//! Logs that were damaged, cut or set back, with a copy of their promises and a witness beside
//! them.

use super::*;
use crate::journal::{Findings, Safeguards, SetBack, Witnessed};
use crate::log::LogMark;
use quorate_crypto::mutants::{Mutant, assert_noticed};

/// Everything that a validator's journal stands on.
#[derive(Default)]
struct Folder {
    log: MemoryDisk,
    bodies: MemoryDisk,
    copy: MemoryDisk,
    witnessed: Option<Witnessed>,
}

type Opened = Result<(Journal, Recovery, Findings), StorageError>;

impl Folder {
    fn open(&self) -> Opened {
        let copy: Box<dyn Disk> = Box::new(self.copy.clone());
        let safeguards = Safeguards { copy: Some(copy), witnessed: self.witnessed };
        self.open_with(safeguards)
    }

    fn open_with(&self, safeguards: Safeguards) -> Opened {
        let (log, bodies) = (Box::new(self.log.clone()), Box::new(self.bodies.clone()));
        let config = LogConfig { segment_bytes: 1_024, ..SMALL };
        Journal::open_guarded(log, bodies, &Owner::nobody(), config, None, safeguards)
    }

    fn copy(&self) -> Self {
        let Self { log, bodies, copy, witnessed } = self;
        Self { log: log.copy(), bodies: bodies.copy(), copy: copy.copy(), witnessed: *witnessed }
    }

    /// Writes these groups, and has the witness told of each.
    fn write(&mut self, groups: &[Vec<Entry>]) {
        let (mut journal, _, findings) = self.open().expect("opened");
        assert_eq!(findings.set_back, None);
        journal.begin().expect("works");
        for group in groups {
            write_and_commit(&mut journal, group).expect("works");
        }
        journal.close().expect("works");
        let mark = journal.committed().expect("something is");
        self.witnessed = Some(Witnessed { mark, is_exact: true, is_missed: false });
    }

    fn written(groups: &[Vec<Entry>]) -> Self {
        let mut folder = Self::default();
        folder.write(groups);
        folder
    }
}

/// More than fits one segment, with records of every kind.
fn promises() -> Vec<Vec<Entry>> {
    let incarnation = Record { kind: RecordKind::Incarnation, bytes: Bytes::from("start 2") };
    vec![
        vec![safety(b"one"), slot(7, b"slot 7")],
        vec![Entry::Record(incarnation), decided(1, &[1; 200])],
        vec![slot(8, &[8; 300]), safety(b"two")],
        vec![decided(2, &[2; 200]), Entry::Body(body(1, &[1; 90]))],
        vec![slot(7, b"slot 263"), safety(&[3; 200])],
    ]
}

fn promised(recovery: Recovery) -> Recovery {
    Recovery { decided: Vec::new(), ..recovery }
}

#[test]
fn whatever_bit_of_the_log_decays_every_promise_is_there() {
    let folder = Folder::written(&promises());
    let sound = folder.copy().open().expect("opened").1;
    assert_eq!(sound, model(&promises().concat()));
    let mut repaired = 0;
    for name in folder.log.list().expect("listed") {
        for offset in 0..1_024 {
            let damaged = folder.copy();
            damaged.log.flip(&name, offset, u8::try_from(offset % 8).expect("small"));
            let (journal, recovery, findings) =
                damaged.open().unwrap_or_else(|error| panic!("{name}, byte {offset}: {error}"));
            assert_eq!(findings.set_back, None, "{name}, byte {offset}");
            assert!(sound.decided.starts_with(&recovery.decided), "{name}, byte {offset}");
            assert_eq!(promised(recovery), promised(sound.clone()), "{name}, byte {offset}");
            repaired += u64::from(findings.records_damaged > 0);
            let used = journal.stats().bytes_used;
            assert!(used <= 1_024 * 10, "{name}, byte {offset}: {used} bytes of two small logs");
            drop(journal);
            // What was repaired stays so, without the copy too.
            let (_, again, _) = damaged.open_with(Safeguards::default()).expect("opened");
            assert_eq!(promised(again), promised(sound.clone()), "{name}, byte {offset}");
        }
    }
    assert!(repaired > 900, "only {repaired} flips were noticed");
}

/// ★ What the copy does not reach it says nothing of: where the damage is later, and where the log
/// may have had more at its end.
fn a_stale_copy_repairs_nothing() {
    let mut folder = Folder::written(&promises()[..3]);
    let stale = folder.copy.copy();
    folder.write(&[promises()[4].clone(), vec![safety(b"newest")]]);
    folder.copy = stale;

    let last = folder.log.list().expect("listed").pop().expect("some");
    let cut = folder.copy();
    cut.log.open(&last).expect("there").write_at(0, &[&[0; 1_024]]).expect("written");
    let findings = cut.open().expect("opened").2;
    assert!(findings.set_back.is_some(), "the copy ends before the cut");

    let damaged = Folder { witnessed: None, ..folder.copy() };
    damaged.log.flip(&last, 168 + 100, 0);
    match damaged.open() {
        Err(StorageError::Corrupt { .. }) => {}
        other => panic!("{:?}", other.map(|(_, recovery, _)| recovery)),
    }

    // A witness that may have missed something: the copy and it lag behind one log alike.
    let mut lagging = Folder::written(&promises()[..3]);
    let mark = lagging.witnessed.expect("some").mark;
    lagging.witnessed = Some(Witnessed { mark, is_exact: false, is_missed: false });
    for name in lagging.log.list().expect("listed") {
        lagging.log.open(&name).expect("there").write_at(168, &[&[0; 800]]).expect("written");
    }
    let findings = lagging.open().expect("opened").2;
    assert!(findings.set_back.is_some(), "nobody knows what else was there");
}

/// ★ Older, cut, emptied, or gone on from elsewhere: a log that lacks what was committed is not
/// signed with, unless the copy has it for certain.
fn a_log_set_back_is_noticed() {
    let mut folder = Folder::written(&promises()[..2]);
    let old = folder.copy();
    folder.write(&promises()[2..]);
    let committed = folder.witnessed;
    let set_back = |folder: &Folder| {
        let opened = Folder { witnessed: committed, ..folder.copy() }.open();
        opened.expect("opened").2.set_back
    };

    let SetBack { committed: marked, found, .. } = set_back(&old).expect("an old copy of all");
    assert!(marked == committed.expect("some").mark.sequence && found < Some(marked));
    let emptied = Folder { bodies: folder.bodies.copy(), ..Folder::default() };
    assert!(set_back(&emptied).is_some(), "nothing");
    // An old copy that somebody went on from.
    let mut forked = old.copy();
    forked.write(&[vec![safety(b"another")], vec![safety(&[7; 1_000])], promises()[4].clone()]);
    forked.write(&[vec![safety(b"and more")], promises()[4].clone()]);
    let SetBack { committed: marked, found, .. } = set_back(&forked).expect("a fork");
    assert!(found >= Some(marked), "as long as what was committed");
    // Without a witness, the copy is one.
    let old_log = Folder { log: old.log.copy(), witnessed: None, ..folder.copy() };
    assert!(old_log.open().expect("opened").2.set_back.is_some());

    assert_eq!(set_back(&folder), None, "the newest, byte for byte");
}

#[test]
fn stale_copies_repair_nothing() {
    a_stale_copy_repairs_nothing();
    assert_noticed(Mutant::RepairFromStaleCopy, a_stale_copy_repairs_nothing);
}

#[test]
fn logs_set_back_are_noticed() {
    a_log_set_back_is_noticed();
    assert_noticed(Mutant::SignAfterSetBack, a_log_set_back_is_noticed);
}

#[test]
fn a_cut_is_made_up_for_where_the_copy_has_all() {
    let mut folder = Folder::written(&promises());
    let sound = folder.copy().open().expect("opened").1;
    let last = folder.log.list().expect("listed").pop().expect("some");
    folder.log.remove(&last).expect("removed");
    let left = folder.copy().open_with(Safeguards::default()).expect("opened").0;
    let left = left.written().expect("some").sequence;
    let committed = folder.witnessed.expect("some").mark.sequence;
    let (journal, recovery, findings) = folder.open().expect("opened");
    assert!(findings.set_back.is_none() && findings.promises_restored > 0, "{findings:?}");
    assert_eq!(findings.records_damaged, committed - left, "each that is missing");
    assert_eq!(promised(recovery), promised(sound));
    drop(journal);
    // Numbers are not used twice, and what is committed afterwards is no fork.
    folder.write(&[vec![safety(b"after the cut")]]);
    let (_, recovery, findings) = folder.open().expect("opened");
    assert_eq!(findings.set_back, None);
    assert_eq!(recovery.safety, Some(Bytes::from("after the cut")));
}

#[test]
fn a_restored_folder_signs_again() {
    let mut folder = Folder::written(&promises()[..2]);
    let old = folder.copy();
    folder.write(&promises()[2..]);
    let newest = folder.copy();
    folder.log = old.log;
    folder.copy = old.copy;
    for _ in 0..2 {
        let (mut journal, _, findings) = folder.open().expect("opened");
        assert!(findings.set_back.is_some(), "also when it went on without signing");
        write_and_commit(&mut journal, &[safety(&[4; 900]), safety(&[5; 900])]).expect("works");
    }
    let restored = Folder { witnessed: folder.witnessed, ..newest };
    let (_, recovery, findings) = restored.open().expect("opened");
    assert_eq!((findings, recovery), (Findings::default(), model(&promises().concat())));
}

#[test]
fn a_lost_or_damaged_copy_is_written_anew() {
    for offset in (0..1_500).step_by(7) {
        let folder = Folder::written(&promises());
        for name in folder.copy.list().expect("listed") {
            folder.copy.flip(&name, offset, 1);
        }
        let findings = folder.open().expect("opened").2;
        assert_eq!(findings, Findings::default(), "byte {offset}");
        folder.log.flip("log-000000000001", 168 + 64, 1);
        let (_, recovery, findings) = folder.open().expect("opened");
        assert!(findings.records_damaged > 0 && findings.set_back.is_none(), "{findings:?}");
        assert_eq!(recovery.safety, Some(Bytes::copy_from_slice(&[3; 200])));
    }
}

#[test]
fn the_copy_of_a_long_log_stays_small_and_whole() {
    let mut folder = Folder::default();
    let groups: Vec<Vec<Entry>> = (0..400_u64)
        .map(|n| vec![slot((n % 5) as u8, &n.to_le_bytes()), safety(&[9; 50])])
        .collect();
    folder.write(&groups);
    let segments = folder.copy.list().expect("listed").len();
    assert!(segments < 8, "{segments} segments of a copy");
    for name in folder.log.list().expect("listed") {
        folder.log.flip(&name, 200, 3);
    }
    let (_, recovery, findings) = folder.open().expect("opened");
    assert!(findings.records_damaged > 0 && findings.set_back.is_none(), "{findings:?}");
    assert_eq!(recovery, model(&groups.concat()));
}

#[test]
fn what_a_power_cut_left_of_the_copy_is_brought_level() {
    let mut folder = Folder::default();
    let (mut journal, _, _) = folder.open().expect("opened");
    for group in promises() {
        write_and_commit(&mut journal, &group).expect("works");
    }
    drop(journal);
    folder.log.crash(&mut || true);
    folder.copy.crash(&mut || true);
    let findings = folder.open().expect("opened").2;
    assert_eq!(findings, Findings::default());
    folder.write(&[]);
    folder.log.flip("log-000000000001", 168 + 64, 1);
    let (_, recovery, findings) = folder.open().expect("opened");
    assert!(findings.records_damaged > 0, "{findings:?}");
    assert_eq!(recovery.safety, Some(Bytes::copy_from_slice(&[3; 200])));
}

#[test]
fn a_damaged_log_of_nobody_knows_whom_is_not_taken_over() {
    let folder = Folder::written(&promises()[..1]);
    folder.log.flip("log-000000000001", 80, 1);
    let safeguards = Safeguards::default();
    let refused = folder.open_with(safeguards).err().expect("refused");
    assert!(matches!(refused, StorageError::Corrupt { .. }), "{refused}");
    // The copy says whose it is.
    assert_eq!(folder.open().expect("opened").2.set_back, None);
}

#[test]
fn damaged_bodies_are_left_out() {
    let bodies: Vec<Entry> = (0..12).map(|n| Entry::Body(body(n, &[n as u8; 150]))).collect();
    let folder = Folder::written(&bodies.iter().map(|body| vec![body.clone()]).collect::<Vec<_>>());
    let names = folder.bodies.list().expect("listed");
    assert!(names.len() > 2, "{names:?}");
    let all = folder.copy().open().expect("opened").1.bodies;
    for name in &names {
        let damaged = folder.copy();
        damaged.bodies.flip(name, 300, 2);
        let (mut journal, recovery, findings) = damaged.open().expect("opened");
        assert!(recovery.bodies.len() >= all.len() - 1, "{name}: {:?}", recovery.bodies);
        assert_eq!(findings.bodies_damaged, u64::from(recovery.bodies.len() < all.len()));
        let missing = all.iter().find(|name| !recovery.bodies.contains(name));
        let written = bodies.iter().find(|entry| match (entry, missing) {
            (Entry::Body(body), Some(missing)) => body.reference == *missing,
            _ => false,
        });
        if let Some(again) = written {
            write_and_commit(&mut journal, std::slice::from_ref(again)).expect("fetched again");
            drop(journal);
            assert_eq!(damaged.open().expect("opened").1.bodies, all);
        }
    }
}

#[test]
fn marks_name_records() {
    let folder = Folder::written(&promises());
    let LogMark { sequence, .. } = folder.witnessed.expect("some").mark;
    let (journal, _, _) = folder.open().expect("opened");
    assert_eq!(journal.records.find_mark(sequence), Ok(folder.witnessed.map(|w| w.mark)));
    assert_eq!(journal.records.find_mark(sequence + 1), Ok(None));
    assert!(journal.records.find_mark(0).expect("read").is_some());
}

/// Cuts the last segment off the log.
fn cut(folder: &mut Folder) {
    let last = folder.log.list().expect("listed").pop().expect("some");
    folder.log.remove(&last).expect("removed");
}

/// Each kind of promise anew.
fn renewed() -> Vec<Vec<Entry>> {
    let incarnation = Record { kind: RecordKind::Incarnation, bytes: Bytes::from("start 3") };
    let slots = [slot(7, b"slot 519"), slot(8, b"slot 264")];
    vec![slots.to_vec(), vec![Entry::Record(incarnation), safety(&[4; 300])]]
}

/// ★ After a power cut the copy lags behind: the next start brings it level, whatever of it is
/// there, so that it makes up for what happens to the log then.
#[test]
fn a_copy_that_lagged_behind_is_as_good_as_new() {
    for stale in [false, true] {
        let mut folder = Folder::written(&promises());
        let old = folder.copy.copy();
        folder.write(&renewed());
        let sound = folder.copy().open().expect("opened").1;
        folder.copy = if stale { old } else { MemoryDisk::new() };
        folder.write(&[]);
        cut(&mut folder);
        let (_, recovery, findings) = folder.open().expect("opened");
        assert!(findings.set_back.is_none() && findings.promises_restored > 0, "{findings:?}");
        assert_eq!(promised(recovery), promised(sound), "stale is {stale}");
    }
}

#[test]
fn a_copy_that_is_level_is_left_as_it_is() {
    let folder = Folder::written(&promises());
    let files = folder.copy.list().expect("listed");
    for _ in 0..3 {
        drop(folder.open().expect("opened"));
        assert_eq!(folder.copy.list().expect("listed"), files);
    }
}

/// The copy has no sync of its own in each group: it has one in the end.
#[test]
fn the_copy_is_durable_when_the_journal_is_closed() {
    let folder = Folder::default();
    let (mut journal, _, _) = folder.open().expect("opened");
    for group in promises() {
        write_and_commit(&mut journal, &group).expect("works");
    }
    assert!(folder.copy.has_unsynced());
    journal.close().expect("works");
    assert!(!folder.copy.has_unsynced());
}

/// The copy names nothing that the log may lose: one that never began is not missed.
#[test]
fn a_journal_that_never_began_is_not_set_back() {
    let folder = Folder::default();
    drop(folder.open().expect("opened"));
    folder.log.crash(&mut || true);
    let (_, recovery, findings) = folder.open().expect("opened");
    assert_eq!((recovery, findings), (Recovery::default(), Findings::default()));
}

#[test]
fn a_damaged_copy_goes_when_it_is_begun_anew() {
    let folder = Folder::written(&promises());
    let damaged = folder.copy.list().expect("listed").remove(0);
    folder.copy.flip(&damaged, 168 + 70, 1);
    drop(folder.open().expect("opened"));
    assert!(!folder.copy.list().expect("listed").contains(&damaged));
}

#[test]
fn the_copy_has_small_files_beside_a_log_of_large_ones() {
    let (log, copy) = (MemoryDisk::new(), MemoryDisk::new());
    let disk = || -> Box<dyn Disk> { Box::new(log.clone()) };
    let config = LogConfig { segment_bytes: 4 << 20, ..SMALL };
    let safeguards = Safeguards { copy: Some(Box::new(copy.clone())), witnessed: None };
    let opened = Journal::open_guarded(disk(), disk(), &Owner::nobody(), config, None, safeguards);
    drop(opened.expect("opened"));
    let name = copy.list().expect("listed").remove(0);
    assert_eq!(copy.open(&name).expect("there").length().expect("known"), 1 << 20);
}

/// Without a witness the copy is anchored in the log by the record that both have: up to there it
/// makes up for any damage.
#[test]
fn a_copy_makes_up_for_damage_without_a_witness() {
    let folder = Folder { witnessed: None, ..Folder::written(&promises()) };
    let sound = folder.copy().open().expect("opened").1;
    let mut repaired = 0;
    for name in folder.log.list().expect("listed") {
        for offset in (0..1_024).step_by(5) {
            let damaged = folder.copy();
            damaged.log.flip(&name, offset, 2);
            let (_, recovery, findings) =
                damaged.open().unwrap_or_else(|error| panic!("{name}, byte {offset}: {error}"));
            // The last record is the one that both have.
            if findings.set_back.is_none() {
                assert_eq!(promised(recovery), promised(sound.clone()), "{name}, byte {offset}");
                repaired += u64::from(findings.records_damaged > 0);
            }
        }
    }
    assert!(repaired > 100, "only {repaired} flips were made up for");
}

/// ★ A copy that is older than the log takes no promise back: what it makes up for is missing, and
/// nothing newer of its kind is there.
#[test]
fn an_older_copy_takes_no_promise_back() {
    let mut folder = Folder::written(&promises()[..3]);
    let stale = folder.copy.copy();
    folder.write(&[vec![safety(b"newer"), slot(7, b"slot 263")], vec![slot(8, b"slot 264")]]);
    let sound = folder.copy().open().expect("opened").1;
    folder.copy = stale;
    let mut repaired = 0;
    for name in folder.log.list().expect("listed") {
        for offset in (0..1_024).step_by(3) {
            let damaged = folder.copy();
            damaged.log.flip(&name, offset, 4);
            match damaged.open() {
                Ok((_, recovery, findings)) if findings.set_back.is_none() => {
                    let place = format!("{name}, byte {offset}");
                    assert_eq!(promised(recovery), promised(sound.clone()), "{place}");
                    repaired += u64::from(findings.records_damaged > 0);
                }
                Ok(_) | Err(StorageError::Corrupt { .. }) => {}
                Err(error) => panic!("{name}, byte {offset}: {error}"),
            }
        }
    }
    assert!(repaired > 20, "only {repaired} flips were made up for");
}

/// ★ Whatever step of a repair fails: it is done again at the next start, and no promise is lost.
#[test]
fn a_repair_that_a_crash_interrupted_is_done_again() {
    let mut folder = Folder::written(&promises());
    let sound = folder.copy().open().expect("opened").1;
    cut(&mut folder);
    let kinds: [fn(u64) -> Fault; 4] = [
        // The start of the new segment is whole, and nothing behind it.
        |nth| Fault::TearWrite { nth, bytes: 200 },
        |nth| Fault::FailWrite { nth },
        |nth| Fault::FailSync { nth },
        |nth| Fault::FailDirectorySync { nth },
    ];
    let mut interrupted = 0;
    for (kind, nth) in kinds.iter().flat_map(|kind| (0..12).map(move |nth| (kind, nth))) {
        for lose in [true, false] {
            let tried = folder.copy();
            let log = FaultyDisk::new(tried.log.clone(), vec![kind(nth)]);
            let copy: Box<dyn Disk> = Box::new(tried.copy.clone());
            let safeguards = Safeguards { copy: Some(copy), witnessed: tried.witnessed };
            let config = LogConfig { segment_bytes: 1_024, ..SMALL };
            let bodies = Box::new(tried.bodies.clone());
            let owner = Owner::nobody();
            let opened =
                Journal::open_guarded(Box::new(log), bodies, &owner, config, None, safeguards);
            interrupted += u64::from(opened.is_err());
            drop(opened);
            if lose {
                tried.log.crash(&mut || true);
                tried.copy.crash(&mut || true);
            }
            let place = format!("{:?}, {lose}", kind(nth));
            let (_, recovery, findings) =
                tried.open().unwrap_or_else(|error| panic!("{place}: {error}"));
            assert_eq!(findings.set_back, None, "{place}");
            assert_eq!(promised(recovery), promised(sound.clone()), "{place}");
        }
    }
    assert!(interrupted > 5, "{interrupted} steps failed");
}

/// Two records that lie side by side are two.
#[test]
fn damaged_records_are_counted() {
    let folder = Folder::written(&promises());
    // The segment's own record and the first promise have 168 and 72 bytes.
    folder.log.flip("log-000000000001", 168 + 5, 1);
    folder.log.flip("log-000000000001", 168 + 72 + 5, 1);
    assert_eq!(folder.open().expect("opened").2.records_damaged, 2);
}

/// Bodies of which no file says whose they are may be anybody's: none of them is here.
#[test]
fn bodies_of_nobody_knows_whom_are_forgotten() {
    let stored = body(1, &[1; 90]);
    let group = |body: &Arc<Body>| vec![Entry::Body(Arc::clone(body))];
    let folder = Folder::written(&[group(&stored), group(&body(2, &[2; 90]))]);
    folder.bodies.flip("body-000000000001", 80, 1);
    let (mut journal, recovery, findings) = folder.open().expect("opened");
    assert_eq!((recovery.bodies, findings.bodies_damaged > 0), (vec![], true));
    assert_eq!(read_one(&mut journal, ReadItem::Body(stored.reference)), Ok(None));
    write_and_commit(&mut journal, &[Entry::Body(Arc::clone(&stored))]).expect("fetched again");
    let read = read_one(&mut journal, ReadItem::Body(stored.reference));
    assert_eq!(read, Ok(Some(stored.raw.clone())));
}

/// What is kept is written again once as much was appended, and not with each group.
#[test]
fn the_copy_is_rewritten_seldom() {
    let copy = FaultyDisk::new(MemoryDisk::new(), Vec::new());
    let written = copy.faults();
    let safeguards = Safeguards { copy: Some(Box::new(copy)), witnessed: None };
    let log = MemoryDisk::new();
    let disk = || -> Box<dyn Disk> { Box::new(log.clone()) };
    let config = LogConfig { segment_bytes: 1_024, ..SMALL };
    let opened = Journal::open_guarded(disk(), disk(), &Owner::nobody(), config, None, safeguards);
    let (mut journal, _, _) = opened.expect("opened");
    let large: Vec<Entry> = (0..5).map(|place| slot(place, &[place; 600])).collect();
    write_and_commit(&mut journal, &large).expect("works");
    let before = written.bytes();
    for n in 0..200_u8 {
        write_and_commit(&mut journal, &[safety(&[n; 10])]).expect("works");
    }
    let appended = written.bytes() - before;
    // A byte counts as its file is made and as it is written: 147,104 of them, and 192,136 where
    // half as much has to be appended in between.
    assert!(appended < 160_000, "{appended} bytes");
}

/// ★ A promise that was in the copy before it was in the log replaces the one before it there: when
/// a power cut takes it from the log, and that one decays, it is what the copy has.
#[test]
fn a_copy_that_is_ahead_takes_no_promise_back() {
    let folder = Folder::default();
    let config = LogConfig { segment_bytes: 4 << 20, ..SMALL };
    let open = |folder: &Folder| {
        let [log, bodies] = [&folder.log, &folder.bodies].map(|disk| Box::new(disk.clone()));
        let copy: Box<dyn Disk> = Box::new(folder.copy.clone());
        let safeguards = Safeguards { copy: Some(copy), witnessed: None };
        Journal::open_guarded(log, bodies, &Owner::nobody(), config.clone(), None, safeguards)
    };
    let (mut journal, _, _) = open(&folder).expect("opened");
    for promise in [safety(b"old"), slot(7, b"1"), safety(b"newer"), slot(7, b"2")] {
        write_and_commit(&mut journal, &[promise]).expect("works");
    }
    journal.close().expect("works");
    // Nothing of it is committed, but for what filled a segment of the copy.
    let ahead = [7; 600_000];
    journal.write(&safety(&ahead)).expect("buffered");
    journal.write(&slot(8, &ahead)).expect("buffered");
    drop(journal);
    folder.log.crash(&mut || true);
    let (_, recovery, findings) = open(&folder.copy()).expect("opened");
    assert_eq!(findings, Findings::default(), "the log is whole");
    assert_eq!(recovery.safety.as_deref(), Some(&b"newer"[..]), "nobody acted on more");
    // The records before the newer promise have 168, 64 + 8 and 64 + 8 bytes.
    folder.log.flip("log-000000000001", 168 + 72 + 72 + 64, 1);
    let (_, recovery, findings) = open(&folder).expect("opened");
    assert_eq!((findings.set_back, findings.records_damaged), (None, 1));
    assert_eq!(recovery.safety.as_deref(), Some(&ahead[..]));
}
