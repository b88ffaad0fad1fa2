//! The change of a load to the next epoch's authorities, as soon as the former ones show it, or its
//! file is there.

use super::payers::{Clients, Payers};
use parking_lot::Mutex;
use quorate_node::payments::{NetworkFollower, look_for_changes};
use quorate_payments::Network;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;

/// Time between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Longest wait for authorities' answers.
const ASK_WITHIN: Duration = Duration::from_secs(2);

/// What a follower is told, and says.
#[derive(Default)]
pub(super) struct Signals {
    /// Set while authorities are away, or certify nothing of what is under way.
    pub(super) trouble: AtomicBool,
    /// Orders that clients of former epochs sent again.
    pub(super) sent_again: Mutex<u64>,
    /// Reason for which the network is not followed.
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
    let mut follower = None;
    loop {
        sleep(EVERY).await;
        if !signals.trouble.load(Ordering::Relaxed) {
            continue;
        }
        let newest = newest(&path, &mut follower, &clients).await;
        let next = newest.and_then(|network| {
            let is_newer = network.epoch() > clients.borrow().network().epoch();
            let connected = is_newer.then(|| Clients::connect(network, &payers));
            connected.transpose().map_err(|error| error.to_string())
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

/// The network in the newest epoch that its files, or the authorities that are connected, show.
async fn newest(
    path: &Path,
    follower: &mut Option<Arc<Mutex<NetworkFollower>>>,
    clients: &watch::Sender<Arc<Clients>>,
) -> Result<Arc<Network>, String> {
    let follower = match follower {
        Some(follower) => follower,
        none => {
            let opened = NetworkFollower::open(path).map_err(|error| error.to_string())?;
            none.insert(Arc::new(Mutex::new(opened)))
        }
    };
    follower.lock().refresh().map_err(|error| error.to_string())?;
    let current = Arc::clone(&clients.borrow());
    if follower.lock().network().epoch() == current.network().epoch() {
        let hub = current.of(Payers::HUB);
        let ask = |to, request| {
            let hub = hub.clone();
            async move { hub.ask(to, request).await }
        };
        let looked = look_for_changes(follower, ask, ASK_WITHIN).await;
        looked.map_err(|error| error.to_string())?;
    }
    let network = Arc::clone(follower.lock().network());
    Ok(network)
}
