//! The stores of a validator, and whether what they hold lets it sign.

use super::archive;
use crate::guard::{FileGuard, Guard};
use crate::marker::{self, KeyStatus, Marker};
use crate::{NodeConfig, NodeError};
use crossbeam_channel::Sender;
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::{
    DiskStore, Durability, Executor, Findings, Journal, Owner, RealDisk, Room, RoomyDisk,
    Safeguards, Snapshots,
};
use quorate_types::machine::Recovery;
use quorate_types::{NetworkId, Service};
use std::path::Path;

/// Stores that were opened, with the state that they held.
pub(super) struct Stores {
    pub(super) journal: Journal,
    pub(super) recovery: Recovery,
    pub(super) executor: Executor,
    pub(super) snapshots: Snapshots,
    pub(super) signs: bool,
    pub(super) findings: Findings,
    /// Told of every group; `None` where nothing is promised, or nothing more may be.
    pub(super) guard: Option<Box<dyn Guard>>,
    pub(super) room: Room,
}

/// ★ Tells whether the log of what the key signed is lost. It is noted before there is a log again:
/// the next start must not take that for the lost one.
fn note_loss(config: &NodeConfig, marker: &Marker, network: NetworkId) -> Result<bool, NodeError> {
    let lost = !config.learner && marker.is_lost(network, &config.data_dir.join("log"))?;
    if lost {
        warn_of_lost_disk(marker, config);
        if !mutants::active(Mutant::LossUnnoted) {
            marker.write(network, KeyStatus::Lost)?;
        }
    }
    Ok(lost)
}

impl Stores {
    pub(super) fn open(
        config: &NodeConfig,
        mut service: Box<dyn Service>,
        owner: &Owner,
    ) -> Result<Self, NodeError> {
        let network = owner.network;
        marker::check_notes(&config.key, &config.noted_key())?;
        let marker = Marker::beside(&config.noted_key());
        let lost = note_loss(config, &marker, network)?;
        // A learner promises nothing.
        let guard = match config.learner {
            true => None,
            false => Some(FileGuard::beside(&config.noted_key(), network, &owner.member)?),
        };
        let log = config.data_dir.join("log");
        let room = Room::open(&config.data_dir, &config.room_config())?;
        let open = |folder: &Path| {
            let disk = match config.durability {
                Durability::Fsync => RealDisk::open(folder),
                Durability::Os => RealDisk::open(folder).map(RealDisk::without_zeroing),
            };
            disk.map(|disk| RoomyDisk::new(disk, room.clone()))
        };
        let disk = open(&log)?;
        let bodies = open(&config.data_dir.join("bodies"))?;
        let snapshots = RealDisk::open(&config.data_dir.join("snapshots"))?;
        let snapshots = Snapshots::open(Box::new(snapshots), owner)?;
        let state = config.data_dir.join("state");
        let store = DiskStore::open_within(&state, owner, room.clone())?;
        service.limit_cache(config.state_cache_bytes);
        service.keep_provable(config.provable_bytes());
        let (mut executor, executed) =
            Executor::open(Box::new(store), service, config.executor_config())?;
        archive::open(&mut executor, config, owner, &room);
        let mut safeguards = Safeguards::default();
        // Neither is touched once the log is lost: it may be found again.
        let mut guard = guard.filter(|_| !lost).map(|guard| guard.within(&room));
        if let Some(guard) = &guard {
            tracing::debug!(guard = %guard.path().display(), remembers = ?guard.witnessed());
            safeguards.witnessed = guard.witnessed();
            safeguards.copy = Some(Box::new(open(&config.data_dir.join("promises"))?));
        }
        let (mut journal, mut recovery, findings) = Journal::open_guarded(
            Box::new(disk),
            Box::new(bodies),
            owner,
            config.log_config(),
            executed,
            safeguards,
        )?;
        recovery.snapshots = snapshots.on_disk();
        recovery.staged = snapshots.staged_chunks();
        tell_of(&findings, config);
        if let Some((guard, set_back)) = guard.as_mut().zip(findings.set_back) {
            guard.miss(set_back.mark)?;
        }
        guard = guard.filter(|_| findings.set_back.is_none());
        if !lost {
            // Before anything is signed, and after there is a log to find again.
            journal.begin()?;
            if let Some((guard, mark)) = guard.as_mut().zip(journal.committed()) {
                marker.write(network, KeyStatus::Used)?;
                guard.begin(mark)?;
            }
        }
        let signs = !config.follow_only && guard.is_some();
        let guard = guard.map(|guard| Box::new(guard) as Box<dyn Guard>);
        Ok(Self { journal, recovery, executor, snapshots, signs, room, findings, guard })
    }
}

