//! `quorate pay testnet`: the files of a new payment network.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_engine::{ProtocolKind, Settings};
use quorate_node::payments::{PayTestnet, PayTestnetPlan, ReleaseCommittee};
use quorate_payments::{Endowment, PayScheme};
use quorate_storage::Durability;
use serde_json::json;
use std::path::PathBuf;

/// Write keys and configurations of a new payment network.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay testnet net                        four authorities, ports 7400 to 7407\n  \
    quorate pay testnet net --scheme merkle --shards 2\n  \
    quorate pay testnet net --genesis KEY=1000     somebody begins with 1000 units\n  \
    quorate pay testnet net --committee            with validators that order releases, to port 7415")]
pub(crate) struct Options {
    /// New folder for the network file, the issuer's key, and a folder for each authority
    directory: PathBuf,
    /// Number of payment authorities
    #[arg(short = 'n', long, default_value_t = 4,
          value_parser = clap::value_parser!(u16).range(1..=1_024))]
    authorities: u16,
    /// Number of processes that each authority shares its payers among
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    shards: u16,
    /// Voting scheme: plain, merkle, bls or bls-threshold
    #[arg(long, default_value = "plain")]
    scheme: PayScheme,
    /// First port; each shard of each authority takes two
    #[arg(long, default_value_t = 7_400, value_name = "PORT")]
    base_port: u16,
    /// Durability of locks: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Write a validator beside each authority as well: a committee under PROTOCOL, jolteon by
    /// default, that orders the release of coins that their payments left locked. It takes two more
    /// ports for each authority
    #[arg(long, value_name = "PROTOCOL", num_args = 0..=1, require_equals = true,
          default_missing_value = "jolteon")]
    committee: Option<ProtocolKind>,
    /// Coins that the network begins with: a wallet's address and units, as in KEY=1000
    #[arg(long, value_name = "KEY=UNITS", value_parser = endowment)]
    genesis: Vec<Endowment>,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
}

fn endowment(text: &str) -> Result<Endowment, String> {
    let (owner, value) = text.split_once('=').ok_or("write KEY=UNITS")?;
    let value = value.parse().map_err(|_| format!("'{value}' is no number of units"))?;
    Ok(Endowment { owner: owner.to_owned(), value })
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let plan = PayTestnetPlan {
            authorities: self.authorities,
            shards: self.shards,
            scheme: self.scheme,
            base_port: self.base_port,
            durability: self.durability,
            genesis: self.genesis.clone(),
            committee: self.committee.map(|protocol| Settings { protocol, ..Settings::default() }),
            ..PayTestnetPlan::default()
        };
        let testnet = PayTestnet::create(&self.directory, &plan).map_err(Failure::usage)?;
        if self.json {
            output::json(&json!({
                "directory": testnet.directory,
                "network": testnet.network,
                "issuer": testnet.issuer,
                "configs": testnet.configs,
                "http": testnet.http,
                "committee": testnet.committee.as_ref().map(|committee| &committee.committee),
                "validators": testnet.committee.as_ref().map(|committee| &committee.configs),
            }));
        } else {
            output::line(&self.describe());
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let (place, n, quorate) = (self.directory.display(), self.authorities, output::program());
        let mut text = format!(
            "Wrote a payment network of {n} authorities ({}) to {place}.\n\nRun each in a terminal of its own:\n\n",
            self.scheme
        );
        for authority in 0..n {
            for shard in 0..self.shards {
                text.push_str(&format!(
                    "  {quorate} pay run --config {place}/authority-{authority}/shard-{shard}.toml\n"
                ));
            }
        }
        if let Some(protocol) = self.committee {
            text.push_str(&format!(
                "\nand the committee that orders releases ({protocol}), each in one of its own:\n\n"
            ));
            for authority in 0..n {
                text.push_str(&format!(
                    "  {quorate} run --config {place}/authority-{authority}/validator/config.toml\n"
                ));
            }
        }
        let committee = format!(" and {place}/{}", ReleaseCommittee::FILE);
        text.push_str(&format!(
            "\nWallets need {place}/network.toml{}; the issuer's key is {place}/issuer/key.toml.",
            self.committee.map_or("", |_| &committee)
        ));
        text
    }
}
