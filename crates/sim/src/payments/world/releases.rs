//! What happens at the committee, and what authorities make of it.

use super::{HostEvent, ReleaseReport, SimEvent, Verdicts, World};
use crate::payments::host::HostRequest;
use crate::payments::liar::Behaviour;
use quorate_payments::OutputId;
use quorate_payments::release::{Decided, Held, Ordered, ReleaseStep};

/// Longest wait before a report that does not count is submitted again.
const RESUBMIT_US: u64 = 500_000;

impl World {
    /// On its way to the committee: while things go wrong it may be lost, or come twice.
    pub(super) fn submit(&mut self, step: &ReleaseStep) {
        let copies = match self.rng.below(10) {
            _ if self.is_calm => 1,
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let at = self.ordered_at();
            self.events.schedule(at, SimEvent::Step(step.encode()));
        }
    }

    pub(super) fn on_step(&mut self, bytes: &[u8]) -> Verdicts {
        let before = self.committee.len();
        let Some((step, decided)) = self.committee.execute(bytes) else {
            self.steps_refused += 1;
            return Ok(());
        };
        for number in before..self.committee.len() {
            if let Some(Ordered::Freeze { coins, .. }) = self.committee.ordered(number).cloned() {
                self.on_frozen(&coins)?;
            }
        }
        match &step {
            ReleaseStep::Freeze(_) => {}
            ReleaseStep::Report(ReleaseReport { authority, coin, held, .. }) => {
                self.books.on_counted(authority.index(), *coin, held.tx())?;
            }
            ReleaseStep::Certified { core, certificate } => {
                self.books.on_certificate(core.id, certificate)?;
            }
        }
        self.judge_decisions(&decided)?;
        if self.committee.len() > before {
            (0..self.hosts.len()).for_each(|host| self.follow(host));
        }
        Ok(())
    }

    /// Coins were frozen: by right, as far as honest owners know; liars begin to lie.
    fn on_frozen(&mut self, coins: &[OutputId]) -> Verdicts {
        for coin in coins {
            let owner = self.committee.frozen()[coin];
            let wallet = self.wallet_of(owner).map(|at| &self.wallets[at]);
            let is_wished = wallet.is_none_or(|wallet| wallet.wished.contains(coin));
            self.books.on_freeze(*coin, owner, is_wished)?;
            let liars = (0..self.hosts.len()).filter(|host| {
                !matches!(self.behaviour(*host), Behaviour::Honest | Behaviour::Silent)
                    && self.hosts[*host].shard == 0
            });
            for host in liars.collect::<Vec<_>>() {
                let (keys, me) = (&self.hosts[host].keys, self.hosts[host].id());
                let lies = self.seen.reports(&self.network, keys, me, *coin, &mut self.rng);
                lies.into_iter().for_each(|lie| self.submit(&ReleaseStep::Report(lie)));
            }
        }
        Ok(())
    }

    fn judge_decisions(&mut self, decided: &Decided) -> Verdicts {
        for (coin, decision) in decided {
            let owner = self.committee.frozen()[coin];
            self.books.on_decided(*coin, owner, *decision)?;
        }
        Ok(())
    }

    /// Has an honest host execute the next change, if there is one and it is not on its way.
    pub(super) fn follow(&mut self, host: usize) {
        if self.behaviour(host) != Behaviour::Honest {
            return;
        }
        if let Some(number) = self.hosts[host].begin_following(self.committee.len()) {
            let most_us = self.scenario.follow_us[host];
            self.later(host, most_us, HostEvent::Follow(number));
        }
    }

    /// A host executes a change.
    pub(super) fn on_follow(&mut self, host: usize, number: usize) -> Vec<HostRequest> {
        let ordered = self.committee.ordered(number).expect("it was ordered");
        let frozen = self.committee.frozen();
        let requests = self.hosts[host].follow(self.now, ordered, |coin| frozen[coin]);
        self.follow(host);
        requests
    }

    /// An honest authority's report leaves it.
    pub(super) fn report_lock(&mut self, host: usize, coin: OutputId, held: Held) -> Verdicts {
        self.books.on_report(self.hosts[host].authority, coin, held.tx())?;
        let is_first = self.uncounted(host).is_empty();
        let report = self.hosts[host].sign_report(coin, held);
        self.submit(&ReleaseStep::Report(report));
        if is_first {
            self.later(host, RESUBMIT_US, HostEvent::Resubmit);
        }
        Ok(())
    }

    fn uncounted(&mut self, host: usize) -> Vec<ReleaseReport> {
        let (me, committee) = (self.hosts[host].id(), &self.committee);
        self.hosts[host].uncounted(|coin| {
            let standing = committee.standing(*coin);
            standing.decision.is_some() || standing.reports.contains_key(&me)
        })
    }

    /// Reports that do not count yet are submitted again.
    pub(super) fn resubmit(&mut self, host: usize) {
        let reports = self.uncounted(host);
        if !reports.is_empty() {
            self.later(host, RESUBMIT_US, HostEvent::Resubmit);
        }
        reports.into_iter().for_each(|report| self.submit(&ReleaseStep::Report(report)));
    }
}
