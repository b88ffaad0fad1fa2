//! `quorate bench` and `quorate sim`, small.

use crate::common::{json, quorate, stderr, stdout, wait_for};
use quorate_lab::status::ask_all;
use quorate_node::NodeConfig;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn bench(options: &[&str]) -> Value {
    let common =
        ["bench", "--rate", "500", "--warmup", "1", "--drain", "60", "--no-bounds", "--json"];
    json(&[&common[..], options].concat())
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("{field} is a number in {value:#}"))
}

#[test]
fn a_bench_commits_and_says_everything() {
    let result = bench(&["-n", "4", "--duration", "3"]);
    for field in [
        "offered_tps",
        "committed_tps",
        "bytes_per_tx",
        "cpu_seconds",
        "client_cpu_seconds",
        "rss_mb_max",
        "disk_mb",
        "certificate_bytes",
        "answered",
    ] {
        assert!(number(&result, field) > 0.0, "{field} in {result:#}");
    }
    for field in ["view_changes", "dropped", "unanswered", "refused"] {
        assert!(number(&result, field) >= 0.0, "{field}");
    }
    for field in ["mean", "p50", "p90", "p99", "max"] {
        assert!(number(&result["latency_ms"], field) > 0.0, "{field}");
    }
    let validators = result["validators"].as_array().expect("a list");
    assert_eq!(validators.len(), 4);
    for (id, validator) in validators.iter().enumerate() {
        assert_eq!(validator["id"], id);
        assert_eq!(validator["state"], "healthy");
        for field in ["committed_tps", "height", "view"] {
            assert!(number(validator, field) > 0.0, "{field}");
        }
    }
    assert_eq!(result["config"]["scheme"], "ed25519");
    assert_eq!(result["config"]["tx_bytes"], 512);
    assert!(result["config"]["settings"]["batch_bytes"].is_number());
    assert!(result["config"]["machine"]["kernel"].is_string());
    assert_eq!(result["timeline"].as_array().map(Vec::len), Some(4));
}

/// Member 1 weighs two of seven, which is what may fail: the others are a quorum.
#[test]
fn a_weighted_committee_commits_without_what_may_fail() {
    let weights = ["--weights", "2,2,2,1", "--scheme", "bls"];
    let result = bench(&[&weights[..], &["--duration", "4", "--kill", "1@1"]].concat());
    assert!(number(&result, "committed_tps") > 0.0);
    assert_eq!(result["config"]["weights"], serde_json::json!([2, 2, 2, 1]));
    assert_eq!(result["validators"][1]["state"], "killed");
}

#[test]
fn a_bench_survives_the_first_leader() {
    let result = bench(&["--scheme", "bls", "--duration", "4", "--kill", "0@1"]);
    assert!(number(&result, "committed_tps") > 0.0);
    assert_eq!(result["validators"][0]["state"], "killed");
    assert!(result["validators"][0]["committed_tps"].is_null());
    assert_eq!(result["validators"][1]["state"], "healthy");
}

#[test]
fn a_killed_validator_started_again_catches_up_under_load() {
    let result = bench(&["--duration", "5", "--kill", "2@1", "--restart", "2@2"]);
    assert_eq!(result["validators"][2]["state"], "restarted");
    let height = |id: usize| number(&result["validators"][id], "height");
    assert!(height(2) > 0.0 && height(0) > 0.0);
}

