//! Jobs of stations, and what comes of them when their service ends.

use crate::frames::Frame;
use crate::queue::Priority;
use crate::time::Nanos;
use quorate_engine::Incoming;
use quorate_types::machine::{Block, CombineJob, CombineOutcome, Executed};
use quorate_types::{Effect, Event, Height, ReplicaId};
use std::ops::Range;
use std::rc::Rc;

/// Work for a station.
#[derive(Debug)]
pub(crate) enum Job {
    /// Encrypt a frame and send it.
    Send { to: Destination, frame: Rc<Frame> },
    /// Encrypt and send it to all members of a range but the sender.
    SendToRange { to: Range<usize>, frame: Rc<Frame> },
    /// Read and decrypt a frame.
    Receive(Rc<Frame>),
    /// Check a frame before the machine sees it.
    Check(Rc<Frame>),
    /// Combine shares to a certificate.
    Combine(Box<CombineJob>),
    /// Hand events to the machine, in this order.
    Handle(Vec<Event<Incoming>>),
    /// Call the machine's timer.
    Timeout,
    /// Execute a decided height.
    Execute(Box<Block>),
    /// Take a snapshot of a height's state.
    Snapshot(Height),
    /// Write a group of the log.
    Write { entries: usize, bytes: usize },
    /// Submit operations, offered at `at`, to the client's sessions.
    Submit { operations: usize, at: Nanos },
    /// Hand a reply to the client's session.
    Reply(Rc<Frame>),
    /// Call the timers of the client's sessions.
    ClientTimeout,
}

/// Receiver of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The validator of this index.
    Validator(usize),
    /// The client beside this validator.
    Client(usize),
}

impl Destination {
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Validator(index) | Self::Client(index) => index,
        }
    }
}

/// Result of a job, taking effect when its service ends.
pub(crate) enum Completion {
    /// The frame leaves its host.
    Sent(Destination, Rc<Frame>),
    /// The frame leaves its host for each member of a range.
    SentToRange(Range<usize>, Rc<Frame>),
    /// The frame is decrypted and to be checked.
    Received(Rc<Frame>),
    /// Messages that passed their checks, and their priority at the machine.
    Checked(Vec<Event<Incoming>>, Priority),
    Combined(Box<CombineOutcome>),
    /// Effects of the machine, in their order.
    Effects(Vec<ReadyEffect>),
    Executed(Rc<Executed>),
    Snapshot(Height),
    /// The group of the log is written, and not synced yet.
    Written,
    /// The client's requests leave.
    Requests(Vec<(ReplicaId, Rc<Frame>)>),
    Nothing,
    /// A property was broken: the run ends with this text.
    Broken(String),
}

/// An effect of the machine whose message, if it sends one, is encoded.
pub(crate) type ReadyEffect = Effect<Rc<Frame>>;
