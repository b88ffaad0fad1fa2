//! A price list of the present machine: every operation that a replica pays for, measured by
//! running the real code.
//!
//! Signatures and hashes run alone; frames pass through TLS and a socket of this machine; the log
//! and the state store write into a folder; machines and sessions are timed while they carry a
//! small committee in virtual time, by what they are given; a small committee runs for real, for
//! what its threads cost beyond that. The best of several spans counts where one operation is
//! repeated, since whatever else runs on the machine only adds.

mod committee;
mod disk;
mod net;
mod signatures;
mod threads;
mod waking;

use crate::stopwatch;
use quorate_model::{PerStation, Prices, SceneError};
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Reason for which a machine could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateError {
    /// A file or a socket.
    #[error("measuring needs a folder and a local socket: {0}")]
    Io(#[from] io::Error),
    /// The disk cannot be measured.
    #[error(transparent)]
    Storage(#[from] quorate_storage::StorageError),
    /// The small committee, in virtual time.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// The small committee, in real time.
    #[error(transparent)]
    Node(#[from] quorate_node::NodeError),
}

/// The parts of a calibration, in their order.
pub const PARTS: [&str; 6] = [
    "signatures",
    "hashes",
    "frames",
    "the log and the state store",
    "machines and sessions",
    "sleeping threads and crowded cores",
];

/// Measures this machine for about twenty seconds, on the disk that holds `folder`. `program` is
/// this program, to be run as validators (`quorate run`). `begin` hears each of [`PARTS`] as it
/// begins.
///
/// # Errors
/// Why it could not be measured.
pub fn calibrate(
    folder: &Path,
    program: &Path,
    begin: &mut dyn FnMut(&'static str),
) -> Result<Prices, CalibrateError> {
    begin(PARTS[0]);
    let (ed25519, bls) = (signatures::ed25519(), signatures::bls());
    let secp256k1 = signatures::secp256k1();
    begin(PARTS[1]);
    let hash = signatures::hash();
    begin(PARTS[2]);
    let net = net::measure()?;
    begin(PARTS[3]);
    let (log, execution) = (disk::log(folder, &hash)?, disk::execution(folder)?);
    begin(PARTS[4]);
    let (machine_thread, client) = threads::measure(hash.byte_ns)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = format!("{} with {cores} cores", crate::machine::cpu());
    let note = "Measured on this machine: one operation at a time, on one core that did nothing else; waking \
        threads and crowded cores, by what a small committee uses here beyond that.";
    let mut prices = Prices {
        machine,
        commit: crate::machine::version().to_owned(),
        date: today(),
        note: note.to_owned(),
        cores: u16::try_from(cores).unwrap_or(u16::MAX),
        wake_delay_us: waking::measure(),
        ed25519,
        bls,
        secp256k1,
        hash,
        net,
        machine_thread,
        execution,
        log,
        client,
        wake_us: PerStation::all(0.0),
        crowded: PerStation::all(1.0),
    };
    begin(PARTS[5]);
    committee::measure(folder, program, &mut prices)?;
    Ok(prices)
}

/// Length of a span of repetitions; the number of spans follows.
const SPAN: Duration = Duration::from_millis(8);
const SPANS: usize = 6;

/// Mean time of `work` in the best of some spans, in microseconds, to a hundredth of a percent or
/// so.
fn microseconds<T>(work: impl FnMut() -> T) -> f64 {
    stopwatch::microseconds(SPANS, SPAN, work)
}

/// Fixed cost and cost of each part, from two sizes.
fn line(small: (f64, f64), large: (f64, f64)) -> (f64, f64) {
    let each = ((large.1 - small.1) / (large.0 - small.0)).max(0.0);
    (figures((small.1 - each * small.0).max(0.0)), figures(each))
}

/// Four figures of a price.
fn figures(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(3 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

/// The date, in UTC.
fn today() -> String {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(passed.as_secs() / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a day since the Unix epoch.
fn civil(days: u64) -> (u64, u64, u64) {
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month + 1, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_have_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
        assert_eq!(civil(20_818), (2026, 12, 31));
    }

    #[test]
    fn prices_have_four_figures() {
        assert_eq!(figures(123.456), 123.5);
        assert_eq!(figures(0.012_345_6), 0.012_35);
        assert_eq!(figures(0.0), 0.0);
    }

    #[test]
    fn two_sizes_make_a_line() {
        assert_eq!(line((10.0, 30.0), (20.0, 50.0)), (10.0, 2.0));
        assert_eq!(line((10.0, 30.0), (20.0, 20.0)), (30.0, 0.0));
    }
}