/// A newcomer takes a dead member's place, and another protocol goes on; all end in the same epoch.
#[test]
fn a_committee_changes_under_load() {
    let changes = ["--kill", "2@1", "--change", "replace 1 at 2", "--change", "protocol sbft at 5"];
    let result = bench(&[&changes[..], &["--service", "kv", "--duration", "8"]].concat());
    let beside = &result["beside"];
    let epochs: Vec<_> = beside["borders"].as_array().expect("a list").iter().collect();
    assert_eq!(
        epochs.iter().map(|border| border["epoch"].as_u64()).collect::<Vec<_>>(),
        [Some(2), Some(3)]
    );
    for border in epochs {
        assert!(number(border, "all_s") >= number(border, "first_s"), "{border}");
    }
    let states: Vec<_> = (0..5).map(|id| result["validators"][id]["state"].clone()).collect();
    assert_eq!(states, ["healthy", "healthy", "killed", "healthy", "healthy"]);
    assert!(number(&result["validators"][4], "committed_tps") > 0.0, "the newcomer executes too");
    assert_eq!(result["events"][1]["change"], "replace 1");
    assert!(result["events"][1].get("validator").is_none());

    let refused = quorate(&["bench", "--change", "remove 4 at 1"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = stderr(&refused);
    assert!(said.contains("--change 'remove 4 at 1': there are only 4 members"), "{said}");
}

#[test]
fn the_paper_s_options_work_together() {
    let result = bench(&[
        "--scheme",
        "bls",
        "--duration",
        "1",
        "--verify",
        "each",
        "--key-cache",
        "off",
        "--proposal-key",
        "voting",
        "--vote-wait",
        "5",
        "--inline-bodies",
        "--durability",
        "os",
        "--service",
        "noop",
        "--batch-bytes",
        "4096",
        "--timeout",
        "2000",
        "--sessions",
        "2",
        "--seed",
        "9",
    ]);
    let settings = &result["config"]["settings"];
    assert_eq!(settings["verify"], "each");
    assert_eq!(settings["key_cache"], "off");
    assert_eq!(settings["proposal_key"], "voting");
    assert_eq!(settings["vote_wait_ms"], 5);
    assert_eq!(settings["inline_bodies"], true);
    assert_eq!(result["config"]["durability"], "os");
    assert_eq!(result["config"]["service"], "noop");
    assert_eq!(result["config"]["sessions"], 2);
}

#[test]
fn certified_bodies_are_ordered() {
    let result = bench(&["--duration", "5", "--availability", "certified"]);
    assert_eq!(result["config"]["settings"]["availability"], "certified");
    assert!(number(&result, "committed_tps") > 0.0);
}

#[test]
fn a_bench_keeps_its_folder_when_asked_and_prints_a_table() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("kept");
    let path = folder.to_str().expect("a plain path");
    let page = place.path().join("page.html");
    let options = ["bench", "--rate", "100", "--duration", "5", "--warmup", "1", "--dir", path];
    let report = ["--report", page.to_str().expect("a plain path")];
    let output = quorate(&[&options[..], &report].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("on every healthy validator"), "{}", stdout(&output));
    let progress = stderr(&output);
    assert!(progress.contains("opening client sessions"), "{progress}");
    assert!(!progress.contains('\u{1b}'), "plain lines where there is no terminal: {progress}");
    assert!(folder.join("validator-3/validator.log").exists());
    assert!(stdout(&output).contains(&format!("report page: {}", page.display())));
    let again = json(&["report", "--json", page.to_str().expect("a plain path")]);
    assert!(number(&again, "committed_tps") > 0.0);
    assert!(again["command"].as_str().is_some_and(|command| command.starts_with("quorate bench")));
    compare(&page);
}

/// Compares a run with itself, into a page, a table and a chart.
fn compare(page: &Path) {
    let (html, svg) = (page.with_file_name("both.html"), page.with_file_name("chart.svg"));
    let path = |path: &Path| path.to_str().expect("a plain path").to_owned();
    let (one, both, chart) = (path(page), path(&html), path(&svg));
    let options = ["report", &one, &one, "--label", "mine", "--label", "yours", "--html", &both];
    let charts =
        ["--svg", &chart, "--chart", "latency", "--chart", "throughput", "--title", "a <b>"];
    let output = quorate(&[&options[..], &charts].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    for wanted in ["mine", "yours", "×1.00", "same settings on the same machine", &both, &chart] {
        assert!(stdout(&output).contains(wanted), "{wanted} in {}", stdout(&output));
    }
    let drawn = std::fs::read_to_string(&svg).expect("the chart");
    for wanted in ["<svg xmlns", "a &lt;b&gt;", "Throughput over time", "Latency over time"] {
        assert!(drawn.contains(wanted), "{wanted}");
    }
    assert_eq!(json_list(&["report", "--json", &both]).len(), 2, "the page holds both results");
}

fn json_list(arguments: &[&str]) -> Vec<Value> {
    json(arguments).as_array().cloned().expect("a list")
}

#[test]
fn a_bench_that_is_killed_leaves_no_validator_behind() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("orphans");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["bench", "--no-report", "--quiet", "--rate", "100", "--duration", "600", "--dir"])
        .arg(&folder)
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let config = |index: usize| folder.join(format!("validator-{index}/config.toml"));
    let http: Vec<String> = wait_for("the configurations", || {
        (0..4).map(|index| Some(NodeConfig::load(&config(index)).ok()?.http)).collect()
    });
    let answering = || {
        let answers = ask_all(&http, Duration::from_secs(1));
        answers.iter().filter(|answer| answer.is_ok()).count()
    };
    wait_for("the validators to answer", || (answering() == 4).then_some(()));
    bench.kill().expect("killed");
    bench.wait().expect("gone");
    wait_for("the validators to end", || (answering() == 0).then_some(()));
}

#[test]
fn seeds_give_the_same_hash_on_any_number_of_threads() {
    let run = |threads: &str| {
        json(&["sim", "--seeds", "5", "--from", "3", "--threads", threads, "--json"])
    };
    let (one, two) = (run("1"), run("2"));
    assert_eq!(one["seeds"], 5);
    assert_eq!(one["failures"], Value::Array(Vec::new()));
    assert!(number(&one, "operations") > 0.0);
    for field in ["trace_hash", "combined_hash"] {
        assert_eq!(one[field].as_str().map(str::len), Some(64), "{field}");
        assert_eq!(one[field], two[field]);
    }
}

