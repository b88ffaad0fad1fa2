//! The machine thread: owns the replica, feeds it events and the time, dispatches its effects.
//!
//! It never computes, reads or writes anything slow; small groups of the log, where those are
//! quick, it writes itself, and nothing is woken for what nobody waits for (ADR 49). What it waits
//! for comes back as an event:
//!
//! | queue in | bound | from |
//! |---|---|---|
//! | answers | what the machine itself asked for | log, reader, execution, pool |
//! | urgent | 4,096 messages | pool: votes, proposals, certificates |
//! | bulk | 256 messages | pool: bodies, blocks, requests |
//!
//! Answers go first, then what is urgent; one bulk event gets its turn after every 64 others. A
//! full queue makes the pool's thread wait, and through it the readers of the peers concerned.
//! While the log is far behind, no bulk event is taken at all: a slow disk slows clients and
//! bodies, never votes.
//!
//! While a write waits for room on a full disk, the replica stands still, as if its member were
//! away: it is given answers alone. What peers send is dropped (lanes may), since whatever came of
//! it would wait in memory without a bound; clients' requests are refused here, for a refusal of
//! the replica would wait behind its records.

use crate::clock::{Clock, WallClock};
use crate::evidence::EvidenceFolder;
use crate::log::{LogQueue, Outgoing};
use crate::pool::{MessageSink, Pool};
use crate::reading::StateViews;
use crate::rescue::ProofOutlet;
use crate::run_queue::RunQueue;
use crate::transport::Network;
use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, never, select, unbounded};
use quorate_engine::host::{
    Barrier, Deferred, EffectPorts, Gated, LOG_BACKLOG_BYTES_MAX, Pacer, dispatch,
};
use quorate_engine::message::Busy;
use quorate_engine::{
    Incoming, Message, Misbehaviour, Replica, Status, WitnessState, WitnessStatus,
};
use quorate_storage::Room;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{CombineJob, Entry, Halt, ReadRequest, Task};
use quorate_types::{Event, Lane, Machine, Peer, Recipients, Time, Verified};
use std::sync::Arc;
use std::time::{Duration, Instant};

const URGENT_MAX: usize = 4_096;
const BULK_MAX: usize = 256;

/// After so many events in a row that are not bulk, a bulk event gets its turn.
const URGENT_RUN_MAX: u32 = 64;

/// The status is shown at most so often, and nothing is deferred for longer.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// What holds the thread up without an event of its own, a slow or a full disk, is looked at so
/// often.
const DISK_INTERVAL: Duration = Duration::from_millis(20);

/// With nothing due, the thread still looks up so often; long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(3_600);

type Input = Event<Incoming>;

/// Hands events to the machine thread. Cloning shares the queues.
#[derive(Clone, Debug)]
pub struct EventSender {
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
pub fn queues() -> (EventSender, Queues) {
    let (answers, answers_in) = unbounded();
    let (urgent, urgent_in) = bounded(URGENT_MAX);
    let (bulk, bulk_in) = bounded(BULK_MAX);
    let queues = Queues { answers: answers_in, urgent: urgent_in, bulk: bulk_in };
    (EventSender { answers, urgent, bulk }, queues)
}

impl Queues {
    fn are_empty(&self) -> bool {
        [&self.answers, &self.urgent, &self.bulk].iter().all(|queue| queue.is_empty())
    }
}

impl EventSender {
    /// An answer to something that the machine asked for. `false`: the machine has stopped.
    pub fn answer(&self, event: Input) -> bool {
        self.answers.send(event).is_ok()
    }

    /// Number of events that wait in each queue.
    #[must_use]
    pub fn waiting(&self) -> Vec<(&'static str, usize)> {
        let queues = [("answers", &self.answers), ("urgent", &self.urgent), ("bulk", &self.bulk)];
        queues.map(|(name, queue)| (name, queue.len())).into()
    }
}

impl MessageSink for EventSender {
    fn message(&self, from: Peer, urgent: bool, message: Verified<Incoming>) -> bool {
        let queue = if urgent { &self.urgent } else { &self.bulk };
        queue.send(Event::Message { from, message }).is_ok()
    }

    /// With nearly all of the queue free: others send meanwhile, and bulk may wait for long.
    fn has_room(&self, urgent: bool) -> bool {
        let (queue, most) =
            if urgent { (&self.urgent, URGENT_MAX) } else { (&self.bulk, BULK_MAX) };
        queue.len() < most / 8
    }
}

/// Ports from the machine thread to the threads that carry out its effects.
pub struct ThreadPorts {
    /// Records, bodies, decided heights, reads; and the sends that wait for records.
    pub log: LogQueue,
    /// Everything else that is sent.
    pub network: Arc<Network>,
    /// Pool that combines shares.
    pub pool: Pool,
    /// Executes, takes and installs snapshots.
    pub execution: Sender<Task>,
    /// Keeps the certificates of heights.
    pub views: Arc<StateViews>,
    /// Keeps those of the heights of snapshots.
    pub proofs: ProofOutlet,
    /// Room on the disk that all of this is written to.
    pub room: Room,
    /// Keeps what proves that members broke a rule.
    pub evidence: EvidenceFolder,
    /// Notes durably, with the reason, that the key must not sign in this network again.
    pub forfeit: Box<dyn Fn(&str) + Send>,
}

impl EffectPorts for ThreadPorts {
    type Stop = Halt;

