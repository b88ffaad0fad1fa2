//! Safe values: the values that a new view must begin with, computed from the view changes that it
//! names (paper 002 §V-G; for PBFT, §4.4).
//!
//! For each slot beyond the highest stable one, or the last of the epoch before (★), up to the last
//! of which something is decided or proposed again (★: the claims of few make no null operations):
//!
//! * a proof decides it;
//! * otherwise `v*` is the highest view in which a value was prepared, and `v̂` the highest in
//!   which one may have been decided fast: that of the last of the
//!   [`fast_remnant`](Weights::fast_remnant) members that accepted it in the highest views. `v̂`
//!   counts only if one value alone has it;
//! * ★ the later of both is proposed again; a tie goes to what was prepared;
//! * with neither, nothing was decided there, and the null operation is proposed.

use super::messages::{FastReport, SlotReport, SlowReport, ViewChange};
use super::values::{Path, Proof};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::{Anchor, Committee, Height, ReplicaId, View, Weights};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Slots that a new view begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafeValues {
    /// Highest stable checkpoint; `None` before the epoch's first.
    pub stable: Option<CheckpointCertificate>,
    /// Last slot that is decided or proposed again: up to here the slots are those of `slots`,
    /// whatever the primary proposes (★).
    pub last: Height,
    /// Value of each slot from the stable one to `last`.
    pub slots: BTreeMap<Height, SafeValue>,
}

/// Value of a slot in a new view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SafeValue {
    /// Decided, by this proof.
    Decided(Proof),
    /// Proposed again: it may have been decided.
    Propose(Digest),
    /// Filled with the null operation: nothing was decided.
    Null,
}

/// Computes the safe values from the view changes that a new view names: the same at every member.
#[must_use]
pub fn safe_values(
    changes: &[Arc<ViewChange>],
    committee: &Committee,
    anchor: Anchor,
) -> SafeValues {
    let stable = changes.iter().filter_map(|change| change.stable.as_ref());
    let stable = stable.max_by_key(|stable| stable.height).cloned();
    let from_zero = mutants::active(Mutant::EpochFromZero);
    let first_of_all = if from_zero { Height(0) } else { anchor.height };
    let before = stable.as_ref().map_or(first_of_all, |stable| stable.height);
    let first = before.next();
    let mut by_slot: BTreeMap<Height, Vec<(ReplicaId, &SlotReport)>> = BTreeMap::new();
    for change in changes {
        for report in change.slots.iter().filter(|report| report.slot >= first) {
            by_slot.entry(report.slot).or_default().push((change.signer, report));
        }
    }
    let mut slots: BTreeMap<Height, SafeValue> =
        by_slot.iter().map(|(slot, reports)| (*slot, choose(reports, committee))).collect();
    let last = slots.iter().rfind(|(_, value)| ends_with(value)).map(|(slot, _)| *slot);
    let last = last.unwrap_or(before);
    slots.retain(|slot, _| *slot <= last);
    for slot in (first.0..=last.0).map(Height) {
        slots.entry(slot).or_insert(SafeValue::Null);
    }
    SafeValues { stable, last, slots }
}

/// ★ A new view ends with a value that may be decided, not with what somebody says of a slot (PBFT
/// §4.4: the highest prepared one).
fn ends_with(value: &SafeValue) -> bool {
    *value != SafeValue::Null || mutants::active(Mutant::NewViewToAnyClaim)
}

fn choose(reports: &[(ReplicaId, &SlotReport)], committee: &Committee) -> SafeValue {
    if let Some(proof) = reports.iter().find_map(|(_, report)| proof_in(report)) {
        return SafeValue::Decided(proof);
    }
    let prepared = reports.iter().filter_map(|(_, report)| match &report.slow {
        SlowReport::Prepared(certificate, _) => {
            Some((certificate.proposal.view, certificate.proposal.digest))
        }
        _ => None,
    });
    let slow = prepared.max_by_key(|(view, _)| *view);
    let fast = fast_value(reports, committee);
    match (slow, fast) {
        (Some((prepared, digest)), Some((accepted, _))) if wins(prepared, accepted) => {
            SafeValue::Propose(digest)
        }
        (_, Some((_, digest))) | (Some((_, digest)), None) => SafeValue::Propose(digest),
        (None, None) => SafeValue::Null,
    }
}

/// ★ Compares the views of a prepared and of a fast value. At a tie the prepared one wins: in one
/// view no two values are prepared, while one that was only accepted may rest on members that voted
/// for another one's decision on the slow path (Lemma VI.2).
fn wins(prepared: View, accepted: View) -> bool {
    let wins_tie = prepared == accepted && !mutants::active(Mutant::TieGoesToFast);
    prepared > accepted || wins_tie
}

/// Proof in a report, if it has one.
#[must_use]
pub fn proof_in(report: &SlotReport) -> Option<Proof> {
    match (&report.slow, &report.fast) {
        (SlowReport::Decided(certificate), _) => {
            Some(Proof { path: Path::Slow, certificate: certificate.clone() })
        }
        (_, FastReport::Decided(certificate)) => {
            Some(Proof { path: Path::Fast, certificate: certificate.clone() })
        }
        _ => None,
    }
}

/// Value that may have been decided fast in the highest view, with that view; `None` if there is
/// none or more than one.
fn fast_value(
    reports: &[(ReplicaId, &SlotReport)],
    committee: &Committee,
) -> Option<(View, Digest)> {
    let mut by_value: BTreeMap<Digest, Vec<(View, ReplicaId)>> = BTreeMap::new();
    for (signer, report) in reports {
        if let FastReport::Accepted(view, digest) = report.fast {
            by_value.entry(digest).or_default().push((view, *signer));
        }
    }
    let mut possible: Vec<(View, Digest)> = by_value
        .into_iter()
        .filter_map(|(digest, accepted)| Some((remnant_view(accepted, committee)?, digest)))
        .collect();
    possible.sort_unstable_by_key(|(view, _)| Reverse(*view));
    match possible.as_slice() {
        [first, second, ..] if first.0 == second.0 => None,
        [first, ..] => Some(*first),
        [] => None,
    }
}

/// Highest view such that `f+c+1` of these accepted in it or later.
fn remnant_view(mut accepted: Vec<(View, ReplicaId)>, committee: &Committee) -> Option<View> {
    accepted.sort_unstable_by_key(|(view, _)| Reverse(*view));
    let mut members = Bitmap::new(committee.size());
    let needed = remnant(committee.weights());
    accepted.into_iter().find_map(|(view, signer)| {
        members.insert(signer.index());
        (committee.weight_of(&members) >= needed).then_some(view)
    })
}

fn remnant(weights: &Weights) -> u64 {
    if mutants::active(Mutant::FastByFew) { weights.weak() } else { weights.fast_remnant() }
}

#[cfg(test)]
mod tests;
