//! `quorate reproduce` and `quorate compare`, small.

mod common;

use common::{json, quorate, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_experiment_is_listed_with_its_time() {
    let output = quorate(&["reproduce", "--list"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    for id in ["A1", "H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "J1", "J2", "J3", "J4", "J5"] {
        let row = text.lines().find(|line| line.trim_start().starts_with(id));
        let row = row.unwrap_or_else(|| panic!("{id} is listed in\n{text}"));
        assert!(row.ends_with(" s") || row.ends_with("min"), "{row}");
    }
}

#[test]
fn a_simulated_experiment_leaves_results_a_page_and_figures() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let result = json(&["reproduce", "J1", "--preset", "smoke", "--out", out, "--quiet", "--json"]);
    let records = result["records"].as_array().unwrap();
    assert_eq!(records.len(), 4);
    for record in records {
        assert_eq!(record["failed"], Value::Null);
        assert_eq!(record["signatures"], "priced");
        assert!(record["measured"]["committed_tps"].as_f64().unwrap() > 500.0, "{record:#}");
        assert!(record["machine"]["commit"].is_string());
        assert_eq!(record["setup"]["timeout_ms"], 5_000);
    }
    let names = files(folder.path());
    for name in ["J1.smoke.html", "J1.smoke.jsonl", "J1.smoke.paper.svg", "J1.smoke.client.svg"] {
        assert!(names.iter().any(|other| other == name), "{name} among {names:?}");
    }
    let lines = fs::read_to_string(folder.path().join("J1.smoke.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 4);
}

#[test]
fn a_run_goes_on_with_what_is_there() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let command = ["reproduce", "J3", "--preset", "smoke", "--out", out];
    let output = quorate(&command);
    assert!(output.status.success(), "{}", stderr(&output));
    let path = folder.path().join("J3.smoke.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let five: String = text.split_inclusive('\n').take(5).collect();
    fs::write(&path, &five).unwrap();
    let output = quorate(&[&command[..], &["--resume"]].concat());
    assert!(stderr(&output).contains("5 of 8 points are there already"), "{}", stderr(&output));
    let resumed = fs::read_to_string(&path).unwrap();
    assert!(resumed.starts_with(&five), "what was there stays");
    assert_eq!(resumed.lines().count(), 8);
    let drawn = quorate(&[&command[..], &["--draw"]].concat());
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    assert_eq!(fs::read_to_string(&path).unwrap(), resumed, "drawing measures nothing");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("mine.toml");
    fs::write(
        &file,
        "id = \"m\"\ntitle = \"t\"\nshows = \"s\"\n[preset.default]\nvaldiators = 4\n",
    )
    .unwrap();
    let cases = [
        (vec!["reproduce", "J9"], "there is no such experiment"),
        (vec!["reproduce", file.to_str().unwrap()], "'valdiators': did you mean 'validators'?"),
        (vec!["reproduce", "J3", "--preset", "huge"], "there is no preset 'huge'"),
        (
            vec!["reproduce", "J3", "--draw", "--out", "/nonexistent"],
            "has no results of this preset",
        ),
        (vec!["compare", "-n", "4", "--machine", "abacus"], "there is no price list 'abacus'"),
        (vec!["compare", "-n", "4", "--wan", "us-east-7"], "there is no region 'us-east-7'"),
    ];
    for (arguments, reason) in cases {
        let output = quorate(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_comparison_ends_with_a_line_for_each_size() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().to_str().unwrap();
    let command = [
        "compare",
        "-n",
        "4",
        "--wan",
        "us-east-1,eu-central-1",
        "--policies",
        "aggregate",
        "--rate",
        "1000",
        "--seconds",
        "2",
        "--out",
        out,
        "--quiet",
        "--json",
    ];
    let result = json(&command);
    assert_eq!(result["findings"].as_array().unwrap().len(), 2, "Ed25519 and BLS");
    for finding in result["findings"].as_array().unwrap() {
        assert!(finding["knee_tps"].as_f64().unwrap() >= 1_000.0, "{finding:#}");
        assert!(finding["latency_ms"].as_f64().unwrap() > 0.0, "{finding:#}");
    }
    let advice = &result["advice"][0];
    assert!(advice["line"].as_str().unwrap().starts_with("n = 4: "), "{advice:#}");
    assert!(["ed25519", "bls"].contains(&advice["candidate"]["scheme"].as_str().unwrap()));
    assert!(files(folder.path()).contains(&"compare.points.html".to_owned()));
}
