//! A replica's machine room whose every step can be looked at: what is asked for is in the file at
//! once, and made durable a moment later.

mod tasks;

use super::chronicle::SharedChronicle;
use crate::gate::Held;
use crate::oracles::Observation;
use crate::recording::{Recorder, RecordingService};
use bytes::Bytes;
use quorate_crypto::KeyFile;
use quorate_crypto::mutants::{self, Mutant};
use quorate_engine::{Incoming, Message, Replica, ReplicaConfig, Settings, Verifier};
use quorate_storage::disk::{Faults, UnsyncedWrite};
use quorate_storage::{
    Entry, Executor, ExecutorConfig, Fault, FaultyDisk, Journal, LogConfig, MemoryDisk,
    MemoryStore, SnapshotJob, Snapshots, StorageError,
};
use quorate_types::machine::{CombineOutcome, ReadRequest, Recovery, Task};
use quorate_types::{
    Committee, Effect, Event, Height, Machine, Peer, Recipients, ReplicaId, Time, Verified,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// The wall clock at time zero.
const ORIGIN_MS: u64 = 1_900_000_000_000;

const SYNC: Duration = Duration::from_micros(300);
const COMBINE: Duration = Duration::from_micros(50);
const READ: Duration = Duration::from_micros(50);

/// What all members have in common, and all their keys.
pub(super) struct Shared {
    pub(super) keys: Vec<KeyFile>,
    pub(super) committee: Arc<Committee>,
    pub(super) settings: Settings,
    pub(super) log: LogConfig,
    pub(super) executor: ExecutorConfig,
}

impl Shared {
    pub(super) fn verifier(&self) -> Verifier {
        Verifier::new(
            Arc::clone(&self.committee),
            self.settings.protocol,
            self.settings.proposal_key,
        )
    }
}

/// Everything that outlives a crash. Cloning gives another handle to the same disks.
#[derive(Clone, Default)]
pub(super) struct Disks {
    pub(super) records: MemoryDisk,
    pub(super) bodies: MemoryDisk,
    pub(super) snapshots: MemoryDisk,
    pub(super) store: MemoryStore,
}

impl Disks {
    /// Others in the same state.
    pub(super) fn fork(&self) -> Self {
        Self {
            records: self.records.fork(),
            bodies: self.bodies.fork(),
            snapshots: self.snapshots.fork(),
            store: self.store.fork(),
        }
    }

    /// The power fails, and nothing survives that was not synced.
    pub(super) fn lose_unsynced(&self) {
        for disk in [&self.records, &self.bodies, &self.snapshots] {
            disk.crash(&mut || true);
        }
        self.store.crash();
    }
}

/// Something done on the side that comes back later.
#[derive(Debug)]
pub(super) enum Work {
    Sync,
    Execute,
    Snapshot,
    Combine(Box<CombineOutcome>),
    Read(ReadRequest),
}

/// What came of a turn.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) released: Vec<(Recipients, Message)>,
    pub(super) later: Vec<(Duration, Work)>,
}

/// Is shown every boundary, with what was done last.
pub(super) type Observer = Box<dyn FnMut(Time, &'static str)>;

/// One of the two logs' disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Records,
    Bodies,
}

/// A running replica with its host.
pub(super) struct Room {
    id: ReplicaId,
    pub(super) observer: Option<Observer>,
    /// The disk failed: nothing happens here any more.
    pub(super) failure: Option<StorageError>,
    chronicle: SharedChronicle,
    disks: Disks,
    faults: [Faults; 2],
    machine: Replica,
    verifier: Arc<Verifier>,
    journal: Journal,
    executor: Executor,
    snapshots: Snapshots,
    recorder: Recorder,
    tasks: VecDeque<Task>,
    jobs: VecDeque<SnapshotJob>,
    executed_durably: Height,
    persisted: u64,
    durable: u64,
    held: VecDeque<Held>,
    storing: Vec<quorate_types::BodyRef>,
    sync_due: bool,
}

