//! Judges of a run. Oracles see what correct members do, and share no code with the protocols.
//!
//! The world shows every [`Observation`] to every [`Oracle`]; the first complaint ends the run.
//! Members that are Byzantine by the scenario are not shown: nothing is promised about them.

mod acknowledged;
mod agreement;
mod audit;
mod availability;
mod borders;
mod caps;
mod departures;
mod exactly_once;
mod fair_checks;
mod false_accusations;
mod halting;
mod prefix;
mod progress;
mod quorums;
mod restored;
mod shown;
mod slots;
mod together;
mod wiped;

pub use acknowledged::Acknowledged;
pub use agreement::Agreement;
pub use audit::Audit;
pub use availability::Availability;
pub use borders::Borders;
pub use caps::Caps;
pub use departures::Departures;
pub use exactly_once::ExactlyOnce;
pub use fair_checks::FairChecks;
pub use false_accusations::FalseAccusations;
pub use halting::Halting;
pub use prefix::Prefix;
pub use progress::Progress;
pub use quorums::Quorums;
pub use restored::Restored;
pub use slots::Slots;
pub use together::Together;
pub use wiped::Wiped;

use crate::recording::Seen;
use bytes::Bytes;
use quorate_consensus::{Occupancy, Rule};
use quorate_crypto::{Digest, hash};
use quorate_engine::{Completed, Message, Status};
use quorate_types::machine::{ExecutedUpTo, Halt};
use quorate_types::{BodyRef, Epoch, HandOver, Height, Payload, Peer, Rejected, ReplicaId, Time};
use std::time::Duration;

/// Something that a correct member or a client did, or that became of it.
#[derive(Debug)]
pub enum Observation<'a> {
    /// A replica starts in an epoch.
    Began {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Epoch that its host's notes lead to.
        epoch: Epoch,
        /// The last height before that epoch.
        after: Height,
        /// `true` if it is a member of it.
        is_member: bool,
    },
    /// A replica told its host how its epoch ended.
    HandedOver {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Number of the epoch that it ends.
        ended: Epoch,
        /// What the next one begins with.
        content: &'a HandOver,
    },
    /// A replica started; `executed` is what its state store remembers.
    Booted {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Last height whose state was durable, with its root.
        executed: Option<&'a ExecutedUpTo>,
    },
    /// These bodies survived on a replica's disk; no others did.
    Kept {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Names of the bodies.
        bodies: &'a [BodyRef],
    },
    /// A body became durable.
    Stored {
        /// On the disk of this replica.
        replica: ReplicaId,
        /// Name of the body.
        body: BodyRef,
    },
    /// The host let a message of this replica go.
    Released {
        /// Replica that sent it.
        replica: ReplicaId,
        /// Message as it left.
        message: &'a Message,
        /// The first byte of its frame's content.
        tag: u8,
        /// Bytes of its frame's content.
        bytes: usize,
    },
    /// A replica executed a height.
    Executed {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Height that this is about.
        height: Height,
        /// The root that it came to.
        root: Digest,
        /// The [`payload_hash`] of what was ordered.
        payload: Digest,
        /// Operations that the service was asked to execute: no repeats.
        operations: &'a [Seen],
    },
    /// A replica took the state of this height over from others.
    Installed {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Height that this is about.
        height: Height,
        /// The root that the snapshot names.
        root: Digest,
    },
    /// A client handed an operation to its session. No two operations of a run have the same bytes.
    Submitted {
        /// Bytes of the operation.
        operation: &'a Bytes,
    },
    /// A session reported an operation done.
    Completed {
        /// Bytes of the operation.
        operation: &'a Bytes,
        /// Result that the client was given.
        completed: &'a Completed,
    },
    /// A correct replica or client refused a frame of a correct sender.
    Refused {
        /// Reason for which it was refused.
        reason: &'a Rejected,
        /// The first byte of the frame.
        tag: u8,
    },
    /// A replica begins to check a frame.
    Checked(CheckedFrame),
    /// A replica lost everything on its disk.
    Wiped {
        /// Replica that this is about.
        replica: ReplicaId,
    },
    /// A replica starts on an old copy of its disk from now on.
    Restored {
        /// Replica that this is about.
        replica: ReplicaId,
    },
    /// A replica signs no more.
    StoppedSigning {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Reason that it gave.
        reason: &'a str,
    },
    /// A replica stopped itself.
    Halted {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Reason that it gave.
        halt: &'a Halt,
    },
    /// A replica takes nothing from a peer for a while, for what it sent.
    Barred {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Peer that is cut off.
        peer: Peer,
        /// `true` if that is a correct one.
        is_correct: bool,
    },
    /// A replica holds proof that a member broke a rule.
    Proven {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Member that signed what proves it.
        member: ReplicaId,
        /// Rule that the member broke.
        rule: Rule,
        /// `true` if the member is a correct one.
        is_correct: bool,
    },
    /// A replica shows its status after a turn.
    Shown {
        /// Status as it was shown.
        status: &'a Status,
    },
    /// A replica's collections after a turn.
    Occupied {
        /// Replica that this is about.
        replica: ReplicaId,
        /// Those of its machine and its engine that peers fill.
        collections: &'a [Occupancy],
    },
}

