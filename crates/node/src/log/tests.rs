use super::*;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_crypto::hash;
use quorate_types::machine::RecordKind;
use quorate_types::{Height, ReplicaId};
use std::thread;

/// What happened, in order, on the disk and behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Happened {
    Wrote(&'static str),
    Synced,
    Sent(u8),
    Executed,
    Stored(u64),
    Read(u64),
}

#[derive(Clone, Default)]
struct Journal {
    events: Arc<Mutex<Vec<Happened>>>,
}

impl Journal {
    fn note(&self, happened: Happened) {
        self.events.lock().push(happened);
    }
}

/// Whether the disk gets on with its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    /// It syncs nothing until it is released.
    Held,
    Free,
    Full,
}

/// What a disk that is held waits for.
#[derive(Clone)]
struct Gate(Arc<(Mutex<Disk>, Condvar)>);

impl Gate {
    fn release(&self) {
        let (disk, changed) = &*self.0;
        *disk.lock() = Disk::Free;
        changed.notify_all();
    }

    fn pass(&self) -> Disk {
        let (disk, changed) = &*self.0;
        let mut disk = disk.lock();
        changed.wait_while(&mut disk, |disk| *disk == Disk::Held);
        *disk
    }
}

/// A disk behind a gate.
struct GatedDevice {
    journal: Journal,
    gate: Gate,
}

impl Device for GatedDevice {
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.journal.note(Happened::Wrote(match entry {
            Entry::Record(_) => "record",
            Entry::Decided(_) => "decided",
            Entry::Body(_) => "body",
            Entry::Release(_) => "release",
        }));
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StorageError> {
        if self.gate.pass() == Disk::Full {
            return Err(StorageError::Full { action: "write", file: "log-1".into() });
        }
        self.journal.note(Happened::Synced);
        Ok(())
    }

    fn stats(&self) -> JournalStats {
        JournalStats::default()
    }
}

struct Notes(Journal);

impl Outlet for Notes {
    fn send(&self, outgoing: Outgoing) {
        self.0.note(Happened::Sent(outgoing.frame.0[0][0]));
    }
    fn execute(&self, _task: Task) {
        self.0.note(Happened::Executed);
    }
    fn stored(&self, body: BodyRef) {
        self.0.note(Happened::Stored(body.sequence));
    }
    fn read(&self, request: ReadRequest) {
        self.0.note(Happened::Read(request.ticket));
    }
    fn committed(&self, _stats: JournalStats) {}
}

fn record() -> Record {
    Record { kind: RecordKind::Safety, bytes: Bytes::from_static(b"promise") }
}

fn send(lane: Lane, mark: u8) -> Outgoing {
    Outgoing { to: Recipients::All, lane, frame: Frame(vec![Bytes::from(vec![mark])]) }
}

fn body(sequence: u64) -> Arc<Body> {
    let raw = Bytes::from(vec![0; 400_000]);
    let reference = BodyRef { author: ReplicaId(0), sequence, digest: hash(&raw) };
    Arc::new(Body { reference, raw, requests: Vec::new() })
}

/// A log thread at work.
struct Running {
    queue: LogQueue,
    journal: Journal,
    gate: Gate,
    thread: thread::JoinHandle<Result<(), StorageError>>,
}

fn start(disk: Disk) -> Running {
    let journal = Journal::default();
    let gate = Gate(Arc::new((Mutex::new(disk), Condvar::new())));
    let device = GatedDevice { journal: journal.clone(), gate: gate.clone() };
    let (queue, log) = log_thread(Box::new(device), Box::new(Notes(journal.clone())));
    Running { queue, journal, gate, thread: thread::spawn(move || log.run()) }
}

impl Running {
    /// Waits until a group has been written. Of a disk that is held, what is queued now makes the next.
    fn wait_for_a_write(&self) {
        while self.journal.events.lock().is_empty() {
            thread::yield_now();
        }
    }

    /// Lets the disk get on, and the thread come to its end; what happened.
    fn end(self) -> Vec<Happened> {
        self.gate.release();
        drop(self.queue);
        self.thread.join().unwrap().unwrap();
        let events = self.journal.events.lock();
        events.clone()
    }
}

/// The rule itself, for any run: when a send left, every record handed over before it was synced.
fn sends_that_left_too_early(events: &[Happened]) -> usize {
    let mut synced_since_record = true;
    let mut early = 0;
    for event in events {
        match event {
            Happened::Wrote("record") => synced_since_record = false,
            Happened::Synced => synced_since_record = true,
            Happened::Sent(_) if !synced_since_record => early += 1,
            _ => {}
        }
    }
    early
}

