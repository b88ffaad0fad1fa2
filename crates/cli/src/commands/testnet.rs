//! `quorate testnet`: the files of a new committee.

mod kubernetes;

use super::wan::Wan;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use kubernetes::Kubernetes;
use quorate_crypto::SchemeKind;
use quorate_engine::{ProtocolKind, Settings};
use quorate_lab::ServiceKind;
use quorate_lab::bench::fitting_timeout_ms;
use quorate_ledger::evm::{Genesis, GenesisAccount, Signer, U256};
use quorate_node::{Archive, ClientPolicy, NewLearner, Testnet, TestnetError, TestnetPlan};
use quorate_storage::Durability;
use quorate_types::{Weights, WeightsWarning};
use quorate_wan::Emulation;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Write keys and configurations of a new committee.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate testnet net                        four validators, Ed25519, ports 7000 to 7007\n  \
    quorate testnet net -n 7 --scheme bls      seven, BLS multi-signatures\n  \
    quorate testnet net --weights 3,1,1,1      votes weigh differently; a quorum is 5 of 6\n  \
    quorate testnet net --wan us-east-1,eu-west-1   delays as between these regions (laboratories only)\n  \
    quorate testnet net --service kv           a key-value store: see `quorate kv`\n  \
    quorate testnet net --clients listed       clients that each validator lists, and no others\n  \
    quorate testnet net --service evm          Ethereum's machine, with JSON-RPC and funded keys\n  \
    quorate testnet net --force                again, over an earlier testnet\n  \
    quorate testnet --kubernetes net           for `kubectl apply -k net`")]
