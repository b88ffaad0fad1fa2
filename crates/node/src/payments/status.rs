//! Status pages of an authority: `/status`, `/metrics` and `/evidence`, for whoever its
//! configuration lets in, and `/healthz` for everybody.

use super::evidence::Shown;
use super::follower::{FollowerStatus, ReleaseStatus};
use super::server::Payers;
use crate::connections::Acceptor;
use crate::http::{StatusDoor, guarded};
use crate::http_server;
use crate::metrics::{Process, exposition};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use quorate_payments::{Equivocation, Network, SpentSet};
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;

type Labels = Vec<(&'static str, &'static str)>;

/// Counters of an authority, for its metrics.
#[derive(Debug)]
pub(super) struct Counts {
    registry: Registry,
    /// Votes that were sent.
    pub(super) votes: Counter,
    /// Transactions locked since the start.
    pub(super) locks: Counter,
    /// Syncs of the locks.
    pub(super) commits: Counter,
    refused: Family<Labels, Counter>,
    inputs: Gauge,
}

impl Counts {
    pub(super) fn new() -> Self {
        let mut registry = Registry::with_prefix("quorate_pay");
        let (votes, locks, commits) = (Counter::default(), Counter::default(), Counter::default());
        let (refused, inputs) = (Family::default(), Gauge::default());
        registry.register("votes", "Votes that left", votes.clone());
        registry.register("locks", "Transactions locked", locks.clone());
        registry.register("commits", "Groups of locks made durable", commits.clone());
        registry.register("refused", "Orders refused, by reason", Family::clone(&refused));
        registry.register("locked_inputs", "Inputs locked", inputs.clone());
        Self { registry, votes, locks, commits, refused, inputs }
    }

    pub(super) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&vec![("reason", reason)]).inc();
    }

    fn refused_for(&self, reason: &'static str) -> u64 {
        self.refused.get_or_create(&vec![("reason", reason)]).get()
    }
}

/// State from which the pages are made.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pub(super) network: Arc<Network>,
    pub(super) authority: usize,
    pub(super) shard: u16,
    pub(super) spent: Arc<SpentSet>,
    pub(super) payers: Arc<Payers>,
    pub(super) counts: Arc<Counts>,
    pub(super) evidence: Shown,
    pub(super) releases: Option<Arc<FollowerStatus>>,
    pub(super) since: Instant,
}

/// The content of `/status`.
#[derive(Clone, Debug, Serialize)]
pub struct AuthorityStatus {
    /// Version of this program.
    pub version: &'static str,
    /// The network's identity, in hexadecimal.
    pub network: String,
    /// Index of the authority in the network.
    pub authority: usize,
    /// Index of its shard.
    pub shard: u16,
    /// Scheme by which the authorities vote.
    pub scheme: String,
    /// Votes since the start.
    pub votes: u64,
    /// Transactions locked since the start.
    pub locks: u64,
    /// Groups of locks made durable since the start.
    pub commits: u64,
    /// Inputs locked in all.
    pub locked_inputs: u64,
    /// Those of them in memory; the others are on disk.
    pub inputs_in_memory: usize,
    /// Invalid orders since the start.
    pub refused_invalid: u64,
    /// Orders over an input that is locked for another.
    pub refused_locked: u64,
    /// Number of connected payers.
    pub payers: usize,
    /// Progress along the order of releases, where a committee is configured.
    pub releases: Option<ReleaseStatus>,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Resident memory of the process in MiB.
    pub rss_mb: Option<u64>,
    /// Processor time of the process in seconds.
    pub cpu_seconds: Option<f64>,
}

impl Pages {
    fn status(&self) -> AuthorityStatus {
        let process = Process::now();
        AuthorityStatus {
            version: env!("CARGO_PKG_VERSION"),
            network: hex::encode(self.network.id().0),
            authority: self.authority,
            shard: self.shard,
            scheme: self.network.scheme().to_string(),
            votes: self.counts.votes.get(),
            locks: self.counts.locks.get(),
            commits: self.counts.commits.get(),
            locked_inputs: self.spent.len(),
            inputs_in_memory: self.spent.hot_len(),
            refused_invalid: self.counts.refused_for("invalid"),
            refused_locked: self.counts.refused_for("locked"),
            payers: self.payers.count(),
            releases: self.releases.as_deref().map(FollowerStatus::show),
            uptime_s: self.since.elapsed().as_secs(),
            rss_mb: process.resident_bytes.map(|bytes| bytes >> 20),
            cpu_seconds: process.cpu_seconds,
        }
    }
}

/// Serves the pages, for ever.
pub(super) async fn serve(acceptor: Acceptor, pages: Pages, door: StatusDoor) {
    let telling = Router::new()
        .route("/status", get(|State(pages): State<Pages>| async move { Json(pages.status()) }))
        .route("/metrics", get(metrics))
        .route("/evidence", get(evidence));
    let all = guarded(telling, door.users).route("/healthz", get(|| async { "ok\n" }));
    http_server::serve(acceptor, all.with_state(pages), door.rules).await;
}

async fn metrics(State(pages): State<Pages>, asked: HeaderMap) -> Response {
    pages.counts.inputs.set(i64::try_from(pages.spent.len()).unwrap_or(i64::MAX));
    exposition::answer(&asked, exposition::print(&pages.counts.registry))
}

/// A proof that somebody signed two transactions over one input; `proof` is for
/// `quorate pay evidence verify`.
#[derive(Clone, Debug, Serialize)]
struct ShownProof {
    payer: String,
    first: String,
    second: String,
    proof: String,
}

impl From<&Equivocation> for ShownProof {
    fn from(one: &Equivocation) -> Self {
        let proof = borsh::to_vec(one).expect("encoding into memory cannot fail");
        Self {
            payer: one.first.payer.to_string(),
            first: one.first.id.to_string(),
            second: one.second.id.to_string(),
            proof: hex::encode(proof),
        }
    }
}

async fn evidence(State(pages): State<Pages>) -> Json<Vec<ShownProof>> {
    Json(pages.evidence.lock().iter().map(ShownProof::from).collect())
}
