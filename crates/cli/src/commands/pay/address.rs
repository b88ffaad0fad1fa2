//! `quorate pay keys` and `address`: wallets and their names.

use super::place::{Folder, explain, key_file, make_folder, owner, wallet_file};
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::Args;
use quorate_crypto::{KeyFile, SchemeKind, SealCost};
use quorate_gateway::wallet::Wallet;
use quorate_node::testnet::system_random;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Make a wallet: a folder with new keys and an empty file of coins and payments.
///
/// Whoever reads the key spends the money. Keep a copy of the key: with it, `quorate pay restore`
/// makes the wallet again if its disk is lost.
#[derive(Debug, Args)]
pub(super) struct Keys {
    /// Folder to make for the wallet
    folder: PathBuf,
    /// Seal the key under a passphrase
    #[arg(long, conflicts_with = "existing")]
    encrypt: bool,
    /// Take the passphrase from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE", requires = "encrypt")]
    passphrase_file: Option<PathBuf>,
    /// Make a wallet for the key.toml that is in the folder already, as the issuer's of a testnet.
    /// Before it pays first, it asks the authorities for what they keep of the key
    #[arg(long)]
    existing: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Show a wallet's address: its public key, which payers write as payee.
#[derive(Debug, Args)]
pub(super) struct Address {
    #[command(flatten)]
    folder: Folder,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Keys {
    pub(super) fn run(&self) -> CommandResult {
        if !self.existing {
            self.make_keys()?;
        }
        let (book, owner) = (wallet_file(&self.folder), owner(&self.folder)?);
        let made = if self.existing {
            Wallet::create_for_used_key(&book, owner)
        } else {
            Wallet::create(&book, owner)
        };
        made.map_err(explain)?;
        show(&self.folder, self.json)
    }

    fn make_keys(&self) -> CommandResult {
        make_folder(&self.folder)?;
        let file = key_file(&self.folder);
        let keys = KeyFile::generate(SchemeKind::Ed25519, &mut system_random);
        let keys = keys.map_err(Failure::usage)?;
        if !self.encrypt {
            return keys.write(&file).map_err(Failure::usage);
        }
        // Before anybody thinks up a passphrase for nothing.
        if file.exists() {
            return Err(Failure::usage(quorate_crypto::KeyFileError::Exists { path: file }));
        }
        let passphrase = passphrase::new(&file, self.passphrase_file.as_deref(), true)?;
        keys.write_sealed(&file, &passphrase, SealCost::default(), &mut system_random)
            .map_err(Failure::usage)
    }
}

impl Address {
    pub(super) fn run(&self) -> CommandResult {
        show(self.folder.path(), self.json)
    }
}

fn show(folder: &Path, json: bool) -> CommandResult {
    let address = owner(folder)?.to_string();
    if json {
        output::json(&json!({ "address": address, "wallet": folder }));
    } else {
        output::line(&address);
    }
    Ok(())
}
