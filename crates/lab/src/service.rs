//! The services that the binary can replicate, by name.

use quorate_ledger::{Noop, OrderedLog};
use quorate_types::Service;
use std::fmt;
use std::str::FromStr;

/// A service by the name that it has in configuration files; `log` is short for `ordered-log`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceKind {
    /// An ordered log: every operation's result is its position.
    #[default]
    Log,
    /// Nothing is kept but a count: the engine alone.
    Noop,
}

/// A name that no service has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no service '{0}': use 'log' or 'noop'")]
pub struct UnknownService(String);

impl ServiceKind {
    /// A new service of this kind.
    #[must_use]
    pub fn build(self) -> Box<dyn Service> {
        match self {
            Self::Log => Box::new(OrderedLog),
            Self::Noop => Box::new(Noop),
        }
    }
}

impl FromStr for ServiceKind {
    type Err = UnknownService;

    fn from_str(name: &str) -> Result<Self, UnknownService> {
        match name {
            "log" | OrderedLog::NAME => Ok(Self::Log),
            Noop::NAME => Ok(Self::Noop),
            _ => Err(UnknownService(name.to_owned())),
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => OrderedLog::NAME,
            Self::Noop => Noop::NAME,
        })
    }
}
