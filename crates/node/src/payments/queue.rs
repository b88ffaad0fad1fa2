//! Everything that waits for the log's thread, in the machine's order.

use super::records::Change;
use quorate_crypto::{Digest, IdentityKey};
use quorate_engine::Frame;
use quorate_engine::host::{EntryClass, LogEntry};
use quorate_payments::release::Held;
use quorate_payments::{Equivocation, Lock, OutputId, ReleaseEntry};

/// An item for the log thread, in the machine's order.
pub(super) enum Queued {
    Persist(Promise),
    Record(Change),
    Held(Leaving),
}

/// What is written together: whatever is queued behind it waits until it is durable.
pub(super) enum Promise {
    Locks(Vec<Lock>),
    Releases(Vec<ReleaseEntry>),
}

/// An effect that leaves behind the locks before it.
pub(super) enum Leaving {
    Answer(u64, Frame),
    Coins(CoinsQuestion),
    Read(u64),
    Evidence(Box<Equivocation>),
    Report(OutputId, Box<Held>),
    Closed(Digest),
}

impl LogEntry for Promise {
    fn class(&self) -> EntryClass {
        EntryClass::Barrier
    }

    fn bulk_bytes(&self) -> usize {
        0
    }
}

/// Question about inputs that waits for the locks before it.
pub(super) struct CoinsQuestion {
    pub(super) ticket: u64,
    pub(super) number: u64,
    /// Key that asks, as its channel proved.
    pub(super) from: IdentityKey,
    pub(super) inputs: Vec<OutputId>,
}
