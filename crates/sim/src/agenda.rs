//! What is going to happen, by time and then by the order in which it was put there.

use quorate_types::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A queue of happenings. Those of one moment come out in the order in which they were put in.
///
/// `T` is the clock: microseconds in the swarm's world, nanoseconds in the priced one.
#[derive(Debug)]
pub(crate) struct Agenda<W, T = Time> {
    queue: BinaryHeap<Reverse<Entry<W, T>>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Entry<W, T> {
    at: T,
    number: u64,
    what: W,
}

impl<W, T: Ord + Copy> Agenda<W, T> {
    /// `what` happens at `at`.
    pub(crate) fn schedule(&mut self, at: T, what: W) {
        let number = self.scheduled;
        self.scheduled += 1;
        self.queue.push(Reverse(Entry { at, number, what }));
    }

    /// The next happening and its time.
    pub(crate) fn pop(&mut self) -> Option<(T, W)> {
        self.queue.pop().map(|Reverse(entry)| (entry.at, entry.what))
    }
}

impl<W, T: Ord> Default for Agenda<W, T> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), scheduled: 0 }
    }
}

impl<W, T> PartialEq for Entry<W, T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<W, T> Eq for Entry<W, T> {}

impl<W, T: Ord> PartialOrd for Entry<W, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<W, T: Ord> Ord for Entry<W, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_at_one_moment_keeps_its_order() {
        let mut agenda = Agenda::default();
        for (at, what) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            agenda.schedule(Time(at), what);
        }
        let order: String = std::iter::from_fn(|| agenda.pop()).map(|(_, what)| what).collect();
        assert_eq!(order, "abcd");
    }
}
