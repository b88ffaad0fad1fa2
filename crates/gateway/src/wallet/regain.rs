//! What a wallet takes back from its authorities: records of what it did, and the states of its
//! coins. Nothing is believed that does not prove itself.

use super::notes::{self, ReceivedNote, SentNote};
use super::record::Record;
use super::{Wallet, WalletError};
use quorate_node::unix_ms;
use quorate_payments::{
    Coin, CoinStatus, Core, Memo, Origin, OutputId, PayReceipt, PaymentOutcome, RecordContent,
    RecordKind, RecordName, Transaction, TxCertificate, TxId, WalletRecord,
};
use quorate_types::ReplicaId;
use std::collections::{BTreeMap, BTreeSet};

/// Transactions and receipts that were regained, and what stands in their way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regained {
    /// Payments that the book did not have.
    pub payments: usize,
    /// Receipts that the book did not have.
    pub receipts: usize,
    /// Transactions of this key over a coin that another one of it holds: one of the two is lost.
    pub conflicting: Vec<TxId>,
    /// Transactions of ended epochs whose coins were left out, since no quorum says that they
    /// count.
    pub uncounted: Vec<TxId>,
}

/// Records of this wallet's that prove themselves, one of each name: with a note that the wallet
/// wrote, if an authority has one, and with the coins of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GenuineRecords(BTreeMap<RecordName, WalletRecord>);

impl GenuineRecords {
    /// Transactions whose coins are new to a wallet, and came in by certificates of ended epochs
    /// that are not known to count.
    pub(super) fn uncounted(&self, wallet: &Wallet) -> Vec<TxId> {
        let coins = self.0.values().filter_map(|record| match &record.content {
            RecordContent::Received(coins) => Some(coins),
            RecordContent::Sent(_) => None,
        });
        let is_new = |coin: &&Coin| !wallet.state.knows(&coin.id) && wallet.is_uncounted(coin);
        coins
            .flatten()
            .filter(is_new)
            .map(|coin| coin.id.tx)
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect()
    }

    /// Leaves the transactions of these names alone.
    pub(super) fn leave_sent(&mut self, names: &BTreeSet<TxId>) {
        self.0.retain(|name, _| name.kind == RecordKind::Sent && names.contains(&name.tx));
    }
}

/// A transaction of this wallet's with its note.
struct Sent {
    id: TxId,
    transaction: Transaction,
    note: SentNote,
}

impl Wallet {
    /// Takes in the records of authorities that the wallet does not have.
    ///
    /// # Errors
    /// When they could not be stored.
    pub(super) fn take_records(
        &mut self,
        records: GenuineRecords,
    ) -> Result<Regained, WalletError> {
        let (mut sent, mut receipts, mut certificates) = (Vec::new(), Vec::new(), BTreeMap::new());
        let now = unix_ms();
        for (name, WalletRecord { content, note }) in records.0 {
            match content {
                RecordContent::Sent(transaction) => {
                    collect_certificates(&transaction.spent_coins(), &mut certificates);
                    let note = self.notes.read(name, &note);
                    let note = note.unwrap_or_else(|| notes::note_of(&transaction, now));
                    sent.push(Sent { id: name.tx, transaction: *transaction, note });
                }
                RecordContent::Received(coins) => {
                    let note = self.notes.read::<ReceivedNote>(name, &note);
                    let (memo, at_ms) = note.map_or((None, now), |note| (note.memo, note.at_ms));
                    receipts.push((at_ms, self.receipt_of(coins, memo)));
                }
            }
        }
        let mut regained = Regained::default();
        receipts.sort_by_key(|(at_ms, receipt)| (*at_ms, receipt.coins[0].id));
        // One authority that has a receipt is no quorum: they are recorded again.
        for (at_ms, mut receipt) in receipts {
            self.leave_unknown(&mut receipt.coins)?;
            if self.check_counted(&receipt.coins).is_err() {
                regained.uncounted.push(receipt.coins[0].id.tx);
                continue;
            }
            if !receipt.coins.is_empty() {
                self.write(Record::Received { receipt, at_ms })?;
                regained.receipts += 1;
            }
        }
        // Where two took one coin, the one that is known to be final comes first.
        sent.sort_by_key(|one| (!certificates.contains_key(&one.id), one.note.at_ms, one.id));
        for one in sent {
            if self.find(one.id)?.is_none() {
                self.take_sent(one, &mut regained)?;
            }
        }
        self.end_certified(&certificates)?;
        Ok(regained)
    }

