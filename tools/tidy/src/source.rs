//! A Rust file, scanned: its lines, its tokens, and which of them belong to tests.

use crate::scan::{Kind, Part, Scanned, Token, scan};
use std::ops::Range;

/// A Rust file of the tree.
pub(crate) struct Source {
    /// Path from the tree's root, with `/` between folders.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) parts: Vec<Part>,
    pub(crate) tokens: Vec<Token>,
    /// For each token: only a test build has it.
    tests: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: String, text: String) -> Self {
        let Scanned { parts, tokens } = scan(&text);
        let mut source = Self { path, text, parts, tokens, tests: Vec::new() };
        source.tests = vec![source.is_test_file(); source.tokens.len()];
        for range in source.find_tests() {
            source.tests[range].fill(true);
        }
        source
    }

    /// Text of a token; a sign's is one character.
    pub(crate) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    /// Returns `true` if there is this sign at a place.
    pub(crate) fn is_sign(&self, at: usize, sign: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Sign(sign))
    }

    /// Returns `true` if a token is a word, a keyword included.
    pub(crate) fn is_word(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Word)
    }

    /// Returns `true` if a token belongs to code that only a test build has.
    pub(crate) fn is_test(&self, at: usize) -> bool {
        self.tests.get(at).is_some_and(|&test| test)
    }

    /// Returns `true` for files of Cargo's `tests` and for modules named `tests`.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    /// Lines with their numbers from 1, their offsets, and without their ends.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        let start = self.text.as_ptr() as usize;
        let offset = move |line: &str| line.as_ptr() as usize - start;
        self.text.lines().enumerate().map(move |(at, line)| (at + 1, offset(line), line))
    }

    /// Index behind the bracket that closes the one at `open`.
    pub(crate) fn behind(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Sign(b'(' | b'[' | b'{') => depth += 1,
                Kind::Sign(b')' | b']' | b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// Index behind the item, statement or field that begins at `at`, its `;`, `,` or block.
    fn behind_item(&self, mut at: usize) -> usize {
        let mut angles = 0usize;
        while at < self.tokens.len() {
            match self.tokens[at].kind {
                Kind::Sign(b';') => return at + 1,
                Kind::Sign(b',') if angles == 0 => return at + 1,
                Kind::Sign(b'{') => return self.behind(at),
                Kind::Sign(b'}') => return at,
                Kind::Sign(b'(' | b'[') => {
                    at = self.behind(at);
                    continue;
                }
                Kind::Sign(b'<') => angles += 1,
                Kind::Sign(b'>') if !self.is_sign(at - 1, b'-') => {
                    angles = angles.saturating_sub(1);
                }
                _ => {}
            }
            at += 1;
        }
        at
    }

    fn find_tests(&self) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let attribute = self.is_sign(at, b'#') && self.is_sign(at + 1, b'[');
            if !attribute {
                at += 1;
                continue;
            }
            let (start, mut end) = (at, self.behind(at + 1));
            if self.names_tests(start + 2, end) {
                while self.is_sign(end, b'#') {
                    end = self.behind(end + 1);
                }
                end = self.behind_item(end);
                found.push(start..end);
            }
            at = end;
        }
        found
    }

    /// Returns `true` for `test`, and for a `cfg` that holds in tests alone.
    fn names_tests(&self, start: usize, end: usize) -> bool {
        let words: Vec<&str> = (start..end).map(|at| self.word(at)).collect();
        match words[0] {
            "test" => true,
            "cfg" => words.contains(&"test") && !words.contains(&"not") && !words.contains(&"any"),
            _ => false,
        }
    }
}
