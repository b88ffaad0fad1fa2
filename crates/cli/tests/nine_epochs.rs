//! A key-value store that outlives all its members, by the commands of `docs/OPERATING.md`: nine
//! epochs under load. One is replaced after its disk was lost, three come and go, one sleeps over
//! three borders, all are replaced at once and the old ones switched off, and Jolteon with Ed25519
//! becomes SBFT with threshold keys, HotStuff with BLS, and PBFT with Ed25519. What was
//! acknowledged in each epoch is read in the last one, and its receipt verifies there.

use crate::common::load::Load;
use crate::common::operators::{Operators, entry};
use crate::common::spoken::Process;
use crate::common::{Net, forget_learners, free_offset, processes, quorate, text, wait_for, works};
use quorate_lab::processes::Processes;
use quorate_lab::status::{ValidatorStatus, ask};
use quorate_node::NodeConfig;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A network whose members come and go.
struct Network {
    operators: Operators,
    /// Configurations of the members in force, in their order.
    members: Vec<PathBuf>,
    /// Configurations of those who may come.
    newcomers: Vec<PathBuf>,
    /// Processes of members, former members and who may come, each with its own.
    running: BTreeMap<PathBuf, Processes>,
    net: Net,
}

impl Network {
    fn start() -> Self {
        let options = ["--service", "kv", "--learners", "8"];
        let mut net = Net::start_with(4, "ed25519", &options, forget_learners);
        let members = net.configs.clone();
        // One by one, since one by one they go.
        for member in 0..4 {
            net.processes.kill(member).expect("killed");
        }
        let newcomers = net.learners.iter().map(|learner| learner.config.clone()).collect();
        let operators = Operators::of(net.folder(), &members);
        let running = BTreeMap::new();
        let mut network = Self { operators, members, newcomers, running, net };
        network.members.clone().iter().for_each(|config| network.start_one(config));
        network
    }

    fn folder(&self) -> PathBuf {
        self.net.folder()
    }

    fn epoch(&self) -> u64 {
        self.operators.epoch()
    }

    fn start_one(&mut self, config: &Path) {
        self.running.insert(config.to_owned(), processes(&[config.to_owned()]));
    }

    fn kill(&mut self, config: &Path) {
        self.running.remove(config).expect("it runs").kill(0).expect("killed");
    }

    /// So many who may come begin to follow.
    fn take_newcomers(&mut self, count: usize) -> Vec<PathBuf> {
        let taken: Vec<PathBuf> = self.newcomers.drain(..count).collect();
        taken.iter().for_each(|config| self.start_one(config));
        taken
    }

    /// Ends the epoch by a change with these options to these members, who have these keys; returns
    /// once all that run are in the next.
    fn change_to(&mut self, options: &[String], members: Vec<PathBuf>, key: &str) {
        let keys = members.iter().map(|config| config.with_file_name(key)).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        self.operators.change_to(&options, keys);
        self.members = members;
        self.wait_for_members();
        self.write();
    }

    fn wait_for_members(&self) {
        let epoch = self.epoch();
        let is_there = |look: ValidatorStatus| look.config.epoch == epoch && look.config.signs;
        let running = || self.members.iter().filter(|config| self.running.contains_key(*config));
        wait_for("all members to be in the next epoch", || {
            running().all(|config| status(config).is_some_and(is_there)).then_some(())
        });
    }

    /// Where a client that has the founding committee file alone finds the network.
    fn kv(&self, words: &[&str]) -> Vec<String> {
        let (folder, history) = (self.folder(), self.folder().join("history"));
        let place = ["kv", "--net", text(&folder), "--history", text(&history), "--timeout", "60"];
        place.iter().chain(words).map(|word| (*word).to_owned()).collect()
    }

    /// Writes in this epoch, with a receipt: what had to be sent again has none.
    fn write(&self) {
        let key = self.epoch().to_string();
        let receipt = self.receipt(self.epoch());
        let put = self.kv(&["put", &key, "acknowledged", "--receipt", text(&receipt)]);
        let put: Vec<&str> = put.iter().map(String::as_str).collect();
        wait_for("a write with its receipt", || quorate(&put).status.success().then_some(()));
        let written = fs::read(&receipt).expect("a receipt");
        let written: serde_json::Value = serde_json::from_slice(&written).expect("JSON");
        assert_eq!(written["epoch"], self.epoch());
    }

    fn receipt(&self, epoch: u64) -> PathBuf {
        self.folder().join(format!("receipt-{epoch}"))
    }

