//! Every Rust file of a crate belongs to a program: one that no `mod` names is neither built nor
//! tested.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;
use std::collections::BTreeSet;

/// Files that Cargo makes no program of, and that no module names.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let named: BTreeSet<String> =
        tree.sources.iter().flat_map(|source| modules_of(tree, source)).collect();
    let lost = |source: &&Source| {
        let path = &source.path;
        path.starts_with("crates/") && !is_root(tree, path) && !named.contains(path)
    };
    let advice = "no `mod` names this file, nor does the package's `Cargo.toml`";
    let lost = tree.sources.iter().filter(lost);
    lost.map(|source| Finding::new(&source.path, 1, advice.to_owned())).collect()
}

/// Files where the modules that a source names may be.
fn modules_of(tree: &Tree, source: &Source) -> Vec<String> {
    let stem = source.path.trim_end_matches(".rs");
    let folder = match stem.rsplit_once('/') {
        Some((folder, name)) if name == "mod" || is_root(tree, &source.path) => folder,
        _ => stem,
    };
    let names = (0..source.tokens.len()).filter(|&at| source.word(at) == "mod");
    let files = names.map(|at| format!("{folder}/{}", source.word(at + 1)));
    files.flat_map(|file| [format!("{file}.rs"), format!("{file}/mod.rs")]).collect()
}

/// Returns `true` if Cargo makes a program or a library of a file: by its place, or because the
/// package says so. A package that lists its tests has no others.
fn is_root(tree: &Tree, path: &str) -> bool {
    let mut parts = path.splitn(4, '/');
    let (Some(group), Some(name)) = (parts.next(), parts.next()) else { return false };
    let manifest = tree.manifests.get(&format!("{group}/{name}")).map_or("", String::as_str);
    let inside = path.strip_prefix(&format!("{group}/{name}/")).unwrap_or_default();
    match (parts.next(), parts.next()) {
        (Some("build.rs"), None) => true,
        (Some("src"), Some(file)) => file == "lib.rs" || file == "main.rs",
        (Some("tests"), Some(_)) if manifest.contains("autotests = false") => {
            manifest.contains(&format!("path = \"{inside}\""))
        }
        (Some("tests" | "examples" | "benches"), Some(file)) => {
            !file.contains('/') || file.ends_with("/main.rs")
        }
        _ => false,
    }
}
