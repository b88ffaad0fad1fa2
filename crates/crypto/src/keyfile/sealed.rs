//! Key files under a passphrase, format 1 (docs/adr/0010).
//!
//! ```text
//! # Secret keys of a Quorate replica, sealed under a passphrase.
//! # Everything above the last line is authenticated: an edited file does not open.
//! format = "quorate-sealed-keys-1"
//! scheme = "bls"
//! public_identity = "<64 hexadecimal digits>"
//! public_voting = "<hexadecimal digits>"
//! possession = "<hexadecimal digits, none for ed25519 and bls-threshold>"
//! kdf = "argon2id"
//! memory_kib = "65536"
//! passes = "3"
//! lanes = "4"
//! salt = "<32 hexadecimal digits>"
//! cipher = "xchacha20-poly1305"
//! nonce = "<48 hexadecimal digits>"
//! sealed = "<160 hexadecimal digits; 288 for bls-threshold>"
//! ```
//!
//! The key is Argon2id (RFC 9106, version 0x13) of the passphrase's bytes under the salt, 32 bytes
//! long. The plaintext is the identity's seed, 32 bytes, and the voting secret, as many (96 for
//! `bls-threshold`). The associated data are the file's bytes up to the line `sealed`, which is the
//! last one, so that no byte of the header can be changed. Salt and nonce are fresh whenever a file
//! is written.
//!
//! The public keys stand in the header so that a file can be told from another without its
//! passphrase. They are compared with the secrets once it is opened, which also ties the file to
//! one passphrase: the cipher by itself does not commit to its key.

use super::{
    KeyFile, KeyFileError, Passphrase, PublicKeys, decode, fields, malformed, scheme_named,
};
use crate::mutants::{self, Mutant};
use crate::{IdentityKey, IdentitySecret, PossessionProof, SchemeKind, VotingKey, VotingSecret};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const HEADER: &str = "# Secret keys of a Quorate replica, sealed under a passphrase.\n\
    # Everything above the last line is authenticated: an edited file does not open.\n";
const FORMAT: &str = "quorate-sealed-keys-1";
const KDF: &str = "argon2id";
const CIPHER: &str = "xchacha20-poly1305";
const LAST_LINE: &str = "sealed = \"";

const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
const SEED_BYTES: usize = 32;
const TAG_BYTES: usize = 16;

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
    fn check(self, path: &Path) -> Result<(), KeyFileError> {
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

/// A sealed key file as it was read.
#[derive(Debug, Clone)]
pub struct SealedKeys {
    path: PathBuf,
    public: PublicKeys,
    cost: SealCost,
    salt: [u8; SALT_BYTES],
    nonce: [u8; NONCE_BYTES],
    /// Everything above the last line.
    header: String,
    sealed: Vec<u8>,
}

impl SealedKeys {
    /// Public half of the keys that the file claims to hold: proven only once it is opened.
    pub fn public(&self) -> &PublicKeys {
        &self.public
    }

    /// Cost of opening the file, as its header says.
    pub fn cost(&self) -> SealCost {
        self.cost
    }

    /// Opens it. Takes as long and as much memory as its cost says.
    ///
    /// # Errors
    /// [`KeyFileError::Passphrase`] for a wrong passphrase or an altered file, which cannot be told
    /// apart.
    pub fn open(&self, passphrase: &Passphrase) -> Result<KeyFile, KeyFileError> {
        let refused = || KeyFileError::Passphrase { path: self.path.clone() };
        let key = derive(passphrase, self.cost, &self.salt, &self.path)?;
        let cipher = XChaCha20Poly1305::new((&*key).into());
        let mut plain = Zeroizing::new(self.sealed.clone());
        cipher
            .decrypt_in_place(&XNonce::from(self.nonce), self.header.as_bytes(), &mut *plain)
            .map_err(|_| refused())?;
        let (seed, voting) = plain.split_at(SEED_BYTES);
        let seed: [u8; SEED_BYTES] =
            seed.try_into().expect("its length was checked when it was read");
        let voting = VotingSecret::from_bytes(self.public.scheme, voting)
            .map_err(|source| KeyFileError::Key { path: self.path.clone(), source })?;
        let keys = KeyFile { identity: IdentitySecret::from_seed(seed), voting };
        if keys.public() == self.public { Ok(keys) } else { Err(refused()) }
    }

    pub(super) fn parse(text: &str, path: &Path) -> Result<Self, KeyFileError> {
        let last = text.rfind(LAST_LINE).filter(|at| text[..*at].ends_with('\n'));
        let (header, last) = text.split_at(last.ok_or_else(|| {
            malformed(path, "its last line is not `sealed = \"…\"`: it was cut short".to_owned())
        })?);
        let [
            format,
            scheme,
            identity,
            voting,
            possession,
            kdf,
            memory,
            passes,
            lanes,
            salt,
            cipher,
            nonce,
        ] = fields(
            header,
            [
                "format",
                "scheme",
                "public_identity",
                "public_voting",
                "possession",
                "kdf",
                "memory_kib",
                "passes",
                "lanes",
                "salt",
                "cipher",
                "nonce",
            ],
            path,
        )?;
        for (name, value, ours) in
            [("format", format, FORMAT), ("kdf", kdf, KDF), ("cipher", cipher, CIPHER)]
        {
            check_known(name, value, ours, path)?;
        }
        let cost = SealCost {
            memory_kib: number(memory, "memory_kib", path)?,
            passes: number(passes, "passes", path)?,
            lanes: number(lanes, "lanes", path)?,
        };
        cost.check(path)?;
        let bytes = |text: &str, name| {
            let problem = || malformed(path, format!("`{name}` must be hexadecimal digits"));
            hex::decode(text).map_err(|_| problem())
        };
        let scheme = scheme_named(scheme, path)?;
        let public = PublicKeys {
            scheme,
            identity: IdentityKey(*decode(identity, "public_identity", path)?),
            voting: VotingKey(bytes(voting, "public_voting")?),
            possession: PossessionProof(bytes(possession, "possession")?),
        };
        Ok(Self {
            path: path.to_owned(),
            public,
            cost,
            salt: *decode(salt, "salt", path)?,
            nonce: *decode(nonce, "nonce", path)?,
            header: header.to_owned(),
            sealed: last_line(last, sealed_bytes(scheme), path)?,
        })
    }
}

/// Refuses a file that names another way than ours.
fn check_known(name: &str, value: &str, ours: &str, path: &Path) -> Result<(), KeyFileError> {
    let problem = || format!("`{name}` is not \"{ours}\": a newer version wrote it");
    if value == ours { Ok(()) } else { Err(malformed(path, problem())) }
}

fn sealed_bytes(scheme: SchemeKind) -> usize {
    SEED_BYTES + VotingSecret::bytes(scheme) + TAG_BYTES
}

/// Returns `true` if a key file's text is that of a sealed one.
pub(super) fn is_sealed(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("format"))
}

