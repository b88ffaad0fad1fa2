//! `quorate pay`: payments without consensus.

mod address;
mod bench;
mod change;
mod follow;
mod history;
mod load;
mod payment_files;
mod place;
mod receive;
mod release;
mod restore;
mod run;
mod send;
mod serve;
mod testnet;
mod token;

use crate::failure::CommandResult;
use clap::{Args, Subcommand};

/// Pay without consensus: authorities, wallets, measurements.
///
/// A wallet is a folder with a key and a file of its coins and payments. Whatever it sends is on
/// its disk first: a command may be killed at any time, and `quorate pay retry` finishes what it
/// began. Never use two copies of a wallet side by side: coins that both spend are locked, and at
/// best come back by `quorate pay release`. A wallet whose disk was lost is made again by
/// `quorate pay restore`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay keys anne                                make a wallet, and say its address\n  \
    quorate pay testnet net --genesis ADDRESS=1000       a network in which it has 1000 units\n  \
    quorate pay genesis -w anne --network net/network.toml\n  \
    quorate pay send -w anne --network net/network.toml --to ADDRESS --value 30 --memo 'invoice 7'\n  \
    quorate pay receive -w bob --network net/network.toml receipt.json     offline\n  \
    quorate pay balance -w bob --network net/network.toml\n\n\
    A network file named network.toml in the wallet's folder, or beside that folder, is found by itself.")]
pub(crate) struct Options {
    #[command(subcommand)]
    command: PayCommand,
}

#[derive(Debug, Subcommand)]
enum PayCommand {
    /// Write keys and configurations of a new payment network
    Testnet(testnet::Options),
    /// Run one shard of one authority
    Run(run::Options),
    /// Make a wallet of one key
    Keys(address::Keys),
    /// Show a wallet's address, which payers write as payee
    Address(address::Address),
    /// Collect the coins that the network began with for this wallet
    Genesis(receive::Genesis),
    /// Write a request for payment
    Request(payment_files::Request),
    /// Pay somebody, and write the receipt that they collect
    Send(send::Send),
    /// Collect the coins of a receipt, offline
    Receive(receive::Receive),
    /// Check a receipt offline, or write one again
    Receipt(payment_files::Receipt),
    /// Check evidence of a double spend offline
    Evidence(payment_files::Evidence),
    /// Show a wallet's balance
    Balance(history::Balance),
    /// Show a wallet's history
    History(history::History),
    /// Export a wallet's history as a table for auditors
    Export(history::Export),
    /// Issue coins, as the network's issuer
    Issue(send::Issue),
    /// Burn coins, which the issuer pays out elsewhere
    Redeem(send::Redeem),
    /// Merge up to 64 small coins into one
    Consolidate(send::Consolidate),
    /// Finish payments that were begun: the same bytes are sent again
    Retry(send::Retry),
    /// Have coins released that their payments left locked
    Release(release::Release),
    /// Write a backup of a wallet
    Backup(restore::BackupOptions),
    /// Make a wallet again, from its key and the authorities, or from a backup
    Restore(restore::Restore),
    /// Serve a wallet over HTTP, for tills and shops
    Serve(serve::Serve),
    /// Add, list or remove users of a wallet that is served
    Token(token::Token),
    /// Replace, add or remove authorities, at the end of an epoch
    Change(change::Options),
    /// Put a running network under load, and prove that no payment is lost and none made twice
    Load(load::Load),
    /// Follow the network to the epoch in force
    Follow(follow::Follow),
    /// Measure all schemes: real authorities under load, beside what their signatures cost
    Bench(bench::Options),
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.command {
            PayCommand::Testnet(options) => options.run(),
            PayCommand::Run(options) => options.run(),
            PayCommand::Keys(options) => options.run(),
            PayCommand::Address(options) => options.run(),
            PayCommand::Genesis(options) => options.run(),
            PayCommand::Request(options) => options.run(),
            PayCommand::Send(options) => options.run(),
            PayCommand::Receive(options) => options.run(),
            PayCommand::Receipt(options) => options.run(),
            PayCommand::Evidence(options) => options.run(),
            PayCommand::Balance(options) => options.run(),
            PayCommand::History(options) => options.run(),
            PayCommand::Export(options) => options.run(),
            PayCommand::Issue(options) => options.run(),
            PayCommand::Redeem(options) => options.run(),
            PayCommand::Consolidate(options) => options.run(),
            PayCommand::Retry(options) => options.run(),
            PayCommand::Release(options) => options.run(),
            PayCommand::Backup(options) => options.run(),
            PayCommand::Restore(options) => options.run(),
            PayCommand::Serve(options) => options.run(),
            PayCommand::Token(options) => options.run(),
            PayCommand::Change(options) => options.run(),
            PayCommand::Load(options) => options.run(),
            PayCommand::Follow(options) => options.run(),
            PayCommand::Bench(options) => options.run(),
        }
    }
}
