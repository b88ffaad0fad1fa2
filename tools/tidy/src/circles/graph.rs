//! A graph of files, and its strongly connected components.

use std::collections::{BTreeMap, BTreeSet};

/// Imports between files.
#[derive(Default)]
pub(super) struct Graph {
    /// By importer and imported file: the names imported.
    pub(super) edges: BTreeMap<(String, String), BTreeSet<String>>,
}

impl Graph {
    /// Adds an import of `name`; a file's own names are none.
    pub(super) fn add(&mut self, from: &str, to: &str, name: &str) {
        if from != to {
            let key = (from.to_owned(), to.to_owned());
            self.edges.entry(key).or_default().insert(name.to_owned());
        }
    }

    /// Components of two files or more, in the order of their first file.
    pub(super) fn components(&self) -> Vec<BTreeSet<String>> {
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut back: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (from, to) in self.edges.keys() {
            next.entry(from).or_default().push(to);
            back.entry(to).or_default().push(from);
        }
        let mut placed = BTreeSet::new();
        let mut found = Vec::new();
        for &file in next.keys() {
            if placed.contains(file) {
                continue;
            }
            let ahead = reachable(&next, file);
            let component: BTreeSet<&str> =
                reachable(&back, file).intersection(&ahead).copied().collect();
            placed.extend(component.iter().copied());
            if component.len() > 1 {
                found.push(component.into_iter().map(str::to_owned).collect());
            }
        }
        found
    }
}

/// Everything that can be reached from a file, itself included.
fn reachable<'a>(edges: &BTreeMap<&'a str, Vec<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(file) = waiting.pop() {
        for &to in edges.get(file).into_iter().flatten() {
            if seen.insert(to) {
                waiting.push(to);
            }
        }
    }
    seen
}
