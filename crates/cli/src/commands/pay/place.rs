//! Paths of a wallet and its network's file, and how they are opened.

use crate::failure::{CommandResult, Failure};
use crate::passphrase;
use clap::Args;
use quorate_crypto::{IdentityKey, IdentitySecret, KeyFile, Passphrase, StoredKeys};
use quorate_gateway::wallet::{
    OrderingError, PaymentFileError, PaymentService, ReleaseCommitteeFile, ReleaseOrdering, Wallet,
    WalletError,
};
use quorate_node::payments::{NetworkFollower, ReleaseCommittee, read_network};
use quorate_payments::Network;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The network file's name where none is given.
const NETWORK: &str = "network.toml";

/// Path of a wallet.
#[derive(Debug, Args)]
pub(super) struct Folder {
    /// The wallet's folder, as `quorate pay keys` made it
    #[arg(short = 'w', long, value_name = "FOLDER", default_value = ".")]
    wallet: PathBuf,
}

/// Path of a network's file.
#[derive(Debug, Args)]
pub(super) struct NetworkPlace {
    /// The network file; by default network.toml in the wallet's folder, or else beside that folder
    #[arg(long, value_name = "FILE")]
    network: Option<PathBuf>,
}

/// Path of the file of the committee that orders releases.
#[derive(Debug, Args)]
pub(super) struct CommitteePlace {
    /// The file of the committee that orders releases of locked coins; by default committee.toml
    /// beside the network file, if it is there
    #[arg(long, value_name = "FILE")]
    committee: Option<PathBuf>,
}

/// Options of a command that asks the authorities.
#[derive(Debug, Args)]
pub(super) struct Online {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    committee: CommitteePlace,
    /// Longest wait for the authorities' answers, in seconds
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=3_600))]
    timeout: u64,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Paths of a wallet and its network, and the passphrase of its key.
#[derive(Debug, Args)]
pub(super) struct Place {
    #[command(flatten)]
    pub(super) folder: Folder,
    #[command(flatten)]
    network: NetworkPlace,
    /// Take the passphrase of a sealed key from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// The key file in a wallet's folder.
pub(super) fn key_file(folder: &Path) -> PathBuf {
    folder.join("key.toml")
}

/// The file of coins and payments in a wallet's folder.
pub(super) fn wallet_file(folder: &Path) -> PathBuf {
    folder.join("wallet")
}

/// Makes a folder that only its owner may read.
pub(super) fn make_folder(folder: &Path) -> CommandResult {
    let failed = |error| Failure::usage(format!("cannot make {}: {error}", folder.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)
}

/// The public key in a folder; a sealed key file shows it without its passphrase.
pub(super) fn owner(folder: &Path) -> Result<IdentityKey, Failure> {
    Ok(StoredKeys::read(&key_file(folder)).map_err(Failure::usage)?.public().identity)
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.wallet
    }
}

impl NetworkPlace {
    /// The network file that was named, or one at a wallet's folder.
    pub(super) fn path(&self, folder: &Path) -> Result<PathBuf, Failure> {
        self.network.clone().map_or_else(|| beside(folder), Ok)
    }

    /// The network of that file, in its newest epoch.
    pub(super) fn load(&self, folder: &Path) -> Result<Arc<Network>, Failure> {
        read_network(&self.path(folder)?).map(Arc::new).map_err(Failure::usage)
    }
}

impl CommitteePlace {
    /// The file that was named, or that beside the network file, if it is there.
    pub(super) fn file(&self, network: &Path) -> Result<Option<PathBuf>, Failure> {
        match &self.committee {
            Some(path) if path.is_file() => Ok(Some(path.clone())),
            Some(path) => {
                Err(Failure::usage(format!("there is no committee file {}", path.display())))
            }
            None => {
                let beside = network.with_file_name(ReleaseCommittee::FILE);
                Ok(beside.is_file().then_some(beside))
            }
        }
    }

