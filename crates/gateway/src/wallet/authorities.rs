//! Authorities as a wallet's service reaches them, and the way from one epoch's to the next one's.

use parking_lot::Mutex;
use quorate_node::NodeError;
use quorate_node::payments::{NetworkFollower, PayClient};
use quorate_payments::{Network, Note, PaymentOutcome, Transaction, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::pin::Pin;
use std::sync::Arc;

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

/// An epoch's network, and the way to its authorities.
pub(super) struct InForce {
    pub(super) network: Arc<Network>,
    pub(super) authorities: Arc<dyn Authorities>,
}

/// Way to the authorities of a network's epoch.
pub type Connect =
    Box<dyn Fn(Arc<Network>) -> Result<Arc<dyn Authorities>, NodeError> + Send + Sync>;

/// What is needed to go from one epoch to the next.
pub(super) struct Following {
    pub(super) follower: Arc<Mutex<NetworkFollower>>,
    pub(super) connect: Connect,
    /// Reason that nothing is followed.
    pub(super) trouble: Mutex<Option<String>>,
    /// Taken by whoever looks: one at a time.
    pub(super) looking: tokio::sync::Mutex<()>,
}

impl Following {
    pub(super) fn new(follower: NetworkFollower, connect: Connect) -> Self {
        let (trouble, looking) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { follower: Arc::new(Mutex::new(follower)), connect, trouble, looking }
    }
}
