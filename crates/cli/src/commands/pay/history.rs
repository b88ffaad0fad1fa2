//! `quorate pay balance`, `history` and `export`: what a wallet has and did.

use super::place::{Place, explain, printable};
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use comfy_table::{Table, presets};
use quorate_gateway::wallet::{HistoryLine, Wallet, utc};
use std::fs;
use std::path::PathBuf;

/// Show a wallet's balance. No authority is asked.
#[derive(Debug, Args)]
pub(super) struct Balance {
    #[command(flatten)]
    place: Place,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Show a wallet's history: every payment in order.
#[derive(Debug, Args)]
pub(super) struct History {
    #[command(flatten)]
    place: Place,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Export a wallet's history as a table for auditors: comma-separated values, times in UTC.
#[derive(Debug, Args)]
pub(super) struct Export {
    #[command(flatten)]
    place: Place,
    /// File to write, which is replaced; by default standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

impl Balance {
    pub(super) fn run(&self) -> CommandResult {
        let wallet = self.place.open()?;
        if self.json {
            output::json(&wallet.balance());
        } else {
            output::line(&describe_balance(&wallet).join("\n"));
        }
        Ok(())
    }
}

/// A wallet's money, a line for each state that some of it is in.
pub(super) fn describe_balance(wallet: &Wallet) -> Vec<String> {
    let balance = wallet.balance();
    let mut lines = vec![format!("{} free, in {} coins", balance.free, balance.coins_free)];
    if balance.reserved > 0 {
        lines.push(format!(
            "{} in payments that are not finished: `quorate pay retry` finishes them",
            balance.reserved
        ));
    }
    let frozen = wallet.frozen().into_iter().map(|(payment, value)| {
        format!(
            "{value} frozen: another transaction of this key took a coin of payment {payment}. \
             Was a copy of this wallet used? `quorate pay release {payment}` says what can be had back"
        )
    });
    lines.extend(frozen);
    if balance.unasked > 0 {
        lines.push(format!(
            "{} in coins whose state is asked for before the next payment: the wallet was made again, or they \
             came by a release",
            balance.unasked
        ));
    }
    let stuck = wallet.stuck().into_iter().map(|(transaction, value)| {
        format!(
            "{value} stuck: authorities locked a coin for transaction {transaction} of this key, \
             which this wallet does not have. If it was finished, they are spent; \
             `quorate pay release {transaction}` finds out"
        )
    });
    lines.extend(stuck);
    if balance.releasing > 0 {
        lines.push(format!(
            "{} under release: `quorate pay release --all` waits for what is decided",
            balance.releasing
        ));
    }
    lines
}

impl History {
    pub(super) fn run(&self) -> CommandResult {
        let lines = self.place.open()?.history().map_err(explain)?;
        if self.json {
            output::json(&lines);
        } else {
            output::line(&table(&lines));
        }
        Ok(())
    }
}

fn table(lines: &[HistoryLine]) -> String {
    let mut table = Table::new();
    let head = ["time", "kind", "value", "counterparty", "transaction", "state", "memo"];
    table.load_preset(presets::NOTHING).set_header(head);
    for line in lines {
        let sign = if line.direction == "out" { "-" } else { "" };
        table.add_row([
            utc(line.at_ms),
            line.kind.to_owned(),
            format!("{sign}{}", line.value),
            short(line.counterparty.as_deref().unwrap_or_default()),
            short(&line.transaction),
            line.state.to_owned(),
            printable(line.memo.as_deref().unwrap_or_default()),
        ]);
    }
    table.to_string()
}

/// Enough of a name to know it by; --json has all of it.
fn short(name: &str) -> String {
    name.chars().take(16).collect()
}

impl Export {
    pub(super) fn run(&self) -> CommandResult {
        let table = self.place.open()?.to_csv().map_err(explain)?;
        let Some(path) = &self.csv else {
            output::text(&table);
            return Ok(());
        };
        let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        fs::write(path, table).map_err(failed)
    }
}
