//! Errors of a bench.

use super::health::HealthIssue;
use quorate_node::TestnetError;
use quorate_report::Report;
use std::io;
use std::path::PathBuf;

/// Reason for which a bench gave no result. Each message says what to do or where to look.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The options contradict each other or leave their ranges.
    #[error("{0}")]
    Config(String),
    /// The committee's files were not written.
    #[error(transparent)]
    Testnet(#[from] TestnetError),
    /// The system refused something that the bench needs.
    #[error("cannot {what}: {source}")]
    System {
        /// Attempt that was refused.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A change of the committee did not come about.
    #[error("the change '{what}' came to nothing: {reason}")]
    Change {
        /// Change that was brought, as in `replace 2`.
        what: String,
        /// Sentence that says what was in its way.
        reason: String,
    },
    /// The client library failed.
    #[error("cannot open the client sessions: {0}")]
    Client(String),
    /// The validators do not come up.
    #[error("after {seconds} s not all validators were connected to each other: {state}")]
    NotConnected {
        /// Time waited, in seconds.
        seconds: u64,
        /// Progress of the validators.
        state: String,
    },
    /// A validator that should work does not.
    #[error("{0}")]
    Unwell(HealthIssue),
    /// The state was not filled.
    #[error("the state was not filled: {done} of {keys} keys were put, then {reason}")]
    Fill {
        /// Keys that were put.
        done: u64,
        /// Number of keys to put.
        keys: u64,
        /// Part of a sentence that says what was in the way.
        reason: String,
    },
    /// Validators did not come to the same point.
    #[error("{seconds} s after {what} the validators had not executed the same")]
    NotLevel {
        /// Time waited, in seconds.
        seconds: u64,
        /// Part of a sentence: the work that they had to execute.
        what: &'static str,
    },
    /// A killed validator did not come back.
    #[error("validator {validator} did not come back within {seconds} s of its start")]
    NotBack {
        /// Index of the validator.
        validator: u16,
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// The committee ran and ordered nothing that counts.
    #[error("nothing was committed in the measured window")]
    NothingCommitted,
    /// The committee ordered what it had queued before the window, and none of what was due in it.
    #[error(
        "none of the operations that were due in the measured window was answered: more is offered \
         than is ordered"
    )]
    NothingAnswered(Box<Report>),
    /// No rate was found that the committee keeps up with.
    #[error("{0}")]
    NoRate(String),
    /// Somebody asked for an early end with Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// One of the above, with what the validator in question said last.
    #[error("{error}\n\nthe last lines of validator {validator}'s log:\n{log}")]
    Explained {
        /// The error that it explains.
        error: Box<BenchError>,
        /// Validator whose log it is.
        validator: u16,
        /// Last lines of its log.
        log: String,
    },
    /// One of the above, with where everything lies that may explain it.
    #[error("{error}\n\nlogs and data are kept in {}", kept.display())]
    Kept {
        /// The error that ended the run.
        error: Box<BenchError>,
        /// Folder of the committee.
        kept: PathBuf,
    },
}

impl BenchError {
    /// Returns `true` if the options are at fault rather than the run.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_) | Self::Testnet(_) => true,
            Self::Explained { error, .. } | Self::Kept { error, .. } => error.is_usage(),
            _ => false,
        }
    }

    /// Tells whether the committee had more to do than it could: a lower rate may succeed. Not a
    /// validator that exits or disagrees: that is a fault at any rate.
    #[must_use]
    pub fn is_overload(&self) -> bool {
        match self {
            Self::NothingCommitted | Self::NothingAnswered(_) => true,
            Self::Unwell(issue) => {
                !matches!(issue, HealthIssue::Exited(..) | HealthIssue::Diverged(..))
            }
            Self::Explained { error, .. } | Self::Kept { error, .. } => error.is_overload(),
            _ => false,
        }
    }

    /// Tells whether the committee, or the clients' way to it, did not come up in time.
    pub(super) fn is_of_start(&self) -> bool {
        match self {
            Self::NotConnected { .. } | Self::Client(_) => true,
            Self::Explained { error, .. } | Self::Kept { error, .. } => error.is_of_start(),
            _ => false,
        }
    }

    /// The error alone, without where to look for more.
    #[must_use]
    pub fn in_short(&self) -> String {
        match self {
            Self::Explained { error, .. } | Self::Kept { error, .. } => error.in_short(),
            _ => self.to_string(),
        }
    }

    /// For `map_err`, where a validator's process is started.
    pub(super) fn starting(source: io::Error) -> Self {
        Self::System { what: "start a validator", source }
    }

    /// For `map_err`, where a validator's process is stopped or goes on.
    pub(super) fn signalling(source: io::Error) -> Self {
        Self::System { what: "stop a validator for a while", source }
    }

    /// For `map_err`, where a link between validators is cut.
    pub(super) fn cutting(source: io::Error) -> Self {
        Self::System { what: "name a link to be cut", source }
    }

    /// For `map_err`, where a validator's process is killed.
    pub(super) fn killing(source: io::Error) -> Self {
        Self::System { what: "kill a validator", source }
    }
}
