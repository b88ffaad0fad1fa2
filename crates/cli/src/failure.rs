//! Failures of commands, and their exit codes.

use quorate_lab::calibrate::CalibrateError;
use quorate_lab::experiment::RunError;
use std::fmt::{self, Display};
use std::process::ExitCode;

/// Meanings of exit codes, for `--help` and the manual.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the run failed; the same command may succeed later
  2  the options or files are wrong: the same command will fail again
  3  safety: a validator halted itself, or two validators disagree. Do not
     start it again before somebody has read why
  4  the disk failed, is full or is damaged. Do not start it again before
     somebody has looked at the disk
  5  nothing is wrong, but there are warnings (config check)
  6  this program lacks the version that the committee executes by. Nothing
     is lost: install a newer one and start it again";

/// Failure of a command, with the reason.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options or files are wrong: the same command will fail again.
    Usage(String),
    /// The run itself failed.
    Run(String),
    /// A validator halted itself: starting it again is no remedy.
    Halted(String),
    /// The disk failed: starting it again is no remedy.
    Disk(String),
    /// The program lacks the version that the committee executes by.
    LacksVersion(String),
    /// The output has said what is wrong already.
    Reported(Code),
}

/// The exit codes of commands whose output says what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The run itself failed.
    Run = 1,
    /// Options or files are wrong.
    Usage = 2,
    /// Validators disagree with one another.
    Safety = 3,
    /// Nothing failed but warnings.
    Warnings = 5,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text)
            | Self::Run(text)
            | Self::Halted(text)
            | Self::Disk(text)
            | Self::LacksVersion(text) => f.write_str(text),
            Self::Reported(_) => f.write_str("what is wrong was said"),
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Interrupted => Self::run("interrupted"),
            RunError::Failed(reason) => Self::Run(reason),
            RunError::Refused(reason) => Self::Usage(reason),
        }
    }
}

impl From<CalibrateError> for Failure {
    fn from(error: CalibrateError) -> Self {
        match error {
            CalibrateError::Storage(_) => Self::Disk(error.to_string()),
            _ => Self::run(error),
        }
    }
}

pub(crate) type CommandResult = Result<(), Failure>;

impl Failure {
    /// For `map_err`: the options or files are wrong.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self::Usage(error.to_string())
    }

    /// For `map_err`: the run failed.
    pub(crate) fn run(error: impl Display) -> Self {
        Self::Run(error.to_string())
    }

    /// Whether starting again is no remedy, and may do harm.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::Halted(_) | Self::Disk(_))
    }

    /// Says why on standard error, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (code, text) = match self {
            Self::Usage(text) => (2, text),
            Self::Run(text) => (1, text),
            Self::Halted(text) => (3, text),
            Self::Disk(text) => (4, text),
            Self::LacksVersion(text) => (6, text),
            Self::Reported(code) => return ExitCode::from(code as u8),
        };
        eprintln!("error: {text}");
        ExitCode::from(code)
    }
}
