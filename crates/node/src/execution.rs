//! The execution thread: one height after the other, snapshots taken and installed in between, and
//! everything durable at the end. Beside it a thread that writes snapshots.

use crate::reading::Shelf;
use crossbeam_channel::{Receiver, Sender};
use quorate_storage::{Executor, SnapshotJob, Snapshots, StorageError};
use quorate_types::Height;
use quorate_types::machine::{AskJob, Asked, Executed, ExecutedUpTo, Task};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// What comes back.
#[derive(Debug)]
pub(crate) enum Outcome {
    Executed(Executed),
    Durable(Height),
    Installed(Box<ExecutedUpTo>),
    Asked(u64, Option<Asked>),
}

/// What the thread works on.
pub(crate) struct Workshop {
    pub(crate) executor: Executor,
    pub(crate) snapshots: Snapshots,
    /// To the thread that writes snapshots, which has one at a time.
    pub(crate) jobs: Sender<SnapshotJob>,
    /// It has one.
    pub(crate) writing: Arc<AtomicBool>,
    /// Where views of the state are put out for readers.
    pub(crate) shelf: Arc<Shelf>,
}

/// Works until the queue's other end is dropped or the validator stops, then makes the state
/// durable, so that the next start replays nothing.
pub(crate) fn run(
    mut workshop: Workshop,
    tasks: &Receiver<Task>,
    stopping: &AtomicBool,
    answer: &dyn Fn(Outcome) -> bool,
) -> Result<(), StorageError> {
    let mut durable = workshop.executor.durable();
    while let Ok(task) = tasks.recv() {
        if stopping.load(Ordering::Relaxed) {
            break;
        }
        let outcome = workshop.carry_out(task)?;
        if outcome.is_some_and(|outcome| !answer(outcome)) {
            break;
        }
        if workshop.executor.durable() > durable {
            durable = workshop.executor.durable();
            answer(Outcome::Durable(durable));
        }
    }
    workshop.executor.make_durable()
}

impl Workshop {
    fn carry_out(&mut self, task: Task) -> Result<Option<Outcome>, StorageError> {
        match task {
            Task::Execute(block) => {
                let executed = self.executor.execute(&block)?;
                self.shelf.put(&self.executor)?;
                Ok(Some(Outcome::Executed(executed)))
            }
            Task::Snapshot(height) => self.begin_snapshot(height).map(|()| None),
            Task::Stage(chunk) => self.snapshots.stage(&chunk).map(|()| None),
            Task::Unstage(chunks) => self.snapshots.unstage(&chunks).map(|()| None),
            Task::Install(install) => {
                let began = Instant::now();
                let executed = self.executor.install(&install, &self.snapshots)?;
                self.snapshots.clear_staged()?;
                self.shelf.put(&self.executor)?;
                let (height, chunks) = (executed.height(), install.manifest.chunks.len());
                let seconds = began.elapsed().as_secs_f64();
                tracing::info!(%height, chunks, seconds, "a snapshot of the state is installed");
                Ok(Some(Outcome::Installed(Box::new(executed))))
            }
            Task::Ask(AskJob { ticket, question }) => {
                let asked = self.executor.ask(&question)?;
                Ok(Some(Outcome::Asked(ticket, asked)))
            }
        }
    }

    /// One at a time: while the one before is still being written, the open view of it keeps pages of
    /// the store from being used again.
    fn begin_snapshot(&mut self, height: Height) -> Result<(), StorageError> {
        if self.writing.load(Ordering::Acquire) {
            tracing::warn!(%height, "no snapshot is taken: the one before is still being written");
            return Ok(());
        }
        self.writing.store(true, Ordering::Release);
        // Without its thread the validator is stopping.
        let _ = self.jobs.send(self.executor.snapshot()?);
        Ok(())
    }
}

/// Writes snapshots until the queue's other end is dropped; `answer` is told which ones there are.
pub(crate) fn write_snapshots(
    jobs: &Receiver<SnapshotJob>,
    snapshots: &Snapshots,
    (writing, stopping): (&AtomicBool, &AtomicBool),
    answer: &dyn Fn(Vec<Height>) -> bool,
) -> Result<(), StorageError> {
    while let Ok(job) = jobs.recv() {
        if stopping.load(Ordering::Relaxed) {
            break;
        }
        let manifest = job.write(snapshots)?;
        writing.store(false, Ordering::Release);
        tracing::debug!(height = %manifest.header.height, chunks = manifest.chunks.len(), "snapshot");
        if !answer(snapshots.heights()) {
            break;
        }
    }
    Ok(())
}
