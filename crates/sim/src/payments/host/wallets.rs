//! What an authority keeps for wallets, and what it tells them.

use super::{AuthorityHost, HostRequest, LogEntry};
use quorate_crypto::IdentityKey;
use quorate_payments::{
    CoinStatus, Core, LookupFailed, OutputId, RecordContent, RecordName, SpentSet, Transaction,
    TxId, WalletRecord, WalletReply, WalletRequest,
};
use std::collections::BTreeMap;

impl AuthorityHost {
    /// Carries out the request of a wallet, whose key the channel proved.
    pub(in crate::payments) fn on_request(
        &mut self,
        (ticket, number): (u64, u64),
        from: IdentityKey,
        request: WalletRequest,
    ) -> Vec<HostRequest> {
        let Some(running) = &self.running else { return Vec::new() };
        let checked = request.check(self.network(), from);
        let mut requests = Vec::new();
        let reply = match (checked, request) {
            (Err(refusal), _) => WalletReply::Refused(refusal),
            (Ok(()), WalletRequest::Coins(inputs)) => {
                WalletReply::Coins(self.statuses(&running.spent, from, &inputs))
            }
            (Ok(()), WalletRequest::Records { .. }) => {
                WalletReply::Records { records: self.records(from), more: false }
            }
            (Ok(()), WalletRequest::Store(record)) => {
                requests = self.append(vec![LogEntry::Record(from, record)]);
                WalletReply::Done
            }
            (
                Ok(()),
                WalletRequest::Remove(_)
                | WalletRequest::Changes { .. }
                | WalletRequest::Counting(_)
                | WalletRequest::Report(_),
            ) => unreachable!("no wallet asks for it"),
        };
        requests.extend(self.leave(HostRequest::Reply(ticket, number, reply)));
        requests
    }

    fn statuses(
        &self,
        spent: &SpentSet,
        from: IdentityKey,
        inputs: &[OutputId],
    ) -> Vec<CoinStatus> {
        let read = |sequence| -> Result<Option<Core>, LookupFailed> {
            Ok(self.read(sequence).map(|lock| lock.core))
        };
        let status = |input: &OutputId| CoinStatus::of(*input, spent, from, read);
        inputs.iter().map(status).collect::<Result<_, _>>().expect("all is in memory")
    }

    /// Records of a key, one of each name, in the order of their names.
    fn records(&self, of: IdentityKey) -> Vec<WalletRecord> {
        let mut records: BTreeMap<RecordName, WalletRecord> = BTreeMap::new();
        for entry in &self.log {
            if let LogEntry::Record(owner, record) = entry
                && *owner == of
                && let Some(name) = record.name(self.network())
            {
                records.insert(name, (**record).clone());
            }
        }
        records.into_values().collect()
    }

    /// Tells whether it keeps the transaction of this name for its payer.
    pub(in crate::payments) fn keeps(&self, id: TxId) -> bool {
        let network = self.network().id();
        self.log.iter().any(|entry| match entry {
            LogEntry::Record(_, record) => {
                matches!(&record.content, RecordContent::Sent(known) if known.id(network) == id)
            }
            _ => false,
        })
    }

    pub(super) fn has_sent(&self, tx: &Transaction) -> bool {
        self.log.iter().any(|entry| match entry {
            LogEntry::Record(_, record) => {
                matches!(&record.content, RecordContent::Sent(known) if **known == *tx)
            }
            _ => false,
        })
    }
}

/// The record that travels with an order.
pub(super) fn sent(tx: Transaction) -> LogEntry {
    let owner = tx.payer;
    let record = WalletRecord { content: RecordContent::Sent(Box::new(tx)), note: Vec::new() };
    LogEntry::Record(owner, Box::new(record))
}