    fn barrier(&mut self) -> &mut Barrier {
        self.log.barrier()
    }

    fn write(&mut self, entry: Entry) -> Result<(), Halt> {
        self.log.write(entry);
        Ok(())
    }

    fn hold(&mut self, gated: Gated) {
        self.log.hold(gated);
    }

    fn send(&mut self, to: Recipients, lane: Lane, message: Message) {
        self.network.send(Outgoing { to, lane, frame: message.frame() });
    }

    fn execute(&mut self, task: Task) {
        // Fails only when the host stops.
        drop(self.execution.send(task));
    }

    fn read(&mut self, request: ReadRequest) {
        self.log.read(request);
    }

    fn combine(&mut self, job: CombineJob) {
        self.pool.combine(job);
    }

    fn certified(&mut self, certificate: Box<ExecutionCertificate>) {
        self.proofs.certified(&certificate);
        self.views.certified(*certificate);
    }

    /// On this thread, once in the life of a key: nothing that it holds up is signed here.
    fn stop_signing(&mut self, reason: String) -> Result<(), Halt> {
        (self.forfeit)(&reason);
        Ok(())
    }

    fn halt(&mut self, halt: Halt) -> Result<(), Halt> {
        Err(halt)
    }
}

/// The status as readers see it, replaced by the machine thread.
pub type ShownStatus = Arc<ArcSwap<Status>>;

/// A replica on its thread.
pub struct MachineThread {
    replica: Replica,
    ports: ThreadPorts,
    deferred: Deferred,
    queues: Queues,
    stop: Receiver<()>,
    clock: Clock,
    wall: WallClock,
    pacer: Pacer,
    status: ShownStatus,
    shown_at: Instant,
    /// Something happened since the status was shown.
    changed: bool,
    /// Events in a row that were not bulk.
    urgent_run: u32,
    /// Voice in the place of the machine's own.
    #[cfg(feature = "liar")]
    voice: Option<crate::liar::Voice>,
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
        ports: ThreadPorts,
        queues: Queues,
        stop: Receiver<()>,
        wall: WallClock,
        status: ShownStatus,
    ) -> Self {
        let shown_at = Instant::now();
        Self {
            replica,
            ports,
            deferred: Deferred::default(),
            queues,
            stop,
            clock: wall.clock(),
            wall,
            pacer: Pacer::default(),
            status,
            shown_at,
            changed: true,
            urgent_run: 0,
            #[cfg(feature = "liar")]
            voice: None,
        }
    }

    /// Has it say what this voice says in the place of what the machine says.
    #[cfg(feature = "liar")]
    #[must_use]
    pub fn speaking_with(self, voice: Option<crate::liar::Voice>) -> Self {
        Self { voice, ..self }
    }

    /// Runs from the `first` event, which is [`Event::Recovered`], until it is stopped.
    ///
    /// # Errors
    /// When the replica stops itself.
    pub fn run(mut self, first: Input) -> Result<(), Halt> {
        let mut next = Next::Event(first);
        let run_queue = RunQueue::of_this_thread();
        loop {
            let now = self.clock.now();
            let is_first = matches!(next, Next::Event(Event::Recovered(_)));
            if let Some(origin_ms) = self.wall.follow(WallClock::read(self.clock))
                && !is_first
            {
                tracing::warn!("the wall clock moved, or this machine was suspended");
                self.replica.handle(now, Event::WallClock(origin_ms));
            }
            self.set_pace(now, &run_queue);
            match next {
                Next::Event(event) => {
                    #[cfg(feature = "liar")]
                    self.voice.iter().for_each(|voice| voice.hear(&event));
                    self.replica.handle(now, event);
                    self.changed = true;
                }
                Next::TimePassed => {}
                Next::Stop => return self.flush_deferred(),
            }
            let is_due = self.replica.next_timeout().is_some_and(|due| due <= now);
            if is_due && !self.stands_still() {
                self.replica.handle_timeout(now);
                self.changed = true;
            }
            self.dispatch_all()?;
            self.show_status()?;
            self.ports.log.submit(self.queues.are_empty());
            next = self.next();
        }
    }

    /// Now and then: whether this thread waits for processors, and what pace that makes.
    fn set_pace(&mut self, now: Time, run_queue: &RunQueue) {
        if self.pacer.is_due(now)
            && let Some(waited) = run_queue.waited()
            && let Some(pace) = self.pacer.look(now, waited, self.replica.decided())
        {
            tracing::debug!(pacer = ?self.pacer, "the pace of this member's proposals changed");
            self.replica.handle(now, Event::Pace(pace));
        }
    }

