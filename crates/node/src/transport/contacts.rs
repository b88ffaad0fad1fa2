//! Contact with each member: when it was last heard, and how far away it is.
//!
//! Once a second each member sends each other member a probe in its lane of votes, nine bytes, and
//! what it gets so goes back the same way. Whoever is connected and does not answer is stopped,
//! hangs or is cut off: the kernel keeps its connections up all the same. Probes never reach the
//! pool, and say nothing of the replica behind them.

use bytes::Bytes;
use quorate_engine::Frame;
use quorate_types::ReplicaId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time from one probe of a member to the next.
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// A member's probes are answered no more often than this: a flood of them costs its sender's lane
/// alone.
const ECHO_INTERVAL: Duration = Duration::from_millis(100);

/// Tags beyond those of the engine.
const PROBE: u8 = 0xf0;
const ECHO: u8 = 0xf1;

/// Tag, and the sender's time in microseconds.
const BYTES: usize = 1 + 8;

/// The latest round trip counts for this part of the mean.
const MEMORY: u64 = 4;

/// The longest content of a probe or an echo; `None` for other tags.
pub(super) fn probe_bytes_max(tag: u8) -> Option<usize> {
    matches!(tag, PROBE | ECHO).then_some(BYTES)
}

/// Contact with every member of a committee. Times count from when it was made.
#[derive(Debug)]
pub struct Contacts {
    since: Instant,
    members: Vec<Contact>,
}

/// Times in microseconds, zero for never.
#[derive(Debug, Default)]
struct Contact {
    heard: AtomicU64,
    echoed: AtomicU64,
    round_trip: AtomicU64,
}

/// Contact with one member, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastContact {
    /// True if a frame of it came since the start.
    pub heard: bool,
    /// Time since its last frame, or since the start where none came.
    pub silence: Duration,
    /// Mean time of the last probes to it and back; `None` before the first came back.
    pub round_trip: Option<Duration>,
}

impl Contacts {
    /// Contacts with so many members, none of which was heard.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self { since: Instant::now(), members: (0..members).map(|_| Contact::default()).collect() }
    }

    /// Contact with a member as of now; `None` for one that there is not.
    #[must_use]
    pub fn of(&self, member: ReplicaId) -> Option<LastContact> {
        let contact = self.members.get(member.index())?;
        let heard = contact.heard.load(Ordering::Relaxed);
        let round_trip = contact.round_trip.load(Ordering::Relaxed);
        Some(LastContact {
            heard: heard > 0,
            silence: Duration::from_micros(self.now().saturating_sub(heard)),
            round_trip: (round_trip > 0).then(|| Duration::from_micros(round_trip)),
        })
    }

    /// A probe that leaves now.
    pub(super) fn probe(&self) -> Frame {
        frame(PROBE, self.now())
    }

    /// Takes note of a frame of a member: `None` if it is no probe and no echo, and otherwise what
    /// is to be sent back, if anything.
    pub(super) fn hear(&self, from: ReplicaId, content: &[u8]) -> Option<Option<Frame>> {
        let contact = self.members.get(from.index())?;
        let now = self.now();
        contact.heard.store(now, Ordering::Relaxed);
        let (tag, time) = content.split_first()?;
        probe_bytes_max(*tag)?;
        let Ok(time) = time.try_into().map(u64::from_le_bytes) else { return Some(None) };
        if *tag == ECHO {
            contact.came_back(now, time);
            return Some(None);
        }
        Some(contact.may_echo(now).then(|| frame(ECHO, time)))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }
}

impl Contact {
    /// A probe that left at `sent` is back. The other end may say any time, and only blurs how far
    /// away it is itself.
    fn came_back(&self, now: u64, sent: u64) {
        let Some(latest) = now.checked_sub(sent) else { return };
        let mean = self.round_trip.load(Ordering::Relaxed);
        let mean = if mean == 0 { latest } else { mean - mean / MEMORY + latest / MEMORY };
        self.round_trip.store(mean.max(1), Ordering::Relaxed);
    }

    fn may_echo(&self, now: u64) -> bool {
        let interval = u64::try_from(ECHO_INTERVAL.as_micros()).expect("short");
        let last = self.echoed.load(Ordering::Relaxed);
        let may = last == 0 || now.saturating_sub(last) >= interval;
        if may {
            self.echoed.store(now, Ordering::Relaxed);
        }
        may
    }
}

fn frame(tag: u8, time: u64) -> Frame {
    let mut bytes = Vec::with_capacity(4 + BYTES);
    bytes.extend_from_slice(&u32::try_from(BYTES).expect("nine").to_le_bytes());
    bytes.push(tag);
    bytes.extend_from_slice(&time.to_le_bytes());
    Frame(vec![Bytes::from(bytes)])
}

#[cfg(test)]
mod tests;
