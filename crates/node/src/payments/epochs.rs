//! The border between two epochs of a payment network, on disk (ADR 42).
//!
//! ```text
//! authority of e:    locks ──▶ close: durably, for good (★) ──▶ report: a folder of chunks, signed
//! authority of e+1:  reports of a quorum, every chunk checked (★) ──▶ a folder `inherited`
//! ```
//!
//! What an epoch locks is in a folder of its own, and its marks have names of their own: `data_dir`
//! in the epoch that the network was founded with, `data_dir/epoch-N` in later ones.

mod begin;
mod change_file;
mod close;
mod gather;
mod inheritance;
mod passes;
mod report;
mod shelf;
mod succession;

pub use begin::{Begun, begin};
pub use change_file::{change_beside, read_change, write_change};
pub use close::close;
pub use report::ClosedReport;

pub(super) use change_file::publish_change;
pub(super) use inheritance::DiskInheritance;
pub(super) use report::{Reporter, write_report};
pub(super) use shelf::ReportShelf;
pub use succession::{Beginning, Ended, NextEpoch};
pub(super) use succession::{Succession, network_in_force};

use super::{AuthorityConfig, AuthorityConfigError, read_network_before};
use quorate_crypto::IdentityKey;
use quorate_payments::change::ChangeError;
use quorate_payments::{LookupFailed, Network};
use quorate_storage::{Owner, Role, StorageError};
use quorate_types::{Epoch, NetworkId, ReplicaId};
use std::io;
use std::path::{Path, PathBuf};

/// Reason that an epoch is not ended, or not begun.
#[derive(Debug, thiserror::Error)]
pub enum PayEpochError {
    /// A change that does not hold.
    #[error("the change to epoch {epoch}: {source}")]
    Change {
        /// Epoch that it begins.
        epoch: Epoch,
        /// Rule that it breaks.
        source: ChangeError,
    },
    /// A report that is not what its authority signed, or for another change.
    #[error("the report in {folder}: {reason}", folder = folder.display())]
    Report {
        /// Folder of the report.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Reports of fewer authorities than a quorum.
    #[error(
        "reports of shard {shard} weigh {found}; an epoch begins with reports that weigh {least}: collect more"
    )]
    TooFew {
        /// Shard whose locks they are.
        shard: u16,
        /// Weight of those that are there.
        found: u64,
        /// Weight of a quorum.
        least: u64,
    },
    /// Two reports of one authority.
    #[error(
        "there are two reports of authority {authority} for shard {shard}: an honest one writes one. Use the one whose root the other operators have"
    )]
    Twice {
        /// Index of the authority.
        authority: u16,
        /// Shard whose locks they are.
        shard: u16,
    },
    /// An epoch that begins again.
    #[error("{folder} exists: epoch {epoch} was begun before", folder = folder.display())]
    BegunBefore {
        /// Folder of what was inherited.
        folder: PathBuf,
        /// The epoch.
        epoch: Epoch,
    },
    /// An epoch that was not begun.
    #[error("{folder} is missing or not whole: begin epoch {epoch} with the reports of the one before (quorate pay change begin)", folder = folder.display())]
    NotBegun {
        /// Folder in which what was inherited would be.
        folder: PathBuf,
        /// The epoch.
        epoch: Epoch,
    },
    /// A part of a report that an authority did not show.
    #[error("authority {authority} shows no such report, or did not answer")]
    NotGiven {
        /// Index of the authority.
        authority: u16,
    },
    /// A change that is another than the one beside the network file.
    #[error(
        "the committee ordered another change to epoch {epoch} than {path} holds: one of the two is not this network's", epoch = epoch.0,
        path = path.display()
    )]
    OtherChange {
        /// Epoch that both begin.
        epoch: Epoch,
        /// File of the change that was there.
        path: PathBuf,
    },
    /// Coins under release that cannot be looked up.
    #[error(transparent)]
    Lookup(#[from] LookupFailed),
    /// A key that may have voted in the epoch already.
    #[error(
        "nothing is left of epoch {ended} at this authority, neither locks in {data_dir} nor {mark}: whether it voted in epoch {epoch} before cannot be told. Whoever lost its disks is replaced, under a new key",
        data_dir = data_dir.display(), mark = mark.display()
    )]
    Forgotten {
        /// Epoch that ended.
        ended: Epoch,
        /// Epoch that begins.
        epoch: Epoch,
        /// Folder of its data.
        data_dir: PathBuf,
        /// File of the mark that is missing.
        mark: PathBuf,
    },
    /// Locks that are still in memory.
    #[error("the locks were not all moved to the disk: close again")]
    NotSettled,
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Refusal of the storage: a file is damaged, somebody else's, or the disk failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Folder of what an authority's shard keeps in an epoch.
pub(super) fn epoch_folder(data_dir: &Path, network: &Network) -> PathBuf {
    if network.is_founding() {
        data_dir.to_owned()
    } else {
        later_folder(data_dir, network.epoch())
    }
}

/// Folder of an epoch after the first.
fn later_folder(data_dir: &Path, epoch: Epoch) -> PathBuf {
    data_dir.join(format!("epoch-{}", epoch.0))
}

/// Folder of another authority's report, for the epoch that begins with it.
fn gathered_folder(data_dir: &Path, begins: Epoch, place: (ReplicaId, u16)) -> PathBuf {
    let (authority, shard) = place;
    later_folder(data_dir, begins).join("reports").join(format!("{shard}-{}", authority.0))
}

/// Name of an epoch's marks: the network's in the epoch that it was founded with, the epoch's own
/// in later ones (★: marks count what one epoch locked).
pub(super) fn mark_name(network: &Network) -> NetworkId {
    if network.is_founding() { network.id() } else { NetworkId(network.scope().epoch.0) }
}

/// Owner of what a shard keeps in an epoch.
pub(super) fn owner_of(network: &Network, member: IdentityKey, shard: u16) -> Owner {
    let scheme = network.scheme();
    let protocol = if network.is_founding() {
        scheme.to_string()
    } else {
        format!("{scheme} of epoch {}", network.epoch().0)
    };
    let (network, role) = (network.id(), Role::Shard(shard));
    Owner { formerly: Vec::new(), network, member, role, protocol }
}

/// Folder of the report by which a shard ends the epoch before `end`.
///
/// # Errors
/// When the network's files cannot be read.
pub fn report_folder(
    config: &AuthorityConfig,
    end: Epoch,
) -> Result<PathBuf, AuthorityConfigError> {
    Ok(report_folder_of(config, &read_network_before(&config.network, end)?))
}

/// Folder of the report that a shard closes an epoch with.
pub(super) fn report_folder_of(config: &AuthorityConfig, network: &Network) -> PathBuf {
    epoch_folder(&config.data_dir, network).join("report")
}

#[cfg(test)]
mod tests;
