//! `quorate committee verify`: whether members would take a change.

use super::{OfChange, change_file};
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use serde_json::json;

/// Check that a change is complete and breaks no rule, offline
///
/// Checks what each member checks before it votes for the change, but for the height. Exit code 0:
/// members take it. 1: they do not, and the rule that it breaks is said. 2: a file cannot be read.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let in_force = self.change.source.load()?;
        let signed = change_file::read(&self.change.change)?;
        in_force.check_signed(&signed).map_err(Failure::run)?;
        let digest = signed.change.digest().to_hex();
        if self.change.json {
            output::json(&json!({ "valid": true, "digest": digest }));
        } else {
            output::line(&format!("The change is complete, and breaks no rule:\n{digest}"));
        }
        Ok(())
    }
}