    /// Adds those of some records that prove themselves.
    pub(super) fn add_genuine(&self, records: Vec<WalletRecord>, to: &mut GenuineRecords) {
        let genuine = &mut to.0;
        for record in records {
            let Some(name) = record.name(&self.network) else { continue };
            let known = genuine.get(&name);
            let is_better = known.is_none_or(|known| {
                !self.is_own_note(name, known) && self.is_own_note(name, &record)
            });
            let has_more = known.is_some_and(|known| has_more_coins(&record, known));
            if !(is_better || has_more) || !record.is_genuine(&self.network, self.owner()) {
                continue;
            }
            let united = match genuine.remove(&name) {
                Some(known) if is_better => unite(record, known),
                Some(known) => unite(known, record),
                None => record,
            };
            genuine.insert(name, united);
        }
    }

    fn is_own_note(&self, name: RecordName, record: &WalletRecord) -> bool {
        match record.content {
            RecordContent::Sent(_) => self.notes.read::<SentNote>(name, &record.note).is_some(),
            RecordContent::Received(_) => {
                self.notes.read::<ReceivedNote>(name, &record.note).is_some()
            }
        }
    }

    fn receipt_of(&self, coins: Vec<Coin>, memo: Option<Memo>) -> PayReceipt {
        let mut receipt = PayReceipt { coins, memo };
        if receipt.check(&self.network).is_err() {
            // The coins were checked: it is the memo.
            receipt.memo = None;
        }
        receipt
    }

    /// Tells whether a transaction that was sent before fits what is known, in the archive too.
    fn can_regain(&self, transaction: &Transaction, tx: TxId) -> Result<bool, WalletError> {
        for coin in transaction.spent_coins() {
            if self.spender(&coin.id)?.is_some() {
                return Ok(false);
            }
        }
        Ok(self.state.can_regain(transaction, tx))
    }

    fn take_sent(&mut self, sent: Sent, regained: &mut Regained) -> Result<(), WalletError> {
        let Sent { id, transaction, note } = sent;
        if !self.can_regain(&transaction, id)? {
            regained.conflicting.push(id);
            return Ok(());
        }
        let SentNote { order, key, by, at_ms } = note;
        self.write(Record::Regained { by, order, key, transaction, at_ms })?;
        regained.payments += 1;
        Ok(())
    }

    /// Ends the payments whose certificates later ones show.
    fn end_certified(
        &mut self,
        certificates: &BTreeMap<TxId, TxCertificate>,
    ) -> Result<(), WalletError> {
        for (tx, _) in self.unfinished() {
            if let Some(certificate) = certificates.get(&tx) {
                let outcome = PaymentOutcome::Certified(Box::new(certificate.clone()));
                self.write(Record::Ended { tx, outcome, at_ms: unix_ms() })?;
            }
        }
        Ok(())
    }

