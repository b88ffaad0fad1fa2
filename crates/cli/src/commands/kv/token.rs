//! `quorate kv token`: users of a gateway.

use crate::failure::{CommandResult, Failure};
use crate::{output, secret};
use clap::Subcommand;
use quorate_crypto::hash;
use quorate_gateway::rest::{Rights, TokensFile, User};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Add, list or remove users of a gateway: each has a token, rights and a prefix of keys.
///
/// The file is the one that `gateway_tokens_file` in a validator's configuration names. It holds
/// hashes: a token is shown once, when it is made. A validator reads the file again on SIGHUP.
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
            Self::Add { file, name, rights, prefix } => {
                let token = secret::new_token();
                let hash = hash(token.as_bytes()).to_hex();
                let (name, prefix) = (name.clone(), prefix.clone());
                add(file, User { name, hash, rights: *rights, prefix })?;
                if as_json {
                    output::json(&json!({ "token": token }));
                } else {
                    output::line(&token);
                }
                Ok(())
            }
            Self::List { file } => {
                let TokensFile { tokens } = TokensFile::load(file).map_err(Failure::usage)?;
                list(&tokens, as_json);
                Ok(())
            }
            Self::Remove { file, name } => remove(file, name),
        }
    }
}

fn add(path: &Path, user: User) -> CommandResult {
    if !path.exists() {
        return secret::write_new(path, &text(&TokensFile { tokens: vec![user] }));
    }
    let mut file = TokensFile::load(path).map_err(Failure::usage)?;
    if file.tokens.iter().any(|other| other.name == user.name) {
        let (name, path) = (&user.name, path.display());
        return Err(Failure::usage(format!(
            "{path} has a user '{name}': remove it first, or choose another name"
        )));
    }
    file.tokens.push(user);
    replace(path, &file)
}

fn remove(path: &Path, name: &str) -> CommandResult {
    let mut file = TokensFile::load(path).map_err(Failure::usage)?;
    let before = file.tokens.len();
    file.tokens.retain(|user| user.name != name);
    if file.tokens.len() == before {
        return Err(Failure::usage(format!("{} has no user '{name}'", path.display())));
    }
    replace(path, &file)
}

fn list(users: &[User], as_json: bool) {
    if as_json {
        let line = |user: &User| json!({ "name": user.name, "rights": user.rights, "prefix": user.prefix });
        output::json(&json!({ "tokens": users.iter().map(line).collect::<Vec<_>>() }));
        return;
    }
    for User { name, rights, prefix, .. } in users {
        output::line(&format!("{name}\t{rights}\t{prefix}"));
    }
}

/// At once or not at all: a gateway that reads it meanwhile finds the one or the other.
fn replace(path: &Path, file: &TokensFile) -> CommandResult {
    let beside = path.with_extension("new");
    // Left behind by a command that was interrupted.
    let _ = fs::remove_file(&beside);
    secret::write_new(&beside, &text(file))?;
    let failed = |error| Failure::usage(format!("cannot replace {}: {error}", path.display()));
    fs::rename(&beside, path).map_err(failed)
}

fn text(file: &TokensFile) -> String {
    let content = toml::to_string(file).expect("a plain struct is a table");
    format!(
        "# Users of a gateway: `quorate kv token` writes them, and SIGHUP has them read again.\n{content}"
    )
}
