//! The passphrase of a sealed key file.

use std::fmt;
use zeroize::Zeroizing;

/// A passphrase. Wiped from memory when dropped; never printed.
///
/// Its bytes are taken as they are: the same words typed in another Unicode normal form are another
/// passphrase.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<String>);

/// Reason for which a passphrase is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PassphraseError {
    /// A passphrase of no characters.
    #[error("it is empty")]
    Empty,
    /// A new passphrase that is quickly guessed.
    #[error("it has fewer than {min} characters: take several words", min = Passphrase::CHARACTERS_MIN)]
    Short,
    /// More than anybody types.
    #[error("it has more than {max} bytes", max = Passphrase::BYTES_MAX)]
    Long,
    /// More than one line.
    #[error("it has more than one line: a passphrase is one line")]
    Lines,
    /// Bytes that are no text.
    #[error("it is not text in UTF-8")]
    NotText,
}

impl Passphrase {
    /// Fewest characters of a passphrase that is set anew.
    pub const CHARACTERS_MIN: usize = 8;

    /// Most bytes of a passphrase.
    pub const BYTES_MAX: usize = 1024;

    /// One that opens a file.
    ///
    /// # Errors
    /// [`PassphraseError::Empty`], [`PassphraseError::Long`] or [`PassphraseError::Lines`].
    pub fn new(text: Zeroizing<String>) -> Result<Self, PassphraseError> {
        if text.is_empty() {
            return Err(PassphraseError::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(PassphraseError::Long);
        }
        if text.contains(['\n', '\r']) {
            return Err(PassphraseError::Lines);
        }
        Ok(Self(text))
    }

    /// The content of a passphrase file: one line, whose end does not count.
    ///
    /// # Errors
    /// As [`Passphrase::new`], and [`PassphraseError::NotText`].
    pub fn from_file(bytes: &[u8]) -> Result<Self, PassphraseError> {
        let text = std::str::from_utf8(bytes).map_err(|_| PassphraseError::NotText)?;
        let line = text.strip_suffix('\n').unwrap_or(text);
        let line = line.strip_suffix('\r').unwrap_or(line);
        Self::new(Zeroizing::new(line.to_owned()))
    }

    /// Refuses one that is too short to be set anew.
    ///
    /// # Errors
    /// [`PassphraseError::Short`].
    pub fn check_new(&self) -> Result<(), PassphraseError> {
        if self.0.chars().count() < Self::CHARACTERS_MIN {
            return Err(PassphraseError::Short);
        }
        Ok(())
    }

    /// Compares two passphrases. Not in constant time: both were typed by the one who asks.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(…)")
    }
}