    /// Dispatches everything that the replica asks for, in its order.
    fn dispatch_all(&mut self) -> Result<(), Halt> {
        while let Some(effect) = self.replica.poll() {
            #[cfg(feature = "liar")]
            if let Some(voice) = &self.voice {
                for effect in voice.instead_of(effect) {
                    self.deferred.pass(effect, |effect| dispatch(effect, &mut self.ports))?;
                }
                continue;
            }
            self.deferred.pass(effect, |effect| dispatch(effect, &mut self.ports))?;
        }
        Ok(())
    }

    fn flush_deferred(&mut self) -> Result<(), Halt> {
        self.deferred.flush(|effect| dispatch(effect, &mut self.ports))
    }

    /// The next thing to do; blocks when there is nothing.
    fn next(&mut self) -> Next {
        if self.stop.try_recv() == Err(TryRecvError::Disconnected) {
            return Next::Stop;
        }
        if self.stands_still() {
            return self.next_answer();
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
            default(self.timeout()) => return Next::TimePassed,
        };
        event.map_or(Next::Stop, Next::Event)
    }

    /// Takes what is queued already, the most urgent first.
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

    fn stands_still(&self) -> bool {
        self.ports.room.is_out()
    }

    /// The next answer; refuses what clients ask for, and drops what peers send.
    fn next_answer(&mut self) -> Next {
        let event = select! {
            recv(self.queues.answers) -> event => event,
            recv(self.queues.urgent) -> event => event,
            recv(self.queues.bulk) -> event => event,
            recv(self.stop) -> _ => return Next::Stop,
            default(DISK_INTERVAL) => return Next::TimePassed,
        };
        let Ok(Event::Message { from, message }) = event else {
            return event.map_or(Next::Stop, Next::Event);
        };
        if let (Peer::Client(client), Incoming::Request(request)) = (from, message.into_inner()) {
            let busy = Busy::disk_nearly_full(request.sequence);
            self.ports.send(Recipients::Client(client), Lane::Client, Message::Busy(busy));
        }
        Next::TimePassed
    }

    fn log_is_behind(&self) -> bool {
        self.ports.log.backlog_bytes() > LOG_BACKLOG_BYTES_MAX as u64
    }

    /// Returns `true` if the status is to be shown, and what was deferred to be done, in time.
    fn is_to_show(&self) -> bool {
        self.changed || !self.deferred.is_empty()
    }

    /// Time for which there is nothing to do but wait for events.
    fn timeout(&self) -> Duration {
        let due = self.replica.next_timeout().map(|due| due.since(self.clock.now()));
        let show =
            self.is_to_show().then(|| STATUS_INTERVAL.saturating_sub(self.shown_at.elapsed()));
        let backlog = self.log_is_behind().then_some(DISK_INTERVAL);
        [due, show, backlog].into_iter().flatten().min().unwrap_or(IDLE)
    }

    /// Shows the status when that is due, and has what was deferred since the last time done.
    fn show_status(&mut self) -> Result<(), Halt> {
        if self.is_to_show() && self.shown_at.elapsed() >= STATUS_INTERVAL {
            self.flush_deferred()?;
            let status = self.replica.status();
            let earlier = self.status.load();
            log_misbehaviour(&earlier, &status);
            let new = status.evidence.since(&earlier.evidence);
            new.for_each(|(.., evidence)| self.ports.evidence.keep(evidence));
            log_witnesses(&earlier.witnesses, &status.witnesses);
            self.status.store(Arc::new(status));
            self.shown_at = Instant::now();
            self.changed = false;
        }
        Ok(())
    }
}

/// Writes one line when it begins to wait for the others' word about its signatures, and one when
/// it has that.
fn log_witnesses(earlier: &WitnessStatus, status: &WitnessStatus) {
    let WitnessStatus { state, answered, needed, .. } = *status;
    if earlier.state == state {
        return;
    }
    match state {
        WitnessState::Waiting => tracing::info!(
            answered,
            needed,
            "signs nothing until other members have shown what they hold of its signatures"
        ),
        WitnessState::Clear => tracing::info!(
            answered,
            needed,
            "other members hold no signature that the log does not account for: it signs"
        ),
        // Whoever notes it beside the key says why.
        WitnessState::Contradicted | WitnessState::Unasked => {}
    }
}

/// Writes one line for each member and rule, with what was seen first; metrics count the rest.
fn log_misbehaviour(earlier: &Status, status: &Status) {
    for Misbehaviour { member, rule, evidence } in status.misbehaviour.since(&earlier.misbehaviour)
    {
        let rule = rule.name();
        let said = "a member broke a rule of the protocol";
        tracing::warn!(%member, rule, %evidence, "{said}");
    }
}
