//! What a folded book keeps, and how a state is made of it again.

use super::WalletState;
use crate::wallet::archive::ArchivePoint;
use crate::wallet::limits::DAY_MS;
use crate::wallet::payment::{Entry, Line, Payment, PaymentState};
use crate::wallet::record::{Folded, Record};
use crate::wallet::request::Request;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::{OutputId, Source, TxId};
use std::collections::BTreeSet;

/// Lines of the history that stay in the book, whatever they are: the newest.
#[derive(Clone, Copy, Debug)]
pub(in crate::wallet) struct Newest {
    /// Most lines.
    pub(in crate::wallet) lines: usize,
    /// Most bytes of them together.
    pub(in crate::wallet) bytes: usize,
}

impl WalletState {
    /// Lines that are over, but for the newest, in their order: nothing that can still happen
    /// depends on them.
    pub(in crate::wallet) fn over(&self, newest: Newest, now_ms: u64) -> Vec<Line> {
        let live: BTreeSet<TxId> = self.coins.keys().map(|id| id.tx).collect();
        let (mut lines, mut bytes) = (0, 0);
        let mut over = Vec::new();
        for (number, entry) in self.entries.iter().rev() {
            if lines < newest.lines && bytes < newest.bytes {
                lines += 1;
                bytes += borsh::to_vec(entry).expect("encoding into memory cannot fail").len();
            } else if is_over(entry, &live, now_ms) {
                over.push(Line { number: *number, entry: entry.clone() });
            }
        }
        over.reverse();
        over
    }

    /// Records of a book that has all but these lines, which the archive has up to a point.
    pub(in crate::wallet) fn kept(&self, archived: &[Line], archive: ArchivePoint) -> Vec<Record> {
        let archived: BTreeSet<u64> = archived.iter().map(|line| line.number).collect();
        let kept = self.entries.iter().filter(|(number, _)| !archived.contains(number));
        let line = |(number, entry): (&u64, &Entry)| Line { number: *number, entry: entry.clone() };
        let kept: Vec<Line> = kept.map(line).collect();
        let is_kept = |tx: &TxId| self.payments.get(tx).is_some_and(|at| !archived.contains(at));
        let live: BTreeSet<TxId> = self.coins.keys().map(|id| id.tx).collect();
        let records = self.coins.len() + kept.len() + self.requests.len();
        let spent = self.spent.iter().filter(|(_, tx)| !self.payments.contains_key(tx));
        let folded = Folded {
            archive,
            records: records as u64,
            lines: kept.len() as u64,
            line_next: self.line_next,
            serial_next: self.serial_next,
            is_restored: self.is_restored,
            is_recovery_due: self.is_recovery_due,
            doubtful: self.doubtful.iter().filter(|tx| is_kept(tx)).copied().collect(),
            unstored: self.unstored.intersection(&live).copied().collect(),
            spent: spent.map(|(id, tx)| (*id, *tx)).collect(),
            removed: self.removed.clone(),
        };
        let owner = self.owner.map(Record::Owner);
        let network = self.network.map(Record::Network);
        let head = owner.into_iter().chain(network).chain([Record::Folded(folded)]);
        head.chain(self.coins.values().cloned().map(Record::Coin))
            .chain(kept.into_iter().map(Record::Line))
            .chain(self.requests.iter().cloned().map(Record::Request))
            .collect()
    }

    pub(super) fn unfold(&mut self, folded: Folded) -> Result<(), &'static str> {
        if self.archive.is_some() || self.line_next > 0 || !self.coins.is_empty() {
            return Err("it is folded after its beginning");
        }
        let Folded { archive, line_next, serial_next, is_restored, is_recovery_due, .. } = folded;
        (self.line_next, self.serial_next) = (line_next, serial_next);
        (self.is_restored, self.is_recovery_due) = (is_restored, is_recovery_due);
        (self.doubtful, self.unstored) = (folded.doubtful, folded.unstored);
        (self.spent, self.removed) = (folded.spent, folded.removed);
        self.archive = Some(archive);
        Ok(())
    }

    pub(super) fn keep(&mut self, line: Line) -> Result<(), &'static str> {
        let Line { number, entry } = line;
        if let Entry::Payment(payment) = &entry {
            self.payments.insert(payment.id, number);
            if let Some(key) = &payment.key {
                self.keys.insert(key.clone(), payment.id);
            }
            self.spent.extend(inputs_spent(payment).into_iter().map(|id| (id, payment.id)));
        }
        match self.entries.insert(number, entry) {
            None => Ok(()),
            Some(_) => Err("two lines have one number"),
        }
    }

    pub(super) fn keep_request(&mut self, request: Request) -> Result<(), &'static str> {
        let Request { id, terms, paid, cancelled_ms } = request;
        self.request_payment(id, terms)?;
        let request = self.requests.last_mut().expect("just made");
        (request.paid, request.cancelled_ms) = (paid, cancelled_ms);
        Ok(())
    }

    /// Parts with coins that transactions took which are not here.
    pub(super) fn lose(&mut self, coins: Vec<(OutputId, TxId)>) {
        for (id, tx) in coins {
            if self.coins.remove(&id).is_some() {
                self.spent.insert(id, tx);
            }
        }
    }
}

/// Coins that a payment spent for good.
fn inputs_spent(payment: &Payment) -> Vec<OutputId> {
    match (&payment.state, &payment.transaction.source) {
        (PaymentState::Certified { .. }, Source::Spend(_) | Source::Refund(_)) => {
            payment.transaction.locks()
        }
        _ => Vec::new(),
    }
}

/// Tells whether nothing depends on a line: it has an end that stays, all of this wallet's coins of
/// its transaction are spent by payments that are final (★), and no limit counts it. Refunds and
/// payments that lost tell how one another stand.
fn is_over(entry: &Entry, live: &BTreeSet<TxId>, now_ms: u64) -> bool {
    let is_spent = |tx: &TxId| !live.contains(tx) || mutants::active(Mutant::PayRemoveUnspent);
    match entry {
        Entry::Incoming(incoming) => is_spent(&incoming.tx),
        Entry::Payment(payment) => {
            let is_counted =
                payment.by.is_some() && payment.begun_ms.saturating_add(2 * DAY_MS) > now_ms;
            let is_refund = matches!(payment.transaction.source, Source::Refund(_));
            let has_end = matches!(
                payment.state,
                PaymentState::Certified { .. } | PaymentState::Refused { .. }
            );
            has_end && !is_refund && !is_counted && is_spent(&payment.id)
        }
    }
}