    /// The committee in the file that was named, or in one beside the network file; `None` where
    /// there is none. Nobody is connected to yet.
    pub(super) fn find(
        &self,
        place: &Place,
        network: &Arc<Network>,
    ) -> Result<Option<Arc<dyn ReleaseOrdering>>, Failure> {
        let found = self.file(&place.network_path()?)?;
        let found = found.map(|path| {
            let committee = ReleaseCommitteeFile::new(path, Arc::clone(network));
            Arc::new(committee) as Arc<dyn ReleaseOrdering>
        });
        Ok(found)
    }
}

impl Online {
    /// Opens connections to the authorities in the background, and serves a wallet by them.
    pub(super) fn connect(&self, wallet: Wallet) -> Result<Arc<PaymentService>, Failure> {
        connect(wallet, &self.place, &self.committee)
    }

    pub(super) fn within(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Opens connections to the authorities in the background, and serves a wallet by them, in epochs
/// that come as well.
pub(super) fn connect(
    wallet: Wallet,
    place: &Place,
    committee: &CommitteePlace,
) -> Result<Arc<PaymentService>, Failure> {
    let committee = committee.find(place, wallet.network())?;
    let follower = NetworkFollower::open(&place.network_path()?).map_err(Failure::usage)?;
    PaymentService::connect(wallet, follower, committee).map_err(Failure::run)
}

/// Says why a network's next epoch is not followed, where that is so.
pub(super) fn warn_of_trouble(service: &PaymentService) {
    if let Some(trouble) = service.trouble() {
        eprintln!("warning: {trouble}");
    }
}

fn beside(folder: &Path) -> Result<PathBuf, Failure> {
    let within = folder.join(NETWORK);
    // The folder itself may be `.`, whose parent only the file system knows.
    let parent =
        fs::canonicalize(folder).ok().and_then(|whole| Some(whole.parent()?.join(NETWORK)));
    let found = [Some(within), parent].into_iter().flatten().find(|path| path.is_file());
    found.ok_or_else(|| {
        Failure::usage(format!(
            "there is no {NETWORK} in {} or beside it: name the network file by --network",
            folder.display()
        ))
    })
}

impl Place {
    pub(super) fn network(&self) -> Result<Arc<Network>, Failure> {
        self.network.load(self.folder.path())
    }

    /// Opens the wallet, alone.
    pub(super) fn open(&self) -> Result<Wallet, Failure> {
        let network = self.network()?;
        let secret = self.secret()?;
        Wallet::open(&wallet_file(self.folder.path()), network, secret).map_err(explain)
    }

    pub(super) fn secret(&self) -> Result<IdentitySecret, Failure> {
        Ok(self.keys()?.0.identity)
    }

    /// Keys of the wallet, with the passphrase where they are sealed.
    pub(super) fn keys(&self) -> Result<(KeyFile, Option<Passphrase>), Failure> {
        let path = key_file(self.folder.path());
        passphrase::open_with_passphrase(&path, self.passphrase_file.as_deref())
    }

    /// Path of the network file.
    pub(super) fn network_path(&self) -> Result<PathBuf, Failure> {
        self.network.path(self.folder.path())
    }
}

/// The exit code of a wallet's refusal.
pub(super) fn explain(error: WalletError) -> Failure {
    match error {
        WalletError::Io { .. }
        | WalletError::Stopped { .. }
        | WalletError::Damaged { .. }
        | WalletError::Archive { .. }
        | WalletError::Behind { .. } => Failure::Disk(error.to_string()),
        WalletError::InUse { .. }
        | WalletError::TooFewAuthorities { .. }
        | WalletError::TooLittle { .. }
        | WalletError::TooManyCoins { .. }
        | WalletError::NothingToConsolidate
        | WalletError::NothingLocked(_)
        | WalletError::Release(OrderingError::Refused(_) | OrderingError::Unanswered(_))
        | WalletError::Receipt(_)
        | WalletError::FormerEpoch { .. }
        | WalletError::NotFollowed(_)
        | WalletError::NotMine { .. }
        | WalletError::Invalid(_) => Failure::run(error),
        error => Failure::usage(error),
    }
}

/// The exit code of a paper that is not taken: 1 where it proves nothing, 2 where it cannot be
/// read.
pub(super) fn explain_paper(path: &Path, error: PaymentFileError) -> Failure {
    match error {
        PaymentFileError::Read { .. } => Failure::usage(error),
        error => Failure::run(format!("{}: {error}", path.display())),
    }
}

/// Text for a terminal: a stranger's memo must not move the cursor.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let escaped = letter.is_control().then(|| letter.escape_default());
            let plain = (!letter.is_control()).then_some(letter);
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}
