//! `quorate pay backup` and `restore`: wallets that survive their disks.

use super::history::describe_balance;
use super::place::{Online, Place, explain, key_file, wallet_file};
use super::send::{block_on, follow_releases};
use crate::failure::{CommandResult, Failure};
use crate::{output, secret};
use clap::Args;
use quorate_gateway::wallet::{Backup, Balance, Recovery, Wallet};
use serde::Serialize;
use serde_json::json;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Write a backup of a wallet: one file, sealed under a key that follows from the wallet's secret.
///
/// With it and the key, `quorate pay restore` makes the wallet again; what was paid after the
/// backup is taken in from the authorities. The key alone suffices where the authorities still keep
/// all.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate pay backup anne.backup -w anne")]
pub(super) struct BackupOptions {
    /// File to write, which must not exist
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Put the key file into the backup, as it is: whoever reads the backup then spends the money,
    /// unless the key is sealed under a passphrase
    #[arg(long)]
    with_key: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Make a wallet again whose file was lost, cut short or set back to an older copy.
///
/// It begins with the backup, or else with what can be read of the file that is there, and takes in
/// what the authorities keep: every payment and receipt that proves itself. Payments that were not
/// finished are sent again, the same bytes. Then a quorum is asked for the state of each coin;
/// nothing is paid before. Releases that were asked for go on, where a committee is known. The
/// former file stays, under another name.
///
/// Exit code 1: too few authorities answered; the command again goes on from there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay restore -w anne                  from the key in anne/key.toml and the authorities\n  \
    quorate pay restore anne.backup -w anne      from a backup, and what came after it")]
pub(super) struct Restore {
    /// Backup, as `quorate pay backup` wrote it
    file: Option<PathBuf>,
    #[command(flatten)]
    online: Online,
}

/// Outcome of a restore, for programs.
#[derive(Serialize)]
struct Report {
    authorities: usize,
    payments: usize,
    receipts: usize,
    conflicting: Vec<String>,
    uncounted: Vec<String>,
    former: Option<PathBuf>,
    balance: Balance,
}

impl BackupOptions {
    pub(super) fn run(&self) -> CommandResult {
        let wallet = self.place.open()?;
        let key = key_file(self.place.folder.path());
        let read = || {
            let failed = |error| Failure::usage(format!("cannot read {}: {error}", key.display()));
            fs::read_to_string(&key).map_err(failed)
        };
        let key_file = self.with_key.then(read).transpose()?;
        wallet.backup(key_file).and_then(|backup| backup.write(&self.file)).map_err(explain)?;
        if self.json {
            output::json(&json!({ "backup": self.file, "with_key": self.with_key }));
        } else {
            let key = if self.with_key { "with its key" } else { "without its key" };
            output::line(&format!("{}: the wallet, {key}", self.file.display()));
        }
        Ok(())
    }
}

impl Restore {
    pub(super) fn run(&self) -> CommandResult {
        let backup = self.file.as_deref().map(Backup::read).transpose().map_err(explain)?;
        let folder = self.online.place.folder.path();
        if let Some(key) = backup.as_ref().and_then(|backup| backup.key_file.as_deref()) {
            put_key(folder, key)?;
        }
        let network = self.online.place.network()?;
        let secret = self.online.place.secret()?;
        let book = wallet_file(folder);
        let former = Wallet::restore(&book, &secret, backup.as_ref()).map_err(explain)?;
        let wallet = Wallet::open(&book, network, secret).map_err(explain)?;
        let (recovery, (balance, lines)) = block_on(async {
            let service = self.online.connect(wallet)?;
            let within = self.online.within();
            let recovery = service.recover(within).await.map_err(explain)?;
            service.tend_records(within).await.map_err(explain)?;
            follow_releases(&service, within).await;
            let look = |wallet: &mut Wallet| (wallet.balance(), describe_balance(wallet));
            Ok((recovery, service.with(look)))
        })?;
        if self.online.json {
            let regained = &recovery.regained;
            output::json(&Report {
                authorities: recovery.answered,
                payments: regained.payments,
                receipts: regained.receipts,
                conflicting: regained.conflicting.iter().map(ToString::to_string).collect(),
                uncounted: regained.uncounted.iter().map(ToString::to_string).collect(),
                former,
                balance,
            });
        } else {
            output::line(&describe(&recovery, &lines, former.as_deref()));
        }
        Ok(())
    }
}

/// Puts a backup's key into a wallet's folder, unless there is one.
fn put_key(folder: &Path, text: &str) -> CommandResult {
    let path = key_file(folder);
    if path.exists() {
        return Ok(());
    }
    let failed = |error| Failure::usage(format!("cannot make {}: {error}", folder.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    secret::write_new(&path, text)
}

fn describe(recovery: &Recovery, balance: &[String], former: Option<&Path>) -> String {
    let regained = &recovery.regained;
    let mut text = format!(
        "{} authorities answered; {} payments and {} receipts were new\n{}",
        recovery.answered,
        regained.payments,
        regained.receipts,
        balance.join("\n")
    );
    for tx in &regained.conflicting {
        text.push_str(&format!(
            "\ntransaction {tx} takes a coin that another payment holds: one of the two is lost"
        ));
    }
    for tx in &regained.uncounted {
        text.push_str(&format!(
            "\ntransaction {tx} is certified by authorities of an epoch that has ended, and no quorum of those in \
             force says that it counts: its coins were left out. Restore again later"
        ));
    }
    if let Some(former) = former {
        text.push_str(&format!("\nthe former file: {}", former.display()));
    }
    text
}
