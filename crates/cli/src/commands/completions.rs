//! `quorate completions`: what a shell needs to complete commands and options.

use crate::failure::CommandResult;
use crate::{Cli, output};
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

/// Print a script that lets a shell complete commands and options.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate completions bash > ~/.local/share/bash-completion/completions/quorate\n  \
    quorate completions zsh > ~/.zfunc/_quorate     (with ~/.zfunc in fpath)\n  \
    quorate completions fish > ~/.config/fish/completions/quorate.fish")]
pub(crate) struct Options {
    /// Shell that the script is for
    #[arg(value_enum)]
    shell: Shell,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let mut script = Vec::new();
        generate(self.shell, &mut Cli::command(), "quorate", &mut script);
        output::text(&String::from_utf8_lossy(&script));
        Ok(())
    }
}
