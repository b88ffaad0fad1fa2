//! Flow control: an author's own data that may be under way, sealed, sent and not yet executed.
//!
//! Without a bound an overloaded author fills every queue between itself and its peers, its bodies
//! arrive after the proposals that name them, and views wait for megabytes. The bound cannot be a
//! constant: four validators in a rack and twenty on four continents differ a thousandfold. So it
//! follows the delay, as TCP Vegas and LEDBAT (RFC 6817) do: the shortest time from sealing to
//! execution in the last half minute is what the committee needs; what is longer than that is
//! waiting. While little is waiting the window grows with what is decided; when much is, it
//! shrinks.

use quorate_types::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// A window before anything is known. It doubles with every decision that comes in time.
const WINDOW_FIRST: usize = 64 * 1024;
/// The smallest window: some two hundred transactions of a ledger, whose checks and execution take
/// longer than their bytes. One body may always be under way.
const WINDOW_MIN: usize = 32 * 1024;
/// The shortest time is that of the present and the last span.
const SPAN: Duration = Duration::from_secs(15);

/// The window of one author.
#[derive(Debug)]
pub(crate) struct Flow {
    under_way: BTreeMap<u64, Sealed>,
    bytes: usize,
    window: usize,
    window_max: usize,
    /// Absent where the window follows nothing.
    delay: Option<Delay>,
}

/// Delays that the window follows.
#[derive(Debug)]
struct Delay {
    slack: Duration,
    shortest: Shortest,
    shrunk_at: Time,
}

/// A body under way.
#[derive(Debug)]
pub(crate) struct Sealed {
    at: Time,
    bytes: usize,
    /// Set if the window was at least half full: only then does its size matter.
    pressed: bool,
    /// Time since then that went into views that timed out.
    lost: Duration,
}

impl Flow {
    /// A window of at most `window_max` bytes. `slack` is what may wait, on top of the time that
    /// the committee needs, before the window stops growing: a quarter of a view's timeout, so that
    /// what waits for its check at a voter is there before the view of its proposal is over.
    #[must_use]
    pub(crate) fn new(window_max: usize, slack: Duration) -> Self {
        Self {
            under_way: BTreeMap::new(),
            bytes: 0,
            window: WINDOW_FIRST.min(window_max),
            window_max: window_max.max(WINDOW_MIN),
            delay: Some(Delay { slack, shortest: Shortest::default(), shrunk_at: Time(0) }),
        }
    }

    /// The same, as wide as it gets from the beginning.
    #[must_use]
    pub(crate) fn warm(window_max: usize, slack: Duration) -> Self {
        let flow = Self::new(window_max, slack);
        Self { window: flow.window_max, ..flow }
    }

    /// A window of so many bytes, whatever happens.
    #[must_use]
    pub(crate) fn fixed(window: usize) -> Self {
        let under_way = BTreeMap::new();
        Self { under_way, bytes: 0, window, window_max: window, delay: None }
    }

    /// Returns `true` if another body may leave.
    #[must_use]
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.is_empty() || self.bytes < self.window
    }

    /// Returns `true` if nothing is under way, so that nothing is won by waiting for a body to
    /// fill. A fixed window does not look.
    #[must_use]
    pub(crate) fn is_idle(&self) -> bool {
        self.delay.is_some() && self.under_way.is_empty()
    }

    /// Number of bytes that may be under way now.
    #[must_use]
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// A body was sealed.
    pub(crate) fn sealed(&mut self, now: Time, sequence: u64, bytes: usize) {
        self.bytes += bytes;
        let pressed = 2 * self.bytes >= self.window;
        let lost = Duration::ZERO;
        self.under_way.insert(sequence, Sealed { at: now, bytes, pressed, lost });
    }

    /// A view that began at `since` has timed out. That its leader is dead is no sign of too much
    /// data: what bodies under way waited in it is no part of their time.
    pub(crate) fn view_timed_out(&mut self, since: Time, now: Time) {
        for sealed in self.under_way.values_mut() {
            sealed.lost += now.since(sealed.at.max(since));
        }
    }

    /// A body is under way no longer, and its time is not a sample.
    pub(crate) fn forget(&mut self, sequence: u64) -> Option<Sealed> {
        let sealed = self.under_way.remove(&sequence)?;
        self.bytes -= sealed.bytes;
        Some(sealed)
    }

    /// A body was executed; harmless when it was not under way. What waits for execution holds its
    /// author back as what waits for a decision does: state that is slow to change is no more
    /// patient than a network.
    pub(crate) fn executed(&mut self, now: Time, sequence: u64) {
        let Some(Sealed { at, bytes, pressed, lost }) = self.forget(sequence) else {
            return;
        };
        let Some(delay) = &mut self.delay else { return };
        let taken = now.since(at).saturating_sub(lost);
        let needed = delay.shortest.update(now, taken);
        if taken <= 2 * needed + delay.slack {
            if pressed {
                self.window = (self.window + bytes).min(self.window_max);
            }
        } else if taken > 3 * needed + 2 * delay.slack && at >= delay.shrunk_at {
            // Once for what was under way together: to what would have been decided in time.
            let in_time = (2 * needed + delay.slack).as_micros() * 4 / taken.as_micros().max(1);
            let quarters = usize::try_from(in_time).unwrap_or(3).clamp(1, 3);
            self.window = (self.window / 4 * quarters).max(WINDOW_MIN);
            delay.shrunk_at = now;
        }
    }
}

/// The smallest of late.
#[derive(Debug, Default)]
struct Shortest {
    began: Time,
    present: Option<Duration>,
    last: Option<Duration>,
}

impl Shortest {
    fn update(&mut self, now: Time, taken: Duration) -> Duration {
        if now.since(self.began) > SPAN {
            self.began = now;
            self.last = self.present.take();
        }
        let present = self.present.map_or(taken, |least| least.min(taken));
        self.present = Some(present);
        self.last.map_or(present, |last| last.min(present))
    }
}

#[cfg(test)]
mod tests;
