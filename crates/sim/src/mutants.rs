//! Rules that a scenario can have left out, to prove that the oracles notice.

use quorate_crypto::mutants as core;
use quorate_storage::mutants as storage;
use std::fmt;

/// A rule of any crate, left out for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Of the machines, the checks before them, or the host.
    Core(core::Mutant),
    /// Of the log and the executor.
    Storage(storage::Mutant),
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(mutant) => write!(f, "{mutant:?}"),
            Self::Storage(mutant) => write!(f, "{mutant:?}"),
        }
    }
}

/// Leaves a rule out on this thread until it is dropped.
#[derive(Debug)]
pub struct Active(());

impl Active {
    /// From now on.
    ///
    /// # Panics
    /// When there is a mutant and the crate was built without the feature `mutants`.
    #[must_use]
    pub fn set(mutant: Option<Mutant>) -> Self {
        switch(mutant);
        Self(())
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        switch(None);
    }
}

#[cfg(feature = "mutants")]
fn switch(mutant: Option<Mutant>) {
    core::set(match mutant {
        Some(Mutant::Core(mutant)) => Some(mutant),
        _ => None,
    });
    storage::set(match mutant {
        Some(Mutant::Storage(mutant)) => Some(mutant),
        _ => None,
    });
}

#[cfg(not(feature = "mutants"))]
fn switch(mutant: Option<Mutant>) {
    assert!(mutant.is_none(), "build with the feature `mutants` to run one");
}
