//! The end of an epoch at one shard of an authority.

use super::report::{Reporter, write_report};
use super::{PayEpochError, report_folder_of};
use crate::NodeError;
use crate::payments::AuthorityConfig;
use crate::payments::authority::open_stopped;
use quorate_crypto::KeyFile;
use quorate_payments::ReleaseEntry;
use quorate_payments::change::{Change, Closing};

/// Closes a shard of an authority that is stopped (★: durably, before it reports), for good, and
/// writes the report of what it locked in the epoch that the change ends. Done again, it writes the
/// same.
///
/// # Errors
/// When the change does not hold, or the disk fails.
pub fn close(
    config: &AuthorityConfig,
    keys: &KeyFile,
    change: &Change,
) -> Result<Closing, NodeError> {
    let mut open = open_stopped(config, keys, change.next.epoch)?;
    let network = open.network.clone();
    network.succeed(change).map_err(|source| {
        NodeError::from(PayEpochError::Change { epoch: change.next.epoch, source })
    })?;
    if !open.locks().spent().frozen().is_closed() {
        open.keep(&[ReleaseEntry::Close])?;
    }
    let folder = report_folder_of(config, &network);
    let reporter =
        Reporter { network: &network, identity: &keys.identity, place: (open.me, config.shard) };
    Ok(write_report(open.locks(), &folder, &reporter, change.next.digest())?)
}
