//! Asking the authorities for what a restored wallet does not know, and leaving with them what it
//! would need then.

use super::asking::Answers;
use super::authorities::InForce;
use super::regain::GenuineRecords;
use super::{PaymentService, Regained, Wallet, WalletError};
use parking_lot::Mutex;
use quorate_payments::{OutputId, REQUEST_ITEMS_MAX, RecordName, TxId, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Receipts that are recorded at once.
const RECEIPTS_MAX: usize = 64;

/// Pages of one authority's records: more than it can have.
const PAGES_MAX: usize = 4_096;

/// Outcome of asking the authorities for all that they know of a wallet.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Number of authorities that answered.
    pub answered: usize,
    /// Payments and receipts that they had and the book had not.
    pub regained: Regained,
}

impl PaymentService {
    /// Asks the authorities for what a restored wallet has to know before it pays: its records,
    /// where it was not done; then it finishes what it began, and asks for the states of its coins.
    /// Of a wallet that was never restored, nothing.
    ///
    /// # Errors
    /// [`WalletError::TooFewAuthorities`] when no quorum gave its records in time; and when
    /// something could not be stored.
    pub async fn recover(self: &Arc<Self>, within: Duration) -> Result<Recovery, WalletError> {
        let deadline = Instant::now() + within;
        let mut recovery = Recovery::default();
        if self.with_blocking(|wallet| wallet.is_recovery_due()).await {
            self.catch_up(within / 2).await?;
            let (answers, records) = self.gather_records(deadline).await;
            recovery.answered = answers.count();
            answers.check_quorum()?;
            let look = |wallet: &mut Wallet| (records.uncounted(wallet), records);
            let (uncounted, records) = self.with_blocking(look).await;
            self.ask_counting(&uncounted, deadline).await?;
            let take = move |wallet: &mut Wallet| {
                // Another one may have been quicker.
                if !wallet.is_recovery_due() {
                    return Ok(Regained::default());
                }
                let regained = wallet.take_records(records)?;
                wallet.receive_genesis()?;
                wallet.end_recovery().map(|()| regained)
            };
            recovery.regained = self.with_blocking(take).await?;
            for payment in self.resume()? {
                let left = deadline.saturating_duration_since(Instant::now());
                self.settle(payment, left).await?;
            }
        }
        self.ask_states(deadline).await?;
        Ok(recovery)
    }

    /// Recovers, again and again until a quorum of authorities answers.
    pub async fn recover_at_last(self: Arc<Self>, within: Duration) {
        while let Err(error) = self.recover(within).await {
            tracing::warn!(%error, "the wallet was restored, and cannot pay yet");
            sleep(within).await;
        }
    }

    /// Asks for the states of all coins that may not be spent before.
    pub(super) async fn ask_states(self: &Arc<Self>, deadline: Instant) -> Result<(), WalletError> {
        let unasked = self.with_blocking(|wallet| wallet.unasked()).await;
        for inputs in unasked.chunks(REQUEST_ITEMS_MAX) {
            let inputs: Arc<[OutputId]> = inputs.into();
            let answers = self.states(Arc::clone(&inputs), deadline).await;
            let take = move |wallet: &mut Wallet| {
                let said = answers.said_to(wallet).to_vec();
                wallet.take_states(&inputs, &said)
            };
            self.with_blocking(take).await?;
        }
        Ok(())
    }

    /// Leaves records of receipts with the authorities that no quorum has yet.
    ///
    /// # Errors
    /// When it could not be noted.
    pub(super) async fn store_receipts(
        self: &Arc<Self>,
        within: Duration,
    ) -> Result<(), WalletError> {
        let deadline = Instant::now() + within;
        let unstored = self.with_blocking(|wallet| wallet.unstored(RECEIPTS_MAX)).await;
        let mut stored: Vec<TxId> = Vec::new();
        for (tx, record) in unstored {
            let store = move |in_force: Arc<InForce>, to| {
                let request = WalletRequest::Store(Box::new(record.clone()));
                async move {
                    let reply = in_force.authorities.ask(to, request).await;
                    (reply == WalletReply::Done).then_some(())
                }
            };
            let answers = self.gather(deadline, store).await;
            if answers.check_quorum().is_ok() {
                stored.push(tx);
            }
        }
        self.with_blocking(move |wallet| wallet.end_storing(stored)).await
    }

    /// The authorities that gave all records that they keep of this wallet, and those that prove
    /// themselves of all that came.
    pub(super) async fn gather_records(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> (Answers<()>, GenuineRecords) {
        let genuine = Arc::new(Mutex::new(GenuineRecords::default()));
        let (service, all) = (Arc::clone(self), Arc::clone(&genuine));
        let ask =
            move |in_force, to| Arc::clone(&service).records_of(in_force, to, Arc::clone(&all));
        let answers = self.gather(deadline, ask).await;
        let genuine = std::mem::take(&mut *genuine.lock());
        (answers, genuine)
    }

    /// Adds all records that one authority keeps of this wallet, checked page by page: what proves
    /// nothing is not kept until the others are there. `None` where it says something else.
    async fn records_of(
        self: Arc<Self>,
        in_force: Arc<InForce>,
        to: ReplicaId,
        genuine: Arc<Mutex<GenuineRecords>>,
    ) -> Option<()> {
        let mut after: Option<RecordName> = None;
        for _ in 0..PAGES_MAX {
            let request = WalletRequest::Records { after };
            let reply = in_force.authorities.ask(to, request).await;
            let WalletReply::Records { records, more } = reply else { return None };
            let last = records.last().and_then(|record| record.name(&in_force.network));
            let genuine = Arc::clone(&genuine);
            let add = move |wallet: &mut Wallet| wallet.add_genuine(records, &mut genuine.lock());
            self.with_blocking(add).await;
            // One that does not come on lies.
            if !more || last <= after {
                return Some(());
            }
            after = last;
        }
        Some(())
    }
}
