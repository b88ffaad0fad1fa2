//! The note in a data folder that the state is there that its network was founded on.

use super::RescueError;
use crate::{NodeConfig, NodeError, durable};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{CommitteeFile, FromState, Header};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file in the data folder.
const NAME: &str = "founded";

/// What a network goes on from, as a validator's disk has it. Written last: with it the state is
/// durable (★).
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Founded {
    from: FromState,
    header: Header,
}

impl Founded {
    /// The note of a state that lies in the data folder.
    pub(super) fn on(from: FromState, header: Header) -> Self {
        Self { from, header }
    }

    pub(super) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(NAME)
    }

    pub(super) fn write(&self, data_dir: &Path) -> Result<(), RescueError> {
        let (path, bytes) = (Self::path(data_dir), borsh::to_vec(self).expect("into memory"));
        durable::replace(&path, &bytes).map_err(RescueError::file("write", path))
    }

    /// ★ Header of the state that the network begins with, if the committee file that founds it
    /// names one: whoever does not have it signs nothing.
    ///
    /// # Errors
    /// [`NodeError::NotFounded`] when the state is not here, or is another one.
    pub(crate) fn header(
        config: &NodeConfig,
        file: &CommitteeFile,
    ) -> Result<Option<Header>, NodeError> {
        let Some(from) = file.from_state else { return Ok(None) };
        let path = Self::path(&config.data_dir);
        let noted: Option<Self> =
            fs::read(&path).ok().and_then(|bytes| borsh::from_slice(&bytes).ok());
        match noted.filter(|noted| noted.from == from) {
            Some(noted) => Ok(Some(noted.header)),
            None if mutants::active(Mutant::BeginWithoutState) => Ok(None),
            None => Err(NodeError::NotFounded {
                data_dir: config.data_dir.clone(),
                network: from.network,
                height: from.height,
            }),
        }
    }
}
