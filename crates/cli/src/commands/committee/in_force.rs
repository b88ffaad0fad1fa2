//! The committee whose epoch a change ends, and the rules that a change must keep under it.

use super::{change_file, history};
use crate::commands::client_files::Place;
use crate::failure::Failure;
use clap::Args;
use quorate_crypto::KeyCache;
use quorate_engine::check_next_settings;
use quorate_node::Epochs;
use quorate_node::config::{check_next_host, read_committee_file};
use quorate_types::{Change, Committee, CommitteeFile, History, SignedChange};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files that say which committee is in force.
#[derive(Debug, Args)]
pub(super) struct Source {
    #[command(flatten)]
    place: Place,
    /// Hand-overs from the network's first committee file to the one in force, once an epoch ended
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
}

/// Committee whose epoch is in force, with its file.
pub(in crate::commands) struct InForce {
    pub(in crate::commands) committee: Arc<Committee>,
    pub(in crate::commands) file: CommitteeFile,
}

impl Source {
    /// The options that name the same files, for commands that can be pasted.
    pub(super) fn options(&self) -> String {
        let history = self.history.iter().map(|path| format!(" --history {}", path.display()));
        format!("--committee {}{}", self.place.path().display(), history.collect::<String>())
    }

    /// Path of the network's first committee file.
    pub(super) fn committee(&self) -> PathBuf {
        self.place.path()
    }

    /// Reads the network's first committee file, and goes from there over the hand-overs.
    pub(super) fn load(&self) -> Result<InForce, Failure> {
        let genesis = read_committee_file(&self.place.path()).map_err(Failure::usage)?;
        let first = self.place.load()?;
        let steps = self.history.as_deref().map(history::read).transpose()?.unwrap_or_default();
        let history = History::walk(first, &steps, KeyCache::On).map_err(Failure::usage)?;
        let file = steps.into_iter().next_back().map_or(genesis, |step| step.file);
        Ok(InForce { committee: Arc::clone(history.committee()), file })
    }
}

/// Name of the file in a change, for messages of whoever thinks that it lies on a disk.
const NEXT: &str = "the next committee file";

impl InForce {
    /// The last epoch that has begun on a host.
    pub(in crate::commands) fn of_host(epochs: &Epochs) -> Self {
        Self { committee: Arc::clone(epochs.committee()), file: epochs.file().clone() }
    }

    /// Reads a change, sound but for its signatures, with the next committee.
    pub(in crate::commands) fn read_change(
        &self,
        path: &Path,
    ) -> Result<(SignedChange, Committee), Failure> {
        let signed = change_file::read(path)?;
        let checked = self.check(&signed.change);
        let next =
            checked.map_err(|broken| Failure::usage(format!("{}: {broken}", path.display())))?;
        Ok((signed, next))
    }

    /// Checks everything about a change but its signatures, as members do, and the settings of
    /// hosts, of which the machine that orders it knows nothing. Returns the next committee.
    pub(super) fn check(&self, change: &Change) -> Result<Committee, String> {
        let next = change.check(&self.committee).map_err(text)?;
        check_next_settings(&change.file, &next).map_err(text)?;
        check_next_host(&self.file.settings, &change.file.settings)
            .map_err(|reason| format!("{NEXT}: {reason}"))?;
        Ok(next)
    }

    /// Checks everything about a change but the height that orders it.
    pub(super) fn check_signed(&self, signed: &SignedChange) -> Result<(), String> {
        self.check(&signed.change)?;
        signed.check(&self.committee).map(drop).map_err(text)
    }
}

fn text(reason: impl Display) -> String {
    reason.to_string()
}
