//! The disk fails: full, a write, a sync, a change of a name. The replica must stop, and start
//! again well.

use super::cases::{Counts, Moment};
use super::disks::DiskFailure;
use super::recorded::Recorded;
use super::report::Broken;
use super::shared::Shared;
use quorate_storage::Fault;
use std::sync::Arc;

/// Runs until the subject's disk fails in this way, and crashes it there.
///
/// # Errors
/// When it did not stop, or does not start as it should.
pub(super) fn try_failure(
    shared: &Arc<Shared>,
    number: u64,
    failure: &DiskFailure,
    counts: &mut Counts,
) -> Result<(), Broken> {
    let mode = mode_of(&failure.fault);
    *counts.entry(mode).or_default() += 1;
    let plan = std::slice::from_ref(failure);
    let Ok(mut recorded) = Recorded::begin(shared, plan) else {
        // It failed before anything was promised.
        return Ok(());
    };
    recorded.run();
    let Recorded { disks, chronicle, mut committee, .. } = recorded;
    let chronicle = chronicle.borrow().clone();
    let broken =
        |violation| Broken { point: number, after: mode, mode: format!("{failure:?}"), violation };
    if let Some(violation) = chronicle.complaint.clone() {
        return Err(broken(violation));
    }
    if committee.subject().failure.is_none() {
        // The run ended before it came to that.
        return Ok(());
    }
    let mut moment = Moment {
        shared,
        number,
        what: mode,
        now: committee.now,
        disks: &disks,
        chronicle: &chronicle,
        counts,
        known: Vec::new(),
    };
    moment
        .try_halted()
        .map_err(|found| Broken { mode: format!("{failure:?}, {}", found.mode), ..found })
}

fn mode_of(fault: &Fault) -> &'static str {
    match fault {
        Fault::FailWrite { .. } => "a write failed",
        Fault::TearWrite { .. } => "a write failed half way",
        Fault::FailSync { .. } => "a sync failed",
        Fault::FailDirectorySync { .. } => "a sync of the directory failed",
        Fault::FailNameChange { .. } => "a change of a name failed",
        Fault::Full { .. } | Fault::FullAmid { .. } => "the disk was full",
        Fault::FullAtSync { .. } => "the disk was full at a sync",
        Fault::FlipBit { .. } => "a bit read wrong",
    }
}
