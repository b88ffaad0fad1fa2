//! `quorate run`: one validator.

use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_lab::ServiceKind;
use quorate_node::{NodeConfig, NodeError, Shutdown, Validator, init_logging};
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
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  quorate run --config net/validator-0/config.toml")]
pub(crate) struct Options {
    /// The validator's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print the addresses as one JSON object once the validator runs
    #[arg(long)]
    json: bool,
    /// End when standard input is closed, and so with the process that holds its other end
    #[arg(long)]
    exit_with_parent: bool,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let config = NodeConfig::load(&self.config).map_err(Failure::usage)?;
        let service: ServiceKind = config.service.parse().map_err(|error| {
            Failure::usage(format!("{}: 'service': {error}", self.config.display()))
        })?;
        init_logging(config.log);
        let shutdown = Shutdown::on_signals().map_err(fail)?;
        if self.exit_with_parent {
            end_with_parent(shutdown.clone());
        }
        let validator = Validator::start(&config, service.build()).map_err(fail)?;
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
        | NodeError::NotAMember { .. }
        | NodeError::OtherService { .. } => Failure::usage(error),
        error => Failure::run(error),
    }
}
