//! Highest rates that a machine's parts allow for, beside which a measured rate stands.

use crate::text::thousands;
use serde::{Deserialize, Serialize};

/// Speeds of a machine's parts, each measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The disk that the run uses.
    pub disk: DiskSpeed,
    /// One core, doing cryptography.
    pub crypto: CryptoSpeed,
}

/// Speed of a disk that does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskSpeed {
    /// Sequential megabytes a second that the system takes without a sync.
    pub unsynced_mb_s: f64,
    /// Sequential megabytes a second, each one synced.
    pub synced_mb_s: f64,
    /// Median time to write and sync 4 KiB, in milliseconds.
    pub sync_p50_ms: f64,
    /// 99th percentile of the same, in milliseconds.
    pub sync_p99_ms: f64,
}

/// Speed of one core that does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CryptoSpeed {
    /// Time of an Ed25519 signature, in microseconds.
    pub ed25519_sign_us: f64,
    /// Time of checking one alone, in microseconds.
    pub ed25519_verify_us: f64,
    /// Time of checking one of a batch of 64, in microseconds.
    pub ed25519_batch_us: f64,
    /// Time of checking a BLS certificate, in microseconds.
    pub bls_verify_us: f64,
    /// Time of adding up the BLS shares of a quorum of four and checking the sum, in microseconds.
    pub bls_combine_us: f64,
    /// Megabytes a second hashed, a body at a time.
    pub hash_mb_s: f64,
    /// Megabytes a second encrypted *and* decrypted through TLS, both ends' work on one core.
    pub tls_mb_s: f64,
}

/// Highest rates that disk and processor allow for, and how near a run came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// Speeds measured before the run.
    pub parts: Parts,
    /// Bytes that one validator logged for an operation in this run.
    pub logged_bytes_per_tx: f64,
    /// Operations per second that the disk can log for all validators.
    pub disk_tps: f64,
    /// Operations per second that the cores can encrypt, hash and check for all.
    pub cpu_tps: f64,
    /// Core microseconds for one operation, by part, all validators and the client together.
    pub cpu_us_per_tx: CpuShares,
    /// The committed rate over the lower of the two.
    pub reached: f64,
}

/// Core microseconds for one operation, by the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuShares {
    /// Encrypting and decrypting it on its way to and between validators.
    pub tls: f64,
    /// Hashing it, alone and as part of a body, at the client and every validator.
    pub hash: f64,
    /// Its share of its request's signatures: the client's, every validator's check of it, every
    /// validator's reply, and the client's checks of these.
    pub signatures: f64,
}

/// Speed of one core with EVM transactions and no replication: it recovers their senders, executes
/// them in chunks of 12 KB, and keeps the state on disk.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unreplicated {
    /// Number of transactions measured.
    pub transactions: u64,
    /// Number of these that the ledger refused.
    pub refused: u64,
    /// Processor time of recovering a sender, in microseconds.
    pub recover_us: f64,
    /// Processor time of everything else of a transaction, in microseconds.
    pub execute_us: f64,
}

/// Highest rate of the EVM ledger, and how near a run came.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvmBound {
    /// Speed of one machine alone.
    pub unreplicated: Unreplicated,
    /// Transactions per second that the validators could execute together if ordering cost
    /// nothing: cores/(n·t).
    pub bound_tps: f64,
    /// The committed rate over that bound.
    pub reached: f64,
}

impl CpuShares {
    /// Sum of all shares, in microseconds.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.tls + self.hash + self.signatures
    }
}

impl Bounds {
    /// Rows for a table: name and text.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let lower = if self.disk_tps < self.cpu_tps { "disk" } else { "CPU" };
        let cpu = &self.cpu_us_per_tx;
        let bounds = format!(
            "disk {} tx/s · CPU {} tx/s; {:.0} % of the {lower}'s reached",
            whole(self.disk_tps),
            whole(self.cpu_tps),
            100.0 * self.reached
        );
        let cpu = format!(
            "TLS {:.1} µs · hashes {:.1} · signatures {:.1}, on all cores together",
            cpu.tls, cpu.hash, cpu.signatures
        );
        vec![
            ("bounds", bounds),
            ("CPU per tx", cpu),
            ("this disk", self.parts.disk.describe()),
            ("one core", self.parts.crypto.describe()),
        ]
    }
}

impl DiskSpeed {
    fn describe(&self) -> String {
        format!(
            "{} MB/s synced, {} not · sync p50 {:.2} ms, p99 {:.2}",
            whole(self.synced_mb_s),
            whole(self.unsynced_mb_s),
            self.sync_p50_ms,
            self.sync_p99_ms
        )
    }
}

impl CryptoSpeed {
    fn describe(&self) -> String {
        format!(
            "Ed25519 check {:.0} µs, {:.0} in a batch · BLS {:.0} · hash {} MB/s · TLS {}",
            self.ed25519_verify_us,
            self.ed25519_batch_us,
            self.bls_verify_us,
            whole(self.hash_mb_s),
            whole(self.tls_mb_s),
        )
    }
}

impl Unreplicated {
    /// Processor time of a transaction, in microseconds.
    #[must_use]
    pub fn each_us(&self) -> f64 {
        self.recover_us + self.execute_us
    }

    /// Transactions a second on one core.
    #[must_use]
    pub fn tps(&self) -> f64 {
        1e6 / self.each_us()
    }

    /// Transactions a second that so many validators on so many shared cores could execute if
    /// ordering cost nothing.
    #[must_use]
    pub fn bound(&self, validators: u64, cores: u64) -> f64 {
        cores as f64 * self.tps() / validators as f64
    }

    /// The measurement as a line of text.
    #[must_use]
    pub fn describe(&self) -> String {
        let refused = match self.refused {
            0 => String::new(),
            refused => {
                format!(" · {} of {} refused", thousands(refused), thousands(self.transactions))
            }
        };
        format!(
            "{} tx/s on one core: sender {:.1} µs, execution {:.1}{refused}",
            whole(self.tps()),
            self.recover_us,
            self.execute_us,
        )
    }
}

impl EvmBound {
    /// Rows for a table: name and text.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let bound = format!(
            "{} tx/s if ordering cost nothing; {:.0} % of it reached",
            whole(self.bound_tps),
            100.0 * self.reached
        );
        vec![("unreplicated", self.unreplicated.describe()), ("EVM bound", bound)]
    }
}

fn whole(value: f64) -> String {
    thousands(value.round() as u64)
}
