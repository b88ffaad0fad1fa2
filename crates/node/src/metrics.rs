//! Counters and gauges of a validator, in one registry that `/metrics` prints.

pub(crate) mod exposition;
mod host;
mod latency;
mod members;

pub(crate) use host::{Disk, HostFigures, Identity, Process};

use crate::health::{Health, MemberStatus};
use host::HostGauges;
use latency::ReplicaLatency;
use members::MemberMetrics;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use quorate_engine::{Status, WitnessState};
use quorate_storage::JournalStats;
use quorate_types::{Height, Lane, Peer, Rejected};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

type Labels = Vec<(&'static str, String)>;

/// A member's refused messages are logged once in so long; the rest are counted.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(10);

/// Everything that one host counts. Shared by all its threads.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    lanes: [LaneMetrics; 4],
    /// Frames that were dropped because their queue was full, by peer and lane.
    dropped: Family<Labels, Counter>,
    /// Messages that failed a check, by peer and reason.
    rejected: Family<Labels, Counter>,
    /// Connections that were turned away or cut, by reason.
    cut: Family<Labels, Counter>,
    checks: CheckMetrics,
    protocol: ProtocolCounters,
    log_bytes: Gauge,
    log_syncs: Gauge,
    log_used: Gauge,
    oldest: Gauge,
    commit_seconds: Histogram,
    replica: ReplicaGauges,
    members: MemberMetrics,
    decision_seconds: ReplicaLatency,
    request_seconds: ReplicaLatency,
    host: HostGauges,
    complaints: Mutex<BTreeMap<Peer, Complaints>>,
}

#[derive(Debug, Default)]
struct LaneMetrics {
    frames_in: Counter,
    bytes_in: Counter,
    frames_out: Counter,
    bytes_out: Counter,
}

/// Fairness of the pool's checks.
#[derive(Debug)]
struct CheckMetrics {
    /// Time that votes, proposals and certificates wait to be checked.
    wait_seconds: Family<Labels, Histogram, fn() -> Histogram>,
    /// Times that a peer was cut off for what no correct peer sends.
    barred: Family<Labels, Counter>,
    /// Times that a connection of a peer took the place of one that was still there.
    replaced: Family<Labels, Counter>,
}

#[derive(Debug, Default)]
struct ReplicaGauges {
    view: Gauge,
    decided: Gauge,
    executed: Gauge,
    operations: Gauge,
    view_changes: Gauge,
    fast_decisions: Gauge,
    slow_decisions: Gauge,
    mempool_bytes: Gauge,
    bodies_bytes: Gauge,
    certificate_bytes: Gauge,
    sync_from: Gauge,
    sync_to: Gauge,
    faults: Gauge,
    syncing: Gauge,
    signs: Gauge,
    diverged: Gauge,
    waits_for_witnesses: Gauge,
    pace_seconds: Gauge<f64, AtomicU64>,
}

/// Counters of protocol messages in the replica, by labels.
#[derive(Debug, Default)]
struct ProtocolCounters {
    /// By kind of message and reason.
    ignored: Family<Labels, Counter>,
    /// By member and rule.
    misbehaviour: Family<Labels, Counter>,
    /// Clients' requests and queries that were turned away, by reason.
    refused: Family<Labels, Counter>,
}

#[derive(Debug)]
struct Complaints {
    last: Instant,
    silent: u64,
}

const LANES: [Lane; 4] = [Lane::Votes, Lane::Consensus, Lane::Bulk, Lane::Client];

