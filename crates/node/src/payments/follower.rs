//! Follower of the committee's order in an authority's process: what is ordered goes to the
//! authority, its reports go into the order, and at a border it begins the next epoch.
//!
//! [`Follower`] decides, [`Following`] has it done. An authority that is told of a freeze again
//! freezes nothing anew, and reports again; a report that was counted is not submitted again.
//! Payments do not wait for it, but at a border.
//!
//! * ★ Changes are taken in the order of their numbers, none left out.
//! * ★ What was ordered in other epochs is none of the authority's: it has the locks of its own.
//! * ★ A shard freezes and reports the coins of the owners that it votes for, and no others': it
//!   would say of them that they are free.

use super::committee::{CommitteeError, ReleaseCommittee};
use super::epochs::{Beginning, NextEpoch, Succession};
use super::order::{Interruption, Listener};
use super::releases::ReleaseFeed;
use crate::NodeError;
use parking_lot::Mutex;
use quorate_crypto::IdentitySecret;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::change::{ChangeStep, Closing, Entered};
use quorate_payments::committee::{Ordered, Step};
use quorate_payments::release::{self, Decided, ReleaseStep, Report, Standing};
use quorate_payments::{AuthorityEvent, Network, OutputId};
use quorate_types::{Epoch, ReplicaId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one shard of an authority knows of the order.
#[derive(Debug)]
pub(super) struct Follower {
    network: Arc<Network>,
    me: ReplicaId,
    shard: u16,
    /// Number of the change that comes next.
    next: u64,
    /// Epoch that is in force at that number.
    at: Epoch,
    /// Coins of this shard whose releases have not ended.
    undecided: BTreeSet<OutputId>,
    /// Reports that are not known to be counted.
    reports: BTreeMap<OutputId, Report>,
    /// The shard's closing report, until it is known to be ordered.
    closing: Option<Closing>,
    /// True once it is ordered that the shard closed, or that it votes in its epoch.
    has_closed: bool,
    has_entered: bool,
}

impl Follower {
    /// One that begins at number 0.
    pub(super) fn new(network: &Arc<Network>, me: ReplicaId, shard: u16) -> Self {
        Self {
            network: Arc::clone(network),
            me,
            shard,
            next: 0,
            at: network.founding_epoch(),
            undecided: BTreeSet::new(),
            reports: BTreeMap::new(),
            closing: None,
            has_closed: false,
            has_entered: false,
        }
    }

    /// Takes the change with the next number; what the authority is to do of it, if anything.
    fn take(&mut self, ordered: Ordered) -> Option<AuthorityEvent> {
        self.next += 1;
        match ordered {
            Ordered::Release(ordered) => {
                let is_of_now = self.at == self.network.epoch();
                let is_of_now = is_of_now || mutants::active(Mutant::PayFollowFormerEpoch);
                if is_of_now { self.take_release(ordered) } else { None }
            }
            Ordered::Change(step) => self.take_change(&step),
        }
    }

    fn take_change(&mut self, step: &ChangeStep) -> Option<AuthorityEvent> {
        let place = (self.me, self.shard);
        match step {
            ChangeStep::Change(change) => {
                self.at = change.next.epoch;
                self.undecided.clear();
                self.reports.clear();
                let is_the_end = self.at == self.network.epoch().next();
                return is_the_end.then(|| AuthorityEvent::Close(change.next.digest()));
            }
            ChangeStep::Closing(closing) => {
                let is_own = place == (closing.authority, closing.shard);
                self.has_closed |= is_own && self.at == self.network.epoch().next();
            }
            ChangeStep::Entered(entered) => {
                let is_own = place == (entered.authority, entered.shard);
                self.has_entered |= is_own && self.at == self.network.epoch();
            }
        }
        None
    }

    fn take_release(&mut self, ordered: release::Ordered) -> Option<AuthorityEvent> {
        match ordered {
            release::Ordered::Freeze { owner, coins } => {
                let is_own = self.network.shard_of(&owner) == self.shard;
                if !is_own && !mutants::active(Mutant::PayReportOfOtherShard) {
                    return None;
                }
                self.undecided.extend(&coins);
                Some(AuthorityEvent::Freeze(coins))
            }
            release::Ordered::Decided(decided) => {
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
    fn is_counted(&self, standing: Standing) -> bool {
        let standing = standing.in_epoch(self.network.epoch());
        standing.decision.is_some() || standing.reports.contains_key(&self.me)
    }

    /// Step about the border that is to be ordered: the shard's closing report, or its word that it
    /// votes.
    fn border_step(&self, identity: &IdentitySecret) -> Option<ChangeStep> {
        let is_due = !self.has_closed && self.at == self.network.epoch().next();
        let closing = self.closing.filter(|_| is_due).map(ChangeStep::Closing);
        let is_in = self.at == self.network.epoch() && !self.network.is_founding();
        let enter = || {
            let place = (self.me, self.shard);
            ChangeStep::Entered(Entered::sign(&self.network, identity, place))
        };
        closing.or_else(|| (is_in && !self.has_entered).then(enter))
    }
}

/// Progress of a follower, for the authority's pages.
#[derive(Debug, Default)]
pub(super) struct FollowerStatus(Mutex<ReleaseStatus>);

/// Progress along the order of releases and changes.
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
    /// The epoch after this shard's, once this one has ended.
    pub next_epoch: Option<NextEpoch>,
}

impl FollowerStatus {
    pub(super) fn show(&self) -> ReleaseStatus {
        self.0.lock().clone()
    }
}

/// An authority that follows the order.
pub(super) struct Following {
    follower: Follower,
    feed: ReleaseFeed,
    identity: IdentitySecret,
    succession: Succession,
    status: Arc<FollowerStatus>,
}

impl Following {
    pub(super) fn new(
        follower: Follower,
        feed: ReleaseFeed,
        identity: IdentitySecret,
        succession: Succession,
        status: Arc<FollowerStatus>,
    ) -> Self {
        Self { follower, feed, identity, succession, status }
    }

    /// Submits what is not reported. What is refused stays, for a member that is behind refuses
    /// what others count.
    fn report(&mut self, committee: &ReleaseCommittee) -> Result<(), CommitteeError> {
        self.feed.reports().try_iter().for_each(|report| self.follower.on_report(report));
        let reports: Vec<Report> = self.follower.reports.values().cloned().collect();
        for report in reports {
            let coin = report.coin;
            let is_done = self.follower.is_counted(committee.standing(coin)?) || {
                let step = Step::Release(ReleaseStep::Report(report));
                submit(committee, &step, &format!("what coin {coin} is locked for"))?
            };
            if is_done {
                self.follower.reports.remove(&coin);
            }
        }
        Ok(())
    }
}

impl Listener for Following {
    fn rewind(&mut self) {
        let Follower { network, me, shard, .. } = &self.follower;
        self.follower = Follower::new(network, *me, *shard);
        self.succession.rewind();
    }

    fn next(&self) -> u64 {
        self.follower.next
    }

    fn take(&mut self, ordered: Ordered) -> Result<(), NodeError> {
        self.succession.take(&ordered)?;
        if let Some(event) = self.follower.take(ordered) {
            self.feed.execute(event);
        }
        Ok(())
    }

    fn settle(&mut self, committee: &ReleaseCommittee) -> Result<Option<Beginning>, Interruption> {
        let (at, epoch) = (self.follower.at, self.follower.network.epoch());
        if at < epoch {
            return Err(CommitteeError::Behind { at, epoch }.into());
        }
        self.report(committee)?;
        self.follower.closing = self.feed.closings().try_iter().last().or(self.follower.closing);
        let is_over = self.succession.next().is_some_and(|next| next.has_begun);
        if let Some(step) = self.follower.border_step(&self.identity).filter(|_| !is_over) {
            let what = match &step {
                ChangeStep::Closing(_) => "what the shard locked in the epoch that ended",
                _ => "that the shard votes in its epoch",
            };
            submit(committee, &Step::Change(step), what)?;
        }
        self.succession.advance().map_err(Interruption::Failed)
    }

    fn is_pressing(&self) -> bool {
        self.succession.is_at_border()
    }

    fn show(&mut self, trouble: Option<String>) {
        *self.status.0.lock() = ReleaseStatus {
            reachable: trouble.is_none(),
            trouble,
            followed: self.follower.next,
            undecided: self.follower.undecided.len(),
            unreported: self.follower.reports.len(),
            next_epoch: self.succession.next(),
        };
    }
}

/// Has a step ordered; returns `false` where it changes nothing.
fn submit(committee: &ReleaseCommittee, step: &Step, what: &str) -> Result<bool, CommitteeError> {
    let result = committee.submit_step(step)?;
    match &result {
        Ok(_) => tracing::info!(what, "reported to the committee"),
        Err(reason) => tracing::warn!(what, reason, "a report to the committee changes nothing"),
    }
    Ok(result.is_ok())
}

#[cfg(test)]
mod tests;
