//! The threads beside the machine's, and how what they did comes back to it.

use super::origin::Origin;
use crate::execution::{self, ExecutionWorker, Outcome};
use crate::log::{Outgoing, Outlet};
use crate::machine::EventSender;
use crate::metrics::Metrics;
use crate::pool::{Combiner, Pool};
use crate::receiving::next_of;
use crate::rescue::{ProofOutlet, StateProofs};
use crate::threads::{Threads, give_way};
use crate::transport::Network;
use crate::{NodeConfig, NodeError, room};
use crossbeam_channel::{Receiver, Sender};
use quorate_storage::{JournalReader, JournalStats, Room, SnapshotJob, Snapshots, StorageError};
use quorate_types::machine::{ReadRequest, Task};
use quorate_types::{BodyRef, Event};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Applies the effects that the log thread releases.
pub(super) struct LogOutlet {
    pub(super) network: Arc<Network>,
    pub(super) execution: Sender<Task>,
    pub(super) events: EventSender,
    pub(super) read: Sender<ReadRequest>,
    pub(super) metrics: Arc<Metrics>,
}

impl Outlet for LogOutlet {
    fn send(&self, outgoing: Outgoing) {
        self.network.send(outgoing);
    }

    fn execute(&self, task: Task) {
        // Fails only when the host stops.
        drop(self.execution.send(task));
    }

    fn stored(&self, body: BodyRef) {
        self.events.answer(Event::Stored(body));
    }

    fn read(&self, request: ReadRequest) {
        let _ = self.read.send(request);
    }

    fn committed(&self, stats: JournalStats) {
        self.metrics.log(stats);
    }
}

/// Starts the threads that check messages and combine shares.
pub(super) fn start_pool(
    threads: &Threads,
    origin: &Origin,
    metrics: &Arc<Metrics>,
    events: EventSender,
    bulk_threads: usize,
) -> Result<Pool, NodeError> {
    let combined: Combiner = Arc::new(move |outcome| events.answer(Event::Combined(outcome)));
    let (pool, workers) = Pool::new(&origin.verifier, metrics, &combined, bulk_threads);
    for (index, worker) in workers.into_iter().enumerate() {
        let name = if index == 0 { "check-votes" } else { "check-bulk" };
        threads.spawn_unjoined(name, worker)?;
    }
    Ok(pool)
}

/// Starts the thread that keeps the certificates of snapshots' heights; the way to it.
pub(super) fn keep_proofs(
    threads: &mut Threads,
    config: &NodeConfig,
) -> Result<ProofOutlet, NodeError> {
    let (outlet, certificates) = ProofOutlet::new(config.replica.snapshot_every);
    let proofs = StateProofs::of(&config.data_dir);
    threads.spawn("proofs", move || {
        proofs.run(&certificates);
        Ok(())
    })?;
    Ok(outlet)
}

/// Starts the thread that executes what is decided.
pub(super) fn spawn_execution(
    threads: &mut Threads,
    worker: ExecutionWorker,
    tasks: Receiver<Task>,
    events: EventSender,
) -> Result<(), NodeError> {
    let (stopping, room) = (Arc::clone(&threads.stopping), worker.room.clone());
    room::spawn(threads, "execute", &room, move || {
        let answer = |outcome| {
            events.answer(match outcome {
                Outcome::Executed(executed) => Event::Executed(executed),
                Outcome::Durable(height) => Event::Durable(height),
                Outcome::Installed(executed) => Event::Installed(executed),
                Outcome::Queried(ticket, asked) => Event::Queried(ticket, asked),
            })
        };
        execution::run(worker, &tasks, &stopping, &answer)
    })
}

/// Starts the thread that writes snapshots; `writing` is set while it has one under way.
pub(super) fn spawn_snapshots(
    threads: &mut Threads,
    (snapshots, room): (Snapshots, Room),
    jobs: Receiver<SnapshotJob>,
    writing: Arc<AtomicBool>,
    events: EventSender,
) -> Result<(), NodeError> {
    let stopping = Arc::clone(&threads.stopping);
    threads.spawn("snapshots", move || {
        give_way();
        let answer = |on_disk| events.answer(Event::Snapshotted(on_disk));
        Ok(execution::write_snapshots(&jobs, (&snapshots, &room), (&writing, &stopping), &answer)?)
    })
}

/// Starts the thread that reads back what was stored: a block for a peer that fell behind never
/// delays a vote's sync.
pub(super) fn spawn_reading(
    threads: &mut Threads,
    (journal, snapshots): (JournalReader, Snapshots),
    requests: Receiver<ReadRequest>,
    events: EventSender,
) -> Result<(), NodeError> {
    threads.spawn("read", move || Ok(read_back(&journal, &snapshots, &requests, &events)?))
}

fn read_back(
    journal: &JournalReader,
    snapshots: &Snapshots,
    requests: &Receiver<ReadRequest>,
    events: &EventSender,
) -> Result<(), StorageError> {
    while let Some(request) = next_of(requests) {
        let mut answer = journal.read(&request)?;
        snapshots.fill(&mut answer)?;
        if !events.answer(Event::Read(answer)) {
            break;
        }
    }
    Ok(())
}
