//! Documentation begins with a noun or a verb and says what the name does not.

use crate::finding::Finding;
use crate::source::Source;
use crate::tree::Tree;

const WORDS_MIN: usize = 4;
/// Share of blocks that may begin with an interrogative, in thousandths.
const INTERROGATIVES_PER_MILLE_MAX: usize = 50;
const INTERROGATIVES: [&str; 10] =
    ["what", "who", "whom", "whose", "which", "whether", "how", "when", "where", "why"];

/// Consecutive lines of documentation.
struct Block {
    line: usize,
    text: String,
    /// First line of code after it, attributes left out.
    item: String,
    /// Index of the first token behind it.
    token: usize,
    inner: bool,
}

/// All blocks that begin with an interrogative, if they are more than may be.
pub(super) fn interrogatives(tree: &Tree) -> Vec<Finding> {
    let (mut all, mut found) = (0, Vec::new());
    for source in &tree.sources {
        for block in blocks(source) {
            all += 1;
            let first = block.text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            if INTERROGATIVES.contains(&first.to_lowercase().as_str()) {
                let advice = format!("begins with “{first}”: name the thing, or what it does");
                found.push(Finding::new(&source.path, block.line, advice));
            }
        }
    }
    let few = found.len() * 1_000 <= all * INTERROGATIVES_PER_MILLE_MAX;
    if few { Vec::new() } else { found }
}

/// Blocks of fewer than four words on public items.
pub(super) fn short(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &tree.sources {
        let scopes = Scopes::of(source);
        for block in blocks(source) {
            let words = block.text.split_whitespace().count();
            if words < WORDS_MIN && !block.inner && scopes.is_public(source, &block) {
                let advice = format!("`{}` says no more than its name", block.text);
                found.push(Finding::new(&source.path, block.line, advice));
            }
        }
    }
    found
}

fn blocks(source: &Source) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<&str> = None;
    for (number, offset, line) in source.lines() {
        let line = line.trim_start();
        let mark = line.get(..3).filter(|mark| ["///", "//!"].contains(mark));
        let mark = mark.filter(|_| !line.starts_with("////") && is_comment(source, offset, line));
        if let Some(mark) = mark {
            let text = line[3..].trim();
            match found.last_mut() {
                Some(block) if open == Some(mark) => {
                    block.text = format!("{} {text}", block.text).trim().to_owned();
                }
                _ => found.push(Block {
                    line: number,
                    text: text.to_owned(),
                    item: String::new(),
                    token: source.tokens.partition_point(|token| token.start < offset),
                    inner: mark == "//!",
                }),
            }
        }
        open = mark;
    }
    for block in &mut found {
        block.item = item(source, block.token);
    }
    found
}

/// Returns `true` unless the line is part of a string.
fn is_comment(source: &Source, offset: usize, line: &str) -> bool {
    let indent = source.text[offset..].len() - source.text[offset..].trim_start().len();
    !line.is_empty() && source.parts[offset + indent] == crate::scan::Part::Comment
}

/// First two words of the item at a token, behind its attributes.
fn item(source: &Source, mut at: usize) -> String {
    while source.is_sign(at, b'#') {
        at = source.behind(at + 1);
    }
    format!("{} {}", source.word(at), source.word(at + 1))
}

/// For each token, the block that it stands in.
struct Scopes {
    /// Publicity of the innermost block around each token, if it is an enumeration or a trait.
    public: Vec<bool>,
}

impl Scopes {
    fn of(source: &Source) -> Self {
        let (mut stack, mut header) = (vec![false], 0);
        let mut public = Vec::with_capacity(source.tokens.len());
        for at in 0..source.tokens.len() {
            public.push(stack.last().is_some_and(|&last| last));
            match () {
                () if source.is_sign(at, b'{') => {
                    let inherited = public[at];
                    stack.push(opens_public(source, header, at, inherited));
                    header = at + 1;
                }
                () if source.is_sign(at, b'}') => {
                    stack.pop();
                    header = at + 1;
                }
                () if source.is_sign(at, b';') || source.is_sign(at, b',') => header = at + 1,
                () => {}
            }
        }
        Self { public }
    }

    fn is_public(&self, source: &Source, block: &Block) -> bool {
        let own = block.item.starts_with("pub ") && block.item != "pub (";
        own || (self.public.get(block.token).is_some_and(|&public| public)
            && !source.is_test(block.token))
    }
}

/// Returns `true` if the block at `open`, with a header from `start`, is of an enumeration, a
/// variant or a trait that is public.
fn opens_public(source: &Source, start: usize, open: usize, inherited: bool) -> bool {
    let words: Vec<&str> = (start..open).map(|at| source.word(at)).collect();
    let public = words.windows(2).any(|pair| pair[0] == "pub" && pair[1] != "(");
    let kind = words.iter().find(|word| ["enum", "trait", "fn", "struct", "impl"].contains(word));
    match kind {
        Some(&"enum" | &"trait") => public,
        Some(_) => false,
        // A variant with fields stands directly in its enumeration.
        None => inherited && !words.contains(&"="),
    }
}
