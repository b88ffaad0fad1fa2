//! One validator's configuration: a TOML file beside its keys.
//!
//! What all members must have alike is not in it, but in the committee file that it names
//! ([`NodeConfig::agree`]). Every field has a default but the three paths. Relative paths are meant
//! from the folder of the file itself, so that a validator's folder can be moved as a whole. What
//! each field means is written down in [`fields`], once; [`check`] finds everything wrong with a
//! file at once.

use crate::ClientPolicy;
use crate::http_tls::HttpTlsFiles;
use quorate_crypto::{IdentityKey, KeyCache};
use quorate_engine::{Settings, SettingsError, UnfitProtocol, UnknownSetting};
use quorate_storage::{Durability, ExecutorConfig, LogConfig, RoomConfig};
use quorate_types::{AgreedSettings, Body, ClientId, Committee, CommitteeError, CommitteeFile};
use quorate_wan::{Emulation, EmulationError, Topology};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

mod agreed;
mod archive;
pub mod check;
mod doors;
pub mod fields;
pub mod names;
mod template;

pub(crate) use agreed::{HostCheck, UPGRADE};
pub use agreed::{check_next_host, genesis_digest, read_committee_file};
pub use archive::{Archive, UnknownArchive};
pub(crate) use doors::{access_of, is_reachable};

