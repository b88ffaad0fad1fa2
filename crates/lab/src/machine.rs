//! The machine under the figures: a number without one says little.

use serde::Serialize;
use std::fs;

/// What a result says of where it was measured.
#[derive(Clone, Debug, Serialize)]
pub struct MachineInfo {
    /// Cores that this process may use.
    pub cores: usize,
    /// The processor's name.
    pub cpu: String,
    /// Memory in MiB.
    pub memory_mb: u64,
    /// The kernel's name and release.
    pub kernel: String,
    /// The operating system and architecture that the binary was built for.
    pub platform: String,
    /// The version of this binary: what `git describe` said when it was built with
    /// `QUORATE_VERSION` set, or else the crate's.
    pub version: String,
    /// Whether the binary was optimised.
    pub optimised: bool,
}

impl MachineInfo {
    /// Looks around. What cannot be found out is "unknown".
    #[must_use]
    pub fn here() -> Self {
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            memory_mb: memory_mb().unwrap_or(0),
            kernel: kernel(),
            platform: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            version: version().to_owned(),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// The version of this binary.
#[must_use]
pub fn version() -> &'static str {
    option_env!("QUORATE_VERSION").unwrap_or(env!("CARGO_PKG_VERSION"))
}

/// CPU seconds, user and system, that this process has used; `None` where there is no `/proc`.
#[must_use]
pub fn own_cpu_seconds() -> Option<f64> {
    // Fields 14 and 15 of proc(5) stat, in ticks of 1/100 s; the name in field 2 may hold spaces.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((user + system) as f64 / 100.0)
}

fn kernel() -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    match (read("ostype"), read("osrelease")) {
        (Some(name), Some(release)) => format!("{} {}", name.trim(), release.trim()),
        _ => unknown(),
    }
}

fn memory_mb() -> Option<u64> {
    let line = field("/proc/meminfo", "MemTotal")?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn unknown() -> String {
    "unknown".to_owned()
}
