//! Events of a run, and the hash over all of them.

use crate::frames::Frame;
use crate::jobs::Destination;
use crate::links::ConnectionId;
use crate::time::Nanos;
use quorate_types::BodyRef;
use std::rc::Rc;

/// An event that is going to happen.
#[derive(Debug)]
pub(crate) enum SimEvent {
    /// A job in service on a host may be done.
    JobDone { host: usize },
    /// A core is awake for a job whose thread was woken.
    Awake { member: usize, job: usize },
    /// A frame reaches a host.
    Arrived { to: Destination, frame: Rc<Frame> },
    /// The end of a frame that was held back may leave.
    Released { id: ConnectionId },
    /// A socket has room for a frame that waits for it.
    Writable { id: ConnectionId },
    /// The span ends whose arrivals at a validator's host are taken up together.
    ArrivalsDue { member: usize },
    /// A frame has passed its receiver's link.
    Received { to: Destination, frame: Rc<Frame> },
    /// An author hears that one more member has a body of its.
    Acknowledged { body: BodyRef },
    /// A group of the log is durable.
    Synced { member: usize },
    /// A machine's timer is due.
    Timeout { member: usize },
    /// A timer of a client's sessions is due.
    ClientTimeout { member: usize },
    /// Operations are offered to a client.
    LoadDue { member: usize },
    /// A validator crashes for good.
    Crash { member: usize },
    /// The measurement window begins.
    WindowBegins,
}

/// A hash over times, kinds and places of all events.
#[derive(Debug, Default)]
pub(crate) struct TraceHash(u64);

impl TraceHash {
    /// Takes in an event that happens now.
    pub(crate) fn record(&mut self, now: Nanos, event: &SimEvent) {
        let (kind, place) = match event {
            SimEvent::JobDone { host } => (1, *host),
            SimEvent::Arrived { to, frame } => (2, to.index() ^ frame.bytes << 16),
            SimEvent::Received { to, frame } => (3, to.index() ^ frame.bytes << 16),
            SimEvent::Synced { member } => (4, *member),
            SimEvent::Timeout { member } => (5, *member),
            SimEvent::ClientTimeout { member } => (6, *member),
            SimEvent::LoadDue { member } => (7, *member),
            SimEvent::Crash { member } => (8, *member),
            SimEvent::WindowBegins => (9, 0),
            SimEvent::ArrivalsDue { member } => (10, *member),
            SimEvent::Acknowledged { body } => (12, body.author.index()),
            SimEvent::Released { id } => (11, id.index()),
            SimEvent::Writable { id } => (13, id.index()),
            SimEvent::Awake { member, .. } => (14, *member),
        };
        let word: u64 = now ^ (kind << 60) ^ (place as u64).rotate_left(24);
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    /// The hash so far, together with eight bytes of the state that all executed.
    pub(crate) fn with_root(&self, root: [u8; 8]) -> u64 {
        self.0 ^ u64::from_le_bytes(root)
    }
}
