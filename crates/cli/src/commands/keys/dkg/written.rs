//! The files that a member has in the end, and what is done with them.

use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Paths of the files written.
#[derive(Debug, Serialize)]
pub(super) struct Written {
    pub(super) member: u16,
    /// Dealers whose parts were added up.
    pub(super) qualified: Vec<u16>,
    pub(super) key: PathBuf,
    pub(super) transcript: PathBuf,
    /// `None` where the keys are for the next epoch of a network.
    #[serde(flatten)]
    pub(super) founded: Option<Founded>,
}

/// Files of a network that the keys found.
#[derive(Debug, Serialize)]
pub(super) struct Founded {
    pub(super) committee: PathBuf,
    pub(super) config: PathBuf,
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, member) = (output::program(), self.member);
        let folder = self.key.parent().unwrap_or(Path::new("")).display();
        if self.founded.is_some() {
            return write!(
                f,
                "Member {member} has its keys in {folder}: key.toml, committee.toml, config.toml, \
                 transcript.json.\n\nCheck how they came about:\n\n  {program} keys transcript \
                 {folder}/transcript.json\n\nand run with them:\n\n  {program} run --config \
                 {folder}/config.toml"
            );
        }
        write!(
            f,
            "Member {member} of the next epoch has its keys in {folder}: key.next.toml, \
             transcript.json.\n\nkey.next.toml goes beside the key.toml of its validator. Whoever \
             leads the change drafts it\nwith the transcript, which is the same at every member:\n\n  \
             {program} committee draft --threshold-keys {folder}/transcript.json --out CHANGE"
        )
    }
}
