//! Figures of one second, which the page draws over time.

use crate::shown::{NodeStatus, Shown};
use serde::Serialize;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// One look at a validator.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) status: NodeStatus,
    /// Events and frames that wait for its threads, by queue.
    pub(super) queues: Vec<(&'static str, usize)>,
    /// Bytes that wait to be sent to other members.
    pub(super) outbox_bytes: u64,
}

/// Figures of the time between two looks. Rates are per second; a latency is `null` where nothing
/// was decided or answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Point {
    /// Milliseconds since 1970.
    pub(super) at_ms: u64,
    /// Last decided height.
    pub(super) height: u64,
    /// View that the protocol is in.
    pub(super) view: u64,
    /// Operations executed.
    pub(super) operations_s: f64,
    /// Heights decided.
    pub(super) heights_s: f64,
    /// Of these, by the votes of almost all, where the protocol has a fast path.
    pub(super) fast_s: f64,
    /// Of these, by two quorums' votes, where it has one.
    pub(super) slow_s: f64,
    /// Views given up.
    pub(super) given_up_s: f64,
    /// Milliseconds from the arrival of what a height orders to its decision, at most, for half.
    pub(super) decision_p50_ms: Option<f64>,
    /// The same for 99 of 100.
    pub(super) decision_p99_ms: Option<f64>,
    /// Milliseconds from a request's arrival at this member to its answer, at most, for half.
    pub(super) request_p50_ms: Option<f64>,
    /// The same for 99 of 100.
    pub(super) request_p99_ms: Option<f64>,
    /// Syncs of the log.
    pub(super) log_syncs_s: f64,
    /// Bytes written to it.
    pub(super) log_bytes_s: f64,
    /// Processors that the process kept busy; `null` where the system does not say.
    pub(super) cpu: Option<f64>,
    /// Resident memory in MiB; `null` where the system does not say.
    pub(super) rss_mb: Option<u64>,
    /// Bytes of requests that wait to be ordered.
    pub(super) mempool_bytes: u64,
    /// Events and frames that wait for the validator's threads.
    pub(super) queued: u64,
    /// Bytes that wait to be sent to other members.
    pub(super) outbox_bytes: u64,
    /// Bytes free on the disk.
    pub(super) disk_free_bytes: u64,
    /// Connected clients.
    pub(super) clients: u64,
    /// Weight of the members heard, this one included.
    pub(super) heard_weight: u64,
}

/// Three decimals are enough for a chart.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

impl Reading {
    /// A look now.
    pub(super) fn of(shown: &Shown) -> Self {
        let outboxes = shown.network.queued();
        Self {
            at: Instant::now(),
            status: shown.now(),
            queues: shown.queues.as_ref().map(crate::shown::Queues::waiting).unwrap_or_default(),
            outbox_bytes: outboxes.iter().map(|(_, _, bytes)| *bytes as u64).sum(),
        }
    }

    /// True once the replica has shown its state: before, all its counts are zero.
    fn is_shown(&self) -> bool {
        !self.status.replica.root.is_empty()
    }
}

impl Point {
    /// Figures of the time between two looks; `None` where one of them shows no state yet.
    pub(super) fn between(earlier: &Reading, now: &Reading, at_ms: u64) -> Option<Self> {
        if !earlier.is_shown() || !now.is_shown() {
            return None;
        }
        let span = now.at.saturating_duration_since(earlier.at).max(Duration::from_millis(1));
        let seconds = span.as_secs_f64();
        let (before, after) = (&earlier.status, &now.status);
        let (old, new) = (&before.replica, &after.replica);
        let rate = |old: u64, new: u64| rounded(new.saturating_sub(old) as f64 / seconds);
        let decisions = new.decision_latency.since(&old.decision_latency);
        let requests = new.request_latency.since(&old.request_latency);
        let in_ms = |seconds: Option<f64>| seconds.map(|seconds| rounded(seconds * 1e3));
        let cpu = after.cpu_seconds.zip(before.cpu_seconds);
        Some(Self {
            at_ms,
            height: new.decided.0,
            view: new.view.0,
            operations_s: rate(old.operations, new.operations),
            heights_s: rate(old.decided.0, new.decided.0),
            fast_s: rate(old.fast_decisions, new.fast_decisions),
            slow_s: rate(old.slow_decisions, new.slow_decisions),
            given_up_s: rate(old.view_changes, new.view_changes),
            decision_p50_ms: in_ms(decisions.quantile(0.5)),
            decision_p99_ms: in_ms(decisions.quantile(0.99)),
            request_p50_ms: in_ms(requests.quantile(0.5)),
            request_p99_ms: in_ms(requests.quantile(0.99)),
            log_syncs_s: rate(before.log_syncs, after.log_syncs),
            log_bytes_s: rate(before.log_bytes_written, after.log_bytes_written),
            cpu: cpu.map(|(after, before)| rounded((after - before).max(0.0) / seconds)),
            rss_mb: after.rss_mb,
            mempool_bytes: new.mempool_bytes,
            queued: now.queues.iter().map(|(_, waiting)| *waiting as u64).sum(),
            outbox_bytes: now.outbox_bytes,
            disk_free_bytes: after.disk.free_bytes,
            clients: after.clients_connected as u64,
            heard_weight: after.heard_weight,
        })
    }

    /// The figures by name.
    pub(super) fn columns(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(columns)) => columns,
            other => unreachable!("a struct of numbers: {other:?}"),
        }
    }
}
