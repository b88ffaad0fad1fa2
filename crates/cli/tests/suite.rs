//! `quorate bench --suite`, small: real committees, and nothing about how quick they are.

use crate::common::{json, quorate, stderr, stdout, text, works};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const SUITE: &str = r#"
id = "tiny"
title = "Two small committees"
shows = "That rows are measured."

[base]
how = "processes"
durability = "os"
rate = 200
warmup_s = 1
duration_s = 1
drain_s = 60
timeout_ms = 500

[[row]]
key = "plain"
title = "Four validators"
bounds = true
at_least = { committed_tps = 1 }
at_most = { latency_client_p50_ms = 0.000001 }

[[row]]
key = "with-bls"
title = "Four validators with BLS"
scheme = "bls"
beside = "plain"
at_least = { ratio = 0.0001 }
"#;

/// A folder with the suite in it.
struct Place {
    folder: TempDir,
    suite: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let suite = folder.path().join("tiny.toml");
        fs::write(&suite, SUITE).expect("written");
        Self { folder, suite }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs the suite with more options; what it prints on success.
    fn works(&self, options: &[&str]) -> String {
        works(&[&["bench", "--suite", text(&self.suite)], options].concat())
    }

    /// Runs the suite with options that are refused; what it says.
    fn refused(&self, options: &[&str]) -> String {
        let output = quorate(&[&["bench", "--suite", text(&self.suite)], options].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

/// The line of a table that begins with a key, marked or not.
fn line<'a>(table: &'a str, key: &str) -> &'a str {
    let is_of = |line: &&str| line.split_whitespace().next() == Some(key);
    table.lines().find(is_of).unwrap_or_else(|| panic!("{key} in {table}"))
}

#[test]
fn both_rows_are_measured_and_compared_with_an_earlier_sitting() {
    let place = Place::new();
    let first = place.path("first.json");
    let table = place.works(&["--report", text(&first), "--seed", "3"]);
    assert!(line(&table, "plain").contains("≥ 1 tx/s met"), "{table}");
    assert!(table.contains("p50 ≤ 0.00 ms missed"), "{table}");
    assert!(line(&table, "with-bls").contains("≥ 0.0001 of plain met"), "{table}");
    assert!(table.contains("2 of 3 goals met"), "{table}");
    assert!(table.contains(&format!("result: {}", first.display())), "{table}");
    check_result(&read(&first));

    let second = place.works(&["--against", text(&first), "--only", "with-bls", "--no-report"]);
    let (now, ratios) = second.split_once("Ratios to the result of").expect("ratios");
    assert!(line(now, "with-bls").contains("not measured"), "nothing to divide by: {now}");
    assert!(line(ratios, "with-bls").contains('×'), "{ratios}");
    assert!(!second.contains("plain:"), "only what was asked for: {second}");
    compare_with_others(&place, &first);
}

fn check_result(result: &Value) {
    assert_eq!((&result["suite"], &result["seed"]), (&"tiny".into(), &3.into()));
    let mut order: Vec<&str> =
        result["order"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    order.sort_unstable();
    assert_eq!(order, ["plain", "with-bls"]);
    let rows = result["rows"].as_array().expect("a list");
    assert_eq!((&rows[0]["row"], &rows[1]["row"]), (&"plain".into(), &"with-bls".into()));
    for row in rows {
        for number in
            ["committed_tps", "latency_client_p50_ms", "latency_client_p99_ms", "height_us"]
        {
            let measured = row["measured"][number].as_f64();
            assert!(measured.is_some_and(|number| number > 0.0), "{number} in {row:#}");
        }
        for look in ["before", "during"] {
            let share = row["quietness"][look]["others_share"].as_f64();
            assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)), "{row:#}");
            assert!(row["quietness"][look]["sync_p50_ms"].is_number(), "{row:#}");
        }
        assert!(row["disturbances"].is_array() && row["setup"]["duration_s"] == 1, "{row:#}");
    }
    assert!(rows[0]["measured"]["machine_bound_tps"].as_f64() > Some(0.0), "{:#}", rows[0]);
    assert!(rows[1]["measured"]["ratio"].as_f64() > Some(0.0), "{:#}", rows[1]);
    assert!(rows[1]["measured"]["machine_bound_tps"].is_null(), "it was not asked for");
}

