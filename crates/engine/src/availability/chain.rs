//! Chain of one author's bodies that are stored here without a gap.

use super::Covered;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{Available, BodyRef, ReplicaId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Bodies that may be stored beyond a gap and remembered here.
pub(super) const AHEAD_MAX: usize = 1_024;

/// A certificate says otherwise than what is stored here: the author sealed two bodies under one
/// number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

/// One author's bodies since one of its starts.
#[derive(Debug)]
pub(crate) struct Chain {
    author: ReplicaId,
    /// All before this number are stored here or were certified.
    next: u64,
    /// The link before it.
    link: Digest,
    /// Stored here beyond a gap, the first digest under each number.
    ahead: BTreeMap<u64, Digest>,
    /// Numbers that were forgotten from `ahead`: only a certificate leads past them.
    forgotten: Range<u64>,
}

impl Chain {
    /// The chain to which this author's body belongs, before anything is stored.
    pub(crate) fn new(author: ReplicaId, sequence: u64) -> Self {
        let first = Available::first_sequence(sequence);
        let link = Available::start(author, first);
        Self { author, next: first, link, ahead: BTreeMap::new(), forgotten: first..first }
    }

    /// The author's start that it began with.
    pub(crate) fn start(&self) -> u64 {
        Available::first_sequence(self.next)
    }

    /// Number of bodies that are stored beyond one that is not.
    pub(crate) fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// The first number that it lacks.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns `true` if bodies are stored beyond one that is not.
    pub(crate) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Statement that a member with this chain may sign, if it holds anything.
    pub(crate) fn available(&self) -> Option<Available> {
        let sequence = self.next.checked_sub(1).filter(|last| *last >= self.start())?;
        Some(Available { author: self.author, sequence, link: self.link })
    }

    /// A body is durable here. ★ The first digest under a number stands: another one is stored and
    /// may be ordered, and is never acknowledged. Returns whether the chain grew.
    pub(crate) fn store(&mut self, name: &BodyRef) -> bool {
        if name.sequence < self.next || self.forgotten.contains(&name.sequence) {
            return false;
        }
        if mutants::active(Mutant::AcknowledgeLatest) {
            self.ahead.insert(name.sequence, name.digest);
        }
        self.ahead.entry(name.sequence).or_insert(name.digest);
        let grew = self.grow();
        while self.ahead.len() > AHEAD_MAX {
            if let Some((number, _)) = self.ahead.pop_first() {
                let start = if self.forgotten.is_empty() { number } else { self.forgotten.start };
                self.forgotten = start..number.saturating_add(1);
            }
        }
        grew
    }

    /// Goes on after what a certificate covers: some honest member stores it. Returns whether the
    /// chain reaches beyond the certificate by what is stored here.
    pub(crate) fn adopt(&mut self, covered: &Covered) -> Result<bool, Contradiction> {
        if covered.end() <= self.next {
            return Ok(false);
        }
        let follows = self.next < covered.first || covered.link_before(self.next) == self.link;
        let differs = |name: BodyRef| {
            self.ahead.get(&name.sequence).is_some_and(|digest| *digest != name.digest)
        };
        if !follows || covered.names().any(differs) {
            return Err(Contradiction);
        }
        self.next = covered.end();
        self.link = covered.link_before(self.next);
        self.ahead = self.ahead.split_off(&self.next);
        Ok(self.grow())
    }

    fn grow(&mut self) -> bool {
        let before = self.next;
        while let Some(digest) = self.ahead.remove(&self.next) {
            self.link = Available::link(self.link, self.next, digest);
            self.next = self.next.saturating_add(1);
        }
        self.next > before
    }
}
