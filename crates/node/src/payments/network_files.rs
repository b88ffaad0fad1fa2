//! Files of a network: the one that founded it, and the changes beside it.

use super::config::{AuthorityConfigError, read_toml};
use super::epochs::{change_beside, read_change};
use quorate_payments::{Network, NetworkFile};
use quorate_types::Epoch;
use std::path::Path;

/// Reads and checks a network file, and follows the changes beside it ([`change_beside`]) to the
/// newest epoch.
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
    let file: NetworkFile = read_toml(path)?;
    let mut network = Network::load(&file)
        .map_err(|source| AuthorityConfigError::Network { path: path.to_owned(), source })?;
    loop {
        let epoch = network.epoch().next();
        let beside = change_beside(path, epoch);
        if epoch >= end || !beside.exists() {
            return Ok(network);
        }
        let change = read_change(&beside)?;
        network = network
            .succeed(&change)
            .map_err(|source| AuthorityConfigError::Change { path: beside, source })?;
    }
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
