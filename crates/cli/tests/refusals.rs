//! Wrong options and files: exit code 2, and a sentence that says what to do.

use crate::common::{json, quorate, stderr, stdout, text};
use quorate_node::config::read_committee_file;
use quorate_node::testnet::committee_text;
use quorate_types::CommitteeFile;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// What is done to a committee file.
type Change = fn(&mut CommitteeFile);

fn testnet() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let output = quorate(&["testnet", text(&folder), "--base-port", "21000"]);
    assert!(output.status.success(), "{}", stderr(&output));
    (place, folder)
}

/// Runs a command that must be refused, and returns what it says.
fn refusal(arguments: &[&str]) -> String {
    let output = quorate(arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    stderr(&output)
}

#[test]
fn a_key_file_open_to_others_is_refused() {
    let (_place, folder) = testnet();
    let key = folder.join("validator-0/key.toml");
    let mode = fs::metadata(&key).expect("a key file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("changed");
    let config = folder.join("validator-0/config.toml");
    for arguments in [&["run", "--config", text(&config)], &["keys", "show", text(&key)][..]] {
        let said = refusal(arguments);
        assert!(said.contains("key.toml is open to others (mode 0644)"), "{said}");
        assert!(said.contains("chmod 600"), "{said}");
    }
}

#[test]
fn a_wrong_configuration_names_file_and_field() {
    let (_place, folder) = testnet();
    let config = folder.join("validator-0/config.toml");
    let good = fs::read_to_string(&config).expect("a configuration");
    let said_of = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        fs::write(&config, good.replace(from, to)).expect("written");
        let said = refusal(&["run", "--config", text(&config)]);
        assert!(said.contains("validator-0/config.toml"), "{said}");
        said
    };
    let said = said_of("timeout_ms = 1000", "timeout_ms = 1");
    assert!(said.contains("timeout_ms") && said.contains("10 to 600000"), "{said}");
    let said = said_of("timeout_ms = 1000", "timeout = 1000");
    assert!(said.contains("unknown field `timeout`"), "{said}");
    let said = said_of("verify_threads = 2", "verify_threads = 0");
    assert!(said.contains("verify_threads") && said.contains("1 to 64"), "{said}");
    let said = said_of("[replica]", "[replica]\nkey_cache = \"off\"");
    assert!(said.contains("'key_cache' is for comparisons with papers"), "{said}");
    let said = said_of("[replica]", "[replica]\nprotocol = \"hotstuff\"");
    assert!(
        said.contains(
            "'protocol' is agreed by all members: it stands in [settings] of the committee file"
        ),
        "{said}"
    );
}

#[test]
fn a_wrong_setting_of_the_committee_file_is_named() {
    let (_place, folder) = testnet();
    let committee = folder.join("committee.toml");
    let config = folder.join("validator-0/config.toml");
    let good = fs::read_to_string(&committee).expect("a committee");
    for (from, to, reason) in [
        ("service = \"ordered-log\"", "service = \"ledger\"", "no service 'ledger'"),
        (
            "protocol = \"jolteon\"",
            "protocol = \"paxos\"",
            "setting 'protocol': 'paxos' is no protocol",
        ),
        (
            "leader_tenure = 1",
            "leader_tenure = 0",
            "setting 'leader_tenure' is 0; it must be 1 to 1000",
        ),
        (
            "leader_tenure = 1",
            "timeout_ms = 1",
            "'timeout_ms' is each member's own: it stands in its configuration file",
        ),
    ] {
        assert!(good.contains(from), "{good}");
        fs::write(&committee, good.replace(from, to)).expect("written");
        let said = refusal(&["run", "--config", text(&config)]);
        assert!(said.contains("committee.toml") && said.contains(reason), "{said}");
    }
    // Clients, who have no configuration, hold the same file to the same form.
    let said = refusal(&["kv", "--net", text(&folder), "get", "colour"]);
    assert!(said.contains("'timeout_ms' is each member's own"), "{said}");
}

#[test]
fn a_testnet_says_what_its_weights_mean() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let output = quorate(&["testnet", text(&folder), "--weights", "3,1,1,1"]);
    let said = stdout(&output);
    assert!(said.contains("Votes weigh 3,1,1,1: a quorum is 5 of 6, and 1 may fail."), "{said}");
    assert!(said.contains("Mind: no quorum without member 0"), "{said}");
    let forced = ["testnet", text(&folder), "--force", "--json"];
    let heavy = json(&[&forced[..], &["--weights", "3,1,1,1"]].concat());
    assert_eq!(heavy["weights"], serde_json::json!([3, 1, 1, 1]));
    assert!(heavy["caution"].as_str().is_some_and(|text| text.contains("member 0")), "{heavy}");
    let equal = json(&forced);
    assert!(equal["caution"].is_null(), "{equal}");
}

