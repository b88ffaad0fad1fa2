//! A network that lost three disks of four under load goes on in a new one, by the commands of
//! docs/OPERATING.md.

use crate::common::operators::entry;
use crate::common::{
    self, Net, TIMEOUT, client_in, edit_committee, json, processes, quorate, stderr, text, wait_for,
};
use quorate_lab::processes::Processes;
use quorate_ledger::kv::Operation;
use quorate_node::config::read_committee_file;
use quorate_node::ports::free_ports;
use quorate_node::{CallResult, Client};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

/// A session of the old network, which goes on in the new one.
const SESSION: &[u8] = &[7];

/// Exit code of a command, and what it says.
fn verdict(arguments: &[&str]) -> (Option<i32>, String) {
    let output = quorate(arguments);
    (output.status.code(), common::stdout(&output) + &stderr(&output))
}

fn refused(code: i32, arguments: &[&str]) -> String {
    let (found, said) = verdict(arguments);
    assert_eq!(found, Some(code), "{arguments:?}: {said}");
    said
}

fn done(arguments: &[&str]) -> String {
    refused(0, arguments)
}

/// Writes key after key, each with its receipt, until one is not answered; how many were.
fn write_on(net: &Net, receipts: &Path) -> JoinHandle<usize> {
    let (folder, receipts) = (net.folder(), receipts.to_owned());
    thread::spawn(move || {
        let put = |count: &usize| {
            let (key, receipt) = (format!("key{count}"), receipt(&receipts, *count));
            let put = ["--timeout", "3", "put", &key, &key, "--receipt", text(&receipt)];
            quorate(&[&["kv", "--net", text(&folder)][..], &put].concat()).status.success()
        };
        (0..).take_while(put).count()
    })
}

fn receipt(folder: &Path, count: usize) -> PathBuf {
    folder.join(format!("{count}.json"))
}

/// Has the session's first request take effect, or be found to have done so.
fn write_once(client: &Client, value: &'static str) {
    let operation = Operation::put("once", value).encode();
    client.submit(0, 0, operation).expect("taken");
    let completion = client.completions().recv_timeout(TIMEOUT).expect("answered");
    assert!(matches!(completion.result, CallResult::Completed(_)), "{completion:?}");
}

/// Three disks of four are destroyed while clients write, and the last validator is killed.
fn disaster(folder: &Path) -> (Net, usize) {
    let mut net = Net::start_with(4, "ed25519", &["--service", "kv"], |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 8");
    });
    net.wait_connected();
    write_once(&net.client(SESSION, 0), "first");
    let writer = write_on(&net, folder);
    wait_for("some writes", || receipt(folder, 20).exists().then_some(()));
    for lost in 0..3 {
        net.processes.kill(lost).expect("killed");
        fs::remove_dir_all(net.configs[lost].parent().expect("a folder")).expect("destroyed");
    }
    let written = writer.join().expect("it wrote");
    let state = text(folder).to_owned() + "/too-early";
    let export = ["state", "export", "--config", text(&net.configs[3]), "--out", &state];
    assert!(refused(1, &export).contains("is running: stop it first"));
    net.processes.kill(3).expect("killed");
    (net, written)
}

/// Files of four new members, whose committee file is to be founded.
struct Founders {
    folder: PathBuf,
    configs: Vec<PathBuf>,
    entries: Vec<PathBuf>,
}

impl Founders {
    fn new(place: &Path) -> Self {
        let folder = place.join("new");
        let base = free_ports(8).expect("free ports").to_string();
        let options = ["--service", "kv", "--base-port", &base, "--json"];
        let written = json(&[&["testnet", text(&folder)][..], &options].concat());
        let configs: Vec<PathBuf> =
            serde_json::from_value(written["configs"].clone()).expect("paths");
        let genesis = folder.join("committee.toml");
        let members = read_committee_file(&genesis).expect("a committee file").members;
        let entry_of = |(config, member): (&PathBuf, &quorate_types::Member)| {
            entry(&config.with_file_name("key.toml"), &member.address)
        };
        let entries = configs.iter().zip(&members).map(entry_of).collect();
        fs::remove_file(genesis).expect("removed");
        Self { folder, configs, entries }
    }

    fn committee(&self) -> PathBuf {
        self.folder.join("committee.toml")
    }

    fn found(&self, state: &Path, old: &Path) -> Value {
        let entries: Vec<&str> = self.entries.iter().map(|entry| text(entry)).collect();
        let genesis = self.committee();
        let from = ["--from-state", text(state), "--committee", text(old), "--json"];
        let out = ["--out", text(&genesis), "--members"];
        json(&[&["committee", "found"][..], &from, &out, &entries].concat())
    }

    fn start(&self) -> Processes {
        processes(&self.configs)
    }

    /// The value of a key in the order; `None` where there is none.
    fn get(&self, key: &str) -> Option<String> {
        let get = ["kv", "--net", text(&self.folder), "--timeout", "60", "get", key];
        let (code, said) = verdict(&get);
        match code {
            Some(0) => Some(said.trim_end().to_owned()),
            _ if said.contains("there is no such key") => None,
            _ => panic!("{said}"),
        }
    }
}

