//! `quorate run`: one validator.

use crate::commands::config::refused;
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase, secret};
use clap::Args;
use quorate_crypto::IdentitySecret;
use quorate_gateway::ethereum::{Description, Ethereum, EthereumConfig, EthereumError, Run};
use quorate_gateway::rest::{Gateway, GatewayConfig, GatewayError, RestLimits, User};
use quorate_lab::{Genesis, GenesisError, ServiceKind};
use quorate_ledger::evm;
use quorate_node::connections::ConnectionLimits;
use quorate_node::http::StatusDoor;
use quorate_node::http_access::{Access, DoorUser};
use quorate_node::http_server::DoorRules;
use quorate_node::http_tls::HttpTls;
use quorate_node::keys::Keyring;
use quorate_node::payments::PayEpochError;
use quorate_node::quotas::{AddressRates, RateLimit};
use quorate_node::reload::outlive_hangups;
use quorate_node::transport::Limits;
use quorate_node::{
    Ending, LearnerAddress, NodeConfig, NodeError, Shutdown, Validator, descriptors, init_logging,
};
use quorate_storage::StorageError;
use quorate_types::{ReplicaId, Service};
use serde_json::json;
use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time that a validator has to end after the process that started it is gone.
const FAREWELL: Duration = Duration::from_secs(4);

/// File of a token that is made where the configuration names none, beside the configuration.
const TOKEN: &str = "gateway.token";

/// Reason in the metrics for which a connection to the gateway gave way or was refused.
const CUT_REASON: &str = "too-many-gateway";

