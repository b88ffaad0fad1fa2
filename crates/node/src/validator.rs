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
//! Threads by name: `net` (tokio's), `check-votes`, `check-bulk-N`, `machine`, `log`, `read`,
//! `execute`, `snapshots`, `room`. All block when idle but two: the observer (`observer`), which
//! looks and probes once a second, and `room`, which looks after the disk.
//!
//! It stops in the order in which work flows: the machine first, then the log writes what is queued
//! and releases what waited for it, then execution makes the state durable, then the network ends.
//! A failed write, a halt or a panic of any thread stops everything, with the reason as the error.
//! A write that finds no room waits ([`Room`]).

use crate::clients::ClientDoor;
use crate::clock::{Clock, WallClock};
use crate::config::{LogFormat, LogLevel, LogSettings};
use crate::connections::ConnectionLimits;
use crate::descriptors::{Demand, Descriptors, limit};
use crate::device::GuardedJournal;
use crate::execution::{ExecutionWorker, Outcome};
use crate::guard::{FileGuard, Guard};
use crate::health::Health;
use crate::http::{self, Queues, Shown, Summary};
use crate::http_server::DoorRules;
use crate::http_tls::HttpTls;
use crate::log::{Outgoing, Outlet, log_thread};
use crate::machine::{EventSender, MachineThread, ThreadPorts, queues};
use crate::marker::{KeyStatus, Marker};
use crate::metrics::{Identity, Metrics};
use crate::observer::Observer;
use crate::pool::{Combiner, Pool};
use crate::quotas::{AddressRates, RateLimit};
use crate::reading::{Reading, StateViews};
use crate::reload::Hangups;
use crate::threads::{Threads, give_way};
use crate::tls;
use crate::transport::cuts::Cuts;
use crate::transport::frames::IngressContext;
use crate::transport::inbound::{Listener, Peers};
use crate::transport::outbound::{MadeUp, OnConnect, member_links};
use crate::transport::{Limits, Network};
use crate::{ClientPolicy, NodeConfig, NodeError, execution, keys, room};
use arc_swap::ArcSwap;
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use quorate_crypto::KeyFile;
use quorate_engine::{Replica, ReplicaConfig, Status, Verifier};
use quorate_storage::{
    DiskStore, Durability, Executor, Findings, Journal, JournalReader, JournalStats, Owner,
    RealDisk, Role, Room, RoomyDisk, Safeguards, SnapshotJob, Snapshots, StorageError,
};
use quorate_types::machine::{ReadRequest, Recovery, Task};
use quorate_types::service::Admission;
use quorate_types::{BodyRef, ClientId, Committee, Event, Lane, ReplicaId, Service};
use quorate_wan::Topology;
use std::collections::BTreeSet;
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};

/// Longest time for the network to end.
const NETWORK_END: Duration = Duration::from_secs(1);

/// Runs a validator until `shutdown` is triggered or something fails. Blocks.
///
/// Not to be called from a tokio task: a validator brings a runtime of its own.
///
/// # Errors
/// Why it did not start, or why it stopped. A program exits with a code other than zero then.
pub fn run(
    config: &NodeConfig,
    service: Box<dyn Service>,
    shutdown: &Shutdown,
) -> Result<(), NodeError> {
    let validator = Validator::start(config, service)?;
    validator.wait(shutdown)
}

/// Asks a validator to stop. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Shutdown {
    trigger: Sender<()>,
    pub(crate) triggered: Receiver<()>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A shutdown that only [`Shutdown::trigger`] triggers.
    #[must_use]
    pub fn new() -> Self {
        let (trigger, triggered) = bounded(1);
        Self { trigger, triggered }
    }

    /// A shutdown that SIGTERM and SIGINT trigger too, for the rest of the process.
    ///
    /// # Errors
    /// When the system gives no thread or no signal handler.
    pub fn on_signals() -> Result<Self, NodeError> {
        let start = |source| NodeError::Start { what: "signal handler", source };
        let shutdown = Self::new();
        let trigger = shutdown.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(start)?;
        let (mut terminate, mut interrupt) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate()).map_err(start)?,
                signal(SignalKind::interrupt()).map_err(start)?,
            )
        };
        let wait = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            trigger.trigger();
        };
        Builder::new().name("signals".into()).spawn(wait).map_err(start)?;
        Ok(shutdown)
    }

    /// Asks the validator to stop.
    pub fn trigger(&self) {
        let _ = self.trigger.try_send(());
    }
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

