//! Small file systems for a test, which nobody else sees.

use super::{stderr, stdout};
use rustix::fs::statvfs;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Set in the process that has mounts of its own.
const INSIDE: &str = "QUORATE_OWN_MOUNTS";

/// Runs the body of the test of this name in a process with mounts of its own: they end with it.
/// Fails where the system gives nobody such a process.
pub(crate) fn with_own_mounts(test: &str, body: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    let executable = env::current_exe().expect("this program");
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--mount", "--"]).arg(executable).args(["--exact", test, "--nocapture"]);
    let output = command.env(INSIDE, "1").output();
    let output = output.expect("this test needs `unshare`, of util-linux");
    // A name that is no test's runs none, which is a success to whoever counts failures.
    assert!(
        output.status.success() && stdout(&output).contains("test result: ok. 1 passed"),
        "in a process with mounts of its own ({command:?}; it needs root with CAP_SYS_ADMIN, or user \
         namespaces for everybody):\n{}\n{}",
        stdout(&output),
        stderr(&output)
    );
}

/// Mounts a file system of so many MiB over a folder, which is made.
pub(crate) fn mount(folder: &Path, mebibytes: u64) {
    fs::create_dir_all(folder).expect("a folder");
    let size = format!("size={mebibytes}m");
    let output =
        Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder).output();
    let output = output.expect("`mount` runs");
    assert!(output.status.success(), "no mount of a tmpfs: {}", stderr(&output));
}

/// Gives a file system so many MiB, without taking anything from whoever writes there.
pub(crate) fn grow(folder: &Path, mebibytes: u64) {
    let size = format!("remount,size={mebibytes}m");
    let output = Command::new("mount").args(["-o", &size]).arg(folder).output();
    let output = output.expect("`mount` runs");
    assert!(output.status.success(), "the tmpfs does not grow: {}", stderr(&output));
}

/// Bytes that are free where this folder is.
pub(crate) fn free(folder: &Path) -> u64 {
    let system = statvfs(folder).expect("a file system");
    system.f_bavail * system.f_frsize
}

/// A file that takes room until it is removed.
pub(crate) struct Ballast(PathBuf);

impl Ballast {
    /// Leaves no more than so many bytes free in a folder.
    pub(crate) fn leaving(folder: &Path, name: &str, bytes: u64) -> Self {
        let path = folder.join(name);
        let mut file = fs::File::create(&path).expect("a file");
        let piece = [0; 64 * 1024];
        while free(folder) > bytes {
            let length = piece.len().min(usize::try_from(free(folder) - bytes).expect("small"));
            // Others write here too, and may have been quicker.
            if file.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        Self(path)
    }

    pub(crate) fn remove(self) {
        fs::remove_file(self.0).expect("removed");
    }
}
