//! Figures that the system keeps of this process.

use nix::sys::resource::{UsageWho, getrusage};
use std::fs;

/// Processor seconds of all threads in user mode.
pub(crate) fn user_seconds() -> f64 {
    let time = getrusage(UsageWho::RUSAGE_SELF).expect("its own usage").user_time();
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// Bytes that this process had written to devices: pages of files count when they become dirty,
/// direct writes at once.
pub(crate) fn written_bytes() -> u64 {
    field("/proc/self/io", "write_bytes:")
}

/// Memory that is resident, in bytes.
pub(crate) fn resident_bytes() -> u64 {
    field("/proc/self/status", "VmRSS:") << 10
}

/// What the machine has had to do of late: processes that run or wait, over a minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").expect("a file of proc");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}

fn field(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).expect("a file of proc");
    let rest = text.lines().find_map(|line| line.strip_prefix(name)).expect("a known field");
    rest.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
}
