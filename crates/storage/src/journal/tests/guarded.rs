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
    let (journal, recovery, findings) = folder.open().expect("opened");
    assert!(findings.set_back.is_none() && findings.promises_restored > 0, "{findings:?}");
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