/// Says what was damaged, and what came of it.
fn tell_of(findings: &Findings, config: &NodeConfig) {
    let Findings { set_back, records_damaged, promises_restored, bodies_damaged } = findings;
    if let Some(set_back) = set_back {
        tracing::warn!(
            committed = set_back.committed,
            found = set_back.found,
            data_dir = %config.data_dir.display(),
            "the log was set back: it lacks a record that had been committed to it. The validator \
             follows and serves but does not vote, for it cannot know what it voted for since: put \
             the newest data folder back byte for byte, or give it a new key in a new committee file"
        );
    }
    if *records_damaged > 0 {
        let promises = "promises from their copy, decided heights by the other members";
        tracing::warn!(records_damaged, promises_restored, promises, "the log is repaired");
    }
    if *bodies_damaged > 0 {
        tracing::warn!(bodies_damaged, "bodies are left out, and fetched again where needed");
    }
}

/// Puts a damaged state out of the way, so that the next start makes another; other errors are as
/// they were.
pub(super) fn set_state_aside(data_dir: &Path, error: NodeError) -> NodeError {
    let (state, aside) = (data_dir.join("state"), data_dir.join("state.damaged"));
    match error {
        NodeError::Storage(source) if source.is_damaged_state() && set_aside(&state, &aside) => {
            NodeError::StateSetAside { source, aside }
        }
        error => error,
    }
}

/// Renames a store, in the place of one that was set aside before: a folder, or an earlier
/// version's file. Returns `false` where it stays.
fn set_aside(state: &Path, aside: &Path) -> bool {
    if state.exists() {
        // What the state was is no better known than what it is.
        let archive = state.with_file_name("archive");
        if archive.exists() && std::fs::remove_dir_all(&archive).is_err() {
            return false;
        }
        let removed = std::fs::remove_dir_all(aside).or_else(|_| std::fs::remove_file(aside));
        if let Err(error) = removed
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return false;
        }
    }
    std::fs::rename(state, aside).is_ok()
}

/// ★ Notes beside the key that it must not sign in this network again, and in the data folder why;
/// whoever cannot note it stops.
pub(super) fn forfeit(
    config: &NodeConfig,
    network: NetworkId,
    failed: Sender<NodeError>,
) -> Box<dyn Fn(&str) + Send> {
    let marker = Marker::beside(&config.noted_key());
    let evidence = config.data_dir.join("contradiction.txt");
    Box::new(move |reason| {
        tracing::error!(
            reason,
            marker = %marker.path().display(),
            evidence = %evidence.display(),
            "this key signs no more in this network: the validator follows and serves but does not \
             vote; give it a new key in a new committee file"
        );
        let noted = marker.write(network, KeyStatus::Lost);
        if let Err(error) = std::fs::write(&evidence, format!("{reason}\n")) {
            tracing::warn!(%error, "cannot write {}", evidence.display());
        }
        if let Err(error) = noted {
            let _ = failed.send(error);
        }
    })
}

fn warn_of_lost_disk(marker: &Marker, config: &NodeConfig) {
    tracing::warn!(
        marker = %marker.path().display(),
        data_dir = %config.data_dir.display(),
        "this key was used before and its log is gone: the validator follows and serves but does not \
         vote, for it cannot know what it voted for; give it a new key in a new committee file"
    );
}

#[cfg(test)]
mod tests;