    /// What was written in each epoch is there, and its receipt verifies offline by the founding
    /// committee file and what a validator of today knows.
    fn check_all(&self) {
        let (folder, newest) = (self.folder(), self.members[0].with_file_name("data/epochs"));
        for epoch in 1..=self.epoch() {
            let get = self.kv(&["get", &epoch.to_string()]);
            let read = works(&get.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(read.trim(), "acknowledged", "in epoch {epoch}");
            let receipt = self.receipt(epoch);
            let over = ["--net", text(&folder), "--history", text(&newest)];
            works(&[&["receipt", "verify", text(&receipt)], &over[..]].concat());
        }
    }

    // ---- what operators do ----------------------------------------------------------------------

    /// "Replace a validator": its disk is gone, and its process.
    fn replace_after_its_disk_was_lost(&mut self, member: usize) {
        let lost = self.members[member].clone();
        self.kill(&lost);
        fs::remove_dir_all(lost.with_file_name("data")).expect("removed");
        let mut members = self.members.clone();
        members[member] = self.take_newcomers(1).remove(0);
        let option = format!("--replace={member}={}", entry_of(&members[member], "key.toml"));
        self.change_to(&[option], members, "key.toml");
    }

    fn add(&mut self, count: usize) {
        let added = self.take_newcomers(count);
        let options: Vec<String> =
            added.iter().map(|config| format!("--add={}", entry_of(config, "key.toml"))).collect();
        let members = self.members.iter().chain(&added).cloned().collect();
        self.change_to(&options, members, "key.toml");
    }

    fn remove_last(&mut self, count: usize) {
        let (stay, leave) = self.members.split_at(self.members.len() - count);
        let (stay, leave) = (stay.to_vec(), leave.to_vec());
        let options: Vec<String> =
            (stay.len()..stay.len() + count).map(|member| format!("--remove={member}")).collect();
        self.change_to(&options, stay, "key.toml");
        leave.iter().for_each(|config| self.stop_leaver(config));
    }

    /// All at once by others; who leaves is switched off as soon as it says that it may be.
    fn replace_all(&mut self) {
        let leave = self.members.clone();
        let members = self.take_newcomers(leave.len());
        self.change_to(&entries(&members, "key.toml"), members, "key.toml");
        leave.iter().for_each(|config| self.stop_leaver(config));
        assert_eq!(self.running.len(), leave.len(), "nobody of before runs any more");
        self.write();
    }

    fn stop_leaver(&mut self, config: &Path) {
        wait_for("the leaver to be free to go", || {
            status(config).filter(|look| !look.must_not_stop)
        });
        self.kill(config);
    }

    /// "Change to threshold keys".
    fn generate_threshold_keys(&mut self) {
        let draft = self.folder().join("members.toml");
        self.operators.draft(&draft, &["--protocol", "sbft"]);
        let transcript = self.generate(&draft);
        for config in &self.members {
            let made = config.with_file_name("next/key.next.toml");
            fs::copy(made, config.with_file_name("key.next.toml")).expect("copied");
        }
        let option = format!("--threshold-keys={}", text(&transcript));
        self.change_to(&[option], self.members.clone(), "key.next.toml");
    }

    fn generate(&self, draft: &Path) -> PathBuf {
        // Newcomers' ports are some two dozen further.
        let offset = free_offset(&self.folder().join("committee.toml"), 64);
        let start = |config: &PathBuf| {
            let out = config.with_file_name("next");
            let named = ["--next", text(draft), "--config", text(config), "--out", text(&out)];
            let words = [&["keys", "dkg", "--json", "--port-offset", &offset], &named[..]].concat();
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            Process::start(&words, config.with_file_name("said"))
        };
        let all: Vec<Process> = self.members.iter().map(start).collect();
        all.into_iter().for_each(Process::succeeds);
        self.members[0].with_file_name("next/transcript.json")
    }

    /// New voting keys of another scheme for all, who keep their identities.
    fn change_scheme(&mut self, scheme: &str, protocol: &str) {
        for config in &self.members {
            let [key, next] = ["key.toml", "key.next.toml"].map(|name| config.with_file_name(name));
            fs::rename(&next, &key).expect("the next key has become the present one");
            let made = ["generate", text(&next), "--identity", text(&key), "--scheme", scheme];
            works(&[&["keys"], &made[..]].concat());
        }
        // `sign` is by the keys in force, which have their usual name by now.
        self.operators.keys_are(&self.members, "key.toml");
        let mut options = entries(&self.members, "key.next.toml");
        options.extend([format!("--scheme={scheme}"), format!("--protocol={protocol}")]);
        self.change_to(&options, self.members.clone(), "key.next.toml");
    }
}

/// Options that put these members in everybody's place.
fn entries(members: &[PathBuf], key: &str) -> Vec<String> {
    let replaced = |(member, config): (usize, &PathBuf)| {
        format!("--replace={member}={}", entry_of(config, key))
    };
    members.iter().enumerate().map(replaced).collect()
}

/// What the operator of a configuration's key hands out, for the address that it has.
fn entry_of(config: &Path, key: &str) -> String {
    let address = NodeConfig::load(config).expect("a configuration").listen.expect("an address");
    text(&entry(&config.with_file_name(key), &address)).to_owned()
}

fn status(config: &Path) -> Option<ValidatorStatus> {
    ask(&NodeConfig::load(config).ok()?.http, Duration::from_secs(5)).ok()
}

#[test]
fn a_store_outlives_all_its_members() {
    let mut network = Network::start();
    let load = Load::on(&network.folder(), &[]);
    network.write();
    network.replace_after_its_disk_was_lost(2);

    let sleeper = network.members[3].clone();
    network.kill(&sleeper);
    network.add(3);
    network.remove_last(3);
    network.change_to(&["--set=leader_tenure=2".into()], network.members.clone(), "key.toml");
    network.start_one(&sleeper);
    network.wait_for_members();

    network.replace_all();
    network.generate_threshold_keys();
    network.change_scheme("bls", "hotstuff");
    network.change_scheme("ed25519", "pbft");
    assert_eq!(network.epoch(), 9);
    drop(load);
    network.check_all();
}
