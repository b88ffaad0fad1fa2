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

impl Fault {
    /// The one host that it befalls, if it is about one.
    #[must_use]
    pub fn host(&self) -> Option<usize> {
        match self {
            Self::Crash { host, .. }
            | Self::WipeBodies { host, .. }
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
            Self::PowerCut { .. } => "power cuts",
            Self::Pause { .. } => "pauses",
            Self::SlowDisk { .. } => "slow disks",
        }
    }

    /// Whether its host loses what it promised to keep: it counts as faulty.
    #[must_use]
    pub fn loses_promises(&self) -> bool {
        matches!(self, Self::WipeBodies { .. })
    }

    /// How long it lasts.
    pub(crate) fn span_mut(&mut self) -> Option<&mut Duration> {
        match self {
            Self::Partition { lasts, .. }
            | Self::Clog { lasts, .. }
            | Self::Pause { lasts, .. }
            | Self::SlowDisk { lasts, .. } => Some(lasts),
            Self::Crash { down, .. } | Self::WipeBodies { down, .. } | Self::PowerCut { down } => {
                Some(down)
            }
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
