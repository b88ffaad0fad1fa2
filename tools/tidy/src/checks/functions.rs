//! A function fits on a screen.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

const LINES_MAX: usize = 70;

/// Functions that are too long, from the line of `fn` to that of the closing brace; tests too.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.sources.iter().flat_map(long_functions).collect()
}

fn long_functions(source: &Source) -> Vec<Finding> {
    let functions = (0..source.tokens.len()).filter(|&at| source.word(at) == "fn");
    functions
        .filter_map(|at| {
            let lines = lines_of(source, at)?;
            let advice = format!(
                "`{}` has {lines} lines, {LINES_MAX} are the most: split it by what it does",
                source.word(at + 1)
            );
            (lines > LINES_MAX).then(|| Finding::new(&source.path, source.tokens[at].line, advice))
        })
        .collect()
}

/// Number of lines of the function whose `fn` is at `at`; `None` for types and declarations.
fn lines_of(source: &Source, at: usize) -> Option<usize> {
    if !source.is_word(at + 1) {
        return None;
    }
    let mut open = at + 2;
    while open < source.tokens.len() && !source.is_sign(open, b'{') {
        if source.is_sign(open, b';') {
            return None;
        }
        let bracket = source.is_sign(open, b'(') || source.is_sign(open, b'[');
        open = if bracket { source.behind(open) } else { open + 1 };
    }
    let last = source.tokens.get(source.behind(open) - 1)?;
    Some(last.line - source.tokens[at].line + 1)
}
