//! Why a validator or a client stopped.

use crate::ConfigError;
use crate::keys::PassphraseFileError;
use crate::payments::AuthorityConfigError;
use quorate_crypto::KeyFileError;
use quorate_storage::StorageError;
use quorate_types::ReplicaId;
use quorate_types::machine::Halt;
use std::io;
use std::path::PathBuf;

/// Why a validator or a client stopped, or did not start. Each message is for an operator.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The configuration or the committee file is refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A payment authority's configuration is refused.
    #[error(transparent)]
    Authority(#[from] AuthorityConfigError),
    /// An authority's locks are older than what it had voted for.
    #[error("this authority had locked {marked} times and finds {found} locks: its disk was lost or set back, and it would vote twice for one coin; it must not start again under its keys: replace it in a network file of a new epoch ({mark} says so)", mark = mark.display())]
    LocksLost {
        /// How many there were at least.
        marked: u64,
        /// How many there are.
        found: u64,
        /// The file that says so.
        mark: PathBuf,
    },
    /// The key file is refused.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The keys are no member's.
    #[error("the identity key in {key} is no member's of {committee}: use the committee file that names it, or the key of a member", key = key.display(), committee = committee.display())]
    NotAMember {
        /// The key file.
        key: PathBuf,
        /// The committee file.
        committee: PathBuf,
    },
    /// A member that is configured as none.
    #[error("the identity key in {key} is member {member}'s, and the configuration says `learner = true`: a member that is not to vote has `follow_only = true`, a learner has a key of its own (`quorate keys generate`)", key = key.display())]
    LearnerIsMember {
        /// The key file.
        key: PathBuf,
        /// The member.
        member: ReplicaId,
    },
    /// The committee knows this member with another voting key.
    #[error("the voting key in {key} is not the one that {committee} names for member {member}, so that its votes would be refused: use the key file that was made with that entry, or correct the entry (`quorate keys show`)", key = key.display(), committee = committee.display())]
    OtherVotingKey {
        /// The key file.
        key: PathBuf,
        /// The committee file.
        committee: PathBuf,
        /// The member.
        member: ReplicaId,
    },
    /// The key file is sealed and nobody gave a passphrase.
    #[error("{key} is sealed under a passphrase and there is no terminal to ask at: name a file with the passphrase by passphrase_file in the configuration, by QUORATE_PASSPHRASE_FILE, or as the systemd credential quorate-passphrase", key = key.display())]
    NoPassphrase {
        /// The key file.
        key: PathBuf,
    },
    /// The passphrase file is refused.
    #[error(transparent)]
    Passphrase(#[from] PassphraseFileError),
    /// The service handed in is not the configured one.
    #[error(
        "the configuration names the service '{configured}', the program provides '{provided}'"
    )]
    OtherService {
        /// What the configuration says.
        configured: String,
        /// What was handed in.
        provided: String,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address} for {purpose}: {source}; {advice}", advice = listen_advice(source))]
    Listen {
        /// The address.
        address: String,
        /// For what.
        purpose: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The disk failed: nothing was sent that depends on what was not written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The marker beside the key file could not be kept.
    #[error("cannot {action} {path}: {source}; the validator notes there that its key has signed, and does not start without: let its user write in that folder", path = path.display())]
    Marker {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The replica stopped itself.
    #[error("the validator halted itself: {0}")]
    Halted(#[from] Halt),
    /// A thread died of a defect.
    #[error(
        "the {0} thread panicked, which is a defect of this program; the validator stops rather than go on half alive: please report the message above"
    )]
    Panicked(&'static str),
    /// The system gave no thread or runtime.
    #[error("cannot start the {what}: {source}")]
    Start {
        /// What.
        what: &'static str,
        /// The system's words.
        source: io::Error,
    },
    /// The TLS library refused the key.
    #[error("the TLS library refuses the identity key: {0}")]
    Tls(#[from] rustls::Error),
}

/// What to do about an address that cannot be listened on.
fn listen_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "this validator is running already, or another program has the port: stop that one, or \
             choose another port"
        }
        io::ErrorKind::AddrNotAvailable => {
            "it is no address of this machine: set `listen` in the configuration to one that is, or \
             to \"0.0.0.0:PORT\""
        }
        io::ErrorKind::PermissionDenied => "choose a port from 1024 on",
        _ => "write an IP address of this machine and a port into `listen` or `http`",
    }
}
