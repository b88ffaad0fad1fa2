//! Bounds on what one owner may have frozen.

use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{DAY_MS, Epoch};

/// Most coins of one owner that are under release at once.
pub const UNDECIDED_MAX: u32 = 256;

/// Most coins of one owner that are frozen within a day of the blocks' clock.
pub const DAILY_MAX: u32 = 1_024;

/// Day of a block, counted from the Unix epoch.
pub(super) fn day(proposed_at_ms: u64) -> u64 {
    proposed_at_ms / DAY_MS
}

/// Coins of one owner that count against its bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct Quota {
    /// Epoch of the coins that are under release.
    epoch: Epoch,
    undecided: u32,
    /// Day of the last freeze, and the number of coins frozen on it.
    day: u64,
    frozen: u32,
}

/// Bound that a freeze would pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum QuotaFull {
    #[error(
        "this owner has {0} coins under release, and may have {UNDECIDED_MAX}: wait until some are \
         decided"
    )]
    Undecided(u32),
    #[error(
        "this owner had {0} coins frozen today, and may have {DAILY_MAX}: the others can be frozen \
         tomorrow (UTC)"
    )]
    Daily(u32),
}

impl Quota {
    /// The same, as it counts in this epoch: with the one before it, its releases ended.
    pub(super) fn in_epoch(self, epoch: Epoch) -> Self {
        if self.epoch == epoch { self } else { Self { epoch, undecided: 0, ..self } }
    }

    /// Counts coins that are to be frozen on this day, all or none (★).
    pub(super) fn charge(&mut self, coins: usize, day: u64) -> Result<(), QuotaFull> {
        let coins = u32::try_from(coins).expect("a freeze has 64 coins at most");
        let before = if self.day == day { self.frozen } else { 0 };
        if !mutants::active(Mutant::PayFreezeWithoutBound) {
            if self.undecided + coins > UNDECIDED_MAX {
                return Err(QuotaFull::Undecided(self.undecided));
            }
            if before + coins > DAILY_MAX {
                return Err(QuotaFull::Daily(before));
            }
        }
        let undecided = self.undecided + coins;
        *self = Self { undecided, day, frozen: before + coins, ..*self };
        Ok(())
    }

    /// Counts a coin whose release ended.
    pub(super) fn release(&mut self) {
        self.undecided = self.undecided.checked_sub(1).expect("a coin is decided once, if frozen");
    }
}
