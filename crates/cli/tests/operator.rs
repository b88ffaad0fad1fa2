//! Commands of operators: checks, completions, manual pages, watching; and the files made for them.

use crate::common::{Net, json, quorate, stderr, stdout, text, wait_for};
use quorate_lab::http;
use serde_json::Value;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Every command but `help`.
const COMMANDS: [&str; 13] = [
    "bench",
    "estimate",
    "calibrate",
    "report",
    "testnet",
    "run",
    "status",
    "keys",
    "committee",
    "config",
    "sim",
    "completions",
    "man",
];

fn code(arguments: &[&str]) -> (Option<i32>, String) {
    let output = quorate(arguments);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

fn testnet() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let base = quorate_node::ports::free_ports(8).expect("free ports").to_string();
    let output = quorate(&["testnet", text(&folder), "--base-port", &base]);
    assert!(output.status.success(), "{}", stderr(&output));
    (place, folder)
}

fn edit(file: &Path, from: &str, to: &str) {
    let content = fs::read_to_string(file).expect("a file");
    assert!(content.contains(from), "{from:?} is not in {content}");
    fs::write(file, content.replacen(from, to, 1)).expect("written");
}

/// Without what the machine that runs the test may lack.
fn serious(checked: &Value) -> Vec<String> {
    let files = checked["files"].as_array().expect("files");
    let findings = files.iter().flat_map(|file| file["findings"].as_array().expect("findings"));
    let text = |finding: &Value| finding["problem"].as_str().expect("a problem").to_owned();
    let of_machine =
        ["GiB are free", "this machine has", "on a machine with", "this process may have"];
    findings
        .map(text)
        .filter(|problem| !of_machine.iter().any(|machine| problem.contains(machine)))
        .collect()
}

#[test]
fn config_check_tells_errors_from_warnings_by_its_exit_code() {
    let (_place, folder) = testnet();
    let checked = json(&["config", "check", text(&folder), "--json", "--allow-warnings"]);
    assert_eq!(serious(&checked), [""; 0]);
    assert_eq!(checked["errors"], 0);
    assert_eq!(checked["files"][3]["member"], 3);
    assert_eq!(checked["files"][0]["committee"]["quorum"], 3);

    let config = folder.join("validator-0/config.toml");
    edit(&config, "durability = \"fsync\"", "durability = \"os\"");
    let (warned, said) = code(&["config", "check", text(&config)]);
    assert_eq!(warned, Some(5), "{said}");
    assert!(said.contains("quorum 3") && said.contains("power cut"), "{said}");
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains('/')), "{said}");
    assert_eq!(code(&["config", "check", text(&config), "--allow-warnings"]).0, Some(0));

    edit(&config, "timeout_ms = 1000", "timeout = 1000");
    edit(&config, "verify_threads = 2", "verify_threads = 65");
    let (refused, said) = code(&["config", "check", text(&config)]);
    assert_eq!(refused, Some(2), "{said}");
    assert!(said.contains("2 errors"), "{said}");
}

/// A path without a folder in it is a path all the same.
#[test]
fn config_check_works_from_within_a_validators_folder() {
    let (_place, folder) = testnet();
    edit(&folder.join("validator-1/config.toml"), "\"data\"", "\"../validator-0/data\"");
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["config", "check", "config.toml", "../validator-1/config.toml", "--json"])
        .current_dir(folder.join("validator-0"))
        .output()
        .expect("the binary runs");
    let checked: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(serious(&checked), ["the same data_dir as config.toml"]);
    assert_eq!(checked["files"][0]["member"], 0);
}

