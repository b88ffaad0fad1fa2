//! One shard of an authority, on its threads.

mod log;

use super::committee::ReleaseCommittee;
use super::config::{AuthorityConfig, AuthorityConfigError};
use super::epochs::{
    Beginning, DiskInheritance, Ended, ReportShelf, Succession, epoch_folder, mark_name,
    network_in_force, owner_of, report_folder_of,
};
use super::evidence::Evidence;
use super::follower::{Follower, FollowerStatus, Following};
use super::locks::{Locks, recover_into};
use super::mark::{Mark, Start};
use super::network_files::WatchedChain;
use super::order::OrderReader;
use super::queue::{Leaving, Promise, Queued};
use super::records::Records;
use super::releases::{ReleaseFeed, ReleaseLog};
use super::server::{Arrived, Payers, Server};
use super::status::{self, Counts, Pages};
use super::wallet_requests::{WalletRequests, open_recorded};
use super::{ANSWER, NetworkChain, ORDER, RECORDED_ORDER, REQUEST, frame, read_network_before};
use crate::clock::Clock;
use crate::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::descriptors::{Demand, Descriptors, limit};
use crate::http::StatusDoor;
use crate::metrics::Metrics;
use crate::quotas::RateLimit;
use crate::shutdown::Shutdown;
use crate::threads::Threads;
use crate::transport::Limits;
use crate::validator::{bind, reload_status, start_runtime};
use crate::{NodeError, keys, tls};
use borsh::BorshDeserialize;
use crossbeam_channel::{Receiver, Sender, bounded, select, unbounded};
use quorate_crypto::{IdentitySecret, KeyFile, VotingSecret};
use quorate_payments::{
    AuthorityEffect, AuthorityEvent, Network, OrderVerifier, ReleaseEntry, SignJob, SpentSet,
    Transaction, Verdict, check_orders,
};
use quorate_storage::{LogConfig, Owner, StorageError};
use quorate_types::{Epoch, Machine, ReplicaId, Time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Orders that are checked together at most: signatures of many cost a fraction of each alone.
const TOGETHER_MAX: usize = 512;

/// Batches of checked orders that wait for the machine; then checking waits.
const CHECKED_MAX: usize = 16;

/// Effects that wait for the log thread; then the machine waits.
const QUEUED_MAX: usize = 65_536;

/// Time that connections may take to end.
const NETWORK_END: Duration = Duration::from_millis(200);

/// One shard of an authority that runs. Dropping it stops it.
pub struct Authority {
    address: SocketAddr,
    http_address: SocketAddr,
    epoch: Epoch,
    failures: Receiver<NodeError>,
    stopping: Arc<AtomicBool>,
    /// Tells that the next epoch can begin. The sender is kept so that its end says nothing.
    superseded: (Sender<Beginning>, Receiver<Beginning>),
    machine: Option<Sender<()>>,
    releases: ReleaseFeed,
    threads: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

/// Keys, network and counts that all its threads know.
struct Origin {
    network: Arc<Network>,
    me: ReplicaId,
    shard: u16,
    voting: Arc<VotingSecret>,
    identity: IdentitySecret,
    counts: Arc<Counts>,
    payers: Arc<Payers>,
}

/// What an authority keeps on disk.
struct Kept {
    locks: Locks,
    releases: ReleaseLog,
    evidence: Evidence,
    records: Arc<Records>,
    mark: Mark,
}

impl Authority {
    /// Opens everything and starts all threads; `start` is its operator's word on whether it ran
    /// before, which nothing can check: a first start is refused where there is anything of an
    /// earlier one. Not to be called from a tokio task.
    ///
    /// # Errors
    /// Why it cannot start.
    pub fn start(
        config: &AuthorityConfig,
        keys: &KeyFile,
        start: Start,
    ) -> Result<Self, NodeError> {
        Self::open(config, keys, (start, status_door(config)?))
    }

    pub(super) fn open(
        config: &AuthorityConfig,
        keys: &KeyFile,
        (start, door): (Start, StatusDoor),
    ) -> Result<Self, NodeError> {
        let origin = Origin::load(config, keys)?;
        let check = |committee| ReleaseCommittee::check(committee, &origin.network);
        let links = config.committee.as_deref().map(check).transpose()?.unwrap_or(0);
        let runtime = start_runtime(config.network_threads)?;
        let own = origin.network.address(origin.me.index(), config.shard).expect("checked");
        let listen = config.listen.as_deref().unwrap_or(own);
        let socket = runtime.block_on(bind(listen, "payers"))?;
        let http = runtime.block_on(bind(&config.http, "status"))?;
        let resolve = |source| NodeError::Start { what: "listener", source };
        let address = socket.local_addr().map_err(resolve)?;
        let http_address = http.local_addr().map_err(resolve)?;

        let owner = origin.owner(keys);
        let kept = origin.recover(config, &owner, start)?;

        let (orders, arrived) = unbounded();
        let metrics = Arc::new(Metrics::new());
        let shares = Descriptors::divide(limit(), &Demand::of_authority(config, links))?;
        let limits = shares.bound(Limits::default());
        let status_limits = ConnectionLimits::of(shares.status);
        let cut = metrics.cut_counter("too-many-status");
        let status_limiter = ConnectionLimiter::new(status_limits, cut);
        let http = Acceptor::new(http, status_limiter, shares.status);
        let following = config.committee.as_ref().map(|_| Arc::new(FollowerStatus::default()));
        let pages = origin.pages(&kept, following.clone());
        let (failed, failures) = unbounded();
        let stopping = Arc::new(AtomicBool::new(false));
        let mut threads = Threads { failed, stopping: Arc::clone(&stopping), handles: Vec::new() };
        let next = kept.locks.next();
        let (stop, stopped) = bounded(0);
        let releases = origin.spawn(&mut threads, config, &arrived, kept, stopped.clone())?;
        let superseded = bounded(1);
        if let (Some(committee), Some(status)) = (&config.committee, following) {
            let identity = &origin.identity;
            let succession = Succession::new(config, identity, &origin.network, runtime.handle())?;
            let following = origin.following(releases.clone(), succession, status);
            let reader = OrderReader::new(committee, stopped);
            let supersede = superseded.0.clone();
            threads.spawn("committee", move || follow(&reader, following, &supersede))?;
        }
        let server = Server::new(
            tls::listener(&keys.identity)?,
            origin.network.id(),
            Arc::clone(&origin.payers),
            orders,
            (limits, metrics),
        );
        runtime.spawn(server.run(socket));
        reload_status(&runtime, &door)?;
        runtime.spawn(status::serve(http, pages, door));
        let (authority, shard) = (origin.me, origin.shard);
        tracing::info!(%authority, shard, %address, http = %http_address, locks = next, "authority started");
        Ok(Self {
            address,
            http_address,
            epoch: origin.network.epoch(),
            failures,
            stopping,
            superseded,
            machine: Some(stop),
            releases,
            threads: threads.handles,
            runtime: Some(runtime),
        })
    }

    /// Address at which it listens for payers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Epoch that it votes in.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Address at which it serves status and evidence.
    #[must_use]
    pub fn http_address(&self) -> SocketAddr {
        self.http_address
    }

    /// Way in and out for whoever follows the order in which coins are released.
    #[must_use]
    pub fn releases(&self) -> ReleaseFeed {
        self.releases.clone()
    }

    /// Blocks until `shutdown` is triggered, the next epoch can begin or something fails; then
    /// stops.
    ///
    /// # Errors
    /// What failed.
    pub fn wait(mut self, shutdown: &Shutdown) -> Result<Ended, NodeError> {
        let (ended, failure) = select! {
            recv(shutdown.triggered) -> _ => (Ended::Stopped, None),
            recv(self.superseded.1) -> next => {
                (next.map_or(Ended::Stopped, Ended::Superseded), None)
            }
            recv(self.failures) -> failure => (Ended::Stopped, failure.ok()),
        };
        self.end();
        failure.or_else(|| self.failures.try_recv().ok()).map_or(Ok(ended), Err)
    }

    fn end(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        drop(self.machine.take());
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(NETWORK_END);
        }
    }
}

/// Who is let in at an authority's status page, as its files say now.
pub(super) fn status_door(config: &AuthorityConfig) -> Result<StatusDoor, NodeError> {
    StatusDoor::of(&config.http_access(), config.tls_files(), RateLimit::default())
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.end();
    }
}

