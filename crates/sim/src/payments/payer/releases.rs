//! How a wallet has its locked coins released, and takes what comes of it.

use super::recovery::Deed;
use super::{LOOK_AFTER, Wallet};
use crate::payments::committee::Committee;
use quorate_payments::release::{Decision, Freeze, ReleaseStep};
use quorate_payments::{Coin, OutputId, PayerEvent, Transaction, TxId};
use quorate_types::{Machine, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Wallet {
    /// Asks for the release of what is locked, and of what is under way for too long; takes
    /// refunds, goes on with what was decided for, and shows certificates of what is still open.
    ///
    /// What was decided stays so in later epochs.
    pub(super) fn release(&mut self, now: Time, committee: &Committee, asks: bool) -> Vec<Deed> {
        let (mut frozen, mut deeds) = (Vec::new(), Vec::new());
        for (id, coin) in self.to_release(now) {
            let standing = committee.standing(id);
            match standing.decision {
                None if !asks => {}
                _ if !standing.is_frozen() => frozen.push(coin),
                None => deeds.extend(self.certificate_over(id)),
                Some(Decision::Refund) => deeds.extend(self.refund(now, &coin)),
                Some(Decision::Spend(tx)) => self.follow(now, tx),
            }
        }
        self.wished.extend(frozen.iter().map(|coin| coin.id));
        let freezes = frozen.chunks(Freeze::COINS_MAX).map(|coins| {
            let freeze = Freeze::by_owner(&self.network, &self.secret, coins.to_vec());
            Deed::Submit(Box::new(ReleaseStep::Freeze(freeze)))
        });
        deeds.extend(freezes);
        deeds
    }

    fn to_release(&self, now: Time) -> BTreeMap<OutputId, Coin> {
        let is_late = |tx: &TxId| self.since.get(tx).is_some_and(|at| *at + self.patience <= now);
        let late = self.book.stored.iter().filter(|(id, _)| is_late(id));
        let late = late.flat_map(|(_, tx)| tx.spent_coins()).map(|coin| (coin.id, coin));
        let mut coins = self.book.locked();
        coins.extend(late);
        coins
    }

    /// Shows a final transaction of this wallet's over a coin.
    fn certificate_over(&self, coin: OutputId) -> Option<Deed> {
        let mut certified = self.book.certified.values();
        let (core, certificate) = certified.find(|(core, _)| core.locks.contains(&coin))?;
        let (core, certificate) = (core.clone(), certificate.clone());
        Some(Deed::Submit(Box::new(ReleaseStep::Certified { core, certificate })))
    }

    fn refund(&mut self, now: Time, coin: &Coin) -> Option<Deed> {
        let refund = Transaction::refund(&self.network, &self.secret, coin);
        let id = refund.id(self.network.id());
        if self.since.contains_key(&id) || self.book.spent.contains(&coin.id) {
            return None;
        }
        self.look_after = LOOK_AFTER;
        Some(Deed::Made(self.begin(now, refund)))
    }

    /// A coin goes to this transaction: shows it again, or asks for it where it is not known.
    fn follow(&mut self, now: Time, tx: TxId) {
        if let Some(blocked) = self.book.blocked.remove(&tx) {
            self.look_after = LOOK_AFTER;
            self.since.insert(tx, now);
            self.book.stored.insert(tx, Arc::clone(&blocked));
            self.machine.handle(now, PayerEvent::Claim(blocked));
        } else if !self.book.stored.contains_key(&tx) && !self.book.certified.contains_key(&tx) {
            self.book.is_recovering = true;
        }
    }
}