pub(crate) struct Options {
    /// New folder for the committee file, with a folder in it for each validator
    directory: PathBuf,
    /// Number of validators in the committee
    #[arg(short = 'n', long, default_value_t = 4)]
    validators: u16,
    /// Number of learners beside them: they follow and answer queries, and have no vote
    #[arg(long, default_value_t = 0, value_name = "N",
          value_parser = clap::value_parser!(u16).range(..=64))]
    learners: u16,
    /// Weights of the validators' votes, as in 3,1,1,1; by default all weigh the same.
    ///
    /// Certificates then need more than two thirds of the total weight, validators of less than a
    /// third may fail, and each leads in proportion to its weight
    #[arg(long, value_name = "W,W,...")]
    weights: Option<Weights>,
    /// The protocol that orders: jolteon, hotstuff (chained), hotstuff-basic, pbft, linear-pbft,
    /// linear-pbft-fast (with the fast path) or sbft (and one certified reply a client)
    #[arg(long, default_value_t)]
    protocol: ProtocolKind,
    /// Number of redundant validators: the fast path goes on while so many are slow or dead. It
    /// takes 3f + 2C + 1 validators for an f of at least 1
    #[arg(short = 'c', long, default_value_t = 0, value_name = "C")]
    redundancy: u64,
    /// The voting scheme: ed25519, bls, or bls-threshold (keys from one dealer; not for the chained
    /// protocols)
    #[arg(long, default_value = "ed25519", value_parser = super::committee_scheme)]
    scheme: SchemeKind,
    /// First port: validator I listens on it plus I, and serves HTTP on it plus N plus I; the
    /// learners' ports follow in the same way
    #[arg(long, default_value_t = 7_000, value_name = "PORT")]
    base_port: u16,
    /// Durability of votes: against a power cut (fsync), or only against the end of the process
    /// (os)
    #[arg(long, default_value = "fsync")]
    durability: Durability,
    /// Service to replicate: evm (Ethereum's machine, with its JSON-RPC), kv (a key-value store
    /// whose state is proven to clients), log (an ordered log) or noop
    #[arg(long, default_value = "log")]
    service: ServiceKind,
    /// Past states that each validator keeps, with the index of accounts and tokens, with --service
    /// evm: recent (as many as archive_bytes and archive_heights let be), all or off
    #[arg(long, default_value_t, value_name = "WHICH")]
    archive: Archive,
    /// Chain id that Ethereum's tools see, with --service evm
    #[arg(long, default_value_t = 7_770, value_name = "ID",
          value_parser = clap::value_parser!(u64).range(1..))]
    chain_id: u64,
    /// Genesis of the ledger, with --service evm: a file of Ethereum's tools, instead of ten
    /// development accounts
    #[arg(long, value_name = "FILE", conflicts_with = "chain_id")]
    genesis: Option<PathBuf>,
    /// Clients that may write and read: open (any), listed (those in each validator's clients.toml;
    /// keys for one are made) or service (any, for what the service admits)
    #[arg(long, default_value_t, value_name = "POLICY")]
    clients: ClientPolicy,
    #[command(flatten)]
    wan: Wan,
    /// Remove an earlier testnet at DIRECTORY first, its keys and data included
    #[arg(long)]
    force: bool,
    /// Print what was written as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kubernetes: Kubernetes,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        if self.force {
            remove_testnet(&self.directory)?;
        }
        let emulation = self.wan.emulation();
        let settings = self.settings(emulation.as_ref())?;
        let genesis = self.genesis()?;
        let plan = TestnetPlan {
            members: usize::from(self.validators),
            learners: usize::from(self.learners),
            weights: self.weights.clone(),
            redundancy: self.redundancy,
            scheme: self.scheme,
            base_port: self.base_port,
            durability: self.durability,
            archive: self.archive,
            service: self.service.to_string(),
            genesis: genesis.as_ref().map(Genesis::to_json),
            execution_version: self.service.versions().newest(),
            gateways: genesis.is_some(),
            clients: self.clients,
            emulation,
            settings,
            ..TestnetPlan::default()
        };
        let plan = self.kubernetes.place(&self.directory, plan)?;
        let testnet = Testnet::create(&self.directory, &plan).map_err(explain)?;
        if self.kubernetes.is_wanted() {
            self.kubernetes.write(&testnet, &plan)?;
        }
        if self.json {
            output::json(&json!({
                "directory": testnet.directory,
                "committee": testnet.committee,
                "configs": testnet.configs,
                "http": testnet.http,
                "gateways": testnet.gateways,
                "chain_id": genesis.as_ref().map(|genesis| genesis.chain_id),
                "accounts": self.accounts().iter().map(account).collect::<Vec<_>>(),
                "learners": testnet.learners.iter().map(learner).collect::<Vec<_>>(),
                "clients": self.clients.to_string(),
                "client_key": testnet.client_key,
                "weights": self.weights().each(),
                "cluster": self.kubernetes.to_json(),
                "caution": self.warning().map(|warning| warning.to_string()),
            }));
        } else {
            let chain_id = genesis.as_ref().map(|genesis| genesis.chain_id);
            output::line(&self.describe(&testnet, chain_id));
        }
        Ok(())
    }

    /// Genesis of the EVM ledger, if that is what is replicated.
    fn genesis(&self) -> Result<Option<Genesis>, Failure> {
        match (&self.genesis, self.service) {
            (_, ServiceKind::Payments) => Err(Failure::usage(
                "a committee for the releases of a payment network is written with it: `quorate pay \
                 testnet --committee`",
            )),
            (Some(path), ServiceKind::Evm) => Genesis::load(path).map(Some).map_err(Failure::usage),
            (None, ServiceKind::Evm) => Ok(Some(self.development())),
            (Some(_), _) => Err(Failure::usage("--genesis is for --service evm")),
            (None, _) => Ok(None),
        }
    }

    /// A chain that begins now, with ether for the development accounts.
    fn development(&self) -> Genesis {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let funded =
            GenesisAccount::default().with_balance(U256::from(ETHER_EACH) * wei_per_ether());
        let accounts = Signer::development().into_iter();
        Genesis {
            timestamp: now.as_secs(),
            accounts: accounts.map(|(signer, _)| (signer.address(), funded.clone())).collect(),
            takes_unprotected: true,
            ..Genesis::new(self.chain_id)
        }
    }

    /// The accounts that have ether and whose keys everybody knows.
    fn accounts(&self) -> Vec<(Signer, [u8; 32])> {
        let is_funded = self.service == ServiceKind::Evm && self.genesis.is_none();
        if is_funded { Signer::development() } else { Vec::new() }
    }

    fn describe_ledger(&self, testnet: &Testnet, chain_id: Option<u64>) -> String {
        let (Some(rpc), Some(chain_id)) = (testnet.gateways.first(), chain_id) else {
            return String::new();
        };
        let mut text = format!(
            "\n\nJSON-RPC and the explorer are at http://{rpc} (validator 0), chain id {chain_id}."
        );
        if !self.accounts().is_empty() {
            text.push_str(&format!(
                "\n\nDevelopment accounts of {ETHER_EACH} ether. Everybody knows their keys:\n"
            ));
        }
        for (signer, key) in self.accounts() {
            text.push_str(&format!("\n  {}  0x{}", signer.address(), hex::encode(key)));
        }
        text
    }

    fn weights(&self) -> Weights {
        let equal = || Weights::equal(usize::from(self.validators));
        let weights = self.weights.clone().unwrap_or_else(equal);
        weights.clone().with_redundancy(self.redundancy).unwrap_or(weights)
    }

    /// Warning about the committee, unless it has one member: that it tolerates no failure is
    /// plain.
    fn warning(&self) -> Option<WeightsWarning> {
        self.weights().warning().filter(|_| self.validators > 1)
    }

    /// The defaults, with a view timeout that fits the network.
    fn settings(&self, emulation: Option<&Emulation>) -> Result<Settings, Failure> {
        let default = Settings {
            protocol: self.protocol,
            execution_certificates: self.service.is_proven(),
            heartbeat_ms: self.service.heartbeat_ms(),
            ..Settings::default()
        };
        let Some(emulation) = emulation else { return Ok(default) };
        let network = emulation.topology(usize::from(self.validators)).map_err(Failure::usage)?;
        let timeout_ms = fitting_timeout_ms(&network).max(default.timeout_ms);
        Ok(Settings { timeout_ms, ..default })
    }

    fn describe(&self, testnet: &Testnet, chain_id: Option<u64>) -> String {
        let place = self.directory.display();
        let (n, scheme) = (self.validators, self.scheme);
        let mut text = format!("Wrote a committee of {n} ({scheme}) to {place}.\n\n");
        let weights = self.weights();
        if !weights.are_equal() {
            let (quorum, total, f) = (weights.quorum(), weights.total(), weights.faulty_max());
            text.push_str(&format!(
                "Votes weigh {weights}: a quorum is {quorum} of {total}, and {f} may fail.\n\n"
            ));
        }
        if let Some(warning) = self.warning() {
            text.push_str(&format!("Mind: {warning}.\n\n"));
        }
        text.push_str(&format!("Clients: {}.\n\n", self.clients.meaning()));
        text.push_str(&match self.kubernetes.is_wanted() {
            true => self.kubernetes.describe(testnet, &weights),
            false => self.describe_processes(testnet, chain_id),
        });
        text
    }

    /// How each is run as a process of this machine.
    fn describe_processes(&self, testnet: &Testnet, chain_id: Option<u64>) -> String {
        let (n, place, quorate) = (self.validators, self.directory.display(), output::program());
        let mut text = String::from("Run each in a terminal of its own:\n\n");
        let validators = (0..n).map(|index| format!("validator-{index}"));
        for name in validators.chain((0..self.learners).map(|index| format!("learner-{index}"))) {
            text.push_str(&format!("  {quorate} run --config {place}/{name}/config.toml\n"));
        }
        text.push_str(&format!("\nand then look at them:\n\n  {quorate} status {place}"));
        text.push_str(&self.describe_ledger(testnet, chain_id));
        if let Some(key) = &testnet.client_key {
            text.push_str(&format!(
                "\n\nA client is on all lists: {quorate} kv --key {} …, and others by \
                 `{quorate} keys generate` and a line in each clients.toml (SIGHUP reads it again)",
                key.display()
            ));
        }
        let has_keys = self.service == ServiceKind::Kv;
        if let Some(learner) = testnet.learners.first().filter(|_| has_keys) {
            text.push_str(&format!(
                "\n\nor read from a learner:\n\n  {quorate} kv --net {place} get KEY --certified \
                 --learner {}",
                learner.address
            ));
        }
        text
    }
}

