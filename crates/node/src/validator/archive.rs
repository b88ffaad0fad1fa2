//! The archive of a validator: states of heights that are over.

use crate::NodeConfig;
use quorate_storage::{Executor, Owner, Room, StorageError};

/// Has an executor keep an archive, as it is configured.
///
/// # Errors
/// When its folder cannot be written.
#[cfg(feature = "history")]
pub(super) fn open(
    executor: &mut Executor,
    config: &NodeConfig,
    owner: &Owner,
    room: &Room,
) -> Result<(), StorageError> {
    use quorate_storage::history::DiskHistory;
    use std::sync::Arc;

    let folder = config.data_dir.join("archive");
    let Some(bounds) = config.history_config().filter(|_| executor.is_asked_of_the_past()) else {
        return Ok(());
    };
    let history = DiskHistory::open(&folder, owner, bounds, room.clone())?;
    executor.keep_history(Arc::new(history));
    Ok(())
}

/// This program was built without archives.
///
/// # Errors
/// None.
#[cfg(not(feature = "history"))]
pub(super) fn open(
    _: &mut Executor,
    config: &NodeConfig,
    _: &Owner,
    _: &Room,
) -> Result<(), StorageError> {
    if config.archive == crate::Archive::All {
        tracing::warn!("archive = \"all\" has no effect: this program was built without archives");
    }
    Ok(())
}
