//! Nothing is public that only tests use.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Items that may be unused, each with its reason.
const ALLOWED: [(&str, &str); 4] = [
    ("assert_noticed", "for the tests of every crate"),
    ("CHAINED", "for the tests of every crate"),
    ("WINDOWED", "for the tests of every crate"),
    ("rejections", "a test of real sockets waits for what it counts"),
];

const KEYWORDS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];
const QUALIFIERS: [&str; 4] = ["const", "async", "unsafe", "extern"];

/// Public items and fields whose names nothing but their definitions, imports and tests have.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut used = BTreeSet::new();
    let mut public: BTreeMap<&str, Finding> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| !source.is_test_file()) {
        let mut at = 0;
        while at < source.tokens.len() {
            if source.word(at) == "use" && !source.is_sign(at + 1, b'<') {
                at = behind_use(source, at);
                continue;
            }
            if source.is_word(at) && !source.is_test(at) {
                if let Some(name) = defined(source, at) {
                    let line = source.tokens[at].line;
                    let advice = format!(
                        "`{name}` is public and only tests name it: make it \
                                          private to them, or remove it"
                    );
                    public.entry(name).or_insert_with(|| Finding::new(&source.path, line, advice));
                }
                if !is_definition(source, at) {
                    used.insert(source.word(at));
                }
            }
            at += 1;
        }
    }
    let allowed = |name: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == name);
    public.retain(|name, _| !used.contains(name) && !allowed(name));
    public.into_values().collect()
}

fn behind_use(source: &Source, at: usize) -> usize {
    (at..source.tokens.len()).find(|&at| source.is_sign(at, b';')).unwrap_or(source.tokens.len())
}

/// Name of the item or field that the `pub` at a place makes public everywhere.
fn defined(source: &Source, at: usize) -> Option<&str> {
    if source.word(at) != "pub" || !source.is_word(at + 1) {
        return None;
    }
    let mut next = at + 1;
    while QUALIFIERS.contains(&source.word(next))
        && source.is_word(next + 1)
        && (KEYWORDS.contains(&source.word(next + 1))
            || QUALIFIERS.contains(&source.word(next + 1)))
    {
        next += 1;
    }
    let field = source.is_sign(next + 1, b':') && !source.is_sign(next + 2, b':');
    match source.word(next) {
        name if field => Some(name),
        keyword if KEYWORDS.contains(&keyword) && source.is_word(next + 1) => {
            Some(source.word(next + 1))
        }
        _ => None,
    }
}

/// Returns `true` if the word is the name in a definition: of an item, or of a public field.
fn is_definition(source: &Source, at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    KEYWORDS.contains(&source.word(before)) || defined(source, before) == Some(source.word(at))
}
