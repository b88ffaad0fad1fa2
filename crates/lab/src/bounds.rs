//! Upper bounds of this machine, from the speeds of its parts alone: a result without such a bound
//! beside it does not say whether the disk, the processor or the design is what limits it.
//!
//! Both bounds are optimistic on purpose. They price the bytes and signatures that no
//! implementation of this data plane can do without, at the speed at which one part does nothing
//! else; scheduling, copies, system calls, the order itself and execution come on top.

pub mod crypto;
pub mod disk;

use quorate_report::results::bounds::{Bounds, CpuShares, CryptoSpeed, DiskSpeed, Parts};
use quorate_types::Request;
use std::io;
use std::path::Path;

/// Parameters of a bound besides the machine.
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
    /// `true` if the log is synced.
    pub synced: bool,
}

/// Measures a machine's parts for about three seconds, on the disk that holds `folder`.
///
/// # Errors
/// When nothing can be written there.
pub fn measure(folder: &Path) -> io::Result<Parts> {
    Ok(Parts { disk: disk::measure(folder)?, crypto: crypto::measure() })
}

/// The bounds for a workload, and how near `committed_tps` came.
#[must_use]
pub fn bounds(parts: Parts, workload: &Workload, committed_tps: f64) -> Bounds {
    let cpu = cpu_shares(&parts.crypto, workload);
    let cpu_tps = workload.cores as f64 * 1e6 / cpu.total().max(f64::MIN_POSITIVE);
    let disk_tps = disk_tps(&parts.disk, workload);
    Bounds {
        parts,
        logged_bytes_per_tx: tenths(workload.logged_bytes),
        disk_tps: disk_tps.round(),
        cpu_tps: cpu_tps.round(),
        cpu_us_per_tx: cpu,
        reached: (committed_tps / disk_tps.min(cpu_tps) * 1_000.0).round() / 1_000.0,
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
