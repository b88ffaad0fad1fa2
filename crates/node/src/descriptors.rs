//! Descriptors of a validator: how many the system gives it, and who may have how many of them.
//!
//! ```text
//! limit (RLIMIT_NOFILE) =
//!     the process's own work and its disk       RESERVE, and 1 a full segment of the log
//!   + connections between members               18 for each other member: 6, and 2 for each of
//!                                                6 that it may have relayed
//!   + learners, newcomers that a change names   1 each, of newcomers as many as there are members
//!   + a gateway's own client                    1 for each member
//!   + what strangers may take                   handshakes, status, clients, gateway
//! ```
//!
//! Strangers share what is left, whatever the configuration asks for, so that no number of
//! connections keeps the log from a file.

use crate::NodeConfig;
use crate::connections::ENDING_MAX;
use crate::payments::AuthorityConfig;
use crate::transport::relay::RELAYED_MAX;
use crate::transport::{Limits, MEMBER_LANES, learners_max};
use quorate_storage::LogConfig;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::Serialize;
use std::fmt;

/// Descriptors for the process itself, besides the segments of its log that are full: segments in
/// use and made ready, snapshots, state, listeners, event queues, and what a status page looks at.
const RESERVE: usize = 160;

/// Files of spent inputs that an authority has open: one for two million, twice while they are
/// merged.
const SPENT_FILES: usize = 256;

/// Doors that may have [`ENDING_MAX`] connections more for a moment: peers, status, gateway.
const DOORS: usize = 3;

/// Fewest descriptors that strangers share: with less, a validator could serve nobody.
const STRANGERS_MIN: usize = 128;

/// Most connections to the status pages.
const STATUS_MAX: usize = 64;

/// Most connections to a gateway.
pub const GATEWAY_MAX: usize = 1_024;

/// Raises this process's limit of open files to the most that it may have, and returns it.
pub fn raise_limit() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
        if let Err(error) = raised {
            tracing::warn!(%error, "cannot raise the limit of open files");
        }
    }
    limit()
}

/// The limit of open files as it is.
#[must_use]
pub fn limit() -> usize {
    as_count(getrlimit(Resource::Nofile).current)
}

/// The limit that [`raise_limit`] comes to.
#[must_use]
pub fn limit_at_most() -> usize {
    as_count(getrlimit(Resource::Nofile).maximum)
}

/// An unlimited process has more than can be counted.
fn as_count(limit: Option<u64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Connections that a process would serve if descriptors were no matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Descriptors that are not for strangers.
    pub own: usize,
    /// Full segments of its log, each of which is open to be read back.
    pub segments: usize,
    /// Connections that have not proven a key.
    pub handshakes: usize,
    /// Connections to the status pages.
    pub status: usize,
    /// Clients of a validator, or payers of an authority.
    pub clients: usize,
    /// Connections to the gateway; 0 where there is none.
    pub gateway: usize,
}

impl Demand {
    /// What a validator of `members` members asks for with this configuration.
    #[must_use]
    pub fn of_validator(config: &NodeConfig, members: usize) -> Self {
        let others = members.saturating_sub(1);
        let client = if config.gateway.is_some() { members } else { 0 };
        let each = 2 * MEMBER_LANES.len() + 2 * RELAYED_MAX;
        let own = each * others + learners_max(config.learners.len(), members) + client;
        Self {
            own: RESERVE + DOORS * ENDING_MAX + own,
            segments: segments(config.retention_bytes),
            handshakes: Limits::default().handshakes_max,
            status: STATUS_MAX,
            clients: config.clients_max,
            gateway: if config.gateway.is_some() { GATEWAY_MAX } else { 0 },
        }
    }

    /// What an authority of payments asks for with this configuration, which has `links` to a
    /// committee.
    #[must_use]
    pub fn of_authority(config: &AuthorityConfig, links: usize) -> Self {
        Self {
            own: RESERVE + SPENT_FILES + DOORS * ENDING_MAX + links,
            segments: segments(config.evidence_bytes),
            handshakes: Limits::default().handshakes_max,
            status: STATUS_MAX,
            clients: config.payers_max,
            gateway: 0,
        }
    }

    /// What a process asks for that serves HTTP alone, and dials `own` others.
    #[must_use]
    pub fn of_gateway(own: usize) -> Self {
        let own = RESERVE + DOORS * ENDING_MAX + own;
        Self { own, segments: 0, handshakes: 0, status: 0, clients: 0, gateway: GATEWAY_MAX }
    }