impl Origin {
    fn load(config: &AuthorityConfig, keys: &KeyFile) -> Result<Self, NodeError> {
        Self::load_in(config, keys, network_in_force(config)?)
    }

    fn load_in(
        config: &AuthorityConfig,
        keys: &KeyFile,
        network: Network,
    ) -> Result<Self, NodeError> {
        let network = Arc::new(network);
        let stranger = || AuthorityConfigError::NotAnAuthority {
            key: config.key.clone(),
            network: config.network.clone(),
        };
        let me = network.committee().find(&keys.identity.public()).ok_or_else(stranger)?;
        if keys.voting.kind() != network.scheme().keys() {
            return Err(stranger().into());
        }
        if config.shard >= network.shards() {
            let (path, found) = (config.network.clone(), u64::from(config.shard));
            let most = u64::from(network.shards() - 1);
            let range = AuthorityConfigError::Range { path, field: "shard", found, least: 0, most };
            return Err(range.into());
        }
        Ok(Self {
            network,
            me,
            shard: config.shard,
            voting: Arc::new(keys.voting.clone()),
            identity: keys.identity.clone(),
            counts: Arc::new(Counts::new()),
            payers: Arc::default(),
        })
    }

    /// What acts on the committee's order here.
    fn following(
        &self,
        feed: ReleaseFeed,
        succession: Succession,
        status: Arc<FollowerStatus>,
    ) -> Following {
        let follower = Follower::new(&self.network, self.me, self.shard);
        Following::new(follower, feed, self.identity.clone(), succession, status)
    }