/// Configuration of one validator, and what its committee file says of settings.
/// [`NodeConfig::to_toml`] writes the former with a comment for every field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeConfig {
    /// The committee file: the same bytes for every member. It holds everybody's address.
    pub committee: PathBuf,
    /// This validator's secret keys. Only its owner may read the file.
    pub key: PathBuf,
    /// Folder of the files that note the key's use. Absent: the key's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_notes: Option<PathBuf>,
    /// A file with the passphrase of a sealed key file. Absent: see [`crate::keys`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase_file: Option<PathBuf>,
    /// Folder of the log and the state. Made when it is missing. Two validators never share one.
    pub data_dir: PathBuf,
    /// `address:port` to listen on for peers and clients. Absent: the port of the committee file's
    /// address, on the same interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// `address:port` for status and metrics. In clear on the loopback interface alone, unless
    /// [`NodeConfig::http_insecure`] is set.
    #[serde(default = "default_http")]
    pub http: String,
    /// `address:port` for the gateway: the key-value store over HTTP, or Ethereum's JSON-RPC.
    /// Absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// A file with the token that callers of the gateway show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_token_file: Option<PathBuf>,
    /// A file with users of the gateway, each with a token and rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_tokens_file: Option<PathBuf>,
    /// Lets whoever reaches the gateway use it without a token: on the loopback interface, and
    /// JSON-RPC everywhere.
    #[serde(default)]
    pub gateway_open: bool,
    /// Certificate chain of the gateway, in PEM. Absent: plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// Its key, in PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Status and metrics over TLS too, with the same certificate.
    #[serde(default)]
    pub http_tls: bool,
    /// A file with the token that readers of status and metrics show. Absent: they need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_token_file: Option<PathBuf>,
    /// A file with users of status and metrics, each with a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens_file: Option<PathBuf>,
    /// Shows status and metrics to other machines in plain HTTP.
    #[serde(default)]
    pub http_insecure: bool,
    /// Takes plain HTTP from other machines at the gateway.
    #[serde(default)]
    pub gateway_insecure: bool,
    /// Most HTTP requests a second from one address of another machine; 0 for any number.
    #[serde(default)]
    pub http_requests_per_second: u64,
    /// Failures that a vote survives. `fsync`: a power cut. `os`: the end of the process only, for
    /// measurements.
    #[serde(default)]
    pub durability: Durability,
    /// Bytes of log kept for members that fell behind, at least 1 MiB: records and bodies together.
    /// Beyond it, heights that are executed durably and covered by a snapshot are deleted.
    #[serde(default = "default_retention")]
    pub retention_bytes: u64,
    /// Bytes of memory for hashes of the leaves of the state's tree, at least 1 MiB.
    #[serde(default = "default_state_cache")]
    pub state_cache_bytes: u64,
    /// States of earlier heights that are kept, where the service is asked of them.
    #[serde(default)]
    pub archive: Archive,
    /// Most bytes of an archive of recent states.
    #[serde(default = "default_archive_bytes")]
    pub archive_bytes: u64,
    /// Most heights of an archive of recent states; 0: as many as fit.
    #[serde(default)]
    pub archive_heights: u64,
    /// Most bytes of memory for proofs of the last states before the newest, beside an archive; 0:
    /// of the newest alone.
    #[serde(default = "default_archive_proof_bytes")]
    pub archive_proof_bytes: u64,
    /// Bytes of a file that is written ahead and deleted when the disk is full, so that what was
    /// promised can be finished; 0: none. Absent: a 64th of the file system, at most 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_reserve_bytes: Option<u64>,
    /// Part of a bench or an experiment: settings for comparisons with papers are taken
    /// ([`quorate_engine::Comparison`]).
    #[serde(default)]
    pub comparison: bool,
    /// Name of the replicated service. All members agree on it.
    #[serde(skip_deserializing, default = "default_service")]
    pub service: String,
    /// Digest of the genesis file, if the service has one. All members agree on it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub genesis_digest: Option<String>,
    /// Version of the rules by which the service executes. All members agree on it.
    #[serde(skip_deserializing, default = "default_execution_version")]
    pub execution_version: u64,
    /// Days for which members' keys are trusted after the last that is known of their epoch. All
    /// members agree on it.
    #[serde(skip_deserializing, default = "default_trusting_period")]
    pub trusting_period_days: u64,
    /// Genesis file of the EVM ledger, in Ethereum's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis: Option<PathBuf>,
    /// Never vote, propose or time out; follow and serve only. For a validator that lost its disk
    /// and has no new key yet.
    #[serde(default)]
    pub follow_only: bool,
    /// No member: ask the committee for what it decided, execute it and answer questions about it.
    #[serde(default)]
    pub learner: bool,
    /// The identity keys, in hexadecimal, of the learners that this member lets ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learners: Vec<String>,
    /// Threads that check bodies and requests, 1 to 64. Votes and proposals have one of their own.
    #[serde(default = "default_threads")]
    pub verify_threads: usize,
    /// Threads that encrypt and move bytes, 1 to 64.
    #[serde(default = "default_threads")]
    pub network_threads: usize,
    /// Clients whose requests and queries are taken. All members agree on them.
    #[serde(skip_deserializing)]
    pub clients: ClientPolicy,
    /// The list of clients, where [`ClientPolicy::Listed`] asks for one. Read again on SIGHUP.
    /// Absent: `clients.toml` beside the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_file: Option<PathBuf>,
    /// Most requests and queries a second of one client; 0 for any number.
    #[serde(default)]
    pub client_requests_per_second: u64,
    /// Most bytes of requests and queries a second of one client; 0 for any number.
    #[serde(default)]
    pub client_bytes_per_second: u64,
    /// Most clients connected at once, 1 to 65536, as far as there are descriptors
    /// ([`crate::descriptors`]). Each may have up to 512 KiB under way.
    #[serde(default = "default_clients")]
    pub clients_max: usize,
    /// Level and format of the log, which goes to standard error.
    #[serde(default)]
    pub log: LogSettings,
    /// Settings of the replica: section `[replica]`, and those that all members agree on.
    #[serde(default)]
    pub replica: Settings,
    /// A network to emulate, for laboratories only: what this validator sends to others is held
    /// back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// File that names links to be cut, for laboratories only ([`crate::transport::cuts`]); no file
    /// has it, `quorate run --cut-links` sets it.
    #[serde(skip)]
    pub cut_links: Option<PathBuf>,
}

/// Most learners of one member.
const LEARNERS_MAX: usize = 64;

/// Refuses a field's value when it is not as it must be: whether it is, its name, the value, the
/// rule.
type Check<'a> =
    &'a dyn Fn(bool, &'static str, &dyn fmt::Display, &'static str) -> Result<(), ConfigError>;

fn default_http() -> String {
    "127.0.0.1:9100".into()
}

fn default_retention() -> u64 {
    LogConfig::default().retention_bytes
}

fn default_state_cache() -> u64 {
    128 << 20
}

fn default_archive_bytes() -> u64 {
    1 << 30
}

fn default_archive_proof_bytes() -> u64 {
    64 << 20
}

fn default_service() -> String {
    "ordered-log".into()
}

fn default_execution_version() -> u64 {
    AgreedSettings::default().execution_version
}

fn default_trusting_period() -> u64 {
    AgreedSettings::default().trusting_period_days
}

fn default_threads() -> usize {
    2
}

fn default_clients() -> usize {
    1_024
}

