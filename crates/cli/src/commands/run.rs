//! `quorate run`: one validator.

use crate::commands::config::refused;
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::Args;
use quorate_lab::ServiceKind;
use quorate_node::transport::Limits;
use quorate_node::{NodeConfig, NodeError, Shutdown, Validator, init_logging, keys};
use quorate_storage::StorageError;
use serde_json::json;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// How long a validator may take to end after whoever started it has gone.
const FAREWELL: Duration = Duration::from_secs(4);

/// Run one validator.
///
/// It logs to standard error, and serves status and metrics over HTTP at the address in its
/// configuration. Ctrl-C and SIGTERM end it in good order; it may be killed at any time.
///
/// A sealed key file is opened with the passphrase in the file that --passphrase-file, the
/// configuration's passphrase_file or the environment's QUORATE_PASSPHRASE_FILE names, with the
/// systemd credential quorate-passphrase, or with one typed at the terminal.
///
/// It exits with 3 when it halted itself and with 4 when its disk failed. Do not start it again
/// then before somebody has read why: whatever starts it again by itself must stop at these codes.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate run --config net/validator-0/config.toml")]
pub(crate) struct Options {
    /// The validator's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Take the passphrase of a sealed key file from the first line of FILE
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Print the addresses as one JSON object once the validator runs
    #[arg(long)]
    json: bool,
    /// End when standard input is closed, and so with the process that holds its other end
    #[arg(long)]
    exit_with_parent: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let loaded = NodeConfig::load(&self.config);
        let mut config = loaded.map_err(|error| refused(&self.config, &error))?;
        if self.passphrase_file.is_some() {
            config.passphrase_file.clone_from(&self.passphrase_file);
        }
        let service: ServiceKind = config.service.parse().map_err(|error| {
            Failure::usage(format!("{}: 'service': {error}", self.config.display()))
        })?;
        init_logging(config.log);
        let keys = load_keys(&config)?;
        let shutdown = Shutdown::on_signals().map_err(fail)?;
        if self.exit_with_parent {
            end_with_parent(shutdown.clone());
        }
        let started = Validator::start_with_keys(&config, keys, service.build(), Limits::default());
        let validator = started.map_err(fail)?;
        if self.json {
            output::json(&json!({
                "id": validator.id(),
                "address": validator.address().to_string(),
                "http": validator.http_address().to_string(),
            }));
        }
        validator.wait(&shutdown).map_err(fail)
    }
}

/// Before signals are caught, so that Ctrl-C ends the question.
fn load_keys(config: &NodeConfig) -> Result<quorate_crypto::KeyFile, Failure> {
    let mut refusal = None;
    let loaded = keys::load(config, &mut |key| {
        passphrase::ask(key).unwrap_or_else(|failure| {
            refusal = Some(failure);
            None
        })
    });
    match refusal {
        Some(failure) => Err(failure),
        None => loaded.map_err(fail),
    }
}

fn end_with_parent(shutdown: Shutdown) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        shutdown.trigger();
        thread::sleep(FAREWELL);
        eprintln!("error: the validator did not end in {} s", FAREWELL.as_secs());
        std::process::exit(1);
    });
}

fn fail(error: NodeError) -> Failure {
    match error {
        NodeError::Config(_)
        | NodeError::Key(_)
        | NodeError::Passphrase(_)
        | NodeError::NoPassphrase { .. }
        | NodeError::NotAMember { .. }
        | NodeError::OtherVotingKey { .. }
        | NodeError::OtherService { .. }
        | NodeError::Storage(
            StorageError::InUse { .. }
            | StorageError::Format { .. }
            | StorageError::OtherService { .. },
        ) => Failure::usage(error),
        NodeError::Halted(_) => Failure::Halted(error.to_string()),
        NodeError::Storage(_) | NodeError::Marker { .. } => Failure::Disk(error.to_string()),
        error => Failure::run(error),
    }
}
