//! `quorate pay token`: users of a wallet that is served.

use crate::commands::token_file::{add, load, new_token, remove, show};
use crate::failure::CommandResult;
use crate::output;
use clap::{Args, Subcommand};
use quorate_gateway::wallet::rest::{Right, WalletUser};
use serde_json::json;
use std::path::PathBuf;

/// Command that the file says writes it.
const COMMAND: &str = "quorate pay token";

/// Add, list or remove users of a wallet that `quorate pay serve` serves.
///
/// The file is the one that its --tokens-file names. It holds hashes: a token is shown once, when
/// it is made. The wallet reads the file again on SIGHUP. Whoever changes it keeps its owner and
/// mode; where it is a link, the file behind it is changed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay token add tokens.toml till-3 --right request\n  \
    quorate pay token add tokens.toml refunds --right pay --payment-max 50 --day-max 500\n  \
    quorate pay token remove tokens.toml till-3")]
pub(super) struct Token {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token for a new user and print it: it is shown this once
    Add(Add),
    /// Show the users and what they may do
    List {
        /// File of users
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a user; its token is worth nothing once the wallet has read the file again
    Remove {
        /// File of users
        file: PathBuf,
        /// Name of the user
        name: String,
    },
}

#[derive(Debug, Args)]
struct Add {
    /// File of users; it is made if it is not there
    file: PathBuf,
    /// Name of the user, which no other has: it is kept with the user's payments and requests
    name: String,
    /// Purpose of the token: read (look at everything), request (a till: requests and receipts),
    /// pay (up to limits), or all
    #[arg(long)]
    right: Right,
    /// Most for one payment, in the smallest unit: for --right pay
    #[arg(long, value_name = "UNITS", requires = "day_max")]
    payment_max: Option<u64>,
    /// Most within any 24 hours, in the smallest unit: for --right pay
    #[arg(long, value_name = "UNITS", requires = "payment_max")]
    day_max: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Token {
    pub(super) fn run(&self) -> CommandResult {
        match &self.command {
            TokenCommand::Add(options) => options.run(),
            TokenCommand::List { file, json } => {
                list(&load(file)?, *json);
                Ok(())
            }
            TokenCommand::Remove { file, name } => remove::<WalletUser>(COMMAND, file, name),
        }
    }
}

impl Add {
    fn run(&self) -> CommandResult {
        let (token, hash) = new_token();
        let Self { right, payment_max, day_max, .. } = *self;
        let user = WalletUser { name: self.name.clone(), hash, right, payment_max, day_max };
        add(COMMAND, &self.file, user)?;
        show(&token, self.json);
        Ok(())
    }
}

fn list(users: &[WalletUser], as_json: bool) {
    if as_json {
        let line = |user: &WalletUser| {
            let WalletUser { name, right, payment_max, day_max, .. } = user;
            json!({ "name": name, "right": right, "payment_max": payment_max, "day_max": day_max })
        };
        output::json(&json!({ "tokens": users.iter().map(line).collect::<Vec<_>>() }));
        return;
    }
    for WalletUser { name, right, payment_max, day_max, .. } in users {
        let limits =
            payment_max.zip(*day_max).map(|(one, day)| format!("\t{one} at once, {day} a day"));
        output::line(&format!("{name}\t{right}{}", limits.unwrap_or_default()));
    }
}
