//! `quorate kv token`: users of a gateway.

use crate::commands::token_file::{add, load, new_token, rate, remove, show};
use crate::failure::CommandResult;
use crate::output;
use clap::Subcommand;
use quorate_gateway::rest::User;
use quorate_node::http_access::Rights;
use serde_json::json;
use std::path::PathBuf;

/// Command that the file says writes it.
const COMMAND: &str = "quorate kv token";

/// Add, list or remove users of a gateway: each has a token, rights and a prefix of keys.
///
/// The file is the one that `gateway_tokens_file` in a validator's configuration names. It holds
/// hashes: a token is shown once, when it is made. A validator reads the file again on SIGHUP.
/// Whoever changes it keeps its owner and mode; where it is a link, the file behind it is changed.
#[derive(Debug, Subcommand)]
pub(super) enum Token {
    /// Make a token for a new user and print it: it is shown this once
    Add {
        /// File of users; it is made if it is not there
        file: PathBuf,
        /// Name of the user, which no other has
        name: String,
        /// Things that the user may do: read, or write (and read)
        #[arg(long, default_value = "read")]
        rights: Rights,
        /// Beginning of every key that the user may touch; by default all keys
        #[arg(long, value_name = "TEXT", default_value = "")]
        prefix: String,
        /// Most requests a second of the user; by default any number
        #[arg(long, value_name = "COUNT", default_value_t = 0)]
        requests_per_second: u64,
    },
    /// Show the users and what they may do
    List {
        /// File of users
        file: PathBuf,
    },
    /// Remove a user; its token is worth nothing once the gateway has read the file again
    Remove {
        /// File of users
        file: PathBuf,
        /// Name of the user
        name: String,
    },
}

impl Token {
    pub(super) fn run(&self, as_json: bool) -> CommandResult {
        match self {
            Self::Add { file, name, rights, prefix, requests_per_second } => {
                let (token, hash) = new_token();
                let (name, prefix) = (name.clone(), prefix.clone());
                let (rights, requests_per_second) = (*rights, *requests_per_second);
                add(COMMAND, file, User { name, hash, rights, prefix, requests_per_second })?;
                show(&token, as_json);
                Ok(())
            }
            Self::List { file } => {
                list(&load(file)?, as_json);
                Ok(())
            }
            Self::Remove { file, name } => remove::<User>(COMMAND, file, name),
        }
    }
}

fn list(users: &[User], as_json: bool) {
    if as_json {
        let line = |user: &User| {
            let User { name, rights, prefix, requests_per_second, .. } = user;
            json!({
                "name": name,
                "rights": rights,
                "prefix": prefix,
                "requests_per_second": requests_per_second,
            })
        };
        output::json(&json!({ "tokens": users.iter().map(line).collect::<Vec<_>>() }));
        return;
    }
    for User { name, rights, prefix, requests_per_second, .. } in users {
        output::line(&format!("{name}\t{rights}\t{prefix}{}", rate(*requests_per_second)));
    }
}
