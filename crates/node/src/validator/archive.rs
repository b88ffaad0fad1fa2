//! The archive of a validator: states of heights that are over.

use crate::NodeConfig;
use quorate_storage::{Executor, Owner, Room};

/// Has an executor keep an archive, as it is configured. One that cannot be opened is left as it
/// is: nothing that a validator owes the others depends on it.
#[cfg(feature = "history")]
pub(super) fn open(executor: &mut Executor, config: &NodeConfig, owner: &Owner, room: &Room) {
    use quorate_storage::history::DiskHistory;
    use std::sync::Arc;

    let folder = config.data_dir.join("archive");
    let Some(bounds) = config.history_config().filter(|_| executor.is_asked_of_the_past()) else {
        return;
    };
    match DiskHistory::open(&folder, owner, bounds, room.clone()) {
        Ok(history) => executor.keep_history(Arc::new(history)),
        Err(error) => tracing::error!(
            %error,
            "there is no archive: only the last states can be read. Start again, or move {} away to \
             begin another",
            folder.display()
        ),
    }
}

/// This program was built without archives.
#[cfg(not(feature = "history"))]
pub(super) fn open(_: &mut Executor, config: &NodeConfig, _: &Owner, _: &Room) {
    if config.archive == crate::Archive::All {
        tracing::warn!("archive = \"all\" has no effect: this program was built without archives");
    }
}
