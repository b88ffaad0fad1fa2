//! docs/mutants.md says which lane catches which rule; here it is held against the tests.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names in the enum: a line of its own, one word and a comma.
fn mutants() -> Vec<String> {
    let source = read("crates/crypto/src/mutants.rs");
    let variants = source.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let is_name = |name: &&str| {
        name.starts_with(char::is_uppercase) && name.chars().all(char::is_alphanumeric)
    };
    variants.filter(is_name).map(str::to_owned).collect()
}

/// Everything in files of a crate that are tests by their path.
fn tests_of(name: &str) -> String {
    let mut folders = vec![root().join("crates").join(name)];
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry").path();
            let is_test = path.to_string_lossy().contains("test");
            if path.is_dir() {
                folders.push(path);
            } else if is_test && path.extension().is_some_and(|extension| extension == "rs") {
                text += &fs::read_to_string(path).expect("a source file");
            }
        }
    }
    text
}

fn names(text: &str, mutant: &str) -> bool {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.into_iter().any(|word| word == mutant)
}

/// The cells of the mutant's row: tests, swarm, crash points.
fn row(table: &str, mutant: &str) -> Option<[String; 3]> {
    let line = table.lines().find(|line| line.starts_with(&format!("| `{mutant}` |")))?;
    let cells: Vec<String> = line.split('|').skip(2).take(3).map(|c| c.trim().to_owned()).collect();
    cells.try_into().ok()
}

#[test]
fn every_rule_is_caught_by_a_lane_and_the_table_says_which() {
    let table = read("docs/mutants.md");
    let (swarm, points) =
        (read("crates/sim/tests/mutants.rs"), read("crates/sim/tests/crash_points.rs"));
    let mutants = mutants();
    assert!(mutants.len() > 40, "the enum is read as it is written: {mutants:?}");
    for mutant in &mutants {
        let row = row(&table, mutant).unwrap_or_else(|| panic!("{mutant} has a row"));
        assert!(row.iter().any(|lane| !lane.is_empty()), "{mutant} is caught by nothing");
        for name in row[0].split(", ").filter(|name| !name.is_empty()) {
            let tests = tests_of(name.trim_matches('`'));
            assert!(names(&tests, mutant), "{name} has a test that leaves {mutant} out");
        }
        assert_eq!(row[1] == "yes", swarm.contains(&format!(": {mutant} in ")), "{mutant}, swarm");
        assert_eq!(row[2] == "yes", points.contains(&format!(": {mutant} by ")), "{mutant}, crash");
    }
}