fn vote_behind_a_slow_disk() -> Vec<Happened> {
    let mut log = start(Disk::Held);
    log.queue.persist(record());
    log.wait_for_a_write();
    log.queue.persist(record());
    assert!(log.queue.hold_back(send(Lane::Votes, 1)).is_none());
    log.end()
}

#[test]
fn nothing_leaves_before_the_record_is_durable() {
    let events = vote_behind_a_slow_disk();
    let (wrote, synced) = (Happened::Wrote("record"), Happened::Synced);
    assert_eq!(events, [wrote.clone(), synced.clone(), wrote, synced, Happened::Sent(1)]);
    assert_eq!(sends_that_left_too_early(&events), 0);
}

#[cfg(feature = "mutants")]
#[test]
fn the_mutant_that_releases_early_is_noticed() {
    mutants::set(Some(Mutant::HostSendsEarly));
    let events = vote_behind_a_slow_disk();
    mutants::set(None);
    assert_eq!(sends_that_left_too_early(&events), 1);
}

/// ★ What a height rests on is durable before it is executed: the state must not be ahead of the log.
fn check_execution_waits() {
    let mut log = start(Disk::Held);
    log.queue.persist(record());
    assert!(log.queue.hold_task(Task::Snapshot(Height(1))).is_none(), "it waits");
    assert_eq!(log.end(), [Happened::Wrote("record"), Happened::Synced, Happened::Executed]);
}

#[test]
fn nothing_is_executed_before_the_records_before_it_are_durable() {
    check_execution_waits();
    let mut log = start(Disk::Free);
    assert!(log.queue.hold_task(Task::Snapshot(Height(1))).is_some(), "nothing is under way");
    assert_eq!(log.end(), []);
}

#[cfg(feature = "mutants")]
#[test]
fn executing_early_is_noticed() {
    mutants::assert_noticed(Mutant::HostExecutesEarly, check_execution_waits);
}

#[test]
fn what_is_queued_shares_one_sync_and_keeps_its_order() {
    let mut log = start(Disk::Held);
    log.queue.persist(record());
    log.wait_for_a_write();
    for mark in 1..=3 {
        assert!(log.queue.hold_back(send(Lane::Consensus, mark)).is_none());
        log.queue.persist(record());
    }
    let bulk = log.queue.hold_back(send(Lane::Bulk, 9));
    assert!(bulk.is_some(), "bulk waits for nothing");
    let events = log.end();
    assert_eq!(events.iter().filter(|event| **event == Happened::Synced).count(), 2);
    let sent: Vec<_> = events.iter().filter(|event| matches!(event, Happened::Sent(_))).collect();
    assert_eq!(sent, [&Happened::Sent(1), &Happened::Sent(2), &Happened::Sent(3)]);
    assert_eq!(sends_that_left_too_early(&events), 0);
}

#[test]
fn a_vote_does_not_wait_for_the_bodies_queued_before_it() {
    let mut log = start(Disk::Held);
    for sequence in 0..20 {
        log.queue.store(body(sequence));
    }
    assert!(log.queue.backlog_bytes() >= 400_000);
    log.queue.persist(record());
    assert!(log.queue.hold_back(send(Lane::Votes, 1)).is_none());
    let events = log.end();
    let sent = events.iter().position(|event| *event == Happened::Sent(1)).unwrap();
    let before = events[..sent].iter().filter(|event| **event == Happened::Wrote("body")).count();
    assert!(before <= 6, "{before} bodies were written before the vote left");
    let stored = events.iter().filter(|event| matches!(event, Happened::Stored(_))).count();
    assert_eq!(stored, 20);
}

#[test]
fn a_body_is_answered_and_a_read_follows_what_was_appended() {
    let mut log = start(Disk::Free);
    log.queue.append(DecidedRecord { height: Height(1), bytes: Bytes::from_static(b"decided") });
    log.queue.store(body(7));
    log.queue.read(ReadRequest { ticket: 5, items: Vec::new() });
    let events = log.end();
    let order = |wanted| events.iter().position(|event| *event == wanted).unwrap();
    assert!(order(Happened::Wrote("decided")) < order(Happened::Read(5)));
    assert!(order(Happened::Synced) < order(Happened::Stored(7)));
}

#[test]
fn after_a_failed_sync_nothing_leaves_ever() {
    let Running { mut queue, journal, thread, .. } = start(Disk::Full);
    queue.persist(record());
    assert!(queue.hold_back(send(Lane::Votes, 1)).is_none());
    queue.store(body(1));
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no space left to write log-1: free some space, then start the replica again"
    );
    assert!(queue.hold_back(send(Lane::Votes, 2)).is_none(), "the barrier stays shut");
    let gone = |event: &Happened| matches!(event, Happened::Sent(_) | Happened::Stored(_));
    assert!(!journal.events.lock().iter().any(gone));
}
