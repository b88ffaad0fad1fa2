//! What goes wrong and when, drawn for a scenario.

use crate::dice::Dice;
use crate::network::{Shape, Side};
use quorate_types::Time;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Something that goes wrong for a while. Hosts and endpoints by their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The network is cut.
    Partition {
        /// These from the rest.
        side: Side,
        /// In which directions.
        shape: Shape,
        /// For how long.
        lasts: Duration,
    },
    /// A link holds everything back.
    Clog {
        /// From this endpoint.
        from: usize,
        /// To this one.
        to: usize,
        /// For how long.
        lasts: Duration,
    },
    /// A replica loses power and what was not synced.
    Crash {
        /// Which host.
        host: usize,
        /// How long until it starts again.
        down: Duration,
    },
    /// A replica loses power, and the files of its bodies; its promises and its state are there.
    WipeBodies {
        /// Which host.
        host: usize,
        /// How long until it starts again.
        down: Duration,
    },
    /// All replicas lose power at once.
    PowerCut {
        /// How long until they start again.
        down: Duration,
    },
    /// A replica does nothing at all, and goes on afterwards as if no time had passed.
    Pause {
        /// Which host.
        host: usize,
        /// For how long.
        lasts: Duration,
    },
    /// Syncs of a replica's disk take this long.
    SlowDisk {
        /// Which host.
        host: usize,
        /// Microseconds of a sync.
        sync_us: u64,
        /// For how long.
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
        let side = dice.bits();
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
