//! How many past states a validator keeps.

use super::NodeConfig;
use quorate_storage::history::HistoryConfig;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// States of earlier heights that are kept, beside the last few that are in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Archive {
    /// As many as there is room for in [`NodeConfig::archive_bytes`], and at most
    /// [`NodeConfig::archive_heights`].
    #[default]
    Recent,
    /// All since the archive began.
    All,
    /// Those in memory alone.
    Off,
}

/// A text that names no [`Archive`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no archive: write \"recent\", \"all\" or \"off\"")]
pub struct UnknownArchive(String);

impl FromStr for Archive {
    type Err = UnknownArchive;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "recent" => Ok(Self::Recent),
            "all" => Ok(Self::All),
            "off" => Ok(Self::Off),
            _ => Err(UnknownArchive(text.to_owned())),
        }
    }
}

impl fmt::Display for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Recent => "recent",
            Self::All => "all",
            Self::Off => "off",
        })
    }
}

impl NodeConfig {
    /// Bounds of the archive; `None` where there is to be none.
    #[must_use]
    pub fn history_config(&self) -> Option<HistoryConfig> {
        match self.archive {
            Archive::Recent => Some(HistoryConfig {
                heights_max: (self.archive_heights > 0).then_some(self.archive_heights),
                bytes_max: Some(self.archive_bytes),
            }),
            Archive::All => Some(HistoryConfig { heights_max: None, bytes_max: None }),
            Archive::Off => None,
        }
    }

    /// Most bytes for proofs of past states: none without an archive.
    pub(crate) fn provable_bytes(&self) -> u64 {
        self.history_config().map_or(0, |_| self.archive_proof_bytes)
    }
}