/// A lane's name in labels and logs.
#[must_use]
pub fn lane_name(lane: Lane) -> &'static str {
    match lane {
        Lane::Votes => "votes",
        Lane::Consensus => "consensus",
        Lane::Bulk => "bulk",
        Lane::Client => "client",
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// A registry with everything at zero.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("quorate");
        let lanes = LaneMetrics::register(&mut registry);
        let dropped = Family::default();
        let rejected = Family::default();
        let cut = Family::default();
        let (log_bytes, log_syncs) = (Gauge::default(), Gauge::default());
        let commit_seconds = Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        registry.register("frames_dropped", "Frames dropped from full queues", dropped.clone());
        registry.register("messages_rejected", "Messages that failed a check", rejected.clone());
        registry.register("connections_cut", "Connections turned away or cut", cut.clone());
        registry.register("log_bytes_written", "Bytes written to the log", log_bytes.clone());
        let (log_used, oldest) = (Gauge::default(), Gauge::default());
        registry.register("log_bytes", "Bytes of records and bodies kept", log_used.clone());
        registry.register(
            "oldest_height",
            "Lowest height from which on blocks and bodies are kept for others",
            oldest.clone(),
        );
        registry.register("log_syncs", "Syncs of the log", log_syncs.clone());
        registry.register(
            "log_commit_seconds",
            "Time that a group of records takes to become durable",
            commit_seconds.clone(),
        );
        let checks = CheckMetrics::register(&mut registry);
        let protocol = ProtocolCounters::register(&mut registry);
        let replica = ReplicaGauges::register(&mut registry);
        let members = MemberMetrics::register(&mut registry);
        let decision_seconds = ReplicaLatency::register(
            &mut registry,
            "decision_latency_seconds",
            "Time from the arrival of what a height orders to its decision",
        );
        let request_seconds = ReplicaLatency::register(
            &mut registry,
            "request_latency_seconds",
            "Time from the arrival of a request at this member to its answer",
        );
        let host = HostGauges::register(&mut registry);
        let complaints = Mutex::default();
        Self {
            registry,
            lanes,
            dropped,
            rejected,
            cut,
            checks,
            protocol,
            log_bytes,
            log_syncs,
            log_used,
            oldest,
            commit_seconds,
            replica,
            members,
            decision_seconds,
            request_seconds,
            host,
            complaints,
        }
    }

    pub(crate) fn received(&self, lane: Lane, bytes: usize) {
        self.lanes[lane as usize].frames_in.inc();
        self.lanes[lane as usize].bytes_in.inc_by(bytes as u64);
    }

    pub(crate) fn sent(&self, lane: Lane, frames: usize, bytes: usize) {
        self.lanes[lane as usize].frames_out.inc_by(frames as u64);
        self.lanes[lane as usize].bytes_out.inc_by(bytes as u64);
    }

    /// The counter of one queue's drops. Clients share one, and learners: their number has no bound
    /// worth a label.
    pub(crate) fn drops(&self, peer: Peer, lane: Lane) -> Counter {
        let labels = vec![("peer", peer_label(peer)), ("lane", lane_name(lane).into())];
        self.dropped.get_or_create_owned(&labels)
    }

    /// Counter of answers or orders that a full queue of a payer's connection dropped.
    pub(crate) fn answers_dropped(&self) -> Counter {
        self.dropped
            .get_or_create(&vec![("peer", "payer".into()), ("lane", "client".into())])
            .clone()
    }

    /// Counts a client's request or query that was turned away before the replica saw it.
    pub(crate) fn refused(&self, reason: &'static str) {
        self.protocol.refused.get_or_create(&vec![("reason", reason.into())]).inc();
    }

    pub(crate) fn cut(&self, reason: &'static str) {
        self.cut_counter(reason).inc();
    }

    /// Counter of connections that were turned away or cut for this reason.
    #[must_use]
    pub fn cut_counter(&self, reason: &'static str) -> Counter {
        self.cut.get_or_create(&vec![("reason", reason.into())]).clone()
    }

    /// Takes note of how long a frame waited that goes before bodies and requests.
    pub(crate) fn check_waited(&self, peer: Peer, span: Duration) {
        let labels = vec![("peer", peer_label(peer))];
        self.checks.wait_seconds.get_or_create(&labels).observe(span.as_secs_f64());
    }

    /// Counts that a connection of this peer took the place of one that was still there.
    pub(crate) fn replaced(&self, peer: Peer) {
        self.checks.replaced.get_or_create(&vec![("peer", peer_label(peer))]).inc();
    }

    /// Counts that nothing is taken from this peer for a while.
    pub(crate) fn barred(&self, peer: Peer) {
        self.checks.barred.get_or_create(&vec![("peer", peer_label(peer))]).inc();
    }

    /// Counts a refused message; for a member's fault that is due to be logged, how many went
    /// unlogged since the last one.
    pub(crate) fn rejected(&self, peer: Peer, reason: &Rejected) -> Option<u64> {
        let labels = vec![("peer", peer_label(peer)), ("reason", reason_label(reason).into())];
        self.rejected.get_or_create(&labels).inc();
        match peer {
            Peer::Replica(_) if !reason.is_innocent() => self.complain(peer, Instant::now()),
            _ => None,
        }
    }

    pub(crate) fn log(&self, stats: JournalStats) {
        self.log_bytes.set(stats.bytes_written.cast_signed());
        self.log_syncs.set(stats.syncs.cast_signed());
        self.log_used.set(stats.bytes_used.cast_signed());
        self.oldest.set(stats.oldest.0.cast_signed());
    }

    pub(crate) fn commit_took(&self, span: Duration) {
        self.commit_seconds.observe(span.as_secs_f64());
    }

    /// Bytes written to the log and syncs of it, so far.
    #[must_use]
    pub fn log_totals(&self) -> (u64, u64) {
        (self.log_bytes.get().cast_unsigned(), self.log_syncs.get().cast_unsigned())
    }

    /// Bytes of log in use, and the lowest height from which on blocks and bodies are kept.
    #[must_use]
    pub fn log_kept(&self) -> (u64, Height) {
        (self.log_used.get().cast_unsigned(), Height(self.oldest.get().cast_unsigned()))
    }

    /// Number of messages that were refused with this reason, from all peers.
    #[must_use]
    pub fn rejections(&self, peer: Peer, reason: &Rejected) -> u64 {
        let labels = vec![("peer", peer_label(peer)), ("reason", reason_label(reason).into())];
        self.rejected.get_or_create(&labels).get()
    }

    /// Number of connections that were turned away or cut for this reason.
    #[must_use]
    pub fn cuts(&self, reason: &'static str) -> u64 {
        self.cut_counter(reason).get()
    }

    /// Says once what this validator is.
    pub(crate) fn describe(&self, identity: &Identity) {
        self.host.describe(identity);
    }

    /// Everything as OpenMetrics, with the replica's, the members' and the host's figures as given.
    #[must_use]
    pub(crate) fn print(
        &self,
        status: &Status,
        (members, health, is_ready): (&[MemberStatus], &Health, bool),
        host: &HostFigures,
    ) -> String {
        self.replica.set(status);
        self.protocol.set(status);
        self.members.show(members, health, is_ready);
        self.decision_seconds.set(&status.decision_latency);
        self.request_seconds.set(&status.request_latency);
        self.host.show(host);
        exposition::print(&self.registry)
    }

    fn complain(&self, peer: Peer, now: Instant) -> Option<u64> {
        let mut complaints = self.complaints.lock();
        let Some(known) = complaints.get_mut(&peer) else {
            complaints.insert(peer, Complaints { last: now, silent: 0 });
            return Some(0);
        };
        if now.duration_since(known.last) < COMPLAINT_INTERVAL {
            known.silent += 1;
            return None;
        }
        known.last = now;
        Some(std::mem::take(&mut known.silent))
    }
}