    /// Notes that all records of a quorum were taken in: payments can be made again.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn end_recovery(&mut self) -> Result<(), WalletError> {
        self.write(Record::Recovered { at_ms: unix_ms() })
    }

    /// Tells whether the records of authorities are to be taken in before anything is paid.
    #[must_use]
    pub fn is_recovery_due(&self) -> bool {
        self.state.is_recovery_due
    }

    /// Coins whose states are to be asked for before they can be spent.
    #[must_use]
    pub fn unasked(&self) -> Vec<OutputId> {
        self.state.unasked().map(|coin| coin.id).collect()
    }

    /// Takes in the states of coins as authorities told them (★): a coin is free again when a
    /// quorum says so, and none showed a transaction of this wallet's that took it.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn take_states(
        &mut self,
        inputs: &[OutputId],
        answers: &[(ReplicaId, Vec<CoinStatus>)],
    ) -> Result<(), WalletError> {
        let (mut free, mut taken, mut frozen) = (Vec::new(), Vec::new(), Vec::new());
        let mut spent = Vec::new();
        for (at, input) in inputs.iter().enumerate() {
            let states: Vec<_> = answers
                .iter()
                .filter_map(|(from, states)| Some((*from, states.get(at)?)))
                .collect();
            match CoinStatus::agreed(&self.network, self.owner(), *input, &states) {
                Some(CoinStatus::Free) => free.push(*input),
                Some(CoinStatus::Locked { tx, .. }) if self.is_spent_by(tx, &states)? => {
                    spent.push((*input, tx));
                }
                Some(CoinStatus::Locked { tx, .. }) => taken.push((*input, tx)),
                Some(CoinStatus::Frozen) => frozen.push(*input),
                Some(CoinStatus::Contested) | None => {}
            }
        }
        self.note_release(frozen)?;
        if !spent.is_empty() {
            self.write(Record::Spent { coins: spent, at_ms: unix_ms() })?;
        }
        if free.is_empty() && taken.is_empty() {
            return Ok(());
        }
        self.write(Record::Asked { free, taken, at_ms: unix_ms() })
    }

    /// Tells whether a payment that nobody recorded spent a coin: a quorum is locked for it, so
    /// that the quorum had its record before, and was asked to remove it.
    fn is_spent_by(
        &self,
        tx: TxId,
        states: &[(ReplicaId, &CoinStatus)],
    ) -> Result<bool, WalletError> {
        let is_taken = CoinStatus::taken_by_quorum(&self.network, states) == Some(tx);
        Ok(is_taken && self.find(tx)?.is_none())
    }

    /// Tells whether an authority shows a transaction of this key that takes the coin.
    pub(super) fn is_own(&self, core: Option<&Core>, tx: TxId, coin: OutputId) -> bool {
        core.is_some_and(|core| core.is_of(&self.network, self.owner(), tx, coin))
    }

    /// Records of receipts that no quorum of authorities has yet, as far as their coins are here;
    /// at most so many.
    #[must_use]
    pub fn unstored(&self, most: usize) -> Vec<(TxId, WalletRecord)> {
        let mut by_tx: BTreeMap<TxId, Vec<Coin>> = BTreeMap::new();
        for held in self.state.coins.values() {
            let tx = held.coin.id.tx;
            if self.state.unstored.contains(&tx) && by_tx.len() < most {
                by_tx.entry(tx).or_default().push(held.coin.clone());
            }
        }
        let record = |(tx, coins)| {
            let note = self.notes.received(tx, &self.state.received_note(tx));
            (tx, WalletRecord { content: RecordContent::Received(coins), note })
        };
        by_tx.into_iter().map(record).collect()
    }

    /// Notes that a quorum has the records of these receipts.
    ///
    /// # Errors
    /// When it could not be stored.
    pub fn end_storing(&mut self, receipts: Vec<TxId>) -> Result<(), WalletError> {
        if receipts.is_empty() {
            return Ok(());
        }
        self.write(Record::Stored(receipts))
    }
}

/// Tells whether a record of coins that came in has some that another one of its name lacks: a
/// receipt may have come in twice, with a part of its coins at first.
fn has_more_coins(record: &WalletRecord, known: &WalletRecord) -> bool {
    match (&record.content, &known.content) {
        (RecordContent::Received(coins), RecordContent::Received(known)) => {
            coins.iter().any(|coin| known.iter().all(|one| one.id != coin.id))
        }
        _ => false,
    }
}

/// A record with the coins of another one of its name, too.
fn unite(mut record: WalletRecord, other: WalletRecord) -> WalletRecord {
    if let (RecordContent::Received(coins), RecordContent::Received(others)) =
        (&mut record.content, other.content)
    {
        coins.extend(others);
        coins.sort_by_key(|coin| coin.id);
        coins.dedup_by_key(|coin| coin.id);
    }
    record
}

fn collect_certificates(coins: &[Coin], certificates: &mut BTreeMap<TxId, TxCertificate>) {
    for coin in coins {
        if let Origin::Certified(proof) = &coin.origin {
            certificates.entry(coin.id.tx).or_insert_with(|| proof.certificate.clone());
        }
    }
}
