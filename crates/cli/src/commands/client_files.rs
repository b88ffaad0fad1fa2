//! Files of a client of a running committee: the network's, and its own.

use super::committee::history;
use crate::failure::{CommandResult, Failure};
use crate::passphrase;
use clap::Args;
use quorate_crypto::{IdentitySecret, KeyCache};
use quorate_node::config::load_committee;
use quorate_node::epochs::{self, read_history};
use quorate_node::{Layout, durable};
use quorate_types::{Committee, History};
use std::path::{Path, PathBuf};

/// Advice to whoever has files that are older than the trusting period.
pub(crate) const RENEW: &str = "To go on, copy the folder epochs in the data folder of a validator that you trust beside the \
     committee file";

/// Path of a committee's file.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// A folder that `quorate testnet` wrote
    #[arg(long, value_name = "FOLDER", default_value = ".", global = true)]
    net: PathBuf,
    /// A committee file, if it is not `committee.toml` in that folder. Clients and checks of proofs
    /// go on from there over the hand-overs in the folder `epochs` beside it, if it is there
    #[arg(long, value_name = "FILE", global = true)]
    committee: Option<PathBuf>,
}

impl Place {
    pub(crate) fn path(&self) -> PathBuf {
        let in_folder = || self.net.join(Layout::of(&self.net).shared(Layout::COMMITTEE));
        self.committee.clone().unwrap_or_else(in_folder)
    }

    /// A testnet's folder, unless a committee file was named ([`Place::is_file`]).
    pub(crate) fn folder(&self) -> &Path {
        &self.net
    }

    pub(crate) fn is_file(&self) -> bool {
        self.committee.is_some()
    }

    pub(crate) fn load(&self) -> Result<Committee, Failure> {
        load_committee(&self.path(), KeyCache::On).map_err(Failure::usage)
    }

    /// The network's history as far as the files here lead: the committee file, and the hand-overs
    /// in the folder `epochs` beside it.
    pub(crate) fn history(&self) -> Result<History, Failure> {
        read_history(&self.path(), KeyCache::On).map_err(Failure::usage)
    }
}

/// Files that say which network it is and who the client is.
#[derive(Debug, Args)]
pub(crate) struct ClientFiles {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Key file of a client that validators let in; by default client/key.toml in --net, if it is
    /// there
    #[arg(long = "key", value_name = "FILE", global = true)]
    client_key: Option<PathBuf>,
    /// Hand-overs from the committee file to the epoch in force: a file of your own, which is read
    /// if it is there and kept up to date, or the folder `epochs` of a validator that you trust
    #[arg(long, value_name = "FILE", global = true)]
    history: Option<PathBuf>,
}

impl ClientFiles {
    /// Key that vouches for the sessions of this client, where there is one.
    pub(crate) fn vouching(&self) -> Result<Option<IdentitySecret>, Failure> {
        let usual = self.place.net.join("client/key.toml");
        let file = match &self.client_key {
            Some(file) => file,
            None if usual.exists() => &usual,
            None => return Ok(None),
        };
        passphrase::open_keys(file, None).map(|keys| Some(keys.identity))
    }

    /// Epochs up to the last that is known here: who founded the network may be gone since. What
    /// this client keeps is its own, and leads on however old it is.
    pub(crate) fn known_epochs(&self) -> Result<History, Failure> {
        let history = self.place.history()?;
        match self.history.as_deref().filter(|path| path.exists()) {
            Some(kept) => {
                epochs::go_on(history, history::read(kept)?, kept).map_err(Failure::usage)
            }
            None => Ok(history),
        }
    }

    /// Keeps the epochs that the network has gone on to, or that no file has yet.
    pub(crate) fn keep_epochs(&self, known: &History, history: &History) -> CommandResult {
        let Some(path) = self.history.as_deref().filter(|path| !path.is_dir()) else {
            return Ok(());
        };
        if path.exists() && known.steps().len() == history.steps().len() {
            return Ok(());
        }
        let failed = |error| {
            let path = path.display();
            Failure::run(format!("what was asked for is done, and {path} was not written: {error}"))
        };
        let steps = borsh::to_vec(history.steps()).map_err(Failure::run)?;
        durable::replace(path, &steps).map_err(failed)
    }
}
