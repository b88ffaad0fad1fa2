//! Client sessions for applications and load generators.
//!
//! A [`Client`] hosts one or many [`Session`] machines on one thread, with a connection for each
//! session to each member. Operations go in with [`Client::submit`], which never blocks; what became
//! of them comes out of [`Client::completions`]. There is no task or thread per operation: tens of
//! sessions carry a hundred thousand operations a second.
//!
//! ```text
//! submit ──▶ sessions (1 thread) ──▶ outboxes ──▶ links (tokio) ──▶ members
//! completions ◀─────┘ ▲                                                │
//!                     └────────────── pool: signatures checked ◀── replies
//! ```

use crate::NodeError;
use crate::machine::Clock;
use crate::metrics::Metrics;
use crate::pool::{Inlet, Pool};
use crate::tls::Dialer;
use crate::transport::Limits;
use crate::transport::emulated::Ways;
use crate::transport::frames::Intake;
use crate::transport::hello::Hello;
use crate::transport::outbound::{Full, Link, Outbox};
use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use parking_lot::Mutex;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_engine::{
    Bundling, CheckAnswer, Incoming, Message, ReplyGate, Session, SessionConfig, SessionEffect,
    SessionEvent, Settings, Told, Verifier, asks_nothing,
};
use quorate_types::{
    Committee, Height, Lane, Machine, Outcome, Peer, Receipt, ReplicaId, Time, Verified,
};
use quorate_wan::Topology;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Submissions that wait for the sessions' thread.
const SUBMISSIONS_MAX: usize = 65_536;

/// Checked replies that wait for the sessions' thread.
const REPLIES_MAX: usize = 4_096;

/// Events taken in before their effects are carried out.
const RUN_MAX: usize = 1_024;

/// With nothing due, the thread still looks up so often; long enough to cost nothing.
const IDLE: Duration = Duration::from_secs(3_600);

/// How often [`Client::wait_connected`] looks.
const CONNECTED_INTERVAL: Duration = Duration::from_millis(5);

/// How a client is made.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// Whom it talks to.
    pub committee: Arc<Committee>,
    /// Its sessions; each with a key of its own.
    pub sessions: Vec<SessionSpec>,
    /// Which operations share a request.
    pub bundling: Bundling,
    /// How long a request may stay unanswered before it goes to all members.
    pub retry_after: Duration,
    /// Threads that encrypt and move bytes.
    pub network_threads: usize,
    /// Threads that check the members' signatures on replies.
    pub check_threads: usize,
    /// Whether every member gets every request at once, instead of one after the other for as long as
    /// nobody answers. It survives a silent member without a pause, and every member's link and
    /// verification carry everything once more.
    pub send_to_all: bool,
    /// A network to emulate: each session sits beside the member that it sends to first.
    pub emulation: Option<Arc<Topology>>,
    /// The service's check of answers to questions.
    pub check_answer: CheckAnswer,
    /// A learner that is asked questions before members are.
    pub learner: Option<LearnerAddress>,
}

impl ClientConfig {
    /// Sessions with the usual patience: 2 ms for bundles, 2 s for answers.
    #[must_use]
    pub fn new(committee: Arc<Committee>, sessions: Vec<SessionSpec>) -> Self {
        Self {
            committee,
            sessions,
            bundling: Bundling::after(Duration::from_millis(2)),
            retry_after: Duration::from_secs(1),
            network_threads: 1,
            check_threads: 1,
            send_to_all: false,
            emulation: None,
            check_answer: asks_nothing,
            learner: None,
        }
    }
}

/// Where a learner answers questions, as text `KEY@ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnerAddress {
    /// Its identity key: nobody else is spoken to there.
    pub identity: IdentityKey,
    /// `host:port`.
    pub address: String,
}

/// A text that is not `KEY@ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not KEY@ADDRESS: a learner's identity key of 64 hexadecimal digits, '@', and where it \
     listens, as in …@127.0.0.1:7008"
)]
pub struct NoLearnerAddress(String);

impl FromStr for LearnerAddress {
    type Err = NoLearnerAddress;

    fn from_str(text: &str) -> Result<Self, NoLearnerAddress> {
        let parse = || {
            let (key, address) = text.split_once('@')?;
            let (identity, address) = (key.parse().ok()?, address.to_owned());
            address.contains(':').then_some(Self { identity, address })
        };
        parse().ok_or_else(|| NoLearnerAddress(text.to_owned()))
    }
}

impl fmt::Display for LearnerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.identity, self.address)
    }
}

