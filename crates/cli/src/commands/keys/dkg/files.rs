//! Files: this member's secrets while keys are made, and the files that are there afterwards.
//!
//! ```text
//! OUT/generation/     goes when the keys are written
//!     seed            32 secret bytes, readable by the owner alone and sealed as the founding key
//!                     is, of which follows all that this member deals and opens
//!     committee.toml  the committee that generates keys
//!     data/           its log
//! OUT/transcript.json, committee.toml, config.toml, key.toml    in this order, or, for the next
//!                                                               epoch of a network,
//! OUT/transcript.json, key.next.toml
//! ```
//!
//! Keys come last: whoever finds them finds the rest.

use super::generators::{Generators, Purpose};
use super::written::{Founded, Written};
use crate::failure::Failure;
use crate::passphrase;
use quorate_crypto::{KeyFile, KeyFileError, Passphrase, SealCost, SecretFile, StoredKeys};
use quorate_node::NodeConfig;
use quorate_node::config::read_committee_file;
use quorate_node::keys::next_key_file;
use quorate_node::testnet::{committee_text, system_random};
use quorate_types::CommitteeFile;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

const TRANSCRIPT: &str = "transcript.json";
const COMMITTEE: &str = "committee.toml";
const CONFIG: &str = "config.toml";
const KEY: &str = "key.toml";

/// The folder of one member.
#[derive(Debug)]
pub(super) struct Place {
    out: PathBuf,
    /// Path of the key file that is to come.
    key: PathBuf,
}

/// Contents of the files to write.
pub(super) struct Made<'a> {
    pub(super) member: u16,
    pub(super) keys: &'a KeyFile,
    pub(super) passphrase: Option<&'a Passphrase>,
    pub(super) qualified: &'a [u16],
    pub(super) transcript: String,
    /// Committee file and configuration of a network that these keys found.
    pub(super) founded: Option<(CommitteeFile, NodeConfig)>,
}

impl Place {
    /// A folder that this generation may use: new, or used by the same generation before.
    pub(super) fn claim(out: &Path, generators: &Generators) -> Result<Self, Failure> {
        let mut place = Self::of(out)?;
        if let Purpose::NextEpoch = generators.purpose {
            place.key = next_key_file(&place.key);
        }
        if place.key.exists() {
            return Err(Failure::usage(KeyFileError::Exists { path: place.key }));
        }
        let ceremony = &generators.ceremony;
        let folder = place.generation();
        fs::create_dir_all(&folder).map_err(|error| failed("make the folder", &folder, &error))?;
        let file = folder.join(COMMITTEE);
        if !file.exists() {
            create(&file, &committee_text(ceremony), 0o644)?;
        }
        if read_committee_file(&file).map_err(Failure::usage)? != *ceremony {
            return Err(Failure::usage(format!(
                "{} belongs to another generation: name a new folder, or remove this one if nothing \
                 of it is needed",
                folder.display()
            )));
        }
        Ok(place)
    }

    fn of(out: &Path) -> Result<Self, Failure> {
        let out = std::path::absolute(out).map_err(Failure::usage)?;
        Ok(Self { key: out.join(KEY), out })
    }

    pub(super) fn generation(&self) -> PathBuf {
        self.out.join("generation")
    }

    /// This member's secret, drawn when it first takes part and durable before anything follows
    /// from it. Under the passphrase of the founding key, if that is sealed.
    pub(super) fn seed(
        &self,
        passphrase: Option<&Passphrase>,
    ) -> Result<Zeroizing<[u8; 32]>, Failure> {
        let path = self.seed_file();
        if !path.exists() {
            let seed = SecretFile::generate(&mut system_random);
            match passphrase {
                Some(passphrase) => {
                    let cost = SealCost::default();
                    seed.write_sealed(&path, passphrase, cost, &mut system_random)
                }
                None => seed.write(&path),
            }
            .map_err(Failure::usage)?;
        }
        let seed = SecretFile::read(&path, passphrase).map_err(Failure::usage)?;
        Ok(seed.secret().clone())
    }

    fn seed_file(&self) -> PathBuf {
        self.generation().join("seed")
    }

