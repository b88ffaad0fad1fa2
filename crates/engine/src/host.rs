//! The host's side of the machine contract, without its threads, disks and clock.
//!
//! A host feeds a [`Replica`](crate::Replica) and carries out its effects. This is all that it
//! needs for the dangerous part of that, the order: a running validator, the simulator's worlds and
//! its crash points, and the hosts of payments stand on the same code.
//!
//! # A host's loop
//!
//! 1. Start the disk, make a [`barrier()`], and feed [`Event::Recovered`](quorate_types::Event)
//!    before anything else.
//! 2. Feed one event or one timeout, then [`dispatch`] every effect that `poll` gives, in order.
//!    What must wait goes to [`EffectPorts::hold`], the rest to its port at once. What nobody waits
//!    for may be [`Deferred`] before that.
//! 3. Push what [`EffectPorts::write`] gives into a [`GroupCommit`], and what `hold` gives behind
//!    it, in the order in which they came: by a channel where the log has a thread of its own.
//! 4. For each group: [`GroupCommit::begin`], write the entries, sync **once**, and only when that
//!    came back, [`GroupCommit::finish`]. It releases what waited, in its order, and after the last
//!    of it lets later sends go at once again.
//! 5. A failed write or sync is final: the group is never finished, nothing more is released, and
//!    the host stops (★, `types::machine` 5).
//!
//! # ★ Persist before you send
//!
//! A send that waits for the barrier, or a task of the execution, may leave at once only
//! when *everything* that went to the log before it has left the log: the records are durable
//! **and** the sends that waited for them are in their lanes. The second half keeps a lane's order:
//! a send that looked only at durability could overtake one that is just being released.
//!
//! ```text
//! machine   P1 ─┐ S1 ─┐        S2 ─┐              S3 (nothing before it: at once) ──▶ lane
//! log           └─────┴ write, sync ┴ S1 S2 ──▶ lane, then the barrier is clear
//! ```
//!
//! The two halves, [`Barrier`] beside the machine and [`GroupCommit`] beside the disk, share one
//! counter and nothing else. A host of one thread owns both.

mod barrier;
mod deferred;
mod entries;
mod group_commit;
mod held_back;
pub mod leaving;
mod pacer;

pub use barrier::{Barrier, barrier};
pub use deferred::Deferred;
pub use entries::{EntryClass, LogEntry};
pub use group_commit::GroupCommit;
pub use held_back::HeldBack;
pub use pacer::Pacer;

use crate::Message;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::machine::{CombineJob, Entry, Halt, ReadRequest, Task};
use quorate_types::{Effect, Lane, Recipients};

/// Most bytes of bodies in one group of the log, so that a vote's sync is never far away.
pub const GROUP_BULK_BYTES_MAX: usize = 1024 * 1024;

/// Most bytes that may wait for the log while the host still feeds the machine bulk (bodies,
/// blocks, requests): beyond it a slow disk holds up those who send, not the votes.
pub const LOG_BACKLOG_BYTES_MAX: usize = 32 * 1024 * 1024;

/// An effect that must not leave before the records persisted ahead of it are durable (★).
#[derive(Debug)]
pub enum Gated<M = Message> {
    /// A message that waits for the barrier: it may show a promise.
    Send {
        /// The peers or the client that it goes to.
        to: Recipients,
        /// The stream that it goes in.
        lane: Lane,
        /// Message, in the form in which this host sends it.
        message: Box<M>,
    },
    /// A task of the execution: a state must not know what the log forgot.
    Task(Task),
}

impl<M> Gated<M> {
    /// Goes to the port that it waited for: what was held back has left the log.
    pub fn leave(self, ports: &mut impl EffectPorts<M>) {
        match self {
            Self::Send { to, lane, message } => ports.send(to, lane, *message),
            Self::Task(task) => ports.execute(task),
        }
    }
}

/// Ports through which the effects of a replica reach disk, network, pool and execution.
///
/// Each is called by [`dispatch`] in the order in which the effects were polled. None may block for
/// long: what takes time is queued and comes back as an event. `M` is a message as this host sends
/// it: a [`Message`], or what the host encoded it to.
pub trait EffectPorts<M = Message> {
    /// Reason for which the host stops, such as a failed disk.
    type Stop;

    /// The front half of this host's barrier.
    fn barrier(&mut self) -> &mut Barrier;

    /// Puts an entry behind all that were written before it, for the next group.
    ///
    /// # Errors
    /// When the host cannot go on.
    fn write(&mut self, entry: Entry) -> Result<(), Self::Stop>;

    /// Puts an effect behind all that was written or held before it ([`GroupCommit::hold`]).
    fn hold(&mut self, gated: Gated<M>);

    /// Hands a message to its lane: nothing that it waits for is under way.
    fn send(&mut self, to: Recipients, lane: Lane, message: M);

    /// Hands a task to the execution, behind all tasks before it.
    fn execute(&mut self, task: Task);

    /// Reads back what was stored, and answers with an event.
    fn read(&mut self, request: ReadRequest);

    /// Combines shares on the pool, and answers with an event.
    fn combine(&mut self, job: CombineJob);

    /// Keeps what certifies a height for readers, if this host has any.
    fn certified(&mut self, certificate: Box<ExecutionCertificate>);

    /// Notes durably, with the reason, that the key must not sign in this network again (★).
    ///
    /// # Errors
    /// When the host cannot go on.
    fn stop_signing(&mut self, reason: String) -> Result<(), Self::Stop>;

    /// Ends the replica, which found that going on would be unsafe.
    ///
    /// # Errors
    /// When the host ends with it.
    fn halt(&mut self, halt: Halt) -> Result<(), Self::Stop>;
}

/// Carries out one effect: what must wait for the log goes behind it, the rest to its port at once.
///
/// # Errors
/// When a port says that the host stops. Nothing polled after this effect may be carried out then.
pub fn dispatch<M, P: EffectPorts<M>>(effect: Effect<M>, ports: &mut P) -> Result<(), P::Stop> {
    match effect {
        Effect::Send { to, lane, waits, message } => {
            let waits = waits && !mutants::active(Mutant::HostSendsEarly);
            if waits && ports.barrier().must_wait() {
                ports.hold(Gated::Send { to, lane, message: Box::new(message) });
            } else {
                ports.send(to, lane, message);
            }
        }
        Effect::Persist(record) => {
            ports.barrier().persist();
            ports.write(Entry::Record(record))?;
        }
        Effect::Append(record) => ports.write(Entry::Decided(record))?,
        Effect::Store(body) => ports.write(Entry::Body(body))?,
        Effect::Release(release) => ports.write(Entry::Release(release))?,
        Effect::Read(request) => ports.read(request),
        Effect::Combine(job) => ports.combine(job),
        Effect::Task(task) => {
            let waits = !mutants::active(Mutant::HostExecutesEarly);
            if waits && ports.barrier().must_wait() {
                ports.hold(Gated::Task(task));
            } else {
                ports.execute(task);
            }
        }
        Effect::Certified(certificate) => ports.certified(certificate),
        Effect::StopSigning(reason) => ports.stop_signing(reason)?,
        Effect::Halt(halt) => ports.halt(halt)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests;