/// One session.
#[derive(Clone, Debug)]
pub struct SessionSpec {
    /// Its key: the client's identity.
    pub identity: Arc<IdentitySecret>,
    /// The member that it sends to first.
    pub first: ReplicaId,
    /// One past the last sequence number that this key ever used; 0 for a new key.
    pub next_sequence: u64,
}

impl SessionSpec {
    /// A session for a key that was never used.
    #[must_use]
    pub fn fresh(identity: IdentitySecret, first: ReplicaId) -> Self {
        Self { identity: Arc::new(identity), first, next_sequence: 0 }
    }
}

/// What became of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The session's index in [`ClientConfig::sessions`].
    pub session: usize,
    /// The caller's mark.
    pub tag: u64,
    /// When it was known.
    pub at: Instant,
    /// What.
    pub finished: Finished,
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finished {
    /// Enough members answered alike.
    Executed {
        /// What the operation came to.
        outcome: Outcome,
        /// Where it took effect.
        height: Height,
        /// What proves it, where the committee certifies what it executes, and the operation's place in
        /// the receipt's request. What had to be asked about again has none.
        receipt: Option<(Arc<Receipt>, usize)>,
    },
    /// A question was answered.
    Answered(Told),
    /// The session had no room for it: it was never sent. Submit more slowly.
    Overloaded {
        /// What the member that was busy last said, if one was.
        reason: Option<Arc<str>>,
    },
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
    Question(u64, Bytes),
}

impl Client {
    /// Starts the sessions and begins to connect them. Does not wait: what is submitted before the
    /// connections are up leaves when they are. Brings a runtime of its own.
    ///
    /// # Errors
    /// When the system gives no threads or a key is refused.
    pub fn connect(config: &ClientConfig) -> Result<Self, NodeError> {
        let runtime = crate::validator::start_runtime(config.network_threads.max(1))?;
        let (replies_in, replies) = bounded(REPLIES_MAX);
        let (submissions, submissions_in) = bounded(SUBMISSIONS_MAX);
        let (completed, completions) = unbounded();
        let (stop, stopped) = bounded(0);
        let wiring = Wiring::new(config, replies_in)?;
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
        let driver = start("sessions", move || driver.run(&submissions_in, &replies, &stopped))?;
        Ok(Self {
            submissions,
            completions,
            ups,
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

    /// Asks about the state; `tag` comes back with the answer. It changes nothing and is not ordered.
    ///
    /// # Errors
    /// [`NotTaken`] when operations come faster than they are taken.
    ///
    /// # Panics
    /// When there is no such session.
    pub fn ask(&self, session: usize, tag: u64, question: Bytes) -> Result<(), NotTaken> {
        self.queue(session, Operations::Question(tag, question))
    }

    /// What became of operations, as it becomes known. Whoever submits also takes these: they wait in
    /// memory otherwise.
    #[must_use]
    pub fn completions(&self) -> &Receiver<Completion> {
        &self.completions
    }

    /// How many members the worst connected session reaches.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        let count =
            |ups: &Vec<Arc<AtomicBool>>| ups.iter().filter(|up| up.load(Ordering::Relaxed)).count();
        self.ups.iter().map(count).min().unwrap_or(0)
    }

    /// Blocks until every session reaches `members` members; `false` when that takes longer than
    /// `patience`.
    #[must_use]
    pub fn wait_connected(&self, members: usize, patience: Duration) -> bool {
        let until = Instant::now() + patience;
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
    let session = |spec: &SessionSpec| {
        Session::new(SessionConfig {
            committee: Arc::clone(&config.committee),
            identity: Arc::clone(&spec.identity),
            first: spec.first,
            bundling: config.bundling,
            retry_after: config.retry_after,
            next_sequence: spec.next_sequence,
            check_answer: config.check_answer,
            learner: config.learner.is_some(),
        })
    };
    config.sessions.iter().map(session).collect()
}

fn start(
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

/// What the links of all sessions share.
struct Wiring<'a> {
    committee: &'a Arc<Committee>,
    emulation: Option<&'a Topology>,
    learner: Option<&'a LearnerAddress>,
    pool: Pool,
    metrics: Arc<Metrics>,
    replies: Sender<Heard>,
}

impl<'a> Wiring<'a> {
    fn new(config: &'a ClientConfig, replies: Sender<Heard>) -> Result<Self, NodeError> {
        let metrics = Arc::new(Metrics::new());
        // Clients check replies alone, which neither protocol nor proposals' keys have a part in.
        let Settings { protocol, proposal_key, .. } = Settings::default();
        let verifier = Verifier::new(Arc::clone(&config.committee), protocol, proposal_key);
        let nothing_combined = Arc::new(|_| true);
        let (pool, workers) =
            Pool::new(&Arc::new(verifier), &metrics, nothing_combined, config.check_threads);
        for worker in workers {
            start("check-replies", worker)?;
        }
        let emulation = config.emulation.as_deref();
        let (committee, learner) = (&config.committee, config.learner.as_ref());
        Ok(Self { committee, emulation, learner, pool, metrics, replies })
    }

    /// A session's links in member order, then one to the learner.
    fn links(&self, session: usize, spec: &SessionSpec) -> Result<Vec<Link>, NodeError> {
        let dialer = Dialer::new(&spec.identity)?;
        let limits = Limits::default();
        let gate = Mutex::new(ReplyGate::new(Arc::clone(self.committee)));
        let inlet = Arc::new(SessionInlet { session, gate, replies: self.replies.clone() });
        let intake = Intake::new(self.pool.clone(), inlet, Arc::clone(&self.metrics), limits);
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
                hello: Hello { chain: self.committee.chain(), lane: Lane::Client },
                outbox: Arc::new(Outbox::new(1_024, 32 << 20, Full::DropOldest, drops)),
                up: Arc::default(),
                replies: Some(intake.clone()),
                metrics: Arc::clone(&self.metrics),
                patience: (limits.handshake, limits.write),
                ways,
            });
        }
        Ok(links)
    }
}

