//! Client sessions for applications and load generators.
//!
//! A [`Client`] hosts one or many [`Session`] machines on one thread, with a connection for each
//! session to each member. Operations go in with [`Client::submit`], which never blocks; their
//! results come out of [`Client::completions`]. There is no task or thread per operation:
//! tens of sessions carry a hundred thousand operations a second.
//!
//! ```text
//! submit ──▶ sessions (1 thread) ──▶ outboxes ──▶ links (tokio) ──▶ members
//! completions ◀─────┘ ▲                                                │
//!                     └────────────── pool: signatures checked ◀── replies
//! ```

use crate::NodeError;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::pool::{MessageSink, Pool};
use crate::tls::Dialer;
use crate::transport::Limits;
use crate::transport::cuts::Cuts;
use crate::transport::detour::Detours;
use crate::transport::emulated::Ways;
use crate::transport::frames::IngressContext;
use crate::transport::hello::Hello;
use crate::transport::outbound::{Link, Refusals};
use crate::transport::outbox::{Full, Outbox};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use parking_lot::Mutex;
use quorate_engine::{
    CallResult, ClientConfig, Incoming, LearnerAddress, Message, ReplyGate, Session, SessionEffect,
    SessionEvent, SessionSpec, Verifier,
};
use quorate_types::{Committee, Lane, Machine, Peer, ReplicaId, Time, Verified};
use quorate_wan::Topology;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Submissions that wait for the sessions' thread.
const SUBMISSIONS_MAX: usize = 65_536;

/// Checked replies that wait for the sessions' thread.
const REPLIES_MAX: usize = 4_096;

/// Events taken in before their effects are applied.
const RUN_MAX: usize = 1_024;

/// Interval at which the thread wakes with nothing due; long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(3_600);

/// Interval at which [`Client::wait_connected`] polls.
const CONNECTED_INTERVAL: Duration = Duration::from_millis(5);

/// Completion of an operation or a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Index of the session in [`ClientConfig::sessions`].
    pub session: usize,
    /// Mark that the caller gave it.
    pub tag: u64,
    /// Time at which the session had the result.
    pub at: Instant,
    /// Result of the call.
    pub result: CallResult,
}

/// The queue of submissions is full, or the client has ended; the operation was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client takes operations more slowly than they come; try again later")]
pub struct NotTaken;

/// Hosts sessions. Ends when dropped; what is under way then may or may not take effect.
#[derive(Debug)]
pub struct Client {
    submissions: Sender<Submission>,
    completions: Receiver<Completion>,
    ups: Vec<Vec<Arc<AtomicBool>>>,
    refusals: Arc<Refusals>,
    stop: Option<Sender<()>>,
    driver: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// Operations of one session, with the caller's marks.
#[derive(Debug)]
struct Submission {
    session: usize,
    operations: Operations,
}

#[derive(Debug)]
enum Operations {
    One(u64, Bytes),
    Many(Vec<(u64, Bytes)>),
    Query(u64, Bytes),
}

impl Client {
    /// Starts the sessions and begins to connect them. Does not wait: what is submitted before the
    /// connections are up leaves when they are. Brings a runtime of its own.
    ///
    /// # Errors
    /// When the system gives no threads or a key is refused.
    pub fn connect(config: &ClientConfig) -> Result<Self, NodeError> {
        Self::start(config, None)
    }

    /// As [`Client::connect`], with the delays of an emulated network on its links: each session
    /// sits beside the member that it sends to first.
    ///
    /// # Errors
    /// When the system gives no threads or a key is refused.
    pub fn connect_emulated(config: &ClientConfig, topology: &Topology) -> Result<Self, NodeError> {
        Self::start(config, Some(topology))
    }

    fn start(config: &ClientConfig, emulation: Option<&Topology>) -> Result<Self, NodeError> {
        let runtime = crate::validator::start_runtime(config.network_threads.max(1))?;
        let (replies_in, replies) = bounded(REPLIES_MAX);
        let (submissions, submissions_in) = bounded(SUBMISSIONS_MAX);
        let (completed, completions) = unbounded();
        let (stop, stopped) = bounded(0);
        let wiring = Wiring::new(config, emulation, replies_in)?;
        let mut outboxes = Vec::with_capacity(config.sessions.len());
        let mut ups = Vec::with_capacity(config.sessions.len());
        for (index, spec) in config.sessions.iter().enumerate() {
            let links = wiring.links(index, spec)?;
            outboxes.push(links.iter().map(|link| Arc::clone(&link.outbox)).collect());
            let members = links.iter().take(config.committee.size());
            ups.push(members.map(|link| Arc::clone(&link.up)).collect());
            for link in links {
                runtime.spawn(link.run());
            }
        }
        let driver = Driver {
            sessions: sessions(config),
            due: vec![None; config.sessions.len()],
            outboxes,
            send_to_all: config.send_to_all,
            members: config.committee.size(),
            completed,
            clock: Clock::start(),
        };
        let driver =
            start_thread("sessions", move || driver.run(&submissions_in, &replies, &stopped))?;
        Ok(Self {
            submissions,
            completions,
            ups,
            refusals: wiring.refusals,
            stop: Some(stop),
            driver: Some(driver),
            runtime: Some(runtime),
        })
    }

