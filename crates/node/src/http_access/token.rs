//! Bearer tokens (RFC 6750), and the files that hold one.

use axum::http::{HeaderMap, HeaderValue, header};
use quorate_crypto::{Digest, hash, shared_mode};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Bearer token that callers show. Only its hash is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(Digest);

/// Error of a token file.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {path}: {source}; check the path, and who may read it", path = path.display())]
    Read {
        /// Path of the token file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Others may read or write the file.
    #[error("the token file {path} is open to others (mode {mode:04o}): run `chmod 600` on it, and change the token if somebody may have read it", path = path.display())]
    Shared {
        /// Path of the token file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file is no list of users.
    #[error("the tokens file {path} is refused: {reason}", path = path.display())]
    Users {
        /// Path of the tokens file.
        path: PathBuf,
        /// Reason, for people.
        reason: String,
    },
    /// The file holds no token.
    #[error("the token file {path} is not taken: a token is one line of {least} to {most} letters, digits and signs, without spaces", path = path.display(), least = Token::BYTES_MIN, most = Token::BYTES_MAX)]
    Content {
        /// Path of the token file.
        path: PathBuf,
    },
}

impl Token {
    /// Fewest bytes: what is shorter can be guessed.
    pub const BYTES_MIN: usize = 16;
    /// Most bytes of a token.
    pub const BYTES_MAX: usize = 1_024;

    /// A token of printable ASCII without spaces, or `None` when it is not that, too short or too
    /// long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (Self::BYTES_MIN..=Self::BYTES_MAX).contains(&text.len());
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && is_plain).then(|| Self(hash(text.as_bytes())))
    }

    /// Reads a file of one line.
    ///
    /// # Errors
    /// When it cannot be read, is open to others, or holds no token.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = Self::read_text(path)?;
        Ok(Self::new(&text).expect("it was read as one"))
    }

    /// Reads a file of one line for whoever shows the token.
    ///
    /// # Errors
    /// As [`Token::read`].
    pub fn read_text(path: &Path) -> Result<Zeroizing<String>, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        refuse_shared(&file, path)?;
        let mut text = Zeroizing::new(String::new());
        // A little more than a token and its line's end: more is not read.
        file.take(Self::BYTES_MAX as u64 + 3).read_to_string(&mut text).map_err(failed)?;
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        match Self::new(line) {
            Some(_) => Ok(Zeroizing::new(line.to_owned())),
            None => Err(TokenError::Content { path: path.to_owned() }),
        }
    }

    /// Hash of the token, by which it is known.
    #[must_use]
    pub fn hash(&self) -> Digest {
        self.0
    }

    /// Hash of the token that these headers carry, whichever it is.
    pub(super) fn shown_by(headers: &HeaderMap) -> Option<Digest> {
        let shown = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
        shown.and_then(bearer).map(hash)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Token behind the word `Bearer`, whose case does not matter (RFC 7235 §2.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

pub(super) fn refuse_shared(file: &File, path: &Path) -> Result<(), TokenError> {
    let failed = |source| TokenError::Read { path: path.to_owned(), source };
    match shared_mode(file, 0o027).map_err(failed)? {
        Some(mode) => Err(TokenError::Shared { path: path.to_owned(), mode }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Token, TokenError, bearer};
    use axum::http::{HeaderMap, HeaderValue, header};
    use std::fs;
    use std::path::PathBuf;

    const TEXT: &str = "0123456789abcdef";

    #[test]
    fn a_token_is_a_line_of_plain_characters() {
        let long = "x".repeat(1_024);
        assert!(Token::new(TEXT).is_some() && Token::new(&long).is_some());
        let too_long = "x".repeat(1_025);
        for refused in ["", "0123456789abcde", "0123456789abcde f", "0123456789abcdeü", &too_long]
        {
            assert_eq!(Token::new(refused), None, "{refused}");
        }
    }

    #[test]
    fn only_the_token_itself_opens() {
        let token = Token::new(TEXT).expect("a token");
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).expect("a value"));
            Token::shown_by(&headers) == Some(token.hash())
        };
        assert!(shows("Bearer 0123456789abcdef") && shows("bearer 0123456789abcdef"));
        for refused in ["", "Bearer ", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", TEXT] {
            assert!(!shows(refused), "{refused}");
        }
        assert_eq!(Token::shown_by(&HeaderMap::new()), None);
        assert_eq!(bearer(b"Bearer a b"), Some(&b"a b"[..]));
    }

    fn file(content: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("set");
        (folder, path)
    }

    #[test]
    fn a_token_file_is_one_line_and_not_open_to_others() {
        for content in [TEXT.to_owned(), format!("{TEXT}\n"), format!("{TEXT}\r\n")] {
            let (_folder, path) = file(&content, 0o600);
            assert_eq!(Token::read(&path).expect("a token"), Token::new(TEXT).expect("a token"));
        }
        let (_folder, path) = file(&format!("{TEXT}\n{TEXT}\n"), 0o600);
        assert!(matches!(Token::read(&path), Err(TokenError::Content { .. })));
        let (_folder, path) = file(TEXT, 0o644);
        assert!(matches!(Token::read(&path), Err(TokenError::Shared { mode: 0o644, .. })));
        let absent = path.with_file_name("absent");
        assert!(matches!(Token::read(&absent), Err(TokenError::Read { .. })));
    }
}
