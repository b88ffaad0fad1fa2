//! The bottleneck of a run: the resource that is nearest to its limit.

use crate::station::Station;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Resource of a validator or its host that has a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// All cores of a host together.
    #[default]
    Processor,
    /// The threads of one station, which are fewer than the cores.
    Thread(Station),
    /// What a host sends.
    Uplink,
    /// What a host's disk is given.
    Disk,
    /// Window of one connection of TCP, between hosts: the share is of time that something waited
    /// for it.
    Window,
}

/// Resource that is nearest to its limit, at the validator where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bottleneck {
    /// Resource of the validator, or the host, where it is busiest.
    pub resource: Resource,
    /// Share of its time that it is at work, 0 to 1; more for a disk that is given more than it can
    /// write, and a window that what was sent already has yet to wait for.
    pub share: f64,
}

impl Bottleneck {
    /// The busiest of the stations' threads and of resources of hosts. `threads`: core time a
    /// second of each station at the validator where it is busiest, in the order of
    /// [`Station::ALL`].
    pub(crate) fn of(threads: impl Iterator<Item = f64>, hosts: [(Resource, f64); 4]) -> Self {
        let threads = Station::ALL.into_iter().zip(threads).map(|(station, busiest)| {
            (Resource::Thread(station), busiest / station.servers() as f64)
        });
        let all = hosts.into_iter().chain(threads);
        let most = all.max_by(|one, other| one.1.total_cmp(&other.1));
        most.map_or_else(Self::default, |(resource, share)| Self { resource, share })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor => f.write_str("processor"),
            Self::Thread(station) => write!(f, "{} thread", station.name()),
            Self::Uplink => f.write_str("uplink"),
            Self::Disk => f.write_str("disk"),
            Self::Window => f.write_str("window of a connection"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bottleneck, Resource};
    use crate::station::Station;

    #[test]
    fn the_busiest_resource_is_the_bottleneck_by_its_threads() {
        // Two threads of the network, one of the machine.
        let used = Station::ALL.map(|station| match station {
            Station::Net => 1.2,
            Station::Machine => 0.7,
            _ => 0.1,
        });
        let of = |uplink: f64| {
            let hosts = [
                (Resource::Processor, 0.5),
                (Resource::Uplink, uplink),
                (Resource::Disk, 0.0),
                (Resource::Window, 0.1),
            ];
            Bottleneck::of(used.into_iter(), hosts)
        };
        let machine = Resource::Thread(Station::Machine);
        assert_eq!(of(0.6), Bottleneck { resource: machine, share: 0.7 });
        assert_eq!(of(0.9), Bottleneck { resource: Resource::Uplink, share: 0.9 });
    }
}
