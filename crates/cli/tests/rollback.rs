//! Validators whose data folder is an old copy, or whose key two processes hold: they follow, sign
//! nothing, and say why.

use crate::common::{Net, edit, json, processes, quorate, stderr, wait_for};
use quorate_lab::http;
use quorate_lab::status::{ValidatorStatus, ask};
use quorate_node::NodeConfig;
use quorate_node::ports::free_ports;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Copies a folder with everything in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("copied");
        }
    }
}

fn folder_of(config: &Path) -> PathBuf {
    config.parent().expect("a folder").to_owned()
}

fn log_of(config: &Path) -> String {
    fs::read_to_string(config.with_file_name("validator.log")).expect("a log")
}

/// Puts for a second.
fn load(net: &Net) {
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    let bench = ["kv", "bench", "--keys", "100", "--duration", "1", "--net", folder];
    let done = quorate(&[&bench[..], &["--timeout", "60"]].concat());
    assert!(done.status.success(), "{}", stderr(&done));
}

fn put(net: &Net, value: &str) {
    let folder = net.folder();
    let options = ["kv", "--timeout", "60", "--net", folder.to_str().expect("a plain path")];
    json(&[&options[..], &["--json", "put", "colour", value]].concat());
}

fn look(http: &str) -> Option<ValidatorStatus> {
    ask(http, Duration::from_secs(5)).ok()
}

/// Waits until this validator's question after its own signatures has come to this.
fn wait_witnesses(http: &str, state: &str) -> ValidatorStatus {
    let found = || look(http).filter(|look| look.witnesses.state == state);
    wait_for(&format!("{http} to be {state}"), found)
}

/// Waits until a validator that signs nothing has executed what another has.
fn wait_follows(follower: &str, other: &str) {
    wait_for("it to follow", || {
        let (follower, other) = (look(follower)?, look(other)?);
        (follower.executed == other.executed && follower.root == other.root).then_some(())
    });
}

fn start() -> Net {
    let net = Net::start_with(4, "ed25519", &["--service", "kv"], |_| {});
    net.wait_connected();
    net.http.iter().for_each(|http| drop(wait_witnesses(http, "clear")));
    net
}

/// Two starts took one number: whoever has the committee's file can check that, and nothing else
/// that a file says.
fn check_that_it_is_convicted(net: &Net) {
    let folder = folder_of(&net.configs[0]).join("data/evidence");
    let path = folder.join("e1-r3-shared-key.json");
    wait_for("another to keep evidence", || path.exists().then_some(()));
    let net_folder = net.folder();
    let place = ["--net", net_folder.to_str().expect("a plain path")];
    let verify = |path: &Path, more: &[&str]| {
        let path = path.to_str().expect("a plain path");
        quorate(&[&["evidence", "verify", path][..], &place, more].concat())
    };
    let done = verify(&folder, &[]);
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(
        said.contains("member r3 of epoch 1 broke the rule shared-key") && said.contains("start 2")
    );
    let done = verify(&path, &["--json"]);
    let shown: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    assert_eq!((&shown["valid"], &shown["evidence"][0]["member"]), (&true.into(), &3.into()));

    let text = fs::read_to_string(&path).expect("a file");
    let forged = folder.join("forged.json");
    for (from, to) in [("\"member\": 3", "\"member\": 2"), ("start 2", "start 3")] {
        fs::write(&forged, text.replacen(from, to, 1)).expect("written");
        let done = verify(&forged, &[]);
        assert_eq!(done.status.code(), Some(1), "{from}");
        assert!(stderr(&done).contains("is not what its proof shows"), "{}", stderr(&done));
    }
    fs::write(&forged, text.replace("\"epoch\": 1", "\"epoch\": 2")).expect("written");
    let done = verify(&forged, &[]);
    assert!(stderr(&done).contains("the evidence is of epoch 2"), "{}", stderr(&done));
    fs::write(&forged, text.replace("\"proof\": \"03", "\"proof\": \"02")).expect("written");
    let done = verify(&forged, &[]);
    assert_eq!(done.status.code(), Some(1));
    assert!(stderr(&done).contains("the evidence proves nothing"), "{}", stderr(&done));
    let done = verify(&folder.join("missing.json"), &[]);
    assert_eq!(done.status.code(), Some(2), "{}", stderr(&done));
}

