//! Configuration of one shard of an authority: a TOML file beside its keys.

use crate::config::{LogSettings, access_of, is_reachable};
use crate::http_access::Access;
use crate::http_tls::HttpTlsFiles;
use quorate_payments::NetworkError;
use quorate_payments::change::ChangeError;
use quorate_storage::{Durability, LogConfig};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Configuration of one shard of an authority. Relative paths start from the file's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityConfig {
    /// The network file: the same bytes for every authority and wallet.
    pub network: PathBuf,
    /// The authority's secret keys; all its shards have the same.
    pub key: PathBuf,
    /// A file with the passphrase of a sealed key file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passphrase_file: Option<PathBuf>,
    /// The file of the committee that orders releases of locked coins; hand-overs of later epochs
    /// in the folder `epochs` beside it. Absent: nothing is released here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committee: Option<PathBuf>,
    /// Index of the shard, from 0.
    #[serde(default)]
    pub shard: u16,
    /// Folder of its locks. Made when it is missing; two processes never share one.
    pub data_dir: PathBuf,
    /// `address:port` to listen on for payers. Absent: the network file's address of this shard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// `address:port` for status, metrics and evidence over HTTP.
    pub http: String,
    /// A file with one token: whoever asks there shows it. Read again on SIGHUP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_token_file: Option<PathBuf>,
    /// A file of users, each with a token, as `quorate token add` writes it. Read again on SIGHUP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_tokens_file: Option<PathBuf>,
    /// `true`: other machines may ask in clear, where the network encrypts by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http_insecure: bool,
    /// Certificate chain in PEM, for HTTPS there; with `tls_key`. Read again on SIGHUP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of `tls_cert`, which only its owner and group may read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Failures that a lock survives. `fsync`: a power cut. `os`: the end of the process only, for
    /// measurements.
    #[serde(default)]
    pub durability: Durability,
    /// Bytes of locks kept as they came, at least 1 MiB, 256 MiB unless told: with them a refusal
    /// shows whom an input is locked for. Older ones stay locked, in `data_dir/spent`, without
    /// that.
    #[serde(default = "default_evidence")]
    pub evidence_bytes: u64,
    /// Bytes of records that one key's wallet may keep here, at least 64 KiB, 16 MiB unless told:
    /// from them it is made again when its disk is lost. Payments beyond go on, unrecorded.
    #[serde(default = "default_record_bytes")]
    pub record_bytes: u64,
    /// Threads that check transactions and vote, 1 to 64.
    #[serde(default = "one")]
    pub check_threads: usize,
    /// Threads that encrypt and move bytes, 1 to 64.
    #[serde(default = "one")]
    pub network_threads: usize,
    /// Most payers connected at once.
    #[serde(default = "default_payers")]
    pub payers_max: usize,
    /// Level and format of the log, which goes to standard error.
    #[serde(default)]
    pub log: LogSettings,
}

/// About a million locks: what is kept is read at every start.
fn default_evidence() -> u64 {
    256 * 1024 * 1024
}

/// Some ten thousand payments.
fn default_record_bytes() -> u64 {
    16 * 1024 * 1024
}

fn one() -> usize {
    1
}

fn default_payers() -> usize {
    4_096
}

/// Error in an authority's or a wallet's files.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityConfigError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}: {reason}", path = path.display())]
    Parse {
        /// Path of the file.
        path: PathBuf,
        /// Error of the parser, with its line.
        reason: String,
    },
    /// The network file is refused.
    #[error("{path}: {source}", path = path.display())]
    Network {
        /// Path of the file.
        path: PathBuf,
        /// First problem in the network.
        source: NetworkError,
    },
    /// A change beside the network file is refused.
    #[error("{path}: {source}", path = path.display())]
    Change {
        /// Path of the file.
        path: PathBuf,
        /// First problem in the change.
        source: ChangeError,
    },
    /// A field out of its range.
    #[error("{path}: '{field}' is {found}; it is from {least} to {most}", path = path.display())]
    Range {
        /// Path of the file.
        path: PathBuf,
        /// Name of the field.
        field: &'static str,
        /// Value that it has.
        found: u64,
        /// Smallest value that is accepted.
        least: u64,
        /// Largest value that is accepted.
        most: u64,
    },
    /// A certificate without its key, or a key without its certificate.
    #[error("{path}: name a certificate (tls_cert) and its key (tls_key) together", path = path.display())]
    HalfTls {
        /// Path of the file.
        path: PathBuf,
    },
    /// A status page that would be shown to other machines in clear, or has two lists of users.
    #[error("{path}: {problem}", path = path.display())]
    Door {
        /// Path of the file.
        path: PathBuf,
        /// The rule that is broken, and what to do.
        problem: String,
    },
    /// A committee that orders something else.
    #[error(
        "{path}: this committee does not order the releases of payment network {network}: name one with \
         service = \"payments\" and that as genesis_digest, as `quorate pay testnet --committee` writes \
         it",
        path = path.display()
    )]
    OtherCommittee {
        /// Path of the committee file.
        path: PathBuf,
        /// The payment network's identity, in hexadecimal.
        network: String,
    },
    /// The keys are no authority's.
    #[error("the keys in {key} are no authority's of {network}: use the file that names them, or an authority's keys", key = key.display(), network = network.display())]
    NotAnAuthority {
        /// Path of the key file.
        key: PathBuf,
        /// Path of the network file.
        network: PathBuf,
    },
}

