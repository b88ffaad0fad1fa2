//! Asking validators how they are.

use crate::http::{Connection, Door};
use quorate_types::Versions;
use serde::{Deserialize, Serialize};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Answer of a validator at `/status`. Fields that it does not send are zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValidatorStatus {
    /// Index in the committee.
    pub id: u16,
    /// Weight of its vote.
    pub weight: u64,
    /// View that it is in.
    pub view: u64,
    /// The leader of that view.
    pub leader: u16,
    /// The last decided height.
    pub decided: u64,
    /// The last executed height.
    pub executed: u64,
    /// Root at the executed height, in hexadecimal.
    pub root: String,
    /// Operations executed since genesis.
    pub operations: u64,
    /// Views left by a timeout certificate since the validator started.
    pub view_changes: u64,
    /// Heights decided fast since it started, where the protocol has a fast path.
    #[serde(default)]
    pub fast_decisions: u64,
    /// And by its slow one.
    #[serde(default)]
    pub slow_decisions: u64,
    /// Bytes of the last certificate.
    pub certificate_bytes: u64,
    /// `true` while it fetches blocks, bodies or a snapshot that it missed.
    pub syncing: bool,
    /// Progress of its catching up.
    pub sync: SyncProgress,
    /// Snapshots installed since it started, in the place of heights that nobody keeps any more.
    pub snapshots_installed: u64,
    /// Bytes of log in use: records and bodies, without what is set aside for later.
    pub log_bytes: u64,
    /// The lowest height from which on it keeps blocks and bodies for others.
    pub oldest_height: u64,
    /// The last height whose root is certified.
    pub certified: u64,
    /// The height from which on its state is not the committee's, if it is not.
    pub diverged: Option<u64>,
    /// Messages that broke a rule of the protocol since it started.
    pub faults: u64,
    /// Other members whose lanes are all connected.
    pub peers_connected: u64,
    /// Bytes of frames sent since it started, to members and clients (from `/metrics`).
    pub bytes_sent: u64,
    /// Bytes written to its log since it started.
    pub log_bytes_written: u64,
    /// CPU seconds used since it started, where the system says.
    pub cpu_seconds: Option<f64>,
    /// Memory in use in MiB, where the system says.
    pub rss_mb: Option<f64>,
    /// `true` if clients may ask it.
    pub ready: bool,
    /// Everything that speaks against it, in words.
    pub not_ready: Vec<String>,
    /// `true` if the members that it hears are a quorum.
    pub has_quorum: bool,
    /// Members that it hears, itself included.
    pub heard: usize,
    /// Every member, as it sees them.
    pub members: Vec<MemberLook>,
    /// Progress of its question after its own signatures.
    pub witnesses: Witnesses,
    /// `true` while others fetch what the next epoch begins with from it.
    pub must_not_stop: bool,
    /// Configuration that it was started with.
    pub config: StartedWith,
    /// Moment of the answer: half way between the query and its arrival.
    #[serde(skip)]
    pub at: Option<Instant>,
}

/// Member as a validator sees it. Of itself it says nothing of contact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberLook {
    /// Index in the committee.
    pub id: u16,
    /// Certificates with its vote among the last ones.
    pub votes: u32,
    /// Certificates in which votes are counted: the last 100 at most.
    pub certificates: u32,
    /// Views that it led since the validator started.
    pub turns: u64,
    /// Those of them that were given up.
    pub turns_failed: u64,
    /// `true` if all lanes to it are connected.
    pub connected: Option<bool>,
    /// `true` if it was not heard for some seconds.
    pub silent: Option<bool>,
    /// Seconds since it was heard.
    pub silence_s: Option<f64>,
    /// Milliseconds to it and back.
    pub round_trip_ms: Option<f64>,
}

impl ValidatorStatus {
    /// Returns `true` once it has read its log. Until then, after each start and at the border of
    /// two epochs, its counters are zero and its root is empty.
    #[must_use]
    pub(crate) fn has_recovered(&self) -> bool {
        !self.root.is_empty()
    }
}

impl MemberLook {
    /// Part of the last certificates that carries its vote; `None` while there is none.
    #[must_use]
    pub fn votes_ratio(&self) -> Option<f64> {
        (self.certificates > 0).then(|| f64::from(self.votes) / f64::from(self.certificates))
    }
}

