//! Asking the authorities for what a restored wallet does not know, and leaving with them what it
//! would need then.

use super::regain::GenuineRecords;
use super::{PaymentService, Regained, Wallet, WalletError};
use parking_lot::Mutex;
use quorate_payments::{
    CoinStatus, OutputId, REQUEST_ITEMS_MAX, RecordName, TxId, WalletReply, WalletRequest,
};
use quorate_types::ReplicaId;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

/// Time that other authorities get once a quorum answered: what only they keep would be missed.
const OTHERS: Duration = Duration::from_secs(2);

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
            let (answers, records) = self.gather_records(deadline).await;
            recovery.answered = answers.len();
            self.check_quorum(&answers)?;
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
            self.with_blocking(move |wallet| wallet.take_states(&inputs, &answers)).await?;
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
            let store = move |service: Arc<Self>, to| {
                let request = WalletRequest::Store(Box::new(record.clone()));
                async move {
                    let reply = service.authorities().ask(to, request).await;
                    (reply == WalletReply::Done).then_some(())
                }
            };
            let answers = self.gather(deadline, store).await;
            if self.check_quorum(&answers).is_ok() {
                stored.push(tx);
            }
        }
        self.with_blocking(move |wallet| wallet.end_storing(stored)).await
    }

    /// Answers of all authorities: of all in time, or of a quorum and who else answers soon after.
    pub(super) async fn gather<T, F>(
        self: &Arc<Self>,
        mut deadline: Instant,
        ask: impl Fn(Arc<Self>, ReplicaId) -> F,
    ) -> Vec<(ReplicaId, T)>
    where
        T: Send + 'static,
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let network = self.network();
        let mut asking = JoinSet::new();
        for to in network.committee().members() {
            let answer = ask(Arc::clone(self), to);
            asking.spawn(async move { (to, answer.await) });
        }
        let mut answers = Vec::new();
        let mut is_quorum = false;
        while let Ok(Some(answer)) = timeout_at(deadline, asking.join_next()).await {
            if let Ok((from, Some(answer))) = answer {
                answers.push((from, answer));
            }
            if !is_quorum && self.check_quorum(&answers).is_ok() {
                is_quorum = true;
                deadline = deadline.min(Instant::now() + OTHERS);
            }
        }
        answers
    }

    fn check_quorum<T>(&self, answers: &[(ReplicaId, T)]) -> Result<(), WalletError> {
        let network = self.network();
        let committee = network.committee();
        let who = answers.iter().map(|(from, _)| from.index());
        let who = quorate_crypto::Bitmap::from_indices(committee.size(), who);
        if committee.weight_of(&who) >= committee.quorum() {
            return Ok(());
        }
        let (answered, of) = (answers.len(), committee.size());
        Err(WalletError::TooFewAuthorities { answered, of })
    }

    /// The authorities that gave all records that they keep of this wallet, and those that prove
    /// themselves of all that came.
    pub(super) async fn gather_records(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> (Vec<(ReplicaId, ())>, GenuineRecords) {
        let genuine = Arc::new(Mutex::new(GenuineRecords::default()));
        let all = Arc::clone(&genuine);
        let ask = move |service: Arc<Self>, to| service.records_of(to, Arc::clone(&all));
        let answers = self.gather(deadline, ask).await;
        let genuine = std::mem::take(&mut *genuine.lock());
        (answers, genuine)
    }

    /// Adds all records that one authority keeps of this wallet, checked page by page: what proves
    /// nothing is not kept until the others are there. `None` where it says something else.
    async fn records_of(
        self: Arc<Self>,
        to: ReplicaId,
        genuine: Arc<Mutex<GenuineRecords>>,
    ) -> Option<()> {
        let mut after: Option<RecordName> = None;
        for _ in 0..PAGES_MAX {
            let request = WalletRequest::Records { after };
            let WalletReply::Records { records, more } = self.authorities().ask(to, request).await
            else {
                return None;
            };
            let last = records.last().and_then(|record| record.name(&self.network()));
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

    pub(super) async fn states_of(
        self: Arc<Self>,
        to: ReplicaId,
        inputs: &[OutputId],
    ) -> Option<Vec<CoinStatus>> {
        loop {
            let request = WalletRequest::Coins(inputs.to_vec());
            match self.authorities().ask(to, request).await {
                WalletReply::Coins(states) if states.len() == inputs.len() => return Some(states),
                WalletReply::Refused(_) => return None,
                _ => sleep(OTHERS).await,
            }
        }
    }
}
