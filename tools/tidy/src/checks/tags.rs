//! Numbers of frames stand in one table: nobody compares a tag with a number of its own.

use crate::finding::Finding;
use crate::scan::Kind;
use crate::source::Source;
use crate::tree::Tree;

/// Tags beyond any that frames have.
const TAG_MAX: u64 = 64;

/// Comparisons of a tag with a number, and constants that are lists of such numbers, outside the
/// files that define an enumeration of tags.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let code = tree.sources.iter().filter(|source| source.path.starts_with("crates/"));
    code.filter(|source| !defines_tags(source)).flat_map(literal_tags).collect()
}

fn defines_tags(source: &Source) -> bool {
    (0..source.tokens.len())
        .any(|at| source.word(at) == "enum" && source.word(at + 1).ends_with("Tag"))
}

fn literal_tags(source: &Source) -> Vec<Finding> {
    let places = (0..source.tokens.len()).filter(|&at| !source.is_test(at));
    let literal = places.filter(|&at| match source.word(at) {
        "tag" => is_compared(source, at + 1) || is_matched(source, at + 1),
        "const" => is_list(source, at + 1),
        _ => false,
    });
    let advice = "a tag by its number: name it by the table of tags";
    literal
        .map(|at| Finding::new(&source.path, source.tokens[at].line, advice.to_owned()))
        .collect()
}

/// Returns `true` for `== 3`, `!= 3`, `<= 3` and the like, behind a tag.
fn is_compared(source: &Source, at: usize) -> bool {
    let sign = |at: usize| ["=", "!", "<", ">"].contains(&source.word(at));
    sign(at) && source.is_sign(at + 1, b'=') && number(source, at + 2).is_some()
}

/// Returns `true` for `{ 3 =>` behind `match tag`, and for `, 3 |` behind `matches!(tag`.
fn is_matched(source: &Source, at: usize) -> bool {
    let matches = at > 2 && source.word(at - 2) == "(" && source.word(at - 3) == "!";
    let opens = source.is_sign(at, b'{') || (matches && source.is_sign(at, b','));
    opens && number(source, at + 1).is_some()
}

/// Returns `true` for a constant `NAME: [u8; 4] = [2, 3, 7, 8]`.
fn is_list(source: &Source, name: usize) -> bool {
    let typed = source.is_sign(name + 1, b':') && source.word(name + 3) == "u8";
    let Some(open) = (name..name + 12).find(|&at| source.is_sign(at, b'=')) else { return false };
    let open = if source.is_sign(open + 1, b'&') { open + 2 } else { open + 1 };
    if !typed || !source.is_sign(open, b'[') {
        return false;
    }
    let inside = open + 1..source.behind(open) - 1;
    let mut listed = inside.filter(|&at| !source.is_sign(at, b','));
    listed.all(|at| number(source, at).is_some_and(|number| number <= TAG_MAX))
}

fn number(source: &Source, at: usize) -> Option<u64> {
    let word = source.tokens.get(at).filter(|token| token.kind == Kind::Word);
    word.and_then(|_| source.word(at).trim_end_matches("u8").parse().ok())
}
