use super::*;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use quorate_crypto::hash;
use quorate_engine::Message;
use quorate_engine::host::{EffectPorts, dispatch};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{CombineJob, DecidedRecord, Halt, Record, RecordKind};
use quorate_types::{Body, Effect, Height, ReplicaId};
use std::thread;

/// Event on the disk or behind it, kept in order.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Happened {
    Wrote(&'static str),
    Synced,
    /// A send is on its way to its lane.
    Leaves,
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

/// The pace of a disk or a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It syncs or sends nothing until it is released.
    Held,
    Free,
    Full,
}

/// Gate that a disk or a lane waits at while it is held.
#[derive(Clone)]
struct Gate(Arc<(Mutex<Pace>, Condvar)>);

impl Gate {
    fn new(pace: Pace) -> Self {
        Self(Arc::new((Mutex::new(pace), Condvar::new())))
    }

    fn release(&self) {
        let (pace, changed) = &*self.0;
        *pace.lock() = Pace::Free;
        changed.notify_all();
    }

    fn pass(&self) -> Pace {
        let (pace, changed) = &*self.0;
        let mut pace = pace.lock();
        changed.wait_while(&mut pace, |pace| *pace == Pace::Held);
        *pace
    }
}

/// A disk behind a gate.
struct GatedDevice {
    journal: Journal,
    gate: Gate,
    is_quick: bool,
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
        if self.gate.pass() == Pace::Full {
            return Err(StorageError::Full { action: "write", file: "log-1".into() });
        }
        self.journal.note(Happened::Synced);
        Ok(())
    }

    fn stats(&self) -> JournalStats {
        JournalStats::default()
    }

    fn is_quick(&self, _bytes: usize) -> bool {
        self.is_quick
    }
}

/// The network's lanes and the other threads; a lane may be slow.
struct Notes {
    journal: Journal,
    lane: Gate,
}

impl Outlet for Notes {
    fn send(&self, outgoing: Outgoing) {
        self.journal.note(Happened::Leaves);
        self.lane.pass();
        self.journal.note(Happened::Sent(mark_of(&outgoing.frame)));
    }
    fn execute(&self, _task: Task) {
        self.journal.note(Happened::Executed);
    }
    fn stored(&self, body: BodyRef) {
        self.journal.note(Happened::Stored(body.sequence));
    }
    fn read(&self, request: ReadRequest) {
        self.journal.note(Happened::Read(request.ticket));
    }
    fn committed(&self, _stats: JournalStats) {}
}

/// Behind the length and the tag.
fn mark_of(frame: &Frame) -> u8 {
    frame.0.concat()[5]
}

fn persist() -> Effect<Message> {
    let bytes = Bytes::from_static(b"promise");
    Effect::Persist(Record { kind: RecordKind::Safety, bytes })
}

fn send(lane: Lane, mark: u8) -> Effect<Message> {
    let message = Message::FetchAvailable(u64::from(mark));
    Effect::Send { to: Recipients::All, lane, waits: lane != Lane::Bulk, message }
}

fn snapshot() -> Effect<Message> {
    Effect::Task(Task::Snapshot(Height(1)))
}

fn body(sequence: u64) -> Arc<Body> {
    body_of(sequence, 400_000)
}

fn body_of(sequence: u64, bytes: usize) -> Arc<Body> {
    let raw = Bytes::from(vec![0; bytes]);
    let reference = BodyRef { author: ReplicaId(0), sequence, digest: hash(&raw) };
    Arc::new(Body { reference, raw, requests: Vec::new() })
}

/// The machine's side of a log.
struct Machine {
    queue: LogQueue,
    journal: Journal,
}

/// A log thread at work, and the machine's side of it.
struct Running {
    machine: Machine,
    disk: Gate,
    lane: Gate,
    thread: thread::JoinHandle<Result<(), StorageError>>,
}

impl EffectPorts for Machine {
    type Stop = Halt;

    fn barrier(&mut self) -> &mut Barrier {
        self.queue.barrier()
    }

    fn write(&mut self, entry: Entry) -> Result<(), Halt> {
        self.queue.write(entry);
        Ok(())
    }

