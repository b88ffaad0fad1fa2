//! Noticing a lost disk (★): a small file beside the key says that the key was used on a network.
//!
//! A validator whose log is gone cannot know what it voted for, so it must never sign under its old
//! key again. A data folder without a log alone does not tell a lost disk from a first start; this
//! file does, as long as it is kept with the key and not with the data. Whoever restores a key from
//! a copy made before its first start has to set `follow_only` by hand.

use crate::{NodeError, durable, guard};
use quorate_crypto::mutants::{self, Mutant};
use quorate_storage::Journal;
use quorate_types::NetworkId;
use std::io;
use std::path::{Path, PathBuf};

/// Status of the key on the network at hand, as the file states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyStatus {
    /// The key signs, and there is a log of what it signed.
    Used,
    /// There was a log, and it is gone.
    Lost,
}

/// Extension of a marker's name.
pub(crate) const EXTENSION: &str = "used";

/// ★ Refuses a folder for notes in which those that the key has already are missing: its log, were
/// it lost or an old one, would be taken for a first. `noted` is the path that the key would have
/// in that folder.
pub(crate) fn check_notes(key: &Path, noted: &Path) -> Result<(), NodeError> {
    for extension in [EXTENSION, guard::EXTENSION] {
        let (beside, noted) = (key.with_extension(extension), noted.with_extension(extension));
        let is_left = beside.exists() && !noted.exists();
        if is_left && !mutants::active(Mutant::LeaveNotesBehind) {
            return Err(NodeError::NotesElsewhere { beside, noted });
        }
    }
    Ok(())
}

/// File beside a key that says on which network the key was used.
#[derive(Debug)]
pub(crate) struct Marker(PathBuf);

impl Marker {
    /// The marker of a key file.
    pub(crate) fn beside(key: &Path) -> Self {
        Self(key.with_extension(EXTENSION))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Status that the file states for `network`; `None` when it states nothing.
    pub(crate) fn read(&self, network: NetworkId) -> Result<Option<KeyStatus>, NodeError> {
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(self.failed("read", source)),
        };
        let mut words = text.split_whitespace();
        if words.next() != Some(hex::encode(network.0).as_str()) {
            return Ok(None);
        }
        match words.next() {
            Some("used") => Ok(Some(KeyStatus::Used)),
            // Anything else was not written by us: no reason to sign.
            _ => Ok(Some(KeyStatus::Lost)),
        }
    }

    /// ★ Tells whether the key signed on `network` and the log of its promises is lost: the key is
    /// marked as used and there is none in `log`, or an earlier start found so.
    pub(crate) fn is_lost(&self, network: NetworkId, log: &Path) -> Result<bool, NodeError> {
        match self.read(network)? {
            None => Ok(false),
            Some(KeyStatus::Lost) => Ok(true),
            Some(KeyStatus::Used) if mutants::active(Mutant::SignAfterLoss) => Ok(false),
            Some(KeyStatus::Used) => Ok(!Journal::has_begun(log)?),
        }
    }

    /// Writes a status durably; nothing when the file states it already.
    pub(crate) fn write(&self, network: NetworkId, status: KeyStatus) -> Result<(), NodeError> {
        if self.read(network)? == Some(status) {
            return Ok(());
        }
        let word = match status {
            KeyStatus::Used => "used",
            KeyStatus::Lost => "lost",
        };
        let text = format!("{} {word}\n", hex::encode(network.0));
        durable::replace(&self.0, text.as_bytes()).map_err(|source| self.failed("write", source))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> NodeError {
        NodeError::Marker { action, path: self.0.clone(), source }
    }
}

#[cfg(test)]
mod tests;