#[test]
fn a_missing_file_is_named() {
    let said = refusal(&["run", "--config", "/nowhere/config.toml"]);
    assert!(said.contains("/nowhere/config.toml"), "{said}");
    let said = refusal(&["status", "/nowhere"]);
    assert!(said.contains("/nowhere is not a testnet"), "{said}");
    let said = refusal(&["keys", "show", "/nowhere/key.toml"]);
    assert!(said.contains("/nowhere/key.toml"), "{said}");
}

/// Identities that anybody could use, that are another key too, or that nobody proved to hold are
/// refused wherever a committee file is read, by their member.
#[test]
fn identities_that_nobody_holds_are_refused() {
    let (_place, folder) = testnet();
    let (committee, config) =
        (folder.join("committee.toml"), folder.join("validator-0/config.toml"));
    let good = read_committee_file(&committee).expect("a committee");
    let cases: [(&str, Change); 6] = [
        ("member 2: the identity key is unusable: the public key is the identity point", |file| {
            file.members[2].identity = format!("01{}", "00".repeat(31));
        }),
        ("member 2: the identity key is unusable: the public key is not the canonical", |file| {
            file.members[2].identity = format!("ee{}7f", "ff".repeat(30));
        }),
        ("members 1 and 2 have the same identity key", |file| {
            file.members[2].identity = file.members[1].identity.clone();
        }),
        ("member 2's voting key is member 1's identity key", |file| {
            file.members[2].voting = file.members[1].identity.clone();
        }),
        ("member 2: the identity key is unusable: the proof of possession", |file| {
            file.members[2].identity_proof = file.members[1].identity_proof.clone();
        }),
        ("member 2: the identity key is unusable: the proof that its owner holds", |file| {
            file.members[2].identity_proof.clear();
        }),
    ];
    for (reason, spoil) in cases {
        let mut file = good.clone();
        spoil(&mut file);
        fs::write(&committee, committee_text(&file)).expect("written");
        let said = refusal(&["run", "--config", text(&config)]);
        assert!(said.contains("committee.toml") && said.contains(reason), "{said}");
        let checked = quorate(&["config", "check", text(&config)]);
        assert_eq!(checked.status.code(), Some(2), "{}", stderr(&checked));
        // As wide as a terminal.
        let said: Vec<String> = stdout(&checked).split_whitespace().map(str::to_owned).collect();
        let said = said.join(" ");
        assert!(said.contains(reason), "{said}");
    }
    let without = fs::read_to_string(&committee).expect("a committee");
    let without: Vec<&str> =
        without.lines().filter(|line| !line.starts_with("identity_proof")).collect();
    fs::write(&committee, without.join("\n")).expect("written");
    let said = refusal(&["run", "--config", text(&config)]);
    assert!(said.contains("`quorate keys show FILE` (identity_proof)"), "{said}");
}

#[test]
fn a_scheme_that_anyone_can_forge_is_refused() {
    let (_place, folder) = testnet();
    let committee = folder.join("committee.toml");
    let file = fs::read_to_string(&committee).expect("a committee");
    let forged = file.replace("scheme = \"ed25519\"", "scheme = \"stub\"");
    fs::write(&committee, forged).expect("written");
    let config = folder.join("validator-0/config.toml");
    let said = refusal(&["run", "--config", text(&config)]);
    assert!(said.contains("committee.toml") && said.contains("'stub' is unknown"), "{said}");
    let said = refusal(&["testnet", "unused", "--scheme", "stub"]);
    assert!(said.contains("there are ed25519, bls and bls-threshold"), "{said}");
}

#[test]
fn a_testnet_overwrites_only_a_testnet_and_only_by_force() {
    let (_place, folder) = testnet();
    let again = ["testnet", text(&folder), "-n", "2"];
    let said = refusal(&again);
    assert!(said.contains("is not empty") && said.contains("--force"), "{said}");

    let forced = [&again[..], &["--force", "--json"]].concat();
    assert_eq!(json(&forced)["configs"].as_array().map(Vec::len), Some(2));

    fs::write(folder.join("diary.txt"), "mine").expect("written");
    let said = refusal(&forced);
    assert!(said.contains("'diary.txt', which no testnet wrote"), "{said}");
    assert!(folder.join("diary.txt").exists() && folder.join("committee.toml").exists());
}