/// Run one validator.
///
/// It logs to standard error, and serves status and metrics over HTTP at the address in its
/// configuration; the key-value store as well, where the configuration names a `gateway`. Ctrl-C
/// and SIGTERM end it in good order; it may be killed at any time.
///
/// A sealed key file is opened with the passphrase in the file that --passphrase-file, the
/// configuration's passphrase_file or the environment's QUORATE_PASSPHRASE_FILE names, with the
/// systemd credential quorate-passphrase, or with one typed at the terminal.
///
/// It exits with 3 when it halted itself and with 4 when its disk failed. Do not start it again
/// then before somebody has read why: whatever starts it again by itself must stop at these codes.
/// With 6 it stopped at the border of an epoch whose version of what is executed this program
/// lacks: install a newer one and start it again.
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
    /// After the end with 3 or 4 stay, without taking part, until asked to stop: /healthz goes on
    /// to answer 200, /readyz says why. For what starts every process again, as Kubernetes does
    #[arg(long)]
    hold: bool,
    /// End when standard input is closed, and so with the process that holds its other end
    #[arg(long)]
    exit_with_parent: bool,
    /// Cut the links that this file names, one `A-B` a line, as long as it does: for the laboratory
    #[arg(long, value_name = "FILE", hide = true)]
    cut_links: Option<PathBuf>,
    /// Behave so from SIGUSR1 on: for the laboratory
    #[cfg(feature = "liar")]
    #[arg(long, value_name = "BEHAVIOUR", hide = true)]
    lie: Option<quorate_sim::byzantine::Behaviour>,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        outlive_hangups().map_err(Failure::run)?;
        let loaded = NodeConfig::load(&self.config);
        let mut config = loaded.map_err(|error| refused(&self.config, &error))?;
        if self.passphrase_file.is_some() {
            config.passphrase_file.clone_from(&self.passphrase_file);
        }
        config.cut_links.clone_from(&self.cut_links);
        let service: ServiceKind = config.service.parse().map_err(|error| {
            Failure::usage(format!("{}: 'service': {error}", config.committee.display()))
        })?;
        self.check_tokens(&config, service)?;
        let genesis = genesis(&self.config, &config, service)?;
        init_logging(config.log);
        descriptors::raise_limit();
        let loaded = self.load(&config)?;
        match self.start((&config, &loaded), service, genesis.as_ref()) {
            Err(failure) if self.hold && failure.is_final() => {
                hold(&config, &loaded, &failure);
                Err(failure)
            }
            ended => ended,
        }
    }

    /// Loads what stays for all epochs, and begins to listen to signals.
    fn load(&self, config: &NodeConfig) -> Result<Loaded, Failure> {
        let fail = |error| self.explain(error);
        let rules = door_rules(config)?;
        make_data_dir(config)?;
        let keyring = load_keys(config, &fail)?;
        let status = StatusDoor::load(config).map_err(fail)?;
        let shutdown = Shutdown::on_signals().map_err(fail)?;
        if self.exit_with_parent {
            end_with_parent(shutdown.clone());
        }
        Ok(Loaded { rules, keyring, status, shutdown })
    }

    /// Refuses files of tokens that the gateway would not take, before anything is started.
    fn check_tokens(&self, config: &NodeConfig, service: ServiceKind) -> CommandResult {
        if config.gateway.is_none() {
            return Ok(());
        }
        let access = self.access(config)?;
        let loaded = match service {
            ServiceKind::Evm => access.load::<DoorUser>().map(drop),
            _ => access.load::<User>().map(drop),
        };
        loaded.map_err(|error| Failure::usage(format!("{}: {error}", self.config.display())))
    }

    /// Who may use the gateway. Where the configuration says nothing of it, whoever shows a token
    /// that is made at the first start.
    fn access(&self, config: &NodeConfig) -> Result<Access, Failure> {
        if let Some(access) = config.gateway_access() {
            return Ok(access);
        }
        let path = self.config.with_file_name(TOKEN);
        if !path.exists() {
            secret::write_new(&path, &format!("{}\n", secret::new_token()))?;
            eprintln!("made a token for the gateway's callers: {}", path.display());
        }
        Ok(Access::Token(path))
    }

    fn start(
        &self,
        (config, loaded): (&NodeConfig, &Loaded),
        service: ServiceKind,
        genesis: Option<&Genesis>,
    ) -> CommandResult {
        let fail = |error| self.explain(error);
        let identity = Arc::new(loaded.keyring.keys().identity.clone());
        let mut is_first = true;
        let mut kept: Option<Door> = None;
        loop {
            let built = service.build(genesis.cloned()).map_err(Failure::usage)?;
            let validator = self.start_validator(config, loaded, built).map_err(fail)?;
            let (identity, rules) = (Arc::clone(&identity), loaded.rules.clone());
            let gateway = match (kept.take(), genesis) {
                (Some(door), _) => Some(door.begin_run(&validator)),
                (None, Some(Genesis::Evm(genesis))) => {
                    self.start_ethereum(config, &validator, (identity, rules), genesis.clone())?
                }
                (None, _) => self.start_gateway(config, &validator, (identity, rules))?,
            };
            if self.json && std::mem::take(&mut is_first) {
                output::json(&json!({
                    "id": validator.id(),
                    "address": validator.address().to_string(),
                    "http": validator.http_address().to_string(),
                    "gateway": gateway.as_ref().map(|gateway| gateway.address().to_string()),
                }));
            }
            match validator.wait(&loaded.shutdown).map_err(fail)? {
                Ending::Stopped => return Ok(()),
                Ending::NextEpoch => kept = gateway.inspect(Door::end_run),
            }
        }
    }

    /// Starts the gateway beside a validator or learner, where the configuration names one. It ends
    /// when it is dropped.
    fn start_gateway(
        &self,
        config: &NodeConfig,
        beside: &Validator,
        (identity, rules): (Arc<IdentitySecret>, DoorRules),
    ) -> Result<Option<Door>, Failure> {
        let Some(address) = config.gateway.clone() else { return Ok(None) };
        let history = beside.history();
        let is_learner = !history.committee().contains(beside.id());
        let learner = is_learner.then(|| LearnerAddress {
            identity: identity.public(),
            address: beside.address().to_string(),
        });
        let first = if is_learner { ReplicaId(0) } else { beside.id() };
        let settings = GatewayConfig {
            access: self.access(config)?,
            rules,
            learner,
            vouching: Some(identity),
            limits: RestLimits::default().with_connections(beside.descriptors().gateway),
            cut: beside.shown().metrics.cut_counter(CUT_REASON),
            ..GatewayConfig::new(address, history, first)
        };
        let started = Gateway::start(&settings).map_err(|error| match error {
            GatewayError::Listen { .. } | GatewayError::Token(_) => Failure::usage(error),
            GatewayError::Threads(_) | GatewayError::Client(_) => Failure::run(error),
        });
        started.map(|gateway| Some(Door::Rest(gateway)))
    }

    /// Starts Ethereum's JSON-RPC beside a validator, where the configuration names a gateway.
    fn start_ethereum(
        &self,
        config: &NodeConfig,
        beside: &Validator,
        (identity, rules): (Arc<IdentitySecret>, DoorRules),
        genesis: evm::Genesis,
    ) -> Result<Option<Door>, Failure> {
        let (Some(address), Some(run)) = (config.gateway.clone(), run_of(beside)) else {
            return Ok(None);
        };
        let settings = EthereumConfig {
            address,
            history: beside.history(),
            vouching: identity,
            genesis: Arc::new(genesis),
            connections: ConnectionLimits::of(beside.descriptors().gateway),
            access: self.access(config)?,
            rules,
            cut: beside.shown().metrics.cut_counter(CUT_REASON),
        };
        let started = Ethereum::start(&settings, &run).map_err(|error| match error {
            EthereumError::Listen { .. } | EthereumError::Token(_) => Failure::usage(error),
            EthereumError::Threads(_) | EthereumError::Client(_) => Failure::run(error),
        });
        started.map(|ethereum| Some(Door::Ethereum(ethereum)))
    }

    /// Starts an honest validator; in builds with the feature `liar`, one that will lie if it is
    /// asked for.
    fn start_validator(
        &self,
        config: &NodeConfig,
        Loaded { keyring, status, .. }: &Loaded,
        service: Box<dyn Service>,
    ) -> Result<Validator, NodeError> {
        #[cfg(feature = "liar")]
        if let Some(behaviour) = self.lie {
            let mut config = config.clone();
            config.replica = behaviour.settings(config.replica);
            let voice = super::liar::voice(&config, keyring.keys(), behaviour)?;
            return Validator::start_lying(&config, (keyring, status), service, voice);
        }
        Validator::start_with_keys(config, (keyring, status), service, Limits::default())
    }

    /// Failure that an error means: its exit code, and where to look further.
    fn explain(&self, error: NodeError) -> Failure {
        match error {
            NodeError::Config(_)
            | NodeError::Key(_)
            | NodeError::NotAMember { .. }
            | NodeError::LearnerIsMember { .. }
            | NodeError::OtherVotingKey { .. } => Failure::usage(format!(
                "{error}\n`quorate config check {}` shows everything that is wrong at once",
                self.config.display()
            )),
            NodeError::NotFounded { .. } | NodeError::NotesElsewhere { .. } => {
                Failure::usage(error)
            }
            NodeError::Listen { ref source, .. } if source.kind() != ErrorKind::AddrInUse => {
                Failure::usage(error)
            }
            NodeError::Marker { ref source, .. } if is_refusal(source) => Failure::usage(error),
            error => fail(error),
        }
    }
}

