//! Threads that report how they ended: whoever fails stops the host.

use crate::NodeError;
use crossbeam_channel::Sender;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::{Builder, JoinHandle};

/// Work of one thread, to be run on it.
pub(crate) type Worker = Box<dyn FnOnce() + Send>;

/// Starts threads that report how they ended.
pub(crate) struct Threads {
    pub(crate) failed: Sender<NodeError>,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) handles: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn spawn(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
    ) -> Result<(), NodeError> {
        let handle = self.start(name, work)?;
        self.handles.push(handle);
        Ok(())
    }

    pub(crate) fn spawn_unjoined(&self, name: &'static str, work: Worker) -> Result<(), NodeError> {
        self.start(name, move || {
            work();
            Ok(())
        })
        .map(drop)
    }

    pub(crate) fn start(
        &self,
        name: &'static str,
        work: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
    ) -> Result<JoinHandle<()>, NodeError> {
        let failed = self.failed.clone();
        let run = move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            if let Err(error) = result.unwrap_or(Err(NodeError::Panicked(name))) {
                tracing::error!(thread = name, %error, "the validator stops");
                let _ = failed.send(error);
            }
        };
        Builder::new()
            .name(name.into())
            .spawn(run)
            .map_err(|source| NodeError::Start { what: name, source })
    }
}

/// Lets the other threads of a full machine go first from now on: votes, the machine and readers
/// before what is long and can wait. Nothing happens where the system has no such order among
/// threads.
pub(crate) fn give_way() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::nice(NICENESS);
}

/// In Linux's terms each step is a quarter of the time that others get.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;
