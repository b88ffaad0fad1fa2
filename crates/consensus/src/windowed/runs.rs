//! Runs of decided slots that one replica fetches from another: each has a proof of its own.

use super::check::check_decided;
use super::values::DecidedSlot;
use crate::Verifier;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, Rejected};

/// Consecutive decided slots, checked.
#[derive(Clone, Debug)]
pub struct Run {
    /// Oldest first, without a gap.
    pub decided: Vec<DecidedSlot>,
    /// The first of them is another value at a height that the asker has decided: more than f
    /// members are faulty.
    pub conflicts: bool,
}

/// Checks slots that answer a request by a replica that decided `after` at `height`.
///
/// # Errors
/// The first that is out of order, or does not prove itself.
pub fn verify_run(
    height: Height,
    after: Option<BlockId>,
    decided: &[Bytes],
    verifier: &Verifier,
) -> Result<Run, Rejected> {
    let decided: Vec<DecidedSlot> = decided
        .iter()
        .map(|bytes| borsh::from_slice(bytes).map_err(|e| Rejected::Malformed(e.to_string())))
        .collect::<Result<_, _>>()?;
    let conflicts = decided.first().is_some_and(|first| {
        first.payload.header.height == height
            && height > verifier.anchor().height
            && after.is_some_and(|after| after != first.id())
    });
    let first = decided.first().map_or(height, |first| first.payload.header.height);
    if first != height.next() && !conflicts && !decided.is_empty() {
        return Err(Rejected::RuleBroken("a run goes on from where it was asked for"));
    }
    let heights = || decided.iter().map(|record| record.payload.header.height);
    if heights().zip(heights().skip(1)).any(|(one, other)| one.0.checked_add(1) != Some(other.0)) {
        return Err(Rejected::RuleBroken("each slot of a run is the next"));
    }
    let behind_the_stop = decided.iter().rev().skip(1).any(|record| record.payload.ends_epoch());
    if behind_the_stop && !mutants::active(Mutant::FollowTheStop) {
        return Err(Rejected::RuleBroken("nothing follows a stop block in its epoch"));
    }
    decided.iter().try_for_each(|record| check_decided(record, verifier))?;
    Ok(Run { decided, conflicts })
}

/// Checks that the first of these records decides `height`.
///
/// # Errors
/// When it does not.
pub fn check_anchor(
    height: Height,
    records: &[Bytes],
    verifier: &Verifier,
) -> Result<Bytes, Rejected> {
    let before = Height(height.0.saturating_sub(1));
    let first = records.get(..1).unwrap_or_default();
    let run = verify_run(before, None, first, verifier)?;
    let record = run.decided.first();
    record
        .map(DecidedSlot::encode)
        .ok_or(Rejected::RuleBroken("a snapshot comes with the slot that it is of"))
}