/// The same result as if it came from elsewhere; nothing is measured.
fn compare_with_others(place: &Place, first: &Path) {
    let mut other = read(first);
    other["machine"]["cpu"] = "Another processor".into();
    let elsewhere = place.path("elsewhere.json");
    fs::write(&elsewhere, other.to_string()).expect("written");
    let against = ["--against", text(&elsewhere)];
    let said = place.refused(&against);
    assert!(said.contains("is of another machine (Another processor, "), "{said}");
    assert!(said.contains("--other-machine"), "{said}");

    let drawn = [&against[..], &["--other-machine", "--draw", text(first)]].concat();
    let table = place.works(&drawn);
    let (_, ratios) = table.split_once("on another machine (Another processor").expect("ratios");
    assert!(line(ratios, "plain").contains("×1.00"), "{ratios}");
    let again = json(&[&["bench", "--suite", "--json"], &drawn[..]].concat());
    assert_eq!(again["rows"][0]["against"]["ratios"]["committed_tps"], 1.0);
}

/// Goals of a full state, of a restart, and of a rate that follows from another row's.
const FULL: &str = r#"
id = "full"
title = "Key-value stores"
shows = "That states are filled."

[base]
how = "processes"
service = "kv"
keys = 2000
fill = true
durability = "os"
execution_certificates = true
warmup_s = 1
duration_s = 2
drain_s = 60
timeout_ms = 500

[[row]]
key = "base"
title = "Puts"
rate = 200
time_restart = true
at_least = { filled_tps = 1 }
at_most = { restart_s = 1000, written_bytes_per_tx = 1e9 }

[[row]]
key = "half"
title = "Half as many"
beside = "base"
rate_times = 0.5
at_least = { goodput_ratio = 0.0001 }
at_most = { rss_growth = 1000 }
"#;

#[test]
fn states_are_filled_and_rates_follow_from_one_another() {
    let place = Place::new();
    fs::write(&place.suite, FULL).expect("written");
    let report = place.path("full.json");
    let table = place.works(&["--report", text(&report), "--only", "half"]);
    let result = read(&report);
    let [base, half] = [0, 1].map(|row| &result["rows"][row]);
    assert_eq!((&base["row"], &half["row"]), (&"base".into(), &"half".into()), "{table}");
    assert_eq!(base["details"]["filled"]["keys"], 2_000);
    for (row, numbers) in [
        (base, &["filled_tps", "restart_s", "written_bytes_per_tx", "rss_growth"][..]),
        (half, &["filled_tps", "goodput_ratio", "rss_growth"][..]),
    ] {
        for number in numbers {
            assert!(row["measured"][number].as_f64() > Some(0.0), "{number} in {row:#}");
        }
    }
    let rate = base["measured"]["committed_tps"].as_f64().expect("a rate");
    assert_eq!(half["setup"]["rate"].as_f64(), Some((rate / 2.0).round()));
    assert!(table.contains("goodput ≥ 0.0001 of base met"), "{table}");
    assert!(table.contains("5 of 5 goals met"), "{table}");
}

#[test]
fn what_does_not_fit_is_refused_in_words() {
    let place = Place::new();
    let said = place.refused(&["--only", "plan"]);
    assert!(
        said.contains(
            "tiny has no row 'plan': did you mean 'plain'?; its rows are plain, with-bls"
        ),
        "{said}"
    );
    let said = place.refused(&["-n", "10"]);
    assert!(said.contains("cannot be used with"), "{said}");
    let said = place.refused(&["--report", "result.html"]);
    assert!(said.contains("ends in .json, or in .md for a page"), "{said}");
    let said = place.refused(&["--against", text(&place.suite)]);
    assert!(said.contains("is no result of a suite"), "{said}");

    fs::write(&place.suite, SUITE.replace("at_most", "atmost")).expect("written");
    let said = place.refused(&[]);
    assert!(said.contains("[[row]] plain: it has an unknown field 'atmost'"), "{said}");
    let missing = place.path("none.toml");
    let output = quorate(&["bench", "--suite", text(&missing)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot read"), "{}", stderr(&output));
    assert!(stdout(&output).is_empty());
}