/// A virtual machine put back to a snapshot: the data folder and everything beside the key are as
/// they were, and nothing on the disk says that the key has signed since.
#[test]
fn a_machine_put_back_to_a_snapshot_follows_and_never_signs() {
    let mut net = start();
    load(&net);
    let folder = folder_of(&net.configs[3]);
    let snapshot = folder.with_file_name("snapshot-of-3");
    net.processes.kill(3).expect("killed");
    copy(&folder, &snapshot);
    net.processes.start_one(3).expect("started");
    let clear = wait_witnesses(&net.http[3], "clear");
    assert!(clear.config.signs && clear.witnesses.answered >= clear.witnesses.needed);
    load(&net);

    net.processes.kill(3).expect("killed");
    fs::remove_dir_all(&folder).expect("removed");
    copy(&snapshot, &folder);
    net.processes.start_one(3).expect("started");
    let restored = wait_witnesses(&net.http[3], "contradicted");
    assert!(!restored.config.signs, "{restored:?}");
    let why = restored.witnesses.contradiction;
    assert!(why.contains("old copy"), "{why}");
    wait_for("its log to say so", || {
        log_of(&net.configs[3]).contains("this key signs no more in this network").then_some(())
    });
    let evidence = fs::read_to_string(folder.join("data/contradiction.txt")).expect("evidence");
    assert_eq!(evidence.trim(), why);
    put(&net, "green");
    load(&net);
    wait_follows(&net.http[3], &net.http[0]);
    check_that_it_is_convicted(&net);

    // The next start knows, whoever is there to tell it.
    net.processes.kill(3).expect("killed");
    net.processes.start_one(3).expect("started");
    let again = wait_for("it to start", || look(&net.http[3]));
    assert!(!again.config.signs && again.witnesses.state == "unasked", "{again:?}");
    wait_follows(&net.http[3], &net.http[0]);
}

/// A machine is cloned while its validator runs: the clone has its key and its folder as they were
/// at one moment, and other ports. Whoever is at the member's address learns of it; the clone is
/// answered by nobody.
#[test]
fn a_clone_signs_nothing_and_stops_the_original() {
    let mut net = start();
    load(&net);
    let clone = folder_of(&net.configs[3]).with_file_name("clone-of-3");
    net.processes.pause(3).expect("paused");
    copy(&folder_of(&net.configs[3]), &clone);
    net.processes.resume(3).expect("resumed");
    let config = clone.join("config.toml");
    let ports = free_ports(2).expect("free ports");
    let original = NodeConfig::load(&net.configs[3]).expect("a configuration");
    edit(&config, &original.http, &format!("127.0.0.1:{ports}"));
    let listen = format!("listen = \"127.0.0.1:{}\"", ports + 1);
    let text = fs::read_to_string(&config).expect("a file");
    fs::write(&config, format!("{listen}\n{text}")).expect("written");
    let _clone = processes(std::slice::from_ref(&config));

    let stopped = wait_witnesses(&net.http[3], "contradicted");
    assert!(!stopped.config.signs, "{stopped:?}");
    let why = stopped.witnesses.contradiction;
    assert!(why.contains("another holder of the key runs"), "{why}");
    let http = format!("127.0.0.1:{ports}");
    let waits = wait_witnesses(&http, "waiting");
    assert_eq!(waits.witnesses.answered, 0);
    wait_for("the others to name it", || {
        let named = |config: &PathBuf| {
            let said = log_of(config);
            said.contains("take each other's place") && said.contains("r3")
        };
        net.configs[..3].iter().all(named).then_some(())
    });
    let metrics = http::get(&net.http[0], "/metrics", Duration::from_secs(10)).expect("metrics");
    assert!(metrics.contains("quorate_connections_replaced_total{peer=\"r3\"}"), "{metrics}");
    put(&net, "green");
}

#[test]
fn members_that_all_restart_at_once_go_on() {
    let mut net = start();
    load(&net);
    for _ in 0..2 {
        (0..4).for_each(|index| net.processes.kill(index).expect("killed"));
        (0..4).for_each(|index| net.processes.start_one(index).expect("started"));
        net.http.iter().for_each(|http| drop(wait_witnesses(http, "clear")));
        put(&net, "green");
    }
    assert!(net.wait_looks().iter().all(|look| look.config.signs));
}

#[test]
fn a_member_alone_says_that_it_waits() {
    let mut net = start();
    (0..4).for_each(|index| net.processes.kill(index).expect("killed"));
    net.processes.start_one(2).expect("started");
    let waits = wait_witnesses(&net.http[2], "waiting");
    assert_eq!((waits.witnesses.answered, waits.witnesses.needed), (0, 2));
    let metrics = http::get(&net.http[2], "/metrics", Duration::from_secs(10)).expect("metrics");
    assert!(metrics.contains("\nquorate_waits_for_witnesses 1\n"), "{metrics}");
    let log = log_of(&net.configs[2]);
    assert!(log.contains("signs nothing until other members have shown"), "{log}");
    // One more is not enough; two more are, and they make a quorum.
    net.processes.start_one(0).expect("started");
    wait_for("one to answer", || look(&net.http[2]).filter(|look| look.witnesses.answered == 1));
    assert_eq!(wait_witnesses(&net.http[2], "waiting").witnesses.answered, 1);
    net.processes.start_one(1).expect("started");
    wait_witnesses(&net.http[2], "clear");
    put(&net, "green");
}
