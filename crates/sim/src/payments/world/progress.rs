//! What must be true in the end, when nothing went wrong for long: all is paid, released, or lost
//! by its owner's own doing.

use super::{Verdicts, World};
use crate::payments::books::Violation;
use crate::payments::liar::Behaviour;
use crate::payments::payer::Wallet;
use quorate_payments::release::Decision;
use quorate_payments::{OutputId, TxId};
use std::collections::BTreeSet;

fn fail(oracle: &'static str, text: String) -> Verdicts {
    Err(Violation { oracle, text })
}

impl World {
    pub(super) fn progress(&mut self) -> Verdicts {
        let certified = self.wallets.iter().any(|wallet| !wallet.certified.is_empty());
        if !certified && self.scenario.mishaps.is_empty() {
            return fail("progress", "no payment was certified".into());
        }
        self.check_hosts()?;
        let stuck = self.check_releases()?;
        for payer in 0..self.wallets.len() {
            self.check_payments(payer, &stuck)?;
            self.check_money(payer, &stuck)?;
        }
        Ok(())
    }

    pub(super) fn decided(&self) -> u64 {
        let coins = self.committee.frozen().keys();
        coins.filter(|coin| self.committee.standing(**coin).decision.is_some()).count() as u64
    }

    /// Honest authorities have nothing left to do, and hold nothing back.
    fn check_hosts(&self) -> Verdicts {
        for (number, host) in self.hosts.iter().enumerate() {
            if self.behaviour(number) == Behaviour::Honest
                && let Some(text) = host.unfinished(self.committee.len())
            {
                let (authority, shard) = (host.authority, host.shard);
                return fail("idle", format!("authority {authority}, shard {shard}: {text}"));
            }
        }
        Ok(())
    }

    /// Every release is decided, unless the rules leave it open: returns the coins that stay so.
    fn check_releases(&self) -> Result<BTreeSet<OutputId>, Violation> {
        let mut stuck = BTreeSet::new();
        for coin in self.committee.frozen().keys() {
            let standing = self.committee.standing(*coin);
            if standing.decision.is_some() {
                continue;
            }
            let honest = self.scenario.behaviours.iter().enumerate();
            let honest = honest.filter(|(_, one)| **one == Behaviour::Honest).map(|(at, _)| at);
            let silent = honest.filter(|at| standing.reports.keys().all(|by| by.index() != *at));
            let silent: Vec<usize> = silent.collect();
            let rivals = self.rivals(*coin);
            let is_open = match rivals.as_slice() {
                [] => false,
                [one] => !self.is_alone(*one),
                _ => true,
            };
            if !silent.is_empty() || !is_open {
                let text = format!(
                    "{coin} is not decided: {rivals:?} may take it, {silent:?} did not report"
                );
                return Err(Violation { oracle: "releases", text });
            }
            stuck.insert(*coin);
        }
        Ok(stuck)
    }

    /// Transactions that may be certified over a coin, by what was reported at all of their coins.
    fn rivals(&self, coin: OutputId) -> Vec<TxId> {
        let claims = self.committee.standing(coin).claims;
        claims.into_iter().filter(|tx| self.is_possible(*tx, coin)).collect()
    }

    fn is_possible(&self, tx: TxId, coin: OutputId) -> bool {
        let known = self.committee.transaction(tx);
        let coins = known.as_ref().map_or_else(|| vec![coin], |known| known.locks.clone());
        let n = self.scenario.authorities;
        let f = (n - 1) / 3;
        coins.into_iter().all(|coin| {
            let standing = self.committee.standing(coin);
            let Some(owner) = standing.owner else { return true };
            if let Some(decision) = standing.decision {
                return decision == Decision::Spend(tx);
            }
            let named = standing.reports.values().filter(|named| **named == Some(tx)).count();
            let is_theirs = known.as_ref().is_none_or(|known| known.payer == owner);
            is_theirs && named + (n - standing.reports.len()) >= n - 2 * f
        })
    }

    /// Nothing else is possible at any of its coins, which are all frozen.
    fn is_alone(&self, tx: TxId) -> bool {
        let Some(known) = self.committee.transaction(tx) else { return false };
        known
            .locks
            .into_iter()
            .all(|coin| self.committee.standing(coin).is_frozen() && self.rivals(coin) == [tx])
    }

    /// Every payment of an honest payer is over, unless it waits for a coin that stays locked.
    fn check_payments(&self, payer: usize, stuck: &BTreeSet<OutputId>) -> Verdicts {
        let wallet = &self.wallets[payer];
        let waits = |coins: Vec<OutputId>| coins.iter().any(|coin| stuck.contains(coin));
        let open = wallet.unfinished().filter(|(_, tx)| !waits(tx.locks()));
        let open: Vec<String> = open.map(|(id, _)| id.to_string()).collect();
        if !open.is_empty() {
            return fail("progress", format!("payer {payer} waits for {}", open.join(", ")));
        }
        if !wallet.is_idle() {
            let text = format!("payer {payer} has payments under way that it does not know");
            return fail("progress", text);
        }
        Ok(())
    }

    /// All that an honest payer owns can be spent, or is locked because it signed two transactions.
    fn check_money(&mut self, payer: usize, stuck: &BTreeSet<OutputId>) -> Verdicts {
        let wallet = &self.wallets[payer];
        let free = wallet.free();
        let mut lost = 0;
        for (coin, taker) in self.books.owned(wallet.owner()) {
            if taker.is_none() && free.contains(&coin) {
                continue;
            }
            if !self.is_lost(wallet, coin, stuck) {
                let text = format!(
                    "{coin} is payer {payer}'s, who cannot spend it; may be certified over it: \
                     {taker:?}; under release: {:?}",
                    self.committee.standing(coin)
                );
                return fail("money", text);
            }
            lost += 1;
        }
        self.lost += lost;
        Ok(())
    }

    /// A coin that its owner lost: by signing two transactions over it, or over one that goes with
    /// it; or by losing the only copy of a transaction that nobody but liars has.
    fn is_lost(&self, wallet: &Wallet, coin: OutputId, stuck: &BTreeSet<OutputId>) -> bool {
        if wallet.mishaps.is_empty() {
            return false;
        }
        if stuck.contains(&coin) {
            let owner = wallet.owner();
            let is_split = |coin: &OutputId| self.books.spenders(*coin, owner).len() > 1;
            let takers = self.books.spenders(coin, owner).into_iter();
            return takers.flat_map(|tx| self.books.takes(tx)).any(|coin| is_split(&coin));
        }
        match self.committee.standing(coin).decision {
            Some(Decision::Spend(tx)) => !self.books.has_honest_votes(tx),
            _ => false,
        }
    }
}
