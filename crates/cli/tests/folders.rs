//! Data folders that belong to somebody else (exit code 2, and who owns them) or that are damaged.

mod common;

use common::{Net, edit, json, quorate, stderr, wait_for};
use quorate_node::payments::AuthorityConfig;
use quorate_node::ports::free_ports;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use tempfile::TempDir;

/// Parts of a validator's data folder.
const PARTS: [&str; 4] = ["log", "bodies", "state", "snapshots"];

/// A process with its log, killed with the test.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `quorate COMMAND --config CONFIG`, whose log goes beside the configuration.
    fn start(command: &[&str], config: &Path) -> Self {
        let log = config.with_extension("stderr");
        let file = File::create(&log).expect("made");
        let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(command)
            .arg("--config")
            .arg(config)
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        Self { child: child.expect("the binary runs"), log }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// How it ended; `None` once it says that it started.
    fn outcome(&mut self) -> Option<ExitStatus> {
        wait_for("it to start or to end", || {
            let exit = self.child.try_wait().expect("a process");
            (exit.is_some() || self.log().contains(" started")).then_some(exit)
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs what must be refused, and returns what it says.
fn refusal(command: &[&str], config: &Path) -> String {
    let mut process = Process::start(command, config);
    let code = process.outcome().and_then(|exit| exit.code());
    let said = process.log();
    assert_eq!(code, Some(2), "{}: {said}", config.display());
    said
}

/// Has what is at two places change its place.
fn swap(one: &Path, other: &Path) {
    let aside = one.with_extension("aside");
    fs::rename(one, &aside).expect("renamed");
    fs::rename(other, one).expect("renamed");
    fs::rename(&aside, other).expect("renamed");
}

fn data(config: &Path) -> PathBuf {
    config.with_file_name("data")
}

/// The first digits of the identity key in a key file: as many as are shown of an owner.
fn key_of(config: &Path) -> String {
    let key = config.with_file_name("key.toml");
    let shown = json(&["keys", "show", key.to_str().expect("a plain path"), "--json"]);
    shown["identity"].as_str().expect("a key")[..16].to_owned()
}

/// Puts until the validators with these configurations have snapshots.
fn load(net: &Net, configs: &[PathBuf]) {
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    wait_for("snapshots to be taken", || {
        let bench = ["kv", "bench", "--keys", "50", "--duration", "1", "--net", folder];
        let done = quorate(&bench);
        assert!(done.status.success(), "{}", stderr(&done));
        let has_one = |config: &PathBuf| {
            let listed = fs::read_dir(data(config).join("snapshots")).expect("a folder");
            listed.flatten().any(|file| file.file_name().to_string_lossy().starts_with("snapshot-"))
        };
        configs.iter().all(has_one).then_some(())
    });
}

#[test]
fn a_member_refuses_each_part_of_somebody_else_s_folder() {
    let options = ["--service", "kv", "--learners", "1"];
    let often = |config: &Path| edit(config, "snapshot_every = 1024", "snapshot_every = 8");
    let mut net = Net::start_with(4, "ed25519", &options, |configs| {
        configs.iter().for_each(|config| often(config));
    });
    let learner = net.learners[0].config.clone();
    often(&learner);
    net.wait_connected();
    let mut following = Process::start(&["run"], &learner);
    assert_eq!(following.outcome(), None, "{}", following.log());
    let [first, second] = [net.configs[0].clone(), net.configs[1].clone()];
    load(&net, &[first.clone(), second.clone(), learner.clone()]);
    drop(following);
    net.processes.stop();

    for other in [&second, &learner] {
        for part in PARTS {
            let places = [&first, other].map(|config| data(config).join(part));
            swap(&places[0], &places[1]);
            for (config, owner) in [(&first, other), (other, &first)] {
                let said = refusal(&["run"], config);
                let place = data(config).join(part).display().to_string();
                for named in [&place, &key_of(owner), &key_of(config)] {
                    assert!(said.contains(named.as_str()), "{part}: {named} is not in {said}");
                }
            }
            swap(&places[0], &places[1]);
        }
    }

    // With another protocol the promises in the folder would be read as something else.
    edit(&first, "protocol = \"jolteon\"", "protocol = \"hotstuff\"");
    let said = refusal(&["run"], &first);
    assert!(said.contains("jolteon") && said.contains("hotstuff"), "{said}");
    edit(&first, "protocol = \"hotstuff\"", "protocol = \"jolteon\"");

    // No refusal changed anything: all go on, with their votes.
    (0..4).for_each(|index| net.processes.start_one(index).expect("started"));
    net.wait_connected();
    assert!(net.looks().iter().flatten().all(|look| look.config.signs));
    let folder = net.folder();
    let put = ["kv", "--timeout", "60", "--net", folder.to_str().expect("a plain path")];
    json(&[&put[..], &["--json", "put", "colour", "green"]].concat());
}

/// Authorities of a payment network that made a payment, and ended.
fn authorities() -> (TempDir, Vec<Vec<PathBuf>>) {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name).display().to_string();
    let (net, bob) = (path("net"), path("bob"));
    let address = json(&["pay", "keys", &bob, "--json"])["address"].clone();
    let port = free_ports(16).expect("free ports").to_string();
    let testnet = ["pay", "testnet", &net, "--base-port", &port, "--shards", "2", "--json"];
    let written = json(&testnet);
    let configs: Vec<Vec<PathBuf>> =
        serde_json::from_value(written["configs"].clone()).expect("paths");
    let running = configs.iter().flatten().map(|config| Process::start(&["pay", "run"], config));
    let mut running: Vec<Process> = running.collect();
    for process in &mut running {
        assert_eq!(process.outcome(), None, "{}", process.log());
    }
    let issuer = path("net/issuer");
    json(&["pay", "keys", &issuer, "--existing", "--json"]);
    let issue = ["pay", "issue", "--to", address.as_str().expect("an address"), "--value", "5"];
    json(&[&issue[..], &["--timeout", "60", "-w", &issuer, "--json"]].concat());
    (place, configs)
}

#[test]
fn an_authority_refuses_the_locks_of_another_and_of_another_shard() {
    let (_place, configs) = authorities();
    let own = &configs[0][0];
    for other in [&configs[1][0], &configs[0][1]] {
        let locks = [own, other].map(|config| {
            AuthorityConfig::load(config).expect("a configuration").data_dir.join("locks")
        });
        swap(&locks[0], &locks[1]);
        let said = refusal(&["pay", "run"], own);
        assert!(said.contains(&locks[0].display().to_string()), "{said}");
        swap(&locks[0], &locks[1]);
    }
    let mut again = Process::start(&["pay", "run"], own);
    assert_eq!(again.outcome(), None, "{}", again.log());
}

/// Whatever byte of a validator's state decays: it goes on, or it ends with exit code 4 and says
/// what to do, which helps. A log is restored byte for byte, or not at all.
#[test]
fn a_damaged_state_is_made_again_and_a_damaged_log_restored() {
    let mut net = Net::start_with(4, "ed25519", &["--service", "kv"], |_| {});
    net.wait_connected();
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    let bench = ["kv", "bench", "--keys", "500", "--duration", "2", "--net", folder];
    assert!(quorate(&bench).status.success());
    net.processes.stop();
    let config = net.configs[0].clone();
    let state = data(&config).join("state");
    let whole = fs::read(&state).expect("a file");

    let pages: Vec<usize> = (0..whole.len())
        .step_by(4_096)
        .filter(|page| whole[*page..].iter().take(4_096).any(|byte| *byte != 0))
        .collect();
    let mut refused = 0;
    for (turn, page) in pages.iter().step_by(pages.len().div_ceil(32)).enumerate() {
        let mut damaged = whole.clone();
        damaged[page + [0, 3, 9, 64][turn % 4]] ^= 0xff;
        fs::write(&state, &damaged).expect("written");
        let mut process = Process::start(&["run"], &config);
        let Some(exit) = process.outcome() else { continue };
        let said = process.log();
        assert_eq!(exit.code(), Some(4), "page {page}: {said}");
        assert!(said.contains("damaged") && !said.contains("panicked"), "{said}");
        refused += 1;
    }
    assert!(refused > 0, "no damage was noticed");

    // A log cannot be made again. Its bytes as they were are its bytes.
    let log = data(&config).join("log/log-000000000001");
    let whole = fs::read(&log).expect("a file");
    let mut damaged = whole.clone();
    damaged[300] ^= 0xff;
    fs::write(&log, &damaged).expect("written");
    fs::remove_file(&state).expect("removed");
    let mut process = Process::start(&["run"], &config);
    let code = process.outcome().and_then(|exit| exit.code());
    let said = process.log();
    assert!(code == Some(4) && said.contains("log-000000000001 is damaged at byte"), "{said}");
    fs::write(&log, &whole).expect("written");

    (0..4).for_each(|index| net.processes.start_one(index).expect("started"));
    net.wait_connected();
    let level = wait_for("all to be level", || net.level().filter(|look| look.operations > 0));
    assert!(level.config.signs);
}
