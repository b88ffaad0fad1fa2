//! `quorate pay genesis` and `receive`: how coins come in.

use super::place::{Online, Place, explain, explain_paper, printable, warn_of_trouble};
use super::send::block_on;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_gateway::wallet::{PaymentReceipt, Wallet, WalletError};
use quorate_payments::PayReceipt;
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
/// No authority is asked: a receipt proves itself. One of an epoch that has ended does not, for the
/// keys of its authorities may be in anybody's hands by now: a quorum of those in force is asked
/// whether it counts. A second time changes nothing. Exit code 1: the receipt proves nothing, pays
/// somebody else, or does not count as far as authorities say.
#[derive(Debug, Args)]
pub(super) struct Receive {
    /// The receipt, as the payer's `quorate pay send` wrote it
    file: PathBuf,
    #[command(flatten)]
    online: Online,
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
        let wallet = self.online.place.open()?;
        let read = PaymentReceipt::read(&self.file, wallet.network());
        let (paper, receipt) = read.map_err(|error| explain_paper(&self.file, error))?;
        let (added, free) = self.take_in(wallet, receipt)?;
        if self.online.json {
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
        ));
        Ok(())
    }

    /// Takes a receipt in, and returns what was new of it and what is free then. Nobody is
    /// connected to unless authorities are to be asked.
    fn take_in(&self, mut wallet: Wallet, receipt: PayReceipt) -> Result<(u64, u128), Failure> {
        match wallet.receive(&receipt) {
            Err(WalletError::FormerEpoch { .. }) => block_on(async {
                let service = self.online.connect(wallet)?;
                let taken = service.receive(receipt, self.online.within()).await;
                warn_of_trouble(&service);
                let added = taken.map_err(explain)?.added;
                Ok((added, service.with(|wallet| wallet.balance().free)))
            }),
            taken => Ok((taken.map_err(explain)?.added, wallet.balance().free)),
        }
    }
}
