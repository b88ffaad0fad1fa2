//! `quorate load` on running committees, and `quorate report --merge`.

use crate::common::{self, Net, json, quorate, stderr, text, works};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn net(more: &[&str]) -> Net {
    let net = Net::start_with(4, "ed25519", more, |_| {});
    net.wait_connected();
    net
}

/// A load on a testnet, with time to wait for the last answers.
fn start(net: &Net, options: &[&str]) -> Child {
    let folder = net.folder();
    let common = ["load", "--net", text(&folder), "--drain", "120", "--json"];
    Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args([&common[..], options].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs")
}

fn finish(load: Child) -> Value {
    let output = load.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn number(value: &Value, field: &str) -> u64 {
    value[field].as_u64().unwrap_or_else(|| panic!("{field} is a number in {value:#}"))
}

/// Number of operations in a histogram.
fn total(result: &Value) -> u64 {
    let counts = result["latency_histogram"]["counts_us"].as_array().expect("a list").iter();
    counts.map(|entry| entry[1].as_u64().expect("a count")).sum()
}

/// States of the validators. On a busy machine any of them may have been silent for a while.
fn states(result: &Value) -> Vec<String> {
    let all = result["validators"].as_array().expect("a list").iter();
    all.map(|one| one["state"].as_str().expect("a word").to_owned()).collect()
}

/// A moment by which the sessions are open on a busy machine, where opening may take a quarter of a
/// minute.
fn soon() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    (since + Duration::from_secs(30)).as_secs().to_string()
}

#[test]
fn two_loads_at_once_are_one_when_merged() {
    let net = net(&[]);
    let start_at = soon();
    let load = |share: &str, rate: &str| {
        let rate = ["--share", share, "--rate", rate, "--warmup", "1", "--duration", "3"];
        start(&net, &[&rate[..], &["--start-at", &start_at]].concat())
    };
    let loads = [load("1/2", "200"), load("2/2", "300")].map(finish);
    for (load, offered) in loads.iter().zip([600, 900]) {
        assert_eq!(number(load, "answered"), offered);
        assert_eq!(total(load), offered);
        assert_eq!(load["measurement"]["kind"], "load");
        let healthy = states(load).iter().any(|state| state == "healthy");
        assert_eq!(load["committed_by"] == "validators", healthy, "{load:#}");
        assert_eq!(load["validators"].as_array().map(Vec::len), Some(4), "of the folder");
    }
    // Both loads and both warm-ups, and nothing twice.
    net.wait_level(500 * 4);

    let folder = tempfile::tempdir().expect("a folder");
    let files = ["one.json", "two.json"].map(|name| folder.path().join(name));
    for (file, load) in files.iter().zip(&loads) {
        std::fs::write(file, load.to_string()).expect("written");
    }
    let [one, two] = files.each_ref().map(|file| text(file));
    let merged = json(&["report", "--merge", one, two, "--json"]);
    assert_eq!(number(&merged, "answered"), 1_500);
    assert_eq!(total(&merged), 1_500);
    assert_eq!(merged["offered_tps"], 500.0);
    assert_eq!(merged["committed_by"], "answers");
    assert!(merged.get("cpu_seconds").is_none(), "no load knows of the others' window");
    let rows = merged["measurement"]["loads"].as_array().expect("a list");
    assert_eq!(rows.iter().map(|row| row["seed"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    let backwards = json(&["report", "--merge", two, one, "--json"]);
    let without_command = |mut result: Value| {
        result["command"] = Value::Null;
        result
    };
    assert_eq!(without_command(merged), without_command(backwards));

    let said = works(&["report", "--merge", one, two]);
    assert!(said.contains("2 loads") && said.contains("s in common of"), "{said}");
    assert!(folder.path().join("one-merged.html").exists(), "{said}");
    let refused = quorate(&["report", "--merge", one, one]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("the same seed 1"), "{}", stderr(&refused));
}

#[test]
fn nothing_is_lost_when_a_validator_is_killed_under_load() {
    let mut net = net(&["--service", "kv"]);
    let load = start(&net, &["--rate", "200", "--warmup", "0", "--duration", "6"]);
    // Under load: something was executed, and the load is not over.
    common::wait_for("operations", || {
        net.looks()[0].as_ref().filter(|look| look.operations > 0).map(drop)
    });
    net.processes.kill(3).expect("killed");
    let result = finish(load);
    assert_eq!(number(&result, "answered"), 1_200);
    assert_eq!((number(&result, "dropped"), number(&result, "unanswered")), (0, 0));
    assert_eq!(states(&result)[3], "silent");
    assert_eq!(result["config"]["service"], "kv");
}

#[test]
fn without_addresses_validators_have_no_figures() {
    let net = net(&["--service", "noop"]);
    let file = net.folder().join("committee.toml");
    let closed = ["--load", "closed", "--outstanding", "4", "--sessions", "2"];
    let course = ["--warmup", "0", "--duration", "2", "--drain", "120", "--json"];
    let result = json(&[&["load", "--committee", text(&file)], &closed[..], &course].concat());
    assert_eq!(result["committed_by"], "answers");
    assert!(number(&result, "answered") > 0);
    for absent in ["cpu_seconds", "rss_mb_max", "disk_mb", "view_changes", "certificate_bytes"] {
        assert!(result.get(absent).is_none(), "{absent} in {result:#}");
    }
    assert_eq!(result["validators"], Value::Array(Vec::new()));
}

#[test]
fn accounts_are_funded_by_a_development_account_each() {
    let net = net(&["--service", "evm"]);
    let load = |share: &str| {
        let options = ["--rate", "100", "--warmup", "0", "--duration", "3", "--accounts", "300"];
        start(&net, &[&["--share", share], &options[..]].concat())
    };
    for result in [load("1/2"), load("2/2")].map(finish) {
        assert_eq!((number(&result, "answered"), number(&result, "refused")), (300, 0));
        assert_eq!(result["config"]["mix"], "ether");
    }
    // The same account again: its next transaction is no longer its first.
    let again = finish(load("1/2"));
    assert_eq!((number(&again, "answered"), number(&again, "refused")), (300, 0));
}

#[test]
fn listed_clients_alone_load_a_committee_that_lists_them() {
    let net = net(&["--clients", "listed", "--service", "kv"]);
    let file = net.folder().join("committee.toml");
    let course = ["--rate", "100", "--warmup", "0", "--duration", "1", "--drain", "120", "--json"];
    let load =
        |key: &[&str]| quorate(&[&["load", "--committee", text(&file)], &course[..], key].concat());
    let refused = load(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("lets in listed clients alone"), "{}", stderr(&refused));

    let stranger = net.folder().join("stranger.toml");
    works(&["keys", "generate", text(&stranger)]);
    let turned_away = load(&["--key", text(&stranger)]);
    assert_eq!(turned_away.status.code(), Some(1));
    let said = stderr(&turned_away);
    assert!(said.contains("validators turn this client away"), "{said}");

    let key = net.folder().join("client/key.toml");
    let let_in = load(&["--key", text(&key)]);
    assert!(let_in.status.success(), "{}", stderr(&let_in));
}

#[test]
fn bad_input_is_said_in_words() {
    let refusal = |options: &[&str]| {
        let refused = quorate(&[&["load"], options].concat());
        assert_eq!(refused.status.code(), Some(2), "{options:?}");
        stderr(&refused)
    };
    let missing = refusal(&["--net", "no-such-folder"]);
    assert!(missing.contains("no-such-folder/committee.toml"), "{missing}");
    assert!(refusal(&["--rate", "max"]).contains("quorate bench --rate max"));
    assert!(refusal(&["--share", "3/2"]).contains("write I/N"));
    assert!(refusal(&["--start-at", "tomorrow"]).contains("2026-01-31T12:00:00Z"));
    assert!(refusal(&["--start-at", &format!("{}000", soon())]).contains("not milliseconds"));
    assert!(refusal(&["--status", "ftp://host:1"]).contains("HOST:PORT"));

    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    works(&["testnet", text(&folder), "--service", "evm"]);
    std::fs::remove_file(folder.join("genesis.json")).expect("removed");
    let poor = refusal(&["--net", text(&folder)]);
    assert!(poor.contains("name its genesis by --genesis"), "{poor}");
    let log = place.path().join("log");
    works(&["testnet", text(&log)]);
    let few = refusal(&["--net", text(&log), "--status", "127.0.0.1:1,127.0.0.1:2"]);
    assert!(few.contains("names 2 addresses, and the committee has 4 members"), "{few}");
    let other = place.path().join("other");
    works(&["testnet", text(&other), "--service", "evm", "--chain-id", "5"]);
    let genesis = other.join("genesis.json");
    let wrong = refusal(&["--net", text(&folder), "--genesis", text(&genesis)]);
    assert!(wrong.contains("the genesis of another network"), "{wrong}");
}

#[test]
fn a_bench_is_not_merged() {
    let options = ["--rate", "200", "--duration", "3", "--warmup", "1", "--drain", "60"];
    let options = [&options[..], &["--no-bounds", "--json"]].concat();
    let bench = works(&[&["bench"], &options[..]].concat());
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("bench.json");
    std::fs::write(&file, bench).expect("written");
    let refused = quorate(&["report", "--merge", text(Path::new(&file))]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("a bench's, whose committee is its own"));
}
