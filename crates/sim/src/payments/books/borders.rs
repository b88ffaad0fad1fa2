//! Judging borders between epochs: reports say all that their authorities voted for, which vote for
//! nothing else after them, and what an ended epoch made is spent where its reports vouch for it.

use super::{Action, Books, Taken, Verdict, Voter, violation};
use quorate_crypto::IdentityKey;
use quorate_payments::change::LockEntry;
use quorate_payments::{OutputId, TxId};
use std::collections::BTreeSet;

impl Books {
    pub(super) fn is_faulty(&self, (epoch, authority): Voter) -> bool {
        self.electorates[epoch].faulty.contains(&authority)
    }

    /// An honest authority's closing report of a shard leaves it: always the same, and with all
    /// that the shard voted for.
    pub(in crate::payments) fn on_closing(
        &mut self,
        voter: Voter,
        shard: u16,
        entries: &[LockEntry],
    ) -> Verdict {
        let reported: BTreeSet<LockEntry> = entries.iter().copied().collect();
        let before = self.closings.entry((voter, shard)).or_insert_with(|| reported.clone());
        if *before != reported {
            let text = format!("{voter:?} reports {reported:?}; it reported {before:?} before");
            return violation("closings", text);
        }
        let nothing = BTreeSet::new();
        for id in self.voted.get(&(voter, shard)).unwrap_or(&nothing) {
            let action = &self.actions[id];
            let is_told = |lock: &OutputId| reported.contains(&(*id, *lock));
            if !self.is_under_release(action) && !action.locks.iter().all(is_told) {
                let text = format!("{voter:?} voted for {id}, and reports {reported:?}");
                return violation("closings", text);
            }
        }
        self.check_reported(voter, &reported)
    }

    /// What an honest authority locked was valid, whether its vote left or not.
    fn check_reported(&self, voter: Voter, reported: &BTreeSet<LockEntry>) -> Verdict {
        for (id, input) in reported {
            let Some(action) = self.actions.get(id) else {
                if self.decisions.contains_key(input) {
                    continue;
                }
                return violation("closings", format!("{voter:?} reports {id}, which nobody made"));
            };
            if let Err(reason) = self.validity(action) {
                return violation("validity", format!("{voter:?} reports {id}: {reason}"));
            }
        }
        Ok(())
    }

    /// The committee counts a closing report in an authority's name: of an honest one, what it
    /// said.
    pub(in crate::payments) fn on_closing_counted(&self, voter: Voter, is_own: bool) -> Verdict {
        if self.is_faulty(voter) || is_own {
            return Ok(());
        }
        violation("closings", format!("a report counts as {voter:?}'s, who never signed it"))
    }

    /// A vote of an authority that reported what it locked: for nothing that was not in it.
    pub(super) fn check_closed(
        &self,
        voter: Voter,
        shard: u16,
        id: TxId,
        action: &Action,
    ) -> Verdict {
        let Some(reported) = self.closings.get(&(voter, shard)) else { return Ok(()) };
        let is_told = action.locks.iter().all(|lock| reported.contains(&(id, *lock)));
        if is_told || self.is_under_release(action) {
            return Ok(());
        }
        violation("closings", format!("{voter:?} votes for {id}, which it did not report"))
    }

    fn is_under_release(&self, action: &Action) -> bool {
        action.locks.iter().any(|lock| self.decisions.contains_key(lock))
    }

    /// An honest authority spends what transactions made: those of ended epochs take effect where
    /// enough authorities reported them.
    pub(super) fn count_parents(&mut self, epoch: usize, action: &Action) -> Verdict {
        for taken in &action.takes {
            if let Taken::Output(coin) = taken
                && self.actions.contains_key(&coin.tx)
                && (0..epoch).any(|former| self.is_vouched_for(former, coin.tx))
            {
                self.take_effect(coin.tx)?;
            }
        }
        Ok(())
    }

    /// Tells whether reports of an epoch may vouch for a transaction: what honest authorities
    /// reported, and all faulty ones.
    fn is_vouched_for(&self, epoch: usize, id: TxId) -> bool {
        let electorate = &self.electorates[epoch];
        let named = self.named(epoch, id);
        named > 0 && named + electorate.faulty.len() >= electorate.vouching()
    }

    /// Number of honest authorities that reported a transaction.
    fn named(&self, epoch: usize, id: TxId) -> usize {
        let Action { locks, is_refund, .. } = &self.actions[&id];
        // A refund is told beside its coin, under a place of its own.
        let names = |reported: &BTreeSet<LockEntry>| match is_refund {
            true => reported.iter().any(|(tx, _)| *tx == id),
            false => locks.iter().all(|lock| reported.contains(&(id, *lock))),
        };
        let of_epoch = self.closings.iter().filter(|(((of, _), _), _)| *of == epoch);
        of_epoch.filter(|(_, reported)| names(reported)).count()
    }

    /// Transactions of a payer that whoever asks a quorum of an epoch's authorities hears of,
    /// whichever it is: so many honest ones voted for each in that epoch, or are sure to have told
    /// it of an earlier one.
    pub(in crate::payments) fn well_known(
        &self,
        epoch: usize,
        payer: IdentityKey,
    ) -> BTreeSet<TxId> {
        let electorate = &self.electorates[epoch];
        let beyond = electorate.size - electorate.quorum();
        let known = self.voters.iter().filter(|((of, _), who)| *of == epoch && who.len() > beyond);
        let known = known.map(|((_, id), _)| *id);
        let is_inherited = |id: &TxId| {
            (0..epoch).any(|former| self.named(former, *id) >= self.electorates[former].vouching())
        };
        let own = |id: &TxId| self.actions[id].payer == payer;
        let inherited = self.actions.keys().copied().filter(own).filter(is_inherited);
        known.filter(own).chain(inherited).collect()
    }

    /// Tells whether the payer of a transaction signed another one over one of its coins.
    pub(in crate::payments) fn is_equivocation(&self, id: TxId) -> bool {
        let Some(action) = self.actions.get(&id) else { return false };
        action.locks.iter().any(|coin| self.spenders(*coin, action.payer).len() > 1)
    }

    /// Payer of a transaction that somebody made.
    pub(in crate::payments) fn payer(&self, id: TxId) -> Option<IdentityKey> {
        self.actions.get(&id).map(|action| action.payer)
    }
}