/// Level and format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// The least severe level that is written: `error`, `warn`, `info`, `debug` or `trace`.
    pub level: LogLevel,
    /// `text` for people, `json` for machines: one object a line.
    pub format: LogFormat,
}

/// The least severe level that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Failures that stop the validator.
    Error,
    /// Conditions that need an operator's attention.
    Warn,
    /// Starts, stops, peers that come and go.
    #[default]
    Info,
    /// Connections that open and close.
    Debug,
    /// Every message, for hunting defects.
    Trace,
}

/// Format of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Plain text for people.
    #[default]
    Text,
    /// One JSON object a line, for programs.
    Json,
}

/// Error in a configuration. Each message names the file, the field and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file that is not there or not readable.
    #[error("cannot read {what} {path}: {source}; check the path, and who may read it", path = path.display())]
    Read {
        /// Kind of file, for the message.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file that is not TOML, or has a field that nobody knows.
    #[error("{path} is not a valid {what}: {}", source.to_string().trim_end(), path = path.display())]
    Parse {
        /// Kind of file, for the message.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the parser, with its line.
        source: Box<toml::de::Error>,
    },
    /// A value out of its range.
    #[error("{path}: '{field}' is {value}; {rule}", path = path.display())]
    Field {
        /// Path of the file.
        path: PathBuf,
        /// Name of the field.
        field: &'static str,
        /// Value that it has.
        value: String,
        /// Rule that the value breaks.
        rule: &'static str,
    },
    /// A field that belongs into the committee file.
    #[error("{path}: {}", agreed::is_agreed_by_all(field), path = path.display())]
    Agreed {
        /// Path of the file.
        path: PathBuf,
        /// Name of the field.
        field: String,
    },
    /// A setting in a committee file that is each member's own.
    #[error("{path}, section [settings]: {}", agreed::is_each_members(field, section), path = path.display())]
    Local {
        /// Path of the file.
        path: PathBuf,
        /// Name of the field.
        field: String,
        /// Section of the configuration in which it belongs; empty for none.
        section: &'static str,
    },
    /// A setting in a committee file whose value is unknown.
    #[error("{path}, section [settings]: {source}", path = path.display())]
    Unknown {
        /// Path of the file.
        path: PathBuf,
        /// Setting, its value and those that it may have.
        source: UnknownSetting,
    },
    /// A genesis file that members did not agree on.
    #[error("{path}, section [settings]: {}", agreed::is_another_genesis(agreed.as_deref(), found), path = path.display())]
    Genesis {
        /// Path of the committee file.
        path: PathBuf,
        /// Digest that members agree on.
        agreed: Option<String>,
        /// Digest of the file that is here.
        found: String,
    },
    /// An HTTP door that would be open in clear, or to whom it must not be.
    #[error("{path}: {problem}", path = path.display())]
    Door {
        /// Path of the file.
        path: PathBuf,
        /// Rule that it breaks, and the remedy.
        problem: String,
    },
    /// A replica's setting out of its range.
    #[error("{path}, section [{section}]: {source}", path = path.display())]
    Replica {
        /// Path of the file.
        path: PathBuf,
        /// Section in which the setting stands.
        section: &'static str,
        /// Setting and the rule that it breaks.
        source: SettingsError,
    },
    /// A setting for comparisons with papers that is not at its default.
    #[error("{path}, section [{section}]: {}", for_comparisons(setting), path = path.display())]
    Comparison {
        /// Path of the file.
        path: PathBuf,
        /// Section in which the setting stands.
        section: &'static str,
        /// Name of the setting.
        setting: &'static str,
    },
    /// An emulation that cannot be.
    #[error("{path}, section [emulation]: {source}", path = path.display())]
    Emulation {
        /// Path of the file.
        path: PathBuf,
        /// Reason that it cannot be.
        source: EmulationError,
    },
    /// A committee whose weights the protocol does not support.
    #[error("the committee file {path}: {source}", path = path.display())]
    Unweighted {
        /// Path of the file.
        path: PathBuf,
        /// Reason that the protocol does not support it.
        source: UnfitProtocol,
    },
    /// A committee file with something wrong in it.
    #[error("the committee file {path} is refused: {source}", path = path.display())]
    Committee {
        /// Path of the file.
        path: PathBuf,
        /// First problem in the committee.
        source: CommitteeError,
    },
}

