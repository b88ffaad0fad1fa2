//! The services that the binary can replicate, by name.

use quorate_ledger::evm::{self, Evm};
use quorate_ledger::kv::Kv;
use quorate_ledger::payments::ReleaseService;
use quorate_ledger::{Noop, OrderedLog};
use quorate_payments::{Network, NetworkError, NetworkFile};
use quorate_types::{Service, Versions};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

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
    /// Releases of a payment network's locked coins.
    Payments,
}

/// What a service begins with, if not with nothing.
#[derive(Clone, Debug)]
pub enum Genesis {
    /// Chain and accounts of the EVM ledger.
    Evm(evm::Genesis),
    /// Payment network whose coins are released.
    Payments(Arc<Network>),
}

/// Error in a service's genesis file.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// The service needs one, and none was named.
    #[error("the service '{0}' needs a genesis file: name it as 'genesis'")]
    Missing(ServiceKind),
    /// The service begins with nothing.
    #[error("the service '{0}' has no genesis file")]
    Unwanted(ServiceKind),
    /// It is no genesis of the EVM ledger, or cannot be read.
    #[error(transparent)]
    Evm(#[from] evm::GenesisError),
    /// It is no payment network's file.
    #[error("this is no payment network's file: {0}")]
    Form(#[from] toml::de::Error),
    /// The payment network is refused.
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// A name that no service has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no service '{0}': use 'evm', 'kv', 'log', 'noop' or 'payments'")]
pub struct UnknownService(String);

impl ServiceKind {
    /// A new service of this kind.
    ///
    /// # Errors
    /// When it has no genesis that it needs, or one that is another's.
    pub fn build(self, genesis: Option<Genesis>) -> Result<Box<dyn Service>, GenesisError> {
        Ok(match (self, genesis) {
            (Self::Log, None) => Box::new(OrderedLog),
            (Self::Noop, None) => Box::new(Noop),
            (Self::Kv, None) => Box::new(Kv::default()),
            (Self::Evm, Some(Genesis::Evm(genesis))) => Box::new(Evm::new(genesis)),
            (Self::Payments, Some(Genesis::Payments(network))) => {
                Box::new(ReleaseService::new(network))
            }
            (Self::Evm | Self::Payments, _) => return Err(GenesisError::Missing(self)),
            (_, Some(_)) => return Err(GenesisError::Unwanted(self)),
        })
    }

    /// Reads the genesis that such a service begins with, and the text that members agree on.
    ///
    /// # Errors
    /// When the file cannot be read or is refused, or there is to be none.
    pub fn read_genesis(self, path: &Path) -> Result<(String, Genesis), GenesisError> {
        if !self.has_genesis() {
            return Err(GenesisError::Unwanted(self));
        }
        let text = evm::Genesis::read(path)?;
        let genesis = match self {
            Self::Payments => {
                let file: NetworkFile = toml::from_str(&text)?;
                Genesis::Payments(Arc::new(Network::load(&file)?))
            }
            _ => Genesis::Evm(evm::Genesis::parse(&text)?),
        };
        Ok((text, genesis))
    }

    /// Tells whether members agree on a file that the service begins with.
    #[must_use]
    pub fn has_genesis(self) -> bool {
        matches!(self, Self::Evm | Self::Payments)
    }

    /// Versions of its rules that the program has.
    #[must_use]
    pub fn versions(self) -> Versions {
        match self {
            Self::Log => OrderedLog::VERSIONS,
            Self::Noop => Noop::VERSIONS,
            Self::Kv => Kv::VERSIONS,
            Self::Evm => Evm::VERSIONS,
            Self::Payments => ReleaseService::VERSIONS,
        }
    }

    /// Default of [`Settings::heartbeat_ms`](quorate_engine::Settings::heartbeat_ms) in a new
    /// network: clients of Ethereum's wait for blocks.
    #[must_use]
    pub fn heartbeat_ms(self) -> u64 {
        if self == Self::Evm { 1_000 } else { 0 }
    }

    /// Default of answering its clients with certificates: where they can prove something with
    /// them.
    #[must_use]
    pub fn is_proven(self) -> bool {
        matches!(self, Self::Kv | Self::Evm | Self::Payments)
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
            ReleaseService::NAME => Ok(Self::Payments),
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
            Self::Payments => ReleaseService::NAME,
        })
    }
}
