//! Follower of the committee that orders releases, in an authority's process: what is ordered goes
//! to the authority, its reports go into the order.
//!
//! [`Follower`] decides, [`FollowerHost`] waits and calls. It begins at number 0 at each start of
//! the process: an authority that is told of a freeze again freezes nothing anew, and reports
//! again, and a report that was counted is not submitted again. Payments do not wait for it.
//!
//! * ★ Changes are taken in the order of their numbers, none left out.
//! * ★ A shard freezes and reports the coins of the owners that it votes for, and no others': it
//!   would say of them that they are free.

use super::committee::{CommitteeError, ReleaseCommittee};
use super::releases::ReleaseFeed;
use crate::NodeError;
use crossbeam_channel::{Receiver, select};
use parking_lot::Mutex;
use quorate_crypto::mutants::{self, Mutant};
use quorate_ledger::payments::ORDERED_MAX;
use quorate_payments::release::{Decided, Ordered, ReleaseStep, Report, Standing};
use quorate_payments::{AuthorityEvent, Network, OutputId};
use quorate_types::ReplicaId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks at the order.
const POLL: Duration = Duration::from_millis(500);

/// Longest wait for an answer before the committee counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits before the committee is tried again; the last one for ever.
const BACKOFF: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];

/// What one shard of an authority knows of the order.
#[derive(Debug)]
pub(super) struct Follower {
    network: Arc<Network>,
    me: ReplicaId,
    shard: u16,
    /// Number of the change that comes next.
    next: u64,
    /// Coins of this shard whose releases have not ended.
    undecided: BTreeSet<OutputId>,
    /// Reports that are not known to be counted.
    reports: BTreeMap<OutputId, Report>,
}

impl Follower {
    /// One that begins at number 0.
    pub(super) fn new(network: &Arc<Network>, me: ReplicaId, shard: u16) -> Self {
        Self {
            network: Arc::clone(network),
            me,
            shard,
            next: 0,
            undecided: BTreeSet::new(),
            reports: BTreeMap::new(),
        }
    }

    /// Takes the change with the next number; what the authority is to do of it, if anything.
    fn take(&mut self, ordered: Ordered) -> Option<AuthorityEvent> {
        self.next += 1;
        match ordered {
            Ordered::Freeze { owner, coins } => {
                let is_own = self.network.shard_of(&owner) == self.shard;
                if !is_own && !mutants::active(Mutant::PayReportOfOtherShard) {
                    return None;
                }
                self.undecided.extend(&coins);
                Some(AuthorityEvent::Freeze(coins))
            }
            Ordered::Decided(decided) => {
                let own = decided.into_iter().filter(|(coin, _)| self.undecided.remove(coin));
                let own: Decided = own.collect();
                own.iter().for_each(|(coin, _)| drop(self.reports.remove(coin)));
                (!own.is_empty()).then_some(AuthorityEvent::Decided(own))
            }
        }
    }

    /// Takes the authority's report, unless the coin's release has ended.
    fn on_report(&mut self, report: Report) {
        if self.undecided.contains(&report.coin) {
            self.reports.insert(report.coin, report);
        }
    }

    /// Tells whether a report of this authority is of no use any more, as the coin stands.
    fn is_counted(&self, standing: &Standing) -> bool {
        standing.decision.is_some() || standing.reports.contains_key(&self.me)
    }
}

/// Progress of a follower, for the authority's pages.
#[derive(Debug, Default)]
pub(super) struct FollowerStatus(Mutex<ReleaseStatus>);

/// Progress along the order of releases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReleaseStatus {
    /// `true` once the committee answered, until it does not.
    pub reachable: bool,
    /// Reason that it gave no answer last, while that is so.
    pub trouble: Option<String>,
    /// Number of changes in its order that were followed since the start.
    pub followed: u64,
    /// Coins of this shard whose releases have not ended.
    pub undecided: usize,
    /// Reports that are not known to be counted.
    pub unreported: usize,
}

impl FollowerStatus {
    pub(super) fn show(&self) -> ReleaseStatus {
        self.0.lock().clone()
    }

    fn set(&self, follower: &Follower, trouble: Option<String>) {
        *self.0.lock() = ReleaseStatus {
            reachable: trouble.is_none(),
            trouble,
            followed: follower.next,
            undecided: follower.undecided.len(),
            unreported: follower.reports.len(),
        };
    }
}

