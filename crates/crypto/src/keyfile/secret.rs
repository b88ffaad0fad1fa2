//! One secret of 32 bytes in a file, in the clear or sealed as key files are.
//!
//! ```text
//! # A secret of a Quorate replica, sealed under a passphrase.
//! format = "quorate-sealed-secret-1"
//! commitment = "<64 hexadecimal digits>"
//! kdf = "argon2id"
//! memory_kib = "65536"
//! passes = "3"
//! lanes = "4"
//! salt = "<32 hexadecimal digits>"
//! cipher = "xchacha20-poly1305"
//! nonce = "<48 hexadecimal digits>"
//! sealed = "<96 hexadecimal digits>"
//! ```
//!
//! In the clear it is 64 hexadecimal digits and nothing else. The commitment, a hash of the secret,
//! is to a sealed one what the public keys are to [key files](super::sealed): it ties the file to
//! one passphrase.

use super::lock::{Lock, SealCost, TAG_BYTES, check_known, last_line, split};
use super::{KeyFileError, Passphrase, decode, fields, files, sealed};
use std::path::Path;
use zeroize::Zeroizing;

const FORMAT: &str = "quorate-sealed-secret-1";
const NAMES: [&str; 9] = [
    "format",
    "commitment",
    Lock::NAMES[0],
    Lock::NAMES[1],
    Lock::NAMES[2],
    Lock::NAMES[3],
    Lock::NAMES[4],
    Lock::NAMES[5],
    Lock::NAMES[6],
];
const SECRET_BYTES: usize = 32;

/// Secret of 32 bytes that a file keeps for a while, such as a member's seed while keys are made.
#[derive(Clone)]
pub struct SecretFile(Zeroizing<[u8; SECRET_BYTES]>);

impl SecretFile {
    /// Secret that `random` fills with fresh randomness.
    pub fn generate(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        random(&mut secret[..]);
        Self(secret)
    }

    /// Bytes to keep from everybody; the copy is wiped when it is dropped.
    pub fn secret(&self) -> &Zeroizing<[u8; SECRET_BYTES]> {
        &self.0
    }

    /// Writes a new file that only its owner may read, and makes it durable. Never overwrites.
    pub fn write(&self, path: &Path) -> Result<(), KeyFileError> {
        files::create(path, &Zeroizing::new(hex::encode(&self.0[..])))
    }

    /// Writes a new file as [`SecretFile::write`] does, sealed under a passphrase.
    pub fn write_sealed(
        &self,
        path: &Path,
        passphrase: &Passphrase,
        cost: SealCost,
        random: &mut dyn FnMut(&mut [u8]),
    ) -> Result<(), KeyFileError> {
        let lock = Lock::fresh(cost, random, path)?;
        let mut text =
            String::from("# A secret of a Quorate replica, sealed under a passphrase.\n");
        let own = [FORMAT.to_owned(), self.commitment()];
        for (name, value) in NAMES.into_iter().zip(own.into_iter().chain(lock.values())) {
            text += &format!("{name} = \"{value}\"\n");
        }
        // Room for the tag at once: growing would leave a copy of the secret behind.
        let mut secret = Zeroizing::new(Vec::with_capacity(SECRET_BYTES + TAG_BYTES));
        secret.extend_from_slice(&self.0[..]);
        text += &lock.seal(&text, &mut secret, passphrase, path)?;
        files::create(path, &text)
    }

    /// Reads a file that only its owner may read; a sealed one takes its passphrase.
    ///
    /// # Errors
    /// [`KeyFileError::Sealed`] where that is not given.
    pub fn read(path: &Path, passphrase: Option<&Passphrase>) -> Result<Self, KeyFileError> {
        let text = files::read(path)?;
        if !sealed::is_sealed(&text) {
            return decode(text.trim_end(), "seed", path).map(Self);
        }
        let (header, last) = split(&text, path)?;
        let [format, commitment, lock @ ..] = fields(header, NAMES, path)?;
        check_known("format", format, FORMAT, path)?;
        let lock = Lock::parse(lock, path)?;
        let sealed = last_line(last, SECRET_BYTES + TAG_BYTES, path)?;
        let missing = || KeyFileError::Sealed { path: path.to_owned() };
        let plain = lock.open(header, &sealed, passphrase.ok_or_else(missing)?, path)?;
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        secret.copy_from_slice(&plain);
        let read = Self(secret);
        let refused = || KeyFileError::Passphrase { path: path.to_owned() };
        if read.commitment() == commitment { Ok(read) } else { Err(refused()) }
    }

    fn commitment(&self) -> String {
        hex::encode(blake3::derive_key("quorate 2026-11 sealed secret commitment", &self.0[..]))
    }
}

impl std::fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretFile(…)")
    }
}

#[cfg(test)]
mod tests;
