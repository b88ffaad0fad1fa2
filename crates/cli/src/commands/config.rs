//! `quorate config`: a validator's configuration explained, shown and checked.

mod check;

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::{Args, Subcommand};
use quorate_node::{NodeConfig, config};
use std::path::{Path, PathBuf};

/// Check a validator's configuration, show what it amounts to, or explain its fields.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate config check net                          every validator of a testnet\n  \
    quorate config check /etc/quorate/eu/config.toml  one, and the files it names\n  \
    quorate config template > config.toml             every field with its default\n  \
    quorate config show net/validator-0/config.toml   what is in force")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Find everything that is wrong or unwise in configuration files, at once
    ///
    /// Looks at the files themselves and at what they name: the committee file, the keys and their
    /// passphrase, the data folder and its disk, addresses and ports. Several files are compared
    /// with one another too. Nothing is written, and no port is held.
    ///
    /// Exit code 0: nothing to say. 2: something is wrong. 5: warnings only.
    Check(check::Options),
    /// Print the configuration that a file amounts to, with defaults filled in
    ///
    /// Paths are shown as they are resolved. Values that differ from the default are marked.
    Show {
        /// Path of the configuration file
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a configuration with every field, its meaning and its default
    Template,
    /// Print the reference of all fields, which docs/CONFIG.md holds (Markdown)
    Reference,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.action {
            Action::Check(options) => options.run(),
            Action::Show { file, json } => show(file, *json),
            Action::Template => {
                output::text(&unspecified().to_toml());
                Ok(())
            }
            Action::Reference => {
                output::text(&config::reference());
                Ok(())
            }
        }
    }
}

/// The three paths as `quorate testnet` lays them out, and defaults.
fn unspecified() -> NodeConfig {
    NodeConfig::new("../committee.toml".into(), "key.toml".into(), "data".into())
}

fn show(file: &Path, json: bool) -> CommandResult {
    let config = NodeConfig::load(file).map_err(|error| refused(file, &error))?;
    if json {
        output::json(&config);
        return Ok(());
    }
    output::text(&config::effective(&config));
    Ok(())
}

/// A configuration that does not load, with everything that is wrong in its text.
pub(crate) fn refused(file: &Path, error: &config::ConfigError) -> Failure {
    if matches!(error, config::ConfigError::Read { path, .. } if path == file) {
        return Failure::usage(error);
    }
    let problems = config::check::problems(file);
    if problems.is_empty() {
        return Failure::usage(format!(
            "{error}\n`quorate config check {}` shows everything that is wrong at once",
            file.display()
        ));
    }
    let mut text = format!("{} is not taken:", file.display());
    for finding in &problems {
        text.push_str("\n  ");
        text.push_str(&check::one_line(finding));
    }
    text.push_str("\n`quorate config check` looks at the files that it names too");
    Failure::Usage(text)
}
