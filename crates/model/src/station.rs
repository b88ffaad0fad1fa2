//! Stations: the threads of a validator by what they do, and the client beside it.

use serde::{Deserialize, Serialize};

/// A kind of thread of a validator, modelled as a queue with one or two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Station {
    /// Encryption and sockets: two threads.
    Net,
    /// Checks of votes, proposals and certificates; combining shares.
    Votes,
    /// Checks of bodies and requests: two threads.
    Checks,
    /// The replica's own thread.
    Machine,
    /// Execution of the service.
    Execution,
    /// Writes of the log, its syncs apart.
    Log,
    /// The client beside the validator: its sessions, its end of the channels.
    Client,
}

impl Station {
    /// All stations, in the order of a request's way.
    pub const ALL: [Self; 7] = [
        Self::Client,
        Self::Net,
        Self::Checks,
        Self::Votes,
        Self::Machine,
        Self::Log,
        Self::Execution,
    ];

    /// Name in reports and price lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Net => "net",
            Self::Votes => "votes",
            Self::Checks => "checks",
            Self::Machine => "machine",
            Self::Execution => "execution",
            Self::Log => "log",
            Self::Client => "client",
        }
    }

    /// Servers: as many as a validator has threads for it by default.
    pub(crate) fn servers(self) -> usize {
        match self {
            Self::Net | Self::Checks => 2,
            _ => 1,
        }
    }
}
