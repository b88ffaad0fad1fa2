//! What releases do to coins and payments.

use super::WalletState;
use crate::wallet::held::{Held, Hold, Release};
use crate::wallet::payment::{Entry, Payment, PaymentState};
use quorate_payments::release::{Decided, Decision};
use quorate_payments::{OutputId, Source, TxId};

impl WalletState {
    pub(super) fn ask_release(&mut self, coins: &[OutputId]) -> Result<(), &'static str> {
        for coin in coins {
            let held = self.coins.get_mut(coin).ok_or("a coin is released that is not here")?;
            held.release.get_or_insert(Release::Asked);
        }
        Ok(())
    }

    /// Takes in how releases ended. A payment that a coin was decided for is sent again.
    pub(super) fn decide(&mut self, decided: &Decided) -> Result<(), &'static str> {
        for (coin, decision) in decided {
            let held = self.coins.get_mut(coin).ok_or("a coin is decided that is not here")?;
            held.release = Some(Release::Decided(*decision));
            if let Decision::Spend(tx) = decision {
                self.resume(*tx);
            }
        }
        Ok(())
    }

    fn resume(&mut self, tx: TxId) {
        let at = self.payments.get(&tx);
        let Some(Entry::Payment(payment)) = at.and_then(|at| self.entries.get_mut(at)) else {
            return;
        };
        if !is_lost(payment) {
            return;
        }
        payment.state = PaymentState::Begun;
        for input in payment.transaction.locks() {
            let held = self.coins.get_mut(&input);
            if let Some(held) = held.filter(|held| held.hold == Hold::Frozen(tx)) {
                held.hold = Hold::Reserved(tx);
            }
        }
        self.doubtful.insert(tx);
    }

    /// Tells whether authorities vote for a payment whatever they are locked for: it is a refund,
    /// or a coin of it was decided for it.
    pub(in crate::wallet) fn is_due(&self, payment: &Payment) -> bool {
        let is_due = |held: &Held| held.is_due_to(payment.id);
        matches!(payment.transaction.source, Source::Refund(_))
            || payment
                .transaction
                .locks()
                .iter()
                .any(|coin| self.coins.get(coin).is_some_and(is_due))
    }

    /// Word for the state of a payment. One that lost may have got its coins back.
    pub(in crate::wallet) fn state_name(&self, payment: &Payment) -> &'static str {
        if !is_lost(payment) {
            return payment.state.name();
        }
        let locks = payment.transaction.locks();
        let is_releasing = |coin: &OutputId| {
            self.coins.get(coin).is_some_and(|held| {
                held.is_under_release() || held.hold.holder().is_some_and(|tx| self.is_refund(tx))
            })
        };
        let is_refunded = |coin| self.spent.get(coin).is_some_and(|tx| self.is_refund(*tx));
        if locks.iter().any(is_releasing) {
            "releasing"
        } else if locks.iter().any(is_refunded) {
            "refunded"
        } else {
            payment.state.name()
        }
    }

    fn is_refund(&self, tx: TxId) -> bool {
        let payment = self.payment(tx);
        payment.is_some_and(|one| matches!(one.transaction.source, Source::Refund(_)))
    }
}

/// Tells whether a payment ended because another transaction took a coin of it.
fn is_lost(payment: &Payment) -> bool {
    matches!(payment.state, PaymentState::Conflicting { .. } | PaymentState::Released { .. })
}
