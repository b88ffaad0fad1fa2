//! State that a validator shows, as its pages read it.

use crate::dashboard::Feed;
use crate::health::{Health, MemberContact, MemberStatus};
use crate::log::{Backlog, LogQueue};
use crate::machine::{EventSender, ShownStatus};
use crate::metrics::{Disk, HostFigures, Metrics, Process};
use crate::pool::{CheckBacklog, Pool};
use crate::transport::Network;
use arc_swap::ArcSwap;
use quorate_engine::{GivenUp, Status, WitnessState};
use quorate_storage::{Room, RoomFigures, RoomLevel};
use quorate_types::{Committee, Height, ReplicaId, Versions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// State from which the pages are made.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The replica's own view.
    pub status: ShownStatus,
    /// Counters and gauges of the validator.
    pub metrics: Arc<Metrics>,
    /// Members, with their weights and addresses.
    pub committee: Arc<Committee>,
    /// Connections to members and clients.
    pub network: Arc<Network>,
    /// The validator's own weight in the committee.
    pub weight: u64,
    /// Facts that do not change while it runs.
    pub summary: Summary,
    /// Time at which the validator started.
    pub since: Instant,
    /// Folder of its data, for disk figures.
    pub data_dir: PathBuf,
    /// Room on the disk that they are on.
    pub room: Room,
    /// The queues between its threads, once they run.
    pub queues: Option<Queues>,
    /// Set while the next committee fetches what it begins with from here.
    pub must_not_stop: Arc<AtomicBool>,
    /// Set once the replica's first event is handled and until it stops.
    pub healthy: Arc<AtomicBool>,
    /// The last judgement of whether it is of use.
    pub health: Arc<ArcSwap<Health>>,
    /// Events of the dashboard.
    pub feed: Arc<Feed>,
}

/// The queues between a validator's threads.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Into the machine thread.
    pub events: EventSender,
    /// Into the log thread.
    pub log: Backlog,
    /// Into the threads that check.
    pub checks: CheckBacklog,
}

impl Queues {
    /// Queues into a validator's threads.
    pub(crate) fn of(events: &EventSender, log: &LogQueue, checks: &Pool) -> Self {
        Self { events: events.clone(), log: log.backlog(), checks: checks.backlog() }
    }

    /// Number of events and frames that wait, by queue.
    pub(crate) fn waiting(&self) -> Vec<(&'static str, usize)> {
        self.events.waiting().into_iter().chain(self.checks.waiting()).collect()
    }
}

/// Facts that a validator was started with.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of this program.
    pub version: &'static str,
    /// The network, in hex.
    pub network: String,
    /// Number of the epoch in force.
    pub epoch: u64,
    /// Number of members of the committee.
    pub members: usize,
    /// Weight of all members together.
    pub weight_total: u64,
    /// The weight of a quorum.
    pub quorum: u64,
    /// Name of the replicated service.
    pub service: String,
    /// Version of the rules by which it executes.
    pub execution_version: u64,
    /// Those that this program has.
    pub execution_versions: Versions,
    /// Failures that a vote survives.
    pub durability: String,
    /// The ordering protocol and its settings.
    pub replica: quorate_engine::Settings,
    /// True if it may vote.
    pub signs: bool,
    /// True if it is no member, but a learner.
    pub learner: bool,
    /// Damage that its files had at the start, and what was done about it.
    pub storage: quorate_storage::Findings,
}

/// The content of `/status`.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStatus {
    /// The replica's own view.
    #[serde(flatten)]
    pub replica: Status,
    /// Weight of its vote.
    pub weight: u64,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Other members whose lanes are all connected.
    pub peers_connected: usize,
    /// Number of connected clients.
    pub clients_connected: usize,
    /// Bytes written to the log since the start.
    pub log_bytes_written: u64,
    /// Syncs of the log since the start.
    pub log_syncs: u64,
    /// Bytes of log in use: records and bodies, without what is set aside for later.
    pub log_bytes: u64,
    /// The lowest height from which on blocks and bodies are kept for others.
    pub oldest_height: Height,
    /// Room on the disk: while it is low, clients are refused; while it is out, it takes no part.
    pub disk: RoomFigures,
    /// Resident memory of the process in MiB; `null` where the system does not say.
    pub rss_mb: Option<u64>,
    /// Processor time of the process in seconds; `null` where the system does not say.
    pub cpu_seconds: Option<f64>,
    /// True if clients may ask it, as `/readyz` says.
    pub ready: bool,
    /// Everything that speaks against it, in words.
    pub not_ready: Vec<String>,
    /// Members heard within the last seconds, this one included.
    pub heard: usize,
    /// Weight of those heard, to compare with the quorum's.
    pub heard_weight: u64,
    /// True if they are a quorum.
    pub has_quorum: bool,
    /// Every member, as this validator sees it.
    pub members: Vec<MemberStatus>,
    /// True while the next committee fetches what it begins with from this validator, whose epoch
    /// has ended.
    pub must_not_stop: bool,
    /// The last views that were given up, with their leaders.
    pub given_up: Vec<GivenUp>,
    /// Facts that it was started with.
    pub config: Summary,
}