impl LaneMetrics {
    /// Counters of each lane, in families that name the lane.
    fn register(registry: &mut Registry) -> [Self; 4] {
        let families: [Family<Labels, Counter>; 4] = Default::default();
        let words = [
            ("frames_received", "Frames received"),
            ("bytes_received", "Bytes of frames received"),
            ("frames_sent", "Frames written to connections"),
            ("bytes_sent", "Bytes of frames written"),
        ];
        for ((name, help), family) in words.into_iter().zip(&families) {
            registry.register(name, help, family.clone());
        }
        LANES.map(|lane| {
            let labels = vec![("lane", lane_name(lane).to_owned())];
            let [frames_in, bytes_in, frames_out, bytes_out] =
                families.each_ref().map(|family| family.get_or_create_owned(&labels));
            Self { frames_in, bytes_in, frames_out, bytes_out }
        })
    }
}

impl CheckMetrics {
    fn register(registry: &mut Registry) -> Self {
        let wait_seconds = || Histogram::new(exponential_buckets(0.000_05, 2.0, 16));
        let wait_seconds = Family::new_with_constructor(wait_seconds as fn() -> Histogram);
        let metrics = Self { wait_seconds, barred: Family::default(), replaced: Family::default() };
        registry.register(
            "check_wait_seconds",
            "Time that votes, proposals and certificates wait to be checked",
            metrics.wait_seconds.clone(),
        );
        registry.register(
            "peers_barred",
            "Times that a peer was cut off for what no correct peer sends",
            metrics.barred.clone(),
        );
        registry.register(
            "connections_replaced",
            "Times that a member's connection took the place of one that was still there",
            metrics.replaced.clone(),
        );
        metrics
    }
}

