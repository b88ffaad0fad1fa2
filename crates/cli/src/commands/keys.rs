//! `quorate keys`: a validator's secrets on disk.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_crypto::{KeyFile, SchemeKind};
use quorate_node::testnet::system_random;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Make a validator's keys, or show their public parts.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate keys generate key.toml --scheme bls    new keys, readable by their owner alone\n  \
    quorate keys show key.toml                     what the committee file needs of them")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write new keys to a file that only its owner may read; never overwrites
    Generate {
        /// The file to write
        file: PathBuf,
        /// The voting scheme: ed25519 or bls
        #[arg(long, default_value = "ed25519", value_parser = super::scheme)]
        scheme: SchemeKind,
        /// Print the public parts as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the public parts of a key file: the member's entry in a committee file
    Show {
        /// The file to read
        file: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.action {
            Action::Generate { file, scheme, json } => generate(file, *scheme, *json),
            Action::Show { file, json } => show(file, *json),
        }
    }
}

fn generate(file: &Path, scheme: SchemeKind, json: bool) -> CommandResult {
    let keys = KeyFile::generate(scheme, &mut system_random);
    keys.write(file).map_err(Failure::usage)?;
    print(&keys, json);
    Ok(())
}

fn show(file: &Path, json: bool) -> CommandResult {
    let keys = KeyFile::read(file).map_err(Failure::usage)?;
    print(&keys, json);
    Ok(())
}

fn print(keys: &KeyFile, json: bool) {
    let scheme = keys.voting.kind().to_string();
    let identity = keys.identity.public().to_string();
    let voting = keys.voting.public().to_string();
    let possession = keys.voting.prove_possession().to_string();
    if json {
        output::json(&json!({
            "scheme": scheme,
            "identity": identity,
            "voting": voting,
            "possession": possession,
        }));
        return;
    }
    output::line(&format!(
        "# scheme: {scheme}\n[[members]]\nidentity = \"{identity}\"\nvoting = \"{voting}\"\n\
         possession = \"{possession}\"\naddress = \"host:port\""
    ));
}