    /// Owner of this shard's folders.
    fn owner(&self, keys: &KeyFile) -> Owner {
        owner_of(&self.network, keys.identity.public(), self.shard)
    }

    /// What was promised, none of which is missing as far as can be told, and the mark that says
    /// so.
    fn recover(
        &self,
        config: &AuthorityConfig,
        owner: &Owner,
        start: Start,
    ) -> Result<Kept, NodeError> {
        let inherited = DiskInheritance::open(&config.data_dir, &self.network, owner)?;
        let of_shard = (mark_name(&self.network), self.shard);
        let mark = Mark::beside(&config.key, of_shard, config.durability)?;
        let data_dir = epoch_folder(&config.data_dir, &self.network);
        let has_locks = Locks::has_begun(&data_dir)?;
        mark.check_start(start, has_locks, &data_dir)?;
        let folder = |name| data_dir.join(name);
        let mut releases = None;
        // Both before the locks: what a release gave an input is told by them as they are read.
        let prepare = |spent: SpentSet| {
            let spent = spent.after(Arc::new(inherited));
            releases = Some(ReleaseLog::open(&folder("releases"), owner, spent.frozen())?);
            Ok(spent)
        };
        let locks = recover_into(&data_dir, owner, log_config(config), prepare)?;
        let releases = releases.expect("opened with the locks");
        let evidence = Evidence::open(&folder("evidence"), owner)?;
        // Wallets' records are of all epochs.
        let of_records = Owner { protocol: "records".into(), ..owner.clone() };
        let records = config.data_dir.join("records");
        let records = Records::open(&records, &of_records, config.record_bytes)?;
        let records = Arc::new(records);
        let mut kept = Kept { locks, releases, evidence, records, mark };
        let promises = log::promises(&kept.locks, &kept.releases);
        kept.mark.check(promises)?;
        kept.mark.begin(promises)?;
        Ok(kept)
    }

    fn pages(&self, kept: &Kept, releases: Option<Arc<FollowerStatus>>) -> Pages {
        Pages {
            network: Arc::clone(&self.network),
            authority: self.me.index(),
            shard: self.shard,
            spent: Arc::clone(kept.locks.spent()),
            payers: Arc::clone(&self.payers),
            counts: Arc::clone(&self.counts),
            evidence: Arc::clone(kept.evidence.shown()),
            releases,
            since: Instant::now(),
        }
    }

    /// Starts checking, machine, log and mark; they end when the other end of `stopped` is dropped.
    fn spawn(
        &self,
        threads: &mut Threads,
        config: &AuthorityConfig,
        arrived: &Receiver<Arrived>,
        kept: Kept,
        stopped: Receiver<()>,
    ) -> Result<ReleaseFeed, NodeError> {
        let (checked, checked_in) = bounded(CHECKED_MAX);
        let (events, events_in) = unbounded();
        let (jobs, jobs_in) = unbounded();
        let (queue, queued) = bounded(QUEUED_MAX);
        let spent = kept.locks.spent();
        let verifier = OrderVerifier::new(Arc::clone(&self.network), self.shard, Arc::clone(spent));
        let checking = Arc::new(Checking {
            verifier,
            voting: Arc::clone(&self.voting),
            me: self.me,
            counts: Arc::clone(&self.counts),
            checked,
            events: events.clone(),
            requests: WalletRequests {
                network: Arc::clone(&self.network),
                chain: WatchedChain::new(NetworkChain::open(&config.network)?),
                spent: Arc::clone(spent),
                records: Arc::clone(&kept.records),
                payers: Arc::clone(&self.payers),
                queue: queue.clone(),
                reports: ReportShelf::new(&config.data_dir, &self.network),
            },
        });
        for _ in 0..config.check_threads {
            let (checking, arrived, jobs) =
                (Arc::clone(&checking), arrived.clone(), jobs_in.clone());
            threads.start("check", move || checking.run(&arrived, &jobs))?;
        }
        let machine = MachineThread {
            machine: quorate_payments::Authority::new(
                &self.network,
                Arc::clone(spent),
                kept.locks.next(),
            ),
            clock: Clock::start(),
            jobs,
            queue,
            counts: Arc::clone(&self.counts),
        };
        threads.spawn("machine", move || machine.run(&checked_in, &events_in, &stopped))?;
        let folder = report_folder_of(config, &self.network);
        let (reports, closings) =
            self.spawn_log(threads, kept, folder, (events.clone(), queued))?;
        Ok(ReleaseFeed { events, reports, closings })
    }
}

