//! `quorate committee history`: the epochs of a network.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::KeyCache;
use quorate_node::config::{load_committee, read_committee_file};
use quorate_node::epochs::read_steps;
use quorate_types::{CommitteeFile, Epoch, HandOver, HandedOver, History, NetworkId};
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Show the epochs of a network, by the hand-overs between them
///
/// With --committee, the network's first committee file, every hand-over is verified on the way
/// from there. Without, the file is shown as it is, and nobody vouches for it. Exit code 0: all of
/// it holds. 1: a hand-over does not, and the reason is said. 2: a file cannot be read.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Hand-overs of one epoch after the other, or a validator's folder of them (`data_dir/epochs`)
    file: PathBuf,
    /// The committee file that founded the network
    #[arg(long, value_name = "GENESIS")]
    committee: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let steps = read(&self.file)?;
        let genesis = self.committee.as_deref().map(|path| verify(path, &steps)).transpose()?;
        let epochs = epochs(genesis.as_ref(), &steps);
        if self.json {
            output::json(&json!({ "verified": genesis.is_some(), "epochs": epochs }));
            return Ok(());
        }
        epochs.iter().for_each(|epoch| output::line(&epoch.to_string()));
        output::line(match genesis {
            Some(_) => "Every hand-over is signed by a quorum of the epoch that it ended.",
            None => "Nothing is verified: name the network's first file by --committee.",
        });
        Ok(())
    }
}

/// Reads hand-overs, of a file or of a validator's folder, and believes nothing of them.
pub(crate) fn read(path: &Path) -> Result<Vec<HandedOver>, Failure> {
    let refused =
        |reason: String| Failure::usage(format!("{} has no hand-overs: {reason}", path.display()));
    if path.is_dir() {
        return read_steps(path).map_err(Failure::usage);
    }
    let bytes = fs::read(path).map_err(|error| refused(error.to_string()))?;
    borsh::from_slice(&bytes).map_err(|error| refused(error.to_string()))
}

/// Goes from the first file over all hand-overs, and returns that file.
fn verify(path: &Path, steps: &[HandedOver]) -> Result<CommitteeFile, Failure> {
    let first = load_committee(path, KeyCache::On).map_err(Failure::usage)?;
    History::walk(first, steps, KeyCache::On).map_err(Failure::run)?;
    read_committee_file(path).map_err(Failure::usage)
}

/// One epoch, as far as it is known.
#[derive(Debug, Serialize)]
struct Period {
    number: u64,
    id: String,
    /// Last height; `None` of the epoch in force.
    last: Option<u64>,
    /// `None` of a first epoch whose file was not named.
    file: Option<FileLook>,
}

#[derive(Debug, Serialize)]
struct FileLook {
    digest: String,
    members: usize,
    protocol: String,
}

impl FileLook {
    fn of(file: &CommitteeFile) -> Self {
        let protocol = file.settings.protocol.clone();
        Self { digest: file.digest().to_hex(), members: file.members.len(), protocol }
    }
}

fn epochs(genesis: Option<&CommitteeFile>, steps: &[HandedOver]) -> Vec<Period> {
    let files = steps.iter().map(|step| &step.file);
    let network = genesis.into_iter().chain(files).next().map(CommitteeFile::network_id);
    let Some(network) = network else { return Vec::new() };
    let second = steps.first().map(|step| step.file.epoch);
    let first = second.map_or_else(
        || genesis.map_or(Epoch(1), |file| file.epoch),
        |next| Epoch(next.0.saturating_sub(1)),
    );
    let mut begun = HandOver::of_genesis(network);
    let mut file = genesis;
    let mut number = first;
    let mut epochs = Vec::with_capacity(steps.len() + 1);
    for step in steps {
        epochs.push(Period::of(network, (number, &begun), file, Some(step)));
        (begun, file, number) = (step.signed.content, Some(&step.file), step.file.epoch);
    }
    epochs.push(Period::of(network, (number, &begun), file, None));
    epochs
}

impl Period {
    fn of(
        network: NetworkId,
        (number, begun): (Epoch, &HandOver),
        file: Option<&CommitteeFile>,
        ended: Option<&HandedOver>,
    ) -> Self {
        Self {
            number: number.0,
            id: begun.begins(network, number).to_string(),
            last: ended.map(|step| step.signed.content.height.0),
            file: file.map(FileLook::of),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch {}  {}\n  ", self.number, self.id)?;
        match self.last {
            Some(last) => write!(f, "last height {last}")?,
            None => write!(f, "in force")?,
        }
        match &self.file {
            Some(FileLook { digest, members, protocol }) => {
                writeln!(f, ", {members} members, {protocol}\n  file {digest}")
            }
            None => writeln!(f, ", committee file not named"),
        }
    }
}
