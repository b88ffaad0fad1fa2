//! What reports of an ended epoch leave to the next one.

use super::{Claimed, Claims, LockEntry};
use crate::lookup::LookupFailed;
use crate::spent::released;
use crate::{OutputId, TxId};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{ReplicaId, Weights};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;

/// Locks and certificates of earlier epochs, wherever they are kept. Read by several threads.
pub trait Inherited: Send + Sync + fmt::Debug {
    /// Transactions that may have taken an input in an earlier epoch: none where it is free, one
    /// that it is locked for, or several, of which none is voted for.
    ///
    /// # Errors
    /// When it cannot be told.
    fn candidates(&self, input: OutputId) -> Result<Vec<TxId>, LookupFailed>;

    /// Returns `true` if certificates of earlier epochs count for this transaction.
    ///
    /// # Errors
    /// When it cannot be told.
    fn admits(&self, tx: TxId) -> Result<bool, LookupFailed>;
}

/// What reports can say, by the weight of those that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Weight of the honest votes that a certificate has at least.
    enough: u64,
    /// Weight of the authorities without a report.
    unheard: u64,
}

/// What reports say of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Prospect {
    /// It was certified in no epoch that ended, and no more reports change that.
    Impossible,
    /// It may have been certified, for all that the reports say.
    Possible,
    /// So many name it that an honest authority is among them, which found it valid; it stays
    /// possible whatever is reported yet.
    Vouched,
}

impl Counting {
    /// Reports of these authorities; `None` when they weigh less than a quorum (★).
    #[must_use]
    pub fn of(weights: &Weights, reported: impl IntoIterator<Item = ReplicaId>) -> Option<Self> {
        let reported: BTreeSet<ReplicaId> = reported.into_iter().collect();
        let heard: u64 = reported.iter().map(|one| weights.of(one.index())).sum();
        let unheard =
            if mutants::active(Mutant::PayUnionUnheard) { 0 } else { weights.total() - heard };
        let is_enough = heard >= weights.quorum() || mutants::active(Mutant::PayUnionOfFewer);
        is_enough.then_some(Self { enough: weights.quorum() - weights.faulty_max(), unheard })
    }

    /// Prospect of a transaction by the weight of those who name it, with the same inputs.
    #[must_use]
    pub fn prospect(&self, weight: u64) -> Prospect {
        if weight >= self.enough || mutants::active(Mutant::PayAdmitOnOneReport) {
            Prospect::Vouched
        } else if weight + self.unheard >= self.enough {
            Prospect::Possible
        } else {
            Prospect::Impossible
        }
    }
}

/// State of an input before an epoch whose reports are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// Its candidates by the epochs before.
    pub candidates: Vec<TxId>,
    /// True where there is one, whose certificates count.
    pub is_admitted: bool,
}

impl Before {
    /// Returns `true` if one of the inputs that the transaction takes, this one, is another's for
    /// good (★). A coin that a release gave back is its refund's, which takes that coin alone, and
    /// for which alone honest authorities vote there: in the next epoch, or in a later one.
    #[must_use]
    pub fn excludes(&self, input: OutputId, (tx, taken): (TxId, &[OutputId])) -> bool {
        let may_be_refund = taken == [input] && self.candidates == [released(input)];
        self.is_admitted && self.candidates != [tx] && !may_be_refund
    }

    /// Candidates of the input in the next epoch (★): all that may have taken it. Where an honest
    /// authority voted for one in the epoch that ended, it knew better than to believe in those
    /// before.
    #[must_use]
    pub fn settle(self, claims: &[(TxId, Prospect)]) -> Vec<TxId> {
        if self.is_admitted {
            return self.candidates;
        }
        let alive = claims.iter().filter(|(_, prospect)| *prospect != Prospect::Impossible);
        let mut candidates: Vec<TxId> = alive.clone().map(|(tx, _)| *tx).collect();
        let is_known_better = alive.clone().any(|(_, prospect)| *prospect == Prospect::Vouched);
        if !is_known_better && !mutants::active(Mutant::PayForgetEarlierBorders) {
            candidates.extend(self.candidates);
        }
        candidates.sort_unstable();
        candidates.dedup();
        if mutants::active(Mutant::PayUnionTakesOne) {
            candidates.truncate(1);
        }
        candidates
    }
}

/// Inheritance in memory: of small networks, and tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inheritance {
    candidates: BTreeMap<OutputId, Vec<TxId>>,
    admitted: BTreeSet<TxId>,
}

impl Inheritance {
    /// What the epoch after an ended one inherits: what that one did, and what its reports say,
    /// each the locks of an authority in ascending order. `None` when they are too few (★).
    #[must_use]
    pub fn after(
        &self,
        weights: &Weights,
        reports: &BTreeMap<ReplicaId, Vec<LockEntry>>,
    ) -> Option<Self> {
        let counting = Counting::of(weights, reports.keys().copied())?;
        let mut vouched = BTreeSet::new();
        let mut by_input: BTreeMap<OutputId, Vec<(TxId, Prospect)>> = BTreeMap::new();
        for Claimed { tx, inputs } in claims(weights, reports) {
            for (taken, weight) in inputs {
                let is_excluded =
                    taken.iter().any(|input| self.before(*input).excludes(*input, (tx, &taken)));
                let prospect =
                    if is_excluded { Prospect::Impossible } else { counting.prospect(weight) };
                if prospect == Prospect::Vouched {
                    vouched.insert(tx);
                }
                for input in taken {
                    by_input.entry(input).or_default().push((tx, prospect));
                }
            }
        }
        let mut next = self.clone();
        for (input, claims) in by_input {
            next.candidates.insert(input, self.before(input).settle(&claims));
        }
        next.candidates.retain(|_, candidates| !candidates.is_empty());
        let contested = next.candidates.values().filter(|one| one.len() > 1).flatten();
        let contested: BTreeSet<TxId> = contested.copied().collect();
        next.admitted.extend(vouched.difference(&contested));
        Some(next)
    }

    fn before(&self, input: OutputId) -> Before {
        let candidates = self.candidates.get(&input).cloned().unwrap_or_default();
        let is_admitted = matches!(&candidates[..], [tx] if self.admitted.contains(tx));
        Before { candidates, is_admitted }
    }
}

/// Reports in memory, merged.
fn claims<'a>(
    weights: &'a Weights,
    reports: &'a BTreeMap<ReplicaId, Vec<LockEntry>>,
) -> impl Iterator<Item = Claimed> + 'a {
    let read = |locks: &'a Vec<LockEntry>| locks.iter().copied().map(Ok::<_, Infallible>);
    let reports = reports.iter().map(move |(from, locks)| (weights.of(from.index()), read(locks)));
    Claims::of(reports).map(|claimed| match claimed {
        Ok(claimed) => claimed,
    })
}

impl Inherited for Inheritance {
    fn candidates(&self, input: OutputId) -> Result<Vec<TxId>, LookupFailed> {
        Ok(self.candidates.get(&input).cloned().unwrap_or_default())
    }

    fn admits(&self, tx: TxId) -> Result<bool, LookupFailed> {
        Ok(self.admitted.contains(&tx))
    }
}
