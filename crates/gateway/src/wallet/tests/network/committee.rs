//! A committee that orders releases, by the production rules, and authorities that follow it.

use super::{Local, at_once};
use crate::wallet::{OrderingError, PendingAnswer, ReleaseOrdering};
use quorate_payments::release::{Docket, MemoryDocket, Ordered, ReleaseStep, Releases, Standing};
use quorate_payments::{AuthorityEvent, Network, OutputId};
use std::collections::BTreeSet;

/// Committee that orders releases, by the production rules.
#[derive(Default)]
pub(super) struct Committee {
    docket: MemoryDocket,
    /// Everything that authorities are to follow, in order.
    ordered: Vec<Ordered>,
    /// Authorities that do not follow the order.
    deaf: BTreeSet<u16>,
    is_silent: bool,
}

impl Committee {
    fn execute(&mut self, network: &Network, step: &ReleaseStep) -> Result<(), String> {
        let bytes = step.encode();
        let step = ReleaseStep::open(network, &bytes).map_err(|error| error.to_string())?;
        let weights = network.committee().weights();
        let Ok(applied) = Releases::new(&mut self.docket, weights).apply(&step);
        let decided = applied.map_err(|refusal| refusal.to_string())?;
        if let ReleaseStep::Freeze(freeze) = step {
            let coins = freeze.coins.iter().map(|coin| coin.id).collect();
            let owner = freeze.coins[0].output.owner;
            self.ordered.push(Ordered::Freeze { owner, coins });
        }
        if !decided.is_empty() {
            self.ordered.push(Ordered::Decided(decided));
        }
        Ok(())
    }
}

impl Local {
    /// Keeps these authorities from following what the committee orders.
    pub(crate) fn deafen(&self, deaf: &[u16]) {
        self.committee.lock().deaf = deaf.iter().copied().collect();
    }

    /// Has the committee answer nobody, or everybody again.
    pub(crate) fn silence_committee(&self, is_silent: bool) {
        self.committee.lock().is_silent = is_silent;
    }

    /// Standing of a coin, once all that can follow the order did.
    pub(crate) fn coin(&self, coin: OutputId) -> Standing {
        while self.follow() {}
        let Ok(standing) = self.committee.lock().docket.coin(coin);
        standing
    }

    /// Has authorities follow what is ordered, and their reports ordered; `false` when nothing was
    /// left to do.
    fn follow(&self) -> bool {
        let committee = &mut *self.committee.lock();
        let mut reports = Vec::new();
        for host in self.hosts.lock().iter_mut() {
            let is_deaf = committee.deaf.contains(&host.me.0);
            for event in committee.ordered.iter().skip(host.followed).filter(|_| !is_deaf) {
                host.follow(match event.clone() {
                    Ordered::Freeze { coins, .. } => AuthorityEvent::Freeze(coins),
                    Ordered::Decided(decided) => AuthorityEvent::Decided(decided),
                });
            }
            reports.append(&mut host.reports);
        }
        for report in &reports {
            // Those that come after the end are refused.
            let _ = committee.execute(&self.network, &ReleaseStep::Report(report.clone()));
        }
        !reports.is_empty()
    }
}

impl ReleaseOrdering for Local {
    fn submit(&self, step: ReleaseStep) -> PendingAnswer<'_, ()> {
        let mut committee = self.committee.lock();
        let answers = !committee.is_silent;
        let executed = answers.then(|| committee.execute(&self.network, &step));
        at_once(executed.map(|executed| executed.map_err(OrderingError::Refused)))
    }

    fn standing(&self, coin: OutputId) -> PendingAnswer<'_, Standing> {
        let answers = !self.committee.lock().is_silent;
        at_once(answers.then(|| Ok(self.coin(coin))))
    }
}
