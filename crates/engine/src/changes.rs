//! Changes of committee that wait to be ordered, and what the blocks that order them wait for.
//!
//! A change is a body of its own kind: it is stored, fetched and served as any other, but nobody
//! seals it and no payload names it among its bodies. It is kept until its time is over. Whoever
//! leads proposes it as soon as a height may order it.
//!
//! ★ A block that ends the epoch gets a vote once its change is here, was checked, and may be
//! ordered at that block's height.

use quorate_consensus::Occupancy;
use quorate_crypto::{Digest, IdentityKey};
use quorate_types::{BlockId, BodyRef, Change, ChangeError, CommitteeFile, Height};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes that are kept though no block orders them. Each was approved by a quorum: nobody fills
/// this alone.
const KEPT_MAX: usize = 4;

/// Reason for which a good change is not taken.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    /// No height to come may order it.
    #[error(transparent)]
    Never(ChangeError),
    /// Others wait already.
    #[error("{KEPT_MAX} changes wait already: bring this one once one of them expired")]
    TooMany,
    /// One was ordered.
    #[error("another change was ordered: this epoch has ended, or ends with it")]
    Ended,
}

/// The book of changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    known: BTreeMap<Digest, Known>,
    arrivals: u64,
    /// Blocks that may end the epoch, each with its change and its height.
    stops: BTreeMap<BlockId, (Digest, Height)>,
    /// The epoch's end.
    stop: Option<Stop>,
}

/// Decided block that ends the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    /// Digest of the change that it orders.
    pub(crate) change: Digest,
    pub(crate) height: Height,
    pub(crate) block: BlockId,
}

#[derive(Debug)]
struct Known {
    change: Change,
    /// Identities of the next members.
    members: Arc<[IdentityKey]>,
    arrival: u64,
    stored: bool,
}

impl Changes {
    /// Takes a change that was checked; `true` if it is new and must be stored. `next` is the
    /// height after the last decided one. One that a block orders (`is_needed`) is taken in any
    /// case: whether that block may is another question.
    pub(crate) fn take(
        &mut self,
        change: Change,
        next: Height,
        is_needed: bool,
    ) -> Result<bool, NotTaken> {
        let digest = change.digest();
        if self.known.contains_key(&digest) {
            return Ok(false);
        }
        if self.ordered().is_some_and(|ordered| ordered != digest) {
            return Err(NotTaken::Ended);
        }
        if !is_needed && self.stop.is_none() {
            if next > change.expires {
                return Err(NotTaken::Never(ChangeError::Expired(change.expires)));
            }
            if self.known.len() >= KEPT_MAX {
                return Err(NotTaken::TooMany);
            }
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let members = change.file.members.iter().filter_map(|member| member.identity.parse().ok());
        let members = members.collect();
        self.known.insert(digest, Known { change, members, arrival, stored: false });
        Ok(true)
    }

    /// The change is durable.
    pub(crate) fn stored(&mut self, digest: &Digest) {
        if let Some(known) = self.known.get_mut(digest) {
            known.stored = true;
        }
    }

    /// The change to propose at this height: of those that it may order the one that came first.
    pub(crate) fn due(&self, height: Height) -> Option<Digest> {
        let is_due = |(_, known): &(&Digest, &Known)| {
            known.stored && known.change.check_height(height).is_ok()
        };
        let due = self.known.iter().filter(is_due).min_by_key(|(_, known)| known.arrival);
        due.map(|(digest, _)| *digest).filter(|_| self.stop.is_none())
    }

    /// A block orders this change, and waits for it.
    pub(crate) fn asked(&mut self, block: BlockId, change: Digest, height: Height) {
        self.stops.insert(block, (change, height));
    }

    /// ★ Returns `true` if the block may get a vote as far as changes go: it orders none, or one
    /// that is here and good at its height.
    pub(crate) fn allow(&self, block: &BlockId) -> bool {
        let Some((digest, height)) = self.stops.get(block) else { return true };
        let known = self.known.get(digest).filter(|known| known.stored);
        known.is_some_and(|known| known.change.check_height(*height).is_ok())
    }

    /// Forgets what blocks asked for that may not be voted for any more.
    pub(crate) fn tidy(&mut self, may_vote: impl Fn(BlockId) -> bool) {
        self.stops.retain(|block, _| may_vote(*block));
    }

    /// The epoch's last block is decided.
    pub(crate) fn end(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }

    /// The epoch's last block, once it is decided.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.stop
    }

    /// The change that ends the epoch, once its block is decided.
    pub(crate) fn ordered(&self) -> Option<Digest> {
        self.stop.map(|stop| stop.change)
    }

    /// Committee file of the next epoch, once that is certain and here.
    pub(crate) fn next_file(&self) -> Option<&CommitteeFile> {
        let known = self.known.get(&self.ordered()?).filter(|known| known.stored);
        known.map(|known| &known.change.file)
    }

    /// Members of the epochs that these changes begin, by change: approved by a quorum, and having
    /// accepted their places, they may follow at once.
    pub(crate) fn next_members(&self) -> Vec<Arc<[IdentityKey]>> {
        self.known.values().map(|known| Arc::clone(&known.members)).collect()
    }

    /// Forgets the changes that no height from `next` on may order, and returns their bodies'
    /// names.
    pub(crate) fn expire(&mut self, next: Height) -> Vec<BodyRef> {
        let ordered = self.ordered();
        let is_over = |digest: &Digest, known: &Known| {
            next > known.change.expires && ordered != Some(*digest)
        };
        let over = self.known.iter().filter(|(digest, known)| is_over(digest, known));
        let over: Vec<Digest> = over.map(|(digest, _)| *digest).collect();
        over.iter().for_each(|digest| drop(self.known.remove(digest)));
        over.into_iter().map(BodyRef::of_change).collect()
    }

    pub(crate) fn occupancy(&self) -> Occupancy {
        Occupancy::new("known", self.known.len(), KEPT_MAX + self.stops.len())
    }
}

#[cfg(test)]
mod tests;
