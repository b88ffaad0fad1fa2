//! `quorate committee show`: what a change is, and how far it is.

use super::OfChange;
use crate::failure::CommandResult;
use clap::Args;

/// Show what a change changes, who has signed it, and what it lacks
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    change: OfChange,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let loaded = self.change.load()?;
        loaded.print(None, self.change.json);
        Ok(())
    }
}