/// Follows the committee's order, and says when the next epoch can begin.
fn follow(
    reader: &OrderReader,
    mut following: Following,
    supersede: &Sender<Beginning>,
) -> Result<(), NodeError> {
    if let Some(beginning) = reader.run(&mut following)? {
        // Fails only when the host stops.
        let _ = supersede.send(beginning);
    }
    Ok(())
}

/// What an authority that is stopped keeps, opened in its place.
pub(super) struct Stopped {
    pub(super) network: Arc<Network>,
    pub(super) me: ReplicaId,
    kept: Kept,
}

/// Opens an authority's shard that no process runs, in the newest epoch before `end`.
///
/// # Errors
/// What keeps it from starting.
pub(super) fn open_stopped(
    config: &AuthorityConfig,
    keys: &KeyFile,
    end: Epoch,
) -> Result<Stopped, NodeError> {
    let network = read_network_before(&config.network, end)?;
    let origin = Origin::load_in(config, keys, network)?;
    let kept = origin.recover(config, &origin.owner(keys), Start::Again)?;
    Ok(Stopped { network: origin.network, me: origin.me, kept })
}

impl Stopped {
    pub(super) fn locks(&mut self) -> &mut Locks {
        &mut self.kept.locks
    }

    /// Makes entries durable, and counts them, before anything rests on them (★).
    pub(super) fn keep(&mut self, entries: &[ReleaseEntry]) -> Result<(), StorageError> {
        entries.iter().for_each(|entry| self.kept.locks.spent().frozen().apply(*entry));
        self.kept.releases.keep(entries)?;
        self.kept.mark.advance(log::promises(&self.kept.locks, &self.kept.releases))
    }
}

fn log_config(config: &AuthorityConfig) -> LogConfig {
    LogConfig {
        durability: config.durability,
        retention_bytes: config.evidence_bytes,
        ..LogConfig::default()
    }
}

/// Keys as a configuration names them, for hosts that ask nobody for a passphrase.
impl AuthorityConfig {
    /// Reads the keys that this configuration names; a sealed file is opened with the named
    /// passphrase, or of `ask`.
    ///
    /// # Errors
    /// When the file, or the passphrase, is refused.
    pub fn load_keys(
        &self,
        ask: &mut dyn FnMut(&std::path::Path) -> Option<quorate_crypto::Passphrase>,
    ) -> Result<KeyFile, NodeError> {
        let named = self.passphrase_file.clone().map(|path| (path, keys::Origin::Configuration));
        keys::open(&self.key, named.or_else(keys::passphrase_file_of_environment), ask)
    }
}

/// State that the checking threads share.
struct Checking {
    verifier: OrderVerifier,
    voting: Arc<VotingSecret>,
    me: ReplicaId,
    counts: Arc<Counts>,
    checked: Sender<AuthorityEvent>,
    events: Sender<AuthorityEvent>,
    requests: WalletRequests,
}

impl Checking {
    /// Votes first: they complete what was checked before.
    fn run(&self, arrived: &Receiver<Arrived>, jobs: &Receiver<SignJob>) -> Result<(), NodeError> {
        loop {
            while let Ok(job) = jobs.try_recv() {
                self.sign(job);
            }
            select! {
                recv(jobs) -> job => match job {
                    Ok(job) => self.sign(job),
                    Err(_) => return Ok(()),
                },
                recv(arrived) -> first => match first {
                    Ok(first) => self.check(first, arrived)?,
                    Err(_) => return Ok(()),
                },
            }
        }
    }

    fn sign(&self, job: SignJob) {
        let signed = job.run(self.verifier.network(), &self.voting, self.me);
        let _ = self.events.send(AuthorityEvent::Signed(signed));
    }

