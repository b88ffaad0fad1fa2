//! `quorate pay follow`: the epoch in force.

use super::place::Place;
use super::send::block_on;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_node::payments::follow_network;
use serde_json::json;
use std::time::Duration;

/// Follow the network to the epoch in force, and say which one it is.
///
/// Authorities that are known are asked for changes. What enough of both epochs signed is written
/// beside the network file, for all wallets that use it. Whatever asks authorities does so by
/// itself: this is for wallets that take in receipts offline, and for those who share the file.
#[derive(Debug, Args)]
pub(super) struct Follow {
    #[command(flatten)]
    place: Place,
    /// Longest wait for the authorities' answers, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Follow {
    pub(super) fn run(&self) -> CommandResult {
        let (path, secret) = (self.place.network_path()?, self.place.secret()?);
        let within = Duration::from_secs(self.timeout);
        let network =
            block_on(async { follow_network(&path, &secret, within).await.map_err(Failure::run) })?;
        if self.json {
            output::json(&json!({ "epoch": network.epoch().0 }));
        } else {
            let epoch = network.epoch();
            output::line(&format!("epoch {epoch} is the newest that authorities show"));
        }
        Ok(())
    }
}
