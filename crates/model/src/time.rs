//! Virtual time, in nanoseconds.

use quorate_types::Time;
use std::time::Duration;

/// Nanoseconds since the beginning of a scene.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(span: Duration) -> Nanos {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Virtual time as machines are told it.
pub(crate) fn micros(now: Nanos) -> Time {
    Time(now / 1_000)
}
