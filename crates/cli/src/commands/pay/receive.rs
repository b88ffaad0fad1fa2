//! `quorate pay genesis` and `receive`: how coins come in.

use super::place::{Place, explain, explain_paper, printable};
use crate::failure::CommandResult;
use crate::output;
use clap::Args;
use quorate_gateway::wallet::PaymentReceipt;
use serde_json::json;
use std::path::PathBuf;

/// Collect the coins that the network began with for this wallet. A second time changes nothing.
#[derive(Debug, Args)]
pub(super) struct Genesis {
    #[command(flatten)]
    place: Place,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Collect the coins of a receipt.
///
/// No authority is asked: a receipt proves itself. A second time changes nothing. Exit code 1: the
/// receipt proves nothing, or pays somebody else.
#[derive(Debug, Args)]
pub(super) struct Receive {
    /// The receipt, as the payer's `quorate pay send` wrote it
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Genesis {
    pub(super) fn run(&self) -> CommandResult {
        let mut wallet = self.place.open()?;
        let added = wallet.receive_genesis().map_err(explain)?;
        if self.json {
            output::json(&json!({ "added": added }));
        } else {
            let free = wallet.balance().free;
            output::line(&format!("{added} came in; {free} are free"));
        }
        Ok(())
    }
}

impl Receive {
    pub(super) fn run(&self) -> CommandResult {
        let mut wallet = self.place.open()?;
        let read = PaymentReceipt::read(&self.file, wallet.network());
        let (paper, receipt) = read.map_err(|error| explain_paper(&self.file, error))?;
        let added = wallet.receive(&receipt).map_err(explain)?.added;
        if self.json {
            output::json(&json!({
                "transaction": paper.transaction,
                "payer": paper.payer,
                "value": paper.value,
                "memo": paper.memo,
                "added": added,
            }));
            return Ok(());
        }
        let memo = paper.memo.as_deref().map(|memo| format!(", \"{}\"", printable(memo)));
        let payer = paper.payer.as_deref().unwrap_or("the network's beginning");
        let known = if added == 0 { " It was known already." } else { "" };
        output::line(&format!(
            "{} from {payer}{}.{known}\n{added} came in; {free} are free",
            paper.value,
            memo.unwrap_or_default(),
            free = wallet.balance().free,
        ));
        Ok(())
    }
}