impl NodeConfig {
    /// A configuration with every default, for these three paths.
    #[must_use]
    pub fn new(committee: PathBuf, key: PathBuf, data_dir: PathBuf) -> Self {
        Self {
            committee,
            key,
            key_notes: None,
            passphrase_file: None,
            data_dir,
            listen: None,
            http: default_http(),
            gateway: None,
            gateway_token_file: None,
            gateway_tokens_file: None,
            gateway_open: false,
            tls_cert: None,
            tls_key: None,
            http_tls: false,
            http_token_file: None,
            http_tokens_file: None,
            http_insecure: false,
            gateway_insecure: false,
            http_requests_per_second: 0,
            durability: Durability::default(),
            retention_bytes: default_retention(),
            state_cache_bytes: default_state_cache(),
            archive: Archive::default(),
            archive_bytes: default_archive_bytes(),
            archive_heights: 0,
            archive_proof_bytes: default_archive_proof_bytes(),
            disk_reserve_bytes: None,
            comparison: false,
            service: default_service(),
            genesis_digest: None,
            execution_version: default_execution_version(),
            trusting_period_days: default_trusting_period(),
            genesis: None,
            follow_only: false,
            learner: false,
            learners: Vec::new(),
            verify_threads: default_threads(),
            network_threads: default_threads(),
            clients: ClientPolicy::default(),
            clients_file: None,
            client_requests_per_second: 0,
            client_bytes_per_second: 0,
            clients_max: default_clients(),
            log: LogSettings::default(),
            replica: Settings::default(),
            emulation: None,
            cut_links: None,
        }
    }

