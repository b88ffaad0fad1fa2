//! Service of a wallet: payments go to the authorities in the background, and callers wait for
//! their outcomes.

use super::ordering::ReleaseOrdering;
use super::{Order, Orderer, Payment, PaymentState, Wallet, WalletError};
use parking_lot::Mutex;
use quorate_node::NodeError;
use quorate_node::payments::PayClient;
use quorate_payments::{
    Network, Note, PaymentOutcome, Transaction, TxId, WalletReply, WalletRequest,
};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};

/// Future of a payment's outcome.
pub type PendingOutcome<'a> = Pin<Box<dyn Future<Output = PaymentOutcome> + Send + 'a>>;

/// Future of an authority's reply.
pub type PendingReply<'a> = Pin<Box<dyn Future<Output = WalletReply> + Send + 'a>>;

/// Connection to the authorities of a network, which shows them transactions.
pub trait Authorities: Send + Sync {
    /// Shows a stored transaction to all authorities until its outcome is known, with a note that
    /// each stores with it before it votes; may take for ever.
    fn pay(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_>;

    /// As [`Authorities::pay`], of a transaction that the release of its coins was decided for:
    /// those that did not hear of that yet are shown it again.
    fn claim(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_>;

    /// Asks one authority until it answers; may take for ever.
    fn ask(&self, to: ReplicaId, request: WalletRequest) -> PendingReply<'_>;
}

impl Authorities for PayClient {
    fn pay(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_> {
        Box::pin(self.pay_recorded(transaction, Some(note)))
    }

    fn claim(&self, transaction: Arc<Transaction>, note: Note) -> PendingOutcome<'_> {
        Box::pin(self.claim_recorded(transaction, note))
    }

    fn ask(&self, to: ReplicaId, request: WalletRequest) -> PendingReply<'_> {
        Box::pin(self.ask(to, request))
    }
}

/// A wallet with its connections to the authorities. Shared; to be used inside a tokio runtime.
pub struct PaymentService {
    network: Arc<Network>,
    wallet: Mutex<Wallet>,
    authorities: Arc<dyn Authorities>,
    ordering: Option<Arc<dyn ReleaseOrdering>>,
    /// Payments under way. The sender goes when the outcome is stored, or could not be.
    under_way: Mutex<BTreeMap<TxId, watch::Receiver<()>>>,
}

impl PaymentService {
    /// A service that has sent nothing yet, with a committee that orders releases where one is
    /// known.
    #[must_use]
    pub fn new(
        wallet: Wallet,
        authorities: Arc<dyn Authorities>,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
    ) -> Arc<Self> {
        let network = Arc::clone(wallet.network());
        let (wallet, under_way) = (Mutex::new(wallet), Mutex::default());
        Arc::new(Self { network, wallet, authorities, ordering, under_way })
    }

    /// Network that the wallet pays in.
    #[must_use]
    pub fn network(&self) -> Arc<Network> {
        Arc::clone(&self.network)
    }

    pub(super) fn authorities(&self) -> &dyn Authorities {
        &*self.authorities
    }

    pub(super) fn ordering(&self) -> Option<&dyn ReleaseOrdering> {
        self.ordering.as_deref()
    }

    /// Opens a payer's connections to the authorities in the background, and serves a wallet by
    /// them; releases are ordered by the committee that is given.
    ///
    /// # Errors
    /// When the key is refused by the TLS library.
    pub fn connect(
        wallet: Wallet,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
    ) -> Result<Arc<Self>, NodeError> {
        let client = PayClient::start(Arc::clone(&wallet.network), &wallet.secret)?;
        Ok(Self::new(wallet, Arc::new(client), ordering))
    }

    /// Looks at the wallet, or changes it. Not to be called where threads must not wait for the
    /// disk.
    pub fn with<T>(&self, look: impl FnOnce(&mut Wallet) -> T) -> T {
        look(&mut self.wallet.lock())
    }

