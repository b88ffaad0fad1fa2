//! Lock of a sealed file: a key derived from a passphrase, and the cipher under it.
//!
//! What is sealed, and what stands in the header above it, is for [`sealed`](super::sealed) and
//! [`secret`](super::secret) to say.

use super::{KeyFileError, Passphrase, decode, malformed};
use crate::mutants::{self, Mutant};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::path::Path;
use zeroize::Zeroizing;

const KDF: &str = "argon2id";
const CIPHER: &str = "xchacha20-poly1305";
const LAST_LINE: &str = "sealed = \"";

const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
pub(super) const TAG_BYTES: usize = 16;

/// Cost of deriving a key from a passphrase: Argon2id's three parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealCost {
    /// Memory in KiB, at least 8 for each lane.
    pub memory_kib: u32,
    /// Passes over that memory.
    pub passes: u32,
    /// Lanes, which one thread fills one after the other.
    pub lanes: u32,
}

impl Default for SealCost {
    /// The second of the choices that RFC 9106 §4 recommends: 64 MiB, three passes, four lanes.
    fn default() -> Self {
        Self { memory_kib: 64 * 1024, passes: 3, lanes: 4 }
    }
}

impl SealCost {
    /// Most memory that a file may ask for, in KiB: 1 GiB.
    pub const MEMORY_KIB_MAX: u32 = 1024 * 1024;

    /// Most passes that a file may ask for.
    pub const PASSES_MAX: u32 = 16;

    /// Most lanes that a file may ask for.
    pub const LANES_MAX: u32 = 64;

    /// Most work that a file may ask for, in KiB filled over all passes: 4 GiB, some seconds.
    pub const WORK_KIB_MAX: u64 = 4 * 1024 * 1024;

    /// Checked before anything is allocated (★): the file may be a stranger's.
    pub(super) fn check(self, path: &Path) -> Result<(), KeyFileError> {
        let refuse = |what: String, most: String| {
            Err(KeyFileError::Cost { path: path.to_owned(), what, most })
        };
        let Self { memory_kib, passes, lanes } = self;
        if mutants::active(Mutant::SkipSealCost) {
            return Ok(());
        }
        if memory_kib > Self::MEMORY_KIB_MAX {
            let most = format!("{} KiB", Self::MEMORY_KIB_MAX);
            return refuse(format!("{memory_kib} KiB of memory"), most);
        }
        if passes > Self::PASSES_MAX {
            return refuse(format!("{passes} passes"), Self::PASSES_MAX.to_string());
        }
        if lanes > Self::LANES_MAX {
            return refuse(format!("{lanes} lanes"), Self::LANES_MAX.to_string());
        }
        let work = u64::from(memory_kib) * u64::from(passes);
        if work > Self::WORK_KIB_MAX {
            let most = format!("{} KiB", Self::WORK_KIB_MAX);
            return refuse(format!("{work} KiB filled over all passes"), most);
        }
        Ok(())
    }
}

/// The lines of a sealed file's header that say how it is opened, and the cipher of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lock {
    pub(super) cost: SealCost,
    pub(super) salt: [u8; SALT_BYTES],
    pub(super) nonce: [u8; NONCE_BYTES],
}

impl Lock {
    /// Names of its lines, in their order.
    pub(super) const NAMES: [&str; 7] =
        ["kdf", "memory_kib", "passes", "lanes", "salt", "cipher", "nonce"];

