//! `quorate receipt`: what a client kept to show others, checked offline.

use super::proof_place::ProofPlace;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_crypto::KeyCache;
use quorate_gateway::receipt::{ReceiptError, ReceiptFile};
use quorate_ledger::kv::{Operation, OutcomeError, Output};
use quorate_node::config::read_committee_file;
use quorate_node::epochs::read_history;
use quorate_node::proof_file::ProofFileError;
use quorate_types::{Height, History, Outcome, Receipt, Request};
use serde_json::json;
use std::path::PathBuf;

/// Check what a receipt says, offline.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check a receipt under a network's first committee file, and show what it proves
    ///
    /// No validator is asked. A receipt of a later epoch needs the hand-overs that lead to it, each
    /// of which is checked. They are followed from a committee file of this machine no older than
    /// the network's trusting period; from an older one on, the hand-overs from somebody whom you
    /// trust belong into the folder `epochs` beside it. Of a network that goes on from the state of
    /// another (--former), receipts of that one count up to the height of that state. Exit code
    /// 0: it holds. 1: it proves nothing, and the reason is said. 2: a file cannot be read.
    Verify(Verify),
}

#[derive(Debug, Args)]
struct Verify {
    /// The receipt, as `quorate kv … --receipt FILE` wrote it
    file: PathBuf,
    #[command(flatten)]
    files: ProofPlace,
    /// The committee file that founded the network from whose state this one goes on: for a receipt
    /// of that one. --history is then of that one, too
    #[arg(long, value_name = "GENESIS")]
    former: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let Command::Verify(options) = &self.command;
        options.run()
    }
}

impl Verify {
    fn run(&self) -> CommandResult {
        let (trusted, until) = self.trusted()?;
        let history = self.files.follow(trusted)?;
        let file = ReceiptFile::read(&self.file).map_err(explain)?;
        let receipt = file.verify(&history).map_err(explain)?;
        if let Some(until) = until.filter(|until| file.height > until.0) {
            return Err(Failure::run(format!(
                "the receipt holds in its own network, at height {}; {} goes on from height {}, and \
                 has nothing of what came later",
                file.height,
                self.files.place.path().display(),
                until.0
            )));
        }
        if self.json {
            output::json(&json!({ "valid": true, "receipt": file }));
        } else {
            output::line(&describe(&file, &receipt));
        }
        Ok(())
    }

    /// What the files here say of the receipt's network, and the last height that counts.
    fn trusted(&self) -> Result<(History, Option<Height>), Failure> {
        let Some(path) = &self.former else { return Ok((self.files.place.history()?, None)) };
        let founding = read_committee_file(&self.files.place.path()).map_err(Failure::usage)?;
        let former = read_history(path, KeyCache::On).map_err(Failure::usage)?;
        match founding.from_state {
            Some(from) if from.network == former.committee().network() => {
                Ok((former, Some(from.height)))
            }
            _ => Err(Failure::usage(format!(
                "{} does not go on from the network of {}",
                self.files.place.path().display(),
                path.display()
            ))),
        }
    }
}

fn explain(error: ReceiptError) -> Failure {
    match error {
        ReceiptError::File(ProofFileError::Read { .. }) => Failure::usage(error),
        error => Failure::run(error),
    }
}

fn describe(file: &ReceiptFile, receipt: &Receipt) -> String {
    let who = file.signers.as_ref().map_or_else(
        || "so many members say so that an honest one is among them".to_owned(),
        |signers| format!("members {signers:?} say so"),
    );
    let mut text = format!(
        "The receipt holds: request {} of client {} took effect at height {} of epoch {},\n\
         which was proposed at {} ms after 1970 began; {who}.\n",
        file.sequence, file.client, file.height, file.epoch, file.proposed_at_ms
    );
    let operations = Request::split_from(&receipt.request)
        .map(|(request, _)| request.operations)
        .unwrap_or_default();
    for (place, (operation, outcome)) in operations.iter().zip(receipt.results()).enumerate() {
        let words = in_words(operation, outcome);
        let words = words.unwrap_or_else(|| in_digits(operation, outcome));
        text += &format!("\n  {place}  {words}");
    }
    text
}

/// An operation of the key-value store and what it came to, in its words; `None` of another
/// service.
fn in_words(operation: &[u8], outcome: &Outcome) -> Option<String> {
    let operation = Operation::decode(operation).ok()?;
    match Output::read(outcome) {
        Ok(output) => Some(format!("{operation:?}\n       {output:?}")),
        Err(OutcomeError::Undecodable) => None,
        Err(refused) => Some(format!("{operation:?}\n       {refused}")),
    }
}

fn in_digits(operation: &[u8], outcome: &Outcome) -> String {
    let done = match outcome {
        Outcome::Applied(_) => "applied",
        Outcome::Refused(_) => "refused",
    };
    format!("{} {done}, with {}", hex::encode(operation), hex::encode(outcome.bytes()))
}
