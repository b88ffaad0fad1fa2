//! `quorate token`: users of a validator's status page and of JSON-RPC.

use crate::commands::token_file::{add, load, new_token, rate, remove, show};
use crate::failure::CommandResult;
use crate::output;
use clap::{Args, Subcommand};
use quorate_node::http_access::{DoorUser, Rights};
use serde_json::json;
use std::path::PathBuf;

/// Command that the file says writes it.
const COMMAND: &str = "quorate token";

/// Add, list or remove users of a validator's status page or of JSON-RPC.
///
/// The file is the one that `http_tokens_file` or, with service = "evm", `gateway_tokens_file` in a
/// validator's configuration names. It holds hashes: a token is shown once, when it is made. A
/// validator reads the file again on SIGHUP. Whoever changes it keeps its owner and mode; where it
/// is a link, the file behind it is changed. Users of the key-value store are `quorate kv token`'s.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate token add http-tokens.toml prometheus\n  \
    quorate token add rpc-tokens.toml shop --rights write --requests-per-second 50\n  \
    quorate token remove rpc-tokens.toml shop")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Make a token for a new user and print it: it is shown this once
    Add {
        /// File of users; it is made if it is not there
        file: PathBuf,
        /// Name of the user, which no other has
        name: String,
        /// Things that the user may do: read, or write (and read), which is to send transactions
        #[arg(long, default_value = "read")]
        rights: Rights,
        /// Most requests a second of the user; by default any number
        #[arg(long, value_name = "COUNT", default_value_t = 0)]
        requests_per_second: u64,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the users and what they may do
    List {
        /// File of users
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a user.
    ///
    /// Its token is worth nothing once the validator has read the file again; a dashboard that is
    /// open goes on for ten minutes at most
    Remove {
        /// File of users
        file: PathBuf,
        /// Name of the user
        name: String,
    },
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.action {
            Action::Add { file, name, rights, requests_per_second, json } => {
                let (token, hash) = new_token();
                let (name, rights, requests_per_second) =
                    (name.clone(), *rights, *requests_per_second);
                add(COMMAND, file, DoorUser { name, hash, rights, requests_per_second })?;
                show(&token, *json);
                Ok(())
            }
            Action::List { file, json } => {
                list(&load(file)?, *json);
                Ok(())
            }
            Action::Remove { file, name } => remove::<DoorUser>(COMMAND, file, name),
        }
    }
}

fn list(users: &[DoorUser], as_json: bool) {
    if as_json {
        let line = |user: &DoorUser| {
            let DoorUser { name, rights, requests_per_second, .. } = user;
            json!({ "name": name, "rights": rights, "requests_per_second": requests_per_second })
        };
        output::json(&json!({ "tokens": users.iter().map(line).collect::<Vec<_>>() }));
        return;
    }
    for DoorUser { name, rights, requests_per_second, .. } in users {
        output::line(&format!("{name}\t{rights}{}", rate(*requests_per_second)));
    }
}
