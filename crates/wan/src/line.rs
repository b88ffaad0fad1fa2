//! Queue of things on a route: late, in order, bounded.

use crate::Route;
use std::collections::VecDeque;
use std::time::Duration;

/// Bandwidth assumed for a link without one of its own, in bytes a second: one gigabit.
const BYTES_PER_SECOND: u64 = 125_000_000;

/// Least capacity of a line, in bytes.
const ROOM_BYTES_MIN: usize = 256 * 1024;

/// Things on their way, in the order in which they left. Time counts from any fixed moment.
///
/// A thing first waits until the link has sent those before it, then takes as long as its bytes
/// need at the link's bandwidth, then travels for the route's delay, and never arrives before one
/// that left earlier. The line holds the bandwidth-delay product and no more: when
/// [`Line::has_room`] says no, things wait where they are.
#[derive(Debug)]
pub struct Line<T> {
    route: Route,
    under_way: VecDeque<(Duration, usize, T)>,
    bytes: usize,
    room_bytes: usize,
    /// Time at which the link has sent everything.
    idle_at: Duration,
    /// Time at which the last thing arrives.
    last: Duration,
}

impl<T> Line<T> {
    /// A line on which nothing is under way.
    #[must_use]
    pub fn new(route: Route) -> Self {
        let rate = route.bytes_per_second().unwrap_or(BYTES_PER_SECOND);
        let product = rate as f64 * route.latency().longest().as_secs_f64();
        Self {
            route,
            under_way: VecDeque::new(),
            bytes: 0,
            room_bytes: (product as usize).max(ROOM_BYTES_MIN),
            idle_at: Duration::ZERO,
            last: Duration::ZERO,
        }
    }

    /// Returns `true` if another thing may leave. One that exceeds the room finds place all the
    /// same.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.bytes < self.room_bytes
    }

    /// Returns `true` if nothing is under way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Something of so many bytes leaves.
    pub fn push(&mut self, now: Duration, bytes: usize, thing: T) {
        self.idle_at = self.idle_at.max(now) + self.route.transmission(bytes);
        self.last = self.last.max(self.idle_at + self.route.delay(now));
        self.bytes += bytes;
        self.under_way.push_back((self.last, bytes, thing));
    }

    /// Time at which the next thing arrives; `None` if nothing is under way.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        self.under_way.front().map(|(due, ..)| *due)
    }

    /// The next thing, if it has arrived.
    pub fn pop(&mut self, now: Duration) -> Option<T> {
        self.due().filter(|due| *due <= now)?;
        let (_, bytes, thing) = self.under_way.pop_front()?;
        self.bytes -= bytes;
        Some(thing)
    }

    /// Everything under way, in order.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<'_, T> {
        self.bytes = 0;
        self.under_way.drain(..).map(|(_, _, thing)| thing)
    }
}

#[cfg(test)]
mod tests;
