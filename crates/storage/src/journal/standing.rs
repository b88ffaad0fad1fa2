//! Where a log stands at a start: whole, repaired from the copy of its promises, or set back.
//!
//! Three things say what was promised: the log of records, the [copy](super::copy) of the latest
//! of them, and whatever remembers from outside which record was the last (a *witness*,
//! [`Witnessed`]). None but the log is synced with each group, so the other two may lag behind it
//! after a power cut, and never name a record that it does not have. Hence (★):
//!
//! * **A log that lacks the record which the witness or the copy names was set back**, cut, or
//!   exchanged for another that forked off: some promise is not in it. Its member must not sign.
//! * **Records missing before others that are whole** are made up for by a copy that goes as far,
//!   and is of this very log: it names one of its records.
//! * **Records missing at the end** are made up for by a copy only where it is certain that there
//!   were no more: the witness lags behind nothing ([`Witnessed::is_exact`]), and names the record
//!   that the copy names.
//! * What is missing before all latest records were written again ([`super::REPAIRED`]) is history.
//!
//! A log whose damage nothing makes up for is an error, as without a copy.

use super::copy::PromiseCopy;
use crate::StorageError;
use crate::disk::Disk;
use crate::log::salvage::Salvaged;
use crate::log::{Log, LogMark};
use quorate_crypto::mutants::{self, Mutant};
use serde::Serialize;

/// What beside a log tells of the promises in it. None of it is needed to open one.
#[derive(Default)]
pub struct Safeguards {
    /// Place of the second copy of the latest promises.
    pub copy: Option<Box<dyn Disk>>,
    /// What was remembered outside the folder.
    pub witnessed: Option<Witnessed>,
}

/// The last record that a witness outside the folder remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witnessed {
    /// Record that had been committed.
    pub mark: LogMark,
    /// No record was committed after it: the witness was told of each, and nothing of what it was
    /// told is lost, as in a power cut.
    pub is_exact: bool,
    /// A log without this record was opened before, and was not signed with. It may have grown past
    /// its number since and have pruned what stood there: then it lacks it still.
    pub is_missed: bool,
}

/// Damage found at a start, and what was done about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// Set when the log was set back: whoever signs must not.
    pub set_back: Option<SetBack>,
    /// Damaged or missing records of the log, all made up for: promises from their copy, decided
    /// heights by the other members.
    pub records_damaged: u64,
    /// Kinds of promises whose latest was taken from the copy.
    pub promises_restored: u64,
    /// Damaged or missing entries of the bodies' log, left out.
    pub bodies_damaged: u64,
}

/// A log lacks what had been committed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SetBack {
    /// Number of the record that had been committed.
    pub committed: u64,
    /// The record itself, for whoever remembers that it was missed.
    #[serde(skip)]
    pub mark: LogMark,
    /// Number of the log's last record. Where it is not lower, another record has that number.
    pub found: Option<u64>,
}

/// Verdict over a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// All promises are in the log, or the copy has those that are not.
    Sound {
        /// Records from this number on are missing at the end.
        cut_at: Option<u64>,
    },
    SetBack(SetBack),
}

/// ★ Judges the log of records before anything is appended to it. `repaired` is the number of the
/// record from which on it has the latest of each kind, by its own word.
pub(super) fn judge(
    log: &Log,
    damage: Option<&Salvaged>,
    repaired: u64,
    copy: Option<&PromiseCopy>,
    witnessed: Option<Witnessed>,
) -> Result<Standing, StorageError> {
    let covered = copy.and_then(PromiseCopy::covered);
    let is_missed = witnessed.is_some_and(|witnessed| witnessed.is_missed);
    let lacks = |mark: LogMark| -> Result<bool, StorageError> {
        let is_beyond = mark.sequence >= log.sequence();
        let is_other = |found| found != mark;
        // Pruned, or damaged: not missing for that alone.
        Ok(is_beyond || log.find_mark(mark.sequence)?.map_or(is_missed, is_other))
    };
    let has = |mark: LogMark| log.find_mark(mark.sequence).map(|found| found == Some(mark));
    let witness = witnessed.map(|witnessed| witnessed.mark);
    let is_exact = witnessed.is_some_and(|witnessed| witnessed.is_exact) && !is_missed;
    // A repair of the log's end that a crash interrupted leaves a gap where both say that there was
    // nothing more.
    let is_complete = covered.is_some() && covered == witness && is_exact;
    let mut is_anchored = covered.map_or(Ok(false), has)? || is_complete;
    let mut cut_at = None;
    let named = match witness {
        Some(mark) if lacks(mark)? => Some(mark),
        // The witness is content: a copy that says another thing is not of this log.
        Some(_) => covered.filter(|mark| mark.sequence >= log.sequence()),
        None => match covered {
            Some(mark) if lacks(mark)? => Some(mark),
            _ => None,
        },
    };
    if let Some(mark) = named {
        let is_certain = is_complete && mark.sequence >= log.sequence();
        if is_certain || mutants::active(Mutant::RepairFromStaleCopy) {
            is_anchored = true;
            cut_at = Some(log.sequence());
        } else if !mutants::active(Mutant::SignAfterSetBack) {
            let found = log.sequence().checked_sub(1);
            return Ok(Standing::SetBack(SetBack { committed: mark.sequence, mark, found }));
        }
    }
    if let Some(damage) = damage {
        let reach = covered.filter(|_| is_anchored).map_or(0, |mark| mark.sequence + 1);
        let is_made_up_for = damage.missing.iter().all(|gap| gap.end <= repaired.max(reach))
            || mutants::active(Mutant::RepairFromStaleCopy);
        let is_ours = damage.is_owned || is_anchored;
        if !is_made_up_for || !is_ours {
            return Err(damage.error.clone());
        }
    }
    Ok(Standing::Sound { cut_at })
}
