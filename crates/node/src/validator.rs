//! A running validator: everything wired together.
//!
//! ```text
//!             network threads (tokio)                         std threads
//!  peers ──▶ listener ─▶ frame readers ──▶ pool: urgent ×1, bulk ×N ──▶ machine ──▶ log ──▶ disk
//!  clients                                   ▲  shares to combine ────────┤ ▲ ▲      │
//!  peers ◀── links ◀── outboxes ◀────────────────── sends ────────────────┤ │ └──────┤ stored,
//!  clients ◀─────────────────▲─────── sends that waited for a record ─────│─│────────┘ then read
//!  operator ◀── http         │                                            └─┴── execution ─▶ store
//! ```
//!
//! What is small takes shorter ways while nothing is ahead of it (ADR 49): its reader checks it in
//! the pool's place, and whoever sends it writes it to the connection.
//!
//! Threads by name: `net` (tokio's), `check-votes`, `check-bulk-N`, `machine`, `proofs`, `log`,
//! `read`, `execute`, `checkpoint`, `snapshots`, `room`. All block when idle but three: the
//! observer (`observer`), which looks and probes once a second, the `dashboard`, which looks as
//! often for its page, and `room`, which looks after the disk.
//!
//! It stops in the order in which work flows: the machine first, then the log writes what is queued
//! and releases what waited for it, then execution makes the state durable, then the network ends.
//! A failed write, a halt or a panic of any thread stops everything, with the reason as the error.
//! A write that finds no room waits ([`Room`](quorate_storage::Room)).

mod archive;
mod origin;
mod stores;
mod succession;
mod workers;

use crate::config::{LogFormat, LogLevel, LogSettings};
use crate::connections::ConnectionLimits;
use crate::dashboard;
use crate::descriptors::{Demand, Descriptors, limit};
use crate::device::GuardedJournal;
use crate::evidence::EvidenceFolder;
use crate::execution::ExecutionWorker;
use crate::http::{self, Queues, Shown, StatusDoor};
use crate::http_access::reload_on_hangups;
use crate::keys::Keyring;
use crate::log::log_thread;
use crate::machine::{EventSender, MachineThread, ThreadPorts, queues};
use crate::observer::Observer;
use crate::quotas::RateLimit;
use crate::reading::{Reading, StateViews};
use crate::reload::Hangups;
use crate::shutdown::Shutdown;
use crate::threads::Threads;
use crate::tls;
use crate::transport::Limits;
use crate::transport::cuts::Cuts;
use crate::transport::frames::IngressContext;
use crate::transport::inbound::{HasState, IsNextMember, Listener, Peers};
use crate::transport::outbound::{MadeUp, OnConnect, member_links};
use crate::{Epochs, NodeConfig, NodeError, room};
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use origin::Origin;
use quorate_engine::Replica;
use quorate_types::machine::Halt;
use quorate_types::{Event, HandedOver, History, Lane, ReplicaId, Service};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use stores::{Stores, forfeit, set_state_aside};
pub(crate) use succession::News;
use succession::Succession;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use workers::{
    LogOutlet, keep_proofs, spawn_execution, spawn_reading, spawn_snapshots, start_pool,
};

/// Longest time for the network to end.
const NETWORK_END: Duration = Duration::from_secs(1);

/// Runs a validator until `shutdown` is triggered or something fails, from one epoch of its network
/// to the next. Each begins with a `service` of its own, which reads its state from the disk.
/// Blocks.
///
/// Not to be called from a tokio task: a validator brings a runtime of its own.
///
/// # Errors
/// Why it did not start, or why it stopped. A program exits with a code other than zero then.
pub fn run(
    config: &NodeConfig,
    service: impl Fn() -> Box<dyn Service>,
    shutdown: &Shutdown,
) -> Result<(), NodeError> {
    while Validator::start(config, service())?.wait(shutdown)? == Ending::NextEpoch {}
    Ok(())
}

/// Writes the log to standard error from now on. Does nothing when something else does already.
pub fn init_logging(settings: LogSettings) {
    let level = match settings.level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Trace => tracing::Level::TRACE,
    };
    let writer = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr);
    let _ = match settings.format {
        LogFormat::Text => writer.try_init(),
        LogFormat::Json => writer.json().try_init(),
    };
}

/// How a validator's run ended, where nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was told to stop.
    Stopped,
    /// The epoch ended: the next one begins when it is started again.
    NextEpoch,
}