/// Part of a validator's configuration that others ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartedWith {
    /// Number of the epoch in force.
    pub epoch: u64,
    /// `true` if it is no member.
    pub learner: bool,
    /// `true` if it may vote.
    pub signs: bool,
    /// Versions of what is executed that its program has; a program from before there were several
    /// says nothing.
    pub execution_versions: Option<Versions>,
}

/// What other members have told a validator of its own signatures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Witnesses {
    /// `unasked`, `waiting`, `clear` or `contradicted`.
    pub state: String,
    /// Weight of the members that have answered.
    pub answered: u64,
    /// Weight without which it signs nothing.
    pub needed: u64,
    /// What contradicts its records, in words.
    pub contradiction: String,
}

impl Witnesses {
    /// Returns `true` once enough have answered and nothing contradicts its records: it may sign.
    #[must_use]
    pub fn are_clear(&self) -> bool {
        self.state == "clear"
    }

    /// Returns `true` while it signs nothing, for want of answers.
    #[must_use]
    pub fn are_awaited(&self) -> bool {
        self.state == "waiting"
    }
}

/// Progress of a validator that fell behind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncProgress {
    /// The last executed height.
    pub from: u64,
    /// The height that it is on its way to, as far as it knows.
    pub to: u64,
    /// Thing that it waits for, in words.
    pub why: String,
}

/// The metric that counts bytes sent, one series a lane.
const BYTES_SENT: &str = "quorate_bytes_sent_total{";

/// Asks one validator.
///
/// # Errors
/// When it does not answer in time, or not with a status.
pub fn ask(door: impl Into<Door>, timeout: Duration) -> io::Result<ValidatorStatus> {
    let mut connection = Connection::to(&door.into(), timeout)?;
    let asked = Instant::now();
    let mut status: ValidatorStatus = serde_json::from_str(&connection.get("/status")?)?;
    status.at = Some(asked + asked.elapsed() / 2);
    status.bytes_sent = sum_of(BYTES_SENT, &connection.get("/metrics")?);
    Ok(status)
}

/// The same, without those that have not read their log: their counters say nothing yet.
pub(crate) fn recovered(looks: Vec<Option<ValidatorStatus>>) -> Vec<Option<ValidatorStatus>> {
    looks.into_iter().map(|look| look.filter(ValidatorStatus::has_recovered)).collect()
}

/// The sum of a metric over all its labels, in the text that Prometheus reads.
fn sum_of(metric: &str, text: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(metric)?.rsplit(' ').next()?.parse::<u64>().ok();
    text.lines().filter_map(value).sum()
}

/// Asks all at once, each as far as it answers in time; in the order of `doors`.
///
/// # Panics
/// Never: asking does not panic.
#[must_use]
pub fn ask_all<D: Clone + Into<Door>>(
    doors: &[D],
    timeout: Duration,
) -> Vec<io::Result<ValidatorStatus>> {
    thread::scope(|scope| {
        let doors = doors.iter().cloned().map(Into::into);
        let asked: Vec<_> =
            doors.map(|door: Door| scope.spawn(move || ask(door, timeout))).collect();
        asked.into_iter().map(|answer| answer.join().expect("asking does not panic")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{BYTES_SENT, ValidatorStatus, recovered, sum_of};

    #[test]
    fn a_metric_is_summed_over_its_labels() {
        let text = "# HELP quorate_bytes_sent Bytes\n\
                    quorate_bytes_sent_total{lane=\"votes\"} 20\n\
                    quorate_bytes_received_total{lane=\"votes\"} 7\n\
                    quorate_bytes_sent_total{lane=\"bulk\"} 22\n# EOF\n";
        assert_eq!(sum_of(BYTES_SENT, text), 42);
    }

    #[test]
    fn counters_of_a_log_that_is_not_read_yet_are_no_counters() {
        let root = "aa".to_owned();
        let runs = Some(ValidatorStatus { operations: 7, root, ..ValidatorStatus::default() });
        let starts = Some(ValidatorStatus::default());
        assert_eq!(recovered(vec![runs.clone(), starts, None]), [runs, None, None]);
    }
}
