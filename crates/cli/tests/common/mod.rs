//! The `quorate` binary, and committees of its processes.

#![allow(dead_code, reason = "each test program uses its own part")]

pub(crate) mod door;
pub(crate) mod load;
pub(crate) mod mounts;
pub(crate) mod operators;
pub(crate) mod socket;
pub(crate) mod spoken;
pub(crate) mod tls;

use quorate_crypto::{IdentitySecret, KeyCache};
use quorate_lab::processes::Processes;
use quorate_lab::status::{ValidatorStatus, ask_all};
use quorate_node::config::{load_committee, read_committee_file};
use quorate_node::ports::free_ports;
use quorate_node::{Client, ClientConfig, SessionSpec};
use quorate_types::ReplicaId;
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// So long a test waits for what must come; how soon it comes is not tested.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn quorate(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_quorate")).args(arguments).output();
    output.expect("the binary runs")
}

/// The same, in a folder.
pub(crate) fn quorate_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.args(arguments).current_dir(folder).output().expect("the binary runs")
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

/// Copies the files of a folder into another, which is made.
pub(crate) fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let path = entry.expect("a file").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
}

/// Runs a command that must succeed, and returns what it prints.
pub(crate) fn works(arguments: &[&str]) -> String {
    let output = quorate(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

/// Runs a command that must succeed, and reads the JSON object that it prints.
pub(crate) fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&works(arguments)).expect("one JSON object")
}

/// Number that moves the ports of a committee from the first one's to as many free ones.
pub(crate) fn free_offset(genesis: &Path, ports: u16) -> String {
    let file = read_committee_file(genesis).expect("a committee file");
    let (_, first) = file.members[0].address.rsplit_once(':').expect("a port");
    let first: i32 = first.parse().expect("a number");
    (i32::from(free_ports(ports).expect("free ports")) - first).to_string()
}

/// Waits until `look` finds something.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A `quorate run` for each configuration.
pub(crate) fn processes(configs: &[PathBuf]) -> Processes {
    processes_of(Path::new(env!("CARGO_BIN_EXE_quorate")), configs)
}

fn processes_of(executable: &Path, configs: &[PathBuf]) -> Processes {
    Processes::start(executable, configs).expect("started")
}

/// A program that is `quorate` with so many descriptors. Another process writes it: a file that we
/// write ourselves may for a moment be open in a child of another test, and cannot be run then.
pub(crate) fn with_descriptors(place: &Path, descriptors: usize) -> PathBuf {
    let (text, executable) = (place.join("script"), place.join("quorate"));
    let quorate = env!("CARGO_BIN_EXE_quorate");
    let script = format!("#!/bin/sh\nulimit -n {descriptors}\nexec '{quorate}' \"$@\"\n");
    std::fs::write(&text, script).expect("written");
    let mut install = Command::new("install");
    let installed = install.args(["-m", "700"]).args([&text, &executable]).status();
    assert!(installed.expect("install runs").success());
    executable
}

/// Changes what a configuration file says.
pub(crate) fn edit(config: &Path, from: &str, to: &str) {
    let content = std::fs::read_to_string(config).expect("a file");
    assert!(content.contains(from), "{from:?} is not in {content}");
    std::fs::write(config, content.replacen(from, to, 1)).expect("written");
}

/// Changes what the committee file of the testnet that a configuration belongs to says.
pub(crate) fn edit_committee(config: &Path, from: &str, to: &str) {
    edit(&config.with_file_name("../committee.toml"), from, to);
}

/// A testnet of real processes.
pub(crate) struct Net {
    pub(crate) processes: Processes,
    pub(crate) configs: Vec<PathBuf>,
    pub(crate) http: Vec<String>,
    /// Addresses at which each serves applications, where the service has a gateway.
    pub(crate) gateways: Vec<String>,
    /// Keys of accounts that have ether, where the service has accounts.
    pub(crate) accounts: Vec<String>,
    /// Those that `--learners` asked for; they do not run.
    pub(crate) learners: Vec<Learner>,
    place: TempDir,
}

/// Files of a learner.
pub(crate) struct Learner {
    pub(crate) config: PathBuf,
    /// Address of the form `KEY@ADDRESS`.
    pub(crate) address: String,
}

impl Net {
    /// `quorate testnet`, and a `quorate run` for each member.
    pub(crate) fn start(members: u16, scheme: &str) -> Self {
        Self::start_with(members, scheme, &[], |_| {})
    }

    /// The same with more options for `quorate testnet`, after something was done with what it
    /// wrote.
    pub(crate) fn start_with(
        members: u16,
        scheme: &str,
        more: &[&str],
        prepare: impl FnOnce(&[PathBuf]),
    ) -> Self {
        let quorate = |_: &Path| PathBuf::from(env!("CARGO_BIN_EXE_quorate"));
        Self::start_program(quorate, members, scheme, more, prepare)
    }

    /// The same by processes that have so many descriptors each.
    pub(crate) fn start_with_descriptors(
        descriptors: usize,
        members: u16,
        more: &[&str],
        prepare: impl FnOnce(&[PathBuf]),
    ) -> Self {
        let limited = |place: &Path| with_descriptors(place, descriptors);
        Self::start_program(limited, members, "ed25519", more, prepare)
    }

