//! History of calls of all clients.

use std::fmt;
use std::time::Duration;

/// Value of a key, if any. Every value is written by one call only.
pub(crate) type Value = Option<u64>;

/// Action that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Put(u64),
    Delete,
    Swap { expected: Value, new: Value },
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Value(Value),
    Done { replaced: bool },
    Swapped,
    NotSwapped { actual: Value },
}

/// Moment and place of a call's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// Since the history began, as all times.
    pub(crate) returned: Duration,
    pub(crate) reply: Reply,
    pub(crate) height: u64,
    /// `true` if a receipt came with it. Who had to ask again is answered without one.
    pub(crate) is_proven: bool,
}

/// One operation on one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) client: usize,
    pub(crate) key: usize,
    pub(crate) action: Action,
    pub(crate) invoked: Duration,
    /// `None`: nothing definite came back. It may take effect at any time after its invocation, or
    /// never.
    pub(crate) end: Option<End>,
}

/// Proof of one member that a key held a value after some height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CertifiedRead {
    pub(crate) key: usize,
    pub(crate) returned: Duration,
    pub(crate) value: Value,
    pub(crate) height: u64,
}

/// Calls of all clients, with their results.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) calls: Vec<Call>,
    pub(crate) reads: Vec<CertifiedRead>,
    /// Certified reads that came to nothing.
    pub(crate) unread: usize,
}

impl Action {
    /// The value that the key has if this takes effect. `None` if it writes nothing.
    pub(crate) fn writes(self) -> Option<Value> {
        match self {
            Self::Get => None,
            Self::Put(value) => Some(Some(value)),
            Self::Delete => Some(None),
            Self::Swap { new, .. } => Some(new),
        }
    }
}

impl Call {
    pub(crate) fn reply(&self) -> Option<Reply> {
        self.end.map(|end| end.reply)
    }

    /// The value that the key had after this call for certain or perhaps; `None` if it wrote
    /// nothing.
    pub(crate) fn written(&self) -> Option<Value> {
        match self.reply() {
            Some(Reply::NotSwapped { .. }) => None,
            _ => self.action.writes(),
        }
    }
}

impl History {
    pub(crate) fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.reads.extend(other.reads);
        self.unread += other.unread;
    }

    /// Calls that concern one key: linearizability is a matter of each key alone.
    pub(crate) fn of_key(&self, key: usize) -> Self {
        Self {
            calls: self.calls.iter().filter(|call| call.key == key).copied().collect(),
            reads: self.reads.iter().filter(|read| read.key == key).copied().collect(),
            unread: 0,
        }
    }

    /// Number of calls that got such a reply.
    pub(crate) fn count(&self, fits: impl Fn(Action, Reply) -> bool) -> usize {
        let ended = self.calls.iter().filter_map(|call| Some((call.action, call.reply()?)));
        ended.filter(|(action, reply)| fits(*action, *reply)).count()
    }

    pub(crate) fn proven(&self) -> usize {
        self.calls.iter().filter_map(|call| call.end).filter(|end| end.is_proven).count()
    }

    pub(crate) fn open(&self) -> usize {
        self.calls.iter().filter(|call| call.end.is_none()).count()
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let invoked = self.invoked.as_micros();
        write!(f, "client {} from {invoked} us ", self.client)?;
        match &self.end {
            Some(End { returned, reply, height, .. }) => {
                let returned = returned.as_micros();
                write!(f, "to {returned} us, {:?} -> {reply:?} at {height}", self.action)
            }
            None => write!(f, "on, {:?} -> unknown", self.action),
        }
    }
}
