//! The change of a load to the next epoch's authorities, as soon as their file is there.

use super::payers::{Clients, Payers};
use parking_lot::Mutex;
use quorate_node::payments::{AuthorityConfigError, read_network};
use quorate_payments::Network;
use quorate_types::Epoch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Time between two looks at the files.
const EVERY: Duration = Duration::from_secs(1);

/// What a follower is told, and says.
#[derive(Default)]
pub(super) struct Signals {
    /// Set while authorities are away, or certify nothing of what is under way.
    pub(super) trouble: AtomicBool,
    /// Orders that clients of former epochs sent again.
    pub(super) sent_again: Mutex<u64>,
    /// Reason for which the files of the network are not followed.
    pub(super) problem: Mutex<Option<String>>,
}

/// Looks for a newer epoch once a second while there is trouble, and replaces the connections when
/// there is one. Never ends by itself.
pub(super) async fn follow(
    path: PathBuf,
    payers: Arc<Payers>,
    clients: Arc<watch::Sender<Arc<Clients>>>,
    signals: Arc<Signals>,
) {
    loop {
        sleep(EVERY).await;
        if !signals.trouble.load(Ordering::Relaxed) {
            continue;
        }
        let known = clients.borrow().network().epoch();
        let path = path.clone();
        let looked = spawn_blocking(move || newer_network(&path, known)).await;
        let looked = looked.expect("reading a file does not panic");
        let next = looked.map_err(|error| error.to_string()).and_then(|found| {
            let connect = |network| Clients::connect(Arc::new(network), &payers);
            found.map(connect).transpose().map_err(|error| error.to_string())
        });
        let problem = match next {
            Ok(Some(next)) => {
                let former = clients.send_replace(Arc::new(next));
                *signals.sent_again.lock() += former.sent_again();
                None
            }
            Ok(None) => None,
            Err(problem) => Some(problem),
        };
        *signals.problem.lock() = problem;
    }
}

/// The network in its newest epoch, where that is newer than the one that is known.
fn newer_network(path: &Path, known: Epoch) -> Result<Option<Network>, AuthorityConfigError> {
    let network = read_network(path)?;
    Ok((network.epoch() > known).then_some(network))
}
