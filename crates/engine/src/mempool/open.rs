//! Requests that are in no body yet, in the order in which they came.

use quorate_types::{Request, Time};
use std::collections::VecDeque;

/// Room in a body, in operations and bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    pub(crate) bytes: usize,
    pub(crate) operations: usize,
}

impl Capacity {
    /// This, and no more bytes than these.
    pub(super) fn within(self, bytes: usize) -> Self {
        Self { bytes: self.bytes.min(bytes), ..self }
    }
}

/// The requests, what they come to, and since when the first of them waits.
#[derive(Debug, Default)]
pub(super) struct Open {
    requests: VecDeque<Request>,
    bytes: usize,
    operations: usize,
    since: Option<Time>,
}

impl Open {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn since(&self) -> Option<Time> {
        self.since
    }

    pub(super) fn fills(&self, capacity: Capacity) -> bool {
        self.bytes >= capacity.bytes || self.operations >= capacity.operations
    }

    pub(super) fn push(&mut self, now: Time, request: Request) {
        self.bytes += request.raw().len();
        self.operations += request.operations.len();
        self.requests.push_back(request);
        self.since.get_or_insert(now);
    }

    /// Takes the requests that fit into one body: at least one. The others begin to wait now.
    pub(super) fn take(&mut self, now: Time, capacity: Capacity) -> Vec<Request> {
        let (mut bytes, mut operations) = (0, 0);
        let fits = |request: &&Request| {
            bytes += request.raw().len();
            operations += request.operations.len();
            bytes <= capacity.bytes && operations <= capacity.operations
        };
        let count = self.requests.iter().take_while(fits).count().max(1);
        let taken: Vec<Request> = self.requests.drain(..count.min(self.requests.len())).collect();
        taken.iter().for_each(|request| self.subtract(request));
        self.since = (!self.requests.is_empty()).then_some(now);
        taken
    }

    /// Drops those for which this does not hold.
    pub(super) fn retain(&mut self, holds: impl Fn(&Request) -> bool) {
        for request in std::mem::take(&mut self.requests) {
            if holds(&request) {
                self.requests.push_back(request);
            } else {
                self.subtract(&request);
            }
        }
        if self.requests.is_empty() {
            self.since = None;
        }
    }

    fn subtract(&mut self, request: &Request) {
        self.bytes -= request.raw().len();
        self.operations -= request.operations.len();
    }
}
