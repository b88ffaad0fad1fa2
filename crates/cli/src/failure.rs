//! How commands fail: for a reason in the options or files, or in the run.

use std::fmt::Display;
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The options or files are wrong: the same command will fail again.
    Usage(String),
    /// The run failed.
    Run(String),
    /// The run failed, and its output has said so already.
    Reported,
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

    /// Says why on standard error, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (code, text) = match self {
            Self::Usage(text) => (2, text),
            Self::Run(text) => (1, text),
            Self::Reported => return ExitCode::from(1),
        };
        eprintln!("error: {text}");
        ExitCode::from(code)
    }
}
