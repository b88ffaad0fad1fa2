//! Metrics by name: the names that figures and results files use.

/// A number that a point may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name in files.
    pub name: &'static str,
    /// Description for axes and tables.
    pub label: &'static str,
    /// Unit, empty for a count.
    pub unit: &'static str,
}

/// Name of the detail that holds [`super::Record::doubts`].
pub(crate) const DOUBTS: &str = "doubts";
/// Name of the detail that says which resource is nearest to its limit.
pub(crate) const BOTTLENECK: &str = "bottleneck";

const fn metric(name: &'static str, label: &'static str, unit: &'static str) -> Metric {
    Metric { name, label, unit }
}

/// All of them. A point has those that its runner can tell.
pub const METRICS: &[Metric] = &[
    metric("offered_tps", "offered", "tx/s"),
    metric("committed_tps", "committed throughput", "tx/s"),
    metric("goodput_tps", "goodput", "tx/s"),
    metric("failed_share", "not answered by the end of the wait for late answers", "%"),
    // Submit to commit at the validator beside the client: what paper 000 calls latency.
    metric("latency_one_mean_ms", "latency to commit at one validator, mean", "ms"),
    metric("latency_one_p50_ms", "latency to commit at one validator, median", "ms"),
    metric("latency_one_p90_ms", "latency to commit at one validator, 90 %", "ms"),
    metric("latency_one_p99_ms", "latency to commit at one validator, 99 %", "ms"),
    // Submit to commit at whichever validator commits first: what the reference's scripts count.
    metric("latency_first_mean_ms", "latency to commit at the first validator, mean", "ms"),
    metric("latency_first_p50_ms", "latency to commit at the first validator, median", "ms"),
    metric("latency_first_p90_ms", "latency to commit at the first validator, 90 %", "ms"),
    metric("latency_first_p99_ms", "latency to commit at the first validator, 99 %", "ms"),
    metric("latency_slowest_mean_ms", "latency to commit at the slowest validator, mean", "ms"),
    metric("latency_slowest_p50_ms", "latency to commit at the slowest validator, median", "ms"),
    metric("latency_slowest_p90_ms", "latency to commit at the slowest validator, 90 %", "ms"),
    metric("latency_slowest_p99_ms", "latency to commit at the slowest validator, 99 %", "ms"),
    metric("latency_client_mean_ms", "latency to f+1 equal replies, mean", "ms"),
    metric("latency_client_p50_ms", "latency to f+1 equal replies, median", "ms"),
    metric("latency_client_p90_ms", "latency to f+1 equal replies, 90 %", "ms"),
    metric("latency_client_p99_ms", "latency to f+1 equal replies, 99 %", "ms"),
    // Found by searches over several points (`quorate compare`).
    metric("knee_tps", "highest rate kept up with", "tx/s"),
    metric("limit_tps", "lowest rate not kept up with", "tx/s"),
    metric("idle_p50_ms", "latency under little load, median", "ms"),
    metric("common_p50_ms", "latency at the common rate, median", "ms"),
    metric("common_p99_ms", "latency at the common rate, 99 %", "ms"),
    metric("common_busiest_share", "load of the busiest validator's processor", "%"),
    metric("window_s", "measurement window", "s"),
    metric("views", "views", ""),
    metric("view_changes", "views that timed out", ""),
    metric("given_up_ms", "from the crash to the first member that gives the view up", "ms"),
    metric("last_report_ms", "from the crash to the last member's report", "ms"),
    metric("new_view_ms", "from the crash to the new view", "ms"),
    metric("resumed_ms", "from the crash to the next decision", "ms"),
    metric("report_bytes", "longest report of a view change", "B"),
    metric("fast_share", "heights decided by one round of votes", "%"),
    metric("heights_per_s", "heights decided", "1/s"),
    metric("messages_per_height", "messages of all validators for each height", ""),
    metric("bytes_per_height", "bytes sent by all validators for each height", "B"),
    metric("bytes_per_tx", "bytes sent by all validators", "B/tx"),
    metric("written_bytes_per_tx", "written to disk by one validator", "B/tx"),
    metric("bytes_per_validator_s", "bytes sent by one validator", "MB/s"),
    metric("cpu_cores", "cores that all validators kept busy", "cores"),
    metric("height_us", "processor time of one validator for each height", "µs"),
    metric("machine_bound_tps", "what disk, processor and execution allow", "tx/s"),
    metric("bound_share", "share of what the machine's parts allow", "%"),
    metric("rss_growth", "memory, end over beginning", ""),
    metric("filled_tps", "filled", "puts/s"),
    metric("restart_s", "restart", "s"),
    // Of a suite's row that stands beside another.
    metric("ratio", "throughput over that of the row beside it", ""),
    metric("goodput_ratio", "goodput over the highest throughput", ""),
    metric("busiest_share", "load of the busiest validator's processor", "%"),
    metric("bottleneck_share", "load of the resource nearest to its limit", "%"),
    metric("uplink_share", "load of the busiest host's uplink", "%"),
    // Processor time of one validator's threads for a committed operation.
    metric("net_us_per_tx", "encryption and sockets", "µs/tx"),
    metric("checks_us_per_tx", "checks of bodies and requests", "µs/tx"),
    metric("votes_us_per_tx", "checks of votes and certificates", "µs/tx"),
    metric("machine_us_per_tx", "the replica's machine", "µs/tx"),
    metric("log_us_per_tx", "writing the log", "µs/tx"),
    metric("execution_us_per_tx", "execution", "µs/tx"),
    metric("client_us_per_tx", "the client beside a validator", "µs/tx"),
    // The transport alone.
    metric("goodput_mb_s", "goodput", "MB/s"),
    metric("message_bytes", "message", "B"),
    metric("latency_message_mean_ms", "from when a message was due to its answer, mean", "ms"),
    metric("latency_message_p50_ms", "from when a message was due to its answer, median", "ms"),
    metric("latency_message_p90_ms", "from when a message was due to its answer, 90 %", "ms"),
    metric("latency_message_p99_ms", "from when a message was due to its answer, 99 %", "ms"),
    metric("signers", "signers", ""),
    metric("absentees", "absentees", ""),
    metric("certificate_bytes", "certificate", "B"),
    metric("check_us", "checking a certificate", "µs"),
    metric("key_us", "the signers' key", "µs"),
    metric("one_check_us", "checking one signature", "µs"),
    metric("combine_us", "collecting a certificate's shares", "µs"),
    metric("aggregate_us", "adding up a certificate's shares", "µs"),
    metric("sign_us", "signing", "µs"),
    // Votes for payments, each for one transaction.
    metric("vote_us", "a vote", "µs"),
    metric("first_us", "checking the first certificate of a tree", "µs"),
    metric("again_us", "checking a certificate by itself", "µs"),
    metric("batch_us", "checking a certificate among 64", "µs"),
    metric("cost_us", "a vote, and checking an input's certificate", "µs"),
    metric("hash_us", "hashing two nodes of a tree", "µs"),
    metric("formula_leaves", "leaves of least cost by paper 003's formula", ""),
    // Payment authorities.
    metric("authority_tps", "voted for by one authority", "tx/s"),
    metric("per_core_tps", "voted for by one authority, per core", "tx/s"),
    metric("bound_tps", "what signatures and hashes allow per core", "tx/s"),
    metric("paid_tps", "certified by all authorities on one machine", "tx/s"),
    metric("paid_p50_ms", "until a quorum voted, median", "ms"),
    metric("paid_p99_ms", "until a quorum voted, 99 %", "ms"),
    metric("inserts_per_s", "inputs locked in memory", "1/s"),
];

