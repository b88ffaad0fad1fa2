//! Load on a key-value store.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// `quorate kv bench` that puts for as long as it lives; it ends where a put is not answered.
pub(crate) struct Load(Child);

impl Load {
    /// Puts on the network in a folder, with more options.
    pub(crate) fn on(folder: &Path, more: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(["kv", "bench", "--keys", "2000", "--callers", "4"])
            .args(["--duration", "3600", "--timeout", "60", "--net"])
            .arg(folder)
            .args(more)
            .stdout(Stdio::null())
            .spawn();
        Self(child.expect("the binary runs"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.0.try_wait().expect("a process"), None, "the load ended by itself");
        }
        self.0.kill().and_then(|()| self.0.wait()).expect("it ran to the end");
    }
}
