//! Service of a wallet: payments go to the authorities in the background, and callers wait for
//! their outcomes.

use super::authorities::{Authorities, Connect, Following, InForce};
use super::ordering::ReleaseOrdering;
use super::{Order, Orderer, Payment, PaymentState, Wallet, WalletError};
use parking_lot::Mutex;
use quorate_node::NodeError;
use quorate_node::payments::{NetworkFollower, PayClient};
use quorate_payments::{Network, TxId};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};

/// A wallet with its connections to the authorities. Shared; to be used inside a tokio runtime.
pub struct PaymentService {
    wallet: Mutex<Wallet>,
    in_force: watch::Sender<Arc<InForce>>,
    following: Option<Following>,
    ordering: Option<Arc<dyn ReleaseOrdering>>,
    /// Payments under way. The sender goes when the outcome is stored, or could not be.
    under_way: Mutex<BTreeMap<TxId, watch::Receiver<()>>>,
}

impl PaymentService {
    /// A service that has sent nothing yet, with a committee that orders releases where one is
    /// known. It stays in the wallet's epoch.
    #[must_use]
    pub fn new(
        wallet: Wallet,
        authorities: Arc<dyn Authorities>,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
    ) -> Arc<Self> {
        Arc::new(Self::assemble(wallet, authorities, ordering, None))
    }

    fn assemble(
        wallet: Wallet,
        authorities: Arc<dyn Authorities>,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
        following: Option<Following>,
    ) -> Self {
        let network = Arc::clone(wallet.network());
        let (in_force, _) = watch::channel(Arc::new(InForce { network, authorities }));
        let (wallet, under_way) = (Mutex::new(wallet), Mutex::default());
        Self { wallet, in_force, following, ordering, under_way }
    }

    /// Network that the wallet pays in, in the epoch that it knows to be in force.
    #[must_use]
    pub fn network(&self) -> Arc<Network> {
        Arc::clone(&self.in_force().network)
    }

    pub(super) fn in_force(&self) -> Arc<InForce> {
        Arc::clone(&self.in_force.borrow())
    }

    pub(super) fn following(&self) -> Option<&Following> {
        self.following.as_ref()
    }

    /// Goes on with the authorities of a later epoch: payments under way are shown to them.
    pub(super) fn enter(&self, next: InForce) {
        self.wallet.lock().enter(Arc::clone(&next.network));
        self.in_force.send_replace(Arc::new(next));
    }

    /// Tells whether a payment is under way.
    pub(super) fn is_paying(&self) -> bool {
        !self.under_way.lock().is_empty()
    }

    /// Tells whether a committee is known that orders releases.
    #[must_use]
    pub fn releases(&self) -> bool {
        self.ordering.is_some()
    }

    pub(super) fn ordering(&self) -> Option<&dyn ReleaseOrdering> {
        self.ordering.as_deref()
    }

    /// Opens a payer's connections to the authorities in the background, and serves a wallet by
    /// them, in the network's newest epoch; releases are ordered by the committee that is given.
    ///
    /// # Errors
    /// When the key is refused by the TLS library.
    pub fn connect(
        wallet: Wallet,
        follower: NetworkFollower,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
    ) -> Result<Arc<Self>, NodeError> {
        let secret = wallet.secret.clone();
        let connect = move |network| -> Result<Arc<dyn Authorities>, NodeError> {
            Ok(Arc::new(PayClient::start(network, &secret)?))
        };
        Self::follow(wallet, follower, Box::new(connect), ordering)
    }

    /// As [`PaymentService::connect`], with a way of its own to the authorities of each epoch.
    ///
    /// # Errors
    /// When that way is not found.
    pub fn follow(
        mut wallet: Wallet,
        follower: NetworkFollower,
        connect: Connect,
        ordering: Option<Arc<dyn ReleaseOrdering>>,
    ) -> Result<Arc<Self>, NodeError> {
        wallet.enter(Arc::clone(follower.network()));
        let authorities = connect(Arc::clone(wallet.network()))?;
        let following = Some(Following::new(follower, connect));
        let service = Arc::new(Self::assemble(wallet, authorities, ordering, following));
        tokio::spawn(Self::follow_for_ever(Arc::downgrade(&service)));
        Ok(service)
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

    /// Shows a payment to the authorities, to those of the next epoch once that is in force, until
    /// its outcome is known and stored. One that its release was decided for meanwhile has not
    /// lost, and goes on.
    async fn show(self: &Arc<Self>, payment: &Payment) -> Result<(), WalletError> {
        let tx = payment.id;
        let mut epochs = self.in_force.subscribe();
        loop {
            let in_force = Arc::clone(&epochs.borrow_and_update());
            let (note, is_due) = {
                let wallet = self.wallet.lock();
                (wallet.note(payment), wallet.state.is_due(payment))
            };
            let transaction = Arc::clone(&payment.transaction);
            let shown = match is_due {
                true => in_force.authorities.claim(transaction, note),
                false => in_force.authorities.pay(transaction, note),
            };
            let outcome = tokio::select! {
                outcome = shown => outcome,
                _ = epochs.changed() => continue,
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