impl Room {
    /// Opens the disks; `plan` is how those of the logs fail.
    pub(super) fn open(
        shared: &Shared,
        id: ReplicaId,
        disks: &Disks,
        plan: &[(Which, Fault)],
        chronicle: &SharedChronicle,
    ) -> Result<(Self, Recovery), StorageError> {
        let of = |which| {
            let faults = plan.iter().filter(|(disk, _)| *disk == which);
            faults.map(|(_, fault)| fault.clone()).collect::<Vec<_>>()
        };
        let service = quorate_ledger::by_name("ordered-log").expect("one of its names");
        let (service, recorder) = RecordingService::new(service);
        let (executor, executed) = Executor::open(
            Box::new(disks.store.clone()),
            Box::new(service),
            shared.executor.clone(),
        )?;
        let records = FaultyDisk::new(disks.records.clone(), of(Which::Records));
        let bodies = FaultyDisk::new(disks.bodies.clone(), of(Which::Bodies));
        let faults = [records.faults(), bodies.faults()];
        let snapshots = Snapshots::open(Box::new(disks.snapshots.clone()))?;
        let (journal, mut recovery) =
            Journal::open(Box::new(records), Box::new(bodies), shared.log.clone(), executed)?;
        recovery.snapshots = snapshots.heights();
        recovery.staged = snapshots.staged_chunks();
        let verifier = Arc::new(shared.verifier());
        let keys = &shared.keys[id.index()];
        let machine = Replica::new(ReplicaConfig {
            id,
            identity: Arc::new(keys.identity.clone()),
            voting: Arc::new(keys.voting.clone()),
            verifier: Arc::clone(&verifier),
            settings: shared.settings.clone(),
            wall_origin_ms: ORIGIN_MS,
            signs: true,
        });
        let room = Self {
            id,
            observer: None,
            failure: None,
            chronicle: chronicle.clone(),
            disks: disks.clone(),
            faults,
            machine,
            verifier,
            journal,
            executed_durably: executor.durable(),
            executor,
            snapshots,
            recorder,
            tasks: VecDeque::new(),
            jobs: VecDeque::new(),
            persisted: 0,
            durable: 0,
            held: VecDeque::new(),
            storing: Vec::new(),
            sync_due: false,
        };
        Ok((room, recovery))
    }

    /// The counts of what was asked of the logs' disks: records, then bodies.
    pub(super) fn faults(&self) -> &[Faults; 2] {
        &self.faults
    }

    /// The machine is told what survived.
    pub(super) fn start(&mut self, now: Time, recovery: Recovery) -> Turn {
        let mut chronicle = self.chronicle.borrow_mut();
        let (replica, executed) = (self.id, recovery.executed.as_ref());
        chronicle.observe(&Observation::Kept { replica, bodies: &recovery.bodies });
        chronicle.observe(&Observation::Booted { replica, executed });
        drop(chronicle);
        let mut turn = Turn::default();
        self.feed(now, Event::Recovered(Box::new(recovery)), &mut turn);
        turn
    }

    pub(super) fn next_timeout(&self) -> Option<Time> {
        if self.failure.is_some() { None } else { self.machine.next_timeout() }
    }

    /// A frame arrives. What does not pass the check is dropped, as a real host drops it.
    pub(super) fn deliver(&mut self, now: Time, from: Peer, content: Bytes) -> Turn {
        let mut turn = Turn::default();
        if let Ok(message) = Verified::<Incoming>::check(content, from, &self.verifier) {
            self.note_submitted(&message);
            self.feed(now, Event::Message { from, message }, &mut turn);
        }
        turn
    }

    fn note_submitted(&self, message: &Incoming) {
        if let Incoming::Request(request) = message {
            for operation in &request.operations {
                self.chronicle.borrow_mut().observe(&Observation::Submitted { operation });
            }
        }
    }

    pub(super) fn wake(&mut self, now: Time) -> Turn {
        let mut turn = Turn::default();
        if self.failure.is_none() {
            self.machine.handle_timeout(now);
            self.drain(now, &mut turn);
        }
        turn
    }

    pub(super) fn finish(&mut self, now: Time, work: Work) -> Turn {
        let mut turn = Turn::default();
        if self.failure.is_some() {
            return turn;
        }
        let outcome = match work {
            Work::Sync => self.sync(now, &mut turn),
            Work::Execute => self.finish_task(now, &mut turn),
            Work::Snapshot => self.finish_snapshot(now, &mut turn),
            Work::Read(request) => self.read(now, &request, &mut turn),
            Work::Combine(outcome) => {
                self.feed(now, Event::Combined(*outcome), &mut turn);
                Ok(())
            }
        };
        if let Err(error) = outcome {
            self.stop(error);
        }
        turn
    }

    /// The host stops. Asked again, the journal must say the same again.
    fn stop(&mut self, error: StorageError) {
        let held = self.journal.write(&Entry::Decided(quorate_types::machine::DecidedRecord {
            height: Height(u64::MAX),
            bytes: Bytes::new(),
        }));
        if held.is_ok() || self.journal.commit().is_ok() {
            let text = format!("the journal went on after \"{error}\"");
            self.chronicle.borrow_mut().complain("fail-stop", text);
        }
        self.failure = Some(error);
    }

    fn feed(&mut self, now: Time, event: Event<Incoming>, turn: &mut Turn) {
        if self.failure.is_none() {
            self.machine.handle(now, event);
            self.drain(now, turn);
        }
    }

