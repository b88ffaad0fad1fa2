//! Stations: the threads of a validator, each a queue with one or two servers.

use super::Nanos;
use super::frames::Frame;
use quorate_engine::Incoming;
use quorate_types::machine::{Block, CombineJob};
use quorate_types::{Event, Height};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// Which station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Encryption and sockets: two threads.
    Net,
    /// Checks of votes, proposals and certificates; combining shares.
    Votes,
    /// Checks of bodies and requests: two threads.
    Checks,
    /// The replica itself.
    Machine,
    /// The service.
    Execution,
    /// Writes of the log, its syncs apart.
    Log,
    /// The client beside the validator: its sessions, its end of the channels.
    Client,
}

impl Kind {
    /// All of them, in the order of a request's way.
    pub const ALL: [Self; 7] = [
        Self::Client,
        Self::Net,
        Self::Checks,
        Self::Votes,
        Self::Machine,
        Self::Log,
        Self::Execution,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Votes => "votes",
            Self::Checks => "checks",
            Self::Machine => "machine",
            Self::Execution => "execution",
            Self::Log => "log",
            Self::Client => "client",
        }
    }

    /// As many as a validator has threads for it by default.
    fn servers(self) -> usize {
        match self {
            Self::Net | Self::Checks => 2,
            _ => 1,
        }
    }
}

/// Something that a station does.
#[derive(Debug)]
pub(crate) enum Job {
    /// Encrypts and sends.
    Send {
        to: Place,
        frame: Rc<Frame>,
    },
    /// Likewise, to all members of a range but the sender.
    Spread {
        to: Range<usize>,
        frame: Rc<Frame>,
    },
    /// Reads and decrypts.
    Take(Rc<Frame>),
    /// Checks before the machine sees it.
    Check(Rc<Frame>),
    Combine(Box<CombineJob>),
    /// The machine is told, in this order.
    Tell(Vec<Event<Incoming>>),
    /// The machine's timer.
    Tick,
    Execute(Box<Block>),
    Snapshot(Height),
    /// Writes a group of so many entries and bytes.
    Write {
        entries: usize,
        bytes: usize,
    },
    /// The client's sessions take operations.
    Submit {
        operations: usize,
        at: Nanos,
    },
    /// A client's sessions take replies.
    Reply(Rc<Frame>),
    /// The timers of a client's sessions.
    ClientTick,
}

/// Who receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Validator(usize),
    /// The client beside this validator.
    Client(usize),
}

impl Place {
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Validator(index) | Self::Client(index) => index,
        }
    }
}

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// What the machine itself asked for; shares to combine.
    Answer = 0,
    Urgent = 1,
    Bulk = 2,
}

/// After so many jobs in a row that are not bulk, a bulk job gets its turn (`node::machine`).
const URGENT_RUN_MAX: u32 = 64;

/// A queue with its servers.
#[derive(Debug)]
pub(crate) struct Station {
    servers: usize,
    serving: usize,
    /// Servers that have just ended a job and look for the next: awake.
    awake: usize,
    queues: [VecDeque<Job>; 3],
    run: u32,
    /// Core time asked for.
    pub(crate) used: Nanos,
    /// How often a server was woken.
    pub(crate) wakes: u64,
}

impl Station {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            servers: kind.servers(),
            serving: 0,
            awake: 0,
            queues: std::array::from_fn(|_| VecDeque::new()),
            run: 0,
            used: 0,
            wakes: 0,
        }
    }

    pub(crate) fn push(&mut self, class: Class, job: Job) {
        self.queues[class as usize].push_back(job);
    }

    /// The next job, for a server that is free, and whether that server had to be woken; `bulk`:
    /// whether bulk may be taken.
    pub(crate) fn begin(&mut self, bulk: bool) -> Option<(Job, bool)> {
        if self.serving == self.servers {
            return None;
        }
        let job = self.next(bulk)?;
        self.serving += 1;
        let woken = self.awake == 0;
        self.awake = self.awake.saturating_sub(1);
        self.wakes += u64::from(woken);
        Some((job, woken))
    }

    /// A server's job is done; it stays awake until [`Station::rest`].
    pub(crate) fn end(&mut self) {
        self.serving -= 1;
        self.awake += 1;
    }

    /// Servers that found nothing to do sleep.
    pub(crate) fn rest(&mut self) {
        self.awake = 0;
    }

    pub(crate) fn waiting(&self, class: Class) -> usize {
        self.queues[class as usize].len()
    }

    /// Its thread is gone.
    pub(crate) fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
    }

    fn next(&mut self, bulk: bool) -> Option<Job> {
        let [answers, urgent, others] = &mut self.queues;
        if self.run < URGENT_RUN_MAX
            && let Some(job) = answers.pop_front().or_else(|| urgent.pop_front())
        {
            self.run += 1;
            return Some(job);
        }
        self.run = 0;
        let turn = if bulk { others.pop_front() } else { None };
        turn.or_else(|| answers.pop_front()).or_else(|| urgent.pop_front())
    }
}