/// The text of a sealed file.
pub(super) fn seal(
    keys: &KeyFile,
    passphrase: &Passphrase,
    cost: SealCost,
    random: &mut dyn FnMut(&mut [u8]),
    path: &Path,
) -> Result<Zeroizing<String>, KeyFileError> {
    cost.check(path)?;
    let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_BYTES]);
    random(&mut salt);
    random(&mut nonce);
    let mut text = header(&keys.public(), cost, &salt, &nonce);
    let key = derive(passphrase, cost, &salt, path)?;
    let cipher = XChaCha20Poly1305::new((&*key).into());
    // Room for the tag at once: growing would leave a copy of the secrets behind.
    let mut secrets = Zeroizing::new(Vec::with_capacity(sealed_bytes(keys.voting.kind())));
    secrets.extend_from_slice(&keys.identity.seed()[..]);
    secrets.extend_from_slice(&keys.voting.to_bytes());
    cipher
        .encrypt_in_place(&XNonce::from(nonce), text.as_bytes(), &mut *secrets)
        .expect("128 bytes are far below the cipher's limit");
    let sealed = hex::encode(&secrets[..]);
    writeln!(text, "{LAST_LINE}{sealed}\"").expect("memory");
    Ok(Zeroizing::new(text))
}

fn header(
    public: &PublicKeys,
    cost: SealCost,
    salt: &[u8; SALT_BYTES],
    nonce: &[u8; NONCE_BYTES],
) -> String {
    let mut text = String::from(HEADER);
    let mut line = |name, value: String| {
        writeln!(text, "{name} = \"{value}\"").expect("memory");
    };
    line("format", FORMAT.into());
    line("scheme", public.scheme.to_string());
    line("public_identity", public.identity.to_string());
    line("public_voting", hex::encode(&public.voting.0));
    line("possession", hex::encode(&public.possession.0));
    line("kdf", KDF.into());
    line("memory_kib", cost.memory_kib.to_string());
    line("passes", cost.passes.to_string());
    line("lanes", cost.lanes.to_string());
    line("salt", hex::encode(salt));
    line("cipher", CIPHER.into());
    line("nonce", hex::encode(nonce));
    text
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
fn last_line(line: &str, length: usize, path: &Path) -> Result<Vec<u8>, KeyFileError> {
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

#[cfg(test)]
pub(crate) mod tests;