#[test]
fn keys_are_private_and_never_overwritten() {
    let place = tempfile::tempdir().expect("a folder");
    let key = place.path().join("key.toml");
    let made = json(&["keys", "generate", text(&key), "--scheme", "bls", "--json"]);
    let mode = fs::metadata(&key).expect("a key file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(made["voting"].as_str().map(str::len), Some(192));
    assert_eq!(made["possession"].as_str().map(str::len), Some(96));
    assert_eq!(json(&["keys", "show", text(&key), "--json"]), made);

    let shown = stdout(&quorate(&["keys", "show", text(&key)]));
    let secrets = fs::read_to_string(&key).expect("a key file");
    let secret = |line: &&str| line.starts_with("identity") || line.starts_with("voting");
    for line in secrets.lines().filter(secret) {
        let digits = line.split('"').nth(1).expect("a quoted value");
        assert!(!shown.contains(digits), "a secret is shown");
    }
    let said = refusal(&["keys", "generate", text(&key)]);
    assert!(said.contains("exists already"), "{said}");
    assert_eq!(fs::read_to_string(&key).expect("a key file"), secrets);
}

#[test]
fn impossible_options_are_refused_before_anything_starts() {
    let cases: [(&[&str], &str); 18] = [
        (&["bench", "--weights", "3,1,1"], "--weights names 3 weights for 4 validators"),
        (&["bench", "--weights", "3,1,1,1", "--kill", "0@1"], "leaves 3 of 6 units of weight dead"),
        (
            &["testnet", "unused", "--weights", "7,1,1,1"],
            "member 0 has 7 of the committee's weight",
        ),
        (&["testnet", "unused", "--weights", "2,1"], "2 weights for 4 members: give one a member"),
        (&["bench", "--kill", "0@1", "--kill", "1@1"], "leaves 2 of 4 validators dead"),
        (&["bench", "--kill", "zero"], "is not I@T"),
        (&["bench", "--timeout", "5"], "timeout_ms"),
        (&["pay", "bench", "--cores", "3", "--shards", "2"], "do not divide among 2 shards"),
        (
            &["pay", "bench", "--cores", "65535"],
            "65535 processors for the authority and one for its",
        ),
        (&["bench", "--scheme", "rsa"], "there are ed25519, bls and bls-threshold"),
        (&["bench", "--scheme", "bls-threshold"], "jolteon cannot use threshold keys"),
        (&["keys", "generate", "unused", "--scheme", "bls-threshold"], "there are ed25519 and bls"),
        (&["estimate", "--prices", "t4.medium"], "t3.medium"),
        (&["estimate", "--rate", "0"], "rate is 0"),
        (&["estimate", "--kill", "zero"], "is no member and time"),
        (&["estimate", "--wan", "us-east-7"], "us-east-1"),
        (&["sim", "--seeds", "0"], "--seeds must be at least 1"),
        (&["sim", "--mutant", "Nonsense"], "--mutant list"),
    ];
    for (arguments, expected) in cases {
        let said = refusal(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_rule_left_out_is_missed_and_the_replay_misses_it_too() {
    let folder = tempfile::tempdir().unwrap();
    let out = ["--out", folder.path().to_str().expect("a plain path")];
    let output = quorate(
        &[&["sim", "--seeds", "20", "--mutant", "ExecuteTwice", "--json"], &out[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let replay = result["failures"][0]["replay"].as_str().expect("a command");
    let arguments: Vec<&str> = replay.split(' ').skip(1).chain(out).collect();
    let again = quorate(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(stdout(&again).contains(&format!("to run it again: {replay}")));
}

#[test]
fn twins_write_the_smallest_plan_and_its_replay_breaks_the_same() {
    smallest_plan_breaks_the_same(&["--mutant", "ChainedDoubleVote"]);
    smallest_plan_breaks_the_same(&["--mutant", "RecoverFormerEpoch", "--changes"]);
}

#[track_caller]
fn smallest_plan_breaks_the_same(search: &[&str]) {
    let place = tempfile::tempdir().expect("a folder");
    let out = text(place.path());
    let plans = ["sim", "--twins-scenarios", "300", "--json", "--out", out];
    let output = quorate(&[&plans[..], search].concat());
    assert_eq!(output.status.code(), Some(1));
    let result: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let replay = result["smallest"]["replay"].as_str().expect("a command");
    let arguments: Vec<&str> = replay.split(' ').skip(1).chain(["--json"]).collect();
    let again = quorate(&arguments);
    assert_eq!(again.status.code(), Some(1));
    let again: serde_json::Value = serde_json::from_str(&stdout(&again)).expect("JSON");
    assert_eq!(again["trace_hash"], result["smallest"]["trace_hash"]);
    assert_eq!(again["failure"]["oracle"], result["failures"][0]["oracle"]);
}

#[test]
fn files_without_a_result_are_refused_by_name() {
    let place = tempfile::tempdir().expect("a folder");
    let file = |name: &str, content: &str| {
        let path = place.path().join(name);
        fs::write(&path, content).expect("written");
        text(&path).to_owned()
    };
    let old = file("old.json", "{\"committed_tps\": 1}");
    let said = refusal(&["report", &old]);
    assert!(said.contains("old.json holds a result of format 1"), "{said}");
    assert!(said.contains("measure again"), "{said}");
    let said = refusal(&["report", &file("page.html", "<html></html>")]);
    assert!(said.contains("page.html") && said.contains("no result inside the page"), "{said}");
    let said = refusal(&["report", "/nowhere.json"]);
    assert!(said.contains("cannot read /nowhere.json"), "{said}");
    let said = refusal(&["report", &old, "--svg", "out.svg", "--chart", "pie"]);
    assert!(said.contains("latency-percentiles"), "the charts that there are: {said}");
}

#[test]
fn a_network_that_nobody_measured_is_refused_with_names_like_it() {
    let said = refusal(&["bench", "--wan", "us-east-1,eu-cental-1"]);
    assert!(said.contains("there is no region 'eu-cental-1'"), "{said}");
    assert!(said.contains("near it are eu-central-1"), "{said}");
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let said = refusal(&["testnet", text(&folder), "--wan", "nowhere"]);
    assert!(said.contains("there is no region 'nowhere'"), "{said}");
    assert!(!folder.exists());
}

#[test]
fn the_highest_rate_is_a_healthy_committee_s() {
    for options in [["--kill", "0@1"], ["--pause", "0@1+1"], ["--load", "closed"]] {
        let said = refusal(&[&["bench", "--rate", "max"], &options[..]].concat());
        assert!(said.contains("--rate max is for a healthy committee in an open loop"), "{said}");
    }
}

#[test]
fn an_emulated_testnet_says_so_in_every_configuration() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let regions = "us-east-1,ap-southeast-2";
    let output = quorate(&["testnet", text(&folder), "--wan", regions, "--bandwidth", "100"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for index in 0..4 {
        let config = fs::read_to_string(folder.join(format!("validator-{index}/config.toml")));
        let config = config.expect("a configuration");
        assert!(config.contains("For laboratories only"), "{config}");
        assert!(config.contains("regions = [\"us-east-1\", \"ap-southeast-2\"]"), "{config}");
        assert!(config.contains("bandwidth_mbit = 100"), "{config}");
        // Eight of 199.75 ms.
        assert!(config.contains("timeout_ms = 1598"), "{config}");
    }
}

/// Validators that lie are in builds of the laboratory alone.
#[cfg(not(feature = "liar"))]
#[test]
fn no_validator_can_be_asked_to_lie() {
    let said = refusal(&["bench", "--liar", "3=certificate-flood@1"]);
    assert!(said.contains("unexpected argument '--liar'"), "{said}");
    let said = refusal(&["run", "--config", "none.toml", "--lie", "silent"]);
    assert!(said.contains("unexpected argument '--lie'"), "{said}");
}

#[test]
fn a_wallet_without_a_token_is_served_to_this_machine_alone() {
    for listen in ["0.0.0.0:0", "192.0.2.1:7500", "[::]:0"] {
        let serve = ["pay", "serve", "-w", "no-wallet", "--no-token", "--listen", listen];
        let said = refusal(&serve);
        assert!(said.contains("--tokens-file") && said.contains(listen), "{said}");
    }
    // On the loopback interface it goes on, to the wallet that is not there.
    let serve = ["pay", "serve", "-w", "no-wallet", "--no-token", "--listen", "127.0.0.1:0"];
    let said = refusal(&serve);
    assert!(!said.contains("--tokens-file"), "{said}");
}
