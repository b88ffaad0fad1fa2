//! Threshold keys without a dealer, among real processes.

use crate::common::spoken::Process;
use crate::common::{json, quorate, stderr, stdout, text};
use quorate_node::config::read_committee_file;
use quorate_node::ports::free_ports;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// A founding committee, and where its members put their new keys.
struct Founders {
    place: TempDir,
}

impl Founders {
    fn new(members: usize) -> Self {
        let place = tempfile::tempdir().expect("a folder");
        let ports = u16::try_from(2 * members).expect("few");
        let base = free_ports(ports).expect("free ports").to_string();
        let net = place.path().join("net");
        json(&["testnet", text(&net), "-n", &members.to_string(), "--base-port", &base, "--json"]);
        Self { place }
    }

    fn keys(&self) -> PathBuf {
        self.place.path().join("keys")
    }

    fn out(&self, member: usize) -> PathBuf {
        self.keys().join(format!("validator-{member}"))
    }

    fn config(&self, member: usize) -> PathBuf {
        self.place.path().join(format!("net/validator-{member}/config.toml"))
    }

    fn arguments(&self, member: usize, more: &[&str]) -> Vec<String> {
        let (config, out) = (self.config(member), self.out(member));
        let common = ["keys", "dkg", "--config", text(&config), "--out", text(&out), "--json"];
        common.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    /// `quorate keys dkg` of one member, its words in a file.
    fn start(&self, member: usize, more: &[&str]) -> Process {
        let said = self.place.path().join(format!("said-{member}"));
        Process::start(&self.arguments(member, more), said)
    }

    /// The committee file that all of these members wrote alike.
    fn committee(&self, members: &[usize]) -> PathBuf {
        for file in ["committee.toml", "transcript.json"] {
            let read = |member: &usize| fs::read(self.out(*member).join(file)).expect("written");
            let first = read(&members[0]);
            assert!(members.iter().all(|member| read(member) == first), "{file}");
        }
        self.out(members[0]).join("committee.toml")
    }

    fn bench(&self) -> serde_json::Value {
        let keys = self.keys();
        let load = ["--rate", "200", "--duration", "3", "--warmup", "1", "--drain", "60"];
        let with = ["bench", "--protocol", "sbft", "--keys-from", text(&keys), "--json"];
        json(&[&with[..], &load, &["--no-bounds"]].concat())
    }
}

/// All four make keys, and a committee of them decides at once.
#[test]
fn four_processes_make_keys_that_sbft_runs_with() {
    let founders = Founders::new(4);
    let all = [0, 1, 2, 3];
    let processes = all.map(|member| founders.start(member, &[]));
    processes.into_iter().for_each(Process::succeeds);
    let committee = read_committee_file(&founders.committee(&all)).expect("a committee");
    assert_eq!(committee.scheme, "bls-threshold");
    assert!(committee.groups.is_some());
    for member in all {
        let out = founders.out(member);
        let mode = fs::metadata(out.join("key.toml")).expect("keys").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(!out.join("generation").exists(), "what made them is gone");
        let checked = quorate(&["config", "check", text(&out.join("config.toml"))]);
        // 5: right, with a word about this machine, such as little room on its disk.
        assert!(matches!(checked.status.code(), Some(0 | 5)), "{}", stdout(&checked));
    }
    let shown =
        json(&["keys", "transcript", text(&founders.out(3).join("transcript.json")), "--json"]);
    assert_eq!(shown["qualified"], serde_json::json!(all));

    let result = founders.bench();
    assert!(result["committed_tps"].as_f64().expect("a number") > 0.0);
    assert_eq!(result["config"]["scheme"], "bls-threshold");
    assert_eq!(result["config"]["existing_keys"], true);

    // What is there is not overwritten.
    let words = founders.arguments(0, &[]);
    let again = quorate(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("exists already"), "{}", stderr(&again));
}

/// One is killed after it joined and before anything was dealt. The three others have keys, a
/// committee of the three decides, and the one that comes back has its keys too, in one of two
/// ways.
#[test]
fn one_that_is_killed_in_the_middle_does_not_stop_it() {
    let founders = Founders::new(4);
    let hasty = ["--timeout", "2", "--linger", "6"];
    let mut early: Vec<Process> = (1..4).map(|member| founders.start(member, &hasty)).collect();
    early.iter().for_each(|process| process.wait_until_it_says("joined 3/4"));
    early.pop().expect("three").kill();
    // Only now can anybody deal.
    let last = founders.start(0, &hasty);
    early.into_iter().chain([last]).for_each(Process::succeeds);
    let living = [0, 1, 2];
    founders.committee(&living);
    assert!(
        founders.out(3).join("generation/seed").exists()
            && !founders.out(3).join("key.toml").exists()
    );
    let transcript = founders.out(0).join("transcript.json");
    let shown = json(&["keys", "transcript", text(&transcript), "--json"]);
    assert_eq!(shown["joined"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!(shown["qualified"], serde_json::json!(living));

    let result = founders.bench();
    assert!(result["committed_tps"].as_f64().expect("a number") > 0.0);
    assert_eq!(result["validators"][3]["state"], "absent");

    // The others have gone: it takes its keys from what they wrote.
    let words = founders.arguments(3, &["--transcript", text(&transcript)]);
    let late = quorate(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(late.status.success(), "{}", stderr(&late));
    founders.committee(&[0, 3]);
    let result = founders.bench();
    assert_eq!(result["validators"][3]["state"], "healthy");
}

/// One is killed after it joined, and started again while the others still deal: it takes part as
/// if nothing had been.
#[test]
fn one_that_is_started_again_goes_on_where_it_was() {
    let founders = Founders::new(4);
    let mut early: Vec<Process> = (1..4).map(|member| founders.start(member, &[])).collect();
    early.iter().for_each(|process| process.wait_until_it_says("joined 3/4"));
    early.pop().expect("three").kill();
    let last = founders.start(0, &[]);
    last.wait_until_it_says("joined 4/4");
    let again = founders.start(3, &[]);
    early.into_iter().chain([last, again]).for_each(Process::succeeds);
    founders.committee(&[0, 1, 2, 3]);
    let transcript = founders.out(3).join("transcript.json");
    let shown = json(&["keys", "transcript", text(&transcript), "--json"]);
    assert_eq!(shown["qualified"], serde_json::json!([0, 1, 2, 3]));
}

/// What a member needs while keys are made is sealed as its founding key is: a copy of its folder
/// is worth nothing without the passphrase. It goes on where it was with it.
#[test]
fn a_sealed_member_keeps_no_secret_in_the_clear() {
    let founders = Founders::new(4);
    let words = founders.place.path().join("words");
    fs::write(&words, "correct horse battery staple\n").expect("written");
    fs::set_permissions(&words, fs::Permissions::from_mode(0o600)).expect("changed");
    let sealed = ["--passphrase-file", text(&words)];
    let key = founders.config(3).with_file_name("key.toml");
    let encrypt = quorate(&[&["keys", "encrypt", text(&key)], &sealed[..]].concat());
    assert!(encrypt.status.success(), "{}", stderr(&encrypt));

    let mut early: Vec<Process> = (1..3).map(|member| founders.start(member, &[])).collect();
    early.push(founders.start(3, &sealed));
    early.iter().for_each(|process| process.wait_until_it_says("joined 3/4"));
    early.pop().expect("three").kill();
    let seed = fs::read_to_string(founders.out(3).join("generation/seed")).expect("a seed");
    assert!(seed.contains("quorate-sealed-secret-1"), "{seed}");
    let clear = fs::read_to_string(founders.out(1).join("generation/seed")).expect("a seed");
    assert_eq!(clear.len(), 64, "of a key in the clear it is in the clear");

    let last = founders.start(0, &[]);
    let again = founders.start(3, &sealed);
    early.into_iter().chain([last, again]).for_each(Process::succeeds);
    let shown = fs::read_to_string(founders.out(3).join("key.toml")).expect("a key file");
    assert!(shown.contains("quorate-sealed-keys-2"), "{shown}");
    assert!(!founders.out(3).join("generation").exists());
}

#[test]
fn a_generation_that_was_given_up_leaves_no_secret() {
    let founders = Founders::new(4);
    let alone = founders.start(0, &[]);
    alone.wait_until_it_says("waiting for the others");
    alone.kill();
    let (out, generation) = (founders.out(0), founders.out(0).join("generation"));
    assert!(generation.join("seed").exists());
    let shown = json(&["keys", "dkg", "--out", text(&out), "--abandon", "--json"]);
    assert_eq!(shown["abandoned"], text(&generation));
    assert!(!generation.exists());
    let again = quorate(&["keys", "dkg", "--out", text(&out), "--abandon"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("holds no generation"), "{}", stderr(&again));
}

#[test]
fn transcripts_of_other_keys_are_refused() {
    let founders = Founders::new(1);
    founders.start(0, &[]).succeeds();
    let out = founders.out(0);
    let (transcript, committee) = (out.join("transcript.json"), out.join("committee.toml"));
    let holds = quorate(&["keys", "transcript", text(&transcript)]);
    assert!(stdout(&holds).starts_with("The transcript holds"), "{}", stderr(&holds));
    let written = fs::read_to_string(&committee).expect("a file");
    fs::write(&committee, written.replacen("weight = 1", "weight = 2", 1)).expect("written");
    let other = quorate(&["keys", "transcript", text(&transcript)]);
    assert_eq!(other.status.code(), Some(1));
    assert!(
        stderr(&other).contains("not what the transcript's steps come to"),
        "{}",
        stderr(&other)
    );
    let steps = fs::read_to_string(&transcript).expect("a file");
    fs::write(&transcript, steps.replacen("\"member\": 0", "\"member\": 1", 1)).expect("written");
    let altered = quorate(&["keys", "transcript", text(&transcript)]);
    assert_eq!(altered.status.code(), Some(2));
    assert!(stderr(&altered).contains("is not what its line says"), "{}", stderr(&altered));
}

#[test]
fn what_cannot_be_is_refused_before_anything_starts() {
    let founders = Founders::new(4);
    let refused = |more: &[&str]| {
        let words = founders.arguments(0, more);
        let output = quorate(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(refused(&["--protocol", "jolteon"]).contains("jolteon cannot use threshold keys"));
    let empty = founders.place.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    let bench = quorate(&["bench", "--protocol", "sbft", "--keys-from", text(&empty)]);
    assert_eq!(bench.status.code(), Some(2));
    assert!(stderr(&bench).contains("holds no committee file"), "{}", stderr(&bench));
    let committee = founders.place.path().join("net/committee.toml");
    let written = fs::read_to_string(&committee).expect("a file");
    fs::write(&committee, written.replacen("weight = 1", "weight = 2", 1)).expect("written");
    assert!(refused(&[]).contains("threshold keys count members, not weights"));
}
