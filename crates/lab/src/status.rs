//! Asking validators how they are.

use crate::http;
use serde::{Deserialize, Serialize};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// What a validator says of itself at `/status`. Fields that an older or newer validator does not
/// send are zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ValidatorStatus {
    /// Its index.
    pub id: u16,
    /// The current view.
    pub view: u64,
    /// The leader of that view.
    pub leader: u16,
    /// The last decided height.
    pub decided: u64,
    /// The last executed height.
    pub executed: u64,
    /// Root at the executed height, in hexadecimal.
    pub root: String,
    /// Operations executed since genesis.
    pub operations: u64,
    /// Views left by a timeout certificate since the validator started.
    pub view_changes: u64,
    /// Bytes of the last certificate.
    pub certificate_bytes: u64,
    /// Whether it is fetching blocks that it missed.
    pub syncing: bool,
    /// Messages that broke a rule of the protocol since it started.
    pub faults: u64,
    /// Other members connected to it.
    pub peers: u64,
    /// Network bytes sent since it started.
    pub sent_bytes: u64,
    /// CPU seconds used since it started.
    pub cpu_seconds: f64,
    /// Memory in use, in MiB.
    pub rss_mb: f64,
    /// When we heard it.
    #[serde(skip)]
    pub heard_at: Option<Instant>,
}

/// Asks one validator.
///
/// # Errors
/// When it does not answer in time, or not with a status.
pub fn ask(address: &str, patience: Duration) -> io::Result<ValidatorStatus> {
    let body = http::get(address, "/status", patience)?;
    let mut status: ValidatorStatus = serde_json::from_str(&body)?;
    status.heard_at = Some(Instant::now());
    Ok(status)
}

/// Asks all at once, each as far as it answers in time; in the order of `addresses`.
///
/// # Panics
/// Never: asking does not panic.
#[must_use]
pub fn ask_all(addresses: &[String], patience: Duration) -> Vec<io::Result<ValidatorStatus>> {
    thread::scope(|scope| {
        let asked: Vec<_> =
            addresses.iter().map(|address| scope.spawn(move || ask(address, patience))).collect();
        asked.into_iter().map(|answer| answer.join().expect("asking does not panic")).collect()
    })
}
