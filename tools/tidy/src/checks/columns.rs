//! No line is wider than a window: neither code, which `rustfmt` leaves where a string is in the
//! way, nor comments, which it does not touch.

use crate::finding::Finding;
use crate::scan::Part;
use crate::source::Source;
use crate::tree::Tree;

const COLUMNS_MAX: usize = 100;

/// Lines that are too wide. Text between quotes is not counted in code: a message stays in one
/// piece, so that it is found by searching for it.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(wide_lines).collect()
}

fn wide_lines(source: &Source) -> impl Iterator<Item = Finding> {
    source.lines().filter_map(|(number, offset, line)| {
        let parts = &source.parts[offset..offset + line.len()];
        let counted = line.char_indices().filter(|&(at, _)| parts[at] != Part::Text).count();
        let comment = line.trim_start().starts_with("//");
        let columns = if comment { line.chars().count() } else { counted };
        (columns > COLUMNS_MAX).then(|| {
            let advice = format!("{columns} columns: wrap it at {COLUMNS_MAX}");
            Finding::new(&source.path, number, advice)
        })
    })
}
