//! A payment network of processes in a folder that goes away with it.

use super::{Cores, PayBenchConfig, PayBenchError};
use crate::http;
use crate::processes::{Processes, Program, StartOptions};
use quorate_crypto::{KeyFile, StoredKeys, VotingSecret};
use quorate_node::payments::{PayTestnet, PayTestnetPlan, read_network};
use quorate_node::ports::free_ports;
use quorate_node::{NodeError, TestnetError};
use quorate_payments::{Network, PayScheme};
use quorate_types::ReplicaId;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const COMING_UP: Duration = Duration::from_secs(20);
const TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Place {
    executable: PathBuf,
    testnet: PayTestnet,
    pub(super) network: Arc<Network>,
    pub(super) issuer: KeyFile,
    _folder: TempDir,
}

/// Authorities as running processes.
pub(super) struct Running<'a> {
    place: &'a Place,
    authorities: Vec<ReplicaId>,
    processes: Vec<Processes>,
}

impl Place {
    pub(super) fn make(config: &PayBenchConfig, scheme: PayScheme) -> Result<Self, PayBenchError> {
        let system = |what| move |source| PayBenchError::System { what, source };
        let folder = tempfile::tempdir().map_err(system("make a folder"))?;
        let ports = 2 * config.authorities * config.shards;
        let plan = PayTestnetPlan {
            name: "bench".into(),
            authorities: config.authorities,
            shards: config.shards,
            scheme,
            base_port: free_ports(ports).map_err(system("find free ports"))?,
            durability: config.durability,
            ..PayTestnetPlan::default()
        };
        let testnet = PayTestnet::create(&folder.path().join("net"), &plan)?;
        let network = Arc::new(read_network(&testnet.network).map_err(NodeError::from)?);
        let issuer = read_keys(testnet.issuer.clone())?;
        let executable = config.executable.clone();
        Ok(Self { executable, testnet, network, issuer, _folder: folder })
    }

    /// Every authority's voting keys: whoever benches a network of its own has them all.
    pub(super) fn voting_secrets(&self) -> Result<Vec<VotingSecret>, PayBenchError> {
        let folders = (0..self.testnet.configs.len())
            .map(|index| self.testnet.directory.join(format!("authority-{index}/key.toml")));
        folders.map(|path| Ok(read_keys(path)?.voting)).collect()
    }

    /// Configurations of an authority's shards.
    pub(super) fn configs(&self, authority: ReplicaId) -> &[PathBuf] {
        &self.testnet.configs[authority.index()]
    }

    /// Starts all shards of these authorities, each on its processors where some are named.
    pub(super) fn start(
        &self,
        authorities: &[ReplicaId],
        cores: Option<&Cores>,
    ) -> Result<Running<'_>, PayBenchError> {
        self.start_with(&self.testnet.configs, authorities, cores)
    }

    /// The same, by these configurations of all authorities.
    pub(super) fn start_with(
        &self,
        configs: &[Vec<PathBuf>],
        authorities: &[ReplicaId],
        cores: Option<&Cores>,
    ) -> Result<Running<'_>, PayBenchError> {
        let failed = |source| PayBenchError::System { what: "start an authority", source };
        let mut processes = Vec::new();
        for authority in authorities {
            for (shard, config) in configs[authority.index()].iter().enumerate() {
                let of_shard = cores.map_or_else(Vec::new, |cores| cores.shards[shard].clone());
                let program = Program::Authority(self.executable.clone(), of_shard);
                let config = std::slice::from_ref(config);
                let one = Processes::start_with(program, config, StartOptions::default());
                processes.push(one.map_err(failed)?);
            }
        }
        let running = Running { place: self, authorities: authorities.to_vec(), processes };
        running.await_up()?;
        Ok(running)
    }

    fn http(&self, authority: ReplicaId) -> &[String] {
        &self.testnet.http[authority.index()]
    }
}

impl Running<'_> {
    fn await_up(&self) -> Result<(), PayBenchError> {
        let deadline = Instant::now() + COMING_UP;
        while self.cpu_seconds().is_err() {
            if Instant::now() >= deadline {
                let log = self.processes.last().map(|one| one.log_tail(0, 10));
                return Err(PayBenchError::NotUp {
                    timeout: COMING_UP,
                    log: log.unwrap_or_default(),
                });
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Processor time that they used so far, together.
    pub(super) fn cpu_seconds(&self) -> Result<f64, PayBenchError> {
        self.sum("cpu_seconds")
    }

    /// Sum of a number of their status.
    pub(super) fn sum(&self, field: &str) -> Result<f64, PayBenchError> {
        let failed = |source| PayBenchError::System { what: "ask an authority", source };
        let mut sum = 0.0;
        for authority in &self.authorities {
            for address in self.place.http(*authority) {
                let body = http::get(address, "/status", TIMEOUT).map_err(failed)?;
                let status: serde_json::Value =
                    serde_json::from_str(&body).map_err(|error| failed(io::Error::other(error)))?;
                sum += status[field].as_f64().unwrap_or(0.0);
            }
        }
        Ok(sum)
    }
}

pub(super) fn read_keys(path: PathBuf) -> Result<KeyFile, PayBenchError> {
    match StoredKeys::read(&path).map_err(TestnetError::from)? {
        StoredKeys::Open(keys) => Ok(keys),
        StoredKeys::Sealed(_) => Err(NodeError::NoPassphrase { key: path }.into()),
    }
}