/// A frame whose check begins, and what was checked since it arrived.
#[derive(Clone, Copy, Debug)]
pub struct CheckedFrame {
    /// Replica that checks it.
    pub replica: ReplicaId,
    /// Peer that sent it.
    pub from: Peer,
    /// `true` if that is a correct one.
    pub honest: bool,
    /// `true` for what goes before bodies and requests.
    pub urgent: bool,
    /// Time at which its check began.
    pub began: Time,
    /// Time that its check takes.
    pub cost: Duration,
    /// Time of checks since it arrived that count against the same share: a member's own, or the
    /// one that clients and learners have together.
    pub own_checks: Duration,
    /// Time of checks of liars' frames since it arrived.
    pub liars_checks: Duration,
}

/// State of the members at the end of a run.
#[derive(Clone, Debug, Default)]
pub struct RunEnd {
    /// The last executed height of each correct replica; `None` when it is down.
    pub heights: Vec<(ReplicaId, Option<Height>)>,
    /// `true` if, after the faults were over, all correct members that sign stood in one view under
    /// a correct leader.
    pub together: bool,
    /// Views that a correct member went through after the faults were over.
    pub views_after: u64,
    /// Epoch in which each correct replica is.
    pub epochs: Vec<(ReplicaId, Epoch)>,
    /// The last epoch that somebody began.
    pub last_epoch: Epoch,
    /// Changes of committee that took no effect, though they should have.
    pub changes_waiting: usize,
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
    fn finish(&mut self, _ending: &RunEnd) -> Result<(), String> {
        Ok(())
    }
}

/// Hash that tells one payload from another, in [`Observation::Executed`].
#[must_use]
pub fn payload_hash(payload: &Payload) -> Digest {
    hash(&borsh::to_vec(payload).expect("encoding into memory"))
}

/// A property that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The oracle that says so.
    pub oracle: &'static str,
    /// Contradiction that it saw, in words.
    pub text: String,
}

/// The outcome of a step in which a property does not hold.
pub(crate) fn broken<T>(oracle: &'static str, text: String) -> Result<T, Violation> {
    Err(Violation { oracle, text })
}

/// All judges of a run.
pub struct Oracles {
    /// Of one epoch, by the indices of its members, and of the whole run, by names that stay.
    all: Vec<(Option<Epoch>, Box<dyn Oracle>)>,
}

impl Observation<'_> {
    /// What it is to those who judge what members say: with the member's index in its epoch.
    pub(crate) fn in_epoch(&self, replica: ReplicaId) -> Option<Observation<'_>> {
        match *self {
            Self::Kept { bodies, .. } => Some(Observation::Kept { replica, bodies }),
            Self::Stored { body, .. } => Some(Observation::Stored { replica, body }),
            Self::Released { message, tag, bytes, .. } => {
                Some(Observation::Released { replica, message, tag, bytes })
            }
            Self::Executed { height, root, payload, operations, .. } => {
                Some(Observation::Executed { replica, height, root, payload, operations })
            }
            _ => None,
        }
    }
}

impl Oracles {
    /// Judges of these properties over the whole run.
    #[must_use]
    pub fn new(all: Vec<Box<dyn Oracle>>) -> Self {
        Self { all: all.into_iter().map(|oracle| (None, oracle)).collect() }
    }

    /// Judges of these properties of one epoch join them.
    pub fn begin(&mut self, epoch: Epoch, judges: Vec<Box<dyn Oracle>>) {
        self.all.extend(judges.into_iter().map(|oracle| (Some(epoch), oracle)));
    }

    /// Shows something to all who judge the whole run.
    ///
    /// # Errors
    /// The first complaint.
    pub fn observe(&mut self, observation: &Observation<'_>) -> Result<(), Violation> {
        let of_run = self.all.iter_mut().filter(|(epoch, _)| epoch.is_none());
        of_run.map(|(_, oracle)| oracle).try_for_each(|oracle| show(oracle, observation))
    }

    /// Shows them what a replica did, and to those who judge its epoch, where it has this index.
    ///
    /// # Errors
    /// The first complaint.
    pub fn observe_in(
        &mut self,
        epoch: Epoch,
        index: ReplicaId,
        observation: &Observation<'_>,
    ) -> Result<(), Violation> {
        self.observe(observation)?;
        let Some(observation) = observation.in_epoch(index) else { return Ok(()) };
        let of_epoch = self.all.iter_mut().filter(|(of, _)| *of == Some(epoch));
        of_epoch.map(|(_, oracle)| oracle).try_for_each(|oracle| show(oracle, &observation))
    }

    /// Ends the run for all who judge it or its last epoch.
    ///
    /// # Errors
    /// The first complaint.
    pub fn finish(&mut self, ending: &RunEnd) -> Result<(), Violation> {
        let is_over = |of: &Option<Epoch>| of.is_some_and(|epoch| epoch < ending.last_epoch);
        let lasting = self.all.iter_mut().filter(|(of, _)| !is_over(of));
        lasting.map(|(_, oracle)| oracle).try_for_each(|oracle| {
            let name = oracle.name();
            oracle.finish(ending).map_err(|text| Violation { oracle: name, text })
        })
    }
}

fn show(oracle: &mut Box<dyn Oracle>, observation: &Observation<'_>) -> Result<(), Violation> {
    let name = oracle.name();
    oracle.observe(observation).map_err(|text| Violation { oracle: name, text })
}

#[cfg(test)]
mod tests;
