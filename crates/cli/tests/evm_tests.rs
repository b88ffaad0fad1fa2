//! `quorate evm-tests` as its users call it.

use crate::common::{json, quorate, stderr, stdout};
use serde_json::Value;
use std::fs;

const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../ledger/state-tests/own.json");

#[test]
fn tests_are_run_and_counted() {
    let summary = json(&["evm-tests", OWN, "--json"]);
    assert_eq!(summary["passed"], 20);
    assert_eq!(summary["failed"], Value::Object(serde_json::Map::new()));
}

#[test]
fn a_failure_is_named_and_is_the_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).expect("created");
    let text = fs::read_to_string(OWN).expect("read");
    fs::write(inner.join("own.json"), text.replace("\"0x0123\"", "\"0x0124\"")).expect("written");
    fs::write(folder.path().join("README.md"), "no test").expect("written");
    fs::write(folder.path().join("a.json"), "{ no test").expect("written");
    let output = quorate(&["evm-tests", folder.path().to_str().expect("plain")]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("inner/own.json: a_transfer (data 0, gas 0, value 0)"), "{said}");
    assert!(said.contains("a.json: key must be a string"), "one bad file ends nothing: {said}");
    assert!(said.ends_with("2 files: 19 passed, 1 failed, 0 left out\n"), "{said}");
}

#[test]
fn nothing_to_run_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("plain");
    let refusals = [
        (vec!["evm-tests", folder], "no test was run: 0 files"),
        (vec!["evm-tests", "/nowhere.json"], "/nowhere.json: No such file"),
        (
            vec!["evm-tests", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")],
            "Cargo.toml: invalid type",
        ),
    ];
    for (arguments, because) in refusals {
        let output = quorate(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(because), "{}", stderr(&output));
    }
}
