//! The beginning of an epoch at one shard of an authority.

use super::inheritance::{DiskInheritance, LayerWriter, ShardReports, is_whole, layer_folder};
use super::report::ClosedReport;
use super::{PayEpochError, epoch_folder, mark_name, owner_of};
use crate::NodeError;
use crate::payments::mark::Mark;
use crate::payments::{AuthorityConfig, AuthorityConfigError, read_network, read_network_before};
use quorate_crypto::KeyFile;
use quorate_crypto::mutants::{self, Mutant};
use quorate_payments::Network;
use quorate_payments::change::{Change, Counting};
use quorate_types::Epoch;
use std::path::PathBuf;

/// What an epoch began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Inputs that it inherits as locked.
    pub locked: u64,
    /// Transactions of the epoch that ended whose certificates count.
    pub admitted: u64,
    /// Inputs between several transactions, which nothing is voted for over.
    pub contested: u64,
}

/// Begins the epoch of a change at a shard, with reports of the epoch that ended, each in a folder:
/// of every shard a quorum's, or more (★). Writes what the shard inherits, and the mark that says
/// that it locked nothing yet. An authority that is one only in the newest epoch beside the network
/// file begins those before it too, one after the other, for what it inherits of them.
///
/// # Errors
/// When the change or a report does not hold, reports are too few, or it was begun before.
pub fn begin(
    config: &AuthorityConfig,
    keys: &KeyFile,
    change: &Change,
    folders: &[PathBuf],
) -> Result<Begun, NodeError> {
    let epoch = change.next.epoch;
    let ended = read_network_before(&config.network, epoch)?;
    let next = ended
        .succeed(change)
        .map_err(|source| NodeError::from(PayEpochError::Change { epoch, source }))?;
    let is_of = |network: &Network| network.committee().find(&keys.identity.public()).is_some();
    let votes = is_of(&next);
    // Whoever comes later inherits of every epoch before.
    if !votes && !is_of(&read_network(&config.network)?) {
        let (key, network) = (config.key.clone(), config.network.clone());
        return Err(AuthorityConfigError::NotAnAuthority { key, network }.into());
    }
    let folder = layer_folder(&config.data_dir, epoch);
    if is_whole(&config.data_dir, epoch) {
        return Err(PayEpochError::BegunBefore { folder, epoch }.into());
    }
    if folder.exists() {
        // Remains of an attempt that was interrupted: they are made again.
        let path = folder.clone();
        std::fs::remove_dir_all(&folder).map_err(|source| PayEpochError::Io { path, source })?;
    }
    check_memory(config, keys, &ended, epoch)?;
    let reports = open_reports(&ended, change, folders)?;
    let owner = owner_of(&next, keys.identity.public(), config.shard);
    let before = DiskInheritance::open(&config.data_dir, &ended, &owner)?;
    let shards = count(&ended, &reports)?;
    if votes {
        // Before the layer is whole, after which it does not begin again.
        let of_shard = (mark_name(&next), config.shard);
        Mark::beside(&config.key, of_shard, config.durability)?.begin_new()?;
    }
    let sizes = LayerWriter::begin(&config.data_dir, epoch, &owner, &before)?.write(&shards)?;
    let (locked, admitted, contested) = (sizes.locked, sizes.admitted, sizes.contested);
    Ok(Begun { locked, admitted, contested })
}

/// ★ Refuses an authority of the epoch that ended of which nothing is left: it may have begun, and
/// voted, before its disks were lost.
fn check_memory(
    config: &AuthorityConfig,
    keys: &KeyFile,
    ended: &Network,
    epoch: Epoch,
) -> Result<(), NodeError> {
    let is_newcomer = ended.committee().find(&keys.identity.public()).is_none();
    let data_dir = epoch_folder(&config.data_dir, ended);
    let of_shard = (mark_name(ended), config.shard);
    let mark = Mark::beside(&config.key, of_shard, config.durability)?;
    match mark.missing() {
        Some(mark) if !is_newcomer && !mutants::active(Mutant::PayBeginForgotten) => {
            let (ended, mark) = (ended.epoch(), mark.to_owned());
            Err(PayEpochError::Forgotten { ended, epoch, data_dir, mark }.into())
        }
        _ => Ok(()),
    }
}

/// Reports by shard.
fn open_reports(
    ended: &Network,
    change: &Change,
    folders: &[PathBuf],
) -> Result<Vec<Vec<ClosedReport>>, PayEpochError> {
    let mut by_shard: Vec<Vec<ClosedReport>> = (0..ended.shards()).map(|_| Vec::new()).collect();
    for folder in folders {
        let report = ClosedReport::open(folder, ended)?;
        let closing = *report.closing();
        if closing.next != change.next.digest() {
            let reason = "it ends the epoch for another change".into();
            return Err(PayEpochError::Report { folder: folder.clone(), reason });
        }
        let of_shard = &mut by_shard[usize::from(closing.shard)];
        if of_shard.iter().any(|other| other.closing().authority == closing.authority) {
            let (authority, shard) = (closing.authority.0, closing.shard);
            return Err(PayEpochError::Twice { authority, shard });
        }
        of_shard.push(report);
    }
    Ok(by_shard)
}

fn count<'a>(
    ended: &'a Network,
    reports: &'a [Vec<ClosedReport>],
) -> Result<Vec<ShardReports<'a>>, PayEpochError> {
    let weights = ended.committee().weights();
    let of_shard = |(shard, reports): (u16, &'a Vec<ClosedReport>)| {
        let reported = || reports.iter().map(|report| report.closing().authority);
        let counting = Counting::of(weights, reported()).ok_or_else(|| {
            let found = reported().map(|one| weights.of(one.index())).sum();
            PayEpochError::TooFew { shard, found, least: weights.quorum() }
        })?;
        Ok(ShardReports { reports, counting, weights })
    };
    (0..).zip(reports).map(of_shard).collect()
}