    /// Reads a configuration file and what the committee file that it names says of settings,
    /// resolves its paths and checks every range.
    ///
    /// # Errors
    /// The first thing wrong with it, or with the committee file's settings.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let mut config = agreed::read_config(path)?;
        config.resolve(folder_of(path));
        let agreed = config.read_committee_file()?.settings;
        let taken = config.agree(&agreed);
        taken.map_err(|source| ConfigError::Unknown { path: config.committee.clone(), source })?;
        config.name_clients_file(path);
        config.validate(path)?;
        config.check_doors(path)?;
        Ok(config)
    }

    /// Names the list of clients where there is to be one and nobody said where: beside the
    /// configuration at `path`.
    fn name_clients_file(&mut self, path: &Path) {
        if self.clients == ClientPolicy::Listed {
            self.clients_file.get_or_insert_with(|| folder_of(path).join("clients.toml"));
        }
    }

    /// Makes relative paths start from `folder`.
    fn resolve(&mut self, folder: &Path) {
        for relative in self.paths_mut() {
            *relative = folder.join(&*relative);
        }
    }

    /// Every file and folder that this validator is told of in its own file.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let paths = [&mut self.committee, &mut self.key, &mut self.data_dir];
        let optional = [
            &mut self.key_notes,
            &mut self.passphrase_file,
            &mut self.gateway_token_file,
            &mut self.gateway_tokens_file,
            &mut self.http_token_file,
            &mut self.http_tokens_file,
            &mut self.tls_cert,
            &mut self.tls_key,
            &mut self.clients_file,
            &mut self.genesis,
        ];
        paths.into_iter().chain(optional.into_iter().flatten())
    }

    /// Checks every range; `path` is for the message.
    ///
    /// # Errors
    /// The first field out of its range.
    pub fn validate(&self, path: &Path) -> Result<(), ConfigError> {
        let check: Check<'_> = &|ok, field, value, rule| {
            if ok {
                return Ok(());
            }
            let path = self.place_of(field, path).0.to_owned();
            Err(ConfigError::Field { path, field, value: value.to_string(), rule })
        };
        let address = |text: &str| text.parse::<SocketAddr>().is_ok();
        check(
            self.listen.as_deref().is_none_or(address),
            "listen",
            &self.listen.as_deref().unwrap_or_default(),
            "write an IP address and a port, such as \"0.0.0.0:7000\"",
        )?;
        check(
            address(&self.http),
            "http",
            &self.http,
            "write an IP address and a port, such as \"127.0.0.1:9100\"",
        )?;
        check(
            self.gateway.as_deref().is_none_or(address),
            "gateway",
            &self.gateway.as_deref().unwrap_or_default(),
            "write an IP address and a port, such as \"127.0.0.1:9200\"",
        )?;
        self.check_tls(check)?;
        let sizes = [
            ("retention_bytes", self.retention_bytes, LogConfig::RETENTION_BYTES_MIN),
            ("state_cache_bytes", self.state_cache_bytes, 1 << 20),
            ("archive_bytes", self.archive_bytes, 1 << 20),
        ];
        for (name, bytes, least) in sizes {
            check(bytes >= least, name, &bytes, "it must be at least 1048576")?;
        }
        self.check_agreed(check)?;
        self.check_learners(check)?;
        let threads = |count: usize| (1..=64).contains(&count);
        check(
            threads(self.verify_threads),
            "verify_threads",
            &self.verify_threads,
            "it must be 1 to 64",
        )?;
        check(
            threads(self.network_threads),
            "network_threads",
            &self.network_threads,
            "it must be 1 to 64",
        )?;
        check(
            (1..=65_536).contains(&self.clients_max),
            "clients_max",
            &self.clients_max,
            "it must be 1 to 65536",
        )?;
        self.check_comparison(path, check)?;
        self.replica.validate().map_err(|source| {
            let (file, section) = self.place_of(source.name(), path);
            ConfigError::Replica { path: file.to_owned(), section, source }
        })?;
        let emulation = self.emulation.as_ref().map_or(Ok(()), |wan| wan.topology(1).map(drop));
        emulation.map_err(|source| ConfigError::Emulation { path: path.to_owned(), source })
    }

    /// Refuses settings for comparisons unless the file is a bench's, and what no bench has.
    fn check_comparison(&self, path: &Path, check: Check<'_>) -> Result<(), ConfigError> {
        let comparison = &self.replica.comparison;
        if let Some(setting) = comparison.departures().first().filter(|_| !self.comparison) {
            let (file, section) = self.place_of(setting, path);
            return Err(ConfigError::Comparison { path: file.to_owned(), section, setting });
        }
        check(
            comparison.signatures,
            "signatures",
            &comparison.signatures,
            "it must be true: only simulated replicas go without",
        )
    }

    fn check_tls(&self, check: Check<'_>) -> Result<(), ConfigError> {
        let key = self.tls_key.as_deref();
        check(
            self.tls_cert.is_some() == self.tls_key.is_some(),
            "tls_key",
            &key.map_or("absent".into(), |path| path.display().to_string()),
            "name a certificate (tls_cert) and its key (tls_key) together",
        )?;
        check(
            !self.http_tls || self.tls_cert.is_some(),
            "http_tls",
            &self.http_tls,
            "it needs a certificate: set tls_cert and tls_key",
        )
    }

    /// Checks what all members agree on, but for the replica's.
    fn check_agreed(&self, check: Check<'_>) -> Result<(), ConfigError> {
        check(!self.service.is_empty(), "service", &"empty", "name the replicated service")?;
        check(
            self.execution_version > 0,
            "execution_version",
            &self.execution_version,
            "it must be at least 1",
        )?;
        check(
            self.trusting_period_days > 0,
            "trusting_period_days",
            &self.trusting_period_days,
            "it must be at least 1",
        )
    }

    fn check_learners(&self, check: Check<'_>) -> Result<(), ConfigError> {
        let wrong = self
            .learners
            .iter()
            .find(|key| !key.parse::<IdentityKey>().is_ok_and(|key| key.check().is_ok()));
        check(
            wrong.is_none(),
            "learners",
            &wrong.map_or("", String::as_str),
            "each is an identity key of 64 hexadecimal digits: `quorate keys show` prints it",
        )?;
        check(
            self.learners.len() <= LEARNERS_MAX,
            "learners",
            &self.learners.len(),
            "there may be at most 64",
        )?;
        check(
            !self.learner || self.listen.is_some(),
            "learner",
            &self.learner,
            "the committee file has no address for a learner: set `listen`",
        )?;
        check(
            !self.learner || self.emulation.is_none(),
            "learner",
            &self.learner,
            "a network is emulated between members alone: remove the section [emulation]",
        )
    }

    /// Path that the names of the files beside the key are made from: the key's own, in the folder
    /// `key_notes` where the configuration names one.
    pub(crate) fn noted_key(&self) -> PathBuf {
        match (&self.key_notes, self.key.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => self.key.clone(),
        }
    }

    /// Certificate of the HTTP doors, where there is one.
    #[must_use]
    pub fn tls_files(&self) -> Option<HttpTlsFiles> {
        let (cert, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(HttpTlsFiles { cert, key })
    }

    /// The learners that are let ask.
    #[must_use]
    pub fn learner_ids(&self) -> BTreeSet<ClientId> {
        self.learners.iter().filter_map(|key| key.parse().ok().map(ClientId)).collect()
    }

    /// The network to emulate between so many members, if any.
    ///
    /// # Errors
    /// When there is no such network.
    pub fn topology(&self, members: usize) -> Result<Option<Topology>, ConfigError> {
        let topology = self.emulation.as_ref().map(|emulation| emulation.topology(members));
        let failed = |source| ConfigError::Emulation { path: "the configuration".into(), source };
        topology.transpose().map_err(failed)
    }

    /// Reads and checks the committee file that the configuration names.
    ///
    /// # Errors
    /// When it cannot be read, its first unusable key, or weights or keys that the protocol does
    /// not support.
    pub fn load_committee(&self) -> Result<Committee, ConfigError> {
        let committee = load_committee(&self.committee, self.replica.comparison.key_cache)?;
        let path = || self.committee.clone();
        let supported =
            self.replica.protocol.check_committee(committee.weights(), committee.scheme_kind());
        supported.map_err(|source| ConfigError::Unweighted { path: path(), source })?;
        Ok(committee)
    }

    /// Reads the committee file that the configuration names, and leaves its keys unchecked.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_committee_file(&self) -> Result<CommitteeFile, ConfigError> {
        read_committee_file(&self.committee)
    }

    /// Configuration of the log. A segment is deleted as a whole, so it is no more than an eighth
    /// of the retention.
    #[must_use]
    pub fn log_config(&self) -> LogConfig {
        let (durability, retention_bytes) = (self.durability, self.retention_bytes);
        let segment_bytes = LogConfig::default().segment_bytes.min(retention_bytes / 8);
        LogConfig { durability, retention_bytes, segment_bytes }
    }

    /// Schedule of the state's checkpoints: what a segment holds, so that a small log goes with
    /// small checkpoints.
    #[must_use]
    pub fn executor_config(&self) -> ExecutorConfig {
        let durable_bytes = self.log_config().segment_bytes;
        ExecutorConfig { durable_bytes, ..ExecutorConfig::default() }
    }

    /// Room that the disk should have. It is low when it may not do for what can be written before
    /// anybody looks again: the next two segments of both logs, two checkpoints of the state with
    /// pages twice as large as the bodies that changed them, and a body for each log that is larger
    /// than a segment.
    #[must_use]
    pub fn room_config(&self) -> RoomConfig {
        let segments = 4 * self.log_config().segment_bytes;
        let state = 4 * self.executor_config().durable_bytes;
        let low_bytes = segments + state + 2 * Body::BYTES_MAX as u64;
        RoomConfig { reserve_bytes: self.disk_reserve_bytes, low_bytes }
    }

    /// The file that [`NodeConfig::load`] reads back: every field with its comment.
    #[must_use]
    pub fn to_toml(&self) -> String {
        template::annotate(self)
    }
}

