//! `quorate keys`: a validator's secrets on disk.

pub(super) mod dkg;

use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::{Args, Subcommand};
use quorate_crypto::{KeyFile, PublicKeys, SchemeKind, SealCost, StoredKeys};
use quorate_node::testnet::system_random;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Address in an entry that [`Action::Show`] prints: its owner writes the real one there.
pub(crate) const NO_ADDRESS: &str = "host:port";

/// Make a validator's keys, alone or together with the others, seal them under a passphrase, or
/// show their public parts.
///
/// A key file holds two secrets: the identity, which proves who the validator is, and the voting
/// key. Whoever reads it can sign as this validator. A sealed key file is of use only together
/// with its passphrase.
///
/// A passphrase is never an argument, which every user of a machine can see. It is read from the
/// file that --passphrase-file or the environment's QUORATE_PASSPHRASE_FILE names (one line,
/// readable by its owner or group alone), or asked for at the terminal. There is no way to open a
/// sealed file without it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate keys generate key.toml --encrypt       new keys, sealed\n  \
    quorate keys show key.toml                     what the committee file needs\n  \
    quorate keys encrypt key.toml                  seal keys that are in the clear\n  \
    quorate keys passphrase key.toml               change the passphrase\n  \
    quorate keys generate key.next.toml --identity key.toml\n                                                 \
    a new voting key for the next epoch\n  \
    quorate keys dkg --help                        threshold keys without a dealer")]