impl ReplicaGauges {
    fn register(registry: &mut Registry) -> Self {
        let gauges = Self::default();
        let mut add = |name, help, gauge: &Gauge| registry.register(name, help, gauge.clone());
        add("view", "Current view", &gauges.view);
        add("decided_height", "Last decided height", &gauges.decided);
        add("executed_height", "Last executed height", &gauges.executed);
        add("operations_executed", "Operations executed since genesis", &gauges.operations);
        add("view_changes", "Views left by a timeout or a view change", &gauges.view_changes);
        add("fast_decisions", "Slots decided by the fast path", &gauges.fast_decisions);
        add("slow_decisions", "Slots decided by the slow path", &gauges.slow_decisions);
        add("mempool_bytes", "Requests that wait to be ordered", &gauges.mempool_bytes);
        add("bodies_bytes", "Bodies held in memory", &gauges.bodies_bytes);
        add("certificate_bytes", "Size of the last certificate", &gauges.certificate_bytes);
        add("syncing", "1 while it fetches blocks that it missed", &gauges.syncing);
        add("signs", "1 when it may vote, 0 when it follows only", &gauges.signs);
        add("diverged", "1 while its state is not the committee's", &gauges.diverged);
        add(
            "waits_for_witnesses",
            "1 while it signs nothing because too few others have shown what it signed",
            &gauges.waits_for_witnesses,
        );
        add("sync_from_height", "Executed height while catching up, or 0", &gauges.sync_from);
        add("sync_to_height", "Height that is being caught up to, or 0", &gauges.sync_to);
        add("faults", "Messages that broke a rule of the protocol", &gauges.faults);
        registry.register(
            "pace_seconds",
            "Pause of a leader because threads wait for processors",
            gauges.pace_seconds.clone(),
        );
        gauges
    }

    fn set(&self, status: &Status) {
        self.view.set(status.view.0.cast_signed());
        self.decided.set(status.decided.0.cast_signed());
        self.executed.set(status.executed.0.cast_signed());
        self.operations.set(status.operations.cast_signed());
        self.view_changes.set(status.view_changes.cast_signed());
        self.fast_decisions.set(status.fast_decisions.cast_signed());
        self.slow_decisions.set(status.slow_decisions.cast_signed());
        self.mempool_bytes.set(status.mempool_bytes.cast_signed());
        self.bodies_bytes.set(status.bodies_bytes.cast_signed());
        self.certificate_bytes.set(status.certificate_bytes.cast_signed());
        self.sync_from.set(status.sync.from.0.cast_signed());
        self.sync_to.set(status.sync.to.0.cast_signed());
        self.faults.set(status.faults.cast_signed());
        self.syncing.set(i64::from(status.syncing));
        self.signs.set(i64::from(status.signs));
        self.diverged.set(i64::from(status.diverged.is_some()));
        let waits = status.witnesses.state == WitnessState::Waiting;
        self.waits_for_witnesses.set(i64::from(waits));
        self.pace_seconds.set(status.pace_ms as f64 / 1e3);
    }
}

impl ProtocolCounters {
    fn register(registry: &mut Registry) -> Self {
        let counters = Self::default();
        registry.register(
            "messages_ignored",
            "Messages of the protocol that passed their check and had no effect",
            counters.ignored.clone(),
        );
        registry.register(
            "misbehaviour",
            "Rules of the protocol that members broke",
            counters.misbehaviour.clone(),
        );
        registry.register(
            "requests_refused",
            "Requests and queries of clients that were turned away",
            counters.refused.clone(),
        );
        counters
    }

    fn set(&self, status: &Status) {
        for (kind, reason, total) in status.ignored.iter() {
            let labels = vec![("message", kind.name().into()), ("reason", reason.name().into())];
            raise(&self.ignored, &labels, total);
        }
        for (refusal, total) in status.refusals.iter() {
            raise(&self.refused, &vec![("reason", refusal.name().into())], total);
        }
        for (member, rule, total, _) in status.misbehaviour.iter() {
            let peer = peer_label(Peer::Replica(member));
            raise(&self.misbehaviour, &vec![("peer", peer), ("rule", rule.name().into())], total);
        }
    }
}

/// Raises a counter to a total that only grows, whoever else does so at the same time.
fn raise(family: &Family<Labels, Counter>, labels: &Labels, total: u64) {
    family.get_or_create(labels).inner().fetch_max(total, Ordering::Relaxed);
}

/// A peer in labels and logs: a member by its index.
pub(crate) fn peer_label(peer: Peer) -> String {
    match peer {
        Peer::Replica(id) => id.to_string(),
        Peer::Client(_) => "client".into(),
        Peer::Learner(_) => "learner".into(),
    }
}

fn reason_label(reason: &Rejected) -> &'static str {
    match reason {
        Rejected::Malformed(_) => "malformed",
        Rejected::NotAMember => "not-a-member",
        Rejected::ForeignSender => "foreign-sender",
        Rejected::ForeignEpoch => "foreign-epoch",
        Rejected::BadSignature(_) => "bad-signature",
        Rejected::BelowThreshold => "below-threshold",
        Rejected::RuleBroken(_) => "rule-broken",
        Rejected::Stale => "stale",
        Rejected::TooFarAhead => "too-far-ahead",
        Rejected::RuledOut { .. } => "ruled-out",
        Rejected::TooLarge(_) => "too-large",
    }
}

#[cfg(test)]
mod tests;