/// Reason for refusing a setting, in words.
fn for_comparisons(setting: &str) -> String {
    format!(
        "'{setting}' is for comparisons with papers, in `quorate bench`, `quorate sim` and the \
         laboratory; a validator takes its default alone: remove it"
    )
}

/// Effective configuration: every value without its meaning, and a mark where it is not the
/// default.
#[must_use]
pub fn effective(config: &NodeConfig) -> String {
    template::effective(config)
}

/// docs/CONFIG.md: every field of the configuration and of the committee file.
#[must_use]
pub fn reference() -> String {
    template::reference()
}

/// Reads and checks a committee file.
///
/// # Errors
/// When it cannot be read, or its first unusable key.
pub fn load_committee(path: &Path, cache: KeyCache) -> Result<Committee, ConfigError> {
    let file = read_committee_file(path)?;
    Committee::load(&file, cache)
        .map_err(|source| ConfigError::Committee { path: path.to_owned(), source })
}

pub(crate) fn read_toml<T: for<'de> Deserialize<'de>>(
    what: &'static str,
    path: &Path,
) -> Result<T, ConfigError> {
    parse_toml(what, path, &read_text(what, path)?)
}

fn read_text(what: &'static str, path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read { what, path: path.to_owned(), source };
    std::fs::read_to_string(path).map_err(failed)
}

fn parse_toml<T: for<'de> Deserialize<'de>>(
    what: &'static str,
    path: &Path,
    text: &str,
) -> Result<T, ConfigError> {
    let failed = |source| ConfigError::Parse { what, path: path.to_owned(), source };
    toml::from_str(text).map_err(|source| failed(Box::new(source)))
}

/// The folder that a file is in; the present one for a bare name.
fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
