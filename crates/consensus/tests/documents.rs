//! docs/rules.md says which test holds which rule, docs/bounds.md what bounds each collection of
//! the protocols' machines and of the engine: both are held here against the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Rust sources below a folder, by their paths from there.
fn sources(folder: &str) -> Vec<(String, String)> {
    let src = root().join(folder);
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

fn page(name: &str) -> String {
    read(&root().join("docs").join(name))
}

/// Cells of a line, without the code marks around them; `None` where it is no row of a table.
fn cells(line: &str) -> Option<Vec<String>> {
    let cells = line.strip_prefix("| ")?.trim_end_matches('|').split(" | ");
    Some(cells.map(|cell| cell.trim().trim_matches('`').to_owned()).collect())
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
    let known: Vec<(String, String)> = sources("crates/consensus/src")
        .iter()
        .filter(|(file, _)| is_test(file))
        .flat_map(|(file, text)| {
            tests(text).into_iter().map(|(name, comment)| (path_of(file, &name), comment))
        })
        .collect();
    let page = page("rules.md");
    let rows: Vec<Vec<String>> = page.lines().filter_map(cells).collect();
    assert!(rows.len() > 10, "the page is read as it is written");
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

/// Field of a struct or of an enum's variant.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Field {
    /// Folder of the sources.
    folder: String,
    /// Path of the file from there.
    file: String,
    /// Its name, or its place where it has none.
    name: String,
}

/// Fields with a row in docs/bounds.md. Each section says in which folder its files are.
fn bounded_fields(page: &str) -> BTreeSet<Field> {
    let (mut folder, mut rows) = (None, BTreeSet::new());
    for line in page.lines() {
        if line.starts_with("## ") {
            folder = None;
        } else if let Some(said) = line.strip_prefix("Files are below `") {
            folder = said.split('`').next();
        }
        let Some(row) = cells(line).filter(|row| row[0] != "where") else { continue };
        assert!(row.len() == 5 && row.iter().all(|cell| !cell.is_empty()), "{line} has five cells");
        let folder = folder.expect("a section says below which folder its files are").to_owned();
        rows.insert(Field { folder, file: row[0].clone(), name: row[1].clone() });
    }
    rows
}

/// Fields that the sources of a folder declare outside tests, each with its type.
fn declared_fields(folder: &str) -> Vec<(Field, String)> {
    let is_fixture = |file: &str| is_test(file) || file.starts_with("testing");
    let mut declared = Vec::new();
    for (file, text) in sources(folder).iter().filter(|(file, _)| !is_fixture(file)) {
        for (name, kind) in fields_of(text) {
            declared.push((Field { folder: folder.to_owned(), file: file.clone(), name }, kind));
        }
    }
    declared
}

/// Names and types of the fields that a file declares before its tests.
fn fields_of(text: &str) -> Vec<(String, String)> {
    let lines = code_lines(text);
    let declarations = (0..lines.len()).filter(|at| {
        let first = without_visibility(lines[*at]).split(' ').next();
        matches!(first, Some("struct" | "enum"))
    });
    let mut found = Vec::new();
    for at in declarations {
        let rest = lines[at..].join(" ").replace("->", "");
        found.extend(bracketed(without_visibility(&rest)).map(fields).unwrap_or_default());
    }
    found
}

/// Lines before a file's tests, without indentation, comments and attributes.
fn code_lines(text: &str) -> Vec<&str> {
    let text = text.split("\nmod tests {").next().unwrap_or(text);
    let mut in_attribute = false;
    let is_code = |line: &&str| {
        in_attribute |= line.starts_with("#[");
        let is_code = !in_attribute;
        in_attribute &= !line.ends_with(']');
        is_code && !line.is_empty()
    };
    text.lines().map(without_comment).filter(is_code).collect()
}

fn without_comment(line: &str) -> &str {
    line.split("//").next().unwrap_or(line).trim()
}

fn without_visibility(declaration: &str) -> &str {
    let Some(rest) = declaration.strip_prefix("pub") else { return declaration };
    match rest.strip_prefix('(').and_then(|within| within.split_once(") ")) {
        Some((_, rest)) => rest,
        None => rest.strip_prefix(' ').unwrap_or(declaration),
    }
}

/// Change of the depth of brackets at a letter.
fn nesting(letter: char) -> i32 {
    i32::from("<([{".contains(letter)) - i32::from(">)]}".contains(letter))
}

/// Content of the braces or parentheses that a declaration opens; `None` where it has none.
fn bracketed(declaration: &str) -> Option<&str> {
    let (mut depth, mut open) = (0, None);
    for (at, letter) in declaration.char_indices() {
        match letter {
            ';' if depth == 0 => return None,
            '{' | '(' if depth == 0 => open = Some(at + 1),
            _ => {}
        }
        depth += nesting(letter);
        if let Some(open) = open.filter(|_| depth == 0) {
            return Some(&declaration[open..at]);
        }
    }
    None
}

/// Fields in the list between a declaration's brackets, those of an enum's variants among them. One
/// without a name has its place.
fn fields(list: &str) -> Vec<(String, String)> {
    let mut depth = 0;
    let is_end = |letter: char| {
        depth += nesting(letter);
        letter == ',' && depth == 0
    };
    let is_word = |word: &str| word.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let mut found = Vec::new();
    for (place, one) in list.split(is_end).enumerate() {
        let one = without_visibility(one.trim());
        let variant = one.split(['{', '(']).next().filter(|name| is_word(name.trim()));
        if let Some((name, kind)) = one.split_once(": ").filter(|(name, _)| is_word(name)) {
            found.push((name.to_owned(), kind.to_owned()));
        } else if variant.is_some() {
            found.extend(bracketed(one).map(fields).unwrap_or_default());
        } else {
            found.push((place.to_string(), one.to_owned()));
        }
    }
    found
}

fn is_collection(kind: &str) -> bool {
    let kinds = ["BTreeMap<", "BTreeSet<", "VecDeque<", "HashMap<", "HashSet<"];
    kinds.iter().any(|of| kind.contains(of))
}

#[test]
fn every_collection_has_a_bound() {
    let rows = bounded_fields(&page("bounds.md"));
    let mut known = BTreeSet::new();
    for (folder, least) in [("crates/consensus/src", 30), ("crates/engine/src", 60)] {
        let declared = declared_fields(folder);
        let collections = || declared.iter().filter(|(_, kind)| is_collection(kind));
        assert!(collections().count() > least, "fields of {folder} are read as they are written");
        let unbounded: Vec<_> = collections().filter(|(of, _)| !rows.contains(of)).collect();
        assert!(unbounded.is_empty(), "docs/bounds.md has no row for {unbounded:#?}");
        known.extend(declared.into_iter().map(|(field, _)| field));
    }
    let gone: Vec<_> = rows.difference(&known).collect();
    assert!(gone.is_empty(), "docs/bounds.md has rows for fields that are gone: {gone:#?}");
}

/// Whatever form a field has, it is seen.
#[test]
fn fields_are_read_in_every_form() {
    let text = "
pub(crate) struct Book<T: Fn(u8) -> u8> {
    /// A comment: BTreeSet<u8>, of no field.
    pub first: BTreeMap<u8, (u8, u16)>, // another: VecDeque<u8>
    #[serde(
        default
    )]
    pub(super) second:
        VecDeque<Option<u8>>,
    third: Mutex<
        BTreeSet<u8>,
    >,
    check: Box<dyn Fn(u8) -> u8>,
}
struct Wrapper(pub BTreeMap<(u8, u8), u8>);
enum Phase {
    Idle,
    Asking { at: u8, offers: BTreeMap<u8, u8> },
    Of(u8, BTreeSet<u8>),
}
pub struct Nothing;

#[cfg(test)]
mod tests {
    struct Fixture {
        of: BTreeMap<u8, u8>,
    }
}
";
    let collections = fields_of(text).into_iter().filter(|(_, kind)| is_collection(kind));
    let names: Vec<String> = collections.map(|(name, _)| name).collect();
    assert_eq!(names, ["first", "second", "third", "0", "offers", "1"]);
}
