//! Newcomers to a key-value store under load, when nobody keeps the first blocks any more: a
//! learner, and a validator that lost its disk.

use crate::common::load::Load;
use crate::common::{Net, edit, edit_committee, json, processes, quorate, stdout, wait_for};
use quorate_lab::processes::Processes;
use quorate_lab::status::{ValidatorStatus, ask};
use quorate_node::NodeConfig;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A validator or learner that runs beside the committee.
struct Newcomer {
    http: String,
    _process: Processes,
}

impl Newcomer {
    fn start(config: &Path) -> Self {
        let http = NodeConfig::load(config).expect("a configuration").http;
        Self { http, _process: processes(&[config.to_owned()]) }
    }

    fn look(&self) -> Option<ValidatorStatus> {
        ask(&self.http, Duration::from_secs(5)).ok()
    }
}

/// Keeps little, so that blocks are gone soon.
fn keep_little(config: &Path) {
    edit(config, "retention_bytes = 1073741824", "retention_bytes = 1048576");
}

/// Returns `true` if somebody took the state over and is as far as the others were.
fn has_joined(status: &ValidatorStatus, height: u64) -> bool {
    status.snapshots_installed > 0 && status.executed >= height && status.diverged.is_none()
}

fn highest(net: &Net) -> u64 {
    net.looks().iter().flatten().map(|status| status.executed).max().expect("somebody answers")
}

/// Puts a key, if that can be done in so many seconds; at which height it was.
fn put(net: &Net, key: &str, timeout: &str) -> Option<u64> {
    let folder = net.folder();
    let folder = folder.to_str().expect("a plain path");
    let put = ["--timeout", timeout, "--json", "put", key, "green"];
    let done = quorate(&[&["kv", "--net", folder][..], &put].concat());
    let height = || serde_json::from_slice::<Value>(&done.stdout).expect("JSON")["height"].as_u64();
    done.status.success().then(|| height().expect("a height"))
}

#[test]
fn newcomers_take_the_state_over_and_never_sign() {
    let options = ["--service", "kv", "--learners", "1"];
    let mut net = Net::start_with(4, "ed25519", &options, |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 32");
        configs.iter().for_each(|config| keep_little(config));
    });
    keep_little(&net.learners[0].config);
    net.wait_connected();
    let load = Load::on(&net.folder(), &["--batch", "20"]);
    wait_for("the first blocks to be deleted", || {
        let is_short =
            |look: &Option<ValidatorStatus>| look.as_ref().is_some_and(|s| s.oldest_height > 1);
        net.looks().iter().all(is_short).then_some(())
    });

    let height = highest(&net);
    let learner = Newcomer::start(&net.learners[0].config);
    let joined =
        wait_for("the learner to join", || learner.look().filter(|s| has_joined(s, height)));
    assert!(joined.config.learner && !joined.config.signs && joined.weight == 0);

    net.processes.kill(3).expect("killed");
    let data = net.configs[3].with_file_name("data");
    std::fs::remove_dir_all(data).expect("removed");
    let height = highest(&net);
    net.processes.start_one(3).expect("started");
    let wiped = wait_for("the wiped validator to join", || {
        net.looks()[3].clone().filter(|status| has_joined(status, height))
    });
    assert!(!wiped.config.signs && wiped.weight == 1);
    drop(load);

    learner_agrees(&net, &learner, height);
    let last = wiped_does_not_sign(&mut net);
    learner_agrees(&net, &learner, last);
    learner_proves_what_it_says(&mut net);
}

fn learner_agrees(net: &Net, learner: &Newcomer, height: u64) {
    wait_for("the learner to be where the committee is", || {
        let (committee, own) = (net.level()?, learner.look()?);
        let is_there = (&own.root, own.executed) == (&committee.root, committee.executed);
        (is_there && own.executed >= height && own.certified == own.executed).then_some(())
    });
}

/// Three of four live, and one of them gives no signature: nothing is decided before the fourth is
/// back.
fn wiped_does_not_sign(net: &mut Net) -> u64 {
    net.processes.kill(2).expect("killed");
    assert_eq!(put(net, "form", "3"), None, "two signatures are no quorum");
    net.processes.start_one(2).expect("started");
    wait_for("a value to be put", || put(net, "colour", "10"))
}

/// With all members gone the learner still proves what the state was.
fn learner_proves_what_it_says(net: &mut Net) {
    for validator in 0..4 {
        net.processes.kill(validator).expect("killed");
    }
    let (folder, address) = (net.folder(), net.learners[0].address.clone());
    let folder = folder.to_str().expect("a plain path");
    let read = ["get", "colour", "--certified", "--learner", &address, "--json"];
    let shown = json(&[&["kv", "--net", folder][..], &read].concat());
    assert_eq!(shown["value_hex"], "677265656e");
    assert!(shown["age_ms"].is_u64(), "{shown}");
    let write = quorate(&["kv", "--net", folder, "--timeout", "2", "get", "colour"]);
    assert!(!write.status.success(), "nothing is ordered any more: {}", stdout(&write));
}
