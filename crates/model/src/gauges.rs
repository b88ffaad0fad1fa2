//! Gauges of what was used since the beginning of a scene, read twice: when the measurement window
//! begins, and when it ends.

use crate::hosts::Hosts;
use crate::links::Links;
use crate::nodes::Nodes;
use crate::outcome::Utilisation;
use crate::station::Station;
use crate::time::Nanos;
use quorate_engine::Status;
use quorate_types::Height;

/// Core time and wakes of a station.
type Used = (Nanos, u64);

/// Gauges of everything.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    /// By station, then by validator.
    stations: Vec<(Station, Vec<Used>)>,
    /// Core time by host.
    cores: Vec<Nanos>,
    /// Time that links were sending, by host.
    uplinks: Vec<Nanos>,
    /// Time that disks were occupied, by host.
    disks: Vec<Nanos>,
    /// Time that each connection waited for its window.
    windows: Vec<Nanos>,
    sent_bytes: u64,
    sent_frames: u64,
    pub(crate) fast: u64,
    pub(crate) slow: u64,
    pub(crate) views: u64,
    pub(crate) timeouts: u64,
    pub(crate) heights: u64,
    /// Bytes of the last certificate.
    pub(crate) certificate_bytes: u64,
}

impl Gauges {
    /// Reads all gauges; `executed` is the last height that was executed anywhere.
    pub(crate) fn read(
        now: Nanos,
        nodes: &Nodes,
        hosts: &Hosts,
        links: &Links,
        executed: Height,
    ) -> Self {
        let validators = &nodes.validators;
        let used = |one| validators.iter().map(|node| (node.used(one), node.wakes(one))).collect();
        let statuses: Vec<_> = validators.iter().map(|one| one.machine.status()).collect();
        let most = |of: &dyn Fn(&Status) -> u64| statuses.iter().map(of).max().unwrap_or_default();
        Self {
            stations: Station::ALL.map(|station| (station, used(station))).into(),
            cores: hosts.used(now).collect(),
            uplinks: links.uplinks(now).collect(),
            disks: hosts.disks().collect(),
            windows: links.waits().collect(),
            sent_bytes: validators.iter().map(|one| one.sent_bytes).sum(),
            sent_frames: validators.iter().map(|one| one.sent_frames).sum(),
            fast: most(&|status| status.fast_decisions),
            slow: most(&|status| status.slow_decisions),
            views: most(&|status| status.view.0),
            timeouts: most(&|status| status.view_changes),
            heights: executed.0,
            certificate_bytes: most(&|status| status.certificate_bytes),
        }
    }

    /// Utilisation of each station, in `span` since `before`.
    pub(crate) fn utilisation(&self, before: &Self, span: Nanos) -> Vec<Utilisation> {
        let each = self.stations.iter().enumerate();
        each.map(|(index, (station, now))| {
            let began = before.stations.get(index).map_or(&[][..], |(_, used)| used);
            let since = |member: usize| {
                let (core, wakes) = began.get(member).copied().unwrap_or_default();
                (now[member].0 - core, now[member].1 - wakes)
            };
            let (core, wakes, most) = (0..now.len())
                .map(since)
                .fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, one.0.max(sum.2)));
            let (span, all) = (span as f64, now.len() as f64);
            Utilisation {
                station: station.name().to_owned(),
                mean: core as f64 / span / all,
                busiest: most as f64 / span,
                wakes_per_second: wakes as f64 / all / (span / 1e9),
            }
        })
        .collect()
    }

    /// Core time of the busiest host since `before`.
    pub(crate) fn busiest_cores(&self, before: &Self) -> Nanos {
        busiest(&self.cores, &before.cores)
    }

    /// Time that the busiest uplink was sending since `before`.
    pub(crate) fn busiest_uplink(&self, before: &Self) -> Nanos {
        busiest(&self.uplinks, &before.uplinks)
    }

    /// Time that the busiest disk was occupied since `before`.
    pub(crate) fn busiest_disk(&self, before: &Self) -> Nanos {
        busiest(&self.disks, &before.disks)
    }

    /// Time that the connection whose window is the narrowest waited for it since `before`.
    pub(crate) fn longest_wait(&self, before: &Self) -> Nanos {
        busiest(&self.windows, &before.windows)
    }

    /// Bytes that all validators sent since `before`.
    pub(crate) fn sent_bytes(&self, before: &Self) -> u64 {
        self.sent_bytes - before.sent_bytes
    }

    /// Messages that all validators sent since `before`.
    pub(crate) fn sent_frames(&self, before: &Self) -> u64 {
        self.sent_frames - before.sent_frames
    }
}

fn busiest(now: &[Nanos], before: &[Nanos]) -> Nanos {
    let since = |(index, used): (usize, &Nanos)| used - before.get(index).copied().unwrap_or(0);
    now.iter().enumerate().map(since).max().unwrap_or_default()
}
