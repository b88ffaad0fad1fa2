//! `quorate pay change close` and `begin`: the border at one shard of an authority.

use super::super::run::load_keys;
use crate::commands::run::fail;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_node::payments::{
    AuthorityConfig, begin, change_beside, close, read_change, report_folder,
};
use serde_json::json;
use std::path::PathBuf;

/// Close a shard of a stopped authority for good, and write the report of its locks
///
/// For networks without a committee, which has authorities close by themselves.
///
/// It votes for nothing new in this epoch any more, whatever becomes of the change: close it only
/// for the change that all close for. Started again, it votes again for what it voted for before.
/// The report is a folder, for every authority of the next epoch. Closed again, it stays what it
/// is; for another change that is refused.
#[derive(Debug, Args)]
pub(super) struct Close {
    /// File of the change, signed by enough
    change: PathBuf,
    /// The shard's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print what was reported as JSON
    #[arg(long)]
    json: bool,
}

/// Begin the next epoch at a shard, with the reports of a quorum
///
/// For networks without a committee, whose authorities begin by themselves.
///
/// Name one report folder of each authority for every shard: a quorum of them, better all that
/// there are. An input that two payments may have taken is between them, and nothing is voted for
/// over it until more reports say more; the fewer reports, the more of those.
#[derive(Debug, Args)]
pub(super) struct Begin {
    /// File of the change, signed by enough
    change: PathBuf,
    /// Report folders of the epoch that ends
    #[arg(required = true)]
    reports: Vec<PathBuf>,
    /// The shard's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print what it begins with as JSON
    #[arg(long)]
    json: bool,
}

impl Close {
    pub(super) fn run(&self) -> CommandResult {
        let change = read_change(&self.change).map_err(Failure::usage)?;
        let config = AuthorityConfig::load(&self.config).map_err(Failure::usage)?;
        let closing = close(&config, &load_keys(&config)?, &change).map_err(fail)?;
        let folder = report_folder(&config, change.next.epoch).map_err(Failure::usage)?;
        if self.json {
            output::json(&json!({
                "authority": closing.authority.0,
                "shard": closing.shard,
                "locks": closing.count,
                "root": closing.root.to_hex(),
                "report": folder,
            }));
        } else {
            output::line(&format!(
                "Authority {} has closed shard {}: it locked {} inputs in this epoch.\n\nIts report \
                 is {}: copy it to every authority of the next epoch.",
                closing.authority,
                closing.shard,
                closing.count,
                folder.display()
            ));
        }
        Ok(())
    }
}

impl Begin {
    pub(super) fn run(&self) -> CommandResult {
        let change = read_change(&self.change).map_err(Failure::usage)?;
        let config = AuthorityConfig::load(&self.config).map_err(Failure::usage)?;
        let keys = load_keys(&config)?;
        let begun = begin(&config, &keys, &change, &self.reports).map_err(fail)?;
        let epoch = change.next.epoch;
        if self.json {
            output::json(&json!({
                "epoch": epoch.0,
                "locked": begun.locked,
                "admitted": begun.admitted,
                "contested": begun.contested,
            }));
        } else {
            output::line(&format!(
                "Epoch {epoch} begins with {} locked inputs, {} payments whose certificates count, \
                 and {} inputs between several payments.\n\nCopy {} to {} and start the authority.",
                begun.locked,
                begun.admitted,
                begun.contested,
                self.change.display(),
                change_beside(&config.network, epoch).display()
            ));
        }
        Ok(())
    }
}
