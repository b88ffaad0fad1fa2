//! A replica's host: disk, executor and pool in virtual time, and the contract with the machine.

mod checks;
mod effects;
mod tasks;

use checks::CheckThreads;
pub(crate) use checks::{Arrival, Checked, Station};

use super::clock::Clock;
use super::paces::Paces;
use crate::byzantine::{Behaviour, Liar};
use crate::epoch::{Ended, EpochConfig};
use crate::faults::DiskFailure;
use crate::recording::{Recorder, RecordingService, Seen};
use crate::scenario::Durations;
use quorate_consensus::{Occupancy, Rule};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Digest, KeyFile};
use quorate_deterministic::Rng;
use quorate_engine::host::{Barrier, Gated, GroupCommit, barrier};
use quorate_engine::{EvidenceLog, Message, Replica, ReplicaConfig, Status, Verifier};
use quorate_storage::disk::Faults;
use quorate_storage::{
    Executor, ExecutorConfig, Fault, FaultyDisk, Journal, LogConfig, MemoryDisk, MemoryStore,
    Owner, SnapshotJob, Snapshots, StorageError,
};
use quorate_types::machine::{
    CombineOutcome, Entry, ExecutedUpTo, Halt, ReadRequest, Recovery, Task,
};
use quorate_types::{
    BodyRef, Event, HandedOver, Height, Machine, Peer, Recipients, ReplicaId, Time, View,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Something that a host does on the side and that comes back later.
#[derive(Debug)]
pub(crate) enum Work {
    /// The sync under way is complete.
    Sync,
    /// The next task of the execution is done.
    Execute,
    /// The oldest snapshot under way is written.
    Snapshot,
    /// Shares were combined on the pool.
    Combine(Box<CombineOutcome>),
    /// A read of the disk is done.
    Read(ReadRequest),
    /// A suspension is over: the wall clock is looked at.
    WakeUp,
}

/// Outcome of one turn of a host.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Messages that leave now.
    pub(crate) released: Vec<(Recipients, Message)>,
    /// Work that comes back, with the time that it takes.
    pub(crate) later: Vec<(Duration, Work)>,
    /// Observations for the oracles.
    pub(crate) notes: Vec<Note>,
    /// What its replica hands over to the next epoch.
    pub(crate) handed_over: Option<Arc<HandedOver>>,
}

/// Observations for the oracles.
#[derive(Debug)]
pub(crate) enum Note {
    Booted(Option<ExecutedUpTo>, Vec<BodyRef>),
    Stored(BodyRef),
    Executed {
        height: Height,
        root: Digest,
        payload: Digest,
        operations: Vec<Seen>,
    },
    /// The state is that of a snapshot now.
    Installed {
        height: Height,
        root: Digest,
    },
    Halted(Halt),
    /// It signs no more, for this reason.
    StoppedSigning(String),
    /// Nothing is taken from this peer for a while.
    Barred(Peer),
    /// It holds proof that a member broke a rule.
    Proven(ReplicaId, Rule),
    /// The disk failed or is not what it should be: no fault of a scenario does that.
    Storage(StorageError),
}

impl Note {
    /// Describes it on one line.
    pub(crate) fn brief(&self) -> String {
        match self {
            Self::Booted(executed, _) => {
                format!("booted at {:?}", executed.as_ref().map(ExecutedUpTo::height))
            }
            Self::Executed { height, operations, .. } => {
                format!("executed {height} with {} operations", operations.len())
            }
            Self::Stored(body) => format!("stored {body:?}"),
            Self::Installed { height, .. } => format!("installed a snapshot at {height}"),
            Self::Halted(halt) => format!("halted: {halt}"),
            Self::StoppedSigning(reason) => format!("signs no more: {reason}"),
            Self::Proven(member, rule) => format!("{member} is proven to have broken {rule:?}"),
            Self::Barred(peer) => format!("takes nothing from {peer:?} for a while"),
            Self::Storage(error) => format!("storage: {error}"),
        }
    }
}

