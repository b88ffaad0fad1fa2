//! What must be true in the end, when nothing went wrong for long: all is paid, released, or lost
//! by its owner's own doing.

use super::{Verdicts, World};
use crate::payments::books::Violation;
use crate::payments::liar::Behaviour;
use crate::payments::payer::Wallet;
use quorate_payments::release::Decision;
use quorate_payments::{OutputId, Transaction, TxId};
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
        self.check_borders()?;
        let stuck = self.check_releases()?;
        for payer in 0..self.wallets.len() {
            self.check_payments(payer, &stuck)?;
            self.check_money(payer, &stuck)?;
        }
        Ok(())
    }

    pub(super) fn decided(&self) -> u64 {
        let coins = self.releases().frozen().keys();
        coins.filter(|coin| self.releases().standing(**coin).decision.is_some()).count() as u64
    }

    /// Honest authorities have nothing left to do, and hold nothing back.
    fn check_hosts(&self) -> Verdicts {
        let open = self.wallets.iter().flat_map(Wallet::unfinished);
        let asked: BTreeSet<TxId> = open.map(|(id, _)| *id).collect();
        for (number, host) in self.hosts.iter().enumerate() {
            let Some(epoch) = host.epoch() else { continue };
            if self.behaviour(number) == Behaviour::Honest
                && let Some(text) = host.unfinished(self.committees[epoch].len(), &asked)
            {
                let (authority, shard) = (host.authority, host.shard);
                return fail("idle", format!("authority {authority}, shard {shard}: {text}"));
            }
        }
        Ok(())
    }

    /// The last epoch is in force: its honest authorities are in it, each with all reports that
    /// are sure to come, and so are all owners.
    fn check_borders(&self) -> Verdicts {
        let last = self.epochs.len() - 1;
        for (number, host) in self.hosts.iter().enumerate() {
            let is_member = self.epochs[last].members.contains(&host.authority);
            let is_due = is_member && self.behaviour(number) == Behaviour::Honest && !host.is_lost;
            if is_due && !self.has_read_all(number, last) {
                let (authority, shard) = (host.authority, host.shard);
                let text = format!(
                    "authority {authority}, shard {shard}, is in epoch {:?} of {last}",
                    host.epoch()
                );
                return fail("borders", text);
            }
        }
        match self.wallets.iter().position(|wallet| wallet.epoch < last) {
            Some(payer) => fail("borders", format!("payer {payer} did not follow to {last}")),
            None => Ok(()),
        }
    }

    /// Every release is decided, unless the rules leave it open: returns the coins that stay so.
    fn check_releases(&self) -> Result<BTreeSet<OutputId>, Violation> {
        let mut stuck = BTreeSet::new();
        if self.releases().has_ended() {
            return Ok(stuck);
        }
        for coin in self.releases().frozen().keys() {
            let standing = self.releases().standing(*coin);
            if standing.decision.is_some() {
                continue;
            }
            let honest =
                self.scenario.behaviours.iter().take(self.scenario.authorities).enumerate();
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
        let claims = self.releases().standing(coin).claims;
        claims.into_iter().filter(|tx| self.is_possible(*tx, coin)).collect()
    }

    fn is_possible(&self, tx: TxId, coin: OutputId) -> bool {
        let known = self.releases().transaction(tx);
        let coins = known.as_ref().map_or_else(|| vec![coin], |known| known.locks.clone());
        let n = self.scenario.authorities;
        let f = (n - 1) / 3;
        coins.into_iter().all(|coin| {
            let standing = self.releases().standing(coin);
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
        let Some(known) = self.releases().transaction(tx) else { return false };
        known
            .locks
            .into_iter()
            .all(|coin| self.releases().standing(coin).is_frozen() && self.rivals(coin) == [tx])
    }

    /// Every payment of an honest payer is over, unless it waits for a coin that stays locked.
    fn check_payments(&self, payer: usize, stuck: &BTreeSet<OutputId>) -> Verdicts {
        let wallet = &self.wallets[payer];
        let waits = |coins: Vec<OutputId>| coins.iter().any(|coin| stuck.contains(coin));
        let is_open = |tx: &Transaction| !waits(tx.locks()) && !self.is_given_up(wallet, tx);
        let open = wallet.unfinished().filter(|(_, tx)| is_open(tx));
        let why = |coin: OutputId| format!("{coin}: {}", self.obstacle(wallet, coin));
        let open: Vec<String> = open
            .map(|(id, tx)| {
                let coins: Vec<String> = tx.locks().into_iter().map(why).collect();
                format!("{id} ({})", coins.join("; "))
            })
            .collect();
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
                     {taker:?}; under release: {:?}; {}",
                    self.releases().standing(coin),
                    self.obstacle(wallet, coin)
                );
                return fail("money", text);
            }
            lost += 1;
        }
        self.lost += lost;
        Ok(())
    }

    /// Everything that stands in a coin's way, in words.
    fn obstacle(&self, wallet: &Wallet, coin: OutputId) -> String {
        let shard = self.founding().shard_of(&wallet.owner());
        let hosts = self.hosts.iter().filter(|host| host.shard == shard);
        let locks = hosts.map(|host| {
            format!("{} in {:?}: {}", host.authority, host.epoch(), host.describe_lock(coin))
        });
        let locks: Vec<String> = locks.collect();
        let signed = self.books.spenders(coin, wallet.owner());
        format!("{}; signed over it: {signed:?}; authorities: {locks:?}", wallet.obstacle(coin))
    }

    /// A coin that its owner lost: by signing two transactions over it, or over one that goes with
    /// it; or by losing the only copy of a transaction that nobody but liars has.
    fn is_lost(&self, wallet: &Wallet, coin: OutputId, stuck: &BTreeSet<OutputId>) -> bool {
        let takes = |tx: &Transaction| tx.locks().contains(&coin);
        let mut waiting = wallet.unfinished().filter(|(_, tx)| takes(tx));
        if waiting.any(|(_, tx)| self.is_given_up(wallet, tx)) {
            return true;
        }
        if wallet.mishaps.is_empty() {
            return false;
        }
        let is_over = self.releases().has_ended();
        if stuck.contains(&coin) || (is_over && self.is_split(wallet, coin)) {
            return self.is_split(wallet, coin);
        }
        if is_over && self.has_lost_taker(wallet, coin) {
            return true;
        }
        match self.releases().standing(coin).decision {
            Some(Decision::Spend(tx)) => !self.books.has_honest_votes(tx),
            _ => false,
        }
    }

    /// Tells whether its owner signed two transactions over a coin, or over one that goes with it.
    fn is_split(&self, wallet: &Wallet, coin: OutputId) -> bool {
        let owner = wallet.owner();
        let is_split = |coin: &OutputId| self.books.spenders(*coin, owner).len() > 1;
        let takers = self.books.spenders(coin, owner).into_iter();
        takers.flat_map(|tx| self.books.takes(tx)).any(|coin| is_split(&coin))
    }

    /// Tells whether the owner signed a transaction over a coin that no honest authority of the
    /// epoch in force keeps: those that did have left.
    fn has_lost_taker(&self, wallet: &Wallet, coin: OutputId) -> bool {
        let last = self.epochs.len() - 1;
        let honest = self.hosts.iter().enumerate().filter(|(number, host)| {
            self.behaviour(*number) == Behaviour::Honest && host.epoch() == Some(last)
        });
        let honest: Vec<_> = honest.map(|(_, host)| host).collect();
        let takers = self.books.spenders(coin, wallet.owner());
        takers.into_iter().any(|tx| honest.iter().all(|host| !host.keeps(tx)))
    }

    /// A payment that no later epoch finishes, since no release is asked for there: its owner
    /// signed another one over its coins, or was paid by somebody who did; or one of them was
    /// released.
    fn is_given_up(&self, wallet: &Wallet, tx: &Transaction) -> bool {
        if !self.releases().has_ended() {
            return false;
        }
        let is_own = !wallet.mishaps.is_empty();
        let mut coins = tx.locks().into_iter();
        let id = tx.id(self.founding().id());
        coins.any(|coin| {
            (is_own && self.is_split(wallet, coin))
                || self.is_stranded(coin)
                || self.is_released_otherwise(coin, id)
        })
    }

    /// The founding epoch's committee gave a coin of the transaction away, and its other coins are
    /// not to be had back: their release was not decided before that epoch ended.
    fn is_released_otherwise(&self, coin: OutputId, id: TxId) -> bool {
        let decision = self.releases().standing(coin).decision;
        decision.is_some_and(|decision| decision != Decision::Spend(id))
    }

    /// A coin of an ended epoch whose payer signed another transaction, too: which of the two
    /// counts may never be known.
    fn is_stranded(&self, coin: OutputId) -> bool {
        let payer = self.books.payer(coin.tx).and_then(|payer| self.wallet_of(payer));
        let is_honest = payer.is_some_and(|at| self.wallets[at].mishaps.is_empty());
        !is_honest && self.books.is_equivocation(coin.tx)
    }
}
