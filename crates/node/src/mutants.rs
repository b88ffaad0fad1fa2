//! Rules of this crate that a test can switch off, to prove that the tests would notice.
//!
//! Under the feature `mutants`, `set` breaks one rule in whatever the current thread makes from then
//! on, on whichever thread that runs. Without the feature [`active`] is the constant `false`.

/// A rule left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// What waits for a record leaves before the record is durable.
    ReleaseBeforeSync,
    /// A send that follows a waiting one overtakes it.
    OvertakeWaiting,
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
    #[must_use]
    pub fn active(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }
}

#[cfg(feature = "mutants")]
pub use enabled::{active, set};

/// Whether `mutant` is set: never, without the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
#[must_use]
pub const fn active(_mutant: Mutant) -> bool {
    false
}
