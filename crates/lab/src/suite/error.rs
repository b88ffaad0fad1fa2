//! Errors of suites and their results.

use std::io;
use std::path::{Path, PathBuf};

/// Reason for which a suite is not run, or a result not used. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The system refuses to read or write.
    #[error("cannot {what} {}: {source}", path.display())]
    System {
        /// Attempt that was refused.
        what: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A file is something else.
    #[error(
        "{} is no result of a suite, as `quorate bench --suite` writes them: {reason}",
        path.display()
    )]
    NotAResult {
        /// Path of the file.
        path: PathBuf,
        /// Part that is missing or wrong.
        reason: String,
    },
    /// A result was written by another version.
    #[error("{} holds a result of format {found}; this binary reads {known}", path.display())]
    OtherFormat {
        /// Path of the file.
        path: PathBuf,
        /// Its format, as it stands there.
        found: String,
        /// The format that this binary reads.
        known: u32,
    },
    /// An earlier result is of another machine.
    #[error(
        "the earlier result is of another machine ({there}) than this one ({here}): times of two machines \
         do not say what changed in the program. Measure the earlier one here, or compare all the same \
         with --other-machine"
    )]
    OtherMachine {
        /// Processor and cores of the earlier one.
        there: String,
        /// Processor and cores of this one.
        here: String,
    },
    /// An earlier result is of a binary that was built otherwise.
    #[error("the earlier result is of a binary that was {there}, and this one was {here}")]
    OtherBuild {
        /// Build of the earlier one.
        there: &'static str,
        /// Build of this one.
        here: &'static str,
    },
    /// No row of that key is in the suite.
    #[error("{suite} has no row '{key}'{hint}; its rows are {known}")]
    NoSuchRow {
        /// Id of the suite.
        suite: String,
        /// Key that was asked for.
        key: String,
        /// The nearest key, as a question.
        hint: String,
        /// Keys of all rows, with commas between.
        known: String,
    },
}

impl SuiteError {
    /// For `map_err`, where something is refused at a path.
    pub(super) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::System { what, path, source }
    }
}