    /// Submits an operation to a session; `tag` comes back with its completion. Never blocks.
    ///
    /// # Errors
    /// [`NotTaken`] when operations come faster than they are taken.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn submit(&self, session: usize, tag: u64, operation: Bytes) -> Result<(), NotTaken> {
        self.queue(session, Operations::One(tag, operation))
    }

    /// Submits many operations to a session at once, for a little less work. All are taken or none.
    ///
    /// # Errors
    /// [`NotTaken`] when operations come faster than they are taken.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn submit_many(
        &self,
        session: usize,
        operations: Vec<(u64, Bytes)>,
    ) -> Result<(), NotTaken> {
        self.queue(session, Operations::Many(operations))
    }

    /// Queries the state; `tag` comes back with the answer. A query changes nothing and is not
    /// ordered.
    ///
    /// # Errors
    /// [`NotTaken`] when operations come faster than they are taken.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn query(&self, session: usize, tag: u64, query: Bytes) -> Result<(), NotTaken> {
        self.queue(session, Operations::Query(tag, query))
    }

    /// Queue of results, in the order in which they became known. A caller that submits also takes
    /// these: they wait in memory otherwise.
    #[must_use]
    pub fn completions(&self) -> &Receiver<Completion> {
        &self.completions
    }

    /// Reason that members give for not letting this client in, as it is now: one of them is
    /// honest. `None` while they do.
    #[must_use]
    pub fn turned_away(&self) -> watch::Receiver<Option<&'static str>> {
        self.refusals.reason()
    }

    /// Number of members that the worst connected session reaches.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        let count =
            |ups: &Vec<Arc<AtomicBool>>| ups.iter().filter(|up| up.load(Ordering::Relaxed)).count();
        self.ups.iter().map(count).min().unwrap_or(0)
    }

    /// Blocks until every session reaches `members` members; `false` when that takes longer than
    /// `timeout`.
    #[must_use]
    pub fn wait_connected(&self, members: usize, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        while self.members_connected() < members {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(CONNECTED_INTERVAL);
        }
        true
    }

    fn queue(&self, session: usize, operations: Operations) -> Result<(), NotTaken> {
        assert!(session < self.ups.len(), "there is no session {session}");
        self.submissions.try_send(Submission { session, operations }).map_err(|_| NotTaken)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(driver) = self.driver.take() {
            let _ = driver.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn sessions(config: &ClientConfig) -> Vec<Session> {
    let config = Arc::new(config.clone());
    (0..config.sessions.len()).map(|index| Session::new(Arc::clone(&config), index)).collect()
}

fn start_thread(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, NodeError> {
    let failed = |source| NodeError::Start { what: name, source };
    Builder::new().name(name.into()).spawn(work).map_err(failed)
}

/// A checked message for one session.
#[derive(Debug)]
struct Heard {
    session: usize,
    from: ReplicaId,
    message: Verified<Incoming>,
}

/// Parts that the links of all sessions share.
struct Wiring<'a> {
    committee: &'a Arc<Committee>,
    emulation: Option<&'a Topology>,
    learner: Option<&'a LearnerAddress>,
    pool: Pool,
    metrics: Arc<Metrics>,
    replies: Sender<Heard>,
    refusals: Arc<Refusals>,
}

impl<'a> Wiring<'a> {
    fn new(
        config: &'a ClientConfig,
        emulation: Option<&'a Topology>,
        replies: Sender<Heard>,
    ) -> Result<Self, NodeError> {
        let metrics = Arc::new(Metrics::new());
        let verifier = Verifier::for_client(Arc::clone(&config.committee));
        let (pool, workers) =
            Pool::without_combining(&Arc::new(verifier), &metrics, config.check_threads);
        for worker in workers {
            start_thread("check-replies", worker)?;
        }
        let (committee, learner) = (&config.committee, config.learner.as_ref());
        let refusals = Arc::new(Refusals::new(Arc::clone(committee)));
        Ok(Self { committee, emulation, learner, pool, metrics, replies, refusals })
    }

    /// A session's links in member order, then one to the learner.
    fn links(&self, session: usize, spec: &SessionSpec) -> Result<Vec<Link>, NodeError> {
        let dialer = Dialer::new(&spec.identity)?;
        let limits = Limits::default();
        let gate = Mutex::new(ReplyGate::new(Arc::clone(self.committee)));
        let sink = Arc::new(SessionSink { session, gate, replies: self.replies.clone() });
        let ingress =
            IngressContext::new(self.pool.clone(), sink, Arc::clone(&self.metrics), limits);
        let hello = Hello::to(self.committee, Lane::Client);
        let mut links = Vec::with_capacity(self.committee.size() + 1);
        let members = self.committee.members().map(|peer| {
            let key = self.committee.identity(peer).expect("a member has a key");
            let address = self.committee.address(peer).expect("a member has an address");
            let ways = self.emulation.map(|wan| Ways::of_client(wan, spec.first, peer));
            (peer, *key, address, ways)
        });
        let beyond = u16::try_from(self.committee.size()).expect("members are few");
        let learner = self
            .learner
            .map(|learner| (ReplicaId(beyond), learner.identity, learner.address.as_str(), None));
        for (peer, key, address, ways) in members.chain(learner) {
            let drops = self.metrics.drops(Peer::Replica(peer), Lane::Client);
            links.push(Link {
                peer,
                address: address.to_owned(),
                tls: dialer.to(key)?,
                hello: Hello { voucher: spec.voucher, ..hello },
                outbox: Arc::new(Outbox::new(1_024, 32 << 20, Full::DropOldest, drops)),
                up: Arc::default(),
                replies: Some(ingress.clone()),
                metrics: Arc::clone(&self.metrics),
                timeouts: (limits.handshake, limits.write),
                ways,
                on_connect: None,
                detours: Detours::default(),
                over: Arc::default(),
                cuts: Cuts::default(),
                refusals: Some(Arc::clone(&self.refusals)),
                on_later: None,
            });
        }
        Ok(links)
    }
}

#[derive(Debug)]
struct SessionSink {
    session: usize,
    gate: Mutex<ReplyGate>,
    replies: Sender<Heard>,
}

impl MessageSink for SessionSink {
    fn message(&self, from: Peer, _urgent: bool, message: Verified<Incoming>) -> bool {
        let Peer::Replica(from) = from else {
            return true;
        };
        if let Incoming::Reply(reply) = &*message {
            self.gate.lock().passed(from, reply);
        }
        self.replies.send(Heard { session: self.session, from, message }).is_ok()
    }

    fn wants(&self, content: &[u8]) -> bool {
        self.gate.lock().wants(content)
    }
}

/// The sessions on their thread.
struct Driver {
    sessions: Vec<Session>,
    /// Next timeout of each session.
    due: Vec<Option<Time>>,
    /// Queues by session, then by member; a learner's comes last.
    outboxes: Vec<Vec<Arc<Outbox>>>,
    send_to_all: bool,
    members: usize,
    completed: Sender<Completion>,
    clock: Clock,
}

impl Driver {
    fn run(
        mut self,
        submissions: &Receiver<Submission>,
        replies: &Receiver<Heard>,
        stopped: &Receiver<()>,
    ) {
        loop {
            let now = self.clock.now();
            select! {
                recv(submissions) -> submission => match submission {
                    Ok(submission) => self.submit(now, submission),
                    Err(_) => return,
                },
                recv(replies) -> heard => match heard {
                    Ok(heard) => self.hear(now, heard),
                    Err(_) => return,
                },
                recv(stopped) -> _ => return,
                default(self.time_left(now)) => {}
            }
            // Events that have queued meanwhile, replies first: they make room.
            let now = self.clock.now();
            replies.try_iter().take(RUN_MAX).for_each(|heard| self.hear(now, heard));
            submissions.try_iter().take(RUN_MAX).for_each(|item| self.submit(now, item));
            self.fire_timers(now);
            self.apply_effects();
        }
    }

    fn submit(&mut self, now: Time, Submission { session, operations }: Submission) {
        let event = match operations {
            Operations::One(tag, operation) => SessionEvent::Submit { tag, operation },
            Operations::Many(operations) => SessionEvent::SubmitMany(operations),
            Operations::Query(tag, query) => SessionEvent::Query { tag, query },
        };
        self.sessions[session].handle(now, event);
        self.due[session] = Some(now);
    }

    fn hear(&mut self, now: Time, Heard { session, from, message }: Heard) {
        self.sessions[session].handle(now, SessionEvent::Message { from, message });
        self.due[session] = Some(now);
    }

    /// Fires the timers of every session that had an input or whose timeout has come.
    fn fire_timers(&mut self, now: Time) {
        for (machine, due) in self.sessions.iter_mut().zip(&mut self.due) {
            if due.is_some_and(|due| due <= now) {
                machine.handle_timeout(now);
                *due = machine.next_timeout();
            }
        }
    }

    fn apply_effects(&mut self) {
        let at = Instant::now();
        for (session, machine) in self.sessions.iter_mut().enumerate() {
            let outboxes = &self.outboxes[session];
            while let Some(effect) = machine.poll() {
                match effect {
                    SessionEffect::Send { to, request } => {
                        let frame = Message::Request(request).frame();
                        if self.send_to_all {
                            let members = outboxes.iter().take(self.members);
                            members.for_each(|member| member.push(frame.clone()));
                        } else {
                            outboxes[to.index()].push(frame);
                        }
                    }
                    SessionEffect::Query { to, query } => {
                        outboxes[to.index()].push(Message::Query(query).frame());
                    }
                    SessionEffect::Return { tag, result } => {
                        // Fails only when the client has ended.
                        let _ = self.completed.send(Completion { session, tag, at, result });
                    }
                }
            }
        }
    }

    fn time_left(&self, now: Time) -> Duration {
        self.due.iter().flatten().min().map_or(IDLE, |due| due.since(now))
    }
}
