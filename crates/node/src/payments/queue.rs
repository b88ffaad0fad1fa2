//! Everything that waits for the log's thread, in the machine's order.

use super::records::Change;
use quorate_crypto::IdentityKey;
use quorate_engine::Frame;
use quorate_engine::host::{EntryClass, LogEntry};
use quorate_payments::{Equivocation, Lock, OutputId};

/// An item for the log thread, in the machine's order.
pub(super) enum Queued {
    Persist(Promise),
    Record(Change),
    Held(Leaving),
}

/// Locks that are written together: votes for them wait until they are durable.
pub(super) struct Promise(pub(super) Vec<Lock>);

/// An effect that leaves behind the locks before it.
pub(super) enum Leaving {
    Answer(u64, Frame),
    Coins(CoinsQuestion),
    Read(u64),
    Evidence(Box<Equivocation>),
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
