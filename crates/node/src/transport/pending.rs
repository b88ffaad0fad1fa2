//! Connections that are accepted and have not proven a key yet.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// Handle of an accepted connection, by which it can be cut.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedConnection {
    pub(crate) ticket: u64,
    /// Notification that ends the connection.
    pub(crate) leave: Arc<Notify>,
}

/// Connections that have not proven a key. When there are too many, the oldest is cut: an honest
/// dialer needs milliseconds, and one that holds connections open for nothing is the oldest soon.
#[derive(Debug)]
pub(crate) struct Pending {
    max: usize,
    state: Mutex<(u64, VecDeque<AcceptedConnection>)>,
}

impl Pending {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, state: Mutex::default() }
    }

    /// Enters a connection; `true` when the oldest one was cut for it.
    pub(crate) fn enter(&self) -> (AcceptedConnection, bool) {
        let (next, connections) = &mut *self.state.lock();
        *next += 1;
        let accepted = AcceptedConnection { ticket: *next, leave: Arc::new(Notify::new()) };
        connections.push_back(accepted.clone());
        let oldest = if connections.len() > self.max { connections.pop_front() } else { None };
        if let Some(oldest) = &oldest {
            oldest.leave.notify_one();
        }
        (accepted, oldest.is_some())
    }

    pub(crate) fn leave(&self, accepted: &AcceptedConnection) {
        self.state.lock().1.retain(|other| other.ticket != accepted.ticket);
    }
}