#[test]
fn run_tells_wrong_files_from_failures_of_the_machine() {
    let (place, folder) = testnet();
    let config = folder.join("validator-0/config.toml");
    let good = fs::read_to_string(&config).expect("a configuration");
    let said_of = |expected: i32, from: &str, to: &str| {
        fs::write(&config, &good).expect("written");
        edit(&config, from, to);
        let (code, said) = code(&["run", "--config", text(&config)]);
        assert_eq!(code, Some(expected), "{said}");
        said
    };
    fs::write(place.path().join("file"), "").expect("written");
    let said = said_of(2, "data_dir = \"data\"", "data_dir = \"../../file\"");
    assert!(said.contains("name one in `data_dir`"), "{said}");
    let said = said_of(2, "# listen = \"0.0.0.0:7000\"", "listen = \"192.0.2.1:7000\"");
    assert!(said.contains("set `listen`"), "{said}");
    let said = said_of(2, "../committee.toml", "../comittee.toml");
    assert!(said.contains("comittee.toml") && said.contains("config check"), "{said}");
    let held = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = held.local_addr().expect("an address");
    let said = said_of(1, "# listen = \"0.0.0.0:7000\"", &format!("listen = \"{port}\""));
    assert!(said.contains("another program has the port"), "{said}");
}

