//! Errors that stop a validator or a client.

use crate::ConfigError;
use crate::config::UPGRADE;
use crate::descriptors::TooFewDescriptors;
use crate::http_access::TokenError;
use crate::http_tls::HttpTlsError;
use crate::payments::{AuthorityConfigError, PayEpochError};
use quorate_crypto::{KeyFileError, PassphraseError};
use quorate_payments::LookupFailed;
use quorate_storage::StorageError;
use quorate_types::machine::Halt;
use quorate_types::{HandedOverError, Height, LacksVersion, NetworkId, ReplicaId};
use std::io;
use std::path::PathBuf;

/// Error that stops a validator or a client, or keeps it from starting. Each message is for an
/// operator.
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
        /// Number of locks that the mark states, at least.
        marked: u64,
        /// Number of locks found.
        found: u64,
        /// The file that says so.
        mark: PathBuf,
    },
    /// There is nothing of an authority that is started as one that ran before.
    #[error("{data_dir} has no locks, and there is no {mark} to say how many there were: if this authority never ran in this network, start it once with --first-start; if it did, its disk was lost, and it would vote twice for one coin: it must not start again under its keys: replace it in a network file of a new epoch", data_dir = data_dir.display(), mark = mark.display())]
    NeverStarted {
        /// Folder in which locks would be.
        data_dir: PathBuf,
        /// The file that would say how many.
        mark: PathBuf,
    },
    /// An authority that is started for the first time ran before.
    #[error("this is not the first start: {data_dir} has locks, or {mark} says how many there were; leave out --first-start", data_dir = data_dir.display(), mark = mark.display())]
    StartedBefore {
        /// Folder of the locks.
        data_dir: PathBuf,
        /// The file that says how many.
        mark: PathBuf,
    },
    /// An authority could not look an input up: it would have to guess whether it is locked.
    #[error("cannot tell whether an input is locked: {0}; the authority stops")]
    LookupFailed(#[from] LookupFailed),
    /// What an epoch of a payment network ends or begins with is refused.
    #[error(transparent)]
    PayEpoch(#[from] PayEpochError),
    /// The key file is refused.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// The keys are no member's.
    #[error("the identity key in {key} is no member's of {committee}: use the committee file that names it, or the key of a member", key = key.display(), committee = committee.display())]
    NotAMember {
        /// Path of the key file.
        key: PathBuf,
        /// Path of the committee file.
        committee: PathBuf,
    },
    /// A member that is configured as none.
    #[error("the identity key in {key} is member {member}'s, and the configuration says `learner = true`: a member that is not to vote has `follow_only = true`, a learner has a key of its own (`quorate keys generate`)", key = key.display())]
    LearnerIsMember {
        /// Path of the key file.
        key: PathBuf,
        /// Member whose key it is.
        member: ReplicaId,
    },
    /// The committee knows this member with another voting key.
    #[error("the voting key in {key} is not the one that {committee} names for member {member}, so that its votes would be refused: use the key file that was made with that entry, or correct the entry (`quorate keys show`); in the epoch after a change of keys, put the new key file beside it as {next}", key = key.display(), committee = committee.display(), next = next.display())]
    OtherVotingKey {
        /// Path of the key file.
        key: PathBuf,
        /// Path of the committee file.
        committee: PathBuf,
        /// Member whose entry differs.
        member: ReplicaId,
        /// Path at which a key file would be looked for that follows.
        next: PathBuf,
    },
    /// The key file is sealed and nobody gave a passphrase.
    #[error("{key} is sealed under a passphrase and there is no terminal to ask at: name a file with the passphrase by passphrase_file in the configuration, by QUORATE_PASSPHRASE_FILE, or as the systemd credential quorate-passphrase", key = key.display())]
    NoPassphrase {
        /// Path of the key file.
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
        /// Service that the configuration names.
        configured: String,
        /// Service that the program provides.
        provided: String,
    },
    /// The program lacks the version that the service executes by in the epoch in force.
    #[error("{0}: {UPGRADE}. Nothing is lost: it goes on from its disk")]
    LacksVersion(#[from] LacksVersion),
    /// A service that is never asked whom it admits.
    #[error(
        "the configuration says clients = \"service\", and the service '{0}' is not asked ahead of the order: say \"open\" or \"listed\", or give it an `admission`"
    )]
    NoAdmission(String),
    /// An address that cannot be listened on.
    #[error("cannot listen on {address} for {purpose}: {source}; {advice}", advice = listen_advice(source))]
    Listen {
        /// Address as it was configured.
        address: String,
        /// Purpose of the listener, for the message.
        purpose: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The certificate of an HTTP door is refused.
    #[error(transparent)]
    HttpTls(#[from] HttpTlsError),
    /// The tokens of an HTTP door are not taken.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The process may have too few files and connections open.
    #[error(transparent)]
    TooFewDescriptors(#[from] TooFewDescriptors),
    /// The disk failed: nothing was sent that depends on what was not written.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The state store is damaged, and was put out of the way.
    #[error("{source}; it is set aside as {aside}: the next start makes it again from the log and from the other validators, so start again", aside = aside.display())]
    StateSetAside {
        /// Damage that was found.
        source: StorageError,
        /// Present name of the file.
        aside: PathBuf,
    },
    /// A hand-over that breaks a rule.
    #[error("{path}: {reason}; put the hand-overs of this network there, or let the validator fetch them anew: move the file away", path = path.display())]
    HandOver {
        /// Path of its file.
        path: PathBuf,
        /// Rule that it breaks.
        reason: HandedOverError,
    },
    /// A hand-over could not be read or kept.
    #[error("cannot {action} {path}: {source}; a validator keeps the way from the founding committee to the present one there, and goes no further without", path = path.display())]
    HandOverFile {
        /// Operation on the file, as a verb for the message.
        action: &'static str,
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A network that goes on from a state which is not here.
    #[error("the committee file founds its network on the state of {network} at {height}, and {data_dir} does not have it: run `quorate state import` with the file of that state, into this data folder, before the first start", data_dir = data_dir.display())]
    NotFounded {
        /// Folder of the data.
        data_dir: PathBuf,
        /// Network whose state it is.
        network: NetworkId,
        /// Height of the state.
        height: Height,
    },
    /// The marker beside the key file could not be kept.
    #[error("cannot {action} {path}: {source}; the validator notes there that its key has signed, and does not start without: let its user write in that folder", path = path.display())]
    Marker {
        /// Operation on the file, as a verb for the message.
        action: &'static str,
        /// Path of the marker file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// What a key signed is noted beside it, and not in the folder that `key_notes` names.
    #[error("{beside} notes what this key has signed, and `key_notes` leads to {noted}, which does not exist: move the file there, so that a lost or an old log goes on to be noticed", beside = beside.display(), noted = noted.display())]
    NotesElsewhere {
        /// Path of the note beside the key.
        beside: PathBuf,
        /// Path at which it is looked for.
        noted: PathBuf,
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
        /// Part that did not start, for the message.
        what: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The TLS library refused the key.
    #[error("the TLS library refuses the identity key: {0}")]
    Tls(#[from] rustls::Error),
}

/// Remedy for an address that cannot be listened on.
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

/// Reason that a passphrase file is refused.
#[derive(Debug, thiserror::Error)]
pub enum PassphraseFileError {
    /// The file system refused.
    #[error("cannot read the passphrase file {path}: {source}", path = path.display())]
    Read {
        /// Path of the passphrase file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Others may read it, or its group may write it.
    #[error("the passphrase file {path} is open to others (mode {mode:04o}): run `chmod 600` on it, and change the passphrase if somebody may have read it", path = path.display())]
    Shared {
        /// Path of the passphrase file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file's content is no passphrase.
    #[error("the passphrase file {path} is not taken: {source}", path = path.display())]
    Content {
        /// Path of the passphrase file.
        path: PathBuf,
        /// Rule that the content breaks.
        source: PassphraseError,
    },
}