/// Configuration that outlives a host's restarts.
#[derive(Debug)]
pub(crate) struct HostConfig {
    /// Place among all hosts.
    pub(crate) number: usize,
    /// Name to the oracles, in all epochs: the index in the first one, or beyond it.
    pub(crate) name: ReplicaId,
    pub(crate) behaviour: Behaviour,
    /// Its identity, with the voting key that it has unless a dealer makes another.
    pub(crate) keys: KeyFile,
    pub(crate) log: LogConfig,
    pub(crate) executor: ExecutorConfig,
    pub(crate) durations: Durations,
    pub(crate) clock_rate: u64,
    pub(crate) paces: Paces,
}

/// A replica's host: its disks, and while it runs, everything else.
pub(crate) struct ReplicaHost {
    pub(crate) config: HostConfig,
    /// Epoch that its notes lead to, durably.
    pub(crate) epoch: Arc<EpochConfig>,
    /// Number of its starts.
    pub(crate) incarnation: u32,
    /// It does nothing until then.
    pub(crate) paused_until: Time,
    /// Its monotonic clock stands still until then.
    suspended_until: Time,
    /// The world's timer that is set for it.
    pub(crate) armed: Option<Time>,
    disk: MemoryDisk,
    bodies: MemoryDisk,
    snapshots: MemoryDisk,
    store: MemoryStore,
    slow_sync: Option<(Duration, Time)>,
    /// Milliseconds by which its wall clock was set.
    step_ms: i64,
    /// Its disk is about to fail: how long it is down then.
    failing: Option<Duration>,
    /// It lost its promises: it follows and never signs.
    wiped: bool,
    /// It found that its records are older than its signatures: it follows and never signs.
    stopped_signing: bool,
    /// An old copy of its disk, to be put back.
    copy: Option<DiskCopy>,
    /// It stopped itself, and nobody starts it again.
    halted: bool,
    rng: Rng,
    liar: Option<Liar>,
    running: Option<Running>,
}

/// Everything on a host's disk at one moment.
struct DiskCopy {
    disk: MemoryDisk,
    bodies: MemoryDisk,
    snapshots: MemoryDisk,
    store: MemoryStore,
    epoch: Arc<EpochConfig>,
}

/// Everything that a crash takes away.
struct Running {
    machine: Replica,
    verifier: Arc<Verifier>,
    clock: Clock,
    journal: Journal,
    disk_faults: [Faults; 2],
    executor: Executor,
    snapshots: Snapshots,
    recorder: Recorder,
    tasks: VecDeque<Task>,
    /// Snapshots that are being written.
    jobs: VecDeque<SnapshotJob>,
    /// Last height that the machine was told to be durable.
    durable: Height,
    barrier: Barrier,
    log: GroupCommit<Entry, Gated>,
    checks: CheckThreads,
    /// What it was last seen to prove.
    evidence: EvidenceLog,
    ended: Option<Ended>,
}

impl ReplicaHost {
    pub(crate) fn new(config: HostConfig, epoch: Arc<EpochConfig>, rng: Rng) -> Self {
        let mut host = Self {
            config,
            epoch,
            incarnation: 0,
            paused_until: Time(0),
            suspended_until: Time(0),
            armed: None,
            disk: MemoryDisk::new(),
            bodies: MemoryDisk::new(),
            snapshots: MemoryDisk::new(),
            store: MemoryStore::new(),
            slow_sync: None,
            step_ms: 0,
            failing: None,
            wiped: false,
            stopped_signing: false,
            copy: None,
            halted: false,
            rng,
            liar: None,
            running: None,
        };
        host.find_voice();
        host
    }

    /// Index in its epoch, or beyond the members.
    pub(crate) fn id(&self) -> ReplicaId {
        let HostConfig { number, name, .. } = self.config;
        let size = self.epoch.committee.size();
        let beyond = || name.max(ReplicaId(u16::try_from(size).expect("few members")));
        self.epoch.seat(number).unwrap_or_else(beyond)
    }

    /// Returns `true` if it is no member of its epoch.
    pub(crate) fn is_learner(&self) -> bool {
        self.epoch.seat(self.config.number).is_none()
    }

    /// Keys that it has in its epoch.
    fn keys(&self) -> &KeyFile {
        let seat = self.epoch.seat(self.config.number);
        seat.map_or(&self.config.keys, |member| self.epoch.keys(member))
    }

