//! The state of a network as it travels to another one: what a file of it begins with, before the
//! chunks of the snapshot.
//!
//! It proves itself to whoever has the network's first committee file, as far as anybody signed
//! anything: members sign the root of a height, which has the service's state and the history of
//! the sessions. The sessions themselves are named by the snapshot's digest alone.

use crate::executed::ExecutionCertificate;
use crate::{
    Committee, FromState, HandedOver, HandedOverError, History, Manifest, NetworkId, Rejected,
    bounded,
};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::KeyCache;
use quorate_crypto::mutants::{self, Mutant};

/// Description of a state with what proves it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ExportedState {
    /// Network that executed it.
    pub network: NetworkId,
    /// Hand-overs of that network from its first epoch on.
    pub steps: Vec<HandedOver>,
    /// Snapshot of the state.
    pub manifest: Manifest,
    /// Certificate of its height; absent where an epoch ended there, whose hand-over has the root.
    pub certificate: Option<ExecutionCertificate>,
}

/// Who signed a state's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertifiedBy {
    /// Members of whom one is honest.
    Members,
    /// A quorum, which handed over to the next epoch with it.
    HandOver,
}

/// Reason that a state is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportedStateError {
    /// The state of another network.
    #[error(
        "it is the state of network {found}, and the committee file is that of network {expected}"
    )]
    OtherNetwork {
        /// Network that it names.
        found: NetworkId,
        /// Network of the committee file.
        expected: NetworkId,
    },
    /// A hand-over among its steps breaks a rule.
    #[error(transparent)]
    HandOver(#[from] HandedOverError),
    /// The certificate is of another height or root than the snapshot.
    #[error("its certificate is not of the state in it: height or root differ")]
    OtherHeader,
    /// The certificate does not hold.
    #[error("its certificate: {0}")]
    Certificate(Rejected),
    /// It has no certificate, and is not what an epoch ended with.
    #[error("nobody certified it: it has no certificate, and no epoch ended with it")]
    Uncertified,
}

impl ExportedState {
    /// Most bytes of one, without the chunks.
    pub const BYTES_MAX: usize = 64 * 1024 * 1024;

    /// Decodes what anybody may have written; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let state: Self = bounded::decode(bytes, Self::BYTES_MAX)?;
        (state.manifest.chunks.len() <= Manifest::CHUNKS_MAX).then_some(state)
    }

    /// Its bytes, in a file.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(self).expect("encoding into memory cannot fail")
    }

    /// What a committee file says of it that founds a network on it.
    #[must_use]
    pub fn from_state(&self) -> FromState {
        let header = &self.manifest.header;
        FromState {
            network: self.network,
            height: header.height,
            root: header.root(),
            snapshot: self.manifest.digest(),
        }
    }

    /// Checks it from the network's first committee on: every hand-over, and that members of the
    /// epoch whose height it is certified this very root (★). Returns the epochs, and who did.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(
        &self,
        first: Committee,
        cache: KeyCache,
    ) -> Result<(History, CertifiedBy), ExportedStateError> {
        let (found, expected) = (self.network, first.network());
        if found != expected {
            return Err(ExportedStateError::OtherNetwork { found, expected });
        }
        let history = History::walk(first, &self.steps, cache)?;
        let header = &self.manifest.header;
        let Some(certified) = &self.certificate else {
            let is_handed_over = self.steps.iter().any(|step| step.header == *header);
            let by = is_handed_over.then_some(CertifiedBy::HandOver);
            return by.map(|by| (history, by)).ok_or(ExportedStateError::Uncertified);
        };
        if certified.header != *header && !mutants::active(Mutant::StateOfOtherHeader) {
            return Err(ExportedStateError::OtherHeader);
        }
        certified
            .check(history.owner_of(header.height))
            .map_err(ExportedStateError::Certificate)?;
        Ok((history, CertifiedBy::Members))
    }
}

#[cfg(test)]
mod tests;
