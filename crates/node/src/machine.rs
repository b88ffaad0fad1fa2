//! The machine thread: owns the replica, feeds it events and the time, carries out its effects.
//!
//! It never computes, reads or writes anything slow. What it waits for comes back as an event:
//!
//! | queue in | bound | from |
//! |---|---|---|
//! | answers | what the machine itself asked for | log, reader, execution, pool |
//! | urgent | 4,096 messages | pool: votes, proposals, certificates |
//! | bulk | 256 messages | pool: bodies, blocks, requests |
//!
//! Answers go first, then what is urgent; one bulk event gets its turn after every
//! 64 others. A full queue makes the pool's thread wait, and through it the readers of
//! the peers concerned. While the log is far behind, no bulk event is taken at all: a slow disk slows
//! clients and bodies, never votes.

use crate::log::{LogQueue, Outgoing};
use crate::pool::{Inlet, Pool};
use crate::reading::Shelf;
use crate::transport::Network;
use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select, unbounded};
use quorate_engine::{Incoming, Message, Replica, Status};
use quorate_types::machine::{Halt, Task};
use quorate_types::{Effect, Event, Lane, Machine, Peer, Recipients, Time, Verified};
use std::sync::Arc;
use std::time::{Duration, Instant};

const URGENT_MAX: usize = 4_096;
const BULK_MAX: usize = 256;

/// After so many events in a row that are not bulk, a bulk event gets its turn.
const URGENT_RUN_MAX: u32 = 64;

/// Bytes that wait to be written to the log; beyond it no bulk events are taken.
const LOG_BACKLOG_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The status is shown at most so often.
const STATUS_INTERVAL: Duration = Duration::from_millis(20);

/// With nothing due, the thread still looks up so often; long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(3_600);

type Input = Event<Incoming>;

/// Monotonic time since the host's start.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Time zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time now.
    #[must_use]
    pub fn now(self) -> Time {
        Time(u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX))
    }
}

/// Hands events to the machine thread. Cloning shares the queues.
#[derive(Clone, Debug)]
pub struct Doors {
    answers: Sender<Input>,
    urgent: Sender<Input>,
    bulk: Sender<Input>,
}

/// The machine thread's ends of the queues.
#[derive(Debug)]
pub struct Queues {
    answers: Receiver<Input>,
    urgent: Receiver<Input>,
    bulk: Receiver<Input>,
}

/// The queues into the machine thread.
#[must_use]
pub fn queues() -> (Doors, Queues) {
    let (answers, answers_in) = unbounded();
    let (urgent, urgent_in) = bounded(URGENT_MAX);
    let (bulk, bulk_in) = bounded(BULK_MAX);
    let queues = Queues { answers: answers_in, urgent: urgent_in, bulk: bulk_in };
    (Doors { answers, urgent, bulk }, queues)
}

impl Doors {
    /// An answer to something that the machine asked for. `false`: the machine has stopped.
    pub fn answer(&self, event: Input) -> bool {
        self.answers.send(event).is_ok()
    }

    /// How many events wait in each queue.
    #[must_use]
    pub fn waiting(&self) -> Vec<(&'static str, usize)> {
        let queues = [("answers", &self.answers), ("urgent", &self.urgent), ("bulk", &self.bulk)];
        queues.map(|(name, queue)| (name, queue.len())).into()
    }
}

impl Inlet for Doors {
    fn message(&self, from: Peer, urgent: bool, message: Verified<Incoming>) -> bool {
        let queue = if urgent { &self.urgent } else { &self.bulk };
        queue.send(Event::Message { from, message }).is_ok()
    }
}

/// Who carries out the effects.
pub struct Hands {
    /// Records, bodies, decided heights, reads; and the sends that wait for records.
    pub log: LogQueue,
    /// Everything else that is sent.
    pub network: Arc<Network>,
    /// Combines shares.
    pub pool: Pool,
    /// Executes, takes and installs snapshots.
    pub execution: Sender<Task>,
    /// Keeps what certifies heights.
    pub shelf: Arc<Shelf>,
}

/// Where the status is shown.
pub type ShownStatus = Arc<ArcSwap<Status>>;

/// A replica on its thread.
pub struct MachineThread {
    replica: Replica,
    hands: Hands,
    queues: Queues,
    stop: Receiver<()>,
    clock: Clock,
    status: ShownStatus,
    shown_at: Instant,
    /// Something happened since the status was shown.
    changed: bool,
    /// Events in a row that were not bulk.
    urgent_run: u32,
}

#[expect(clippy::large_enum_variant, reason = "it lives for one turn of the loop, on the stack")]
enum Next {
    Event(Input),
    TimePassed,
    Stop,
}

