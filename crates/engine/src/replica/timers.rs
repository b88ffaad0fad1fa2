//! The replica's timers by name.
//!
//! They live in the parts that set them, so none can be left running when its part moves on; here
//! is the table of all, from which the host learns when to wake the replica.

use super::Replica;
use quorate_types::{Machine, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// A timer of the replica, named for what is due when it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timer {
    /// The protocol's next step: a view's timeout, a vote to send again, a certificate to wait for.
    Protocol,
    /// Sealing waiting requests into a body, at the latest.
    Seal,
    /// Proposing a pending body that may not be proposed earlier, or what was held back because
    /// processors are scarce.
    Propose,
    /// Proposing a height because the last was decided so long ago.
    Heartbeat,
    /// Asking for bodies again, or for the first time after a grace.
    FetchBodies,
    /// Announcing bodies that nothing ordered yet.
    Announce,
    /// Acknowledging stored bodies, certifying those that enough members stored, and asking for
    /// what is missing of that.
    CertifyBodies,
    /// Turning to the next collector for the certificate of an executed height.
    CertifyExecution,
    /// Turning to the next collector for the certificate of a checkpoint.
    CertifyCheckpoint,
    /// Sending the share over what the epoch ended with again.
    CertifyHandOver,
    /// Asking for blocks again, of another member.
    FetchBlocks,
    /// Asking for a snapshot, or a chunk of one, again.
    FetchSnapshot,
    /// Asking again for the own newest signatures, while too few have answered.
    AskWitnesses,
}

impl Replica {
    /// Every timer with the time at which it is due, if it is set.
    fn timers(&self) -> [(Timer, Option<Time>); 13] {
        // What signs waits for the others' word.
        let acting = |due: Option<Time>| due.filter(|_| self.unacted.is_none());
        [
            (Timer::Protocol, acting(self.protocol.next_timeout())),
            (Timer::Seal, self.mempool.deadline()),
            (Timer::Propose, self.propose_at),
            (Timer::Heartbeat, acting(self.heartbeat.deadline(self.now))),
            (Timer::FetchBodies, self.bodies.deadline(self.now)),
            (Timer::Announce, self.announce_at),
            (Timer::CertifyBodies, acting(self.certifier.deadline())),
            (Timer::CertifyExecution, acting(self.execution.deadline())),
            (Timer::CertifyCheckpoint, acting(self.checkpoints.deadline())),
            (Timer::CertifyHandOver, acting(self.hand_overs.deadline())),
            (Timer::FetchBlocks, self.sync.deadline().filter(|_| !self.is_sync_paused())),
            (Timer::FetchSnapshot, acting(self.snapshots.deadline())),
            (Timer::AskWitnesses, self.own_signatures.deadline()),
        ]
    }

    /// Time at which the first timer is due.
    pub(super) fn first_timer(&self) -> Option<Time> {
        self.timers().into_iter().filter_map(|(_, due)| due).min()
    }

    /// Milliseconds from the last input until each timer that is set is due.
    pub(super) fn timers_ms(&self) -> BTreeMap<Timer, u64> {
        let due_ms = |due: Time| due.0.saturating_sub(self.now.0) / 1_000;
        let set = self.timers().into_iter().filter_map(|(timer, due)| Some((timer, due?)));
        set.map(|(timer, due)| (timer, due_ms(due))).collect()
    }
}