#[test]
fn run_names_everything_wrong_with_its_configuration_at_once() {
    let (_place, folder) = testnet();
    let config = folder.join("validator-0/config.toml");
    edit(&config, "timeout_ms = 1000", "timeout = 1000");
    edit(&config, "verify_threads = 2", "verify_threads = 65");
    let (refused, said) = code(&["run", "--config", text(&config)]);
    assert_eq!(refused, Some(2), "{said}");
    for part in ["did you mean `timeout_ms`?", "'verify_threads' is 65", "line ", "config check"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_template_is_a_configuration_and_shows_as_its_own_default() {
    let (_place, folder) = testnet();
    let file = folder.join("validator-0/config.toml");
    fs::write(&file, stdout(&quorate(&["config", "template"]))).expect("written");
    let shown = quorate(&["config", "show", text(&file)]);
    assert!(shown.status.success(), "{}", stderr(&shown));
    assert!(!stdout(&shown).contains("# default:"), "{}", stdout(&shown));
    edit(&file, "batch_delay_ms = 5", "batch_delay_ms = 6");
    let shown = stdout(&quorate(&["config", "show", text(&file)]));
    assert!(shown.contains("batch_delay_ms = 6  # default: 5"), "{shown}");
    edit(&folder.join("committee.toml"), "leader_tenure = 1", "leader_tenure = 3");
    let shown = stdout(&quorate(&["config", "show", text(&file)]));
    assert!(shown.contains("leader_tenure = 3  # default: 1"), "{shown}");
    assert_eq!(json(&["config", "show", text(&file), "--json"])["replica"]["batch_delay_ms"], 6);
}

#[test]
fn every_shell_completes_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&quorate(&["completions", shell]));
        for command in COMMANDS {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
        assert!(script.contains("passphrase-file"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("man1");
    let written = stdout(&quorate(&["man", "--dir", text(&folder)]));
    let page = |name: &str| {
        let path = folder.join(format!("{name}.1"));
        assert!(written.contains(text(&path)), "{written}");
        fs::read_to_string(path).expect("a page")
    };
    for command in COMMANDS {
        let page = page(&format!("quorate-{command}"));
        assert!(page.contains(".SH DESCRIPTION") && page.contains("EXIT STATUS"), "{page}");
    }
    for below in ["keys-encrypt", "keys-passphrase", "committee-draft", "config-check"] {
        assert!(page(&format!("quorate-{below}")).contains("SYNOPSIS"));
    }
    let whole = page("quorate");
    assert_eq!(stdout(&quorate(&["man"])), whole);
    assert!(whole.contains("Exit codes"), "{whole}");
}

#[test]
fn status_watches_until_it_is_told_to_end() {
    let net = Net::start(1, "ed25519");
    net.wait_connected();
    let http = ["--http", net.http[0].as_str()];
    let watch = ["status", "--watch=1", "--times", "2", "--json"];
    let output = quorate(&[&watch[..], &http].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown = stdout(&output);
    let looks: Vec<Value> =
        shown.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(looks.len(), 2);
    assert_eq!(looks[1]["validators"][0]["answers"], true);

    let output = quorate(&["status", "--watch=1", "--times", "2", http[0], http[1], "127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(1), "somebody is silent");
    assert!(stdout(&output).contains("ops/s"), "{}", stdout(&output));
}

/// Every word of a text that begins as our metrics do.
fn metrics_in(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.split(|c| !word(c)).filter(|word| word.starts_with("quorate_")).collect()
}

#[test]
fn a_running_validator_exports_what_its_dashboard_shows() {
    let net = Net::start(2, "ed25519");
    net.wait_connected();
    // Who is silent is known from the observer's first look on.
    let printed = wait_for("a first look at the members", || {
        let printed = http::get(&net.http[0], "/metrics", Duration::from_secs(10)).ok()?;
        printed.contains("quorate_peer_silent").then_some(printed)
    });
    // These have no series before there is something to count.
    let events = [
        "quorate_messages_rejected_total",
        "quorate_messages_ignored_total",
        "quorate_misbehaviour_total",
        "quorate_connections_cut_total",
        "quorate_check_wait_seconds_bucket",
        "quorate_peers_barred_total",
        "quorate_member_votes_ratio",
        "quorate_peer_round_trip_seconds",
        "quorate_connections_replaced_total",
        "quorate_requests_refused_total",
    ];
    let dashboard = include_str!("../../../packaging/grafana/quorate-validators.json");
    let alerts = include_str!("../../../packaging/prometheus/quorate-alerts.yml");
    for name in metrics_in(dashboard).into_iter().chain(metrics_in(alerts)) {
        let sample =
            |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        let exported = printed.lines().any(sample);
        assert!(exported || events.contains(&name), "{name} is not in\n{printed}");
    }
    let value = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.and_then(|value| value.parse::<f64>().ok()).expect("a figure")
    };
    assert_eq!(value("quorate_peers_connected"), 1.0);
    assert_eq!(value("quorate_committee_members"), 2.0);
    assert!(value("quorate_log_disk_bytes") > 0.0);
    assert!(value("quorate_disk_free_bytes") > 0.0);
    assert!(value("quorate_process_resident_bytes") > 1e6);
}

/// The commands that documents and packages tell operators to run.
#[test]
fn every_command_for_operators_is_understood() {
    let manual = include_str!("../../../docs/OPERATING.md");
    let unit = include_str!("../../../packaging/systemd/quorate@.service");
    let fenced = manual.split("```console").skip(1);
    let in_blocks = fenced.filter_map(|block| block.split("```").next()).flat_map(str::lines);
    let lines = in_blocks.chain(unit.lines().filter_map(|line| line.split_once('=').map(|l| l.1)));
    let mut commands = 0;
    for line in lines {
        let line = line.split(" #").next().unwrap_or_default();
        let line = line.split(" > ").next().unwrap_or_default();
        let line = line.trim().trim_start_matches("$ ");
        let line = line.trim_start_matches("sudo -u quorate ").trim_start_matches("/usr/bin/");
        let Some(arguments) = line.strip_prefix("quorate ") else { continue };
        let mut arguments: Vec<&str> = arguments.split_whitespace().collect();
        arguments.push("--help");
        let output = quorate(&arguments);
        assert!(output.status.success(), "`quorate {line}`: {}", stderr(&output));
        commands += 1;
    }
    assert!(commands >= 10, "{commands} commands were found");
}

#[test]
fn the_unit_does_not_restart_what_must_not_be() {
    let unit = include_str!("../../../packaging/systemd/quorate@.service");
    assert!(unit.lines().any(|line| line == "RestartPreventExitStatus=2 3 4 6"));
    let help = stdout(&quorate(&["--help"]));
    for code in ["  2  the options or files are wrong", "  3  safety", "  4  the disk failed"] {
        assert!(help.contains(code), "{help}");
    }
}
