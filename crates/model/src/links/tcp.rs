//! Connections of TCP: how long a sender's bytes wait for what was sent before them.
//!
//! One direction of a connection, whole frames at a time. A frame leaves in as many bursts as the
//! window makes of it; each is acknowledged a round trip after it left. The window is ten segments
//! at first (RFC 6928) and grows by what is acknowledged while at least half of it is used, up to a
//! threshold (slow start, RFC 5681); beyond it as CUBIC lets it, while all of it is used (RFC 9438
//! §4.2 to §4.5). A lost packet is there a round trip later, or where nothing follows it a timeout;
//! the window shrinks to 0.7 of itself once a round trip, and the threshold with it (§4.6, §4.7).
//! The receiver's window bounds it. After a pause it is halved for each timeout that passed, as
//! Linux does it, ten segments at least.
//!
//! Nagle's algorithm is Linux's (Minshall's variant): the last segment of a frame waits while an
//! earlier one that was not full is unacknowledged, until then or until later frames fill it. Its
//! receiver waits for another segment before it acknowledges one that came alone.
//!
//! Not modelled: HyStart, slow start after a timeout, tail loss probes, delayed acknowledgements of
//! other segments, losses that come together.

use crate::time::{Nanos, nanos};
use quorate_deterministic::Rng;
use std::collections::VecDeque;
use std::time::Duration;

/// Payload of a full segment on Ethernet, with timestamps.
pub(crate) const SEGMENT_BYTES: usize = 1_448;

/// Window of a connection that has sent nothing yet, and the least after a pause: ten segments.
const INITIAL_WINDOW: f64 = 10.0 * SEGMENT_BYTES as f64;

/// Retransmission timeout on top of a round trip, at least: Linux's `TCP_RTO_MIN`.
const TIMEOUT_MIN: Duration = Duration::from_millis(200);

/// Time that the acknowledgement of a frame's end waits: Linux's `TCP_DELACK_MIN`, 40 ms, for every
/// other one, since two segments are acknowledged at once. What its receiver's program answers does
/// not go sooner: its own answer before is unacknowledged as well.
const DELAYED: Duration = Duration::from_millis(20);

/// Window that a receiver advertises at most: half of Linux's default `tcp_rmem`, 6 MiB.
const RECEIVER_WINDOW: f64 = 3.0 * 1_048_576.0;

/// Factor on the window when a packet is lost (RFC 9438 §4.6).
const DECREASE: f64 = 0.7;

/// Growth of the window, in segments a second cubed (RFC 9438 §5).
const CUBIC: f64 = 0.4;

/// Segments of a burst from which on those behind a lost one tell of it: three acknowledgements.
const TELLING: f64 = 4.0;

/// Way that a connection's segments go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) round_trip: Nanos,
    /// Share of the packets that are lost.
    pub(crate) loss: f64,
}

impl Path {
    /// Time after which a packet that nothing follows is sent again.
    fn timeout(&self) -> Nanos {
        self.round_trip + nanos(TIMEOUT_MIN)
    }

    /// Draws how late a burst is for packets of it that are lost.
    fn delay(&self, bytes: usize, rng: &mut Rng) -> Nanos {
        if self.loss == 0.0 {
            return 0;
        }
        let segments = bytes as f64 / SEGMENT_BYTES as f64;
        let kept = (1.0 - self.loss).powf(segments.max(1.0));
        if (rng.below(1 << 32) as f64) < kept * (1_u64 << 32) as f64 {
            return 0;
        }
        if segments < TELLING { self.timeout() } else { self.round_trip }
    }
}

/// A burst that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Burst {
    sent: Nanos,
    /// When its acknowledgement is back: a selective one, where a packet was lost.
    acknowledged: Nanos,
    bytes: usize,
    /// Bytes under way when it had left.
    under_way: usize,
    /// One of its packets was lost.
    is_lossy: bool,
}

/// When a frame's last byte leaves, and how late it then is for packets that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) left: Nanos,
    pub(crate) late: Nanos,
}

