//! Decisions are numbered without gaps, listed, and exist where they are mentioned.

use crate::finding::Finding;
use crate::tree::Tree;
use std::collections::BTreeMap;

const FOLDER: &str = "docs/adr/";
const INDEX: &str = "docs/adr/README.md";

/// Gaps, duplicates, pages that the index does not link, and mentions of pages that are not there.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut pages: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for name in tree.pages.keys().filter_map(|path| path.strip_prefix(FOLDER)) {
        match name.split('-').next().and_then(|number| number.parse().ok()) {
            Some(number) => pages.entry(number).or_default().push(name),
            None if name == "README.md" => {}
            None => return vec![Finding::new(name, 1, "begin its name with a number".to_owned())],
        }
    }
    let mut found = numbering(&pages);
    let index = tree.page(INDEX);
    for name in pages.values().flatten().filter(|name| !index.contains(&format!("({name})"))) {
        found.push(Finding::new(INDEX, 1, format!("link {name}")));
    }
    let sources = tree.sources.iter().map(|source| (&source.path, source.text.as_str()));
    let texts = sources.chain(tree.pages.iter().map(|(path, text)| (path, text.as_str())));
    for (path, text) in texts {
        for (line, number) in mentions(text).filter(|(_, number)| !pages.contains_key(number)) {
            found.push(Finding::new(path, line, format!("there is no ADR {number}")));
        }
    }
    found
}

fn numbering(pages: &BTreeMap<usize, Vec<&str>>) -> Vec<Finding> {
    let last = pages.keys().next_back().copied().unwrap_or_default();
    (1..=last)
        .filter_map(|number| match pages.get(&number).map_or(0, Vec::len) {
            0 => Some(format!("number {number} is missing")),
            1 => None,
            _ => Some(format!("number {number} is given twice")),
        })
        .map(|advice| Finding { place: FOLDER.to_owned(), advice })
        .collect()
}

/// Numbers behind the word ADR, with their lines.
fn mentions(text: &str) -> impl Iterator<Item = (usize, usize)> {
    text.lines().enumerate().flat_map(|(at, line)| {
        line.split(concat!("AD", "R ")).skip(1).filter_map(move |rest| {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().ok().map(|number| (at + 1, number))
        })
    })
}