/// Thread of a follower.
pub(super) struct FollowerHost {
    committee: PathBuf,
    feed: ReleaseFeed,
    stopped: Receiver<()>,
    status: Arc<FollowerStatus>,
}

/// End of a follower's round without an answer.
enum Interruption {
    /// The authority stops.
    Stopped,
    /// The committee did not answer: it is tried again.
    Trouble(CommitteeError),
}

impl From<CommitteeError> for Interruption {
    fn from(error: CommitteeError) -> Self {
        match error {
            CommitteeError::Ended => Self::Stopped,
            error => Self::Trouble(error),
        }
    }
}

impl FollowerHost {
    /// Follower of the committee in a file that was checked; it ends once the other end of
    /// `stopped` is dropped.
    pub(super) fn new(
        committee: &Path,
        feed: ReleaseFeed,
        stopped: Receiver<()>,
        status: Arc<FollowerStatus>,
    ) -> Self {
        Self { committee: committee.to_owned(), feed, stopped, status }
    }

    /// Follows until the authority stops. A client that got no answer is given up, with whatever it
    /// has under way, and a new one begins at other members.
    pub(super) fn run(self, mut follower: Follower) -> Result<(), NodeError> {
        let mut told = false;
        let mut failures = 0;
        loop {
            let trouble = match self.follow(&mut follower, &mut told) {
                Interruption::Stopped => return Ok(()),
                Interruption::Trouble(error) => error.to_string(),
            };
            // It was told anew if there were answers since the last time.
            failures = if told { failures + 1 } else { 0 };
            if !std::mem::replace(&mut told, true) {
                tracing::warn!(reason = trouble, "releases are not followed; payments go on");
            }
            self.status.set(&follower, Some(trouble));
            if self.pause(&mut follower, BACKOFF[failures.min(BACKOFF.len() - 1)]) {
                return Ok(());
            }
        }
    }

    fn follow(&self, follower: &mut Follower, told: &mut bool) -> Interruption {
        let connected = ReleaseCommittee::connect(&self.committee);
        let committee = match connected {
            Ok(committee) => committee.with_timeout(PATIENCE).until(self.stopped.clone()),
            Err(error) => return error.into(),
        };
        // The committee may be another since, with a shorter order: what was followed comes again.
        *follower = Follower::new(&follower.network.clone(), follower.me, follower.shard);
        loop {
            if let Err(interruption) = self.round(&committee, follower) {
                return interruption;
            }
            if std::mem::take(told) {
                tracing::info!("releases are followed again");
            }
            self.status.set(follower, None);
            if self.pause(follower, POLL) {
                return Interruption::Stopped;
            }
        }
    }

    /// Takes whatever is new, then submits what is not reported.
    fn round(
        &self,
        committee: &ReleaseCommittee,
        follower: &mut Follower,
    ) -> Result<(), Interruption> {
        loop {
            let ordered = match committee.ordered(follower.next, ORDERED_MAX) {
                // As long as no coin is released, which most never are.
                Err(CommitteeError::NothingExecuted) => Vec::new(),
                ordered => ordered?,
            };
            if ordered.is_empty() {
                break;
            }
            for event in ordered.into_iter().filter_map(|ordered| follower.take(ordered)) {
                self.feed.execute(event);
            }
        }
        self.feed.reports().try_iter().for_each(|report| follower.on_report(report));
        while let Some((coin, report)) = follower.reports.first_key_value() {
            let coin = *coin;
            if !follower.is_counted(&committee.standing(coin)?) {
                submit(committee, report)?;
            }
            follower.reports.remove(&coin);
        }
        Ok(())
    }

    /// Takes reports for so long; returns `true` if the authority stops.
    fn pause(&self, follower: &mut Follower, wait: Duration) -> bool {
        let until = Instant::now() + wait;
        loop {
            select! {
                recv(self.stopped) -> _ => return true,
                recv(self.feed.reports()) -> report => match report {
                    Ok(report) => follower.on_report(report),
                    Err(_) => return true,
                },
                default(until.saturating_duration_since(Instant::now())) => return false,
            }
        }
    }
}

/// Has a report counted. Whatever the committee says of it, it has said it for good.
fn submit(committee: &ReleaseCommittee, report: &Report) -> Result<(), CommitteeError> {
    let coin = report.coin;
    match committee.submit(&ReleaseStep::Report(report.clone()))? {
        Ok(_) => tracing::info!(%coin, "reported what a frozen coin is locked for"),
        Err(reason) => tracing::warn!(%coin, reason, "a frozen coin's report does not count"),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
