//! What happens at the committee, and what authorities make of it.

use super::{HostEvent, ReleaseReport, SimEvent, Verdicts, World};
use crate::payments::committee::Ordered;
use crate::payments::host::{HostRequest, Seat};
use crate::payments::liar::Behaviour;
use quorate_payments::OutputId;
use quorate_payments::release::{self, Decided, Held, ReleaseStep};
use quorate_types::Time;

/// Longest wait before a report that does not count is submitted again.
pub(super) const RESUBMIT_US: u64 = 500_000;

impl World {
    /// On its way to the committee: while things go wrong it may be lost, or come twice.
    pub(super) fn submit(&mut self, step: &ReleaseStep) {
        for at in self.arrivals() {
            self.events.schedule(at, SimEvent::Step(step.encode()));
        }
    }

    /// Times at which what a client sends now comes to the committee.
    pub(super) fn arrivals(&mut self) -> Vec<Time> {
        let copies = match self.rng.below(10) {
            _ if self.is_calm => 1,
            0 | 1 => 0,
            2 => 2,
            _ => 1,
        };
        (0..copies).map(|_| self.ordered_at()).collect()
    }

    pub(super) fn on_step(&mut self, bytes: &[u8]) -> Verdicts {
        let before = self.releases().len();
        let Some((step, decided)) = self.committees[0].execute(bytes) else {
            self.steps_refused += 1;
            return Ok(());
        };
        for number in before..self.releases().len() {
            let ordered = self.releases().ordered(number).cloned();
            if let Some(Ordered::Release(release::Ordered::Freeze { coins, .. })) = ordered {
                self.on_frozen(&coins)?;
            }
        }
        match &step {
            ReleaseStep::Freeze(_) => {}
            ReleaseStep::Report(ReleaseReport { authority, coin, held, .. }) => {
                self.books.on_counted((0, authority.index()), *coin, held.tx())?;
            }
            ReleaseStep::Certified { core, certificate } => {
                self.books.on_certificate(core.id, certificate)?;
            }
        }
        self.judge_decisions(&decided)?;
        if self.releases().len() > before {
            (0..self.hosts.len()).for_each(|host| self.follow(host));
        }
        Ok(())
    }

    /// Coins were frozen: by right, as far as honest owners know; liars begin to lie.
    fn on_frozen(&mut self, coins: &[OutputId]) -> Verdicts {
        for coin in coins {
            let owner = self.releases().frozen()[coin];
            let wallet = self.wallet_of(owner).map(|at| &self.wallets[at]);
            let is_wished = wallet.is_none_or(|wallet| wallet.wished.contains(coin));
            self.books.on_freeze(*coin, owner, is_wished)?;
            let liars = (0..self.hosts.len()).filter(|host| {
                !matches!(self.behaviour(*host), Behaviour::Honest | Behaviour::Silent)
                    && self.hosts[*host].shard == 0
                    && self.hosts[*host].epoch() == Some(0)
            });
            for host in liars.collect::<Vec<_>>() {
                let Seat { keys, network, .. } = self.seat(host).clone();
                let me = self.seat(host).id();
                let lies = self.seen.reports(&network, &keys, me, *coin, &mut self.rng);
                lies.into_iter().for_each(|lie| self.submit(&ReleaseStep::Report(lie)));
            }
        }
        Ok(())
    }

    fn judge_decisions(&mut self, decided: &Decided) -> Verdicts {
        for (coin, decision) in decided {
            let owner = self.releases().frozen()[coin];
            self.books.on_decided(*coin, owner, *decision)?;
        }
        Ok(())
    }

    /// Has an honest host execute the next change, if there is one and it is not on its way.
    pub(super) fn follow(&mut self, host: usize) {
        let Some(epoch) = self.hosts[host].epoch() else { return };
        if self.behaviour(host) != Behaviour::Honest {
            return;
        }
        let known = self.committees[epoch].len();
        if let Some(number) = self.hosts[host].begin_following(known) {
            let most_us = self.scenario.follow_us[host];
            self.later(host, most_us, HostEvent::Follow(number));
        }
    }

    /// A host executes a change.
    pub(super) fn on_follow(&mut self, host: usize, number: usize) -> Vec<HostRequest> {
        let committee = &self.committees[self.seat(host).epoch];
        let ordered = committee.ordered(number).expect("it was ordered");
        let frozen = committee.frozen();
        let requests = self.hosts[host].follow(self.now, ordered, |coin| frozen[coin]);
        self.follow(host);
        requests
    }

    /// An honest authority's report leaves it.
    pub(super) fn report_lock(&mut self, host: usize, coin: OutputId, held: Held) -> Verdicts {
        self.books.on_report(self.voter(host), coin, held.tx())?;
        let is_first = self.uncounted(host).is_empty();
        let report = self.hosts[host].sign_report(coin, held);
        self.submit(&ReleaseStep::Report(report));
        if is_first {
            self.later(host, RESUBMIT_US, HostEvent::Resubmit);
        }
        Ok(())
    }

    fn uncounted(&mut self, host: usize) -> Vec<ReleaseReport> {
        let (me, committee) = (self.seat(host).id(), &self.committees[0]);
        let is_over = self.seat(host).epoch > 0 || committee.has_ended();
        self.hosts[host].uncounted(|coin| {
            let standing = committee.standing(*coin);
            is_over || standing.decision.is_some() || standing.reports.contains_key(&me)
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