    fn hold(&mut self, gated: Gated) {
        self.queue.hold(gated);
    }

    fn send(&mut self, _to: Recipients, _lane: Lane, message: Message) {
        self.journal.note(Happened::Sent(mark_of(&message.frame())));
    }

    fn execute(&mut self, _task: Task) {
        self.journal.note(Happened::Executed);
    }

    fn read(&mut self, request: ReadRequest) {
        self.queue.read(request);
    }

    fn combine(&mut self, _job: CombineJob) {}
    fn certified(&mut self, _certificate: Box<ExecutionCertificate>) {}

    fn stop_signing(&mut self, _reason: String) -> Result<(), Halt> {
        Ok(())
    }

    fn halt(&mut self, halt: Halt) -> Result<(), Halt> {
        Err(halt)
    }
}

fn start(disk: Pace) -> Running {
    start_with(disk, Pace::Free)
}

fn start_with(disk: Pace, lane: Pace) -> Running {
    let (disk, lane) = (Gate::new(disk), Gate::new(lane));
    let (machine, log) = log_on(&disk, &lane, false);
    Running { machine, disk, lane, thread: thread::spawn(move || log.run()) }
}

/// Both sides of a log, neither at work.
fn log_on(disk: &Gate, lane: &Gate, is_quick: bool) -> (Machine, LogThread) {
    let journal = Journal::default();
    let device = GatedDevice { journal: journal.clone(), gate: disk.clone(), is_quick };
    let outlet = Notes { journal: journal.clone(), lane: lane.clone() };
    let (queue, log) = log_thread(Box::new(device), Box::new(outlet));
    (Machine { queue, journal }, log)
}

/// The same on a disk that is quick.
fn quick(disk: Pace) -> (Machine, LogThread) {
    log_on(&Gate::new(disk), &Gate::new(Pace::Free), true)
}

impl Machine {
    fn dispatch(&mut self, effects: impl IntoIterator<Item = Effect<Message>>, may_write: bool) {
        for effect in effects {
            dispatch(effect, self).expect("nothing stops it");
        }
        self.queue.submit(may_write);
    }

    /// Nothing more is queued, and the log comes to its end; what happened.
    fn end(self, log: impl FnOnce() -> Result<(), StorageError>) -> Vec<Happened> {
        let Self { queue, journal } = self;
        drop(queue);
        log().unwrap();
        happened(&journal)
    }

    fn happened(&self) -> Vec<Happened> {
        happened(&self.journal)
    }
}

fn happened(journal: &Journal) -> Vec<Happened> {
    let events = journal.events.lock();
    events.iter().filter(|event| **event != Happened::Leaves).cloned().collect()
}

impl Running {
    fn dispatch(&mut self, effects: impl IntoIterator<Item = Effect<Message>>) {
        self.machine.dispatch(effects, false);
    }

    /// Waits for something to happen. Of a disk that is held, what is queued after its first write
    /// makes the next group.
    fn wait_for(&self, happened: &Happened) {
        while !self.machine.journal.events.lock().contains(happened) {
            thread::yield_now();
        }
    }

