//! Who has connected and not proven a key yet.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::Notify;

/// One accepted connection.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) ticket: u64,
    /// Ends it.
    pub(crate) leave: Arc<Notify>,
}

/// Connections that have not proven a key. When there are too many, the oldest is cut: whoever is
/// honest needs milliseconds, whoever holds connections open for nothing is the oldest soon.
#[derive(Debug)]
pub(crate) struct Pending {
    max: usize,
    state: Mutex<(u64, VecDeque<Visit>)>,
}

impl Pending {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, state: Mutex::default() }
    }

    /// A new visit, and whether another one had to go for it.
    pub(crate) fn enter(&self) -> (Visit, bool) {
        let (next, visits) = &mut *self.state.lock();
        *next += 1;
        let visit = Visit { ticket: *next, leave: Arc::new(Notify::new()) };
        visits.push_back(visit.clone());
        let oldest = if visits.len() > self.max { visits.pop_front() } else { None };
        if let Some(oldest) = &oldest {
            oldest.leave.notify_one();
        }
        (visit, oldest.is_some())
    }

    pub(crate) fn leave(&self, visit: &Visit) {
        self.state.lock().1.retain(|other| other.ticket != visit.ticket);
    }
}