/// Balance of each development account, in ether.
const ETHER_EACH: u64 = 10_000;

fn wei_per_ether() -> U256 {
    U256::from(10).pow(U256::from(18))
}

fn account((signer, key): &(Signer, [u8; 32])) -> Value {
    json!({ "address": signer.address().to_string(), "key": format!("0x{}", hex::encode(key)) })
}

fn learner(learner: &NewLearner) -> Value {
    json!({ "config": learner.config, "address": learner.address.to_string() })
}

fn explain(error: TestnetError) -> Failure {
    match error {
        TestnetError::NotEmpty { .. } => {
            Failure::Usage(format!("{error} (--force removes an earlier testnet)"))
        }
        error => Failure::usage(error),
    }
}

/// Removes a folder that a testnet was written to, and no other.
fn remove_testnet(directory: &Path) -> CommandResult {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    let ours = ["validator-", "learner-"];
    let files = ["committee.toml", "client"];
    let is_ours = |name: &str| files.contains(&name) || ours.iter().any(|o| name.starts_with(o));
    for entry in entries.flatten() {
        let name = entry.file_name();
        if !is_ours(&name.to_string_lossy()) {
            let (place, name) = (directory.display(), name.display());
            return Err(Failure::Usage(format!(
                "{place} holds '{name}', which no testnet wrote: --force does not remove it"
            )));
        }
    }
    let removed = fs::remove_dir_all(directory);
    removed
        .map_err(|error| Failure::usage(format!("cannot remove {}: {error}", directory.display())))
}
