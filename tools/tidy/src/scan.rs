//! A scanner that tells code, comments and strings apart, and cuts code into tokens.
//!
//! It knows of Rust's lexical grammar what is needed for that, and nothing of its syntax.

#[cfg(test)]
mod tests;

/// Part of a source text to which a byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Code,
    Comment,
    /// Between the quotes of a string; the quotes are code.
    Text,
}

/// Kind of a [`Token`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Word,
    /// A string; the token's range is its content.
    Text,
    /// One character of punctuation.
    Sign(u8),
}

/// A word, a string or a sign of a source text, by its place in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Line in the file, from 1.
    pub(crate) line: usize,
}

/// Result of scanning one text.
pub(crate) struct Scanned {
    /// One entry for each byte of the text.
    pub(crate) parts: Vec<Part>,
    pub(crate) tokens: Vec<Token>,
}

/// Scans a whole file. Unterminated strings and comments extend to its end.
pub(crate) fn scan(text: &str) -> Scanned {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        line: 1,
        parts: vec![Part::Code; text.len()],
        tokens: Vec::new(),
    };
    while scanner.at < scanner.bytes.len() {
        scanner.step();
    }
    Scanned { parts: scanner.parts, tokens: scanner.tokens }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    line: usize,
    parts: Vec<Part>,
    tokens: Vec<Token>,
}

impl Scanner<'_> {
    fn step(&mut self) {
        let rest = &self.bytes[self.at..];
        match rest[0] {
            b'\n' => {
                self.line += 1;
                self.at += 1;
            }
            b'/' if rest.starts_with(b"//") => self.line_comment(),
            b'/' if rest.starts_with(b"/*") => self.block_comment(),
            b'"' => self.string(),
            b'\'' => self.quote(),
            byte if is_word(byte) => self.word(),
            byte if byte.is_ascii_whitespace() => self.at += 1,
            byte => self.push(Kind::Sign(byte), self.at, self.at + 1),
        }
    }

    /// Records a token and moves behind it.
    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.tokens.push(Token { kind, start, end, line: self.line });
        self.at = end;
    }

    /// Marks everything up to `end` as `part` and moves there, counting lines.
    fn mark(&mut self, end: usize, part: Part) {
        let end = end.min(self.bytes.len());
        self.parts[self.at..end].fill(part);
        self.line += self.bytes[self.at..end].iter().filter(|&&byte| byte == b'\n').count();
        self.at = end;
    }

    fn line_comment(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
        self.mark(self.at + length, Part::Comment);
    }

    fn block_comment(&mut self) {
        let (mut end, mut depth) = (self.at, 0usize);
        while end < self.bytes.len() {
            let rest = &self.bytes[end..];
            let (length, deeper) = match () {
                () if rest.starts_with(b"/*") => (2, depth + 1),
                () if rest.starts_with(b"*/") => (2, depth - 1),
                () => (1, depth),
            };
            (end, depth) = (end + length, deeper);
            if depth == 0 {
                break;
            }
        }
        self.mark(end, Part::Comment);
    }

    /// A word; or what only begins like one: a raw, byte or C string.
    fn word(&mut self) {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
        let next = rest.get(length).copied();
        match &rest[..length] {
            b"r" | b"br" | b"cr" if matches!(next, Some(b'"' | b'#')) => self.raw(length),
            b"b" | b"c" if next == Some(b'"') => self.at += length,
            b"b" if next == Some(b'\'') => self.at += length,
            _ => self.push(Kind::Word, self.at, self.at + length),
        }
    }

    /// A raw string whose prefix has `prefix` letters; or an identifier with `r#` before it.
    fn raw(&mut self, prefix: usize) {
        let rest = &self.bytes[self.at + prefix..];
        let hashes = rest.iter().take_while(|&&byte| byte == b'#').count();
        if rest.get(hashes) != Some(&b'"') {
            self.at += prefix + hashes;
            return;
        }
        let start = self.at + prefix + hashes + 1;
        let close = [&b"\""[..], &vec![b'#'; hashes]].concat();
        let content = &self.bytes[start..];
        let length = content.windows(close.len()).position(|window| window == close);
        self.at = start;
        self.content(start + length.unwrap_or(content.len()), close.len());
    }

    fn string(&mut self) {
        let start = self.at + 1;
        let mut end = start;
        while end < self.bytes.len() && self.bytes[end] != b'"' {
            end += if self.bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.at = start;
        self.content(end, 1);
    }

    /// A string's content up to `end`, and its closing of so many bytes.
    fn content(&mut self, end: usize, close: usize) {
        let (start, line) = (self.at, self.line);
        let end = end.min(self.bytes.len());
        self.mark(end, Part::Text);
        self.tokens.push(Token { kind: Kind::Text, start, end, line });
        self.at = (end + close).min(self.bytes.len());
    }

    /// A character, or the mark of a lifetime or label.
    fn quote(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let length = match rest {
            [b'\\', ..] => rest.iter().skip(2).position(|&byte| byte == b'\'').map(|at| at + 2),
            [first, ..] => (1..=4)
                .find(|&at| rest.get(at) == Some(&b'\''))
                .filter(|&at| at == 1 || !first.is_ascii()),
            [] => None,
        };
        match length {
            Some(length) => {
                self.at += 1;
                self.mark(self.at + length, Part::Text);
                self.at += 1;
            }
            None => self.at += 1,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}
