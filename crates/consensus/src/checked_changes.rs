//! View changes that were checked, or are: each once, and few of each member.
//!
//! A view change holds a certificate for every slot of a window, and one that is a little different
//! costs as much again. A member has use for one in each view that it moves to, and for another
//! after each restart. So of each member few are checked, as long as the own view stays what it
//! is, and besides those that a pending new view names: without them an honest primary's view would
//! not begin.

use quorate_crypto::Digest;
use quorate_types::{Rejected, ReplicaId, View};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// View changes of one member that are checked without being named, into the own view and later
/// ones.
pub(crate) const CHANGES_MAX: usize = 8;

/// View change by its signer and its digest.
pub(crate) type ChangeName = (ReplicaId, Digest);

/// View changes that were checked, by their signers.
#[derive(Debug, Default)]
pub(crate) struct CheckedChanges {
    of: BTreeMap<ReplicaId, VecDeque<Seen>>,
    /// Those that pending new views name.
    wanted: BTreeSet<ChangeName>,
}

#[derive(Debug)]
struct Seen {
    view: View,
    digest: Digest,
    /// `None` while the check is under way.
    found: Option<Result<(), Rejected>>,
}

impl CheckedChanges {
    /// Result of an earlier check of this view change, which its signer signed; `None` if it is to
    /// be checked now.
    pub(crate) fn begin(
        &mut self,
        horizon: View,
        view: View,
        name: ChangeName,
    ) -> Option<Result<(), Rejected>> {
        let (signer, digest) = name;
        let seen = self.of.entry(signer).or_default();
        seen.retain(|seen| seen.view >= horizon);
        if let Some(known) = seen.iter().find(|seen| seen.digest == digest) {
            return known.found.clone();
        }
        if seen.len() >= CHANGES_MAX && !self.wanted.contains(&name) {
            return Some(Err(Rejected::TooFarAhead));
        }
        if seen.len() >= 2 * CHANGES_MAX {
            seen.pop_front();
        }
        seen.push_back(Seen { view, digest, found: None });
        None
    }

    /// Remembers what the check of a view change came to.
    pub(crate) fn end(&mut self, (signer, digest): ChangeName, found: Result<(), Rejected>) {
        let seen = self.of.get_mut(&signer).into_iter().flatten();
        if let Some(seen) = seen.into_iter().find(|seen| seen.digest == digest) {
            seen.found = Some(found);
        }
    }

    /// Replaces the names of those that are checked in any case.
    pub(crate) fn want(&mut self, names: BTreeSet<ChangeName>) {
        self.wanted = names;
    }
}

#[cfg(test)]
mod tests;
