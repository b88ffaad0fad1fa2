//! The services that the binary can replicate, by name.

use quorate_ledger::evm::{Evm, Genesis};
use quorate_ledger::kv::Kv;
use quorate_ledger::{Noop, OrderedLog};
use quorate_types::{Service, Versions};
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
    /// Keys and values whose state is proven to clients.
    Kv,
    /// Ethereum's machine and accounts.
    Evm,
}

/// A ledger was to be built without what it begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the service 'evm' needs a genesis file: name it as 'genesis'")]
pub struct NoGenesis;

/// A name that no service has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no service '{0}': use 'evm', 'kv', 'log' or 'noop'")]
pub struct UnknownService(String);

impl ServiceKind {
    /// A new service of this kind; of all, the EVM ledger alone needs a genesis.
    ///
    /// # Errors
    /// When it has none.
    pub fn build(self, genesis: Option<Genesis>) -> Result<Box<dyn Service>, NoGenesis> {
        Ok(match self {
            Self::Log => Box::new(OrderedLog),
            Self::Noop => Box::new(Noop),
            Self::Kv => Box::new(Kv::default()),
            Self::Evm => Box::new(Evm::new(genesis.ok_or(NoGenesis)?)),
        })
    }

    /// Versions of its rules that the program has.
    #[must_use]
    pub fn versions(self) -> Versions {
        match self {
            Self::Log => OrderedLog::VERSIONS,
            Self::Noop => Noop::VERSIONS,
            Self::Kv => Kv::VERSIONS,
            Self::Evm => Evm::VERSIONS,
        }
    }

    /// Default of answering its clients with certificates: where they can prove something with
    /// them.
    #[must_use]
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Kv | Self::Evm)
    }
}

impl FromStr for ServiceKind {
    type Err = UnknownService;

    fn from_str(name: &str) -> Result<Self, UnknownService> {
        match name {
            "log" | OrderedLog::NAME => Ok(Self::Log),
            Noop::NAME => Ok(Self::Noop),
            Kv::NAME => Ok(Self::Kv),
            Evm::NAME => Ok(Self::Evm),
            _ => Err(UnknownService(name.to_owned())),
        }
    }
}

impl fmt::Display for ServiceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Log => OrderedLog::NAME,
            Self::Noop => Noop::NAME,
            Self::Kv => Kv::NAME,
            Self::Evm => Evm::NAME,
        })
    }
}
