//! The machine under the figures: a number without one says little.

use serde::Serialize;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// Machine and binary of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct MachineInfo {
    /// Cores that this process may use.
    pub cores: usize,
    /// Name of the processor.
    pub cpu: String,
    /// Memory of the machine, in MiB.
    pub memory_mb: u64,
    /// The kernel's name and release.
    pub kernel: String,
    /// The operating system and architecture that the binary was built for.
    pub platform: String,
    /// The version of this binary: what `git describe` said when it was built with
    /// `QUORATE_VERSION` set, or else the crate's.
    pub version: String,
    /// The commit that the binary was built from, `-dirty` when something was changed since;
    /// "unknown" outside a repository.
    pub commit: String,
    /// `true` if the binary was optimised.
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
            commit: env!("QUORATE_COMMIT").to_owned(),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// The processor's name, "unknown" where it cannot be found out.
#[must_use]
pub fn cpu() -> String {
    field("/proc/cpuinfo", "model name").unwrap_or_else(unknown)
}

/// Name of this machine, "unknown" where it cannot be found out.
#[must_use]
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(unknown)
}

/// The version of this binary.
#[must_use]
pub fn version() -> &'static str {
    option_env!("QUORATE_VERSION").unwrap_or(env!("CARGO_PKG_VERSION"))
}

/// The version of this binary, and its commit where that is known, as `0.1.0 (e6573c8e12)`.
#[must_use]
pub fn version_and_commit() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| match env!("QUORATE_COMMIT") {
        "unknown" => version().to_owned(),
        commit => format!("{} ({commit})", version()),
    });
    &TEXT
}

/// Ticks of a second, in which proc(5) counts processor time.
pub(crate) const TICKS_PER_SECOND: f64 = 100.0;

/// CPU seconds, user and system, that this process has used; `None` where there is no `/proc`.
#[must_use]
pub fn own_cpu_seconds() -> Option<f64> {
    let [user, system, ..] = own_cpu_ticks()?;
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

/// Ticks that this process used, user and system, and those of its children that ended and were
/// waited for.
pub(crate) fn own_cpu_ticks() -> Option<[u64; 4]> {
    // Fields 14 to 17 of proc(5) stat; the name in field 2 may hold spaces.
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let ticks: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    ticks?.try_into().ok()
}

/// The file system that holds `folder`, with its type and device; "unknown" where there is no
/// `/proc`.
#[must_use]
pub fn filesystem(folder: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let folder = folder.ancestors().find_map(|folder| folder.canonicalize().ok());
    folder.and_then(|folder| filesystem_of(&folder, &mounts)).unwrap_or_else(unknown)
}

/// The last of the deepest mount points above `folder`: later mounts hide earlier ones.
fn filesystem_of(folder: &Path, mounts: &str) -> Option<String> {
    let mount = |line: &str| {
        let mut fields = line.split_whitespace().map(str::to_owned);
        let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let depth = Path::new(&point).components().count();
        folder.starts_with(&point).then(|| (depth, format!("{kind} on {device}")))
    };
    mounts.lines().filter_map(mount).max_by_key(|found| found.0).map(|found| found.1)
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

#[cfg(test)]
mod tests {
    use super::filesystem_of;
    use std::path::Path;

    #[test]
    fn the_deepest_mount_holds_a_folder() {
        let mounts = "/dev/sda1 / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n\
                      /dev/sdb1 /tmpfiles xfs rw 0 0\n";
        let of = |folder: &str| filesystem_of(Path::new(folder), mounts);
        assert_eq!(of("/tmp/bench").as_deref(), Some("tmpfs on tmpfs"));
        assert_eq!(of("/home").as_deref(), Some("ext4 on /dev/sda1"));
        assert_eq!(of("/tmpfiles/bench").as_deref(), Some("xfs on /dev/sdb1"));
        assert_eq!(filesystem_of(Path::new("/home"), ""), None);
    }
}
