//! What a wallet does when the network's authorities change.

use super::Wallet;
use super::book::Hold;
use quorate_payments::{Network, OutputId, Payer, PayerEvent, TxId};
use quorate_types::{Machine, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Wallet {
    /// Is started again with the network file of the next epoch. What is under way is shown again
    /// as it is; what was locked may be free by now.
    pub(in crate::payments) fn enter(&mut self, now: Time, epoch: usize, network: &Arc<Network>) {
        let was_up = self.is_up;
        if was_up {
            self.crash();
        }
        (self.epoch, self.network) = (epoch, Arc::clone(network));
        self.machine = Payer::new(Arc::clone(network));
        // Authorities may have gone with the records of it.
        self.recorded.clear();
        self.ask_anew();
        let blocked = std::mem::take(&mut self.book.blocked);
        self.book.stored.extend(blocked);
        if was_up {
            self.start(now);
        }
    }

    /// Where no release is to be had, more reports of the epoch before may set a coin free.
    pub(super) fn try_again(&mut self, now: Time) {
        let taken: BTreeSet<OutputId> = self.unfinished().flat_map(|(_, tx)| tx.locks()).collect();
        let holds = self.book.holds.iter();
        let mut locked = holds.filter(|(_, hold)| **hold == Hold::Locked).map(|(coin, _)| coin);
        // Of what took it there may be a record by now.
        self.book.is_recovering |= locked.any(|coin| !taken.contains(coin));
        let blocked: Vec<TxId> = self.book.blocked.keys().copied().collect();
        for id in blocked {
            let tx = self.book.blocked.remove(&id).expect("its key was found");
            self.since.insert(id, now);
            self.book.stored.insert(id, Arc::clone(&tx));
            self.machine.handle(now, PayerEvent::Pay(tx));
        }
        self.ask_anew();
    }

    fn ask_anew(&mut self) {
        self.book.holds.values_mut().for_each(|hold| *hold = Hold::Unasked);
    }
}