/// A validator that runs on its threads. Dropping it without [`Validator::wait`] or
/// [`Validator::stop`] stops it too.
pub struct Validator {
    id: ReplicaId,
    address: SocketAddr,
    http_address: SocketAddr,
    /// True where that door speaks TLS.
    http_tls: bool,
    shown: Shown,
    shares: Descriptors,
    stopping: Arc<AtomicBool>,
    failures: Receiver<NodeError>,
    succession: Succession,
    machine: Option<Sender<()>>,
    reading: Option<Reading>,
    /// Threads in the order in which they end.
    threads: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Validator {
    /// Opens everything and starts all threads. Not to be called from a tokio task.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(config: &NodeConfig, service: Box<dyn Service>) -> Result<Self, NodeError> {
        Self::start_with(config, service, Limits::default())
    }

    /// As [`Validator::start`], with other limits.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start_with(
        config: &NodeConfig,
        service: Box<dyn Service>,
        limits: Limits,
    ) -> Result<Self, NodeError> {
        let keyring = Keyring::load(config, &mut |_| None)?;
        let door = StatusDoor::load(config)?;
        Self::start_with_keys(config, (&keyring, &door), service, limits)
    }

    /// As [`Validator::start_with`], with what the caller has loaded for all of its epochs: the
    /// keys, since who can ask for the passphrase of a sealed key file does so first, and the door
    /// of the status page, so that a file which is refused later changes nothing.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start_with_keys(
        config: &NodeConfig,
        loaded: (&Keyring, &StatusDoor),
        mut service: Box<dyn Service>,
        limits: Limits,
    ) -> Result<Self, NodeError> {
        let origin = Origin::load(config, loaded, service.as_mut())?;
        let started = Self::start_from(&origin, service, limits);
        started.map_err(|error| set_state_aside(&config.data_dir, error))
    }

    /// As [`Validator::start_with_keys`], for one that will lie with this voice.
    ///
    /// # Errors
    /// Why it cannot start.
    #[cfg(feature = "liar")]
    pub fn start_lying(
        config: &NodeConfig,
        loaded: (&Keyring, &StatusDoor),
        mut service: Box<dyn Service>,
        voice: crate::liar::Voice,
    ) -> Result<Self, NodeError> {
        let origin = Origin::load(config, loaded, service.as_mut())?;
        let origin = Origin { voice: Some(voice), ..origin };
        Self::start_from(&origin, service, Limits::default())
    }

    fn start_from(
        origin: &Origin,
        service: Box<dyn Service>,
        limits: Limits,
    ) -> Result<Self, NodeError> {
        let config = &origin.config;
        let demand = Demand::of_validator(config, origin.committee.size());
        let shares = Descriptors::divide(limit(), &demand)?;
        let runtime = start_runtime(config.network_threads)?;
        let sockets = runtime.block_on(Sockets::bind(config, origin))?;
        let (address, http_address) = sockets.addresses()?;
        let stores = Stores::open(config, service, &origin.owner())?;
        let (failed, failures) = unbounded();
        let shown = origin.shown(&stores);
        let last = stores.recovery.executed.as_ref().map(|executed| &executed.header);
        let succession = Succession::new(origin, last, &shown);
        let threads = Threads { failed, stopping: Arc::default(), handles: Vec::new() };
        let mut validator = Self {
            id: origin.id,
            address,
            http_address,
            http_tls: origin.status_door.rules.tls.is_some(),
            shown,
            succession,
            shares,
            stopping: Arc::clone(&threads.stopping),
            failures,
            machine: None,
            reading: None,
            threads: Vec::new(),
            runtime: Some(runtime),
        };
        let limits = Limits {
            client_requests: RateLimit { per_second: config.client_requests_per_second },
            client_bytes: RateLimit { per_second: config.client_bytes_per_second },
            ..shares.bound(limits)
        };
        validator.start_threads(origin, stores, threads, (sockets, limits))?;
        validator.start_observer(origin);
        tracing::info!(
            member = %origin.id,
            %address,
            http = %http_address,
            network = validator.shown.summary.network,
            epoch = %origin.epochs.epoch(),
            descriptors = %validator.shares,
            emulated_network = config.emulation.is_some(),
            signs = validator.shown.summary.signs,
            clients = config.clients.meaning(),
            "validator started"
        );
        if let Some(warning) = origin.committee.weights().warning() {
            tracing::warn!("{warning}");
        }
        Ok(validator)
    }

    /// Index in the committee; the first beyond the members for a learner.
    #[must_use]
    pub fn id(&self) -> ReplicaId {
        self.id
    }

    /// Address that it listens on for peers and clients.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Address that serves status and metrics.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// URL of its dashboard, by the address that it listens on.
    #[must_use]
    pub fn dashboard(&self) -> String {
        let scheme = if self.http_tls { "https" } else { "http" };
        format!("{scheme}://{}/", self.http_address)
    }

    /// State that it shows on `/status` and `/metrics`.
    #[must_use]
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// The way to the epoch that it is in.
    #[must_use]
    pub fn epochs(&self) -> &Arc<Epochs> {
        self.succession.epochs()
    }

    /// History of the network for a client in this process: the one that it trusts itself, with the
    /// last time at which it knew the epoch in force.
    #[must_use]
    pub fn history(&self) -> History {
        self.succession.history()
    }

    /// Descriptors of the process, divided: what a gateway beside it may have, too.
    #[must_use]
    pub fn descriptors(&self) -> &Descriptors {
        &self.shares
    }

    /// Reads its state beside execution, where the service has a reader.
    #[must_use]
    pub fn reading(&self) -> Option<&Reading> {
        self.reading.as_ref()
    }

    /// Blocks until `shutdown` is triggered, something fails, or the network's epoch has ended and
    /// this host may go on to the next; then stops.
    ///
    /// # Errors
    /// What failed.
    pub fn wait(mut self, shutdown: &Shutdown) -> Result<Ending, NodeError> {
        loop {
            let runtime = self.runtime.as_ref().expect("present until the end");
            if let Some(step) = self.succession.due(runtime) {
                return self.go_on(step);
            }
            let heard = select! {
                recv(shutdown.triggered) -> _ => {
                    self.succession.warn_of_stopping();
                    return self.stop().map(|()| Ending::Stopped);
                }
                recv(self.failures) -> failure => {
                    let data_dir = self.shown.data_dir.clone();
                    let stopped = self.stop();
                    let aside = |error| Err(set_state_aside(&data_dir, error));
                    return failure.map_or(stopped, aside).map(|()| Ending::Stopped);
                }
                recv(self.succession.news) -> news => {
                    news.map_or(Ok(()), |news| self.succession.hear(news))
                }
                recv(self.succession.ends) -> shown => {
                    shown.map_or(Ok(()), |shown| self.succession.take_shown(shown))
                }
                default(self.succession.pause()) => Ok(()),
            };
            if let Err(halt) = heard {
                return self.halt(halt);
            }
        }
    }

    /// Stops for good: nothing after this can be trusted, whatever else failed meanwhile.
    fn halt(mut self, halt: Halt) -> Result<Ending, NodeError> {
        self.end();
        Err(NodeError::Halted(halt))
    }

    /// ★ Stops, with everything durable, and only then notes that the next epoch has begun.
    fn go_on(mut self, step: HandedOver) -> Result<Ending, NodeError> {
        self.end();
        if let Ok(failure) = self.failures.try_recv() {
            return Err(set_state_aside(&self.shown.data_dir, failure));
        }
        self.succession.begin(step)?;
        Ok(Ending::NextEpoch)
    }

    /// Stops it: what is queued for the log is written, the state is made durable.
    ///
    /// # Errors
    /// What failed, now or before.
    pub fn stop(mut self) -> Result<(), NodeError> {
        self.end();
        match self.failures.try_recv() {
            Ok(failure) => Err(set_state_aside(&self.shown.data_dir, failure)),
            Err(_) => {
                tracing::info!(member = %self.id, "validator stopped");
                Ok(())
            }
        }
    }

    fn end(&mut self) {
        self.shown.healthy.store(false, Ordering::Relaxed);
        self.stopping.store(true, Ordering::Relaxed);
        self.shown.room.stop();
        drop(self.machine.take());
        // The pool's threads end with the network, which holds their queues: they are not waited
        // for.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(NETWORK_END);
        }
    }

    fn start_threads(
        &mut self,
        origin: &Origin,
        stores: Stores,
        mut threads: Threads,
        (sockets, limits): (Sockets, Limits),
    ) -> Result<(), NodeError> {
        let config = &origin.config;
        let Stores { journal, recovery, mut executor, snapshots, signs, room, guard, .. } = stores;
        let (network, metrics) = (Arc::clone(&self.shown.network), Arc::clone(&self.shown.metrics));
        let (events, queues) = queues();
        let pool = start_pool(&threads, origin, &metrics, events.clone(), config.verify_threads)?;
        let ((read, reads), (execution, tasks)) = (unbounded(), unbounded());
        let (reader, answers) = (journal.reader(), events.clone());
        let outlet = LogOutlet {
            network: Arc::clone(&network),
            execution: execution.clone(),
            events: events.clone(),
            read,
            metrics: Arc::clone(&metrics),
        };
        let device = GuardedJournal::new(journal, guard, &metrics, &room, config.retention_bytes);
        let (log, log_thread) = log_thread(Box::new(device), Box::new(outlet));
        self.shown.queues = Some(Queues::of(&events, &log, &pool));
        let ((jobs, jobs_in), writing) = (bounded(1), Arc::new(AtomicBool::new(false)));
        let (views, writer) =
            StateViews::open(&mut executor, &config.data_dir, &origin.owner(), room.clone())?;
        self.reading = Reading::new(&views);
        let ports = ThreadPorts {
            log,
            network: Arc::clone(&network),
            pool: pool.clone(),
            execution,
            views: Arc::clone(&views),
            proofs: keep_proofs(&mut threads, config)?,
            room: room.clone(),
            evidence: EvidenceFolder::of(&config.data_dir, &origin.committee, &config.replica),
            forfeit: forfeit(config, origin.committee.network(), threads.failed.clone()),
        };
        let (replica, status) = (Replica::new(origin.replica(signs)), self.shown.status.clone());
        let (machine, stop) = bounded(0);
        self.machine = Some(machine);
        let machine = MachineThread::new(replica, ports, queues, stop, origin.wall, status);
        #[cfg(feature = "liar")]
        let machine = machine.speaking_with(origin.start_voice(&threads, &network)?);
        room::spawn_watch(&mut threads, &room, &events)?;
        if let Some(writer) = writer {
            let ends = Arc::clone(&threads.stopping);
            room::spawn(&mut threads, "certificates", &room, move || writer.run(&ends))?;
        }
        threads.spawn("machine", move || Ok(machine.run(Event::Recovered(Box::new(recovery)))?))?;
        room::spawn(&mut threads, "log", &room, move || log_thread.run())?;
        spawn_reading(&mut threads, (reader, snapshots.clone()), reads, answers)?;
        let worker = ExecutionWorker {
            executor,
            snapshots: snapshots.clone(),
            jobs,
            writing: Arc::clone(&writing),
            views,
            room: room.clone(),
            ended: self.succession.own(),
        };
        spawn_execution(&mut threads, worker, tasks, events.clone())?;
        spawn_snapshots(&mut threads, (snapshots, room), jobs_in, writing, events.clone())?;
        self.threads = threads.handles;
        let ingress = IngressContext::new(pool, Arc::new(events.clone()), metrics, limits);
        self.start_network(origin, ingress, sockets, events)?;
        self.shown.healthy.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn start_observer(&self, origin: &Origin) {
        let config = &origin.config;
        let should_sign = !config.learner && !config.follow_only;
        let (timeout, now) = (config.replica.timeout(), Instant::now());
        let weights = origin.committee.weights();
        let observer = Observer::new(weights, origin.id, should_sign, timeout, now);
        let Shown { network, status, health, .. } = self.shown.clone();
        let runtime = self.runtime.as_ref().expect("present until the end");
        runtime.spawn(observer.run(network, status, health));
        runtime.spawn(dashboard::watch(self.shown.clone()));
    }

    /// Tells whether the state that this epoch began with is here.
    fn has_state(&self, origin: &Origin) -> HasState {
        let (status, begun) = (Arc::clone(&self.shown.status), origin.verifier.start().height());
        HasState(Arc::new(move || status.load().executed >= begun))
    }

    /// Tells who is a member of the next epoch by a change that waits here, or was ordered.
    fn is_next_member(&self) -> IsNextMember {
        let status = Arc::clone(&self.shown.status);
        IsNextMember(Arc::new(move |key| {
            status.load().next_members.iter().any(|members| members.contains(key))
        }))
    }

    fn start_network(
        &self,
        origin: &Origin,
        ingress: IngressContext,
        sockets: Sockets,
        events: EventSender,
    ) -> Result<(), NodeError> {
        let on_connect: OnConnect = Arc::new(move |member| {
            events.answer(Event::Connected(member));
        });
        let network = Arc::clone(&self.shown.network);
        let ingress = ingress.beside(&network);
        let dialer = tls::Dialer::new(&origin.keys.identity)?;
        let runtime = self.runtime.as_ref().expect("present until the end");
        let emulated = origin.emulation.as_ref().map(|topology| (topology, origin.id));
        let _on = runtime.enter();
        let named_in = |file: &PathBuf| Cuts::named_in(file, origin.id);
        let cuts = origin.cut_links.as_ref().map(named_in).unwrap_or_default();
        let made_up = MadeUp { emulated, cuts };
        let answers = (!origin.committee.contains(origin.id)).then_some(&ingress);
        let (committee, limits) = (&origin.committee, ingress.limits);
        for mut link in member_links(&network, committee, &dialer, limits, &made_up, answers)? {
            // What a member is shown goes in this lane.
            if link.hello.lane == Lane::Consensus {
                link.on_connect = Some(Arc::clone(&on_connect));
            }
            link.on_later = Some(self.succession.shown());
            runtime.spawn(link.run());
        }
        let tls = tls::listener(&origin.keys.identity)?;
        let (learners, clients) = (origin.learners.clone(), Arc::clone(&origin.clients));
        let (epochs, has_state) = (Arc::clone(&origin.epochs), self.has_state(origin));
        let (committee, is_next_member) = (Arc::clone(committee), self.is_next_member());
        let peers = Peers { committee, learners, is_next_member, clients, epochs, has_state };
        // At a terminal that is closed, and with nothing to read again, it ends as others do.
        if origin.clients.is_listed() || !io::stdin().is_terminal() {
            let _inside = runtime.enter();
            let start = |source| NodeError::Start { what: "signal handler", source };
            let (hangups, door) = (Hangups::listen().map_err(start)?, Arc::clone(&origin.clients));
            runtime.spawn(hangups.reload("list of clients", move || door.reload()));
        }
        let listener = Listener::new(tls, peers, network, ingress);
        runtime.spawn(listener.run(sockets.peers));
        let status = ConnectionLimits::of(self.shares.status);
        let door = origin.status_door.clone();
        reload_status(runtime, &door)?;
        runtime.spawn(http::serve(sockets.http, self.shown.clone(), status, door));
        Ok(())
    }
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Validator({} at {})", self.id, self.address)
    }
}