impl Shown {
    /// The content of `/status` now.
    #[must_use]
    pub fn now(&self) -> NodeStatus {
        let (log_bytes_written, log_syncs) = self.metrics.log_totals();
        let process = Process::now();
        let (log_bytes, oldest_height) = self.metrics.log_kept();
        let (status, health, disk) = (self.status.load(), self.health.load(), self.room.figures());
        let not_ready = self.not_ready(&health, &disk);
        let forfeited = status.witnesses.state == WitnessState::Contradicted;
        NodeStatus {
            replica: (**status).clone(),
            weight: self.weight,
            uptime_s: self.since.elapsed().as_secs(),
            peers_connected: self.network.members_connected(),
            clients_connected: self.network.clients_connected(),
            log_bytes_written,
            log_syncs,
            rss_mb: process.resident_bytes.map(|bytes| bytes >> 20),
            cpu_seconds: process.cpu_seconds,
            log_bytes,
            oldest_height,
            ready: not_ready.is_empty(),
            not_ready,
            heard: health.heard,
            heard_weight: health.heard_weight,
            has_quorum: health.has_quorum(),
            members: self.members(&status, &health),
            must_not_stop: self.must_not_stop.load(Ordering::Relaxed),
            given_up: status.contributions.given_up().copied().collect(),
            disk,
            config: Summary { signs: self.summary.signs && !forfeited, ..self.summary.clone() },
        }
    }

    /// Every member, as the replica, the network and the last judgement show them.
    fn members(&self, status: &Status, health: &Health) -> Vec<MemberStatus> {
        let certificates = status.contributions.certificates();
        let connected: BTreeMap<ReplicaId, bool> = self.network.peers().into_iter().collect();
        let contact = |id: ReplicaId| {
            let contact = self.network.contact(id).unwrap_or_default();
            Some(MemberContact {
                connected: *connected.get(&id)?,
                silent: health.silent.contains(&id),
                silence_s: contact.silence.as_secs_f64(),
                round_trip_ms: contact.round_trip.map(|span| span.as_secs_f64() * 1e3),
            })
        };
        let members = (0..).map(ReplicaId).zip(status.contributions.members());
        let status = members.map(|(id, counted)| MemberStatus {
            id,
            weight: self.committee.weight(id),
            votes: counted.votes,
            certificates,
            absences: status.contributions.absences(id),
            turns: counted.turns,
            turns_failed: counted.turns_failed,
            contact: contact(id),
        });
        status.collect()
    }

    /// The text of `/metrics` now, as OpenMetrics.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let queues = self.queues.as_ref();
        let host = HostFigures {
            uptime_s: self.since.elapsed().as_secs(),
            process: Process::now(),
            disk: Disk::of(&self.data_dir),
            room: Some(self.room.figures()),
            peers: self.network.members_connected(),
            clients: self.network.clients_connected(),
            outboxes: self.network.queued(),
            events: queues.map(Queues::waiting).unwrap_or_default(),
            log_backlog_bytes: queues.map_or(0, |queues| queues.log.bytes()),
        };
        let status = self.status.load();
        let health = self.health.load();
        let members = self.members(&status, &health);
        let is_ready = self.not_ready(&health, &self.room.figures()).is_empty();
        self.metrics.print(&status, (&members, &health, is_ready), &host)
    }

    /// Reasons in words for which clients should ask another validator; none where it is ready.
    pub(crate) fn not_ready(&self, health: &Health, disk: &RoomFigures) -> Vec<String> {
        let mut reasons = health.reasons();
        if disk.level == RoomLevel::Out {
            let RoomFigures { free_bytes, needed_bytes, .. } = disk;
            reasons.push(format!(
                "the disk is full: {free_bytes} bytes are free, {needed_bytes} are needed; it goes on \
                 by itself when there is room"
            ));
        }
        if !self.healthy.load(Ordering::Relaxed) {
            reasons.push("not running".to_owned());
        }
        reasons
    }
}