    /// Checks what arrived and all that waits behind it.
    fn check(&self, first: Arrived, arrived: &Receiver<Arrived>) -> Result<(), NodeError> {
        let mut orders = Vec::new();
        // Each order's frame, which takes its part of the bounds until the order is checked, and
        // whether its record is to be stored.
        let mut frames = Vec::new();
        let waiting = arrived.try_iter().take(TOGETHER_MAX - 1);
        for arrived in std::iter::once(first).chain(waiting) {
            let order = match arrived.tag() {
                ORDER => Transaction::try_from_slice(arrived.content()).ok().map(|tx| (tx, false)),
                RECORDED_ORDER => open_recorded(&arrived),
                REQUEST => {
                    self.requests.on_request(arrived)?;
                    continue;
                }
                _ => None,
            };
            // Nothing can be answered to what has no name.
            let Some((transaction, is_recorded)) = order else {
                self.counts.refused("malformed");
                continue;
            };
            orders.push((arrived.ticket, transaction));
            frames.push((arrived, is_recorded));
        }
        if orders.is_empty() {
            return Ok(());
        }
        let orders = check_orders(orders, &self.verifier);
        let mut done = Vec::with_capacity(frames.len());
        for ((arrived, is_recorded), checked) in frames.into_iter().zip(orders.iter()) {
            if is_recorded {
                self.requests.record(arrived, checked);
            } else {
                done.push(arrived);
            }
        }
        Arrived::release(done);
        // Fails only when the host stops.
        let _ = self.checked.send(AuthorityEvent::Orders(orders));
        Ok(())
    }
}

/// Thread of the authority's machine.
struct MachineThread {
    machine: quorate_payments::Authority,
    clock: Clock,
    jobs: Sender<SignJob>,
    queue: Sender<Queued>,
    counts: Arc<Counts>,
}

impl MachineThread {
    fn run(
        mut self,
        checked: &Receiver<AuthorityEvent>,
        events: &Receiver<AuthorityEvent>,
        stopped: &Receiver<()>,
    ) -> Result<(), NodeError> {
        loop {
            let wait = self.machine.next_timeout().map_or(Duration::from_secs(3_600), |due| {
                Duration::from_micros(due.0.saturating_sub(self.clock.now().0))
            });
            let event = select! {
                recv(events) -> event => event.ok(),
                recv(checked) -> event => event.ok(),
                recv(stopped) -> _ => return Ok(()),
                default(wait) => None,
            };
            let now: Time = self.clock.now();
            match event {
                Some(event) => self.machine.handle(now, event),
                None => self.machine.handle_timeout(now),
            }
            if !self.dispatch_all()? {
                return Ok(());
            }
        }
    }

    /// Hands on everything that the machine asks for: all but signing goes behind the log, in its
    /// order. Returns `false` when the log thread is gone.
    fn dispatch_all(&mut self) -> Result<bool, NodeError> {
        while let Some(effect) = self.machine.poll() {
            let queued = match effect {
                AuthorityEffect::Sign(job) => {
                    let _ = self.jobs.send(job);
                    continue;
                }
                AuthorityEffect::Stop(failed) => return Err(failed.into()),
                AuthorityEffect::Persist(locks) => Queued::Persist(Promise::Locks(locks)),
                AuthorityEffect::PersistReleases(entries) => {
                    Queued::Persist(Promise::Releases(entries))
                }
                AuthorityEffect::Report(coin, held) => {
                    Queued::Held(Leaving::Report(coin, Box::new(held)))
                }
                AuthorityEffect::Closed(next) => Queued::Held(Leaving::Closed(next)),
                AuthorityEffect::Read(sequence) => Queued::Held(Leaving::Read(sequence)),
                AuthorityEffect::Evidence(proof) => Queued::Held(Leaving::Evidence(proof)),
                AuthorityEffect::Answer { ticket, answer } => {
                    self.count(&answer.verdict);
                    Queued::Held(Leaving::Answer(ticket, frame(ANSWER, &answer)))
                }
            };
            if self.queue.send(queued).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn count(&self, verdict: &Verdict) {
        match verdict {
            Verdict::Vote(_) => {
                self.counts.votes.inc();
            }
            Verdict::Locked { .. } => self.counts.refused("locked"),
            Verdict::Invalid(_) => self.counts.refused("invalid"),
            Verdict::Busy => self.counts.refused("busy"),
            Verdict::Undecided { .. } => self.counts.refused("undecided"),
            Verdict::Released { .. } => self.counts.refused("released"),
            Verdict::Closed => self.counts.refused("closed"),
        }
    }
}
