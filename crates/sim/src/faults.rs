//! What goes wrong and when, drawn for a scenario.

use crate::dice::Dice;
use crate::network::{Shape, Side};
use crate::scenario::text;
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
        #[serde(with = "text::side")]
        side: Side,
        /// In which directions.
        shape: Shape,
        /// For how long.
        #[serde(with = "text::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// A link holds everything back.
    Clog {
        /// From this endpoint.
        from: usize,
        /// To this one.
        to: usize,
        /// For how long.
        #[serde(with = "text::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// A replica loses power and what was not synced.
    Crash {
        /// Which host.
        host: usize,
        /// How long until it starts again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica loses power, and the files of its bodies; its promises and its state are there.
    WipeBodies {
        /// Which host.
        host: usize,
        /// How long until it starts again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica loses power and everything on its disk. From then on it follows and never signs:
    /// it counts as faulty.
    Wipe {
        /// Which host.
        host: usize,
        /// How long until it starts again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica's disk fails; it stops, and starts again with a disk that works.
    DiskFails {
        /// Which host.
        host: usize,
        /// In which way.
        how: DiskFailure,
        /// How long until it starts again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica's wall clock is set, and the replica starts again: what it proposes from then on is
    /// stamped by the new time.
    ClockStep {
        /// Which host.
        host: usize,
        /// Milliseconds forwards, or backwards.
        by_ms: i64,
        /// How long until it starts again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// All replicas lose power at once.
    PowerCut {
        /// How long until they start again.
        #[serde(with = "text::micros", rename = "down_us")]
        down: Duration,
    },
    /// A replica does nothing at all, and goes on afterwards as if no time had passed.
    Pause {
        /// Which host.
        host: usize,
        /// For how long.
        #[serde(with = "text::micros", rename = "lasts_us")]
        lasts: Duration,
    },
    /// Syncs of a replica's disk take this long.
    SlowDisk {
        /// Which host.
        host: usize,
        /// Microseconds of a sync.
        sync_us: u64,
        /// For how long.
        #[serde(with = "text::micros", rename = "lasts_us")]
        lasts: Duration,
    },
}

/// How a disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskFailure {
    /// Nothing more fits.
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
            | Self::DiskFails { host, .. }
            | Self::ClockStep { host, .. }
            | Self::Pause { host, .. }
            | Self::SlowDisk { host, .. } => Some(*host),
            Self::Partition { .. } | Self::Clog { .. } | Self::PowerCut { .. } => None,
        }
    }
}

impl Fault {
    /// What several of its kind are called.
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
            Self::DiskFails { how: DiskFailure::Full, .. } => "full disks",
            Self::DiskFails { how: DiskFailure::Write | DiskFailure::Torn, .. } => "failed writes",
            Self::DiskFails { how: DiskFailure::Sync, .. } => "failed syncs",
            Self::ClockStep { .. } => "clock steps",
            Self::PowerCut { .. } => "power cuts",
            Self::Pause { .. } => "pauses",
            Self::SlowDisk { .. } => "slow disks",
        }
    }

    /// Whether its host loses what it promised to keep: it counts as faulty.
    #[must_use]
    pub fn loses_promises(&self) -> bool {
        matches!(self, Self::WipeBodies { .. } | Self::Wipe { .. })
    }

    /// How long it lasts.
    pub(crate) fn span_mut(&mut self) -> Option<&mut Duration> {
        match self {
            Self::Partition { lasts, .. }
            | Self::Clog { lasts, .. }
            | Self::Pause { lasts, .. }
            | Self::SlowDisk { lasts, .. } => Some(lasts),
            Self::Crash { down, .. }
            | Self::WipeBodies { down, .. }
            | Self::Wipe { down, .. }
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
pub fn draw(dice: &mut Dice, hosts: usize, endpoints: usize, phase: Duration) -> Schedule {
    let mut schedule = Vec::new();
    let phase_us = u64::try_from(phase.as_micros()).expect("a phase is seconds");
    draw_partitions(dice, &mut schedule, endpoints, phase_us);
    draw_clogs(dice, &mut schedule, endpoints, phase_us);
    draw_crashes(dice, &mut schedule, hosts, phase_us);
    draw_halts(dice, &mut schedule, hosts, phase_us);
    draw_disk_failures(dice, &mut schedule, hosts, phase_us);
    draw_clock_steps(dice, &mut schedule, hosts, phase_us);
    if dice.one_in(4) {
        draw_rolling_restart(dice, &mut schedule, hosts, phase_us);
    }
    schedule.sort_by_key(|(at, _)| *at);
    schedule
}

fn draw_partitions(dice: &mut Dice, schedule: &mut Schedule, endpoints: usize, phase_us: u64) {
    for _ in 0..dice.perhaps(&(1..=4)) {
        let at = Time(dice.below(phase_us));
        let side = dice.bits() & (u64::MAX >> (64 - endpoints));
        let shape = match dice.below(3) {
            0 => Shape::Symmetric,
            1 => Shape::OneWay,
            _ => Shape::Bridge(dice.index(endpoints)),
        };
        let lasts = dice.span(&(50_000..=1_500_000));
        schedule.push((at, Fault::Partition { side, shape, lasts }));
    }
}

fn draw_clogs(dice: &mut Dice, schedule: &mut Schedule, endpoints: usize, phase_us: u64) {
    for _ in 0..dice.perhaps(&(1..=6)) {
        let at = Time(dice.below(phase_us));
        let (from, to) = (dice.index(endpoints), dice.index(endpoints));
        schedule.push((at, Fault::Clog { from, to, lasts: dice.span(&(10_000..=5_000_000)) }));
    }
}

/// Mostly one after the other, so that no more are down than the committee tolerates; sometimes as
/// they come; sometimes everybody at once.
fn draw_crashes(dice: &mut Dice, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    let down_us: RangeInclusive<u64> = 1_000..=800_000;
    let rolling = !dice.one_in(4);
    let mut free_from = 0;
    for _ in 0..dice.perhaps(&(1..=6)) {
        let at = if rolling { free_from + dice.below(phase_us / 3) } else { dice.below(phase_us) };
        let down = dice.span(&down_us);
        if at >= phase_us {
            break;
        }
        free_from = at + u64::try_from(down.as_micros()).expect("a second");
        schedule.push((Time(at), Fault::Crash { host: dice.index(hosts), down }));
    }
    if dice.one_in(6) {
        let at = Time(dice.below(phase_us));
        schedule.push((at, Fault::PowerCut { down: dice.span(&down_us) }));
    }
}

fn draw_halts(dice: &mut Dice, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    for _ in 0..dice.perhaps(&(1..=4)) {
        let at = Time(dice.below(phase_us));
        let lasts = dice.span(&(20_000..=1_000_000));
        schedule.push((at, Fault::Pause { host: dice.index(hosts), lasts }));
    }
    for _ in 0..dice.perhaps(&(1..=4)) {
        let at = Time(dice.below(phase_us));
        let host = dice.index(hosts);
        let sync_us = dice.between(&(5_000..=1_000_000));
        let lasts = dice.span(&(100_000..=2_000_000));
        schedule.push((at, Fault::SlowDisk { host, sync_us, lasts }));
    }
}

fn draw_disk_failures(dice: &mut Dice, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    const ALL: [DiskFailure; 4] =
        [DiskFailure::Full, DiskFailure::Write, DiskFailure::Torn, DiskFailure::Sync];
    for _ in 0..dice.perhaps(&(1..=3)) {
        let at = Time(dice.below(phase_us));
        let (host, how) = (dice.index(hosts), *dice.choose(&ALL));
        let down = dice.span(&(10_000..=800_000));
        schedule.push((at, Fault::DiskFails { host, how, down }));
    }
}

/// Less than what a proposal's stamp may be ahead of its receiver's clock, together with what clocks
/// that run fast and slow come to.
fn draw_clock_steps(dice: &mut Dice, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    const STEP_MS_MAX: u64 = 20_000;
    for _ in 0..dice.perhaps(&(1..=2)) {
        let at = Time(dice.below(phase_us));
        let size = i64::try_from(dice.between(&(1..=STEP_MS_MAX))).expect("seconds");
        let by_ms = if dice.coin() { size } else { -size };
        let (host, down) = (dice.index(hosts), dice.span(&(1_000..=100_000)));
        schedule.push((at, Fault::ClockStep { host, by_ms, down }));
    }
}

/// One host after the other, each for a moment, as in an upgrade.
fn draw_rolling_restart(dice: &mut Dice, schedule: &mut Schedule, hosts: usize, phase_us: u64) {
    let every = dice.between(&(1..=phase_us / (hosts as u64 + 1)));
    let mut at = dice.below(every);
    for host in 0..hosts {
        let down = dice.span(&(1_000..=100_000));
        schedule.push((Time(at), Fault::Crash { host, down }));
        at += every;
    }
}
