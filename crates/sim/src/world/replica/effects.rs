//! The contract with the machine: its effects carried out, in their order, with the barrier.

use super::{Note, ReplicaHost, Turn, Work};
use crate::gate::Held;
use crate::gate::Opened;
use quorate_crypto::mutants::{self, Mutant};
use quorate_engine::{Incoming, Message};
use quorate_storage::StorageError;
use quorate_types::machine::Task;
use quorate_types::{Effect, Event, Machine, Recipients, Time};

impl ReplicaHost {
    pub(super) fn feed(&mut self, now: Time, event: Event<Incoming>, turn: &mut Turn) {
        if let Some(running) = &mut self.running {
            running.machine.handle(running.clock.local(now), event);
            self.drain(now, turn);
        }
    }

    /// Carries out what the machine asks for, in its order.
    pub(super) fn drain(&mut self, now: Time, turn: &mut Turn) {
        while let Some(effect) = self.running.as_mut().and_then(|running| running.machine.poll()) {
            self.carry_out(now, effect, turn);
        }
        self.start_sync(now, turn);
    }

    fn carry_out(&mut self, now: Time, effect: Effect<Message>, turn: &mut Turn) {
        let Self { running: Some(running), dice, config, .. } = self else {
            return;
        };
        let durations = &config.durations;
        match effect {
            Effect::Send { to, lane, message } => {
                let waits = lane.waits_for_barrier() && !mutants::active(Mutant::HostSendsEarly);
                let send = Held::Send(to, Box::new(message));
                let leaves = if waits { running.gate.hold(send) } else { Some(send) };
                self.let_go(leaves, turn);
            }
            Effect::Persist(record) => running.gate.persist(record),
            Effect::Append(record) => running.gate.append(record),
            Effect::Store(body) => running.gate.store(body),
            Effect::Read(request) => {
                turn.later.push((dice.span(&durations.read_us), Work::Read(request)));
            }
            Effect::Combine(job) => {
                let work = Work::Combine(Box::new(job.run()));
                turn.later.push((dice.span(&durations.combine_us), work));
            }
            Effect::Task(task) => self.ask_for(task, turn),
            Effect::Certified(_) => {}
            Effect::Release(release) => running.gate.release(release),
            Effect::Halt(halt) => {
                turn.notes.push(Note::Halted(halt));
                self.halt();
            }
        }
        let _ = now;
    }

    /// A task waits for the records before it.
    fn ask_for(&mut self, task: Task, turn: &mut Turn) {
        let Some(running) = &mut self.running else { return };
        let begins = running.gate.hold(Held::Task(task));
        self.let_go(begins, turn);
    }

    fn let_go(&mut self, held: impl IntoIterator<Item = Held>, turn: &mut Turn) {
        for held in held {
            match held {
                Held::Send(to, message) => self.release(to, *message, turn),
                Held::Task(task) => self.begin_task(task, turn),
            }
        }
    }

    fn begin_task(&mut self, task: Task, turn: &mut Turn) {
        let Self { running: Some(running), dice, config, .. } = self else {
            return;
        };
        running.tasks.push_back(task);
        if running.tasks.len() == 1 {
            turn.later.push((dice.span(&config.durations.execute_us), Work::Execute));
        }
    }

    pub(super) fn release(&mut self, to: Recipients, message: Message, turn: &mut Turn) {
        let Self { running: Some(running), dice, liar, .. } = self else {
            return;
        };
        match liar {
            Some(liar) => {
                let verifier = running.verifier.consensus();
                turn.released.extend(liar.speak(verifier, to, message, dice));
            }
            None => turn.released.push((to, message)),
        }
    }

    /// Begins a sync over everything that is queued, unless one is under way.
    pub(super) fn start_sync(&mut self, now: Time, turn: &mut Turn) {
        let slow = self.slow_sync.filter(|(_, until)| now < *until).map(|(sync, _)| sync);
        let Self { running: Some(running), dice, config, .. } = self else {
            return;
        };
        let Some(entries) = running.gate.begin() else {
            return;
        };
        for entry in entries {
            if let Err(error) = running.journal.write(&entry) {
                // It stops here: nothing of this group is ever called durable.
                turn.notes.push(Note::Storage(error));
                return;
            }
        }
        let duration = slow.unwrap_or_else(|| dice.span(&config.durations.sync_us));
        turn.later.push((duration, Work::Sync));
    }

    /// Lets go what waited, then says what is stored.
    pub(super) fn finish_sync(&mut self, now: Time, turn: &mut Turn) -> Result<(), StorageError> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        running.journal.commit()?;
        let Opened { released, stored } = running.gate.finish();
        self.let_go(released, turn);
        for reference in stored {
            turn.notes.push(Note::Stored(reference));
            self.feed(now, Event::Stored(reference), turn);
        }
        self.start_sync(now, turn);
        Ok(())
    }
}
