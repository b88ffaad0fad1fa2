//! What a new view begins with, drawn from the view changes that it names (paper 002, §V-G, with the
//! corrections that `docs/protocols/sbft.md` lists; for PBFT, Castro and Liskov, §4.4).
//!
//! For each slot beyond the highest stable one up to the last that anybody has evidence of:
//!
//! * a proof decides it;
//! * otherwise `v*` is the highest view in which a value was prepared, and `v̂` the highest in which one
//!   may have been decided fast: that of the last of the [`fast_remnant`](Weights::fast_remnant)
//!   members that accepted it in the highest views. `v̂` counts only if one value alone has it;
//! * ★ the later of both is proposed again; a tie goes to what was prepared;
//! * with neither, nothing was decided there, and nothing will be but the null operation.

use super::messages::{FastReport, Path, Proof, SlotReport, SlowReport, ViewChange};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Bitmap, Digest};
use quorate_types::executed::CheckpointCertificate;
use quorate_types::{Committee, Height, ReplicaId, View, Weights};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a new view begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The highest stable height; nothing if absent.
    pub stable: Option<CheckpointCertificate>,
    /// The last slot that anybody has evidence of: slots up to here are what `slots` says, whatever
    /// the primary proposes for them (★).
    pub last: Height,
    /// What becomes of each slot between.
    pub slots: BTreeMap<Height, Choice>,
}

/// What becomes of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is decided.
    Decide(Proof),
    /// This value is proposed again.
    Adopt(Digest),
    /// The null operation is proposed.
    Null,
}

/// Draws the conclusions.
#[must_use]
pub fn outcome(changes: &[Arc<ViewChange>], committee: &Committee) -> Outcome {
    let stable = changes.iter().filter_map(|change| change.stable.as_ref());
    let stable = stable.max_by_key(|stable| stable.height).cloned();
    let first = stable.as_ref().map_or(Height(0), |stable| stable.height).next();
    let reports = || changes.iter().flat_map(|change| &change.slots);
    let has_evidence = |report: &&SlotReport| {
        report.slow != SlowReport::Nothing || report.fast != FastReport::Nothing
    };
    let last = reports().filter(has_evidence).map(|report| report.slot).max();
    let last = last.unwrap_or(Height(0)).max(Height(first.0 - 1));
    let mut by_slot: BTreeMap<Height, Vec<(ReplicaId, &SlotReport)>> = BTreeMap::new();
    for change in changes {
        for report in &change.slots {
            by_slot.entry(report.slot).or_default().push((change.signer, report));
        }
    }
    let nobody = Vec::new();
    let slots = (first.0..=last.0)
        .map(Height)
        .map(|slot| (slot, choose(by_slot.get(&slot).unwrap_or(&nobody), committee)))
        .collect();
    Outcome { stable, last, slots }
}

fn choose(reports: &[(ReplicaId, &SlotReport)], committee: &Committee) -> Choice {
    if let Some(proof) = reports.iter().find_map(|(_, report)| proof_in(report)) {
        return Choice::Decide(proof);
    }
    let prepared = reports.iter().filter_map(|(_, report)| match &report.slow {
        SlowReport::Prepared(certificate) => Some((certificate.at.view, certificate.at.digest)),
        _ => None,
    });
    let slow = prepared.max_by_key(|(view, _)| *view);
    let fast = fast_value(reports, committee);
    match (slow, fast) {
        (Some((prepared, digest)), Some((accepted, _))) if wins(prepared, accepted) => {
            Choice::Adopt(digest)
        }
        (_, Some((_, digest))) | (Some((_, digest)), None) => Choice::Adopt(digest),
        (None, None) => Choice::Null,
    }
}

/// ★ What was prepared in the same view was prepared by a quorum that shares an honest member with
/// whoever decided; what was accepted in it need not have been.
fn wins(prepared: View, accepted: View) -> bool {
    if mutants::active(Mutant::TieGoesToFast) {
        return prepared > accepted;
    }
    prepared >= accepted
}

/// What proves the slot decided, if this does.
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

/// The one value that may have been decided fast in the highest view, if there is one.
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

/// The highest view in or after which enough of these accepted.
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