/// Sending end of a connection.
#[derive(Debug)]
pub(crate) struct Flow {
    /// Congestion window, in bytes.
    window: f64,
    /// Window from which on slow start is over.
    threshold: f64,
    /// What CUBIC remembers of the last loss; nothing before the first.
    epoch: Option<Epoch>,
    bursts: VecDeque<Burst>,
    under_way: usize,
    /// When the last burst left.
    last: Nanos,
    /// When the window last held something back.
    held_back: Nanos,
    /// When the last segment that was not full is acknowledged.
    small_acknowledged: Nanos,
    /// Time for which the window held something back, since the beginning.
    waited: Nanos,
}

/// Time since the window shrank, as CUBIC counts it.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When the window shrank.
    since: Nanos,
    /// Windows before, and from which the curve is flat, and after.
    prior: f64,
    plateau: f64,
    begin: f64,
    /// Seconds since, without those in which the window was not what held the sender back.
    seconds: f64,
    /// When the last acknowledgement came.
    heard: Nanos,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            epoch: None,
            bursts: VecDeque::new(),
            under_way: 0,
            last: 0,
            held_back: 0,
            small_acknowledged: 0,
            waited: 0,
        }
    }
}

impl Flow {
    /// A connection that has sent nothing yet, or, if it is `warm`, much and lost nothing: then its
    /// receiver's window is its bound.
    pub(crate) fn begin(warm: bool) -> Self {
        let window = if warm { RECEIVER_WINDOW } else { INITIAL_WINDOW };
        Self { window, ..Self::default() }
    }

    /// Time for which the window held something back, since the beginning.
    pub(crate) fn waited(&self) -> Nanos {
        self.waited
    }

    /// Sends a frame that could leave at `at`, as the window allows.
    pub(crate) fn send(&mut self, at: Nanos, bytes: usize, path: &Path, rng: &mut Rng) -> Sent {
        let mut now = at.max(self.last);
        self.acknowledge(now, path);
        self.rest(now, path);
        let mut left = bytes;
        let mut there = 0;
        loop {
            // Whole segments, but for the frame's end.
            let room = (self.window as usize).saturating_sub(self.under_way);
            let burst = if left <= room { left } else { room - room % SEGMENT_BYTES };
            if burst > 0 {
                left -= burst;
                there = there.max(now + self.send_burst(now, burst, path, rng));
            }
            let Some(first) = self.bursts.front().filter(|_| left > 0) else {
                return Sent { left: now, late: there.saturating_sub(now) };
            };
            self.held_back = now;
            self.waited += first.acknowledged.saturating_sub(now);
            now = now.max(first.acknowledged);
            self.acknowledge(now, path);
        }
    }

    /// Sends what the window takes; returns how late it is.
    fn send_burst(&mut self, now: Nanos, bytes: usize, path: &Path, rng: &mut Rng) -> Nanos {
        let late = path.delay(bytes, rng);
        self.under_way += bytes;
        self.last = now;
        self.bursts.push_back(Burst {
            sent: now,
            acknowledged: now + path.round_trip,
            bytes,
            under_way: self.under_way,
            is_lossy: late > 0,
        });
        late
    }

    /// Time until which Nagle's algorithm holds back a segment that is not full and would leave at
    /// `at`; `None` where it leaves.
    pub(crate) fn holds(&self, at: Nanos) -> Option<Nanos> {
        (self.small_acknowledged > at).then_some(self.small_acknowledged)
    }

    /// A segment that is not full leaves.
    pub(crate) fn end_small(&mut self, at: Nanos, path: &Path) {
        self.small_acknowledged = at + path.round_trip + nanos(DELAYED);
    }

    /// Takes the acknowledgements that are back.
    fn acknowledge(&mut self, now: Nanos, path: &Path) {
        while let Some(burst) = self.bursts.pop_front_if(|one| one.acknowledged <= now) {
            self.under_way -= burst.bytes;
            if burst.is_lossy {
                self.shrink(&burst, path);
            } else {
                self.grow(&burst, path);
            }
        }
    }

