//! Events to come, by time and then by the order in which they were scheduled.

use quorate_types::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A queue of events `E`. Those of one moment come out in the order in which they were put in.
///
/// `T` is the clock: microseconds ([`Time`]) in the swarm's world, nanoseconds in the model.
#[derive(Debug)]
pub struct EventQueue<E, T = Time> {
    queue: BinaryHeap<Reverse<Entry<E, T>>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Entry<E, T> {
    at: T,
    number: u64,
    event: E,
}

impl<E, T: Ord + Copy> EventQueue<E, T> {
    /// Schedules `event` for `at`.
    pub fn schedule(&mut self, at: T, event: E) {
        let number = self.scheduled;
        self.scheduled += 1;
        self.queue.push(Reverse(Entry { at, number, event }));
    }

    /// Time of the earliest event.
    #[must_use]
    pub fn next_at(&self) -> Option<T> {
        self.queue.peek().map(|Reverse(entry)| entry.at)
    }

    /// Takes out the earliest event, with its time.
    pub fn pop(&mut self) -> Option<(T, E)> {
        self.queue.pop().map(|Reverse(entry)| (entry.at, entry.event))
    }
}

impl<E, T: Ord> Default for EventQueue<E, T> {
    fn default() -> Self {
        Self { queue: BinaryHeap::new(), scheduled: 0 }
    }
}

impl<E, T> PartialEq for Entry<E, T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E, T> Eq for Entry<E, T> {}

impl<E, T: Ord> PartialOrd for Entry<E, T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E, T: Ord> Ord for Entry<E, T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at).then(self.number.cmp(&other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.schedule(Time(at), event);
        }
        assert_eq!(queue.next_at(), Some(Time(1)));
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcd");
    }
}