/// Parts of a validator that are loaded once for all of its epochs.
struct Loaded {
    /// Certificate and rates of the gateway.
    rules: DoorRules,
    keyring: Keyring,
    status: StatusDoor,
    shutdown: Shutdown,
}

/// Stays until it is asked to stop, unless it was asked before it failed.
fn hold(config: &NodeConfig, Loaded { status, shutdown, .. }: &Loaded, failure: &Failure) {
    if !shutdown.is_triggered() {
        quorate_node::hold(config, status, &failure.to_string(), shutdown);
    }
}

/// Genesis of the service, as the configuration at `path` names it.
pub(crate) fn genesis(
    path: &Path,
    config: &NodeConfig,
    service: ServiceKind,
) -> Result<Option<Genesis>, Failure> {
    let refused =
        |error: GenesisError| Failure::usage(format!("{}: 'genesis': {error}", path.display()));
    match &config.genesis {
        Some(path) => {
            let (text, genesis) = service.read_genesis(path).map_err(refused)?;
            config.check_genesis(&text).map_err(Failure::usage)?;
            Ok(Some(genesis))
        }
        None if service.has_genesis() => Err(refused(GenesisError::Missing(service))),
        None => Ok(None),
    }
}

/// Made here, where it is plain that the configuration is wrong and not the disk.
fn make_data_dir(config: &NodeConfig) -> CommandResult {
    let folder = &config.data_dir;
    let refused = |error| {
        Failure::usage(format!(
            "cannot make the folder {}: {error}; name one in `data_dir` that this user may write in",
            folder.display()
        ))
    };
    fs::create_dir_all(folder).map_err(refused)
}

