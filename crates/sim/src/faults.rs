//! Faults of hosts and links with their times, drawn for a scenario.

use crate::forms;
use crate::network::{Shape, Side};
use quorate_deterministic::Rng;
use quorate_types::Time;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Something that goes wrong for a while. Hosts and endpoints by their number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fault {
    /// The network is cut.
    Partition {
        /// These from the rest.
        #[serde(with = "forms::side")]
        side: Side,
        /// Directions in which links are cut.
        shape: Shape,
        /// Time until it is over.
        #[serde(with = "forms::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// A link holds everything back.
    Clog {
        /// Endpoint whose frames are lost.
        from: usize,
        /// Endpoint that does not get them.
        to: usize,
        /// Time until it is over.
        #[serde(with = "forms::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// A replica loses power and what was not synced.
    Crash {
        /// Number of the host concerned.
        host: usize,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica loses power, and the files of its bodies; its promises and its state are there.
    WipeBodies {
        /// Number of the host concerned.
        host: usize,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica loses power and everything on its disk. From then on it follows and never signs:
    /// it counts as faulty.
    Wipe {
        /// Number of the host concerned.
        host: usize,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica stops, everything on its disk is copied, and it starts again.
    CopyDisk {
        /// Number of the host concerned.
        host: usize,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica stops, and starts again on the copy of its disk, if one was made: what it promised
    /// since is forgotten, and nothing on the disk says so.
    PutBack {
        /// Number of the host concerned.
        host: usize,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica's disk fails; it stops, and starts again with a disk that works.
    DiskFails {
        /// Number of the host concerned.
        host: usize,
        /// Way in which the disk fails.
        how: DiskFailure,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica's wall clock is set, and the replica starts again: what it proposes from then on
    /// is stamped by the new time.
    ClockStep {
        /// Number of the host concerned.
        host: usize,
        /// Milliseconds forwards, or backwards.
        by_ms: i64,
        /// Time until it starts again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// All replicas lose power at once.
    PowerCut {
        /// Time until they start again.
        #[serde(with = "forms::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica does nothing at all, and goes on afterwards as if no time had passed.
    Pause {
        /// Number of the host concerned.
        host: usize,
        /// Time until it is over.
        #[serde(with = "forms::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// A replica's machine is suspended: it does nothing, its monotonic clock stands still, and its
    /// wall clock does not.
    Suspend {
        /// Number of the host concerned.
        host: usize,
        /// Time until it goes on.
        #[serde(with = "forms::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// Syncs of a replica's disk take this long.
    SlowDisk {
        /// Number of the host concerned.
        host: usize,
        /// Microseconds of a sync.
        sync_us: u64,
        /// Time until it is over.
        #[serde(with = "forms::micros", rename = "lasts_us")]
        lasts: Duration,
    },
}

/// Ways in which a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFailure {
    /// It is full: nothing more fits.
    Full,
    /// The next write fails and leaves nothing.
    Write,
    /// The next write fails after some of its bytes.
    Torn,
    /// The next sync fails.
    Sync,
}

impl Fault {
    /// The one host that it befalls, if it is about one.
    #[must_use]
    pub fn host(&self) -> Option<usize> {
        match self {
            Self::Crash { host, .. }
            | Self::WipeBodies { host, .. }
            | Self::Wipe { host, .. }
            | Self::CopyDisk { host, .. }
            | Self::PutBack { host, .. }
            | Self::DiskFails { host, .. }
            | Self::ClockStep { host, .. }
            | Self::Pause { host, .. }
            | Self::Suspend { host, .. }
            | Self::SlowDisk { host, .. } => Some(*host),
            Self::Partition { .. } | Self::Clog { .. } | Self::PowerCut { .. } => None,
        }
    }
}

impl Fault {
    /// Name for several of its kind, in statistics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Partition { shape: Shape::Symmetric, .. } => "partitions",
            Self::Partition { shape: Shape::OneWay, .. } => "one-way partitions",
            Self::Partition { shape: Shape::Bridge(_), .. } => "bridges",
            Self::Clog { .. } => "clogs",
            Self::Crash { .. } => "crashes",
            Self::WipeBodies { .. } => "lost bodies",
            Self::Wipe { .. } => "lost disks",
            Self::CopyDisk { .. } => "copied disks",
            Self::PutBack { .. } => "old copies put back",
            Self::DiskFails { how: DiskFailure::Full, .. } => "full disks",
            Self::DiskFails { how: DiskFailure::Write | DiskFailure::Torn, .. } => "failed writes",
            Self::DiskFails { how: DiskFailure::Sync, .. } => "failed syncs",
            Self::ClockStep { .. } => "clock steps",
            Self::PowerCut { .. } => "power cuts",
            Self::Pause { .. } => "pauses",
            Self::Suspend { .. } => "suspensions",
            Self::SlowDisk { .. } => "slow disks",
        }
    }

    /// Returns `true` if its host loses what it promised to keep: it counts as faulty.
    #[must_use]
    pub fn loses_promises(&self) -> bool {
        matches!(self, Self::WipeBodies { .. } | Self::Wipe { .. } | Self::PutBack { .. })
    }

    /// Time that it lasts, for the shrinker.
    pub(crate) fn span_mut(&mut self) -> Option<&mut Duration> {
        match self {
            Self::Partition { lasts, .. }
            | Self::Clog { lasts, .. }
            | Self::Pause { lasts, .. }
            | Self::Suspend { lasts, .. }
            | Self::SlowDisk { lasts, .. } => Some(lasts),
            Self::Crash { down, .. }
            | Self::WipeBodies { down, .. }
            | Self::Wipe { down, .. }
            | Self::CopyDisk { down, .. }
            | Self::PutBack { down, .. }
            | Self::DiskFails { down, .. }
            | Self::ClockStep { down, .. }
            | Self::PowerCut { down } => Some(down),
        }
    }
}

/// Faults by the time at which they begin.
pub type Schedule = Vec<(Time, Fault)>;

/// Draws a schedule for `hosts` replicas among `endpoints`: each kind with a chance of one half.
#[must_use]
pub fn draw(rng: &mut Rng, hosts: usize, endpoints: usize, phase: Duration) -> Schedule {
    let mut schedule = Vec::new();
    let phase_us = u64::try_from(phase.as_micros()).expect("a phase is seconds");
    draw_partitions(rng, &mut schedule, endpoints, phase_us);
    draw_clogs(rng, &mut schedule, endpoints, phase_us);
    draw_crashes(rng, &mut schedule, hosts, phase_us);
    draw_halts(rng, &mut schedule, hosts, phase_us);
    draw_disk_failures(rng, &mut schedule, hosts, phase_us);
    draw_clock_steps(rng, &mut schedule, hosts, phase_us);
    if rng.one_in(4) {
        draw_rolling_restart(rng, &mut schedule, hosts, phase_us);
    }
    schedule.sort_by_key(|(at, _)| *at);
    schedule
}

fn draw_partitions(rng: &mut Rng, schedule: &mut Schedule, endpoints: usize, phase_us: u64) {
    for _ in 0..rng.perhaps(&(1..=4)) {
        let at = Time(rng.below(phase_us));
        let side = rng.bits() & (u64::MAX >> (64 - endpoints));
        let shape = match rng.below(3) {
            0 => Shape::Symmetric,
            1 => Shape::OneWay,
            _ => Shape::Bridge(rng.index(endpoints)),
        };
        let lasts = rng.span(&(50_000..=1_500_000));
        schedule.push((at, Fault::Partition { side, shape, lasts }));
    }
}

fn draw_clogs(rng: &mut Rng, schedule: &mut Schedule, endpoints: usize, phase_us: u64) {
    for _ in 0..rng.perhaps(&(1..=6)) {
        let at = Time(rng.below(phase_us));
        let (from, to) = (rng.index(endpoints), rng.index(endpoints));
        schedule.push((at, Fault::Clog { from, to, lasts: rng.span(&(10_000..=5_000_000)) }));
    }
}

/// Mostly one after the other, so that no more are down than the committee tolerates; sometimes as
/// they come; sometimes everybody at once.
fn draw_crashes(rng: &mut Rng, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    let down_us: RangeInclusive<u64> = 1_000..=800_000;
    let rolling = !rng.one_in(4);
    let mut free_from = 0;
    for _ in 0..rng.perhaps(&(1..=6)) {
        let at = if rolling { free_from + rng.below(phase_us / 3) } else { rng.below(phase_us) };
        let down = rng.span(&down_us);
        if at >= phase_us {
            break;
        }
        free_from = at + u64::try_from(down.as_micros()).expect("a second");
        schedule.push((Time(at), Fault::Crash { host: rng.index(hosts), down }));
    }
    if rng.one_in(6) {
        let at = Time(rng.below(phase_us));
        schedule.push((at, Fault::PowerCut { down: rng.span(&down_us) }));
    }
}

fn draw_halts(rng: &mut Rng, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    for _ in 0..rng.perhaps(&(1..=4)) {
        let at = Time(rng.below(phase_us));
        let lasts = rng.span(&(20_000..=1_000_000));
        schedule.push((at, Fault::Pause { host: rng.index(hosts), lasts }));
    }
    for _ in 0..rng.perhaps(&(1..=4)) {
        let at = Time(rng.below(phase_us));
        let host = rng.index(hosts);
        let sync_us = rng.between(&(5_000..=1_000_000));
        let lasts = rng.span(&(100_000..=2_000_000));
        schedule.push((at, Fault::SlowDisk { host, sync_us, lasts }));
    }
}

/// Draws suspensions that are over when the phase is.
pub(crate) fn draw_suspensions(
    rng: &mut Rng,
    schedule: &mut Schedule,
    hosts: usize,
    phase: Duration,
) {
    let phase_us = u64::try_from(phase.as_micros()).expect("a phase is seconds");
    for _ in 0..rng.between(&(1..=2 * hosts as u64)) {
        let lasts = rng.below(phase_us / 4);
        let at = Time(rng.below(phase_us - lasts));
        let lasts = Duration::from_micros(lasts);
        schedule.push((at, Fault::Suspend { host: rng.index(hosts), lasts }));
    }
}

fn draw_disk_failures(rng: &mut Rng, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    const ALL: [DiskFailure; 4] =
        [DiskFailure::Full, DiskFailure::Write, DiskFailure::Torn, DiskFailure::Sync];
    for _ in 0..rng.perhaps(&(1..=3)) {
        let at = Time(rng.below(phase_us));
        let (host, how) = (rng.index(hosts), *rng.choose(&ALL));
        let down = rng.span(&(10_000..=800_000));
        schedule.push((at, Fault::DiskFails { host, how, down }));
    }
}

/// Less than what a proposal's stamp may be ahead of its receiver's clock, together with what
/// clocks that run fast and slow come to.
fn draw_clock_steps(rng: &mut Rng, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    const STEP_MS_MAX: u64 = 20_000;
    for _ in 0..rng.perhaps(&(1..=2)) {
        let at = Time(rng.below(phase_us));
        let size = i64::try_from(rng.between(&(1..=STEP_MS_MAX))).expect("seconds");
        let by_ms = if rng.coin() { size } else { -size };
        let (host, down) = (rng.index(hosts), rng.span(&(1_000..=100_000)));
        schedule.push((at, Fault::ClockStep { host, by_ms, down }));
    }
}

/// One host after the other, each for a moment, as in an upgrade.
fn draw_rolling_restart(rng: &mut Rng, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    let every = rng.between(&(1..=phase_us / (hosts as u64 + 1)));
    let mut at = rng.below(every);
    for host in 0..hosts {
        let down = rng.span(&(1_000..=100_000));
        schedule.push((Time(at), Fault::Crash { host, down }));
        at += every;
    }
}
