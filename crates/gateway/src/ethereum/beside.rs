//! The validator beside a server, from one of its runs to the next.
//!
//! A validator ends with its epoch and starts again in the next one, where it opens its state anew:
//! nobody may hold the state of the run before by then. The server goes on. Between two runs it has
//! nothing to read; whoever asks is told so, and subscriptions wait.

use super::error::{self, Failure};
use parking_lot::{Mutex, RwLock};
use quorate_node::Reading;
use quorate_types::{Height, ReplicaId};
use std::sync::Arc;
use tokio::sync::watch;

/// Run of a validator, as far as the server beside it reads and shows it.
#[derive(Clone, Debug)]
pub struct Run {
    /// Queries of its state, which end with the run.
    pub reading: Reading,
    /// What it is in this epoch.
    pub description: Description,
}

/// Description that a validator gives of itself.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the protocol.
    pub protocol: String,
    /// Its index among the members; that of the member asked first beside a learner.
    pub validator: ReplicaId,
    /// URL of its dashboard, as the machine that it runs on reaches it.
    pub dashboard: String,
}

/// Validator in whichever run it is.
#[derive(Debug)]
pub(super) struct Beside {
    /// `None` between two runs; locked while the state is read.
    reading: RwLock<Option<Reading>>,
    description: Mutex<Description>,
    /// Newest executed height, over all runs.
    newest: watch::Sender<Height>,
}

impl Beside {
    /// The validator in its first run.
    pub(super) fn new(run: &Run) -> Arc<Self> {
        Arc::new(Self {
            newest: watch::Sender::new(*run.reading.heights().borrow()),
            reading: RwLock::new(Some(run.reading.clone())),
            description: Mutex::new(run.description.clone()),
        })
    }

    /// Ends the run, once nobody reads its state any more.
    pub(super) fn end_run(&self) {
        self.reading.write().take();
    }

    /// Begins the next run. Its heights are the caller's to [follow](Beside::follow).
    pub(super) fn begin_run(&self, run: Run) {
        *self.description.lock() = run.description;
        *self.reading.write() = Some(run.reading);
    }

    /// Passes on the heights of a run until it ends. Its first one is told in any case: whoever
    /// could not read between two runs tries again.
    pub(super) async fn follow(self: Arc<Self>, mut heights: watch::Receiver<Height>) {
        loop {
            let height = *heights.borrow_and_update();
            self.newest.send_replace(height);
            if heights.changed().await.is_err() {
                return;
            }
        }
    }

    /// Reads the state. Keeps nobody waiting, nor waits.
    ///
    /// # Errors
    /// Between two runs.
    pub(super) fn read<T>(&self, read: impl FnOnce(&Reading) -> T) -> Result<T, Failure> {
        let reading = self.reading.try_read();
        let reading = reading.as_ref().and_then(|reading| reading.as_ref());
        reading.map(read).ok_or_else(error::between_runs)
    }

    /// Newest height that is executed here.
    pub(super) fn newest(&self) -> Height {
        let newest = self.read(|reading| *reading.heights().borrow());
        newest.unwrap_or_else(|_| *self.newest.borrow())
    }

    /// Notice of later heights, in this run and in those after it.
    pub(super) fn heights(&self) -> watch::Receiver<Height> {
        self.newest.subscribe()
    }

    pub(super) fn description(&self) -> Description {
        self.description.lock().clone()
    }
}