    fn drain(&mut self, now: Time, turn: &mut Turn) {
        while self.failure.is_none()
            && let Some(effect) = self.machine.poll()
        {
            let name = name_of(&effect);
            if let Err(error) = self.carry_out(effect, turn) {
                self.stop(error);
                return;
            }
            self.show(now, name);
        }
        if !self.sync_due && (self.persisted > self.durable || !self.storing.is_empty()) {
            self.sync_due = true;
            turn.later.push((SYNC, Work::Sync));
        }
    }

    fn show(&mut self, now: Time, what: &'static str) {
        if let Some(observer) = &mut self.observer {
            observer(now, what);
        }
    }

    fn carry_out(&mut self, effect: Effect<Message>, turn: &mut Turn) -> Result<(), StorageError> {
        match effect {
            Effect::Send { to, lane, message } => {
                let waits = self.persisted > self.durable && lane.waits_for_barrier();
                if waits && !mutants::active(Mutant::HostSendsEarly) {
                    self.held.push_back(Held::Send(to, Box::new(message)));
                } else {
                    self.release(to, message, turn);
                }
            }
            Effect::Persist(record) => {
                self.persisted += 1;
                self.write(&Entry::Record(record))?;
            }
            Effect::Append(record) => self.write(&Entry::Decided(record))?,
            Effect::Store(body) => {
                self.storing.push(body.reference);
                self.write(&Entry::Body(body))?;
            }
            Effect::Certified(_) => {}
            Effect::Release(release) => self.write(&Entry::Release(release))?,
            Effect::Read(request) => turn.later.push((READ, Work::Read(request))),
            Effect::Combine(job) => {
                turn.later.push((COMBINE, Work::Combine(Box::new(job.run()))));
            }
            Effect::Task(task) => self.ask_for(task, turn),
            Effect::Halt(halt) => {
                let replica = self.id;
                let halted = Observation::Halted { replica, halt: &halt };
                self.chronicle.borrow_mut().observe(&halted);
            }
        }
        Ok(())
    }

    /// Into the file at once, so that a crash can tear it; durable with the next sync.
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.chronicle.borrow_mut().wrote(self.id, entry);
        self.journal.write(entry)?;
        self.journal.read(&ReadRequest { ticket: 0, items: Vec::new() }).map(drop)?;
        if let Some(last) = last_write(&self.disks.records) {
            self.chronicle.borrow_mut().reached(self.id, last);
        }
        self.refuse_silence();
        Ok(())
    }

    fn sync(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        self.sync_due = false;
        self.journal.commit()?;
        self.refuse_silence();
        let records = self.persisted > self.durable;
        self.durable = self.persisted;
        let stored = std::mem::take(&mut self.storing);
        self.chronicle.borrow_mut().synced(self.id, records, !stored.is_empty());
        self.show(now, "sync");
        for held in std::mem::take(&mut self.held) {
            match held {
                Held::Send(to, message) => {
                    self.release(to, *message, turn);
                    self.show(now, "release");
                }
                Held::Task(task) => self.begin(task, turn),
            }
        }
        for body in stored {
            let replica = self.id;
            self.chronicle.borrow_mut().observe(&Observation::Stored { replica, body });
            self.feed(now, Event::Stored(body), turn);
        }
        Ok(())
    }

    /// A fault of the disk must have come back as an error.
    fn refuse_silence(&self) {
        if self.faults.iter().any(Faults::fired) {
            let text = "the disk failed, and the journal called it a success".to_owned();
            self.chronicle.borrow_mut().complain("fail-stop", text);
        }
    }

    fn release(&mut self, to: Recipients, message: Message, turn: &mut Turn) {
        self.chronicle.borrow_mut().said(self.id, &message);
        turn.released.push((to, message));
    }
}

/// The last write that a crash may take back. Files that were set aside are not written to.
pub(super) fn last_write(disk: &MemoryDisk) -> Option<UnsyncedWrite> {
    disk.unsynced().into_iter().rfind(|write| !write.file.contains("spare"))
}

fn name_of_task(task: &Task) -> &'static str {
    match task {
        Task::Execute(_) => "execute",
        Task::Snapshot(_) => "take a snapshot",
        Task::Stage(_) => "stage",
        Task::Unstage(_) => "unstage",
        Task::Install(_) => "install",
        Task::Ask(_) => "ask",
    }
}

fn name_of(effect: &Effect<Message>) -> &'static str {
    match effect {
        Effect::Send { .. } => "send",
        Effect::Persist(_) => "persist",
        Effect::Append(_) => "append",
        Effect::Store(_) => "store",
        Effect::Read(_) => "read",
        Effect::Combine(_) => "combine",
        Effect::Certified(_) => "certified",
        Effect::Release(_) => "let go",
        Effect::Task(task) => name_of_task(task),
        Effect::Halt(_) => "halt",
    }
}
