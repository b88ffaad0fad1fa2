//! Progress of a ceremony, for a person at a terminal.

use quorate_ledger::keygen::{Ceremony, Phase};

/// Says on standard error what is new.
#[derive(Debug, Default)]
pub(super) struct Progress {
    said: Vec<String>,
}

impl Progress {
    /// Says what this state shows and none before did.
    pub(super) fn show(&mut self, ceremony: &Ceremony) {
        let members = ceremony.plan().members();
        let joined = ceremony.joined().len();
        if joined > 0 {
            self.say(format!("joined {joined}/{members}"));
        }
        let dealt = ceremony.dealers().len();
        if dealt > 0 {
            self.say(format!("dealt {dealt}/{joined}"));
        }
        if ceremony.checked() > 0 {
            self.say(format!("checked {}/{joined}", ceremony.checked()));
        }
        for (dealer, complaints) in ceremony.accused() {
            for member in complaints {
                self.say(format!("member {member} complains about dealer {dealer}"));
            }
        }
        for (dealer, reason) in ceremony.out() {
            self.say(format!("dealer {dealer} is out: {reason}"));
        }
        if let Some(Ok(generated)) = ceremony.result() {
            self.say(format!("keys are made, of the dealers {:?}", generated.qualified));
        }
        if ceremony.phase() == Phase::Over && !ceremony.done().is_empty() {
            self.say(format!("have their keys {}/{joined}", ceremony.done().len()));
        }
    }

    /// Says a line, unless it was said before.
    pub(super) fn say(&mut self, line: String) {
        if !self.said.contains(&line) {
            eprintln!("{line}");
            self.said.push(line);
        }
    }
}
