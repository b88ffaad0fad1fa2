//! Import of a state into the data folder of a member of the network that is founded on it.

use super::check::install;
use super::{Founded, RescueError, StateFile};
use crate::NodeConfig;
use quorate_crypto::IdentityKey;
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::{DiskStore, Executor, Journal, Owner, RealDisk, Role, Snapshots};
use quorate_types::{Committee, ExportedState, Service, put_in_force};
use std::path::Path;

/// Puts the state in a file where a validator that never ran begins with it: durably, and the note
/// that it is there last. It is that state which the committee file names (★), to the byte, and
/// `service` comes to the root that it has. Interrupted, it is done again from the beginning.
///
/// # Errors
/// [`RescueError::OtherState`], [`RescueError::Begun`] and others, each a sentence.
pub fn import(
    config: &NodeConfig,
    member: IdentityKey,
    mut service: Box<dyn Service>,
    path: &Path,
) -> Result<ExportedState, RescueError> {
    let founding = config.read_committee_file()?;
    let committee = config.load_committee()?;
    let mut file = StateFile::open(path)?;
    let Some(from) = founding.from_state else {
        return Err(RescueError::FromNothing { path: config.committee.clone() });
    };
    if file.state.from_state() != from && !mutants::active(Mutant::BeginWithOtherState) {
        return Err(RescueError::OtherState {
            path: path.to_owned(),
            committee: config.committee.clone(),
            found: Box::new(file.state.from_state()),
            named: Box::new(from),
        });
    }
    put_in_force(service.as_mut(), config.execution_version)?;
    refuse_begun(&config.data_dir)?;
    let owner = owner(config, &committee, member);
    let folder = config.data_dir.join("snapshots");
    let snapshots = Snapshots::open(Box::new(RealDisk::open(&folder)?), &owner)?;
    let store = DiskStore::open(&config.data_dir.join("state"), &owner)?;
    let (executor, _) = Executor::open(Box::new(store), service, config.executor_config())?;
    let mut executor = install(&mut file, executor, &snapshots)?;
    // For newcomers, and whoever loses its state before the first of the new network's own.
    match executor.snapshot()?.write(&snapshots) {
        Err(error) if error.costs_a_snapshot() => {
            tracing::warn!(%error, "the state is there, and no snapshot of it");
        }
        written => drop(written?),
    }
    let state = file.state;
    Founded::on(from, state.manifest.header).write(&config.data_dir)?;
    Ok(state)
}

/// A validator that ran has promises and a state of its own.
fn refuse_begun(data_dir: &Path) -> Result<(), RescueError> {
    let log = data_dir.join("log");
    let has_log = log.exists() && Journal::has_begun(&log)?;
    let has_begun = has_log || Founded::path(data_dir).exists();
    if has_begun { Err(RescueError::Begun(data_dir.to_owned())) } else { Ok(()) }
}

/// The owner that a validator looks for when it starts with these files.
fn owner(config: &NodeConfig, committee: &Committee, member: IdentityKey) -> Owner {
    Owner {
        network: committee.network(),
        member,
        role: if config.learner { Role::Learner } else { Role::Validator },
        protocol: config.replica.protocol.to_string(),
        formerly: Vec::new(),
    }
}
