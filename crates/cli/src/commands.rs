//! One module a command: its options, and what it does.

pub(crate) mod bench;
pub(crate) mod keys;
pub(crate) mod run;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod testnet;