/// Every write that has a receipt is there, or its receipt is of a later height and says so.
#[test]
fn what_was_certified_goes_on_in_a_new_network() {
    let place = tempfile::tempdir().expect("a folder");
    let (net, written) = disaster(place.path());
    let (old, state) = (net.folder().join("committee.toml"), place.path().join("state"));
    done(&["state", "export", "--config", text(&net.configs[3]), "--out", text(&state)]);
    let data = net.configs[3].with_file_name("data");
    let again = place.path().join("again");
    let by_folder = ["--data", text(&data), "--committee", text(&old), "--out", text(&again)];
    done(&[&["state", "export"][..], &by_folder].concat());
    assert_eq!(fs::read(&again).expect("a file"), fs::read(&state).expect("a file"));
    let verify = ["state", "verify", text(&state), "--committee", text(&old), "--json"];
    let height = json(&verify)["state"]["height"].as_u64().expect("a height");
    assert!(height.is_multiple_of(8) && height > 8, "{height}");

    let founders = Founders::new(place.path());
    let founded = founders.found(&state, &old);
    assert_eq!(founded["from_state"]["height"], height);
    let genesis = founders.committee();
    refuse_other_files(place.path(), &state, &old, &genesis);

    let early = ["run", "--config", text(&founders.configs[0])];
    assert!(refused(2, &early).contains("run `quorate state import`"));
    for config in &founders.configs {
        done(&["state", "import", text(&state), "--config", text(config)]);
    }
    let running = founders.start();
    let (mut kept, mut lost) = (0, 0);
    for count in 0..written {
        let (key, receipt) = (format!("key{count}"), receipt(place.path(), count));
        let proven: Value =
            serde_json::from_slice(&fs::read(&receipt).expect("a receipt")).expect("JSON");
        let verify = ["receipt", "verify", text(&receipt), "--committee"];
        done(&[&verify[..], &[text(&old)]].concat());
        let over = [&verify[..], &[text(&genesis), "--former", text(&old)]].concat();
        if proven["height"].as_u64().expect("a height") <= height {
            assert_eq!(founders.get(&key), Some(key), "acknowledged at or below {height}");
            done(&over);
            kept += 1;
        } else {
            assert!(refused(1, &over).contains("has nothing of what came later"));
            assert_eq!(founders.get(&key), None, "acknowledged above {height}");
            lost += 1;
        }
    }
    assert!(kept > 0 && kept + lost == written, "{kept} kept, {lost} lost");
    let later = place.path().join("later.json");
    go_on(&founders, &later, height);

    drop(running);
    let _running = founders.start();
    assert_eq!(founders.get("later"), Some("green".into()), "after a restart of all");
}

/// Digits of the newest snapshot's height, as its manifest's name has them.
fn newest_snapshot(folder: &Path) -> Option<String> {
    let names =
        fs::read_dir(folder).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let manifests = names.filter_map(|name| Some(name.strip_prefix("snapshot-")?.to_owned()));
    manifests.filter(|height| !height.contains('-')).max()
}

/// Where clients are answered by signed replies, what snapshots are of is certified all the same.
#[test]
fn a_network_without_execution_certificates_has_a_certified_state() {
    let mut net = Net::start_with(4, "bls", &[], |configs| {
        edit_committee(&configs[0], "snapshot_every = 1024", "snapshot_every = 8");
    });
    net.wait_connected();
    let client = net.client(SESSION, 0);
    for tag in 0..20 {
        client.submit(0, tag, "operation".into()).expect("taken");
        client.completions().recv_timeout(TIMEOUT).expect("answered");
    }
    let data = net.configs[2].with_file_name("data");
    let proofs = data.join("proofs");
    wait_for("the certificate of the newest snapshot", || {
        let newest = newest_snapshot(&data.join("snapshots"))?;
        proofs.join(format!("{newest}.certificate")).exists().then_some(())
    });
    for member in 0..4 {
        net.processes.kill(member).expect("killed");
    }
    let (old, state) = (net.folder().join("committee.toml"), net.folder().join("state"));
    done(&["state", "export", "--config", text(&net.configs[2]), "--out", text(&state)]);
    let verify = ["state", "verify", text(&state), "--committee", text(&old), "--json"];
    let shown = json(&verify);
    assert!(shown["state"]["height"].as_u64().expect("a height").is_multiple_of(8), "{shown}");
    assert_eq!(shown["sessions"], 1);

    fs::remove_dir_all(proofs).expect("removed");
    let again = ["state", "export", "--config", text(&net.configs[2]), "--out", "unused"];
    assert!(refused(1, &again).contains("nobody certified it"));
}

/// What clients do in the new network: sessions go on, and receipts are its own.
fn go_on(founders: &Founders, later: &Path, height: u64) {
    write_once(&client_in(&founders.folder, SESSION, 0), "second");
    assert_eq!(founders.get("once"), Some("first".into()), "nothing takes effect twice");
    let put = ["kv", "--net", text(&founders.folder), "--timeout", "60", "put", "later", "green"];
    wait_for("a write with its receipt", || {
        let put = quorate(&[&put[..], &["--receipt", text(later)]].concat());
        put.status.success().then_some(())
    });
    let verify = ["receipt", "verify", text(later), "--net", text(&founders.folder), "--json"];
    let shown = json(&verify);
    assert!(shown["receipt"]["height"].as_u64().expect("a height") > height);
    assert_eq!(shown["receipt"]["epoch"], 1);
}

/// Files that were changed, or are of another network, are refused by what is wrong with them.
fn refuse_other_files(place: &Path, state: &Path, old: &Path, new: &Path) {
    let verify = |file: &Path, committee: &Path| {
        refused(1, &["state", "verify", text(file), "--committee", text(committee)])
    };
    assert!(verify(state, new).contains("it is the state of network"));
    let (mut bytes, changed) = (fs::read(state).expect("a file"), place.join("changed"));
    *bytes.last_mut().expect("bytes") ^= 1;
    fs::write(&changed, bytes).expect("written");
    assert!(verify(&changed, old).contains("was changed or is damaged"));
    let not_one = refused(2, &["state", "verify", text(old), "--committee", text(old)]);
    assert!(not_one.contains("is no state that `quorate state export` wrote"), "{not_one}");
}