impl AuthorityConfig {
    /// Reads a configuration file; its paths become absolute or relative to the working directory.
    ///
    /// # Errors
    /// When it cannot be read or a field is out of its range.
    pub fn load(path: &Path) -> Result<Self, AuthorityConfigError> {
        let mut config: Self = read_toml(path)?;
        let folder = path.parent().unwrap_or(Path::new("."));
        for part in [&mut config.network, &mut config.key, &mut config.data_dir] {
            *part = folder.join(&*part);
        }
        let files = [&mut config.passphrase_file, &mut config.committee];
        let certificate = [&mut config.tls_cert, &mut config.tls_key];
        let tokens = [&mut config.http_token_file, &mut config.http_tokens_file];
        for file in files.into_iter().chain(certificate).chain(tokens).flatten() {
            *file = folder.join(&*file);
        }
        config.check(path)?;
        Ok(config)
    }

    fn check(&self, path: &Path) -> Result<(), AuthorityConfigError> {
        let number = |value: usize| value as u64;
        let ranges = [
            ("check_threads", number(self.check_threads), 1, 64),
            ("network_threads", number(self.network_threads), 1, 64),
            ("payers_max", number(self.payers_max), 1, 65_536),
            ("record_bytes", self.record_bytes, 64 * 1024, u64::MAX),
            ("evidence_bytes", self.evidence_bytes, LogConfig::RETENTION_BYTES_MIN, u64::MAX),
        ];
        for (field, found, least, most) in ranges {
            if found < least || found > most {
                let path = path.to_owned();
                return Err(AuthorityConfigError::Range { path, field, found, least, most });
            }
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err(AuthorityConfigError::HalfTls { path: path.to_owned() });
        }
        self.check_door()
            .map_err(|problem| AuthorityConfigError::Door { path: path.into(), problem })
    }

    fn check_door(&self) -> Result<(), String> {
        if self.http_token_file.is_some() && self.http_tokens_file.is_some() {
            let both = "'http_token_file' and 'http_tokens_file' exclude one another: keep one";
            return Err(both.to_owned());
        }
        if self.tls_cert.is_some() || self.http_insecure || !is_reachable(&self.http) {
            return Ok(());
        }
        Err(format!(
            "'http' = \"{}\" would carry status and tokens over a network in clear: set tls_cert and \
             tls_key, listen on 127.0.0.1, or set http_insecure = true where the network encrypts by \
             itself",
            self.http
        ))
    }

    /// Who may read status, metrics and evidence.
    #[must_use]
    pub fn http_access(&self) -> Access {
        access_of((&self.http_token_file, &self.http_tokens_file)).unwrap_or(Access::Open)
    }

    /// Certificate of the status page, if it has one.
    #[must_use]
    pub fn tls_files(&self) -> Option<HttpTlsFiles> {
        let (cert, key) = (self.tls_cert.clone()?, self.tls_key.clone()?);
        Some(HttpTlsFiles { cert, key })
    }

    /// Encodes the configuration as TOML.
    ///
    /// # Panics
    /// Never: it is a table.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let content = toml::to_string(self).expect("a plain struct is a table");
        format!(
            "# One shard of a payment authority; `quorate pay run --help` says what the fields mean.\n{content}"
        )
    }
}

pub(super) fn read_toml<T: for<'de> Deserialize<'de>>(
    path: &Path,
) -> Result<T, AuthorityConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| AuthorityConfigError::Read { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| AuthorityConfigError::Parse {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(lines: &str) -> Result<AuthorityConfig, AuthorityConfigError> {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("shard-0.toml");
        let files = "network = \"network.toml\"\nkey = \"key.toml\"\ndata_dir = \"data\"\n";
        fs::write(&path, format!("{files}{lines}\n")).expect("written");
        AuthorityConfig::load(&path)
    }

    #[test]
    fn status_is_shown_to_no_other_machine_in_clear_unless_it_is_said() {
        let certificate = "tls_cert = \"cert.pem\"\ntls_key = \"cert.key\"";
        for (lines, is_taken) in [
            ("http = \"127.0.0.1:1\"".to_owned(), true),
            ("http = \"0.0.0.0:1\"".to_owned(), false),
            ("http = \"[::]:1\"".to_owned(), false),
            ("http = \"0:1\"".to_owned(), false),
            ("http = \"localhost:1\"".to_owned(), false),
            (format!("http = \"0.0.0.0:1\"\n{certificate}"), true),
            ("http = \"0.0.0.0:1\"\nhttp_insecure = true".to_owned(), true),
        ] {
            match load(&lines) {
                Ok(_) => assert!(is_taken, "{lines}"),
                Err(AuthorityConfigError::Door { problem, .. }) => {
                    assert!(!is_taken && problem.contains("in clear"), "{lines}: {problem}");
                }
                Err(other) => panic!("{lines}: {other}"),
            }
        }
    }

    #[test]
    fn its_readers_are_in_one_file() {
        let at = |lines: &str| load(&format!("http = \"127.0.0.1:1\"\n{lines}"));
        assert_eq!(at("").expect("taken").http_access(), Access::Open);
        let token = at("http_token_file = \"token\"").expect("taken").http_access();
        assert!(matches!(token, Access::Token(path) if path.is_absolute()));
        let users = at("http_tokens_file = \"tokens.toml\"").expect("taken").http_access();
        assert!(matches!(users, Access::Users(path) if path.is_absolute()));
        let both = at("http_token_file = \"token\"\nhttp_tokens_file = \"tokens.toml\"");
        assert!(matches!(both, Err(AuthorityConfigError::Door { .. })), "{both:?}");
    }
}
