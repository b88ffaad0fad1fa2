//! docs/rules.md says which test holds which rule, docs/bounds.md what bounds each collection: both
//! are held here against the sources.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rust sources of the crate, by their paths below `src`.
fn sources() -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&src).expect("below it").to_string_lossy();
                found.push((name.into_owned(), read(&path)));
            }
        }
    }
    found
}

fn is_test(path: &str) -> bool {
    path.contains("tests")
}

/// Cells of the rows of a page's tables, without the code marks around them.
fn rows(page: &str) -> Vec<Vec<String>> {
    let text = read(&root().join("docs").join(page));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| ")).map(cells).collect();
    assert!(rows.len() > 10, "{page} is read as it is written");
    rows
}

/// Tests of a file, each with the comment above it.
fn tests(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let (mut comment, mut marked) = (String::new(), false);
    for line in text.lines() {
        let line = line.strip_prefix("pub(super) ").unwrap_or(line);
        if let Some(name) = line.strip_prefix("fn ").filter(|_| marked) {
            let name = name.split('(').next().expect("a name");
            found.push((name.to_owned(), std::mem::take(&mut comment)));
        }
        if let Some(said) = line.strip_prefix("/// ") {
            comment += said;
        } else if line != "#[test]" {
            comment.clear();
        }
        marked = line == "#[test]";
    }
    found
}

/// Name by which cargo knows a test of this file.
fn path_of(file: &str, test: &str) -> String {
    let module = file.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    format!("{module}::{test}")
}

#[test]
fn every_rule_names_a_test() {
    let known: Vec<(String, String)> = sources()
        .iter()
        .filter(|(file, _)| is_test(file))
        .flat_map(|(file, text)| {
            tests(text).into_iter().map(|(name, comment)| (path_of(file, &name), comment))
        })
        .collect();
    let rows = rows("rules.md");
    let named: Vec<&String> = rows.iter().filter_map(|row| row.get(2)).collect();
    for row in named.iter().filter(|row| row.contains("::")) {
        assert!(known.iter().any(|(test, _)| test == *row), "{row} is a test");
    }
    let families = ["windowed::", "chained::", "hotstuff::"];
    let of_safety = known.iter().filter(|(test, comment)| {
        comment.contains('★') && families.iter().any(|family| test.starts_with(family))
    });
    for (test, _) in of_safety {
        assert!(named.contains(&test), "{test} holds a ★ rule and has no row");
    }
}

/// Name of the field that a line declares, if it is a collection.
fn collection(line: &str) -> Option<&str> {
    let line = line.strip_prefix("    ").filter(|line| !line.starts_with(' '))?;
    let line = line.strip_prefix("pub(super) ").unwrap_or(line);
    let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
    let (name, kind) = line.split_once(": ")?;
    let kinds = ["BTreeMap<", "BTreeSet<", "VecDeque<", "HashMap<", "HashSet<"];
    let is_field = name.chars().all(|letter| letter.is_lowercase() || letter == '_');
    (is_field && kinds.iter().any(|of| kind.starts_with(of))).then_some(name)
}

#[test]
fn every_collection_has_a_bound() {
    let rows = rows("bounds.md");
    let has_row = |file: &str, field: &str| {
        rows.iter().any(|row| row.len() == 5 && row[0] == file && row[1] == field)
    };
    let sources = sources();
    let mut count = 0;
    for (file, text) in sources.iter().filter(|(file, _)| !is_test(file)) {
        for field in text.lines().filter_map(collection) {
            count += 1;
            assert!(has_row(file, field), "{field} of {file} has no row in docs/bounds.md");
        }
    }
    assert!(count > 20, "fields are read as they are written: {count}");
    for row in rows.iter().filter(|row| row[0].ends_with(".rs")) {
        let file = sources.iter().find(|(file, _)| *file == row[0]);
        let (_, text) = file.unwrap_or_else(|| panic!("{} is a file", row[0]));
        assert!(text.contains(&format!("{}: ", row[1])), "{} has a field {}", row[0], row[1]);
    }
}
