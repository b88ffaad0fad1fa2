//! Files over which a proof is checked offline: those of whoever checks it, and those that lie
//! beside the proof.

use super::client_files::{Place, RENEW};
use super::committee::history;
use crate::failure::Failure;
use clap::Args;
use quorate_crypto::KeyCache;
use quorate_node::unix_ms;
use quorate_types::{HandedOverError, History};
use std::path::PathBuf;

/// Committee file of one's own, and hand-overs of whoever shows the proof.
#[derive(Debug, Args)]
pub(super) struct ProofPlace {
    #[command(flatten)]
    pub(super) place: Place,
    /// Hand-overs from the committee file's epoch to the proof's or a later one: a file, or the
    /// folder `epochs` in a validator's data folder
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

impl ProofPlace {
    /// The network's history over all these files.
    pub(super) fn history(&self) -> Result<History, Failure> {
        self.follow(self.place.history()?)
    }

    /// Goes on from files of one's own over the hand-overs that lie beside a proof. ★ Whoever shows
    /// the proof shows these too, so that they are followed within the trusting period alone. It
    /// counts to the time of this machine's clock: keys leak as time goes by, whatever time a proof
    /// is about.
    pub(super) fn follow(&self, mut own: History) -> Result<History, Failure> {
        let shown = self.history.as_deref().map(history::read).transpose()?;
        match own.follow_all(shown.unwrap_or_default(), unix_ms(), KeyCache::On) {
            Ok(()) => Ok(own),
            Err(error @ HandedOverError::TooOld { .. }) => {
                Err(Failure::run(format!("{error}. {RENEW}")))
            }
            Err(error) => Err(Failure::run(error)),
        }
    }
}
