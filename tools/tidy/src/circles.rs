//! Files that import one another in a circle can only be read together.
//!
//! An edge runs from a file to the file that *defines* what it names: a name that a parent hands on
//! (`pub use`) counts for its definition and not for the parent, and a method that is called counts
//! for nothing. A child that names what its parent defines is part of that parent, not above it.
//! What only tests import is left out.

mod graph;
mod modules;
mod paths;
#[cfg(test)]
mod tests;

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use graph::Graph;
use modules::Package;
use std::collections::{BTreeMap, BTreeSet};

/// Circles that may be, by their files, each with the reason why it does no harm.
const ALLOWED: &[(&[&str], &str)] = &[];

/// Files that import one another, with the names that tie them.
pub(crate) struct Circle {
    pub(crate) files: Vec<String>,
    /// From, to, and the names that the first takes from the second.
    pub(crate) edges: Vec<(String, String, Vec<String>)>,
}

/// Circles that are not among the harmless ones.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let harmless = |circle: &Circle| {
        let allowed = |files: &[&str]| circle.files.iter().all(|file| files.contains(&&**file));
        ALLOWED.iter().any(|(files, _)| allowed(files))
    };
    let circles = find(tree).into_iter().filter(|circle| !harmless(circle));
    circles
        .map(|circle| Finding { place: circle.files.join(", "), advice: advice(&circle) })
        .collect()
}

fn advice(circle: &Circle) -> String {
    let mut text = "these import one another: move what both need below them".to_owned();
    for (from, to, names) in &circle.edges {
        text += &format!("\n    {from} -> {to}: {}", names.join(", "));
    }
    text
}

/// All circles of all packages.
fn find(tree: &Tree) -> Vec<Circle> {
    let mut packages: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in &tree.sources {
        if let Some((package, _)) = source.path.split_once("/src/") {
            packages.entry(package).or_default().push(source);
        }
    }
    packages.into_values().flat_map(|sources| circles_of(&sources)).collect()
}

fn circles_of(sources: &[&Source]) -> Vec<Circle> {
    let mut graph = Graph::default();
    let roots = sources.iter().filter(|source| {
        ["src/lib.rs", "src/main.rs"].iter().any(|root| source.path.ends_with(root))
    });
    for root in roots {
        let package = Package::new(sources, root);
        paths::add_edges(&package, &mut graph);
    }
    let components = graph.components();
    components.into_iter().map(|files| circle(&graph, files)).collect()
}

fn circle(graph: &Graph, files: BTreeSet<String>) -> Circle {
    let inside =
        graph.edges.iter().filter(|((from, to), _)| files.contains(from) && files.contains(to));
    let edges = inside
        .map(|((from, to), names)| (from.clone(), to.clone(), names.iter().cloned().collect()))
        .collect();
    Circle { files: files.into_iter().collect(), edges }
}
