//! Judging releases: reports are true and final, and nothing is decided against what may be
//! certified.

use super::{Action, Books, Taken, Verdict, Voter, violation};
use quorate_crypto::IdentityKey;
use quorate_payments::release::Decision;
use quorate_payments::{Output, OutputId, TxId};

impl Books {
    pub(super) fn is_decided_for(&self, coin: OutputId, id: TxId, is_refund: bool) -> bool {
        match self.decisions.get(&coin) {
            Some(Decision::Spend(tx)) => *tx == id,
            Some(Decision::Refund) => is_refund,
            None => false,
        }
    }

    /// A vote over a coin that was not decided for it: nothing new after the report, and no refund.
    pub(super) fn check_frozen(
        &self,
        voter: Voter,
        id: TxId,
        is_refund: bool,
        coin: OutputId,
    ) -> Verdict {
        if is_refund {
            let text = format!("{voter:?} votes for refund {id} of {coin}, which nobody decided");
            return violation("refunds", text);
        }
        match self.reports.get(&(voter, coin)) {
            Some(reported) if *reported != Some(id) => {
                let text = format!(
                    "{voter:?} votes for {id} over {coin}, of which it reported {reported:?}"
                );
                violation("reports", text)
            }
            _ => Ok(()),
        }
    }

    /// An honest authority's report leaves it: what it says is what it voted for, and always the
    /// same.
    pub(in crate::payments) fn on_report(
        &mut self,
        voter: Voter,
        coin: OutputId,
        held: Option<TxId>,
    ) -> Verdict {
        if self.decisions.contains_key(&coin) {
            return Ok(());
        }
        let promised = self.promises.get(&(voter, Taken::Output(coin))).copied();
        let before = *self.reports.entry((voter, coin)).or_insert(held);
        if before != held || promised.is_some_and(|tx| held != Some(tx)) {
            let text = format!(
                "{voter:?} reports {held:?} of {coin}; it reported {before:?} and voted for \
                 {promised:?}"
            );
            return violation("reports", text);
        }
        Ok(())
    }

    /// The committee counts a report in an honest authority's name.
    pub(in crate::payments) fn on_counted(
        &self,
        voter: Voter,
        coin: OutputId,
        held: Option<TxId>,
    ) -> Verdict {
        if self.is_faulty(voter) || self.reports.get(&(voter, coin)) == Some(&held) {
            return Ok(());
        }
        let text = format!("{held:?} of {coin} counts as {voter:?}'s word, who never said so");
        violation("reports", text)
    }

    /// The committee freezes a coin of this owner: it wished so, or signed two transactions.
    pub(in crate::payments) fn on_freeze(
        &self,
        coin: OutputId,
        owner: IdentityKey,
        is_wished: bool,
    ) -> Verdict {
        if is_wished || self.spenders(coin, owner).len() > 1 {
            return Ok(());
        }
        violation("freezes", format!("{coin} is frozen, and its owner neither asked nor cheated"))
    }

    /// The committee decides a release.
    pub(in crate::payments) fn on_decided(
        &mut self,
        coin: OutputId,
        owner: IdentityKey,
        decision: Decision,
    ) -> Verdict {
        let before = *self.decisions.entry(coin).or_insert(decision);
        let taker = self.takers.get(&Taken::Output(coin)).copied();
        let (is_owners, is_against) = match decision {
            Decision::Refund => (true, taker.is_some()),
            Decision::Spend(tx) => {
                (self.spenders(coin, owner).contains(&tx), taker.is_some_and(|taker| taker != tx))
            }
        };
        if before == decision && is_owners && !is_against {
            return Ok(());
        }
        let text = format!(
            "of {coin}: {decision}; decided before: {before:?}; may be certified: {taker:?}; \
             signed by its owner: {is_owners}"
        );
        violation("decisions", text)
    }

    /// Transactions that the owner of a coin signed over it, refunds apart.
    pub(in crate::payments) fn spenders(&self, coin: OutputId, owner: IdentityKey) -> Vec<TxId> {
        let takes = |action: &Action| {
            action.payer == owner
                && !action.is_refund
                && action.takes.contains(&Taken::Output(coin))
        };
        self.actions.iter().filter(|(_, action)| takes(action)).map(|(id, _)| *id).collect()
    }

    /// Coins that a transaction takes, as its payer signed.
    pub(in crate::payments) fn takes(&self, id: TxId) -> Vec<OutputId> {
        let coins = self.actions[&id].takes.iter().filter_map(|taken| match taken {
            Taken::Output(coin) => Some(*coin),
            Taken::Serial(_) => None,
        });
        coins.collect()
    }

    /// An honest owner shows a transaction; `true` the first time.
    pub(in crate::payments) fn on_shown(&mut self, id: TxId) -> bool {
        self.shown.insert(id)
    }

    pub(in crate::payments) fn was_shown(&self, id: TxId) -> bool {
        self.shown.contains(&id)
    }

    pub(in crate::payments) fn has_honest_votes(&self, id: TxId) -> bool {
        self.voters.keys().any(|(_, voted)| *voted == id)
    }

    /// Outputs of an owner that somebody was shown, and that no transaction can take from it any
    /// more; each with the transaction that may be certified over it, and that nobody saw.
    pub(in crate::payments) fn owned(&self, owner: IdentityKey) -> Vec<(OutputId, Option<TxId>)> {
        let is_real =
            |id: &OutputId| self.believed.contains(&id.tx) || !self.actions.contains_key(&id.tx);
        let own = |(id, output): &(&OutputId, &Output)| output.owner == owner && is_real(id);
        let taker = |id: &OutputId| self.takers.get(&Taken::Output(*id)).copied();
        let open = self.outputs.iter().filter(own).map(|(id, _)| (*id, taker(id)));
        open.filter(|(_, taker)| !taker.is_some_and(|tx| self.believed.contains(&tx))).collect()
    }
}
