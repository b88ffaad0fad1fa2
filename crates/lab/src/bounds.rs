//! What this machine could do at most, from what its parts do alone: a result without such a bound
//! beside it does not say whether the disk, the processor or the design is what limits it.
//!
//! Both bounds are optimistic on purpose. They price the bytes and signatures that no implementation
//! of this data plane can do without, at the speed at which one part does nothing else; scheduling,
//! copies, system calls, the order itself and execution come on top.

mod crypto;
mod disk;

pub use crypto::CryptoSpeed;
pub use disk::DiskSpeed;

use crate::text::thousands;
use quorate_types::Request;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// What the parts of this machine do alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// The disk that the run uses.
    pub disk: DiskSpeed,
    /// One core.
    pub crypto: CryptoSpeed,
}

/// What a bound depends on besides the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// Members, all of them on this machine, as are the clients.
    pub validators: u64,
    /// Cores that they share.
    pub cores: u64,
    /// Bytes of an operation.
    pub tx_bytes: u64,
    /// Bytes that one validator writes to its log for an operation.
    pub logged_bytes: f64,
    /// Whether the log is synced.
    pub synced: bool,
}

/// The highest rates that the parts allow for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// What was measured before the run.
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

/// Core microseconds for one operation.
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

impl Parts {
    /// Measures for about three seconds, on the disk that holds `folder`.
    ///
    /// # Errors
    /// When nothing can be written there.
    pub fn measure(folder: &Path) -> io::Result<Self> {
        Ok(Self { disk: DiskSpeed::measure(folder)?, crypto: CryptoSpeed::measure() })
    }
}

impl Bounds {
    /// The bounds for a workload, and how near `committed_tps` came.
    #[must_use]
    pub fn new(parts: Parts, workload: &Workload, committed_tps: f64) -> Self {
        let cpu = cpu_shares(&parts.crypto, workload);
        let cpu_tps = workload.cores as f64 * 1e6 / cpu.total().max(f64::MIN_POSITIVE);
        let disk_tps = disk_tps(&parts.disk, workload);
        Self {
            parts,
            logged_bytes_per_tx: tenths(workload.logged_bytes),
            disk_tps: disk_tps.round(),
            cpu_tps: cpu_tps.round(),
            cpu_us_per_tx: cpu,
            reached: (committed_tps / disk_tps.min(cpu_tps) * 1_000.0).round() / 1_000.0,
        }
    }

    /// Lines for a table.
    #[must_use]
    pub fn figures(&self) -> Vec<(&'static str, String)> {
        let Parts { disk, crypto } = &self.parts;
        let whole = |value: f64| thousands(value.round() as u64);
        let lower = if self.disk_tps < self.cpu_tps { "disk" } else { "CPU" };
        let cpu = &self.cpu_us_per_tx;
        vec![
            (
                "bounds",
                format!(
                    "disk {} tx/s · CPU {} tx/s; {:.0} % of the {lower}'s reached",
                    whole(self.disk_tps),
                    whole(self.cpu_tps),
                    100.0 * self.reached
                ),
            ),
            (
                "CPU per tx",
                format!(
                    "TLS {:.1} µs · hashes {:.1} · signatures {:.1}, on all cores together",
                    cpu.tls, cpu.hash, cpu.signatures
                ),
            ),
            (
                "this disk",
                format!(
                    "{} MB/s synced, {} not · sync p50 {:.2} ms, p99 {:.2}",
                    whole(disk.synced_mb_s),
                    whole(disk.unsynced_mb_s),
                    disk.sync_p50_ms,
                    disk.sync_p99_ms
                ),
            ),
            (
                "one core",
                format!(
                    "Ed25519 check {:.0} µs, {:.0} in a batch · BLS {:.0} · hash {} MB/s · TLS {}",
                    crypto.ed25519_verify_us,
                    crypto.ed25519_batch_us,
                    crypto.bls_verify_us,
                    whole(crypto.hash_mb_s),
                    whole(crypto.tls_mb_s),
                ),
            ),
        ]
    }
}

impl CpuShares {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.tls + self.hash + self.signatures
    }
}

/// Every validator logs every operation, and all share the disk.
fn disk_tps(disk: &DiskSpeed, workload: &Workload) -> f64 {
    let mb_s = if workload.synced { disk.synced_mb_s } else { disk.unsynced_mb_s };
    mb_s * 1e6 / (workload.validators as f64 * workload.logged_bytes).max(f64::MIN_POSITIVE)
}

/// One operation goes from its client to a validator, and from there to the others. Each end hashes
/// it as part of its request, validators as part of a body too.
fn cpu_shares(crypto: &CryptoSpeed, workload: &Workload) -> CpuShares {
    let (validators, bytes) = (workload.validators as f64, workload.tx_bytes as f64);
    // Microseconds a byte are seconds a megabyte.
    let tls = validators * bytes / crypto.tls_mb_s;
    let hash = (2.0 * validators + 1.0) * bytes / crypto.hash_mb_s;
    let checks = crypto.ed25519_verify_us * (1.0 + validators);
    let batched = crypto.ed25519_batch_us * (validators - 1.0);
    let signed = crypto.ed25519_sign_us * (1.0 + validators);
    let signatures = (checks + batched + signed) / operations_per_request(workload.tx_bytes) as f64;
    CpuShares { tls: hundredths(tls), hash: hundredths(hash), signatures: hundredths(signatures) }
}

/// The most that share a request's signature.
fn operations_per_request(tx_bytes: u64) -> u64 {
    (Request::BYTES_MAX as u64 / tx_bytes.max(1)).clamp(1, Request::OPERATIONS_MAX as u64)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn hundredths(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
