//! The ports of a replica's host in virtual time: what its machine asks for, and its log.

use super::{Note, ReplicaHost, Running, Turn, Work};
use quorate_engine::host::{Barrier, EffectPorts, Gated, dispatch};
use quorate_engine::{Incoming, Message};
use quorate_storage::StorageError;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{CombineJob, Entry, Halt, ReadRequest, Task};
use quorate_types::{Event, Lane, Machine, Recipients, Time};
use std::convert::Infallible;

/// A running host with the turn that its effects go to.
struct Ports<'a> {
    host: &'a mut ReplicaHost,
    turn: &'a mut Turn,
}

impl Ports<'_> {
    fn running(&mut self) -> &mut Running {
        self.host.running.as_mut().expect("effects are those of a running machine")
    }
}

impl EffectPorts for Ports<'_> {
    type Stop = Infallible;

    fn barrier(&mut self) -> &mut Barrier {
        &mut self.running().barrier
    }

    fn write(&mut self, entry: Entry) -> Result<(), Infallible> {
        self.running().log.push(entry);
        Ok(())
    }

    fn hold(&mut self, gated: Gated) {
        self.running().log.hold(gated);
    }

    fn send(&mut self, to: Recipients, _lane: Lane, message: Message) {
        let ReplicaHost { running: Some(running), rng, liar, .. } = &mut *self.host else {
            return;
        };
        match liar {
            Some(liar) => {
                let verifier = running.verifier.consensus();
                self.turn.released.extend(liar.speak(verifier, to, message, rng));
            }
            None => self.turn.released.push((to, message)),
        }
    }

    fn execute(&mut self, task: Task) {
        let tasks = &mut self.running().tasks;
        tasks.push_back(task);
        if tasks.len() == 1 {
            let host = &mut *self.host;
            let takes = host.rng.span(&host.config.durations.execute_us);
            self.turn.later.push((takes, Work::Execute));
        }
    }

    fn read(&mut self, request: ReadRequest) {
        let takes = self.host.rng.span(&self.host.config.durations.read_us);
        self.turn.later.push((takes, Work::Read(request)));
    }

    fn combine(&mut self, job: CombineJob) {
        let work = Work::Combine(Box::new(job.run()));
        let takes = self.host.rng.span(&self.host.config.durations.combine_us);
        self.turn.later.push((takes, work));
    }

    fn certified(&mut self, _certificate: Box<ExecutionCertificate>) {}

    fn stop_signing(&mut self, reason: String) -> Result<(), Infallible> {
        self.host.stopped_signing = true;
        self.turn.notes.push(Note::StoppedSigning(reason));
        Ok(())
    }

    fn halt(&mut self, halt: Halt) -> Result<(), Infallible> {
        self.turn.notes.push(Note::Halted(halt));
        self.host.halt();
        Ok(())
    }
}

impl ReplicaHost {
    pub(super) fn feed(&mut self, now: Time, event: Event<Incoming>, turn: &mut Turn) {
        if let Some(running) = &mut self.running {
            running.machine.handle(running.clock.local(now), event);
            self.drain(now, turn);
        }
    }

    /// Dispatches what the machine asks for, in its order.
    pub(super) fn drain(&mut self, now: Time, turn: &mut Turn) {
        while let Some(effect) = self.running.as_mut().and_then(|running| running.machine.poll()) {
            let Ok(()) = dispatch(effect, &mut Ports { host: self, turn });
        }
        self.start_sync(now, turn);
        self.note_evidence(turn);
    }

    fn note_evidence(&mut self, turn: &mut Turn) {
        let Some(Running { machine, evidence, .. }) = &mut self.running else { return };
        let proven = machine.evidence().since(evidence);
        turn.notes.extend(proven.map(|(member, rule, _)| Note::Proven(member, rule)));
        if machine.evidence() != evidence {
            evidence.clone_from(machine.evidence());
        }
    }

    /// Begins a sync over everything that is queued, unless one is under way.
    fn start_sync(&mut self, now: Time, turn: &mut Turn) {
        let slow = self.slow_sync.filter(|(_, until)| now < *until).map(|(sync, _)| sync);
        let Self { running: Some(running), rng, config, .. } = self else {
            return;
        };
        let Some(entries) = running.log.begin() else {
            return;
        };
        for entry in entries {
            if let Err(error) = running.journal.write(entry) {
                // It stops here: nothing of this group is ever called durable.
                turn.notes.push(Note::Storage(error));
                return;
            }
        }
        let duration = slow.unwrap_or_else(|| rng.span(&config.durations.sync_us));
        turn.later.push((duration, Work::Sync));
    }

    /// Releases what waited for the group, then tells the machine which bodies are stored.
    pub(super) fn finish_sync(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.journal.commit()?;
        let mut released = Vec::new();
        let written = running.log.finish(|gated| released.push(gated));
        for gated in released {
            gated.leave(&mut Ports { host: self, turn });
        }
        for entry in written {
            if let Entry::Body(body) = entry {
                turn.notes.push(Note::Stored(body.reference));
                self.feed(now, Event::Stored(body.reference), turn);
            }
        }
        self.start_sync(now, turn);
        Ok(())
    }
}
