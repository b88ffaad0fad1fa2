//! `quorate keys dkg`: one member's part in generating threshold keys without a dealer.

mod drive;
mod files;
mod generators;
mod next;
mod progress;
pub(in crate::commands) mod transcript;
mod written;

use crate::commands::config::refused;
use crate::failure::{CommandResult, Failure};
use crate::{output, passphrase};
use clap::Args;
use files::Place;
use generators::Generators;
use quorate_crypto::{KeyFile, Passphrase, StoredKeys};
use quorate_engine::ProtocolKind;
use quorate_ledger::keygen::{Ceremony, Generated, Participant};
use quorate_node::config::LogSettings;
use quorate_node::{LogLevel, NodeConfig, init_logging, keys};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use written::Written;

/// Generate threshold keys together with the other members, without a dealer.
///
/// Every member (keys of any scheme, all of one weight) runs this with its own configuration and a
/// new folder. They find each other, deal, check and complain in an order that they decide as they
/// decide everything. Nobody ever holds a secret but its own shares. What each writes has a
/// transcript, that shows to anybody how the keys came about.
///
/// Members of a founding committee meet at the committee file's addresses, so that its validators
/// do not run meanwhile. They write what a committee with `scheme = "bls-threshold"` needs:
/// key.toml, committee.toml and config.toml.
///
/// With --next, members of the next epoch of a network meet while it serves, at the ports of their
/// addresses in that epoch plus --port-offset, before the change of committee is drawn up. DRAFT
/// says who they are: a change, as `quorate committee draft` writes it, that nobody signs. Stayers
/// name the configuration of their validator, newcomers that of their learner. Each writes
/// key.next.toml, which has its identity; `quorate committee draft --threshold-keys` takes the
/// transcript.
///
/// A third of the members may fail: those that are silent for longer than --timeout are gone on
/// without. A member that was killed runs the same command again: it goes on where it was, for as
/// long as others are there; afterwards it takes its keys from their transcript, with --transcript.
/// The folder's `generation` holds what that takes, this member's secrets among it, sealed if its
/// present key is. It goes when the keys are written, when there will be none for this member, and
/// with --abandon.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    quorate testnet net                            a founding committee of four, Ed25519\n  \
    quorate keys dkg --config net/validator-0/config.toml --out keys/validator-0\n                                                 \
    and so for each, all at once\n  \
    quorate keys transcript keys/validator-0/transcript.json\n  \
    quorate bench --protocol sbft --keys-from keys\n  \
    quorate run --config keys/validator-0/config.toml\n  \
    quorate keys dkg --next members.toml --config config.toml --out next\n                                                 \
    keys of the next epoch, while this one serves\n  \
    quorate keys dkg --out keys/validator-0 --abandon\n                                                 \
    what it began is given up\n\n\
    Exit code 1: no keys were made, or none for this member.")]
pub(crate) struct Options {
    /// This member's configuration: in the founding committee, or of the validator or learner that
    /// runs meanwhile
    #[arg(long, value_name = "FILE", required_unless_present = "abandon")]
    config: Option<PathBuf>,
    /// The folder for this member's new files; nothing in it is overwritten
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Generate for the next epoch of a network that serves, whose members DRAFT names
    #[arg(long, value_name = "DRAFT", conflicts_with_all = ["abandon", "protocol"])]
    next: Option<PathBuf>,
    /// Number added to the port of each member's address in DRAFT, for where they meet while their
    /// validators serve; the same at every member
    #[arg(long, default_value_t = 1_000, value_name = "N", requires = "next",
          allow_negative_numbers = true,
          value_parser = clap::value_parser!(i32).range(-65_535..=65_535))]
    port_offset: i32,
    /// The key file whose voting key DRAFT names, if it is not the configuration's
    #[arg(long, value_name = "FILE", requires = "next")]
    key: Option<PathBuf>,
    /// Give up a generation that has begun: remove this member's secrets, without which it never
    /// gets its keys
    #[arg(long, conflicts_with_all = ["config", "transcript"])]
    abandon: bool,
    /// Name of this generation: the same text at every member, another one after a generation that
    /// failed
    #[arg(long, default_value = "1", value_name = "TEXT")]
    label: String,
    /// The protocol that the new committee file names, the same at every member: pbft, linear-pbft,
    /// linear-pbft-fast or sbft
    #[arg(long, default_value = "sbft")]
    protocol: ProtocolKind,
    /// Seconds to wait for all members to join before going on with a quorum
    #[arg(long, default_value_t = 120, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    join_timeout: u64,
    /// Seconds to wait for the others in each phase that follows, before going on without them
    #[arg(long, default_value_t = 10, value_name = "SECONDS",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// Seconds to stay after the keys are written, for members that have none yet
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    linger: u64,
    /// Take this member's keys from the transcript that another one wrote, without the network
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// Take the passphrase of a sealed key file from the first line of FILE; the new one is sealed
    /// under the same
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Print what was made as one JSON object
    #[arg(long)]
    json: bool,
}

/// All that does not change while keys are made.
struct Given<'a> {
    options: &'a Options,
    config: NodeConfig,
    generators: Generators,
    keys: KeyFile,
    passphrase: Option<Passphrase>,
    place: Place,
}

