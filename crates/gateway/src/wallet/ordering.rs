//! Order of releases that a committee keeps, as a wallet finds it: by its file, and connected to
//! only when something is to be released.

use parking_lot::Mutex;
use quorate_node::payments::{CommitteeError, ReleaseCommittee};
use quorate_payments::release::{ReleaseStep, Standing};
use quorate_payments::{Network, OutputId};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::spawn_blocking;

/// Failure to have a release ordered, or to read how it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderingError {
    /// The committee's rules are against it.
    #[error("the committee refuses the release: {0}")]
    Refused(String),
    /// Its files are refused.
    #[error("the committee of releases cannot be asked: {0}")]
    Unknown(String),
    /// Too few members answered, or what they answered is not proven.
    #[error("the committee did not answer, and the same command goes on from here: {0}")]
    Unanswered(String),
}

/// Future of a committee's answer.
pub type PendingAnswer<'a, T> = Pin<Box<dyn Future<Output = Result<T, OrderingError>> + Send + 'a>>;

/// Order of releases, kept by a committee. What it answers is proven to come from the committee's
/// state (★): a refund is signed for it.
pub trait ReleaseOrdering: Send + Sync {
    /// Has a step ordered and executed; may take for ever.
    fn submit(&self, step: ReleaseStep) -> PendingAnswer<'_, ()>;

    /// Standing of a coin; may take for ever.
    fn standing(&self, coin: OutputId) -> PendingAnswer<'_, Standing>;
}

/// The committee in a file; nobody is connected to before something is asked.
#[derive(Debug)]
pub struct ReleaseCommitteeFile {
    path: PathBuf,
    network: Arc<Network>,
    connected: Arc<Mutex<Option<Arc<ReleaseCommittee>>>>,
}

impl ReleaseCommitteeFile {
    /// The committee in this file, which is read when it is needed, and refused if it orders
    /// anything else than this network's releases.
    #[must_use]
    pub fn new(path: PathBuf, network: Arc<Network>) -> Self {
        Self { path, network, connected: Arc::default() }
    }

    /// A call of the committee, on a thread that may wait.
    async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&ReleaseCommittee) -> Result<T, CommitteeError> + Send + 'static,
    ) -> Result<T, OrderingError> {
        let (path, network) = (self.path.clone(), Arc::clone(&self.network));
        let connected = Arc::clone(&self.connected);
        let work = move || {
            let committee = connect(&mut connected.lock(), &path, &network)?;
            call(&committee).map_err(|error| explain(&error))
        };
        let called = spawn_blocking(work).await;
        called.map_err(|error| OrderingError::Unanswered(error.to_string()))?
    }
}

/// The client of the committee in a file, which is checked and connected to once.
fn connect(
    connected: &mut Option<Arc<ReleaseCommittee>>,
    path: &Path,
    network: &Network,
) -> Result<Arc<ReleaseCommittee>, OrderingError> {
    if let Some(committee) = connected {
        return Ok(Arc::clone(committee));
    }
    ReleaseCommittee::check(path, network)
        .map_err(|error| OrderingError::Unknown(error.to_string()))?;
    let committee = ReleaseCommittee::connect(path).map_err(|error| explain(&error))?;
    Ok(Arc::clone(connected.insert(Arc::new(committee))))
}

fn explain(error: &CommitteeError) -> OrderingError {
    match error {
        CommitteeError::Connect(_) => OrderingError::Unknown(error.to_string()),
        CommitteeError::TooLong(_) => OrderingError::Refused(error.to_string()),
        _ => OrderingError::Unanswered(error.to_string()),
    }
}

impl ReleaseOrdering for ReleaseCommitteeFile {
    fn submit(&self, step: ReleaseStep) -> PendingAnswer<'_, ()> {
        Box::pin(async move {
            let ordered = self.call(move |committee| committee.submit(&step)).await?;
            ordered.map(drop).map_err(OrderingError::Refused)
        })
    }

    fn standing(&self, coin: OutputId) -> PendingAnswer<'_, Standing> {
        let epoch = self.network.epoch();
        Box::pin(self.call(move |committee| Ok(committee.standing(coin)?.in_epoch(epoch))))
    }
}
