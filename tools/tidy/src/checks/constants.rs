//! No number is written down in two crates under one name.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeMap;

/// Names that mean something else in each place, with what that is.
const ALLOWED: [(&str, &str); 5] = [
    ("BODIES_MAX", "bodies in a certificate of availability, and in a block"),
    ("BYTES_MAX", "of a token, and of a memo"),
    ("COPY_BYTES_MAX", "frames that are copied for TLS, and records that are copied for the log"),
    ("MIB", "a unit"),
    ("PARTS", "a unit of shares in fixed-point arithmetic"),
];

/// Constants of one name and one literal value in several crates: one of them is a copy.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut seen: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
    for source in tree.sources.iter().filter(|source| source.path.contains("/src/")) {
        for at in (0..source.tokens.len()).filter(|&at| source.word(at) == "const") {
            let Some(value) = number(source, at) else { continue };
            if ALLOWED.iter().any(|(name, _)| *name == source.word(at + 1)) {
                continue;
            }
            let place = format!("{}:{}", source.path, source.tokens[at].line);
            let package = source.path.split('/').take(2).collect::<Vec<_>>().join("/");
            let key = (source.word(at + 1).to_owned(), value);
            seen.entry(key).or_default().push((package, place));
        }
    }
    let copied = seen.into_iter().filter(|(_, places)| places.iter().any(|p| p.0 != places[0].0));
    copied
        .map(|((name, value), places)| Finding {
            place: places.into_iter().map(|(_, place)| place).collect::<Vec<_>>().join(", "),
            advice: format!("`{name}` is {value} in several crates: define it once, in the lowest"),
        })
        .collect()
}

/// Value of the constant at `at` if digits, units and arithmetic are all there is to it.
fn number(source: &crate::source::Source, at: usize) -> Option<String> {
    if source.is_test(at) || !source.is_word(at + 1) {
        return None;
    }
    let end = (at..source.tokens.len()).find(|&at| source.is_sign(at, b';'))?;
    let equals = (at..end).find(|&at| source.is_sign(at, b'='))?;
    let words: Vec<&str> = (equals + 1..end).map(|at| source.word(at)).collect();
    let digits = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let plain = |word: &&str| digits(word) || ["*", "<", "-", "+", "_"].contains(word);
    let told = words.iter().all(plain) && words.concat().len() >= 3;
    told.then(|| words.concat())
}