    /// Configuration of this member while keys are made, with a log of its own and the ceremony's
    /// settings.
    pub(super) fn ceremony_config(&self, generators: &Generators) -> Result<NodeConfig, Failure> {
        let folder = self.generation();
        let mut config = NodeConfig {
            committee: folder.join(COMMITTEE),
            // No such file: the keys are handed over. What notes that they signed lies beside it.
            key: folder.join("identity"),
            key_notes: None,
            data_dir: folder.join("data"),
            gateway: None,
            gateway_token_file: None,
            genesis: None,
            follow_only: false,
            learner: false,
            learners: Vec::new(),
            ..generators.host.clone()
        };
        config.agree(&generators.ceremony.settings).map_err(Failure::usage)?;
        Ok(config)
    }

    /// Writes what is not there yet.
    pub(super) fn write(&self, made: Made<'_>) -> Result<Written, Failure> {
        let transcript = self.out.join(TRANSCRIPT);
        create_or_keep(&transcript, &made.transcript)?;
        let found = |(committee, config)| self.write_founded(&committee, config);
        let founded = made.founded.map(found).transpose()?;
        passphrase::write_keys(made.keys, &self.key, made.passphrase).map_err(Failure::usage)?;
        StoredKeys::read(&self.key).map_err(Failure::run)?;
        Ok(Written {
            member: made.member,
            qualified: made.qualified.to_vec(),
            key: self.key.clone(),
            transcript,
            founded,
        })
    }

    /// Writes the files of a network that the keys found.
    fn write_founded(
        &self,
        committee: &CommitteeFile,
        mut config: NodeConfig,
    ) -> Result<Founded, Failure> {
        for path in config.paths_mut() {
            *path = std::path::absolute(&*path).map_err(Failure::usage)?;
        }
        let config = NodeConfig {
            committee: COMMITTEE.into(),
            key: KEY.into(),
            key_notes: None,
            data_dir: "data".into(),
            ..config
        };
        let founded =
            Founded { committee: self.out.join(COMMITTEE), config: self.out.join(CONFIG) };
        create_or_keep(&founded.committee, &committee_text(committee))?;
        create_or_keep(&founded.config, &config.to_toml())?;
        // What a validator would find: files that do not load are found out before there are keys.
        NodeConfig::load(&founded.config)
            .and_then(|config| config.load_committee())
            .map_err(Failure::run)?;
        Ok(founded)
    }

    /// Removes the secrets that are not needed any more. Blocks that the disk does not overwrite
    /// may still hold them, as with every file; of a sealed seed they are of no use to anybody.
    pub(super) fn forget_generation(&self) -> io::Result<()> {
        let seed = self.seed_file();
        if let Ok(mut file) = OpenOptions::new().write(true).open(&seed) {
            let bytes = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX).min(4_096);
            file.write_all(&vec![b'0'; bytes]).and_then(|()| file.sync_all())?;
        }
        fs::remove_dir_all(self.generation())
    }

    /// As [`Place::forget_generation`], where there is nobody left to fail.
    pub(super) fn forget_or_say(&self) {
        if let Err(error) = self.forget_generation() {
            eprintln!("cannot remove {}: {error}; do so by hand", self.generation().display());
        }
    }

    /// Gives a generation up: its secrets go, whatever it had come to.
    pub(super) fn abandon(out: &Path) -> Result<PathBuf, Failure> {
        let place = Self::of(out)?;
        let folder = place.generation();
        if !folder.join(COMMITTEE).exists() {
            return Err(Failure::usage(format!(
                "{} holds no generation that has begun",
                place.out.display()
            )));
        }
        place.forget_generation().map_err(|error| failed("remove", &folder, &error))?;
        Ok(folder)
    }
}

/// A file of an earlier start that was killed while it wrote is as it should be, or stops this one.
fn create_or_keep(path: &Path, text: &str) -> Result<(), Failure> {
    if fs::read_to_string(path).is_ok_and(|found| found == text) {
        return Ok(());
    }
    create(path, text, 0o644)
}

fn create(path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let write = |mut file: File| file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    file.and_then(write).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::usage(format!(
            "{} exists already and says something else; move it away first",
            path.display()
        )),
        _ => failed("write", path, &error),
    })
}

fn failed(action: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::run(format!("cannot {action} {}: {error}", path.display()))
}