impl Drop for Validator {
    fn drop(&mut self) {
        self.end();
    }
}

/// Has users and certificate of a status page read again when the process is told to.
pub(crate) fn reload_status(runtime: &Runtime, door: &StatusDoor) -> Result<(), NodeError> {
    let names = ["users of the status page", "certificate of the status page"];
    let start = |source| NodeError::Start { what: "signal handler", source };
    reload_on_hangups(runtime, names, (door.users.clone(), &door.rules)).map_err(start)
}

/// Bound before anything else is opened: a second validator fails here, with a clear reason.
struct Sockets {
    peers: TcpListener,
    http: TcpListener,
}

impl Sockets {
    async fn bind(config: &NodeConfig, origin: &Origin) -> Result<Self, NodeError> {
        let own = config.listen.as_deref().or(origin.committee.address(origin.id));
        let address = own.expect("a member has an address, a learner was told one");
        Ok(Self {
            peers: bind(address, "peers and clients").await?,
            http: bind(&config.http, "status and metrics").await?,
        })
    }

    fn addresses(&self) -> Result<(SocketAddr, SocketAddr), NodeError> {
        let start = |source| NodeError::Start { what: "listener", source };
        Ok((self.peers.local_addr().map_err(start)?, self.http.local_addr().map_err(start)?))
    }
}

pub(crate) async fn bind(address: &str, purpose: &'static str) -> Result<TcpListener, NodeError> {
    let address = address.to_owned();
    TcpListener::bind(&address).await.map_err(|source| NodeError::Listen {
        address,
        purpose,
        source,
    })
}

pub(crate) fn start_runtime(threads: usize) -> Result<Runtime, NodeError> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("net")
        .enable_all()
        .build()
        .map_err(|source| NodeError::Start { what: "network threads", source })
}

#[cfg(test)]
mod tests;
