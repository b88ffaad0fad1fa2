//! Rules of this crate that a test can switch off, to prove that the tests would notice.
//!
//! Under the feature `mutants`, `set` breaks one rule on the current thread. Without the feature
//! [`active`] is the constant `false` and the compiler removes every trace.

/// A rule left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A group is called durable without a sync of its file.
    SkipSync,
    /// A new segment's directory entry is not synced.
    SkipDirectorySync,
    /// A record is believed without its checksum.
    AcceptTornRecord,
    /// The end of a torn group stays on disk and may be read back later as if it were new.
    KeepTornTail,
    /// A bad record ends the log even when committed records follow it.
    TruncateCorruption,
    /// A failed sync is tried again, and its second answer believed.
    RetryFailedSync,
    /// A failed write or sync is reported once and forgotten.
    GoOnAfterFailure,
    /// What was read back at a restart is believed durable without a sync.
    TrustPageCache,
    /// The session table is not stored.
    ForgetSessions,
    /// A repeated request is executed again.
    ExecuteTwice,
    /// State is committed in a transaction of its own, before sessions and height.
    SplitCommit,
}

#[cfg(feature = "mutants")]
mod enabled {
    use super::Mutant;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Leaves out one rule on this thread, or (with `None`) restores them all.
    pub fn set(mutant: Option<Mutant>) {
        ACTIVE.set(mutant);
    }

    /// Whether `mutant` is set on this thread.
    pub fn active(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub use enabled::{active, set};

/// Whether `mutant` is set: never, without the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub const fn active(_mutant: Mutant) -> bool {
    false
}
