//! A replica's host whose every step can be looked at: what is asked for is in the file at once,
//! and made durable a moment later.

mod ports;
mod tasks;

use super::chronicle::{SharedChronicle, Who};
use super::disks::{Disks, LogKind, last_write};
use super::shared::Shared;
use crate::epoch::EpochConfig;
use crate::oracles::Observation;
use crate::recording::{Recorder, RecordingService};
use bytes::Bytes;
use ports::Ports;
use quorate_deterministic::genesis::WALL_ORIGIN_MS;
use quorate_engine::host::{Barrier, Gated, GroupCommit, barrier, dispatch};
use quorate_engine::{Incoming, Message, Replica, ReplicaConfig, Verifier};
use quorate_storage::disk::Faults;
use quorate_storage::{
    Executor, Fault, FaultyDisk, Journal, Owner, SnapshotJob, Snapshots, StorageError,
};
use quorate_types::machine::{CombineOutcome, DecidedRecord, Entry, ReadRequest, Recovery, Task};
use quorate_types::{
    BodyRef, Effect, Event, HandedOver, Height, Machine, Peer, Recipients, ReplicaId, Time,
    Verified,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

const SYNC: Duration = Duration::from_micros(300);

/// Something done on the side that comes back later.
#[derive(Debug)]
pub(super) enum Work {
    Sync,
    Execute,
    Snapshot,
    Combine(Box<CombineOutcome>),
    Read(ReadRequest),
}

/// Outcome of one turn of a host.
#[derive(Default)]
pub(super) struct Turn {
    pub(super) released: Vec<(Recipients, Message)>,
    pub(super) later: Vec<(Duration, Work)>,
    /// What its replica hands over to the next epoch.
    pub(super) handed_over: Option<Arc<HandedOver>>,
}

/// Callback at every boundary between two steps, with the time and the name of the last step.
pub(super) type Observer = Box<dyn FnMut(Time, &'static str)>;

/// A running replica with its host.
pub(super) struct CrashHost {
    number: usize,
    pub(super) epoch: Arc<EpochConfig>,
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
    barrier: Barrier,
    log: GroupCommit<Entry, Gated>,
    /// A record or a body was written since the last sync.
    unsynced: bool,
    sync_due: bool,
}

impl CrashHost {
    /// Opens the disks, in the epoch that they lead to; `plan` is how those of the logs fail.
    pub(super) fn open(
        shared: &Shared,
        number: usize,
        disks: &Disks,
        plan: &[(LogKind, Fault)],
        chronicle: &SharedChronicle,
    ) -> Result<(Self, Recovery), StorageError> {
        let epoch = disks.epochs.last().unwrap_or_else(|| Arc::clone(&shared.first));
        Self::open_in(shared, (number, epoch), disks, plan, chronicle)
    }

    /// Opens the disks in this epoch.
    pub(super) fn open_in(
        shared: &Shared,
        (number, epoch): (usize, Arc<EpochConfig>),
        disks: &Disks,
        plan: &[(LogKind, Fault)],
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
        let records = FaultyDisk::new(disks.records.clone(), of(LogKind::Records));
        let bodies = FaultyDisk::new(disks.bodies.clone(), of(LogKind::Bodies));
        let faults = [records.faults(), bodies.faults()];
        let snapshots = Snapshots::open(Box::new(disks.snapshots.clone()), &Owner::nobody())?;
        let (journal, mut recovery) = Journal::open(
            Box::new(records),
            Box::new(bodies),
            &Owner::nobody(),
            shared.log.clone(),
            executed,
        )?;
        recovery.snapshots = snapshots.on_disk();
        recovery.staged = snapshots.staged_chunks();
        let verifier = epoch.verifier(&epoch.settings);
        let keys = &shared.keys[number];
        let machine = Replica::new(ReplicaConfig {
            id: id_in(&epoch, number),
            identity: Arc::new(keys.identity.clone()),
            voting: Arc::new(keys.voting.clone()),
            verifier: Arc::clone(&verifier),
            settings: epoch.settings.clone(),
            wall_origin_ms: WALL_ORIGIN_MS,
            signs: epoch.seat(number).is_some(),
            // Alone with what was recorded: nobody answers.
            asks_witnesses: false,
        });
        let (barrier, log) = barrier();
        let host = Self {
            number,
            epoch,
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
            barrier,
            log,
            unsynced: false,
            sync_due: false,
        };
        Ok((host, recovery))
    }

    /// The counts of what was asked of the logs' disks: records, then bodies.
    pub(super) fn faults(&self) -> &[Faults; 2] {
        &self.faults
    }

    /// The machine is told what survived.
    pub(super) fn start(&mut self, now: Time, recovery: Recovery) -> Turn {
        let (replica, executed) = (self.who().name(), recovery.executed.as_ref());
        let (epoch, after) = (self.epoch.number(), self.epoch.begins_after());
        let is_member = self.epoch.seat(self.number).is_some();
        self.observe(&Observation::Began { replica, epoch, after, is_member });
        self.observe(&Observation::Kept { replica, bodies: &recovery.bodies });
        self.observe(&Observation::Booted { replica, executed });
        let mut turn = Turn::default();
        self.feed(now, Event::Recovered(Box::new(recovery)), &mut turn);
        turn
    }

    fn who(&self) -> Who<'_> {
        let (host, epoch) = (self.number, &*self.epoch);
        Who { host, id: id_in(epoch, host), epoch }
    }

    pub(super) fn observe(&self, observation: &Observation<'_>) {
        self.chronicle.borrow_mut().observe(self.who(), observation);
    }

    /// Shows that its replica hands over.
    pub(super) fn hands_over(&self, step: &HandedOver) {
        let (replica, ended) = (self.who().name(), self.epoch.number());
        self.observe(&Observation::HandedOver { replica, ended, content: &step.signed.content });
        self.chronicle.borrow_mut().handed_over(self.number);
    }

    /// The last executed height.
    pub(super) fn executed(&self) -> Height {
        self.executor.executed().map_or(Height(0), |executed| executed.height())
    }

    /// Ends its start in good order, with everything durable.
    ///
    /// # Errors
    /// When its disk fails.
    pub(super) fn end(&mut self, now: Time) -> Result<(), StorageError> {
        let written = self.log.take_queued();
        self.journal.commit()?;
        self.note_synced(&written);
        self.executor.make_durable()?;
        for job in self.jobs.drain(..) {
            job.write(&self.snapshots)?;
        }
        self.journal.close()?;
        self.refuse_silence();
        self.show(now, "end of the epoch");
        Ok(())
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
                self.observe(&Observation::Submitted { operation });
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
    pub(super) fn stop(&mut self, error: StorageError) {
        let held = self.journal.write(&Entry::Decided(DecidedRecord {
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
            if let Err(error) = dispatch(effect, &mut Ports { host: self, turn }) {
                self.stop(error);
                return;
            }
            self.show(now, name);
        }
        if self.unsynced && !self.sync_due {
            self.sync_due = true;
            turn.later.push((SYNC, Work::Sync));
        }
    }

    pub(super) fn show(&mut self, now: Time, what: &'static str) {
        if let Some(observer) = &mut self.observer {
            observer(now, what);
        }
    }

    /// Into the file at once, so that a crash can tear it; durable with the next sync.
    fn write(&mut self, entry: &Entry) -> Result<(), StorageError> {
        self.chronicle.borrow_mut().wrote((self.number, self.epoch.number()), entry);
        self.journal.write(entry)?;
        self.journal
            .read(&ReadRequest { ticket: 0, items: Vec::new(), bytes_max: usize::MAX })
            .map(drop)?;
        if let Some(last) = last_write(&self.disks.records) {
            self.chronicle.borrow_mut().reached(self.number, last);
        }
        self.refuse_silence();
        Ok(())
    }

    fn sync(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        (self.sync_due, self.unsynced) = (false, false);
        self.log.begin().expect("a sync is due for what was written");
        self.journal.commit()?;
        self.refuse_silence();
        let mut released = Vec::new();
        let written = self.log.finish(|gated| released.push(gated));
        let stored = self.note_synced(&written);
        self.show(now, "sync");
        for gated in released {
            let is_send = matches!(gated, Gated::Send { .. });
            gated.leave(&mut Ports { host: self, turn });
            if is_send {
                self.show(now, "release");
            }
        }
        for body in stored {
            self.observe(&Observation::Stored { replica: self.who().name(), body });
            self.feed(now, Event::Stored(body), turn);
        }
        Ok(())
    }

    /// A group is durable: the bodies in it.
    fn note_synced(&self, written: &[Entry]) -> Vec<BodyRef> {
        let records = written.iter().any(|entry| matches!(entry, Entry::Record(_)));
        let bodies = written.iter().filter_map(|entry| match entry {
            Entry::Body(body) => Some(body.reference),
            _ => None,
        });
        let stored: Vec<BodyRef> = bodies.collect();
        self.chronicle.borrow_mut().synced(self.number, records, !stored.is_empty());
        stored
    }

    /// A fault of the disk must have come back as an error.
    fn refuse_silence(&self) {
        if self.faults.iter().any(Faults::fired) {
            let text = "the disk failed, and the journal called it a success".to_owned();
            self.chronicle.borrow_mut().complain("fail-stop", text);
        }
    }
}

/// Index of a host in an epoch, or beyond its members.
pub(super) fn id_in(epoch: &EpochConfig, host: usize) -> ReplicaId {
    let beyond = || host.max(epoch.committee.size());
    epoch.seat(host).unwrap_or_else(|| ReplicaId(u16::try_from(beyond()).expect("few hosts")))
}

fn name_of_task(task: &Task) -> &'static str {
    match task {
        Task::Execute(_) => "execute",
        Task::Snapshot(_) => "take a snapshot",
        Task::Stage(_) => "stage",
        Task::Unstage(_) => "unstage",
        Task::Install(_) => "install",
        Task::Query(_) => "query",
        Task::HandOver(_) => "hand over",
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
        Effect::Release(_) => "release",
        Effect::Task(task) => name_of_task(task),
        Effect::StopSigning(_) => "stop signing",
        Effect::Halt(_) => "halt",
    }
}