/// The name of the metric that tells what a station of a validator uses for an operation.
#[must_use]
pub fn of_station(station: &str) -> String {
    format!("{station}_us_per_tx")
}

/// The metric with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

/// Numbers among a point's settings that an axis may show: name, what it is, unit.
const SETTINGS: [Metric; 16] = [
    metric("leaves", "leaves in a tree of votes", ""),
    metric("shards", "shards of each authority", ""),
    metric("threads", "threads", ""),
    metric("validators", "validators", ""),
    metric("sessions", "clients", ""),
    metric("redundancy", "redundant validators", ""),
    metric("concurrent_slots", "slots under way at once", ""),
    metric("rate", "offered", "tx/s"),
    metric("tx_bytes", "operation", "B"),
    metric("batch_bytes", "batch", "B"),
    metric("vote_wait_ms", "wait for votes beyond the quorum", "ms"),
    metric("timeout_ms", "view timeout", "ms"),
    metric("crashed", "crashed validators", ""),
    metric("bandwidth_mbit", "bandwidth of a link", "Mbit/s"),
    metric("delay_ms", "one-way delay of a link", "ms"),
    metric("message_commands", "commands in a message", ""),
];

/// Quantities of figures with axes of their own.
pub(crate) const DUE: Metric = metric("due_s", "when an operation was due", "s");
pub(crate) const ANSWERED_WITHIN: Metric =
    metric("answered_within_ms", "latency to f+1 equal replies", "ms");
pub(crate) const ANSWERED_SHARE: Metric =
    metric("answered_share", "answered operations that took no longer", "%");

/// Quantity that an axis may show under this name: a metric, or a setting.
#[must_use]
pub fn on_axis(name: &str) -> Option<&'static Metric> {
    find(name).or_else(|| SETTINGS.iter().find(|setting| setting.name == name))
}

/// Every name that an axis may show.
pub fn axis_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().chain(&SETTINGS).map(|metric| metric.name)
}

/// An axis' label: what it is, and its unit.
#[must_use]
pub fn label(metric: &Metric) -> String {
    match metric.unit {
        "" => metric.label.to_owned(),
        unit => format!("{} ({unit})", metric.label),
    }
}
