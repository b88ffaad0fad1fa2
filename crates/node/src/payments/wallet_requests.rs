//! Requests of wallets at an authority: what their coins are, and what it keeps for them.

use super::epochs::ReportShelf;
use super::locks::Locks;
use super::network_files::WatchedChain;
use super::queue::{CoinsQuestion, Leaving, Queued};
use super::records::{Action, Change, Records};
use super::server::{Arrived, Payers};
use super::{REPLY, frame};
use crate::NodeError;
use crossbeam_channel::Sender;
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_engine::Frame;
use quorate_payments::{
    CheckedOrder, CoinStatus, NOTE_BYTES_MAX, Network, Numbered, OutputId, RecordContent,
    RecordKind, RecordName, SpentSet, Transaction, TxId, WalletRecord, WalletReply, WalletRequest,
};
use quorate_types::Epoch;
use std::sync::Arc;

/// Everything by which the checking threads serve wallets.
pub(super) struct WalletRequests {
    pub(super) network: Arc<Network>,
    pub(super) chain: WatchedChain,
    pub(super) spent: Arc<SpentSet>,
    pub(super) records: Arc<Records>,
    pub(super) payers: Arc<Payers>,
    pub(super) queue: Sender<Queued>,
    pub(super) reports: ReportShelf,
}

/// Reply to a request as a frame.
pub(super) fn reply(number: u64, content: WalletReply) -> Frame {
    frame(REPLY, &Numbered { number, content })
}

impl WalletRequests {
    /// Carries out a request, or has the log's thread do it.
    pub(super) fn on_request(&self, arrived: Arrived) -> Result<(), NodeError> {
        let Ok(request) = borsh::from_slice::<Numbered<WalletRequest>>(arrived.content()) else {
            return Ok(());
        };
        let Numbered { number, content } = request;
        let (ticket, from) = (arrived.ticket, arrived.from);
        if let Err(refusal) = content.check(&self.network, from) {
            self.send(ticket, reply(number, WalletReply::Refused(refusal)));
            return Ok(());
        }
        let asked = Some((ticket, number));
        match content {
            WalletRequest::Coins(inputs) => {
                let question = CoinsQuestion { ticket, number, from, inputs };
                self.queue(Queued::Held(Leaving::Coins(question)));
            }
            WalletRequest::Records { after } => {
                // A page of megabytes for a few bytes: one at a time for each connection, before
                // the disk is read. Whoever waits for it asks again.
                if !self.has_read_all(ticket) {
                    return Ok(());
                }
                let (records, more) = self.records.page(from, after)?;
                self.send(ticket, reply(number, WalletReply::Records { records, more }));
            }
            WalletRequest::Store(record) => {
                let name = record.name(&self.network).expect("a checked record has coins");
                let bytes = borsh::to_vec(&record).expect("encoding into memory cannot fail");
                self.change(arrived, Action::Store(name, bytes), asked);
            }
            WalletRequest::Remove(names) => self.change(arrived, Action::Remove(names), asked),
            WalletRequest::Changes { after } => {
                if self.has_read_all(ticket) {
                    let changes = WalletReply::Changes(self.changes(after));
                    self.send(ticket, reply(number, changes));
                }
            }
            // Some look-ups for a name of 32 bytes: as with records.
            WalletRequest::Counting(_) if !self.has_read_all(ticket) => {}
            WalletRequest::Counting(names) => {
                let counts = |tx: &TxId| self.spent.inherited().admits(*tx);
                let counting = names.iter().map(counts).collect::<Result<_, _>>()?;
                self.send(ticket, reply(number, WalletReply::Counting(counting)));
            }
            WalletRequest::Report(part) => {
                if !self.has_read_all(ticket) || !self.serves_reports(from) {
                    return Ok(());
                }
                let part = self.reports.read(&part).unwrap_or_else(|error| {
                    tracing::warn!(%error, "a closing report cannot be read");
                    None
                });
                self.send(ticket, reply(number, WalletReply::Report(part)));
            }
        }
        Ok(())
    }

    /// Changes after an epoch that are beside the network file, whether this authority follows
    /// them yet or not.
    fn changes(&self, after: Epoch) -> Vec<quorate_payments::change::Change> {
        self.chain.look(|chain| chain.after(after))
    }

    /// Tells whether this key may ask for reports, which are long, by short questions: it is an
    /// authority's of this epoch, or of one that begins with them.
    fn serves_reports(&self, from: IdentityKey) -> bool {
        self.chain.look(|chain| chain.has_authority(from, self.network.epoch()))
    }

    /// Tells whether a connection has taken everything that it was sent.
    fn has_read_all(&self, ticket: u64) -> bool {
        self.payers.outbox(ticket).is_some_and(|outbox| outbox.is_empty())
    }

    /// Has the record of an order stored before the order's vote can leave (★): it is queued first,
    /// and only for a valid order of the key that sent it.
    pub(super) fn record(&self, arrived: Arrived, checked: &CheckedOrder) {
        match checked {
            CheckedOrder::Valid(core) => self.store_sent(arrived, core.id),
            // It has one, or gets it now: a crash may have come between it and the lock.
            CheckedOrder::Repeated(tx) => self.store_sent(arrived, *tx),
            CheckedOrder::Late(_)
            | CheckedOrder::Invalid(..)
            | CheckedOrder::Unproven(..)
            | CheckedOrder::Unknown(_) => {}
        }
    }

    fn store_sent(&self, arrived: Arrived, tx: TxId) {
        let name = RecordName { kind: RecordKind::Sent, tx };
        let bytes = arrived.content().to_vec();
        self.change(arrived, Action::Store(name, bytes), None);
    }

    fn change(&self, arrived: Arrived, action: Action, asked: Option<(u64, u64)>) {
        self.queue(Queued::Record(Change::new(arrived, action, asked)));
    }

    fn queue(&self, queued: Queued) {
        // Fails only when the host stops.
        let _ = self.queue.send(queued);
    }

    fn send(&self, ticket: u64, frame: Frame) {
        if let Some(outbox) = self.payers.outbox(ticket) {
            outbox.push(frame);
        }
    }
}

/// Transaction in a recorded order, and whether its record may be stored: it is the sender's own
/// (★), and small enough.
pub(super) fn open_recorded(arrived: &Arrived) -> Option<(Transaction, bool)> {
    let record: WalletRecord = borsh::from_slice(arrived.content()).ok()?;
    let RecordContent::Sent(transaction) = record.content else { return None };
    let is_own =
        transaction.payer == arrived.from || mutants::active(Mutant::PayKeepAnybodysRecord);
    Some((*transaction, is_own && record.note.len() <= NOTE_BYTES_MAX))
}

/// Reply to a question about inputs. What another key signed is not shown.
///
/// # Errors
/// When the disk fails.
pub(super) fn coin_states(
    question: &CoinsQuestion,
    locks: &Locks,
) -> Result<WalletReply, NodeError> {
    let state = |input: &OutputId| -> Result<CoinStatus, NodeError> {
        let read = |sequence| Ok(locks.read(sequence)?.map(|lock| lock.core));
        CoinStatus::of(*input, locks.spent(), question.from, read)
    };
    question.inputs.iter().map(state).collect::<Result<_, _>>().map(WalletReply::Coins)
}
