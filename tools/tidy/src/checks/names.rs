//! Files and items that documents and comments name in code font are there under that name.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Pages that tell what was, in the words of then.
const HISTORY: [&str; 2] = ["docs/results/", "CHANGELOG.md"];

/// Files that no path ends with, and items of our own crates and types that no source names.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in &tree.pages {
        if is_history(path) {
            continue;
        }
        for (line, span) in spans(text.lines()) {
            found.extend(missing(tree, span).map(|advice| Finding::new(path, line, advice)));
        }
    }
    let words = words(tree);
    for (path, text) in tree.pages.iter().filter(|(path, _)| !is_history(path)) {
        let unknown = spans(text.lines()).filter_map(|(line, span)| {
            let advice = unknown(tree, span, &words)?;
            Some(Finding::new(path, line, advice))
        });
        found.extend(unknown);
    }
    for source in &tree.sources {
        let comments = source.text.lines().map(|line| line.split_once("//").map_or("", |(_, c)| c));
        for (line, span) in spans(comments) {
            found.extend(missing(tree, span).map(|a| Finding::new(&source.path, line, a)));
        }
    }
    found
}

/// Spans in code font within a line, with its number.
fn spans<'a>(lines: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (usize, &'a str)> {
    lines
        .enumerate()
        .flat_map(|(at, line)| line.split('`').skip(1).step_by(2).map(move |span| (at + 1, span)))
}

/// Advice about a span that is the name of a Rust file that does not exist.
fn missing(tree: &Tree, span: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ['_', '/', '-', '.'].contains(&c);
    if !span.ends_with(".rs") || !span.chars().all(plain) {
        return None;
    }
    let suffix = format!("/{span}");
    let exists = tree.paths.iter().any(|path| path == span || path.ends_with(&suffix));
    (!exists).then(|| format!("names {span}, which no file is called"))
}

/// Words of all sources.
fn words(tree: &Tree) -> BTreeSet<&str> {
    let all = tree.sources.iter().flat_map(|source| {
        (0..source.tokens.len()).filter(|&at| source.is_word(at)).map(|at| source.word(at))
    });
    all.collect()
}

/// Advice about a span `crate::item` or `Type::item` of ours whose last word no source has.
fn unknown(tree: &Tree, span: &str, words: &BTreeSet<&str>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let (first, rest) = span.split_once("::").filter(|_| span.chars().all(plain))?;
    let crates = tree.paths.contains(&format!("crates/{}", first.trim_start_matches("quorate_")));
    let ours = crates || first.starts_with(|c: char| c.is_uppercase());
    let last = rest.rsplit("::").next().filter(|last| ours && !words.contains(last))?;
    Some(format!("names `{span}`, but nothing is called {last}"))
}

fn is_history(path: &str) -> bool {
    HISTORY.iter().any(|history| path.starts_with(history))
}
