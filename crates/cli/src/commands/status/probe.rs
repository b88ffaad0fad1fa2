//! One question to a validator, for whatever runs containers and asks by a command.

use super::TIMEOUT;
use crate::failure::{Code, CommandResult, Failure};
use crate::output;
use clap::ValueEnum;
use quorate_lab::http::Door;

/// Question to each validator, answered by the code of one of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Probe {
    /// Its threads run (/healthz)
    Alive,
    /// Clients may ask it (/readyz)
    Ready,
}

impl Probe {
    /// Asks one after the other, prints a line for each, and fails unless all say yes.
    pub(super) fn ask(self, doors: &[Door]) -> CommandResult {
        let mut all_agree = true;
        for door in doors {
            let (agrees, said) = self.ask_one(door);
            output::line(&format!("{}: {said}", door.name()));
            all_agree &= agrees;
        }
        if all_agree { Ok(()) } else { Err(Failure::Reported(Code::Run)) }
    }

    /// The yes or no of one, and its words.
    fn ask_one(self, door: &Door) -> (bool, String) {
        match door.look(self.page(), TIMEOUT) {
            Ok((code, body)) => (code.is_success(), body.trim_end().to_owned()),
            Err(error) => (false, format!("silent: {error}")),
        }
    }

    fn page(self) -> &'static str {
        match self {
            Self::Alive => "/healthz",
            Self::Ready => "/readyz",
        }
    }
}
