//! What judges a run. Oracles see what correct members do, and share no code with the protocols.
//!
//! The world shows every [`Observation`] to every [`Oracle`]; the first complaint ends the run. Members
//! that are Byzantine by the scenario are not shown: nothing is promised about them.

mod acknowledged;
mod agreement;
mod audit;
mod availability;
mod caps;
mod conduct;
mod departures;
mod exactly_once;
mod halting;
mod prefix;
mod progress;
mod quorums;
mod shown;
mod slots;
mod together;
mod wiped;

pub use acknowledged::Acknowledged;
pub use agreement::Agreement;
pub use audit::Audit;
pub use availability::Availability;
pub use caps::Caps;
pub use conduct::Conduct;
pub use departures::Departures;
pub use exactly_once::ExactlyOnce;
pub use halting::Halting;
pub use prefix::Prefix;
pub use progress::Progress;
pub use quorums::Quorums;
pub use slots::Slots;
pub use together::Together;
pub use wiped::Wiped;

use crate::recording::Seen;
use bytes::Bytes;
use quorate_crypto::{Digest, hash};
use quorate_engine::{Completed, Message, Status};
use quorate_types::machine::{ExecutedUpTo, Halt};
use quorate_types::{BodyRef, Height, Payload, Rejected, ReplicaId};

/// Something that a correct member or a client did, or that became of it.
#[derive(Debug)]
pub enum Observation<'a> {
    /// A replica started; `executed` is what its state store remembers.
    Booted {
        /// Which.
        replica: ReplicaId,
        /// How far its state had come durably.
        executed: Option<&'a ExecutedUpTo>,
    },
    /// These bodies survived on a replica's disk; no others did.
    Kept {
        /// Which replica.
        replica: ReplicaId,
        /// Their names.
        bodies: &'a [BodyRef],
    },
    /// A body became durable.
    Stored {
        /// On the disk of this replica.
        replica: ReplicaId,
        /// Its name.
        body: BodyRef,
    },
    /// The host let a message of this replica go.
    Released {
        /// The sender.
        replica: ReplicaId,
        /// What.
        message: &'a Message,
        /// The first byte of its frame's content.
        tag: u8,
        /// Bytes of its frame's content.
        bytes: usize,
    },
    /// A replica executed a height.
    Executed {
        /// Which replica.
        replica: ReplicaId,
        /// Which height.
        height: Height,
        /// The root that it came to.
        root: Digest,
        /// The [`payload_hash`] of what was ordered.
        payload: Digest,
        /// What the service was asked to execute: no repeats.
        operations: &'a [Seen],
    },
    /// A replica took the state of this height over from others.
    Installed {
        /// Which replica.
        replica: ReplicaId,
        /// Which height.
        height: Height,
        /// The root that the snapshot names.
        root: Digest,
    },
    /// A client handed an operation to its session. No two operations of a run have the same bytes.
    Submitted {
        /// The operation.
        operation: &'a Bytes,
    },
    /// A session reported an operation done.
    Completed {
        /// The operation.
        operation: &'a Bytes,
        /// What it came to.
        completed: &'a Completed,
    },
    /// A correct replica or client refused a frame of a correct sender.
    Refused {
        /// What was wrong with it.
        reason: &'a Rejected,
        /// The first byte of the frame.
        tag: u8,
    },
    /// A replica lost everything on its disk.
    Wiped {
        /// Which.
        replica: ReplicaId,
    },
    /// A replica stopped itself.
    Halted {
        /// Which.
        replica: ReplicaId,
        /// Why.
        halt: &'a Halt,
    },
    /// What a replica shows of itself after a turn.
    Shown {
        /// The status.
        status: &'a Status,
    },
}

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// The last executed height of each correct replica; `None` when it is down.
    pub heights: Vec<(ReplicaId, Option<Height>)>,
    /// Whether, after the faults were over, all correct members that sign stood in one view under a
    /// correct leader.
    pub together: bool,
    /// Views that a correct member went through after the faults were over.
    pub views_after: u64,
}

/// A judge of one property.
pub trait Oracle {
    /// Its name in failures.
    fn name(&self) -> &'static str;

    /// Takes in what happened.
    ///
    /// # Errors
    /// In words for people: how the property is broken.
    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String>;

    /// Judges the whole run.
    ///
    /// # Errors
    /// As [`Oracle::observe`].
    fn finish(&mut self, _ending: &Ending) -> Result<(), String> {
        Ok(())
    }
}

/// What tells one payload from another, in [`Observation::Executed`].
#[must_use]
pub fn payload_hash(payload: &Payload) -> Digest {
    hash(&borsh::to_vec(payload).expect("encoding into memory"))
}

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The oracle that says so.
    pub oracle: &'static str,
    /// What it saw.
    pub text: String,
}

/// All judges of a run.
pub struct Oracles {
    all: Vec<Box<dyn Oracle>>,
}

impl Oracles {
    /// Judges of these properties.
    #[must_use]
    pub fn new(all: Vec<Box<dyn Oracle>>) -> Self {
        Self { all }
    }

    /// Shows something to all of them.
    ///
    /// # Errors
    /// The first complaint.
    pub fn observe(&mut self, observation: &Observation<'_>) -> Result<(), Violation> {
        self.all.iter_mut().try_for_each(|oracle| {
            let name = oracle.name();
            oracle.observe(observation).map_err(|text| Violation { oracle: name, text })
        })
    }

    /// Ends the run for all of them.
    ///
    /// # Errors
    /// The first complaint.
    pub fn finish(&mut self, ending: &Ending) -> Result<(), Violation> {
        self.all.iter_mut().try_for_each(|oracle| {
            let name = oracle.name();
            oracle.finish(ending).map_err(|text| Violation { oracle: name, text })
        })
    }
}

#[cfg(test)]
mod tests;