    /// Lock that no file had before.
    pub(super) fn fresh(
        cost: SealCost,
        random: &mut dyn FnMut(&mut [u8]),
        path: &Path,
    ) -> Result<Self, KeyFileError> {
        cost.check(path)?;
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_BYTES]);
        random(&mut salt);
        random(&mut nonce);
        Ok(Self { cost, salt, nonce })
    }

    /// Values of its lines, in the order of [`Lock::NAMES`].
    pub(super) fn values(&self) -> [String; 7] {
        let Self { cost, salt, nonce } = self;
        [
            KDF.into(),
            cost.memory_kib.to_string(),
            cost.passes.to_string(),
            cost.lanes.to_string(),
            hex::encode(salt),
            CIPHER.into(),
            hex::encode(nonce),
        ]
    }

    /// Reads what [`Lock::values`] wrote, and refuses what costs too much.
    pub(super) fn parse(values: [&str; 7], path: &Path) -> Result<Self, KeyFileError> {
        let [kdf, memory, passes, lanes, salt, cipher, nonce] = values;
        check_known("kdf", kdf, KDF, path)?;
        check_known("cipher", cipher, CIPHER, path)?;
        let cost = SealCost {
            memory_kib: number(memory, "memory_kib", path)?,
            passes: number(passes, "passes", path)?,
            lanes: number(lanes, "lanes", path)?,
        };
        cost.check(path)?;
        let (salt, nonce) = (*decode(salt, "salt", path)?, *decode(nonce, "nonce", path)?);
        Ok(Self { cost, salt, nonce })
    }

    /// Seals `secrets`, which must have room for the tag, and returns the file's last line.
    pub(super) fn seal(
        &self,
        header: &str,
        secrets: &mut Zeroizing<Vec<u8>>,
        passphrase: &Passphrase,
        path: &Path,
    ) -> Result<String, KeyFileError> {
        self.cipher(passphrase, path)?
            .encrypt_in_place(&XNonce::from(self.nonce), header.as_bytes(), &mut **secrets)
            .expect("128 bytes are far below the cipher's limit");
        Ok(format!("{LAST_LINE}{}\"\n", hex::encode(&secrets[..])))
    }

    /// Opens what [`Lock::seal`] sealed. Takes as long and as much memory as its cost says.
    pub(super) fn open(
        &self,
        header: &str,
        sealed: &[u8],
        passphrase: &Passphrase,
        path: &Path,
    ) -> Result<Zeroizing<Vec<u8>>, KeyFileError> {
        let mut plain = Zeroizing::new(sealed.to_vec());
        self.cipher(passphrase, path)?
            .decrypt_in_place(&XNonce::from(self.nonce), header.as_bytes(), &mut *plain)
            .map_err(|_| KeyFileError::Passphrase { path: path.to_owned() })?;
        Ok(plain)
    }

    fn cipher(
        &self,
        passphrase: &Passphrase,
        path: &Path,
    ) -> Result<XChaCha20Poly1305, KeyFileError> {
        let key = derive(passphrase, self.cost, &self.salt, path)?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }
}

/// Splits a sealed file into its header and its last line.
pub(super) fn split<'a>(text: &'a str, path: &Path) -> Result<(&'a str, &'a str), KeyFileError> {
    let last = text.rfind(LAST_LINE).filter(|at| text[..*at].ends_with('\n'));
    let cut = || malformed(path, "its last line is not `sealed = \"…\"`: it was cut short".into());
    Ok(text.split_at(last.ok_or_else(cut)?))
}

/// Refuses a file that names another way than ours.
pub(super) fn check_known(
    name: &str,
    value: &str,
    ours: &str,
    path: &Path,
) -> Result<(), KeyFileError> {
    let problem = || format!("`{name}` is not \"{ours}\": a newer version wrote it");
    if value == ours { Ok(()) } else { Err(malformed(path, problem())) }
}

fn derive(
    passphrase: &Passphrase,
    cost: SealCost,
    salt: &[u8],
    path: &Path,
) -> Result<Zeroizing<[u8; 32]>, KeyFileError> {
    let SealCost { memory_kib, passes, lanes } = cost;
    let parameters = Params::new(memory_kib, passes, lanes, Some(32)).map_err(|error| {
        malformed(path, format!("{memory_kib} KiB, {passes} passes and {lanes} lanes: {error}"))
    })?;
    // Ours, so that it can be wiped, and so that no memory is an error and not the end.
    let mut memory = Zeroizing::new(Vec::new());
    let blocks = parameters.block_count();
    memory
        .try_reserve_exact(blocks)
        .map_err(|_| KeyFileError::Memory { path: path.to_owned(), memory_kib })?;
    memory.resize(blocks, Block::default());
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, parameters)
        .hash_password_into_with_memory(
            passphrase.bytes(),
            salt,
            &mut key[..],
            memory.as_mut_slice(),
        )
        .expect("lengths that are checked before");
    Ok(key)
}

fn number(text: &str, name: &str, path: &Path) -> Result<u32, KeyFileError> {
    let problem = || malformed(path, format!("`{name}` must be a number below 2^32"));
    text.parse().map_err(|_| problem())
}

/// One spelling only: lower-case digits, one line end, nothing behind it.
pub(super) fn last_line(line: &str, length: usize, path: &Path) -> Result<Vec<u8>, KeyFileError> {
    let digits = line.strip_prefix(LAST_LINE).and_then(|rest| rest.strip_suffix("\"\n"));
    let problem = || {
        let digits = 2 * length;
        malformed(path, format!("`sealed` must be {digits} hexadecimal digits at the file's end"))
    };
    let digits = digits.ok_or_else(problem)?;
    if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
        return Err(problem());
    }
    let mut bytes = vec![0; length];
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| problem())?;
    Ok(bytes)
}
