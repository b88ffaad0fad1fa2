//! Committees in this process, for the tests in this folder.

#![allow(unreachable_pub, missing_docs)]

use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyCache, SchemeKind};
use quorate_engine::Settings;
use quorate_ledger::Noop;
use quorate_node::config::load_committee;
use quorate_node::ports::free_ports;
use quorate_node::testnet::system_random;
use quorate_node::transport::Limits;
use quorate_node::{
    CallResult, Client, ClientConfig, NodeConfig, NodeError, SessionSpec, Testnet, TestnetPlan,
    Validator,
};
use quorate_storage::Durability;
use quorate_types::{Committee, ReplicaId};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until it holds, for as long as anything may take.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "{what}: not within {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub struct Cluster {
    pub folder: tempfile::TempDir,
    pub testnet: Testnet,
    pub committee: Arc<Committee>,
    pub validators: Vec<Validator>,
    pub limits: Limits,
}

impl Cluster {
    pub fn start(members: usize) -> Self {
        Self::start_with(members, Limits::default())
    }

    pub fn start_with(members: usize, limits: Limits) -> Self {
        let mut cluster = Self::prepare(members, limits);
        for index in 0..members {
            cluster.validators.push(cluster.start_again(index).unwrap());
        }
        cluster
    }

    /// The files, and nobody running.
    pub fn prepare(members: usize, limits: Limits) -> Self {
        Self::plan(TestnetPlan { members, ..TestnetPlan::default() }, limits)
    }

    /// A committee of this scheme with these settings, running.
    pub fn run(members: usize, scheme: SchemeKind, settings: Settings) -> Self {
        let plan = TestnetPlan { members, scheme, settings, ..TestnetPlan::default() };
        let mut cluster = Self::plan(plan, Limits::default());
        (0..members).for_each(|index| cluster.start_one(index));
        cluster
    }

    /// The files of a committee that is planned so, but for its ports, its service and what a vote
    /// survives.
    pub fn plan(plan: TestnetPlan, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let plan = TestnetPlan {
            base_port: free_ports(2 * plan.members as u16).unwrap(),
            durability: Durability::Os,
            service: Noop::NAME.into(),
            ..plan
        };
        let testnet = Testnet::create(&folder.path().join("net"), &plan).unwrap();
        let committee = load_committee(&testnet.committee, KeyCache::On).unwrap();
        Self { folder, testnet, committee: Arc::new(committee), validators: Vec::new(), limits }
    }

    /// Changes everybody's configuration, but for what members agree on, before anybody runs.
    pub fn configure(&self, change: impl Fn(&mut NodeConfig)) {
        for path in &self.testnet.configs {
            let mut config = NodeConfig::load(path).unwrap();
            change(&mut config);
            std::fs::write(path, config.to_toml()).unwrap();
        }
    }

    /// Folder in which a validator keeps its data.
    pub fn data(&self, index: usize) -> std::path::PathBuf {
        self.folder.path().join(format!("net/validator-{index}/data"))
    }

    pub fn start_again(&self, index: usize) -> Result<Validator, NodeError> {
        let config = NodeConfig::load(&self.testnet.configs[index]).unwrap();
        Validator::start_with(&config, Box::new(Noop), self.limits)
    }

    pub fn stop_one(&mut self, index: usize) {
        assert_eq!(index, self.validators.len() - 1, "the last one");
        self.validators.pop().unwrap().stop().unwrap();
    }

    pub fn start_one(&mut self, index: usize) {
        self.validators.push(self.start_again(index).unwrap());
    }

    pub fn restart(mut self) -> Self {
        for validator in std::mem::take(&mut self.validators) {
            validator.stop().unwrap();
        }
        for index in 0..self.committee.size() {
            self.start_one(index);
        }
        self
    }

    pub fn stop(self) {
        for validator in self.validators {
            validator.stop().unwrap();
        }
    }

    pub fn operations(&self) -> Vec<u64> {
        let operations = |validator: &Validator| validator.shown().now().replica.operations;
        self.validators.iter().map(operations).collect()
    }

    pub fn all_executed(&self, operations: u64) -> bool {
        self.operations().iter().all(|executed| *executed >= operations)
    }
}

pub fn new_identity() -> IdentitySecret {
    let mut seed = [0; 32];
    system_random(&mut seed);
    IdentitySecret::from_seed(seed)
}

pub fn client(cluster: &Cluster, sessions: usize) -> Client {
    let first = |index: usize| ReplicaId((index % cluster.committee.size()) as u16);
    let spec = |index| SessionSpec::fresh(new_identity(), first(index));
    let sessions = (0..sessions).map(spec).collect();
    Client::connect(&ClientConfig::new(Arc::clone(&cluster.committee), sessions)).unwrap()
}

/// A good client is served.
pub fn expect_progress(cluster: &Cluster, operations: u64) {
    let client = client(cluster, 1);
    assert!(client.wait_connected(cluster.validators.len(), TIMEOUT), "the client is not served");
    for tag in 0..operations {
        client.submit(0, tag, Bytes::from(format!("operation {tag}"))).unwrap();
    }
    for _ in 0..operations {
        let completion = client.completions().recv_timeout(TIMEOUT).expect("progress");
        assert!(matches!(completion.result, CallResult::Completed(_)));
    }
}

pub fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
