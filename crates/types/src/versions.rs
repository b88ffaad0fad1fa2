//! Versions of the rules by which a service executes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Versions of a service's rules by which a program can execute: all from one to another.
///
/// Rules by which the same block would come to another root, or answer, are another version. The
/// agreed setting `execution_version` names the one in force, so that members change it at the
/// border of an epoch, all at one height. A program that brings a new one keeps the one before at
/// least, or nobody could upgrade it ahead of the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    first: u64,
    last: u64,
}

/// A program lacks the version by which a committee executes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the committee executes '{service}' by version {needed}, and this program has {has}")]
pub struct LacksVersion {
    /// Name of the service.
    pub service: String,
    /// Version that the committee file names.
    pub needed: u64,
    /// Versions that the program has.
    pub has: Versions,
}

impl Versions {
    /// The rules that a service had before there were others.
    pub const FIRST: Self = Self::new(1, 1);

    /// Versions from `first` to `last`.
    ///
    /// # Panics
    /// When these are none, or one is 0.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Self {
        assert!(0 < first && first <= last, "a program has a version from 1 on");
        Self { first, last }
    }

    /// The newest of them, by which a network begins that is made now.
    #[must_use]
    pub const fn newest(self) -> u64 {
        self.last
    }

    /// Checks that a committee's version is among them.
    ///
    /// # Errors
    /// [`LacksVersion`].
    pub fn check(self, service: &str, needed: u64) -> Result<(), LacksVersion> {
        if (self.first..=self.last).contains(&needed) {
            return Ok(());
        }
        Err(LacksVersion { service: service.to_owned(), needed, has: self })
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { first, last } if first == last => write!(f, "version {first} alone"),
            Self { first, last } => write!(f, "versions {first} to {last}"),
        }
    }
}

#[cfg(test)]
mod tests;
