//! The operator's view: `/status` (JSON), `/metrics` (Prometheus), `/healthz` (its threads run) and
//! `/readyz` (it is of use), over plain HTTP, or TLS where the configuration says so.
//!
//! Who may read is the configuration's to say ([`crate::http_access`]): on the loopback interface,
//! which is the default, everybody. `/healthz` and `/readyz` ask nobody for a token.

use crate::connections::{Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::health::{Health, MemberContact, MemberStatus};
use crate::http_access::{DoorUser, Users, guard};
use crate::http_server::{self, DoorRules};
use crate::log::{Backlog, LogQueue};
use crate::machine::{EventSender, ShownStatus};
use crate::metrics::{Disk, HostFigures, Metrics, Process, exposition};
use crate::pool::{CheckBacklog, Pool};
use crate::transport::Network;
use arc_swap::ArcSwap;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use quorate_engine::{GivenUp, Status, WitnessState};
use quorate_storage::{Room, RoomFigures, RoomLevel};
use quorate_types::{Height, ReplicaId, Versions};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tokio::net::TcpListener;

/// State from which the pages are made.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The replica's own view.
    pub status: ShownStatus,
    /// Counters and gauges of the validator.
    pub metrics: Arc<Metrics>,
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
    fn waiting(&self) -> Vec<(&'static str, usize)> {
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

/// The content of `/readyz`.
#[derive(Clone, Debug, Serialize)]
struct Readiness {
    ready: bool,
    reasons: Vec<String>,
}

/// Users of the status page; `None` where everybody is let in.
pub type StatusUsers = Option<Arc<Users<DoorUser>>>;

/// Serves the pages to so many at once, for ever.
pub async fn serve(
    socket: TcpListener,
    shown: Shown,
    limits: ConnectionLimits,
    (users, rules): (StatusUsers, DoorRules),
) {
    let cut = shown.metrics.cut_counter("too-many-status");
    let acceptor = Acceptor::new(socket, ConnectionLimiter::new(limits, cut), limits.total);
    http_server::serve(acceptor, pages(users).with_state(shown), rules).await;
}

/// All pages. With users, those that tell something of the network ask for a token.
fn pages(users: StatusUsers) -> Router<Shown> {
    let guarded = match users {
        Some(users) => guarded_pages().route_layer(from_fn_with_state(users, guard)),
        None => guarded_pages(),
    };
    guarded.merge(open_pages())
}

/// Pages for those who may read.
fn guarded_pages() -> Router<Shown> {
    Router::new().route("/status", get(status)).route("/metrics", get(metrics))
}

/// Pages for everybody: whoever probes a validator (an orchestrator, a load balancer) can rarely
/// hold a token, and learns no more than whether it runs and is of use.
fn open_pages() -> Router<Shown> {
    Router::new().route("/healthz", get(healthz)).route("/readyz", get(readyz))
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
            votes: counted.votes,
            certificates,
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
    fn not_ready(&self, health: &Health, disk: &RoomFigures) -> Vec<String> {
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

async fn status(State(shown): State<Shown>) -> Response {
    aside(move || Json(shown.now())).await
}

async fn metrics(State(shown): State<Shown>, asked: HeaderMap) -> Response {
    aside(move || exposition::answer(&asked, shown.metrics_text())).await
}

/// Looks at files on another thread: a slow disk must not hold up those that carry votes.
async fn aside_of<T: Send + 'static>(
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(look).await
}

/// Makes a page that looks at files.
async fn aside<R: IntoResponse + Send + 'static>(
    page: impl FnOnce() -> R + Send + 'static,
) -> Response {
    match aside_of(page).await {
        Ok(page) => page.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn healthz(State(shown): State<Shown>) -> Response {
    if shown.healthy.load(Ordering::Relaxed) {
        "ok\n".into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not running\n").into_response()
    }
}

/// 200 if clients may ask it, and 503 with the reasons otherwise.
async fn readyz(State(shown): State<Shown>) -> Response {
    aside(move || {
        let reasons = shown.not_ready(&shown.health.load(), &shown.room.figures());
        let ready = reasons.is_empty();
        let code = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (code, Json(Readiness { ready, reasons }))
    })
    .await
}