    fn start_program(
        program: impl FnOnce(&Path) -> PathBuf,
        members: u16,
        scheme: &str,
        more: &[&str],
        prepare: impl FnOnce(&[PathBuf]),
    ) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let executable = program(place.path());
        // One for a gateway, and two for a learner.
        let base = free_ports(3 * members + 2 * learners_of(more)).expect("free ports").to_string();
        let folder = place.path().join("net");
        let count = members.to_string();
        let folder = folder.to_str().expect("a plain path");
        let options = ["-n", &count, "--scheme", scheme, "--base-port", &base, "--json"];
        let written = json(&[&["testnet", folder], &options[..], more].concat());
        let texts = |field: &str| -> Vec<String> {
            serde_json::from_value(written[field].clone()).expect("a list of texts")
        };
        let configs: Vec<PathBuf> = texts("configs").into_iter().map(PathBuf::from).collect();
        prepare(&configs);
        let learners = written["learners"].as_array().expect("a list").iter().map(|learner| {
            let text = |field: &str| learner[field].as_str().expect("a text").to_owned();
            Learner { config: text("config").into(), address: text("address") }
        });
        let (http, gateways, learners) = (texts("http"), texts("gateways"), learners.collect());
        let accounts = written["accounts"].as_array().expect("a list").iter();
        let key = |account: &Value| account["key"].as_str().expect("a text").to_owned();
        let accounts = accounts.map(key).collect();
        let processes = processes_of(&executable, &configs);
        Self { processes, configs, http, gateways, accounts, learners, place }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.place.path().join("net")
    }

    pub(crate) fn looks(&self) -> Vec<Option<ValidatorStatus>> {
        ask_all(&self.http, Duration::from_secs(5)).into_iter().map(Result::ok).collect()
    }

    /// Status of each, once all answer.
    pub(crate) fn wait_looks(&self) -> Vec<ValidatorStatus> {
        wait_for("all to answer", || self.looks().into_iter().collect())
    }

    pub(crate) fn wait_connected(&self) {
        let others = self.http.len() as u64 - 1;
        let connected = |look: &Option<ValidatorStatus>| {
            look.as_ref().is_some_and(|status| status.peers_connected == others)
        };
        wait_for("all to be connected", || self.looks().iter().all(connected).then_some(()));
        for gateway in &self.gateways {
            wait_for("its gateway to be open", || TcpStream::connect(gateway).ok());
        }
    }

    /// Waits until all have executed `operations`, at one height and with one root, and returns
    /// that root.
    pub(crate) fn wait_level(&self, operations: u64) -> String {
        let level = || self.level().filter(|look| look.operations == operations);
        wait_for("all to be at one point", level).root
    }

    /// Status of all, if all are at one height and with one root.
    pub(crate) fn level(&self) -> Option<ValidatorStatus> {
        let looks: Option<Vec<_>> = self.looks().into_iter().collect();
        let looks = looks?;
        let point = |look: &ValidatorStatus| (look.operations, look.executed, look.root.clone());
        let first = point(&looks[0]);
        looks.iter().all(|look| point(look) == first).then(|| looks[0].clone())
    }

    /// A client whose sessions have the keys that `seeds` give, each from its request `next` on.
    pub(crate) fn client(&self, seeds: &[u8], next: u64) -> Client {
        client_in(&self.folder(), seeds, next)
    }
}

/// No member lets a learner in by its configuration: who comes follows by the change that names it.
pub(crate) fn forget_learners(configs: &[PathBuf]) {
    for config in configs {
        let written = std::fs::read_to_string(config).expect("a configuration");
        let is_other = |line: &&str| !line.starts_with("learners = ");
        let kept: String =
            written.lines().filter(is_other).map(|line| format!("{line}\n")).collect();
        assert_ne!(kept, written, "learners are listed");
        std::fs::write(config, kept).expect("written");
    }
}

/// Number of learners that options of `quorate testnet` ask for, or one.
fn learners_of(options: &[&str]) -> u16 {
    let mut after = options.iter().skip_while(|option| **option != "--learners").skip(1);
    after.next().map_or(1, |count| count.parse().expect("a number"))
}

/// A client of the network in a folder, as [`Net::client`].
pub(crate) fn client_in(folder: &Path, seeds: &[u8], next: u64) -> Client {
    let committee = load_committee(&folder.join("committee.toml"), KeyCache::On);
    let committee = Arc::new(committee.expect("a committee"));
    let members = committee.size();
    let spec = |(index, seed): (usize, &u8)| SessionSpec {
        next_sequence: next,
        ..SessionSpec::fresh(
            IdentitySecret::from_seed([*seed; 32]),
            ReplicaId(u16::try_from(index % members).expect("few")),
        )
    };
    let sessions = seeds.iter().enumerate().map(spec).collect();
    let client = Client::connect(&ClientConfig {
        retry_after: Duration::from_millis(500),
        ..ClientConfig::new(committee, sessions)
    });
    client.expect("a client")
}
