//! The execution thread: one height after the other, snapshots taken and installed in between,
//! queries in their `turns`, and everything durable at the end. Beside it a thread that writes
//! snapshots.

mod turns;

use crate::reading::StateViews;
use crate::receiving::next_of;
use crate::validator::News;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use quorate_storage::{Executor, Room, SnapshotJob, Snapshots, StorageError};
use quorate_types::Height;
use quorate_types::machine::{
    Executed, ExecutedUpTo, QueryJob, QueryResult, SnapshotsOnDisk, Task,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use turns::Turns;

/// Pause between two looks at a checkpoint that is on its way, while there is nothing to do.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Answer of the execution to a task.
#[derive(Debug)]
pub(crate) enum Outcome {
    Executed(Executed),
    Durable(Height),
    Installed(Box<ExecutedUpTo>),
    Queried(u64, Option<QueryResult>),
}

/// Executor and snapshots of the execution thread.
pub(crate) struct ExecutionWorker {
    pub(crate) executor: Executor,
    pub(crate) snapshots: Snapshots,
    /// To the thread that writes snapshots, which has one at a time.
    pub(crate) jobs: Sender<SnapshotJob>,
    /// Set while that thread has one.
    pub(crate) writing: Arc<AtomicBool>,
    /// Views of the state, put out for readers.
    pub(crate) views: Arc<StateViews>,
    pub(crate) room: Room,
    /// To the host, which goes on to the next epoch.
    pub(crate) ended: Sender<News>,
}

/// Works until the queue's other end is dropped or the validator stops, then makes the state
/// durable, so that the next start replays nothing.
pub(crate) fn run(
    mut worker: ExecutionWorker,
    tasks: &Receiver<Task>,
    stopping: &AtomicBool,
    answer: &dyn Fn(Outcome) -> bool,
) -> Result<(), StorageError> {
    let (mut turns, mut durable) = (Turns::default(), worker.executor.durable());
    while let Ok(task) = next(tasks, &mut turns, &worker.executor) {
        if stopping.load(Ordering::Relaxed) {
            break;
        }
        let outcome = match task {
            Some(task) => {
                let (is_query, began) = (matches!(task, Task::Query(_)), Instant::now());
                let outcome = worker.apply(task)?;
                turns.put_all(tasks.try_iter());
                turns.took(is_query, began.elapsed());
                outcome
            }
            None => worker.executor.look_at_checkpoint().map(|()| None)?,
        };
        if outcome.is_some_and(|outcome| !answer(outcome)) {
            break;
        }
        if worker.executor.durable() > durable {
            durable = worker.executor.durable();
            answer(Outcome::Durable(durable));
        }
    }
    worker.executor.make_durable()
}

/// The next task; none when a checkpoint may be over first.
fn next(
    tasks: &Receiver<Task>,
    turns: &mut Turns,
    executor: &Executor,
) -> Result<Option<Task>, RecvTimeoutError> {
    turns.put_all(tasks.try_iter());
    if let Some(task) = turns.next() {
        return Ok(Some(task));
    }
    if !executor.is_checkpoint_under_way() {
        return next_of(tasks).map(Some).ok_or(RecvTimeoutError::Disconnected);
    }
    match tasks.recv_timeout(LOOK_EVERY) {
        Err(RecvTimeoutError::Timeout) => Ok(None),
        task => task.map(Some),
    }
}

impl ExecutionWorker {
    fn apply(&mut self, task: Task) -> Result<Option<Outcome>, StorageError> {
        match task {
            Task::Execute(block) => {
                let executed = self.executor.execute(&block)?;
                self.views.put(&mut self.executor)?;
                Ok(Some(Outcome::Executed(executed)))
            }
            Task::Snapshot(height) => self.begin_snapshot(height).map(|()| None),
            Task::Stage(chunk) => {
                let what = ("a chunk of a snapshot", chunk.bytes.len() as u64);
                self.room.when_there_is(what, || self.snapshots.stage(&chunk)).map(|()| None)
            }
            Task::Unstage(chunks) => self.snapshots.unstage(&chunks).map(|()| None),
            Task::Install(install) => {
                let began = Instant::now();
                let executed = self.executor.install(&install, &self.snapshots)?;
                self.snapshots.clear_staged()?;
                self.views.put(&mut self.executor)?;
                let (height, chunks) = (executed.height(), install.manifest.chunks.len());
                let seconds = began.elapsed().as_secs_f64();
                tracing::info!(%height, chunks, seconds, "a snapshot of the state is installed");
                Ok(Some(Outcome::Installed(Box::new(executed))))
            }
            Task::HandOver(handed) => {
                let (height, next) = (handed.header.height, handed.file.epoch);
                tracing::info!(%height, %next, "the epoch has ended, and a quorum handed over");
                // ★ The next epoch begins with this state, and with no record of how it came about.
                self.executor.make_durable()?;
                // Fails only when the host stops.
                let _ = self.ended.send(News::Own(handed));
                Ok(None)
            }
            Task::Query(QueryJob { ticket, query }) => {
                let asked = self.executor.answer(&query)?;
                Ok(Some(Outcome::Queried(ticket, asked)))
            }
        }
    }

    /// One at a time: while the one before is still being written, the open view of it keeps pages
    /// of the store from being used again.
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
    (snapshots, room): (&Snapshots, &Room),
    (writing, stopping): (&AtomicBool, &AtomicBool),
    answer: &dyn Fn(SnapshotsOnDisk) -> bool,
) -> Result<(), StorageError> {
    while let Some(job) = next_of(jobs) {
        if stopping.load(Ordering::Relaxed) {
            break;
        }
        write_snapshot(job, snapshots, room)?;
        writing.store(false, Ordering::Release);
        if !answer(snapshots.on_disk()) {
            break;
        }
    }
    Ok(())
}

/// Writes one, if there is room for it: the one before is as good for whoever fetches it.
fn write_snapshot(
    job: SnapshotJob,
    snapshots: &Snapshots,
    room: &Room,
) -> Result<(), StorageError> {
    let height = job.height();
    if room.is_low() {
        snapshots.keep_newest()?;
        let figures = room.figures();
        let (free, low) = (figures.free_bytes, figures.low_bytes);
        if free < snapshots.newest_bytes() + low / 2 {
            tracing::warn!(%height, free, "no snapshot is taken: the disk is nearly full");
            return Ok(());
        }
    }
    match job.write(snapshots) {
        Ok(manifest) => tracing::debug!(%height, chunks = manifest.chunks.len(), "snapshot"),
        Err(error) if error.costs_a_snapshot() => {
            tracing::warn!(%height, %error, "no snapshot is taken");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}
