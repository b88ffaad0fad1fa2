//! Client sessions for applications and load generators.
//!
//! A [`Client`] hosts one or many [sessions](quorate_engine::Session) on one thread, with a
//! connection for each session to each member. Operations go in with [`Client::submit`], which
//! never blocks; their results come out of [`Client::completions`]. There is no task or thread per
//! operation: tens of sessions carry a hundred thousand operations a second.
//!
//! ```text
//! submit ──▶ sessions (1 thread) ──▶ outboxes ──▶ links (tokio) ──▶ members
//! completions ◀─────┘ ▲                                                │
//!                     └────────────── pool: signatures checked ◀── replies
//! ```
//!
//! A member that is in a later epoch says how the client's ended. The client checks it, and goes on
//! with the next committee, from epoch to epoch: its links and its pool are new ones then, its
//! sessions go on. ★ It believes members for the network's trusting period after the last time at
//! which it knew their epoch in force: that of its configuration's history, of its start where that
//! has none, or of an operation that they completed within the period.

mod calls;
mod driver;
mod links;

use crate::NodeError;
use crate::testnet::system_random;
use arc_swap::ArcSwap;
use bytes::Bytes;
pub use calls::{Call, Calls};
use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use driver::Driver;
use links::Wiring;
use quorate_crypto::IdentitySecret;
use quorate_engine::{CallResult, ClientConfig, SessionSpec};
use quorate_types::{HandedOverError, History, ReplicaId};
use quorate_wan::Topology;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Submissions that wait for the sessions' thread.
const SUBMISSIONS_MAX: usize = 65_536;

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
    sessions: usize,
    current: Arc<ArcSwap<Current>>,
    turned_away: watch::Receiver<Option<&'static str>>,
    stop: Option<Sender<()>>,
    driver: Option<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// The epoch that the sessions are in.
#[derive(Clone, Debug)]
struct Current {
    history: Arc<History>,
    /// By session, then by member: whether the link is up.
    ups: Vec<Vec<Arc<AtomicBool>>>,
    /// Why the client does not follow its network to the next one.
    outdated: Option<HandedOverError>,
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
        let (submissions, submissions_in) = bounded(SUBMISSIONS_MAX);
        let (completed, completions) = unbounded();
        let (stop, stopped) = bounded(0);
        let wiring = Wiring::new(runtime.handle().clone(), emulation.cloned());
        let links = wiring.connect(config)?;
        let turned_away = links.turned_away();
        let (history, ups) = (Arc::clone(&config.history), links.ups());
        let current = Current { history, ups, outdated: None };
        let current = Arc::new(ArcSwap::from_pointee(current));
        let driver = Driver::new(config, (wiring, links), Arc::clone(&current), completed);
        let driver = start_thread("sessions", move || driver.run(&submissions_in, &stopped))?;
        Ok(Self {
            submissions,
            completions,
            sessions: config.sessions.len(),
            current,
            turned_away,
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
        self.turned_away.clone()
    }

    /// Epochs of the network up to the one that the client is in: those that its configuration
    /// names, and those that it has followed to.
    #[must_use]
    pub fn history(&self) -> Arc<History> {
        Arc::clone(&self.current.load().history)
    }

    /// Reason for which the client does not follow its network to the next epoch: the keys of this
    /// one are not trusted any more. `None` while there is none.
    #[must_use]
    pub fn outdated(&self) -> Option<HandedOverError> {
        self.current.load().outdated.clone()
    }

    /// Number of members that the worst connected session reaches.
    #[must_use]
    pub fn members_connected(&self) -> usize {
        let count =
            |ups: &Vec<Arc<AtomicBool>>| ups.iter().filter(|up| up.load(Ordering::Relaxed)).count();
        self.current.load().ups.iter().map(count).min().unwrap_or(0)
    }

    /// Returns `true` if the members that each session reaches are a quorum, by weight.
    #[must_use]
    pub fn reaches_quorum(&self) -> bool {
        let current = self.current.load();
        let committee = current.history.committee();
        let weight = |ups: &Vec<Arc<AtomicBool>>| {
            let reached = committee.members().zip(ups).filter(|(_, up)| up.load(Ordering::Relaxed));
            reached.map(|(id, _)| committee.weight(id)).sum::<u64>()
        };
        current.ups.iter().all(|ups| weight(ups) >= committee.quorum())
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
        assert!(session < self.sessions, "there is no session {session}");
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

/// A session with a new random key that sends to this member first.
#[must_use]
pub fn new_session(first: ReplicaId) -> SessionSpec {
    let mut seed = [0; 32];
    system_random(&mut seed);
    SessionSpec::fresh(IdentitySecret::from_seed(seed), first)
}

fn start_thread(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, NodeError> {
    let failed = |source| NodeError::Start { what: name, source };
    Builder::new().name(name.into()).spawn(work).map_err(failed)
}
