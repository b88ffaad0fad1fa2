//! Work of the execution, in the machine's order, and reads of the disk.

use super::{CrashHost, Turn, Work};
use crate::oracles::{Observation, payload_hash};
use quorate_engine::Incoming;
use quorate_storage::StorageError;
use quorate_types::machine::{Block, QueryJob, ReadRequest, Task};
use quorate_types::{Event, Time};
use std::sync::Arc;
use std::time::Duration;

const EXECUTE: Duration = Duration::from_micros(200);
const SNAPSHOT: Duration = Duration::from_micros(900);

impl CrashHost {
    pub(super) fn begin(&mut self, task: Task, turn: &mut Turn) {
        self.tasks.push_back(task);
        if self.tasks.len() == 1 {
            turn.later.push((EXECUTE, Work::Execute));
        }
    }

    pub(super) fn finish_task(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        let task = self.tasks.pop_front().expect("a task is under way");
        if !self.tasks.is_empty() {
            turn.later.push((EXECUTE, Work::Execute));
        }
        let mut event = None;
        match task {
            Task::Execute(block) => event = Some(self.execute(&block)?),
            Task::Snapshot(_) => {
                self.jobs.push_back(self.executor.snapshot()?);
                turn.later.push((SNAPSHOT, Work::Snapshot));
            }
            Task::HandOver(step) => {
                // ★ The next epoch begins with this state.
                self.executor.make_durable()?;
                turn.handed_over = Some(Arc::from(step));
            }
            Task::Stage(chunk) => self.snapshots.stage(&chunk)?,
            Task::Unstage(chunks) => self.snapshots.unstage(&chunks)?,
            Task::Install(install) => {
                let executed = self.executor.install(&install, &self.snapshots)?;
                self.snapshots.clear_staged()?;
                self.executed_durably = executed.height();
                let (height, root) = (executed.height(), executed.root());
                let who = self.who();
                let installed = Observation::Installed { replica: who.name(), height, root };
                self.chronicle.borrow_mut().executed(who, &installed);
                event = Some(Event::Installed(Box::new(executed)));
            }
            Task::Query(QueryJob { ticket, query }) => {
                event = Some(Event::Queried(ticket, self.executor.answer(&query)?));
            }
        }
        self.show(now, "task");
        if let Some(event) = event {
            self.feed(now, event, turn);
        }
        let durable = self.executor.durable();
        if durable > std::mem::replace(&mut self.executed_durably, durable) {
            self.feed(now, Event::Durable(durable), turn);
        }
        Ok(())
    }

    fn execute(&mut self, block: &Block) -> Result<Event<Incoming>, StorageError> {
        let executed = self.executor.execute(block)?;
        let payload = payload_hash(&block.payload);
        let operations = self.recorder.take();
        let who = self.who();
        let observation = Observation::Executed {
            replica: who.name(),
            height: executed.height(),
            root: executed.root(),
            payload,
            operations: &operations,
        };
        self.chronicle.borrow_mut().executed(who, &observation);
        Ok(Event::Executed(executed))
    }

    pub(super) fn finish_snapshot(
        &mut self,
        now: Time,
        turn: &mut Turn,
    ) -> Result<(), StorageError> {
        let job = self.jobs.pop_front().expect("a snapshot is being written");
        job.write(&self.snapshots)?;
        self.show(now, "snapshot");
        self.feed(now, Event::Snapshotted(self.snapshots.on_disk()), turn);
        Ok(())
    }

    pub(super) fn read(
        &mut self,
        now: Time,
        request: &ReadRequest,
        turn: &mut Turn,
    ) -> Result<(), StorageError> {
        let mut answer = self.journal.read(request)?;
        self.snapshots.fill(&mut answer)?;
        self.feed(now, Event::Read(answer), turn);
        Ok(())
    }
}
