//! `quorate state export`: the newest certified snapshot of a disk, as a file.

use super::{Look, fail, print};
use crate::failure::{CommandResult, Failure};
use clap::Args;
use quorate_node::NodeConfig;
use quorate_node::config::read_committee_file;
use quorate_node::rescue::{Exported, export};
use quorate_types::Height;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Write the newest certified state in a stopped validator's data folder into a file
///
/// Certified is what members signed: so many that one is honest, the root of a snapshot's height;
/// or a quorum, the root that an epoch ended with. What this disk executed beyond that height is
/// not in the file, and the heights are named. The data folder is read and stays as it is. Exit
/// code 1: nothing is certified, or the validator is running.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The validator's configuration file
    #[arg(long, value_name = "FILE", required_unless_present = "data", conflicts_with = "data")]
    config: Option<PathBuf>,
    /// Its data folder, where there is no configuration any more
    #[arg(long, value_name = "DIR", requires = "committee")]
    data: Option<PathBuf>,
    /// With --data: the committee file that founded the network
    #[arg(long, value_name = "GENESIS")]
    committee: Option<PathBuf>,
    /// File to write the state to; it is never overwritten
    #[arg(long, value_name = "STATE")]
    out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let (data_dir, committee) = self.places()?;
        let first = read_committee_file(&committee).map_err(Failure::usage)?;
        let exported = export(&data_dir, &first, &self.out).map_err(fail)?;
        let look = Look::of(&exported.state, exported.by);
        let text = format!("{look}\n\n{}", describe(&exported, &self.out));
        let executed = exported.executed.map(|height| height.0);
        print(&json!({ "state": look, "executed": executed }), &text, self.json);
        Ok(())
    }

    fn places(&self) -> Result<(PathBuf, PathBuf), Failure> {
        match (&self.config, &self.data, &self.committee) {
            (Some(path), _, _) => {
                let config = NodeConfig::load(path).map_err(Failure::usage)?;
                Ok((config.data_dir, config.committee))
            }
            (None, Some(data), Some(committee)) => Ok((data.clone(), committee.clone())),
            _ => Err(Failure::usage("name --config, or --data and --committee")),
        }
    }
}

/// What is not in the file.
fn describe(exported: &Exported, out: &Path) -> String {
    let height = exported.state.manifest.header.height;
    let beyond = match exported.executed {
        Some(executed) if executed > height => format!(
            "This disk executed {} to {executed} too. That is not in the file: nobody certified it \
             as a state.\nWhat was acknowledged at these heights, or later ones, is lost with this \
             network.",
            height.next()
        ),
        Some(Height(_)) => "This disk executed nothing beyond it.".to_owned(),
        None => {
            "How far this disk's own state came cannot be read; what is beyond it is not in the \
                 file."
                .to_owned()
        }
    };
    format!("Wrote it to {}. {beyond}", out.display())
}
