//! `quorate pay request`, `receipt` and `evidence`: files that go from hand to hand.

use super::place::{Folder, NetworkPlace, Place, explain, explain_paper, owner, printable};
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_crypto::Digest;
use quorate_gateway::wallet::{PaymentReceipt, PaymentRequest};
use quorate_node::proof_file::ProofFile as _;
use quorate_payments::TxId;
use quorate_types::Epoch;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Write a request for payment, which `quorate pay send --request FILE` pays.
#[derive(Debug, Args)]
pub(super) struct Request {
    /// Amount, in the smallest unit
    #[arg(long, value_name = "UNITS")]
    value: u64,
    /// Memo for the payer to send with it: an invoice's number, perhaps
    #[arg(long, value_name = "TEXT")]
    memo: Option<String>,
    /// File to write; by default standard output
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    folder: Folder,
    #[command(flatten)]
    network: NetworkPlace,
}

/// Check a receipt, or write one again.
#[derive(Debug, Args)]
pub(super) struct Receipt {
    #[command(subcommand)]
    command: ReceiptCommand,
}

#[derive(Debug, Subcommand)]
enum ReceiptCommand {
    /// Check a receipt under a network's file, and show what it proves
    ///
    /// No authority is asked, and no wallet is needed. That the coins were not spent since is not
    /// proven: only their owner can have done that. Of a receipt of an epoch that has ended it says
    /// so: whether it still counts, authorities are to be asked. Exit code 0: it holds. 1: it
    /// proves nothing, and the reason is said. 2: a file cannot be read.
    Verify(Verify),
    /// Write the receipt of a certified payment of this wallet again
    Write {
        /// The payment: its transaction's 64 hexadecimal digits
        payment: String,
        /// The file to write; absent: to standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        #[command(flatten)]
        place: Place,
    },
}

/// Check the evidence of a double spend.
#[derive(Debug, Args)]
pub(super) struct Evidence {
    #[command(subcommand)]
    command: EvidenceCommand,
}

#[derive(Debug, Subcommand)]
enum EvidenceCommand {
    /// Check under a network's file that a payer signed two transactions over one coin
    ///
    /// No authority is asked, and no wallet is needed. Exit code 0: it is proven. 1: it is not, and
    /// the reason is said. 2: a file cannot be read.
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Verify {
    /// Path of the file
    file: PathBuf,
    #[command(flatten)]
    network: NetworkPlace,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Request {
    pub(super) fn run(&self) -> CommandResult {
        let folder = self.folder.path();
        let (network, payee) = (self.network.load(folder)?, owner(folder)?);
        if self.value == 0 {
            return Err(Failure::usage("the value must be at least 1"));
        }
        let request = PaymentRequest::new(&network, payee, self.value, self.memo.clone());
        write(self.output.as_deref(), &request.to_text())
    }
}

/// Writes to a file, or to standard output.
fn write(path: Option<&Path>, text: &str) -> CommandResult {
    let Some(path) = path else {
        output::text(text);
        return Ok(());
    };
    let failed = |error| Failure::usage(format!("cannot write {}: {error}", path.display()));
    fs::write(path, text).map_err(failed)
}

impl Receipt {
    pub(super) fn run(&self) -> CommandResult {
        match &self.command {
            ReceiptCommand::Verify(options) => options.receipt(),
            ReceiptCommand::Write { payment, output, place } => {
                let payment = Digest::from_hex(payment).map(TxId).map_err(Failure::usage)?;
                let wallet = place.open()?;
                let payment = wallet.payment(payment).map_err(explain)?;
                let receipt = wallet.receipt(&payment).ok_or_else(|| {
                    let state = payment.state.name();
                    Failure::run(format!("the payment is {state}: there is no receipt for it"))
                })?;
                let paper =
                    PaymentReceipt::new(wallet.network(), &receipt).map_err(Failure::run)?;
                write(output.as_deref(), &paper.to_text())
            }
        }
    }
}

impl Evidence {
    pub(super) fn run(&self) -> CommandResult {
        let EvidenceCommand::Verify(options) = &self.command;
        options.evidence()
    }
}

/// What a receipt proves by itself, of an epoch that has ended or of the one in force.
fn holds(ended: Option<Epoch>) -> String {
    ended.map_or_else(
        || "The receipt holds.".to_owned(),
        |epoch| {
            format!(
                "Authorities of epoch {epoch} certified it, as far as their keys prove: the epoch has ended, and they \
                 may be in anybody's hands by now. Whether it counts, a quorum of the authorities in force says: \
                 `quorate pay receive` asks them."
            )
        },
    )
}

impl Verify {
    fn receipt(&self) -> CommandResult {
        let network = self.network.load(Path::new("."))?;
        let read = PaymentReceipt::read(&self.file, &network);
        let (paper, receipt) = read.map_err(|error| explain_paper(&self.file, error))?;
        let ended = receipt.former_epoch(&network);
        if self.json {
            let ended = ended.map(|epoch| epoch.0);
            output::json(&json!({ "valid": true, "ended_epoch": ended, "receipt": paper }));
            return Ok(());
        }
        let who = match &paper.authorities[..] {
            [] => "enough of them; which, nothing here proves".to_owned(),
            proven => format!("{proven:?}"),
        };
        let payer = paper.payer.as_deref().unwrap_or("what the network began with");
        let mut text = format!(
            "{}\n  value        {}\n  payee        {}\n  payer        {payer}\n  \
             transaction  {}\n  authorities  {who}",
            holds(ended),
            paper.value,
            paper.payee,
            paper.transaction
        );
        if let Some(memo) = &paper.memo {
            text.push_str(&format!("\n  memo         {}", printable(memo)));
        }
        output::line(&text);
        Ok(())
    }

    fn evidence(&self) -> CommandResult {
        let network = self.network.load(Path::new("."))?;
        let read = quorate_gateway::wallet::Evidence::read(&self.file, &network);
        let paper = read.map_err(|error| explain_paper(&self.file, error))?;
        if self.json {
            output::json(&json!({ "valid": true, "evidence": paper }));
            return Ok(());
        }
        output::line(&format!(
            "It is proven that {} signed two transactions over {} coin(s):\n  first   {}\n  second  {}\n  \
             coins   {}",
            paper.payer,
            paper.disputed.len(),
            paper.first,
            paper.second,
            paper.disputed.join("\n          ")
        ));
        Ok(())
    }
}