#[derive(Debug)]
struct SessionInlet {
    session: usize,
    gate: Mutex<ReplyGate>,
    replies: Sender<Heard>,
}

impl Inlet for SessionInlet {
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
    /// When each session wants to be told the time.
    due: Vec<Option<Time>>,
    /// By session, then by member; a learner's comes last.
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
                default(self.patience(now)) => {}
            }
            // What has queued meanwhile, replies first: they make room.
            let now = self.clock.now();
            replies.try_iter().take(RUN_MAX).for_each(|heard| self.hear(now, heard));
            submissions.try_iter().take(RUN_MAX).for_each(|item| self.submit(now, item));
            self.tell_time(now);
            self.carry_out();
        }
    }

    fn submit(&mut self, now: Time, Submission { session, operations }: Submission) {
        let event = match operations {
            Operations::One(tag, operation) => SessionEvent::Submit { tag, operation },
            Operations::Many(operations) => SessionEvent::SubmitMany(operations),
            Operations::Question(tag, question) => SessionEvent::Ask { tag, question },
        };
        self.sessions[session].handle(now, event);
        self.due[session] = Some(now);
    }

    fn hear(&mut self, now: Time, Heard { session, from, message }: Heard) {
        self.sessions[session].handle(now, SessionEvent::Message { from, message });
        self.due[session] = Some(now);
    }

    /// Marks every session that was fed or whose time has come with the time that it wants next.
    fn tell_time(&mut self, now: Time) {
        for (machine, due) in self.sessions.iter_mut().zip(&mut self.due) {
            if due.is_some_and(|due| due <= now) {
                machine.handle_timeout(now);
                *due = machine.next_timeout();
            }
        }
    }

    fn carry_out(&mut self) {
        let at = Instant::now();
        for (session, machine) in self.sessions.iter_mut().enumerate() {
            while let Some(effect) = machine.poll() {
                let (tag, finished) = match effect {
                    SessionEffect::Send { to, request } => {
                        let frame = Message::Request(request).frame();
                        let members = &self.outboxes[session];
                        if self.send_to_all {
                            let members = members.iter().take(self.members);
                            members.for_each(|member| member.push(frame.clone()));
                        } else {
                            members[to.index()].push(frame);
                        }
                        continue;
                    }
                    SessionEffect::Completed(done) => {
                        let place = done.place;
                        let receipt = done.receipt.map(|receipt| (receipt, place));
                        let (outcome, height) = (done.outcome, done.height);
                        (done.tag, Finished::Executed { outcome, height, receipt })
                    }
                    SessionEffect::Ask { to, question } => {
                        let frame = Message::Question(question).frame();
                        self.outboxes[session][to.index()].push(frame);
                        continue;
                    }
                    SessionEffect::Answered(told) => (told.tag, Finished::Answered(told)),
                    SessionEffect::Overloaded { tag, reason } => {
                        (tag, Finished::Overloaded { reason })
                    }
                };
                // Fails only when the client has ended.
                let _ = self.completed.send(Completion { session, tag, at, finished });
            }
        }
    }

    fn patience(&self, now: Time) -> Duration {
        self.due.iter().flatten().min().map_or(IDLE, |due| due.since(now))
    }
}
