//! Policy of a committee about clients: whose requests and queries its members take.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Clients whose requests and queries a member takes. Every member says the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientPolicy {
    /// Any client that has the committee file.
    #[default]
    Open,
    /// Clients in a file that each member has.
    Listed,
    /// Any client, for what the service admits
    /// ([`Admission`](quorate_types::service::Admission)).
    Service,
}

impl ClientPolicy {
    /// One line that says who may write and read.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Open => "any client may write and read",
            Self::Listed => "listed clients alone may write and read",
            Self::Service => "any client may write and read what the service admits",
        }
    }
}

impl fmt::Display for ClientPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Listed => "listed",
            Self::Service => "service",
        })
    }
}

impl FromStr for ClientPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "open" => Ok(Self::Open),
            "listed" => Ok(Self::Listed),
            "service" => Ok(Self::Service),
            other => Err(format!("'{other}' is none of 'open', 'listed' and 'service'")),
        }
    }
}
