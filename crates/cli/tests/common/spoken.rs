//! Processes that say on standard error how far they are.

use super::{TIMEOUT, wait_for};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A process of `quorate`; killed when dropped.
pub(crate) struct Process {
    child: Child,
    said: PathBuf,
}

impl Process {
    /// Starts it with these arguments. What it says goes behind what this file holds.
    pub(crate) fn start(arguments: &[String], said: PathBuf) -> Self {
        let file = File::options().create(true).append(true).open(&said).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_quorate"))
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(file)
            .spawn();
        Self { child: child.expect("the binary runs"), said }
    }

    pub(crate) fn wait_until_it_says(&self, words: &str) {
        let found = || fs::read_to_string(&self.said).ok().filter(|said| said.contains(words));
        wait_for(words, found);
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    pub(crate) fn succeeds(mut self) {
        let deadline = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{}", fs::read_to_string(&self.said).unwrap_or_default());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