    /// As [`PaymentService::with`], on a thread that may wait.
    pub async fn with_blocking<T: Send + 'static>(
        self: &Arc<Self>,
        look: impl FnOnce(&mut Wallet) -> T + Send + 'static,
    ) -> T {
        let service = Arc::clone(self);
        match spawn_blocking(move || service.with(look)).await {
            Ok(seen) => seen,
            // Its own panic, passed on; or the runtime ends, and this task with it.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Begins a payment, shows it to the authorities, and waits for its outcome as long as
    /// `timeout`. The payment goes on after that. Where it lost and only a release can free its
    /// coins, one is asked for, if a committee is known.
    ///
    /// # Errors
    /// As [`Wallet::begin`] and [`PaymentService::recover`]; and when the outcome could not be
    /// stored.
    pub async fn pay(
        self: &Arc<Self>,
        order: Order,
        key: Option<String>,
        timeout: Duration,
    ) -> Result<Payment, WalletError> {
        self.pay_for(order, key, None, timeout).await
    }

    /// As [`PaymentService::pay`], for somebody with a name and perhaps limits.
    ///
    /// # Errors
    /// As [`Wallet::begin_for`]; and when the outcome could not be stored.
    pub async fn pay_for(
        self: &Arc<Self>,
        order: Order,
        key: Option<String>,
        by: Option<Orderer>,
        timeout: Duration,
    ) -> Result<Payment, WalletError> {
        self.recover(timeout).await?;
        let begin =
            move |wallet: &mut Wallet| wallet.begin_for(&order, key.as_deref(), by.as_ref());
        let payment = self.with_blocking(begin).await?;
        // It keeps no payment waiting: what is not removed when that ends is the next time.
        let mut removing = JoinSet::new();
        let service = Arc::clone(self);
        removing.spawn(async move { service.remove_records(timeout).await });
        let (payment, stored) =
            tokio::join!(self.finish(payment.id, timeout), self.store_receipts(timeout));
        if let Err(error) = stored {
            tracing::warn!(%error, "receipts were not recorded with the authorities");
        }
        payment
    }

    /// Shows a payment that is not finished to the authorities, and waits for its outcome as long
    /// as `timeout`.
    ///
    /// # Errors
    /// [`WalletError::NoPayment`]; and when the outcome could not be stored.
    pub async fn settle(
        self: &Arc<Self>,
        tx: TxId,
        timeout: Duration,
    ) -> Result<Payment, WalletError> {
        if let Some(mut end) = self.send(tx)? {
            // Nothing is ever sent: the wait ends when the sender goes.
            let _ = tokio::time::timeout(timeout, end.changed()).await;
        }
        let look = move |wallet: &mut Wallet| {
            let payment = wallet.payment(tx)?;
            // Not known here, and perhaps known: the disk failed.
            if payment.state == PaymentState::Begun {
                wallet.check_usable()?;
            }
            Ok(payment)
        };
        self.with_blocking(look).await
    }

    /// Shows all payments that are not finished to the authorities again, and returns their names.
    ///
    /// # Errors
    /// Never, in a wallet that is sound.
    pub fn resume(self: &Arc<Self>) -> Result<Vec<TxId>, WalletError> {
        let open = self.with(|wallet| wallet.unfinished());
        open.into_iter().map(|(tx, _)| self.send(tx).map(|_| tx)).collect()
    }

    /// Has a payment under way, once. `None` when it is finished.
    fn send(self: &Arc<Self>, tx: TxId) -> Result<Option<watch::Receiver<()>>, WalletError> {
        let mut under_way = self.under_way.lock();
        if let Some(end) = under_way.get(&tx) {
            return Ok(Some(end.clone()));
        }
        // Looked up under the lock: else one that just ended would be sent again.
        let payment = self.wallet.lock().payment(tx)?;
        if payment.state != PaymentState::Begun {
            return Ok(None);
        }
        let (ended, end) = watch::channel(());
        under_way.insert(tx, end.clone());
        let service = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = service.show(&payment).await {
                tracing::error!(%error, payment = %tx, "the outcome of a payment was not stored");
            }
            service.under_way.lock().remove(&tx);
            drop(ended);
        });
        Ok(Some(end))
    }

    /// Shows a payment to the authorities until its outcome is known and stored. One that its
    /// release was decided for meanwhile has not lost, and goes on.
    async fn show(self: &Arc<Self>, payment: &Payment) -> Result<(), WalletError> {
        let tx = payment.id;
        loop {
            let (note, is_due) = {
                let wallet = self.wallet.lock();
                (wallet.note(payment), wallet.state.is_due(payment))
            };
            let transaction = Arc::clone(&payment.transaction);
            let outcome = match is_due {
                true => self.authorities.claim(transaction, note).await,
                false => self.authorities.pay(transaction, note).await,
            };
            let end = move |wallet: &mut Wallet| {
                wallet.end(tx, outcome).map(|ended| ended.state != PaymentState::Begun)
            };
            if self.with_blocking(end).await? {
                return Ok(());
            }
        }
    }
}
