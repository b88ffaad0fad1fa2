//! The library that knows tokio: hosts the pure machines in real validators and clients.
//!
//! Start with [`validator`]: it wires everything below into a running validator, and its
//! documentation draws the threads. [`client`] hosts client sessions for applications and load
//! generators. [`testnet`] writes a committee's files, [`config`] reads one validator's.
//!
//! What a machine is owed by its host is listed in [`quorate_types::machine`]; here it is kept by
//! [`quorate_engine::host`] and [`log`] (persist before you send), [`pool`] (checked before it is
//! seen), [`transport`] (lanes, authenticated) and [`machine`] (time, order).

mod bring_change;
mod certificates;
pub mod client;
mod client_policy;
pub mod clients;
mod clock;
pub mod config;
pub mod connections;
mod dashboard;
pub mod descriptors;
mod device;
pub mod durable;
pub mod epochs;
mod error;
pub mod evidence;
pub mod execution;
mod guard;
pub mod health;
mod held;
pub mod http;
pub mod http_access;
pub mod http_server;
pub mod http_tls;
pub mod keys;
#[cfg(feature = "liar")]
pub mod liar;
pub mod log;
pub mod machine;
mod marker;
pub mod metrics;
mod observer;
pub mod pages;
pub mod payments;
pub mod pool;
pub mod ports;
pub mod proof_file;
pub mod quotas;
pub mod reading;
mod receiving;
pub mod reload;
pub mod rescue;
mod room;
mod run_queue;
pub mod shown;
mod shutdown;
pub mod slots;
pub mod testnet;
mod threads;
pub mod tls;
pub mod transport;
pub mod validator;

pub use bring_change::{ChangeBrought, bring_change};
pub use client::{Client, Completion, NotTaken};
pub use client_policy::ClientPolicy;
pub use clients::{ClientDoor, ClientsFile, ListedClient};
pub use clock::unix_ms;
pub use config::{Archive, ConfigError, LogFormat, LogLevel, NodeConfig, UnknownArchive};
pub use epochs::Epochs;
pub use error::{NodeError, PassphraseFileError};
pub use held::hold;
pub use quorate_engine::{
    CallResult, ClientConfig, Completed, LearnerAddress, NoLearnerAddress, SessionSpec,
};
pub use reading::{Reading, ReadingError};
pub use shutdown::Shutdown;
pub use testnet::{
    ExistingKeys, ExistingKeysError, HostNames, Layout, NewLearner, Testnet, TestnetError,
    TestnetPlan,
};
pub use validator::{Ending, Validator, init_logging, run};
