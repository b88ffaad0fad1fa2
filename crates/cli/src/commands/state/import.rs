//! `quorate state import`: a state, into the data folder of a member of the network that begins
//! with it.

use super::fail;
use crate::commands::config::refused;
use crate::commands::run;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::StoredKeys;
use quorate_lab::ServiceKind;
use quorate_node::NodeConfig;
use quorate_node::rescue::import;
use serde_json::json;
use std::path::PathBuf;

/// Put the state that a network was founded on into a member's data folder, before its first start
///
/// It is the state that the committee file names under `from_state`, to the byte, or refused. A
/// validator of such a network does not start without it. Learners, and whoever joins later, import
/// it too.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// File of the state, as `quorate state export` wrote it
    file: PathBuf,
    /// The validator's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let loaded = NodeConfig::load(&self.config);
        let config = loaded.map_err(|error| refused(&self.config, &error))?;
        let service: ServiceKind = config.service.parse().map_err(Failure::usage)?;
        let genesis = run::genesis(&self.config, &config, service)?;
        let service = service.build(genesis).map_err(Failure::usage)?;
        // The public part is enough: nothing is signed here.
        let keys = StoredKeys::read(&config.key).map_err(Failure::usage)?;
        let member = keys.public().identity;
        let state = import(&config, member, service, &self.file).map_err(fail)?;
        let (height, data_dir) = (state.manifest.header.height, config.data_dir.display());
        if self.json {
            output::json(&json!({ "height": height.0, "operations": state.manifest.operations }));
        } else {
            output::line(&format!(
                "The state at {height} is in {data_dir}. Start the validator: it goes on from there."
            ));
        }
        Ok(())
    }
}
