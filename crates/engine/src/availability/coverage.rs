//! Bodies covered by the certificates that this replica has seen.

use super::Covered;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BodyRef, ReplicaId};
use std::collections::BTreeMap;

/// Covered bodies remembered of each author: several times what an honest one has undecided.
const BODIES_MAX: usize = 4_096;

/// Coverage of bodies by author.
#[derive(Debug, Default)]
pub(crate) struct Coverage(BTreeMap<ReplicaId, Author>);

#[derive(Debug, Default)]
struct Author {
    bodies: BTreeMap<u64, Digest>,
    /// The signers of the last certificate.
    signers: Vec<ReplicaId>,
}

impl Coverage {
    /// Takes in a certificate and appends to `fresh` what it covers anew. The first digest under a
    /// number stands; `false` if the certificate has another.
    pub(crate) fn add(&mut self, covered: &Covered, fresh: &mut Vec<BodyRef>) -> bool {
        let author = self.0.entry(covered.author).or_default();
        author.signers.clone_from(&covered.signers);
        let mut agrees = true;
        for name in covered.names() {
            let known = *author.bodies.entry(name.sequence).or_insert_with(|| {
                fresh.push(name);
                name.digest
            });
            agrees &= known == name.digest;
        }
        while author.bodies.len() > BODIES_MAX {
            author.bodies.pop_first();
        }
        agrees
    }

    /// Returns `true` if this body, by its digest, is covered.
    pub(crate) fn contains(&self, name: &BodyRef) -> bool {
        let digest = self.0.get(&name.author).and_then(|author| author.bodies.get(&name.sequence));
        digest.is_some_and(|digest| {
            *digest == name.digest || mutants::active(Mutant::AvailableByNumber)
        })
    }

    /// A signer of the author's last certificate, not `but`, if this body is covered.
    pub(crate) fn holder(&self, name: &BodyRef, but: ReplicaId) -> Option<ReplicaId> {
        let author = self.0.get(&name.author).filter(|_| self.contains(name))?;
        let others: Vec<ReplicaId> =
            author.signers.iter().copied().filter(|signer| *signer != but).collect();
        let turn = usize::try_from(name.sequence % others.len().max(1) as u64).ok()?;
        others.get(turn).copied()
    }

    /// Nobody needs this body any more.
    pub(crate) fn forget(&mut self, name: &BodyRef) {
        if let Some(author) = self.0.get_mut(&name.author) {
            author.bodies.remove(&name.sequence);
        }
    }
}
