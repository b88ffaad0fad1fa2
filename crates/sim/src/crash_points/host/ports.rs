//! Ports of a replica's host whose every step is looked at.

use super::{CrashHost, Turn, Work};
use crate::oracles::Observation;
use quorate_engine::Message;
use quorate_engine::host::{Barrier, EffectPorts, Gated};
use quorate_storage::StorageError;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{CombineJob, Entry, Halt, ReadRequest, Task};
use quorate_types::{Lane, Recipients};
use std::time::Duration;

const COMBINE: Duration = Duration::from_micros(50);
const READ: Duration = Duration::from_micros(50);

/// A host with the turn that its effects go to.
pub(super) struct Ports<'a> {
    pub(super) host: &'a mut CrashHost,
    pub(super) turn: &'a mut Turn,
}

impl EffectPorts for Ports<'_> {
    type Stop = StorageError;

    fn barrier(&mut self) -> &mut Barrier {
        &mut self.host.barrier
    }

    fn write(&mut self, entry: Entry) -> Result<(), StorageError> {
        self.host.unsynced |= matches!(entry, Entry::Record(_) | Entry::Body(_));
        let written = self.host.write(&entry);
        self.host.log.push(entry);
        written
    }

    fn hold(&mut self, gated: Gated) {
        self.host.log.hold(gated);
    }

    fn send(&mut self, to: Recipients, _lane: Lane, message: Message) {
        self.host.chronicle.borrow_mut().said(self.host.who(), &message);
        self.turn.released.push((to, message));
    }

    fn execute(&mut self, task: Task) {
        self.host.begin(task, self.turn);
    }

    fn read(&mut self, request: ReadRequest) {
        self.turn.later.push((READ, Work::Read(request)));
    }

    fn combine(&mut self, job: CombineJob) {
        self.turn.later.push((COMBINE, Work::Combine(Box::new(job.run()))));
    }

    fn certified(&mut self, _certificate: Box<ExecutionCertificate>) {}

    fn stop_signing(&mut self, _reason: String) -> Result<(), StorageError> {
        unreachable!("nobody is asked here")
    }

    fn halt(&mut self, halt: Halt) -> Result<(), StorageError> {
        let replica = self.host.who().name();
        self.host.observe(&Observation::Halted { replica, halt: &halt });
        Ok(())
    }
}
