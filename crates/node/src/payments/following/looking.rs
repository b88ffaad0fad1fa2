//! Asking a network's authorities for later epochs.

use super::{FollowError, NetworkFollower};
use crate::payments::PayClient;
use crate::unix_ms;
use parking_lot::Mutex;
use quorate_crypto::{Bitmap, IdentitySecret};
use quorate_payments::{Network, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};

/// What asking a network's authorities came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// A later epoch is known now.
    Later,
    /// A quorum knows of no later epoch.
    InForce,
    /// Too few authorities answered.
    Unanswered,
}

/// Asks all authorities of the newest epoch for later ones, once, until one shows a change, a
/// quorum knows none, or the time is over. `ask` asks one of them, for ever if need be.
///
/// # Errors
/// As [`NetworkFollower::take`].
pub async fn look_for_changes<F>(
    follower: &Arc<Mutex<NetworkFollower>>,
    ask: impl Fn(ReplicaId, WalletRequest) -> F,
    within: Duration,
) -> Result<Followed, FollowError>
where
    F: Future<Output = WalletReply> + Send + 'static,
{
    let deadline = Instant::now() + within;
    let (network, request) = {
        let follower = follower.lock();
        (Arc::clone(follower.network()), follower.request())
    };
    let committee = network.committee();
    let mut asking = JoinSet::new();
    for to in committee.members() {
        let reply = ask(to, request.clone());
        asking.spawn(async move { (to, reply.await) });
    }
    let mut answered = BTreeSet::new();
    while let Ok(Some(reply)) = timeout_at(deadline, asking.join_next()).await {
        let Ok((from, WalletReply::Changes(changes))) = reply else { continue };
        let (follower, asked) = (Arc::clone(follower), network.epoch());
        let take = move || follower.lock().take((asked, from), changes, unix_ms());
        if spawn_blocking(take).await.expect("taking a change in does not panic")? {
            return Ok(Followed::Later);
        }
        answered.insert(from.index());
        let who = Bitmap::from_indices(committee.size(), answered.iter().copied());
        if committee.weight_of(&who) >= committee.quorum() {
            return Ok(Followed::InForce);
        }
    }
    Ok(Followed::Unanswered)
}

/// Network of a file, in the newest epoch that the changes beside it and its authorities lead to;
/// what these show is written beside it. Asks for as long as `within` at most.
///
/// # Errors
/// Why the network is not read, or not followed.
pub async fn follow_network(
    path: &Path,
    secret: &IdentitySecret,
    within: Duration,
) -> Result<Arc<Network>, FollowError> {
    let deadline = Instant::now() + within;
    let follower = Arc::new(Mutex::new(NetworkFollower::open(path)?));
    loop {
        let network = Arc::clone(follower.lock().network());
        let client = PayClient::start(Arc::clone(&network), secret)?;
        let ask = |to, request| {
            let client = client.clone();
            async move { client.ask(to, request).await }
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if look_for_changes(&follower, ask, left).await? != Followed::Later {
            return Ok(network);
        }
    }
}