    /// A packet was lost: the window shrinks, unless it did since the packet was sent.
    fn shrink(&mut self, burst: &Burst, path: &Path) {
        let (since, prior) = (burst.sent + path.round_trip, self.window);
        if self.epoch.is_some_and(|epoch| burst.sent < epoch.since) {
            return;
        }
        // Who had less than the last time leaves room for others (RFC 9438 §4.7).
        let converges = self.epoch.is_some_and(|epoch| prior < epoch.plateau);
        let plateau = if converges { prior * (1.0 + DECREASE) / 2.0 } else { prior };
        self.window = (DECREASE * prior).max(2.0 * SEGMENT_BYTES as f64);
        self.threshold = self.window;
        let begin = self.window;
        self.epoch = Some(Epoch { since, prior, plateau, begin, seconds: 0.0, heard: since });
    }

    fn grow(&mut self, burst: &Burst, path: &Path) {
        let (used, acknowledged) = (burst.under_way as f64, burst.bytes as f64);
        let is_full = self.held_back >= burst.sent;
        let target = self.epoch.as_mut().map(|epoch| epoch.hear(burst, path, is_full));
        if self.window < self.threshold {
            if self.window < 2.0 * used {
                self.window += acknowledged;
            }
        } else if let Some(target) = target.filter(|_| is_full) {
            // By half of what is acknowledged at most (RFC 9438 §4.4).
            self.window = self.window.max(target.min(self.window + acknowledged / 2.0));
        }
        self.window = self.window.min(RECEIVER_WINDOW);
    }

    /// Halves the window for each timeout that passed since anything was sent; slow start brings it
    /// back to three quarters of what it was.
    fn rest(&mut self, now: Nanos, path: &Path) {
        let has_sent = self.last > 0;
        let timeouts = ((now - self.last) / path.timeout()).min(64) as i32;
        if has_sent && timeouts > 0 && self.window > INITIAL_WINDOW {
            self.threshold = self.threshold.max(0.75 * self.window);
            self.window = (self.window * 0.5_f64.powi(timeouts)).max(INITIAL_WINDOW);
        }
    }
}

impl Epoch {
    /// An acknowledgement comes; returns CUBIC's window a round trip later, or Reno's where that is
    /// larger, in bytes. Time counts while the window `is_full` (RFC 9438 §4.2).
    fn hear(&mut self, burst: &Burst, path: &Path, is_full: bool) -> f64 {
        let round_trip = path.round_trip as f64 / 1e9;
        let passed = burst.acknowledged.saturating_sub(self.heard) as f64 / 1e9;
        self.heard = burst.acknowledged;
        if is_full {
            self.seconds += passed.min(round_trip);
        }
        self.cubic(self.seconds + round_trip).max(self.reno(self.seconds / round_trip))
    }

    /// CUBIC's window so many seconds after it shrank (RFC 9438 §4.2).
    fn cubic(&self, seconds: f64) -> f64 {
        let segment = SEGMENT_BYTES as f64;
        let flat_after = ((self.plateau - self.begin).max(0.0) / segment / CUBIC).cbrt();
        self.plateau + segment * CUBIC * (seconds - flat_after).powi(3)
    }

    /// The window that Reno would have after so many round trips: as quick as it on average until
    /// the one before the loss, and then by a segment each (RFC 9438 §4.3).
    fn reno(&self, round_trips: f64) -> f64 {
        let segment = SEGMENT_BYTES as f64;
        let additive = 3.0 * (1.0 - DECREASE) / (1.0 + DECREASE) * segment;
        let back = ((self.prior - self.begin) / additive).max(0.0);
        self.begin + additive * round_trips.min(back) + segment * (round_trips - back).max(0.0)
    }
}

#[cfg(test)]
impl Flow {
    /// Opens the window as far as it goes.
    pub(crate) fn open(&mut self) {
        self.window = f64::MAX;
    }
}

#[cfg(test)]
mod tests;
