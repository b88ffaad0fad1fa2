//! `quorate pay run`: one shard of one authority.

use crate::commands::run::{end_with_parent, fail};
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::Args;
use quorate_crypto::KeyFile;
use quorate_lab::pay::pin;
use quorate_node::payments::{Authority, AuthorityConfig, Start, run_authority};
use quorate_node::reload::outlive_hangups;
use quorate_node::{NodeError, Shutdown, descriptors, init_logging};
use serde_json::json;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// A payment costs some seven times as much to check as to move.
const CORES_PER_NETWORK_THREAD: usize = 4;

/// Run one shard of one authority.
///
/// It logs to standard error, and serves status, metrics and evidence of double spends over HTTP at
/// the address in its configuration. It may be killed at any time: what it voted for is on disk.
///
/// These pages are for every program of this machine, or for whoever shows the token in
/// `http_token_file` or one of a user in `http_tokens_file`. On another address than the loopback
/// interface's they take `tls_cert` and `tls_key`, or `http_insecure = true`.
///
/// Where its configuration names a `committee`, it follows the order in which that releases locked
/// coins and changes the authorities; payments go on while the committee cannot be reached. When an
/// epoch ends there, it reports what it locked, fetches what the others reported, and votes in the
/// next one. One that is no authority yet waits for the change that names it.
///
/// It exits with 3 when its locks are fewer than it had, or it is not told that there never were
/// any: it would vote twice for one coin, and must not start again under its keys. And with 4 when
/// its disk failed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate pay run --config net/authority-0/shard-0.toml\n  \
    quorate pay run --config shard-0.toml --first-start    once, where it never ran before")]
pub(crate) struct Options {
    /// The shard's configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Say that this authority never ran in this network, so that there can be no locks: once, for
    /// keys that `pay testnet` did not make. Refused where there are any, or a mark of them beside
    /// the key
    #[arg(long)]
    first_start: bool,
    /// Index of a processor to run on alone, with a thread that checks on each that is named, for
    /// measurements
    #[arg(long, value_name = "CPU")]
    core: Vec<usize>,
    /// Print the addresses as one JSON object once it runs
    #[arg(long)]
    json: bool,
    /// End when standard input is closed, and so with the process that holds its other end
    #[arg(long)]
    exit_with_parent: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        outlive_hangups().map_err(Failure::run)?;
        let mut config = AuthorityConfig::load(&self.config).map_err(Failure::usage)?;
        if !self.core.is_empty() {
            // Before there are other threads, which inherit it.
            pin(&self.core).map_err(|error| self.refuse_cores(&error))?;
            let cores = self.core.iter().collect::<BTreeSet<_>>().len();
            config.check_threads = cores;
            config.network_threads = cores.div_ceil(CORES_PER_NETWORK_THREAD);
        }
        init_logging(config.log);
        descriptors::raise_limit();
        let keys = load_keys(&config)?;
        let shutdown = Shutdown::on_signals().map_err(fail)?;
        if self.exit_with_parent {
            end_with_parent(shutdown.clone());
        }
        let start = if self.first_start { Start::First } else { Start::Again };
        let tell = |authority: &Authority| {
            if self.json {
                output::json(&json!({
                    "address": authority.address().to_string(),
                    "http": authority.http_address().to_string(),
                    "epoch": authority.epoch().0,
                }));
            }
        };
        run_authority(&config, &keys, start, &shutdown, tell).map_err(fail)
    }

    fn refuse_cores(&self, error: &io::Error) -> Failure {
        let cores: Vec<String> = self.core.iter().map(usize::to_string).collect();
        let cores = cores.join(", ");
        Failure::Usage(format!("cannot run on processors {cores} alone: {error}"))
    }
}

pub(super) fn load_keys(config: &AuthorityConfig) -> Result<KeyFile, Failure> {
    let mut refusal = None;
    let loaded = config.load_keys(&mut |key| {
        passphrase::ask(key).unwrap_or_else(|failure| {
            refusal = Some(failure);
            None
        })
    });
    match refusal {
        Some(failure) => Err(failure),
        None => loaded.map_err(|error: NodeError| fail(error)),
    }
}
