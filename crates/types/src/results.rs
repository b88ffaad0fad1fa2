//! Results of a request with their hash, computed once.

use crate::Outcome;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{Digest, hash};
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// Results of a request in order, one for each operation. Cloning shares them.
///
/// The digest is over these very results: it is computed where they are executed or decoded, and
/// nothing sets it otherwise. It is no part of the encoding, which is that of the results alone:
/// what another member says that a digest is has to be compared with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results(Arc<Hashed>);

#[derive(Debug, PartialEq, Eq)]
struct Hashed {
    outcomes: Vec<Outcome>,
    digest: Digest,
}

impl Results {
    /// Results of a request as they were executed, hashed here.
    #[must_use]
    pub fn new(outcomes: Vec<Outcome>) -> Self {
        let encoded = borsh::to_vec(&outcomes).expect("encoding into memory cannot fail");
        Self(Arc::new(Hashed { outcomes, digest: hash(&encoded) }))
    }

    /// Hash over the encoded results.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0.digest
    }
}

impl Deref for Results {
    type Target = [Outcome];
    fn deref(&self) -> &[Outcome] {
        &self.0.outcomes
    }
}

impl BorshSerialize for Results {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        self.0.outcomes.serialize(writer)
    }
}

impl BorshDeserialize for Results {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        Vec::deserialize_reader(reader).map(Self::new)
    }
}

#[cfg(test)]
mod tests;
