//! Files of a network: the one that founded it, and the changes beside it.

use super::config::{AuthorityConfigError, read_toml};
use super::epochs::{change_beside, read_change};
use parking_lot::Mutex;
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::change::{Change, ChangeError};
use quorate_payments::{Network, NetworkFile, ORDER_BYTES_MAX};
use quorate_types::Epoch;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes of changes in one answer.
const ANSWER_BYTES: usize = ORDER_BYTES_MAX;

/// The epochs of a network as the files in one place tell them: each is the change of the one
/// before, signed by enough of both.
#[derive(Clone, Debug)]
pub struct NetworkChain {
    path: PathBuf,
    founding: Arc<Network>,
    /// Each change with the network that it leads to, in the order of their epochs.
    changes: Vec<(Change, Arc<Network>)>,
}

impl NetworkChain {
    /// Reads and checks a network file, and follows the changes beside it ([`change_beside`]) to
    /// the newest epoch.
    ///
    /// # Errors
    /// When one of them cannot be read or is refused.
    pub fn open(path: &Path) -> Result<Self, AuthorityConfigError> {
        let mut chain = Self::founding(path)?;
        chain.read_on(Epoch(u64::MAX))?;
        Ok(chain)
    }

    fn founding(path: &Path) -> Result<Self, AuthorityConfigError> {
        let file: NetworkFile = read_toml(path)?;
        let path = path.to_owned();
        let network = Network::load(&file).map_err(|source| {
            let path = path.clone();
            AuthorityConfigError::Network { path, source }
        })?;
        Ok(Self { path, founding: Arc::new(network), changes: Vec::new() })
    }

    /// Follows the changes that are beside the network file, as far as those of epochs before
    /// `end`; what was read stays, whatever became of its file.
    ///
    /// # Errors
    /// When one of them cannot be read or is refused.
    pub fn read_on(&mut self, end: Epoch) -> Result<(), AuthorityConfigError> {
        loop {
            let next = self.newest().epoch().next();
            let beside = change_beside(&self.path, next);
            if next >= end || !beside.exists() {
                return Ok(());
            }
            let change = read_change(&beside)?;
            let network = self
                .newest()
                .succeed(&change)
                .map_err(|source| AuthorityConfigError::Change { path: beside, source })?;
            self.changes.push((change, Arc::new(network)));
        }
    }

    /// Goes on to the network of a change that was checked, and is beside the network file.
    pub(super) fn push(&mut self, change: Change, next: Network) {
        self.changes.push((change, Arc::new(next)));
    }

    /// Network of the newest epoch that is known.
    #[must_use]
    pub fn newest(&self) -> &Arc<Network> {
        self.changes.last().map_or(&self.founding, |(_, network)| network)
    }

    /// Networks of all epochs that are known, in their order.
    pub(super) fn networks(&self) -> impl DoubleEndedIterator<Item = &Arc<Network>> {
        let later = self.changes.iter().map(|(_, network)| network);
        std::iter::once(&self.founding).chain(later)
    }

    /// Returns `true` if this key is an authority's of an epoch that is known, not before `since`.
    pub(super) fn has_authority(&self, key: IdentityKey, since: Epoch) -> bool {
        let mut later = self.networks().rev().take_while(|network| network.epoch() >= since);
        later.any(|network| network.committee().find(&key).is_some())
    }

    /// The last change and the network of the epoch that it ended; `None` in the founding epoch.
    pub(super) fn last_change(&self) -> Option<(&Change, &Arc<Network>)> {
        let (change, _) = self.changes.last()?;
        let before = self.changes.iter().nth_back(1);
        Some((change, before.map_or(&self.founding, |(_, network)| network)))
    }

    /// Path of the network file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Path of the file of the newest epoch.
    pub(super) fn newest_path(&self) -> PathBuf {
        let epoch = self.newest().epoch();
        if self.changes.is_empty() { self.path.clone() } else { change_beside(&self.path, epoch) }
    }

    /// Changes to the epochs after this one, in their order: as many as an answer has room for, at
    /// least one if there is one.
    pub(super) fn after(&self, epoch: Epoch) -> Vec<Change> {
        let mut bytes = 0;
        let later = self.changes.iter().map(|(change, _)| change);
        let later = later.filter(|change| change.next.epoch > epoch);
        let fitting = later.take_while(|change| {
            let is_first = bytes == 0;
            bytes += borsh::object_length(change).expect("a change has a length");
            is_first || bytes <= ANSWER_BYTES
        });
        fitting.cloned().collect()
    }
}

/// Time between two looks for changes beside a network file: strangers' requests have them made,
/// and a file that is refused is read each time.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A chain that goes on as changes are put beside the network file.
#[derive(Debug)]
pub(super) struct WatchedChain(Mutex<(NetworkChain, Instant)>);

impl WatchedChain {
    pub(super) fn new(chain: NetworkChain) -> Self {
        Self(Mutex::new((chain, Instant::now())))
    }

    /// Reads from the chain as it was a moment ago, or is now.
    pub(super) fn look<T>(&self, read: impl FnOnce(&NetworkChain) -> T) -> T {
        let (chain, looked) = &mut *self.0.lock();
        if looked.elapsed() >= LOOK_EVERY {
            *looked = Instant::now();
            if let Err(error) = chain.read_on(Epoch(u64::MAX)) {
                tracing::debug!(%error, "a change beside the network file is shown to nobody");
            }
        }
        read(chain)
    }
}

/// The network of the next epoch, if enough have signed the change to it (★).
pub(super) fn succeed(network: &Network, change: &Change) -> Result<Network, ChangeError> {
    if mutants::active(Mutant::PayFollowUnsigned) {
        return network.load_next(&change.next);
    }
    network.succeed(change)
}

/// Reads and checks a network file and the changes beside it, as [`NetworkChain::open`] does.
///
/// # Errors
/// When one of them cannot be read or is refused.
pub fn read_network(path: &Path) -> Result<Network, AuthorityConfigError> {
    read_network_before(path, Epoch(u64::MAX))
}

/// The same, of the newest epoch before `end`.
///
/// # Errors
/// When one of the files cannot be read or is refused.
pub fn read_network_before(path: &Path, end: Epoch) -> Result<Network, AuthorityConfigError> {
    let mut chain = NetworkChain::founding(path)?;
    chain.read_on(end)?;
    Ok(Network::clone(chain.newest()))
}

/// The file of an epoch: the network file itself, or that of the change beside it.
///
/// # Errors
/// When it cannot be read.
pub fn read_network_file(path: &Path, epoch: Epoch) -> Result<NetworkFile, AuthorityConfigError> {
    let founding: NetworkFile = read_toml(path)?;
    if founding.epoch == epoch {
        return Ok(founding);
    }
    Ok(read_change(&change_beside(path, epoch))?.next)
}