impl Options {
    pub(crate) fn run(&self) -> CommandResult {
        let Some(config) = &self.config else { return self.give_up() };
        let given = self.prepare(config)?;
        let participant = given.participant()?;
        // What a validator says day by day would hide what is said here.
        let level = match given.config.log.level {
            LogLevel::Info => LogLevel::Warn,
            level => level,
        };
        init_logging(LogSettings { level, ..given.config.log });
        let written = match &self.transcript {
            Some(file) => given.take_from(&participant, file)?,
            None => drive::generate(&given, &participant)?,
        };
        given.place.forget_or_say();
        self.tell(&written);
        Ok(())
    }

    fn give_up(&self) -> CommandResult {
        let folder = Place::abandon(&self.out)?;
        if self.json {
            output::json(&json!({ "abandoned": folder }));
        } else {
            output::line(&format!("{} is removed, and its secrets with it.", folder.display()));
        }
        Ok(())
    }

    fn prepare(&self, path: &Path) -> Result<Given<'_>, Failure> {
        let config = NodeConfig::load(path);
        let mut config = config.map_err(|error| refused(path, &error))?;
        if self.passphrase_file.is_some() {
            config.passphrase_file.clone_from(&self.passphrase_file);
        }
        if let Some(key) = &self.key {
            config.key.clone_from(key);
        }
        let (keys, passphrase) = open_keys(&config)?;
        let generators = match &self.next {
            Some(draft) => {
                let meeting = (draft.as_path(), self.port_offset);
                Generators::next_epoch(&config, &keys.public(), meeting, &self.label)
            }
            None => Generators::founding(&config, &self.label, self.protocol),
        }?;
        let place = Place::claim(&self.out, &generators)?;
        Ok(Given { options: self, config, generators, keys, passphrase, place })
    }

    fn tell(&self, written: &Written) {
        if self.json { output::json(written) } else { output::line(&written.to_string()) }
    }
}

impl Given<'_> {
    fn participant(&self) -> Result<Participant, Failure> {
        let seed = self.place.seed(self.passphrase.as_ref())?;
        let identity = self.keys.identity.clone();
        Participant::new(Arc::clone(&self.generators.plan), identity, seed).ok_or_else(|| {
            Failure::usage(format!(
                "the identity key in {} is no member's of {}",
                self.config.key.display(),
                self.generators.source.display()
            ))
        })
    }

    /// Takes the keys from a file, as a member does that comes when the others have gone.
    fn take_from(&self, participant: &Participant, file: &Path) -> Result<Written, Failure> {
        let transcript = transcript::read(file)?;
        let same = self.generators.check_same(&transcript);
        same.map_err(|reason| Failure::usage(format!("{} {reason}", file.display())))?;
        let ceremony = transcript.replay().map_err(Failure::run)?;
        self.write(participant, &ceremony)
    }

    /// Writes this member's files, once there are keys.
    fn write(&self, participant: &Participant, ceremony: &Ceremony) -> Result<Written, Failure> {
        let generated = generated(ceremony)?;
        if !participant.is_known_to(ceremony) {
            return Err(self.not_joined(ceremony, participant.member()));
        }
        let voting = participant.keys(ceremony).map_err(Failure::run)?;
        let keys = KeyFile { identity: self.keys.identity.clone(), voting };
        let Generators { file, label, .. } = &self.generators;
        self.place.write(files::Made {
            member: participant.member(),
            keys: &keys,
            passphrase: self.passphrase.as_ref(),
            qualified: &generated.qualified,
            transcript: transcript::text(file, label, ceremony),
            founded: self.generators.founded(&generated),
        })
    }

    /// Failure of a member that has no part in a ceremony that has begun.
    fn not_joined(&self, ceremony: &Ceremony, member: u16) -> Failure {
        if ceremony.joined().contains(&member) {
            return Failure::run(format!(
                "member {member} joined before with a secret that is not in {}: it cannot read what \
                 is dealt to it; the others go on without it",
                self.place.generation().display()
            ));
        }
        Failure::run(format!(
            "the others went on without member {member}, which did not join in time: it has no keys; \
             generate again with another --label, or do without it"
        ))
    }

    fn join_timeout(&self) -> Duration {
        Duration::from_secs(self.options.join_timeout)
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(self.options.timeout)
    }

    fn linger(&self) -> Duration {
        Duration::from_secs(self.options.linger)
    }
}

/// Keys of a ceremony that is over.
fn generated(ceremony: &Ceremony) -> Result<Arc<Generated>, Failure> {
    match ceremony.result() {
        Some(Ok(generated)) => Ok(Arc::clone(generated)),
        Some(Err(failure)) => Err(Failure::run(format!("no keys were generated: {failure}"))),
        None => Err(Failure::run("no keys are generated yet")),
    }
}

/// The founding keys, and the passphrase that they were sealed under.
fn open_keys(config: &NodeConfig) -> Result<(KeyFile, Option<Passphrase>), Failure> {
    let sealed = match StoredKeys::read(&config.key).map_err(Failure::usage)? {
        StoredKeys::Open(keys) => return Ok((keys, None)),
        StoredKeys::Sealed(sealed) => sealed,
    };
    let passphrase = match keys::passphrase_file(config) {
        Some((path, origin)) => keys::read_passphrase(&path, origin).map_err(Failure::usage)?,
        None => passphrase::existing(&config.key, None)?,
    };
    let keys = sealed.open(&passphrase).map_err(Failure::usage)?;
    Ok((keys, Some(passphrase)))
}