/// Returns `true` if the system was asked for something that it does not allow, rather than failed.
fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem | ErrorKind::NotFound
    )
}

/// Before signals are caught, so that Ctrl-C ends the question.
fn load_keys(config: &NodeConfig, fail: &dyn Fn(NodeError) -> Failure) -> Result<Keyring, Failure> {
    let mut refusal = None;
    let loaded = Keyring::load(config, &mut |key| {
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

/// Certificate and rates of the gateway.
fn door_rules(config: &NodeConfig) -> Result<DoorRules, Failure> {
    let limit = RateLimit { per_second: config.http_requests_per_second };
    Ok(DoorRules {
        tls: config.tls_files().map(HttpTls::load).transpose().map_err(Failure::usage)?,
        rates: AddressRates::new(limit),
        ..DoorRules::default()
    })
}

/// Run of a validator for JSON-RPC to read, where its service has a reader.
fn run_of(validator: &Validator) -> Option<Run> {
    let epochs = validator.epochs();
    let is_learner = !epochs.committee().contains(validator.id());
    let description = Description {
        protocol: epochs.file().settings.protocol.clone(),
        validator: if is_learner { ReplicaId(0) } else { validator.id() },
        dashboard: validator.dashboard(),
    };
    Some(Run { reading: validator.reading()?.clone(), description })
}

/// Gateway beside a validator, which serves applications until it is dropped.
enum Door {
    Rest(Gateway),
    Ethereum(Ethereum),
}

impl Door {
    /// Serves on while the validator beside it goes on to the next epoch, and leaves its state to
    /// that: the REST gateway, which follows its network as every client does, has none of it.
    fn end_run(&self) {
        match self {
            Self::Rest(_) => {}
            Self::Ethereum(ethereum) => ethereum.end_run(),
        }
    }

    /// The gateway beside the validator's next run, whose metrics show it.
    fn begin_run(self, validator: &Validator) -> Self {
        let cut = validator.shown().metrics.cut_counter(CUT_REASON);
        match &self {
            Self::Rest(gateway) => gateway.count_cuts_with(cut),
            Self::Ethereum(ethereum) => {
                ethereum.count_cuts_with(cut);
                if let Some(run) = run_of(validator) {
                    ethereum.begin_run(run);
                }
            }
        }
        self
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Rest(gateway) => gateway.address(),
            Self::Ethereum(ethereum) => ethereum.address(),
        }
    }
}

pub(crate) fn end_with_parent(shutdown: Shutdown) {
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        shutdown.trigger();
        thread::sleep(FAREWELL);
        eprintln!("error: the validator did not end in {} s", FAREWELL.as_secs());
        std::process::exit(1);
    });
}

pub(crate) fn fail(error: NodeError) -> Failure {
    match error {
        NodeError::Authority(_)
        | NodeError::Key(_)
        | NodeError::Passphrase(_)
        | NodeError::NoPassphrase { .. }
        | NodeError::TooFewDescriptors(_)
        | NodeError::OtherService { .. }
        | NodeError::NoAdmission(_)
        | NodeError::HttpTls(_)
        | NodeError::Token(_)
        | NodeError::StartedBefore { .. }
        | NodeError::Storage(
            StorageError::InUse { .. }
            | StorageError::Foreign { .. }
            | StorageError::Format { .. }
            | StorageError::OtherService { .. },
        ) => Failure::usage(error),
        NodeError::Halted(_)
        | NodeError::LocksLost { .. }
        | NodeError::NeverStarted { .. }
        | NodeError::Storage(StorageError::FalseSnapshot { .. }) => {
            Failure::Halted(error.to_string())
        }
        NodeError::LacksVersion(_) => Failure::LacksVersion(error.to_string()),
        NodeError::Storage(_)
        | NodeError::LookupFailed(_)
        | NodeError::Marker { .. }
        | NodeError::PayEpoch(PayEpochError::Storage(_) | PayEpochError::Io { .. }) => {
            Failure::Disk(error.to_string())
        }
        NodeError::PayEpoch(_) => Failure::usage(error),
        error => Failure::run(error),
    }
}