#[test]
fn a_bench_on_an_emulated_network_is_as_slow_as_the_network_at_least() {
    let result = bench(&["--duration", "2", "--wan", "eu-central-1,eu-west-1"]);
    assert_eq!(result["config"]["emulation"]["regions"][1], "eu-west-1");
    let least = &result["beside"]["minimum"];
    // Half of the operations are no quicker than the quickest leader's turn allows for, and that is
    // more than half of the mean. Delays vary by a tenth here.
    let floor = number(least, "mean_without_wait_ms") / 2.0;
    assert!(number(&result["latency_ms"], "p50") > floor, "{result:#}");
    assert!(number(least, "p50_ratio") > 0.5, "{least}");
    let timeout = &result["config"]["settings"]["timeout_ms"];
    assert_eq!(timeout, 500, "eight round trips are less");
}

#[test]
fn a_bench_says_how_long_each_event_was_felt() {
    let events = ["--pause", "1@1+1", "--kill", "leader@3", "--restart", "leader@4"];
    let result = bench(&[&["--duration", "6", "--load", "poisson"], &events[..]].concat());
    let kinds = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list");
        list.iter().map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
    };
    assert_eq!(kinds(&result["events"]), ["pause", "resume", "kill", "restart"]);
    let recoveries = &result["beside"]["recoveries"];
    assert!(recoveries.as_array().is_some_and(|list| !list.is_empty()), "{result:#}");
    assert!(number(&recoveries[0], "before_tps") > 0.0);
    let killed = &result["events"][2]["validator"];
    // The leader may be the one that was paused before.
    let state = if *killed == 1 { "restarted" } else { "paused" };
    assert_eq!(result["validators"][1]["state"], state);
    assert_eq!(&result["events"][3]["validator"], killed, "the same one comes back");
    assert_eq!(result["config"]["load"], "poisson");
}

#[test]
fn a_closed_loop_sends_to_all_and_is_bounded() {
    let result = bench(&[
        "--duration",
        "2",
        "--load",
        "closed",
        "--clients",
        "3",
        "--outstanding",
        "10",
        "--send-to",
        "all",
    ]);
    assert_eq!(result["config"]["sessions"], 3);
    assert_eq!(result["config"]["send_to"], "all");
    assert!(number(&result, "offered_tps") > 0.0);
    // Each operation waited for its answer: what was offered and not answered is under way.
    assert!(number(&result, "unanswered") <= 30.0, "{result:#}");
}

#[test]
fn a_bench_stands_beside_what_the_machine_could_do() {
    let options = ["bench", "--rate", "500", "--warmup", "1", "--duration", "5", "--drain", "60"];
    let result = json(&[&options[..], &["--json"]].concat());
    let bounds = &result["beside"]["bounds"];
    for field in ["disk_tps", "cpu_tps", "logged_bytes_per_tx", "reached"] {
        assert!(number(bounds, field) > 0.0, "{field} in {bounds:#}");
    }
    assert!(number(&bounds["parts"]["disk"], "synced_mb_s") > 0.0);
    assert!(number(&bounds["parts"]["crypto"], "tls_mb_s") > 0.0);
}

#[test]
fn a_full_state_is_measured_and_a_validator_comes_back() {
    let full = ["--service", "kv", "--keys", "3000", "--fill", "--time-restart"];
    let result = bench(&[&full[..], &["--duration", "2", "--durability", "os"]].concat());
    let beside = &result["beside"];
    assert_eq!(beside["filled"]["keys"], 3_000);
    for field in ["seconds", "puts_tps", "written_bytes_per_key"] {
        assert!(number(&beside["filled"], field) > 0.0, "{field} in {beside:#}");
    }
    assert!(number(beside, "written_bytes_per_tx") > 0.0, "{beside:#}");
    let restarted = &beside["restarted"];
    assert_eq!(restarted["validator"], 3);
    assert!(number(restarted, "seconds") > 0.0 && number(restarted, "operations") > 47.0);

    let refused = quorate(&["bench", "--fill"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--fill is for --service kv"), "{}", stderr(&refused));
}

/// Two opposite links of four members are cut: everybody keeps up, agrees, and goes on answering.
#[test]
fn a_bench_goes_on_with_opposite_links_cut() {
    let result = bench(&[
        "--service",
        "kv",
        "--load",
        "closed",
        "--sessions",
        "12",
        "--outstanding",
        "1",
        "--duration",
        "12",
        "--cut",
        "0-2@3",
        "--cut",
        "1-3@3",
    ]);
    let events = result["events"].as_array().expect("a list");
    let cuts: Vec<_> = events.iter().map(|cut| (&cut["validator"], &cut["link_to"])).collect();
    assert_eq!(cuts.len(), 2, "{cuts:?}");
    assert!(cuts.iter().all(|(one, other)| *one == 0 && *other == 2 || *one == 1 && *other == 3));
    assert_eq!(result["config"]["cut"], serde_json::json!(["0-2@3", "1-3@3"]));
    for validator in result["validators"].as_array().expect("a list") {
        assert_eq!(validator["state"], "healthy");
    }
    // Each caller has an operation under way at any time, before the cuts and when all ends.
    assert!(number(&result, "answered") >= 12.0, "{result:#}");
    assert_eq!(number(&result, "unanswered"), 0.0, "{result:#}");
}