    /// Descriptors that fulfil all of it.
    #[must_use]
    pub fn total(&self) -> usize {
        self.own + self.segments + self.handshakes + self.status + self.clients + self.gateway
    }
}

/// Segments that hold so many bytes of a log: each is open, to be read back.
fn segments(bytes: u64) -> usize {
    let segments = bytes.div_ceil(LogConfig::default().segment_bytes);
    usize::try_from(segments).unwrap_or(usize::MAX / 2)
}

/// Descriptors of a process, divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Descriptors {
    /// Most files and connections that the process may have open.
    pub limit: usize,
    /// Kept for its disk, its own work, and connections with members.
    pub own: usize,
    /// Most connections that have not proven a key.
    pub handshakes: usize,
    /// Most connections to the status pages.
    pub status: usize,
    /// Most clients, or payers.
    pub clients: usize,
    /// Most connections to the gateway.
    pub gateway: usize,
}

/// Error of a limit that leaves too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this process may have {limit} files and connections open, and needs {least} at least: raise \
     the limit (`ulimit -Hn`, LimitNOFILE= of systemd)"
)]
pub struct TooFewDescriptors {
    /// Most files and connections that the process may have open.
    pub limit: usize,
    /// Least limit that is enough.
    pub least: usize,
}

impl Descriptors {
    /// Divides `limit`: segments get up to a quarter, handshakes and status pages up to an eighth
    /// each of what strangers share, clients and the gateway the rest, in proportion to what they
    /// ask for.
    ///
    /// # Errors
    /// When strangers would share fewer than 128.
    pub fn divide(limit: usize, demand: &Demand) -> Result<Self, TooFewDescriptors> {
        let own = demand.own + demand.segments.min(limit / 4);
        let least = own + STRANGERS_MIN;
        if limit < least {
            return Err(TooFewDescriptors { limit, least });
        }
        let shared = limit - own;
        let handshakes = demand.handshakes.min(shared / 8);
        let status = demand.status.min(shared / 8);
        let rest = shared - handshakes - status;
        let asked = demand.clients + demand.gateway;
        let part = |of: usize| if asked <= rest { of } else { rest * of / asked };
        let (clients, gateway) = (part(demand.clients), part(demand.gateway));
        Ok(Self { limit, own, handshakes, status, clients, gateway })
    }

    /// Limits of the peer port as far as there are descriptors, with as many clients as they leave.
    #[must_use]
    pub fn bound(&self, limits: Limits) -> Limits {
        let handshakes_max = limits.handshakes_max.min(self.handshakes);
        Limits { handshakes_max, clients_max: self.clients, ..limits }
    }
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, own, handshakes, status, clients, gateway } = self;
        write!(
            f,
            "{limit}: {own} for disk and members, {clients} clients, {handshakes} handshakes, \
             {status} on the status port"
        )?;
        if *gateway > 0 { write!(f, ", {gateway} on the gateway") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, Descriptors, TooFewDescriptors};

    fn demand() -> Demand {
        Demand {
            own: 100,
            segments: 64,
            handshakes: 128,
            status: 64,
            clients: 1_024,
            gateway: 1_024,
        }
    }

    #[test]
    fn all_get_what_they_ask_for_where_there_is_enough() {
        let demand = demand();
        let all = Descriptors::divide(demand.total(), &demand).expect("enough");
        assert_eq!((all.handshakes, all.status), (128, 64));
        assert_eq!((all.clients, all.gateway), (1_024, 1_024));
    }

    #[test]
    fn the_limit_is_never_exceeded_and_the_disk_keeps_its_part() {
        for limit in 300..3_000 {
            let all = Descriptors::divide(limit, &demand()).expect("enough");
            let strangers = all.handshakes + all.status + all.clients + all.gateway;
            assert!(all.own >= 164, "{all}");
            assert!(all.own + strangers <= limit, "{all}");
            let least = [all.handshakes, all.status, all.clients, all.gateway].into_iter().min();
            assert!(least >= Some(16), "{all}");
        }
    }

    #[test]
    fn a_limit_that_leaves_too_little_is_refused() {
        let refused = Descriptors::divide(290, &demand());
        assert_eq!(refused, Err(TooFewDescriptors { limit: 290, least: 292 }));
        let endless = Demand { segments: usize::MAX / 2, ..demand() };
        assert!(Descriptors::divide(1_024, &endless).is_ok(), "whatever the log keeps");
    }
}
