//! Having authorities remove the records that a wallet made again from its key does not need.
//!
//! These are the records of the archive's lines: payments that are final and receipts, of which
//! every coin of this wallet is spent by payments that are final (★). Each of those was recorded
//! before a quorum voted for it, and its own record stays while a coin of it does. So the records
//! that are left tell of every coin that there is, whichever authorities removed the others, and
//! when: what a left one tells of spent coins, a quorum that is locked for their spenders refutes.

use super::authorities::InForce;
use super::payment::{Entry, Line};
use super::record::Record;
use super::{PaymentService, Wallet, WalletError};
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::{REQUEST_ITEMS_MAX, RecordKind, RecordName, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Records that an authority is asked to remove.
pub(super) struct Removable {
    pub(super) names: Vec<RecordName>,
    /// Length of the archive whose records are removed then.
    pub(super) archive_bytes: u64,
}

impl Wallet {
    /// Records that an authority was not asked to remove yet, as many as one request takes.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub(super) fn removable(
        &self,
        authority: IdentityKey,
    ) -> Result<Option<Removable>, WalletError> {
        let Some(archive) = self.archive.as_ref().filter(|_| !self.state.is_recovery_due) else {
            return Ok(None);
        };
        let begin = self.state.removed.get(&authority).copied().unwrap_or(0);
        let (mut archive_bytes, mut names) = (begin, Vec::new());
        while archive_bytes < archive.end() && names.len() < REQUEST_ITEMS_MAX {
            let (line, next) = archive.read(archive_bytes)?;
            let name = name_of(&line);
            // ★ Another coin of it may have come in since, by the same record.
            if !self.state.has_coin_of(name.tx) || mutants::active(Mutant::PayRemoveUnspent) {
                names.push(name);
            }
            archive_bytes = next;
        }
        Ok((archive_bytes > begin).then_some(Removable { names, archive_bytes }))
    }

    /// Notes that an authority removed records.
    ///
    /// # Errors
    /// When it could not be stored.
    pub(super) fn end_removal(
        &mut self,
        authority: IdentityKey,
        archive_bytes: u64,
    ) -> Result<(), WalletError> {
        self.write(Record::Removed { authority, archive_bytes })
    }
}

fn name_of(line: &Line) -> RecordName {
    match &line.entry {
        Entry::Payment(payment) => RecordName { kind: RecordKind::Sent, tx: payment.id },
        Entry::Incoming(incoming) => RecordName { kind: RecordKind::Received, tx: incoming.tx },
    }
}

impl PaymentService {
    /// Leaves records of receipts with the authorities that no quorum has yet, and has those
    /// removed that nothing depends on.
    ///
    /// # Errors
    /// When it could not be noted.
    pub async fn tend_records(self: &Arc<Self>, within: Duration) -> Result<(), WalletError> {
        let (stored, removed) =
            tokio::join!(self.store_receipts(within), self.remove_records(within));
        stored.and(removed)
    }

    /// Has authorities remove the records that nothing depends on, each those that it was not asked
    /// to remove before; as far as they answer in time.
    ///
    /// # Errors
    /// When it could not be noted.
    pub async fn remove_records(self: &Arc<Self>, within: Duration) -> Result<(), WalletError> {
        let mut removing = JoinSet::new();
        let in_force = self.in_force();
        for to in in_force.network.committee().members() {
            removing.spawn(Arc::clone(self).remove_at(Arc::clone(&in_force), to));
        }
        let all = async {
            while let Some(ended) = removing.join_next().await {
                if let Ok(removed) = ended {
                    removed?;
                }
            }
            Ok(())
        };
        // Whoever does not answer is asked again, at the next payment.
        timeout(within, all).await.unwrap_or(Ok(()))
    }

    async fn remove_at(
        self: Arc<Self>,
        in_force: Arc<InForce>,
        to: ReplicaId,
    ) -> Result<(), WalletError> {
        let authority = *in_force.network.committee().identity(to).expect("a member");
        loop {
            let look = move |wallet: &mut Wallet| wallet.removable(authority);
            let Some(removable) = self.with_blocking(look).await? else { return Ok(()) };
            let request = WalletRequest::Remove(removable.names);
            if in_force.authorities.ask(to, request).await != WalletReply::Done {
                return Ok(());
            }
            let upto = removable.archive_bytes;
            let end = move |wallet: &mut Wallet| wallet.end_removal(authority, upto);
            self.with_blocking(end).await?;
        }
    }
}