    fn find_voice(&mut self) {
        self.liar = Liar::new(self.id(), self.config.behaviour, self.keys());
    }

    /// It is in this epoch from its next start on.
    fn enter(&mut self, epoch: Arc<EpochConfig>) {
        self.epoch = epoch;
        self.find_voice();
    }

    /// ★ Ends its start in good order, with everything durable, and only then notes that the next
    /// epoch has begun.
    ///
    /// # Errors
    /// When its disk fails; nothing is noted then.
    pub(crate) fn go_on(&mut self, next: Arc<EpochConfig>) -> Result<(), StorageError> {
        self.end()?;
        self.enter(next);
        Ok(())
    }

    fn end(&mut self) -> Result<(), StorageError> {
        self.armed = None;
        let Some(mut running) = self.running.take() else { return Ok(()) };
        for entry in running.log.take_queued() {
            running.journal.write(&entry)?;
        }
        running.journal.commit()?;
        running.executor.make_durable()?;
        for job in running.jobs.drain(..) {
            job.write(&running.snapshots)?;
        }
        running.journal.close()?;
        self.failing = None;
        Ok(())
    }

    /// How its epoch ended, as far as it knows while it runs.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.running.as_ref()?.ended.as_ref()
    }

    /// It hears how its epoch ended; what its own replica says counts more.
    pub(crate) fn learn_end(&mut self, ended: Ended) {
        let Some(running) = &mut self.running else { return };
        if ended.is_own || running.ended.is_none() {
            running.ended = Some(ended);
        }
    }

    /// It stops, and nobody starts it again.
    pub(crate) fn halt(&mut self) {
        self.crash(0);
        self.halted = true;
    }

    /// Returns `true` if it stopped itself for good.
    pub(crate) fn has_halted(&self) -> bool {
        self.halted
    }

    /// Sets its wall clock, for the next start.
    pub(crate) fn step_clock(&mut self, by_ms: i64) {
        self.step_ms += by_ms;
    }

    /// Does nothing for so long, and its monotonic clock stands still.
    pub(crate) fn suspend(&mut self, now: Time, lasts: Duration) {
        let until = now + lasts;
        let stands_until = self.suspended_until.max(now);
        self.paused_until = self.paused_until.max(until);
        self.suspended_until = stands_until.max(until);
        if let Some(running) = &mut self.running {
            running.clock.suspend(until.since(stands_until));
        }
    }

    fn read_wall_clock(&mut self, now: Time, turn: &mut Turn) {
        let origin_ms = self.running.as_ref().map(|running| running.clock.wall_origin_ms());
        if let Some(origin_ms) = origin_ms.filter(|_| !mutants::active(Mutant::WallClockOnce)) {
            self.feed(now, Event::WallClock(origin_ms), turn);
        }
    }

    /// From now on its disk fails; it is down for so long then.
    pub(crate) fn fail_disk(&mut self, how: DiskFailure, down: Duration) {
        let Some(running) = &self.running else { return };
        self.failing = Some(down);
        for faults in &running.disk_faults {
            let (write, sync) = (faults.writes(), faults.syncs());
            faults.set(vec![match how {
                DiskFailure::Full => Fault::Full { bytes: 0 },
                DiskFailure::Write => Fault::FailWrite { nth: write },
                DiskFailure::Torn => Fault::TearWrite { nth: write, bytes: self.rng.index(64) },
                DiskFailure::Sync => Fault::FailSync { nth: sync },
            }]);
        }
    }

    /// Time for which it is down, if the failure that its disk reports was to be expected.
    pub(crate) fn expected_failure(&mut self) -> Option<Duration> {
        self.failing.take()
    }

    /// Copies everything on its disk, for [`ReplicaHost::put_back`].
    pub(crate) fn copy_disk(&mut self) {
        assert!(self.running.is_none(), "a folder is copied while its host is down");
        self.copy = Some(DiskCopy {
            disk: self.disk.fork(),
            bodies: self.bodies.fork(),
            snapshots: self.snapshots.fork(),
            store: self.store.fork(),
            epoch: Arc::clone(&self.epoch),
        });
    }

    /// Puts the copy in the place of everything on its disk, if there is one; nothing there says
    /// so.
    pub(crate) fn put_back(&mut self) -> bool {
        assert!(self.running.is_none(), "a folder is put back while its host is down");
        let Some(DiskCopy { disk, bodies, snapshots, store, epoch }) = self.copy.take() else {
            return false;
        };
        (self.disk, self.bodies, self.snapshots) = (disk, bodies, snapshots);
        self.store = store;
        self.enter(epoch);
        true
    }

    /// Everything on its disk is gone, and an operator who knows starts it again, with the file of
    /// the first epoch.
    pub(crate) fn wipe(&mut self, first: Arc<EpochConfig>) {
        self.wipe_bodies();
        self.enter(first);
        self.disk = MemoryDisk::new();
        self.snapshots = MemoryDisk::new();
        self.store = MemoryStore::new();
        self.wiped = true;
    }

    pub(crate) fn is_up(&self) -> bool {
        self.running.is_some()
    }

    /// Status of its machine, while it runs.
    pub(crate) fn status(&self) -> Option<Status> {
        self.running.as_ref().map(|running| running.machine.status())
    }

    /// How full its collections are, while it runs.
    pub(crate) fn occupancy(&self) -> Option<Vec<Occupancy>> {
        self.running.as_ref().map(|running| running.machine.occupancy())
    }

    /// Its view, while it runs.
    pub(crate) fn view(&self) -> Option<View> {
        self.running.as_ref().map(|running| running.machine.view())
    }

    /// Returns `true` if it signs: it has its promises, and is a member.
    pub(crate) fn signs(&self) -> bool {
        !self.wiped && !self.stopped_signing && !self.is_learner()
    }

    /// The last executed height, while it runs.
    pub(crate) fn executed(&self) -> Option<Height> {
        let running = self.running.as_ref()?;
        Some(running.executor.executed().map_or(Height(0), |executed| executed.height()))
    }

    /// The moment of the world at which its machine wants to be woken.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let running = self.running.as_ref()?;
        Some(running.clock.world(running.machine.next_timeout()?))
    }

    /// Syncs take this long, until then.
    pub(crate) fn slow_down_disk(&mut self, sync: Duration, until: Time) {
        self.slow_sync = Some((sync, until));
    }

    /// Disk and processor are as quick as on a good day.
    pub(crate) fn calm(&mut self) {
        self.slow_sync = None;
        self.paused_until = self.suspended_until;
        if self.failing.take().is_some()
            && let Some(running) = &self.running
        {
            running.disk_faults.iter().for_each(|faults| faults.set(Vec::new()));
        }
    }

    /// Starts it: storage first, then the machine with what survived.
    pub(crate) fn boot(&mut self, now: Time) -> Turn {
        assert!(self.running.is_none(), "a host starts when it is down");
        self.incarnation += 1;
        self.armed = None;
        let mut turn = Turn::default();
        match self.open(now) {
            Ok((running, recovery)) => {
                let bodies = recovery.bodies.clone();
                turn.notes.push(Note::Booted(recovery.executed.clone(), bodies));
                self.running = Some(running);
                self.feed(now, Event::Recovered(Box::new(recovery)), &mut turn);
            }
            Err(error) => turn.notes.push(Note::Storage(error)),
        }
        turn
    }

    /// Power is lost. What was queued may or may not have been written; of what was written and not
    /// synced, `lost_percent` of the sectors are gone.
    pub(crate) fn crash(&mut self, lost_percent: u64) {
        self.armed = None;
        let Some(mut running) = self.running.take() else {
            return;
        };
        if self.rng.coin() {
            for entry in running.log.take_queued() {
                let _ = running.journal.write(&entry);
            }
        }
        // The group is in the file, and no sync of it ever completes.
        for faults in &running.disk_faults {
            let (nth, directory) = (faults.syncs(), faults.directory_syncs());
            faults.set(vec![Fault::FailSync { nth }, Fault::FailDirectorySync { nth: directory }]);
        }
        let _ = running.journal.commit();
        drop(running);
        self.failing = None;
        if self.config.behaviour == Behaviour::Amnesiac {
            self.disk = MemoryDisk::new();
        }
        for disk in [&self.disk, &self.bodies, &self.snapshots] {
            disk.crash(&mut || self.rng.percent(lost_percent));
        }
        self.store.crash();
    }

    /// The files of the bodies are gone; everything else is there.
    pub(crate) fn wipe_bodies(&mut self) {
        assert!(self.running.is_none(), "files are lost while a host is down");
        self.bodies = MemoryDisk::new();
    }

    /// The connection to a member is up again.
    pub(crate) fn connected(&mut self, now: Time, member: ReplicaId) -> Turn {
        let mut turn = Turn::default();
        self.feed(now, Event::Connected(member), &mut turn);
        turn
    }

    /// Lets the machine's timers fire that are due.
    pub(crate) fn wake(&mut self, now: Time) -> Turn {
        let mut turn = Turn::default();
        if let Some(running) = &mut self.running {
            let local = running.clock.local(now);
            if running.machine.next_timeout().is_some_and(|due| due <= local) {
                running.machine.handle_timeout(local);
                self.drain(now, &mut turn);
            }
        }
        turn
    }

    /// Some work is complete.
    pub(crate) fn finish(&mut self, now: Time, work: Work) -> Turn {
        let mut turn = Turn::default();
        let outcome = match work {
            Work::Sync => {
                let synced = self.finish_sync(now, &mut turn);
                if let Some(pace) = self.config.paces.synced() {
                    self.feed(now, Event::Pace(pace), &mut turn);
                }
                synced
            }
            Work::Execute => self.finish_task(now, &mut turn),
            Work::Snapshot => self.finish_snapshot(now, &mut turn),
            Work::Read(request) => self.finish_read(now, &request, &mut turn),
            Work::WakeUp => {
                self.read_wall_clock(now, &mut turn);
                Ok(())
            }
            Work::Combine(outcome) => {
                self.hold_shares_against(now, &outcome.combined.bad, &mut turn);
                self.feed(now, Event::Combined(*outcome), &mut turn);
                Ok(())
            }
        };
        if let Err(error) = outcome {
            turn.notes.push(Note::Storage(error));
        }
        turn
    }

    fn open(&mut self, now: Time) -> Result<(Running, Recovery), StorageError> {
        let config = &self.config;
        let service = quorate_ledger::by_name("ordered-log").expect("one of its names");
        let (service, recorder) = RecordingService::new(service);
        let store = Box::new(self.store.clone());
        let (executor, executed) =
            Executor::open(store, Box::new(service), config.executor.clone())?;
        let disk = FaultyDisk::new(self.disk.clone(), Vec::new());
        let bodies = FaultyDisk::new(self.bodies.clone(), Vec::new());
        let disk_faults = [disk.faults(), bodies.faults()];
        let snapshots = Snapshots::open(Box::new(self.snapshots.clone()), &Owner::nobody())?;
        let (journal, mut recovery) = Journal::open(
            Box::new(disk),
            Box::new(bodies),
            &Owner::nobody(),
            config.log.clone(),
            executed,
        )?;
        recovery.snapshots = snapshots.on_disk();
        recovery.staged = snapshots.staged_chunks();
        let clock = Clock::start(now, config.clock_rate, self.step_ms);
        let settings = config.behaviour.settings(self.epoch.settings.clone());
        let verifier = self.epoch.verifier(&settings);
        let keys = self.keys();
        let machine = Replica::new(ReplicaConfig {
            id: self.id(),
            identity: Arc::new(keys.identity.clone()),
            voting: Arc::new(keys.voting.clone()),
            verifier: Arc::clone(&verifier),
            settings,
            wall_origin_ms: clock.wall_origin_ms(),
            signs: self.signs(),
            // Liars sign whatever they did before.
            asks_witnesses: config.behaviour == Behaviour::Honest,
        });
        let (barrier, log) = barrier();
        let running = Running {
            machine,
            verifier,
            clock,
            journal,
            disk_faults,
            durable: executor.durable(),
            executor,
            snapshots,
            recorder,
            tasks: VecDeque::new(),
            jobs: VecDeque::new(),
            barrier,
            log,
            checks: CheckThreads::new(),
            evidence: EvidenceLog::default(),
            ended: None,
        };
        Ok((running, recovery))
    }
}
