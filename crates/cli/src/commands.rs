//! One module a command: its options, and what it does.

pub(crate) mod bench;
pub(crate) mod calibrate;
mod client_files;
pub(crate) mod committee;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod estimate;
pub(crate) mod evidence;
pub(crate) mod evm_tests;
pub(crate) mod keys;
pub(crate) mod kv;
#[cfg(feature = "liar")]
mod liar;
pub(crate) mod load;
mod load_options;
pub(crate) mod man;
mod part_files;
pub(crate) mod pay;
mod proof_place;
pub(crate) mod receipt;
pub(crate) mod report;
mod report_options;
pub(crate) mod reproduce;
pub(crate) mod run;
#[cfg(feature = "lab")]
pub(crate) mod sim;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod testnet;
pub(crate) mod token;
mod token_file;
pub(crate) mod validate;
mod wan;

use quorate_crypto::SchemeKind;
use std::io;
use std::net::ToSocketAddrs as _;

/// Tells whether only this machine reaches what listens on `address:port`.
///
/// # Errors
/// When the address is none.
pub(crate) fn is_loopback(address: &str) -> io::Result<bool> {
    Ok(address.to_socket_addrs()?.all(|address| address.ip().is_loopback()))
}

/// A scheme that a committee may vote with. The simulator's stand-in, which anyone can forge, is
/// not one of them, although a laboratory's build brings it along with the simulator.
pub(crate) fn scheme(name: &str) -> Result<SchemeKind, String> {
    match name {
        "ed25519" => Ok(SchemeKind::Ed25519),
        "bls" => Ok(SchemeKind::Bls),
        _ => Err("there are ed25519 and bls".to_owned()),
    }
}

/// As [`scheme`], with the one whose keys somebody deals to a whole committee.
pub(crate) fn committee_scheme(name: &str) -> Result<SchemeKind, String> {
    match name {
        "bls-threshold" => Ok(SchemeKind::BlsThreshold),
        _ => scheme(name).map_err(|_| "there are ed25519, bls and bls-threshold".to_owned()),
    }
}