    /// Lets disk and lanes get on, and the thread come to its end; what happened.
    fn end(self) -> Vec<Happened> {
        self.disk.release();
        self.lane.release();
        self.machine.end(|| self.thread.join().unwrap())
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

/// ★ Nothing that may promise something leaves before the record is durable.
fn check_votes_wait() {
    let mut log = start(Pace::Held);
    log.dispatch([persist()]);
    log.wait_for(&Happened::Wrote("record"));
    log.dispatch([persist(), send(Lane::Votes, 1)]);
    let events = log.end();
    let (wrote, synced) = (Happened::Wrote("record"), Happened::Synced);
    assert_eq!(events, [wrote.clone(), synced.clone(), wrote, synced, Happened::Sent(1)]);
    assert_eq!(sends_that_left_too_early(&events), 0);
}

/// ★ The same of a group that the machine thread writes itself.
fn check_votes_wait_for_whoever_writes() {
    let (mut machine, _log) = quick(Pace::Free);
    machine.dispatch([persist(), send(Lane::Votes, 1), snapshot()], true);
    let written = [Happened::Wrote("record"), Happened::Synced];
    let left = [Happened::Sent(1), Happened::Executed];
    assert_eq!(machine.happened(), [&written[..], &left].concat());
}

/// ★ What a height rests on is durable before it is executed: the state must not be ahead of the
/// log.
fn check_execution_waits() {
    let mut log = start(Pace::Held);
    log.dispatch([persist(), snapshot()]);
    assert_eq!(log.end(), [Happened::Wrote("record"), Happened::Synced, Happened::Executed]);
}

/// ★ A lane's order: nothing overtakes a send that is just being released.
fn check_nothing_overtakes() {
    let mut log = start_with(Pace::Held, Pace::Held);
    log.dispatch([persist(), send(Lane::Votes, 1)]);
    // Not before: a record that is durable by then holds nothing back.
    log.disk.release();
    log.wait_for(&Happened::Leaves);
    log.dispatch([send(Lane::Votes, 2)]);
    let events = log.end();
    assert_eq!(events[2..], [Happened::Sent(1), Happened::Sent(2)], "behind record and sync");
}

#[test]
fn nothing_leaves_before_the_record_is_durable() {
    check_votes_wait();
}

#[test]
fn nothing_leaves_before_its_own_thread_has_written_the_record() {
    check_votes_wait_for_whoever_writes();
}

#[test]
fn nothing_is_executed_before_the_records_before_it_are_durable() {
    check_execution_waits();
    let mut log = start(Pace::Held);
    log.dispatch([snapshot()]);
    assert_eq!(log.end(), [Happened::Executed], "nothing is under way");
}

#[test]
fn a_send_does_not_overtake_one_that_is_being_released() {
    check_nothing_overtakes();
}

mod left_out {
    use super::*;
    use quorate_crypto::mutants::{Mutant, assert_noticed};

    #[test]
    fn sending_early_is_noticed() {
        assert_noticed(Mutant::HostSendsEarly, check_votes_wait);
        assert_noticed(Mutant::HostSendsEarly, check_votes_wait_for_whoever_writes);
    }

    #[test]
    fn executing_early_is_noticed() {
        assert_noticed(Mutant::HostExecutesEarly, check_execution_waits);
        assert_noticed(Mutant::HostExecutesEarly, check_votes_wait_for_whoever_writes);
    }

    #[test]
    fn overtaking_is_noticed() {
        assert_noticed(Mutant::HostSendOvertakes, check_nothing_overtakes);
    }
}

#[test]
fn what_is_queued_shares_one_sync_and_keeps_its_order() {
    let mut log = start(Pace::Held);
    log.dispatch([persist()]);
    log.wait_for(&Happened::Wrote("record"));
    log.dispatch((1..=3).flat_map(|mark| [send(Lane::Consensus, mark), persist()]));
    let events = log.end();
    assert_eq!(events.iter().filter(|event| **event == Happened::Synced).count(), 2);
    let sent: Vec<_> = events.iter().filter(|event| matches!(event, Happened::Sent(_))).collect();
    assert_eq!(sent, [&Happened::Sent(1), &Happened::Sent(2), &Happened::Sent(3)]);
    assert_eq!(sends_that_left_too_early(&events), 0);
}

#[test]
fn a_vote_does_not_wait_for_the_bodies_queued_before_it() {
    let mut log = start(Pace::Held);
    log.dispatch((0..20).map(|sequence| Effect::Store(body(sequence))));
    assert!(log.machine.queue.backlog_bytes() >= 400_000);
    log.dispatch([persist(), send(Lane::Votes, 1)]);
    let events = log.end();
    let sent = events.iter().position(|event| *event == Happened::Sent(1)).unwrap();
    let before = events[..sent].iter().filter(|event| **event == Happened::Wrote("body")).count();
    assert!(before <= 6, "{before} bodies were written before the vote left");
    let stored = events.iter().filter(|event| matches!(event, Happened::Stored(_))).count();
    assert_eq!(stored, 20);
}

#[test]
fn a_body_is_answered_and_a_read_follows_what_was_appended() {
    let mut log = start(Pace::Free);
    let bytes = Bytes::from_static(b"decided");
    log.dispatch([
        Effect::Append(DecidedRecord { height: Height(1), bytes }),
        Effect::Store(body(7)),
        Effect::Read(ReadRequest { ticket: 5, items: Vec::new(), bytes_max: usize::MAX }),
    ]);
    let events = log.end();
    let order = |wanted| events.iter().position(|event| *event == wanted).unwrap();
    assert!(order(Happened::Wrote("decided")) < order(Happened::Read(5)));
    assert!(order(Happened::Synced) < order(Happened::Stored(7)));
}

#[test]
fn after_a_failed_sync_nothing_leaves_ever() {
    let mut log = start(Pace::Full);
    log.dispatch([persist(), send(Lane::Votes, 1), Effect::Store(body(1))]);
    let thread = std::mem::replace(&mut log.thread, thread::spawn(|| Ok(())));
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "no space left to write log-1: free some space, then start the replica again"
    );
    log.dispatch([send(Lane::Votes, 2)]);
    let gone = |event: &Happened| matches!(event, Happened::Sent(_) | Happened::Stored(_));
    assert!(!log.machine.journal.events.lock().iter().any(gone), "the barrier stays shut");
}

#[test]
fn a_small_group_needs_no_other_thread() {
    let (mut machine, _log) = quick(Pace::Free);
    machine.dispatch([Effect::Store(body_of(1, AT_ONCE_BYTES_MAX)), persist()], true);
    let written = [Happened::Wrote("body"), Happened::Wrote("record"), Happened::Synced];
    assert_eq!(machine.happened(), [&written[..], &[Happened::Stored(1)]].concat());
    assert_eq!(machine.queue.backlog_bytes(), 0);
}

#[test]
fn the_log_thread_writes_what_is_long_or_may_take_long() {
    let read = || ReadRequest { ticket: 5, items: Vec::new(), bytes_max: usize::MAX };
    let long = || Effect::Store(body_of(1, AT_ONCE_BYTES_MAX + 1));
    for (effect, is_quick, may_write) in [
        (long(), true, true),
        (Effect::Read(read()), true, true),
        (persist(), false, true),
        (persist(), true, false),
    ] {
        let free = Gate::new(Pace::Free);
        let (mut machine, log) = log_on(&free, &free, is_quick);
        machine.dispatch([effect], may_write);
        assert_eq!(machine.happened(), []);
        let events = machine.end(|| log.run());
        assert!(events.contains(&Happened::Synced), "{events:?}");
    }
}

/// What is queued while a group is being written stays behind it, whoever has the time.
#[test]
fn a_small_group_does_not_overtake_the_one_under_way() {
    let (disk, lane) = (Gate::new(Pace::Held), Gate::new(Pace::Free));
    let (machine, log) = log_on(&disk, &lane, true);
    let mut log = Running { machine, disk, lane, thread: thread::spawn(move || log.run()) };
    log.dispatch([Effect::Store(body(1))]);
    log.wait_for(&Happened::Wrote("body"));
    log.machine.dispatch([persist(), send(Lane::Votes, 1)], true);
    assert_eq!(log.machine.happened(), [Happened::Wrote("body")]);
    let events = log.end();
    let order = |wanted| events.iter().position(|event| *event == wanted).unwrap();
    assert!(order(Happened::Stored(1)) < order(Happened::Wrote("record")));
    assert_eq!(sends_that_left_too_early(&events), 0);
}

#[test]
fn what_fails_on_the_machine_thread_ends_the_log() {
    let (mut machine, log) = quick(Pace::Full);
    machine.dispatch([persist(), send(Lane::Votes, 1)], true);
    machine.dispatch([persist(), send(Lane::Votes, 2)], true);
    assert_eq!(machine.happened(), [Happened::Wrote("record")], "nothing leaves, ever");
    let error = log.run().unwrap_err();
    assert!(matches!(error, StorageError::Full { .. }), "{error}");
}
