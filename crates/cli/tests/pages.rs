//! Tables on pages of results: each is what the command above it prints.

use crate::common::{quorate_in, stderr, stdout};
use std::fs;
use std::path::{Path, PathBuf};

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results")
}

/// A command in a comment, and the table that stands below it.
fn tables(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("<!-- quorate ").skip(1);
    let table = |part| {
        let (command, below): (&str, &str) =
            str::split_once(part, " -->\n").expect("a comment's end");
        (command, &below[..below.find("\n\n").map_or(below.len(), |end| end + 1)])
    };
    parts.map(table).collect()
}

#[test]
fn every_table_is_what_the_command_above_it_prints() {
    let mut checked = 0;
    let pages = fs::read_dir(results()).expect("pages").map(|entry| entry.expect("a page").path());
    for path in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let page = fs::read_to_string(&path).expect("a page");
        for (command, table) in tables(&page) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let output = quorate_in(&results(), &words);
            assert!(output.status.success(), "{}: {command}: {}", path.display(), stderr(&output));
            let printed = stdout(&output);
            assert_eq!(table, printed, "{}: {command} prints\n{printed}", path.display());
            checked += 1;
        }
    }
    assert!(checked > 0, "no page has a table of lines");
}

/// Lines of a tree that was changed after its commit say nothing of that commit.
#[test]
fn kept_lines_are_of_commits_and_small() {
    let lines = fs::read_dir(results().join("lines")).expect("lines");
    for path in lines.map(|entry| entry.expect("lines").path()) {
        let text = fs::read_to_string(&path).expect("lines");
        assert!(text.len() < 1_000_000, "{}: {} bytes", path.display(), text.len());
        for line in text.lines() {
            let record: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
            let commit = record["machine"]["commit"].as_str().expect("a commit");
            assert!(!commit.contains("dirty"), "{}: {commit}", path.display());
        }
    }
}