/// A validator that runs on its threads. Dropping it without [`Validator::wait`] or
/// [`Validator::stop`] stops it too.
pub struct Validator {
    id: ReplicaId,
    address: SocketAddr,
    http_address: SocketAddr,
    shown: Shown,
    shares: Descriptors,
    stopping: Arc<AtomicBool>,
    failures: Receiver<NodeError>,
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
        let keys = keys::load(config, &mut |_| None)?;
        Self::start_with_keys(config, keys, service, limits)
    }

    /// As [`Validator::start_with`], with keys that the caller has loaded: who can ask for the
    /// passphrase of a sealed key file does so first.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start_with_keys(
        config: &NodeConfig,
        keys: KeyFile,
        service: Box<dyn Service>,
        limits: Limits,
    ) -> Result<Self, NodeError> {
        let origin = Origin::load(config, keys, service.as_ref())?;
        let started = Self::start_from(config, &origin, service, limits);
        started.map_err(|error| set_state_aside(&config.data_dir, error))
    }

    /// As [`Validator::start_with_keys`], for one that will lie with this voice.
    ///
    /// # Errors
    /// Why it cannot start.
    #[cfg(feature = "liar")]
    pub fn start_lying(
        config: &NodeConfig,
        keys: KeyFile,
        service: Box<dyn Service>,
        voice: crate::liar::Voice,
    ) -> Result<Self, NodeError> {
        let origin = Origin::load(config, keys, service.as_ref())?;
        let origin = Origin { voice: Some(voice), ..origin };
        Self::start_from(config, &origin, service, Limits::default())
    }

    fn start_from(
        config: &NodeConfig,
        origin: &Origin,
        service: Box<dyn Service>,
        limits: Limits,
    ) -> Result<Self, NodeError> {
        let demand = Demand::of_validator(config, origin.committee.size());
        let shares = Descriptors::divide(limit(), &demand)?;
        let runtime = start_runtime(config.network_threads)?;
        let sockets = runtime.block_on(Sockets::bind(config, origin))?;
        let (address, http_address) = sockets.addresses()?;
        let disk = Opened::open(config, service, origin)?;
        let (failed, failures) = unbounded();
        let threads = Threads { failed, stopping: Arc::default(), handles: Vec::new() };
        let mut validator = Self {
            id: origin.id,
            address,
            http_address,
            shown: origin.shown(config, &disk),
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
        validator.start_threads(config, origin, disk, threads, (sockets, limits))?;
        validator.start_observer(config, origin);
        tracing::info!(
            member = %origin.id,
            %address,
            http = %http_address,
            chain = validator.shown.summary.chain,
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

    /// State that it shows on `/status` and `/metrics`.
    #[must_use]
    pub fn shown(&self) -> &Shown {
        &self.shown
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

    /// Blocks until `shutdown` is triggered or something fails, then stops.
    ///
    /// # Errors
    /// What failed.
    pub fn wait(self, shutdown: &Shutdown) -> Result<(), NodeError> {
        select! {
            recv(shutdown.triggered) -> _ => self.stop(),
            recv(self.failures) -> failure => {
                let data_dir = self.shown.data_dir.clone();
                let stopped = self.stop();
                failure.map_or(stopped, |error| Err(set_state_aside(&data_dir, error)))
            }
        }
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
        config: &NodeConfig,
        origin: &Origin,
        disk: Opened,
        mut threads: Threads,
        (sockets, limits): (Sockets, Limits),
    ) -> Result<(), NodeError> {
        let Opened { journal, recovery, executor, snapshots, signs, room, guard, .. } = disk;
        let (network, metrics) = (Arc::clone(&self.shown.network), Arc::clone(&self.shown.metrics));
        let (events, queues) = queues();
        let pool = start_pool(&threads, origin, &metrics, events.clone(), config.verify_threads)?;
        let (read, reads) = unbounded();
        let (reader, answers) = (journal.reader(), events.clone());
        let (execution, tasks) = unbounded();
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
            StateViews::open(&executor, &config.data_dir, &origin.owner(config), room.clone())?;
        self.reading = Reading::new(&views);
        let ports = ThreadPorts {
            log,
            network: Arc::clone(&network),
            pool: pool.clone(),
            execution,
            views: Arc::clone(&views),
            room: room.clone(),
            forfeit: forfeit(config, origin, threads.failed.clone()),
        };
        let replica = Replica::new(origin.replica(config, signs));
        let (machine, stop) = bounded(0);
        self.machine = Some(machine);
        let status = Arc::clone(&self.shown.status);
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
        let stored = snapshots.clone();
        threads.spawn("read", move || Ok(read_back(&reader, &stored, &reads, &answers)?))?;
        let worker = ExecutionWorker {
            executor,
            snapshots: snapshots.clone(),
            jobs,
            writing: Arc::clone(&writing),
            views,
            room: room.clone(),
        };
        spawn_execution(&mut threads, worker, tasks, events.clone())?;
        spawn_snapshots(&mut threads, (snapshots, room), jobs_in, writing, events.clone())?;
        self.threads = threads.handles;
        let ingress = IngressContext::new(pool, Arc::new(events.clone()), metrics, limits);
        self.start_network(origin, ingress, sockets, events)?;
        self.shown.healthy.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn start_observer(&self, config: &NodeConfig, origin: &Origin) {
        let should_sign = !config.learner && !config.follow_only;
        let (timeout, now) = (config.replica.timeout(), Instant::now());
        let weights = origin.committee.weights();
        let observer = Observer::new(weights, origin.id, should_sign, timeout, now);
        let Shown { network, status, health, .. } = self.shown.clone();
        let runtime = self.runtime.as_ref().expect("present until the end");
        runtime.spawn(observer.run(network, status, health));
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
            runtime.spawn(link.run());
        }
        let tls = tls::listener(&origin.keys.identity)?;
        let (learners, clients) = (origin.learners.clone(), Arc::clone(&origin.clients));
        let peers = Peers { committee: Arc::clone(committee), learners, clients };
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
        let rules = origin.status_rules.clone();
        self.reload_tls(&origin.status_rules)?;
        runtime.spawn(http::serve(sockets.http, self.shown.clone(), status, rules));
        Ok(())
    }
}

impl Validator {
    /// Reads the status page's certificate again when the process is told to.
    fn reload_tls(&self, rules: &DoorRules) -> Result<(), NodeError> {
        let Some(tls) = rules.tls.clone() else { return Ok(()) };
        let runtime = self.runtime.as_ref().expect("present until the end");
        let _inside = runtime.enter();
        let start = |source| NodeError::Start { what: "signal handler", source };
        let hangups = Hangups::listen().map_err(start)?;
        runtime.spawn(hangups.reload("certificate of the status page", move || tls.reload()));
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

/// Configuration, committee and keys, as the files state them.
struct Origin {
    id: ReplicaId,
    keys: KeyFile,
    committee: Arc<Committee>,
    verifier: Arc<Verifier>,
    wall: WallClock,
    emulation: Option<Topology>,
    cut_links: Option<PathBuf>,
    learners: BTreeSet<ClientId>,
    clients: Arc<ClientDoor>,
    status_rules: DoorRules,
    #[cfg(feature = "liar")]
    voice: Option<crate::liar::Voice>,
}

/// Rules of the status page.
fn status_rules(config: &NodeConfig) -> Result<DoorRules, NodeError> {
    let files = config.tls_files().filter(|_| config.http_tls);
    let limit = RateLimit { per_second: config.http_requests_per_second };
    Ok(DoorRules {
        tls: files.map(HttpTls::load).transpose()?,
        rates: AddressRates::new(limit),
        ..DoorRules::default()
    })
}

/// The service's judgement of what clients send, where members ask it ahead of the order.
fn admission(
    config: &NodeConfig,
    service: &dyn Service,
) -> Result<Option<Arc<dyn Admission>>, NodeError> {
    if config.clients != ClientPolicy::Service {
        return Ok(None);
    }
    let none = || NodeError::NoAdmission(service.name().to_owned());
    service.admission().map(Some).ok_or_else(none)
}

impl Origin {
    fn load(config: &NodeConfig, keys: KeyFile, service: &dyn Service) -> Result<Self, NodeError> {
        let wall = WallClock::read(Clock::start());
        let committee = Arc::new(config.load_committee()?);
        let file = config.read_committee_file()?;
        let id = keys::place_of(config, &committee, &file, &keys.public())?;
        if service.name() != config.service {
            return Err(NodeError::OtherService {
                configured: config.service.clone(),
                provided: service.name().to_owned(),
            });
        }
        let verifier = Verifier::new(Arc::clone(&committee), &config.replica)
            .with_preparation(service.preparation())
            .with_admission(admission(config, service)?);
        let clients = Arc::new(ClientDoor::of(config, &committee)?);
        let emulation = config.topology(committee.size())?;
        let verifier = Arc::new(verifier);
        let learners = config.learner_ids();
        Ok(Self {
            id,
            keys,
            committee,
            verifier,
            wall,
            emulation,
            cut_links: config.cut_links.clone(),
            learners,
            clients,
            status_rules: status_rules(config)?,
            #[cfg(feature = "liar")]
            voice: None,
        })
    }

    /// A liar signs whatever it is told to, and asks nobody.
    fn lies(&self) -> bool {
        #[cfg(feature = "liar")]
        return self.voice.is_some();
        #[cfg(not(feature = "liar"))]
        false
    }

    #[cfg(feature = "liar")]
    fn start_voice(
        &self,
        threads: &Threads,
        network: &Arc<Network>,
    ) -> Result<Option<crate::liar::Voice>, NodeError> {
        self.voice.as_ref().map(|voice| voice.start(threads, network)).transpose()
    }

    /// Owner of everything in the data folder.
    fn owner(&self, config: &NodeConfig) -> Owner {
        Owner {
            network: self.committee.chain(),
            member: self.keys.identity.public(),
            role: if config.learner { Role::Learner } else { Role::Validator },
            protocol: config.replica.protocol.to_string(),
        }
    }

    fn replica(&self, config: &NodeConfig, signs: bool) -> ReplicaConfig {
        ReplicaConfig {
            id: self.id,
            identity: Arc::new(self.keys.identity.clone()),
            voting: Arc::new(self.keys.voting.clone()),
            verifier: Arc::clone(&self.verifier),
            settings: config.replica.clone(),
            wall_origin_ms: self.wall.origin_ms(),
            signs,
            asks_witnesses: !self.lies(),
        }
    }

    fn shown(&self, config: &NodeConfig, disk: &Opened) -> Shown {
        let metrics = Arc::new(Metrics::new());
        let network = Network::new(self.id, self.committee.size(), Arc::clone(&metrics));
        let status = Status { id: self.id, signs: disk.signs, ..Status::default() };
        let chain = hex::encode(self.committee.chain().0);
        metrics.describe(&Identity {
            member: self.id,
            version: env!("CARGO_PKG_VERSION"),
            chain: chain.clone(),
            service: config.service.clone(),
            durability: config.durability.to_string(),
            weight: self.committee.weight(self.id),
            members: self.committee.size(),
            weight_total: self.committee.weights().total(),
            quorum: self.committee.quorum(),
        });
        Shown {
            status: Arc::new(ArcSwap::from_pointee(status)),
            metrics,
            network: Arc::new(network),
            weight: self.committee.weight(self.id),
            summary: Summary {
                version: env!("CARGO_PKG_VERSION"),
                chain,
                members: self.committee.size(),
                weight_total: self.committee.weights().total(),
                quorum: self.committee.quorum(),
                service: config.service.clone(),
                durability: config.durability.to_string(),
                replica: config.replica.clone(),
                signs: disk.signs,
                learner: config.learner,
                storage: disk.findings.clone(),
            },
            since: Instant::now(),
            data_dir: config.data_dir.clone(),
            room: disk.room.clone(),
            queues: None,
            healthy: Arc::default(),
            health: Arc::new(ArcSwap::from_pointee(Health::starting(self.committee.weights()))),
        }
    }
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

/// Stores that were opened, with the state that they held.
struct Opened {
    journal: Journal,
    recovery: Recovery,
    executor: Executor,
    snapshots: Snapshots,
    signs: bool,
    findings: Findings,
    /// Told of every group; `None` where nothing is promised, or nothing more may be.
    guard: Option<Box<dyn Guard>>,
    room: Room,
}

impl Opened {
    fn open(
        config: &NodeConfig,
        service: Box<dyn Service>,
        origin: &Origin,
    ) -> Result<Self, NodeError> {
        let (chain, owner) = (origin.committee.chain(), origin.owner(config));
        // A learner promises nothing.
        let guard = match config.learner {
            true => None,
            false => Some(FileGuard::beside(&config.key, chain, &owner.member)?),
        };
        let marker = Marker::beside(&config.key);
        let log = config.data_dir.join("log");
        let lost = !config.learner && marker.is_lost(chain, &log)?;
        if lost {
            warn_of_lost_disk(&marker, config);
            // Before there is a log again: the next start must not take it for the lost one.
            marker.write(chain, KeyStatus::Lost)?;
        }
        let room = Room::open(&config.data_dir, &config.room_config())?;
        let open = |folder: &Path| {
            let disk = match config.durability {
                Durability::Fsync => RealDisk::open(folder),
                Durability::Os => RealDisk::open(folder).map(RealDisk::without_zeroing),
            };
            disk.map(|disk| RoomyDisk::new(disk, room.clone()))
        };
        let disk = open(&log)?;
        let bodies = open(&config.data_dir.join("bodies"))?;
        let snapshots = RealDisk::open(&config.data_dir.join("snapshots"))?;
        let snapshots = Snapshots::open(Box::new(snapshots), &owner)?;
        let state = config.data_dir.join("state");
        let store = DiskStore::open_within(&state, &owner, room.clone())?;
        let (executor, executed) =
            Executor::open(Box::new(store), service, config.executor_config())?;
        let mut safeguards = Safeguards::default();
        // Neither is touched once the log is lost: it may be found again.
        let mut guard = guard.filter(|_| !lost);
        if let Some(guard) = &guard {
            tracing::debug!(guard = %guard.path().display(), remembers = ?guard.witnessed());
            safeguards.witnessed = guard.witnessed();
            safeguards.copy = Some(Box::new(open(&config.data_dir.join("promises"))?));
        }
        let (mut journal, mut recovery, findings) = Journal::open_guarded(
            Box::new(disk),
            Box::new(bodies),
            &owner,
            config.log_config(),
            executed,
            safeguards,
        )?;
        recovery.snapshots = snapshots.heights();
        recovery.staged = snapshots.staged_chunks();
        tell_of(&findings, config);
        guard = guard.filter(|_| findings.set_back.is_none());
        if !lost {
            // Before anything is signed, and after there is a log to find again.
            journal.begin()?;
            if let Some((guard, mark)) = guard.as_mut().zip(journal.committed()) {
                marker.write(chain, KeyStatus::Used)?;
                guard.begin(mark)?;
            }
        }
        let signs = !config.follow_only && guard.is_some();
        let guard = guard.map(|guard| Box::new(guard) as Box<dyn Guard>);
        Ok(Self { journal, recovery, executor, snapshots, signs, room, findings, guard })
    }
}

/// Says what was damaged, and what came of it.
fn tell_of(findings: &Findings, config: &NodeConfig) {
    let Findings { set_back, records_damaged, promises_restored, bodies_damaged } = findings;
    if let Some(set_back) = set_back {
        tracing::warn!(
            committed = set_back.committed,
            found = set_back.found,
            data_dir = %config.data_dir.display(),
            "the log was set back: it lacks a record that had been committed to it. The validator \
             follows and serves but does not vote, for it cannot know what it voted for since: put \
             the newest data folder back byte for byte, or give it a new key in a new committee file"
        );
    }
    if *records_damaged > 0 {
        let promises = "promises from their copy, decided heights by the other members";
        tracing::warn!(records_damaged, promises_restored, promises, "the log is repaired");
    }
    if *bodies_damaged > 0 {
        tracing::warn!(bodies_damaged, "bodies are left out, and fetched again where needed");
    }
}

/// Puts a damaged state out of the way, so that the next start makes another; other errors are as
/// they were.
fn set_state_aside(data_dir: &Path, error: NodeError) -> NodeError {
    let (state, aside) = (data_dir.join("state"), data_dir.join("state.damaged"));
    match error {
        NodeError::Storage(source)
            if source.is_damaged_state() && std::fs::rename(&state, &aside).is_ok() =>
        {
            NodeError::StateSetAside { source, aside }
        }
        error => error,
    }
}

/// ★ Notes beside the key that it must not sign on this chain again, and in the data folder why;
/// whoever cannot note it stops.
fn forfeit(
    config: &NodeConfig,
    origin: &Origin,
    failed: Sender<NodeError>,
) -> Box<dyn Fn(&str) + Send> {
    let (marker, chain) = (Marker::beside(&config.key), origin.committee.chain());
    let evidence = config.data_dir.join("contradiction.txt");
    Box::new(move |reason| {
        tracing::error!(
            reason,
            marker = %marker.path().display(),
            evidence = %evidence.display(),
            "this key signs no more on this chain: the validator follows and serves but does not \
             vote; give it a new key in a new committee file"
        );
        let noted = marker.write(chain, KeyStatus::Lost);
        if let Err(error) = std::fs::write(&evidence, format!("{reason}\n")) {
            tracing::warn!(%error, "cannot write {}", evidence.display());
        }
        if let Err(error) = noted {
            let _ = failed.send(error);
        }
    })
}

fn warn_of_lost_disk(marker: &Marker, config: &NodeConfig) {
    tracing::warn!(
        marker = %marker.path().display(),
        data_dir = %config.data_dir.display(),
        "this key was used before and its log is gone: the validator follows and serves but does not \
         vote, for it cannot know what it voted for; give it a new key in a new committee file"
    );
}

/// Applies the effects that the log thread releases.
struct LogOutlet {
    network: Arc<Network>,
    execution: Sender<Task>,
    events: EventSender,
    read: Sender<ReadRequest>,
    metrics: Arc<Metrics>,
}

impl Outlet for LogOutlet {
    fn send(&self, outgoing: Outgoing) {
        self.network.send(outgoing);
    }

    fn execute(&self, task: Task) {
        // Fails only when the host stops.
        drop(self.execution.send(task));
    }

    fn stored(&self, body: BodyRef) {
        self.events.answer(Event::Stored(body));
    }

    fn read(&self, request: ReadRequest) {
        let _ = self.read.send(request);
    }

    fn committed(&self, stats: JournalStats) {
        self.metrics.log(stats);
    }
}

/// Starts the threads that check messages and combine shares.
fn start_pool(
    threads: &Threads,
    origin: &Origin,
    metrics: &Arc<Metrics>,
    events: EventSender,
    bulk_threads: usize,
) -> Result<Pool, NodeError> {
    let combined: Combiner = Arc::new(move |outcome| events.answer(Event::Combined(outcome)));
    let (pool, workers) = Pool::new(&origin.verifier, metrics, &combined, bulk_threads);
    for (index, worker) in workers.into_iter().enumerate() {
        let name = if index == 0 { "check-votes" } else { "check-bulk" };
        threads.spawn_unjoined(name, worker)?;
    }
    Ok(pool)
}

/// Starts the thread that executes what is decided.
fn spawn_execution(
    threads: &mut Threads,
    worker: ExecutionWorker,
    tasks: Receiver<Task>,
    events: EventSender,
) -> Result<(), NodeError> {
    let (stopping, room) = (Arc::clone(&threads.stopping), worker.room.clone());
    room::spawn(threads, "execute", &room, move || {
        let answer = |outcome| {
            events.answer(match outcome {
                Outcome::Executed(executed) => Event::Executed(executed),
                Outcome::Durable(height) => Event::Durable(height),
                Outcome::Installed(executed) => Event::Installed(executed),
                Outcome::Queried(ticket, asked) => Event::Queried(ticket, asked),
            })
        };
        execution::run(worker, &tasks, &stopping, &answer)
    })
}

/// Starts the thread that writes snapshots; `writing` is set while it has one under way.
fn spawn_snapshots(
    threads: &mut Threads,
    (snapshots, room): (Snapshots, Room),
    jobs: Receiver<SnapshotJob>,
    writing: Arc<AtomicBool>,
    events: EventSender,
) -> Result<(), NodeError> {
    let stopping = Arc::clone(&threads.stopping);
    threads.spawn("snapshots", move || {
        give_way();
        let answer = |heights| events.answer(Event::Snapshotted(heights));
        Ok(execution::write_snapshots(&jobs, (&snapshots, &room), (&writing, &stopping), &answer)?)
    })
}

/// The reading thread: a block for a peer that fell behind never delays a vote's sync.
fn read_back(
    journal: &JournalReader,
    snapshots: &Snapshots,
    requests: &Receiver<ReadRequest>,
    events: &EventSender,
) -> Result<(), StorageError> {
    while let Ok(request) = requests.recv() {
        let mut answer = journal.read(&request)?;
        snapshots.fill(&mut answer)?;
        if !events.answer(Event::Read(answer)) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