pub(crate) struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Write new keys to a file that only its owner may read; never overwrites
    Generate {
        /// The file to write
        file: PathBuf,
        /// The voting scheme: ed25519 or bls
        #[arg(long, default_value = "ed25519", value_parser = super::scheme)]
        scheme: SchemeKind,
        /// Keep the identity of the keys in FILE, and make a voting key alone; sealed as FILE is
        #[arg(long, value_name = "FILE", conflicts_with = "encrypt", group = "sealing")]
        identity: Option<PathBuf>,
        /// Seal the file under a passphrase
        #[arg(long, group = "sealing")]
        encrypt: bool,
        /// Take the passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE", requires = "sealing")]
        passphrase_file: Option<PathBuf>,
        /// Print the public parts as JSON
        #[arg(long)]
        json: bool,
    },
    Dkg(Box<dkg::Options>),
    /// Check how threshold keys came about, offline
    ///
    /// Takes every step that members signed again: their signatures, commitments and proofs, and
    /// compares what they come to with the committee file. No validator is asked. Exit code 0: it
    /// holds. 1: it does not, and the reason is said. 2: a file cannot be read.
    Transcript(dkg::transcript::Options),
    /// Print the public parts of a key file: the member's entry in a committee file
    ///
    /// A sealed file shows them without its passphrase; that they belong to the secrets in it is
    /// proven only once it is opened, by `quorate keys verify` or a validator's start.
    Show {
        /// The file to read
        file: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Check that a key file's passphrase opens it
    Verify {
        /// The file to open
        file: PathBuf,
        /// Take the passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Seal a key file under a passphrase, in place
    ///
    /// The file is replaced at once or not at all. Copies made before, and blocks that the disk
    /// does not overwrite, still hold the keys in the clear: make new keys where that matters.
    Encrypt {
        /// Path of the key file
        file: PathBuf,
        /// Take the passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Write a sealed key file in the clear, in place
    Decrypt {
        /// Path of the key file
        file: PathBuf,
        /// Take the passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
    },
    /// Change the passphrase of a sealed key file, in place
    ///
    /// Copies made before still open with the old passphrase: if somebody else knows it, the keys
    /// have to be replaced in a new epoch, not their passphrase.
    Passphrase {
        /// Path of the key file
        file: PathBuf,
        /// Take the present passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE")]
        passphrase_file: Option<PathBuf>,
        /// Take the new passphrase from the first line of FILE instead of asking
        #[arg(long, value_name = "FILE")]
        new_passphrase_file: Option<PathBuf>,
    },
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        match &self.action {
            Action::Generate { file, scheme, identity, encrypt, passphrase_file, json } => {
                let made = KeyFile::generate(*scheme, &mut system_random);
                let keys = made.map_err(Failure::usage)?;
                let passphrase_file = passphrase_file.as_deref();
                let public = match identity {
                    Some(identity) => write_as(keys, identity, file, passphrase_file)?,
                    None => write_new(&keys, file, *encrypt, passphrase_file)?,
                };
                print(&public, *json);
                Ok(())
            }
            Action::Dkg(options) => options.run(),
            Action::Transcript(options) => options.run(),
            Action::Show { file, json } => show(file, *json),
            Action::Verify { file, passphrase_file } => verify(file, passphrase_file.as_deref()),
            Action::Encrypt { file, passphrase_file } => encrypt(file, passphrase_file.as_deref()),
            Action::Decrypt { file, passphrase_file } => decrypt(file, passphrase_file.as_deref()),
            Action::Passphrase { file, passphrase_file, new_passphrase_file } => {
                change(file, passphrase_file.as_deref(), new_passphrase_file.as_deref())
            }
        }
    }
}

fn show(file: &Path, json: bool) -> CommandResult {
    let public = StoredKeys::read(file).map_err(Failure::usage)?.public();
    print(&public, json);
    if public.identity_proof.0.is_empty() {
        eprintln!(
            "{0} was sealed by an older version, without the proof that its identity is held: \
             `quorate keys passphrase {0}` seals it anew, and then it is shown",
            file.display()
        );
    }
    Ok(())
}

/// Writes keys to a new file, sealed if that is asked for.
fn write_new(
    keys: &KeyFile,
    file: &Path,
    sealed: bool,
    passphrase_file: Option<&Path>,
) -> Result<PublicKeys, Failure> {
    // Before anybody thinks up a passphrase for nothing.
    refuse_existing(file)?;
    let passphrase = sealed.then(|| passphrase::new(file, passphrase_file, true)).transpose()?;
    passphrase::write_keys(keys, file, passphrase.as_ref()).map_err(Failure::usage)?;
    Ok(keys.public())
}

/// Writes a new voting key with the identity that another file has, sealed as that is.
fn write_as(
    new: KeyFile,
    identity: &Path,
    file: &Path,
    passphrase_file: Option<&Path>,
) -> Result<PublicKeys, Failure> {
    refuse_existing(file)?;
    let (present, passphrase) = passphrase::open_with_passphrase(identity, passphrase_file)?;
    let keys = KeyFile { identity: present.identity, voting: new.voting };
    passphrase::write_keys(&keys, file, passphrase.as_ref()).map_err(Failure::usage)?;
    Ok(keys.public())
}

fn refuse_existing(file: &Path) -> CommandResult {
    if file.exists() {
        let path = file.to_owned();
        return Err(Failure::usage(quorate_crypto::KeyFileError::Exists { path }));
    }
    Ok(())
}

fn verify(file: &Path, passphrase_file: Option<&Path>) -> CommandResult {
    match StoredKeys::read(file).map_err(Failure::usage)? {
        StoredKeys::Open(_) => {
            output::line(&format!("{} is sound, and in the clear.", file.display()));
        }
        StoredKeys::Sealed(sealed) => {
            let passphrase = passphrase::existing(file, passphrase_file)?;
            sealed.open(&passphrase).map_err(Failure::usage)?;
            output::line(&format!("{} is sound, and opens.", file.display()));
        }
    }
    Ok(())
}

fn encrypt(file: &Path, passphrase_file: Option<&Path>) -> CommandResult {
    let keys = match StoredKeys::read(file).map_err(Failure::usage)? {
        StoredKeys::Open(keys) => keys,
        StoredKeys::Sealed(_) => {
            return Err(Failure::usage(format!(
                "{0} is sealed already; `quorate keys passphrase {0}` changes its passphrase",
                file.display()
            )));
        }
    };
    let passphrase = passphrase::new(file, passphrase_file, true)?;
    keys.replace_sealed(file, &passphrase, SealCost::default(), &mut system_random)
        .map_err(Failure::usage)?;
    output::line(&format!("{} is sealed.", file.display()));
    Ok(())
}

fn decrypt(file: &Path, passphrase_file: Option<&Path>) -> CommandResult {
    let keys = open(file, passphrase_file)?;
    keys.replace(file).map_err(Failure::usage)?;
    output::line(&format!("{} is in the clear.", file.display()));
    Ok(())
}

fn change(file: &Path, old: Option<&Path>, new: Option<&Path>) -> CommandResult {
    let keys = open(file, old)?;
    // Not from the environment: it names the present passphrase.
    let passphrase = passphrase::new(file, new, false)?;
    keys.replace_sealed(file, &passphrase, SealCost::default(), &mut system_random)
        .map_err(Failure::usage)?;
    output::line(&format!("{} has a new passphrase.", file.display()));
    Ok(())
}

/// Opens a file that must be sealed.
fn open(file: &Path, passphrase_file: Option<&Path>) -> Result<KeyFile, Failure> {
    match StoredKeys::read(file).map_err(Failure::usage)? {
        StoredKeys::Sealed(sealed) => {
            let passphrase = passphrase::existing(file, passphrase_file)?;
            sealed.open(&passphrase).map_err(Failure::usage)
        }
        StoredKeys::Open(_) => Err(Failure::usage(format!(
            "{0} is not sealed; `quorate keys encrypt {0}` seals it",
            file.display()
        ))),
    }
}

fn print(keys: &PublicKeys, json: bool) {
    let (scheme, identity) = (keys.scheme.to_string(), keys.identity.to_string());
    let (voting, possession) = (keys.voting.to_string(), keys.possession.to_string());
    let proof = keys.identity_proof.to_string();
    if json {
        output::json(&json!({
            "scheme": scheme,
            "identity": identity,
            "identity_proof": proof,
            "voting": voting,
            "possession": possession,
        }));
        return;
    }
    output::line(&format!(
        "# scheme: {scheme}\n[[members]]\nidentity = \"{identity}\"\nidentity_proof = \"{proof}\"\n\
         voting = \"{voting}\"\npossession = \"{possession}\"\naddress = \"{NO_ADDRESS}\""
    ));
}
