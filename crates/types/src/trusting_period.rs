//! How long the keys of a committee are trusted.
//!
//! Members of long ago may lose their keys together, and whoever has these can sign another
//! history. So nobody goes from an epoch to the next one on the word of members whom it knew in
//! force too long ago.

use quorate_crypto::mutants::{self, Mutant};

/// Milliseconds of a day.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// Time for which members are trusted after the last moment at which their epoch is known to have
/// been in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrustingPeriod {
    /// Length, at least 1.
    pub days: u64,
}

impl TrustingPeriod {
    /// Last moment at which an epoch was in force for certain, of which this is known to whoever
    /// decides, and of which its members say that it ended at `ended_ms`.
    ///
    /// Both count (★): an end before the moment that was known says that it was known too late, as
    /// with the founding file of a network that had gone on when somebody fetched it; and a later
    /// one is the word of the very keys in question.
    #[must_use]
    pub fn in_force_ms(known_ms: u64, ended_ms: u64) -> u64 {
        if mutants::active(Mutant::TrustShownTime) { ended_ms } else { known_ms.min(ended_ms) }
    }

    /// ★ Returns `true` if members are trusted still whose epoch was in force at this time last. A
    /// clock that was set back shortens nothing.
    #[must_use]
    pub fn covers(self, in_force_ms: u64, now_ms: u64) -> bool {
        let period_ms = self.days.saturating_mul(DAY_MS);
        let is_trusted = now_ms.saturating_sub(in_force_ms) <= period_ms;
        is_trusted || mutants::active(Mutant::TrustForEver)
    }

    /// Whole days from one time to another, for people.
    #[must_use]
    pub fn days_between(from_ms: u64, to_ms: u64) -> u64 {
        to_ms.saturating_sub(from_ms) / DAY_MS
    }
}

#[cfg(test)]
mod tests;