impl MachineThread {
    /// A thread's worth of work; ends when `stop`'s other end is dropped.
    #[must_use]
    pub fn new(
        replica: Replica,
        hands: Hands,
        queues: Queues,
        stop: Receiver<()>,
        clock: Clock,
        status: ShownStatus,
    ) -> Self {
        let shown_at = Instant::now();
        Self { replica, hands, queues, stop, clock, status, shown_at, changed: true, urgent_run: 0 }
    }

    /// Runs from the `first` event, which is [`Event::Recovered`], until it is stopped.
    ///
    /// # Errors
    /// When the replica stops itself.
    pub fn run(mut self, first: Input) -> Result<(), Halt> {
        let mut next = Next::Event(first);
        loop {
            let now = self.clock.now();
            match next {
                Next::Event(event) => {
                    self.replica.handle(now, event);
                    self.changed = true;
                }
                Next::TimePassed => {}
                Next::Stop => return Ok(()),
            }
            if self.replica.next_timeout().is_some_and(|due| due <= now) {
                self.replica.handle_timeout(now);
                self.changed = true;
            }
            self.carry_out()?;
            self.show_status();
            next = self.next();
        }
    }

    /// Carries out everything that the replica asks for, in its order.
    fn carry_out(&mut self) -> Result<(), Halt> {
        while let Some(effect) = self.replica.poll() {
            match effect {
                Effect::Send { to, lane, message } => self.send(to, lane, &message),
                Effect::Persist(record) => self.hands.log.persist(record),
                Effect::Append(record) => self.hands.log.append(record),
                Effect::Store(body) => self.hands.log.store(body),
                Effect::Read(request) => self.hands.log.read(request),
                Effect::Combine(job) => self.hands.pool.combine(job),
                Effect::Task(task) => self.execute(task),
                Effect::Certified(certificate) => self.hands.shelf.certified(*certificate),
                Effect::Release(release) => self.hands.log.release(release),
                Effect::Halt(reason) => return Err(reason),
            }
        }
        Ok(())
    }

    fn execute(&mut self, task: Task) {
        if let Some(task) = self.hands.log.hold_task(task) {
            // Fails only when the host stops.
            drop(self.hands.execution.send(task));
        }
    }

    fn send(&mut self, to: Recipients, lane: Lane, message: &Message) {
        let outgoing = Outgoing { to, lane, frame: message.frame() };
        if let Some(outgoing) = self.hands.log.hold_back(outgoing) {
            self.hands.network.send(outgoing);
        }
    }

    /// The next thing to do; blocks when there is nothing.
    fn next(&mut self) -> Next {
        if self.stop.try_recv() == Err(TryRecvError::Disconnected) {
            return Next::Stop;
        }
        if let Some(event) = self.ready() {
            return Next::Event(event);
        }
        self.urgent_run = 0;
        let nothing = never();
        let bulk = if self.log_is_behind() { &nothing } else { &self.queues.bulk };
        let event = select! {
            recv(self.queues.answers) -> event => event,
            recv(self.queues.urgent) -> event => event,
            recv(bulk) -> event => event,
            recv(self.stop) -> _ => return Next::Stop,
            default(self.patience()) => return Next::TimePassed,
        };
        event.map_or(Next::Stop, Next::Event)
    }

    /// What is queued already, the most urgent first.
    fn ready(&mut self) -> Option<Input> {
        if self.urgent_run < URGENT_RUN_MAX {
            self.urgent_run += 1;
            let urgent = self.queues.answers.try_recv().or_else(|_| self.queues.urgent.try_recv());
            if let Ok(event) = urgent {
                return Some(event);
            }
        }
        self.urgent_run = 0;
        if self.log_is_behind() {
            return None;
        }
        self.queues.bulk.try_recv().ok()
    }

    fn log_is_behind(&self) -> bool {
        self.hands.log.backlog_bytes() > LOG_BACKLOG_BYTES_MAX
    }

    /// How long there is nothing to do but wait for events.
    fn patience(&self) -> Duration {
        let due = self.replica.next_timeout().map(|due| due.since(self.clock.now()));
        let show = self.changed.then(|| STATUS_INTERVAL.saturating_sub(self.shown_at.elapsed()));
        let backlog = self.log_is_behind().then_some(STATUS_INTERVAL);
        [due, show, backlog].into_iter().flatten().min().unwrap_or(IDLE)
    }

    fn show_status(&mut self) {
        if self.changed && self.shown_at.elapsed() >= STATUS_INTERVAL {
            self.status.store(Arc::new(self.replica.status()));
            self.shown_at = Instant::now();
            self.changed = false;
        }
    }
}
