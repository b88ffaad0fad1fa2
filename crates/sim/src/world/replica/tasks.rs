//! Work of the execution, the reader and the writer of snapshots.

use super::{Note, ReplicaHost, Turn, Work};
use crate::oracles::payload_hash;
use quorate_storage::StorageError;
use quorate_types::machine::{Block, Executed, QueryJob, ReadRequest, Task};
use quorate_types::{Event, Time};
use std::sync::Arc;

impl ReplicaHost {
    pub(super) fn finish_task(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let task = running.tasks.pop_front().expect("a task is under way");
        if !running.tasks.is_empty() {
            let span = self.rng.span(&self.config.durations.execute_us);
            turn.later.push((span, Work::Execute));
        }
        match task {
            Task::Execute(block) => self.execute(now, &block, turn)?,
            Task::Snapshot(_) => {
                running.jobs.push_back(running.executor.snapshot()?);
                // As long as some heights take: execution goes on meanwhile.
                let span = self.rng.span(&self.config.durations.execute_us) * 4;
                turn.later.push((span, Work::Snapshot));
                let durable = running.executor.durable();
                if durable > std::mem::replace(&mut running.durable, durable) {
                    self.feed(now, Event::Durable(durable), turn);
                }
            }
            Task::Query(QueryJob { ticket, query }) => {
                let asked = running.executor.answer(&query)?;
                self.feed(now, Event::Queried(ticket, asked), turn);
            }
            Task::HandOver(step) => {
                // ★ The next epoch begins with this state, and with no record of how it came about.
                running.executor.make_durable()?;
                turn.handed_over = Some(Arc::from(step));
            }
            Task::Stage(chunk) => running.snapshots.stage(&chunk)?,
            Task::Unstage(chunks) => running.snapshots.unstage(&chunks)?,
            Task::Install(install) => {
                let executed = running.executor.install(&install, &running.snapshots)?;
                running.snapshots.clear_staged()?;
                running.durable = executed.height();
                let (height, root) = (executed.height(), executed.root());
                turn.notes.push(Note::Installed { height, root });
                self.feed(now, Event::Installed(Box::new(executed)), turn);
            }
        }
        Ok(())
    }

    fn execute(&mut self, now: Time, block: &Block, turn: &mut Turn) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let executed: Executed = running.executor.execute(block)?;
        let durable = running.executor.durable();
        let news = durable > std::mem::replace(&mut running.durable, durable);
        let payload = payload_hash(&block.payload);
        turn.notes.push(Note::Executed {
            height: executed.height(),
            root: executed.root(),
            payload,
            operations: running.recorder.take(),
        });
        self.feed(now, Event::Executed(executed), turn);
        if news {
            self.feed(now, Event::Durable(durable), turn);
        }
        Ok(())
    }

    pub(super) fn finish_snapshot(
        &mut self,
        now: Time,
        turn: &mut Turn,
    ) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let job = running.jobs.pop_front().expect("a snapshot is being written");
        job.write(&running.snapshots)?;
        let on_disk = running.snapshots.on_disk();
        self.feed(now, Event::Snapshotted(on_disk), turn);
        Ok(())
    }

    pub(super) fn finish_read(
        &mut self,
        now: Time,
        request: &ReadRequest,
        turn: &mut Turn,
    ) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        let mut answer = running.journal.read(request)?;
        running.snapshots.fill(&mut answer)?;
        self.feed(now, Event::Read(answer), turn);
        Ok(())
    }
}
