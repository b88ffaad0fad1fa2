//! How an authority follows the committee's order, from its start after each of its own.

use super::{AuthorityHost, HostRequest, Running};
use crate::payments::committee::Ordered;
use quorate_crypto::IdentityKey;
use quorate_payments::release::{self, Held, Report};
use quorate_payments::{AuthorityEvent, OutputId, TxId};
use quorate_types::Time;
use std::collections::BTreeSet;

impl AuthorityHost {
    /// Change to execute next, by its number; `None` while it is on its way already.
    pub(in crate::payments) fn begin_following(&mut self, known: usize) -> Option<usize> {
        let running = self.running.as_mut().filter(|one| !one.is_following)?;
        running.is_following = running.followed < known;
        running.is_following.then_some(running.followed)
    }

    /// Executes the change that it follows next, of its own shard's owners (★).
    pub(in crate::payments) fn follow(
        &mut self,
        now: Time,
        ordered: &Ordered,
        owner_of: impl Fn(&OutputId) -> IdentityKey,
    ) -> Vec<HostRequest> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.followed += 1;
        running.is_following = false;
        let is_here = |owner: &IdentityKey| self.network().shard_of(owner) == self.shard;
        let event = match ordered {
            Ordered::Release(release::Ordered::Freeze { owner, coins }) if is_here(owner) => {
                AuthorityEvent::Freeze(coins.clone())
            }
            Ordered::Release(release::Ordered::Freeze { .. }) => return Vec::new(),
            Ordered::Release(release::Ordered::Decided(decided)) => {
                let own = decided.iter().filter(|(coin, _)| is_here(&owner_of(coin)));
                AuthorityEvent::Decided(own.copied().collect())
            }
            Ordered::Close(next) => AuthorityEvent::Close(*next),
        };
        self.handle(now, event)
    }

    /// Signs a report, to be submitted until it counts.
    pub(in crate::payments) fn sign_report(&mut self, coin: OutputId, held: Held) -> Report {
        let seat = self.seat.as_ref().expect("it runs");
        let report = Report::sign(&seat.network, &seat.keys.identity, seat.id(), coin, held);
        if let Some(running) = &mut self.running {
            running.reports.insert(coin, report.clone());
        }
        report
    }

    /// Reports to submit again: those that do not count yet.
    pub(in crate::payments) fn uncounted(
        &mut self,
        counts: impl Fn(&OutputId) -> bool,
    ) -> Vec<Report> {
        let Some(running) = &mut self.running else { return Vec::new() };
        running.reports.retain(|coin, _| !counts(coin));
        running.reports.values().cloned().collect()
    }

    /// What is left to do, in words; `None` where there is nothing. Orders may be unread of which a
    /// payer asks again for what it will never get (`asked`).
    pub(in crate::payments) fn unfinished(
        &self,
        known: usize,
        asked: &BTreeSet<TxId>,
    ) -> Option<String> {
        let Running { inbox, waiting, followed, reports, must_report, .. } =
            self.running.as_ref()?;
        let network = self.network().id();
        let is_done = inbox.iter().all(|(_, tx)| asked.contains(&tx.id(network)))
            && *waiting == 0
            && *followed == known
            && reports.is_empty()
            && !must_report;
        let (orders, reports) = (inbox.len(), reports.len());
        let text = || {
            format!(
                "{orders} orders unread, {waiting} answers held back, {followed} of {known} \
                 changes followed, {reports} reports uncounted"
            )
        };
        (!is_done).then(text)
    }
}
