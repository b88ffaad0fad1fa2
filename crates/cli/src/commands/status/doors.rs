//! Doors of validators' status: where they are, what they show, and what is shown to them.

use super::configs_in;
use crate::failure::Failure;
use clap::Args;
use quorate_lab::http::{Door, Trust};
use quorate_node::NodeConfig;
use quorate_node::http_access::{Access, Token};
use std::path::{Path, PathBuf};

/// Ways through the doors of validators' status.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Keys {
    /// Authorities that vouch for https addresses, in PEM; by default the system's, and for a
    /// configuration file the certificate that it names
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Token to show, as the first line of FILE; by default that which a configuration file names
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Keys {
    /// Doors at these addresses: `host:port`, `http://host:port` or `https://host:port`.
    pub(crate) fn doors_at(&self, addresses: &[String]) -> Result<Vec<Door>, Failure> {
        addresses.iter().map(|address| self.door_at(address)).collect()
    }

    /// The door at this address.
    pub(crate) fn door_at(&self, address: &str) -> Result<Door, Failure> {
        let door = match address.split_once("://") {
            Some(("https", address)) => {
                Door::encrypted(address.trim_end_matches('/'), self.trust()?)
            }
            Some(("http", address)) => Door::from(address.trim_end_matches('/')),
            None => Door::from(address),
            Some((scheme, _)) => {
                let reason = format!("'{scheme}' is none of 'http' and 'https', in {address}");
                return Err(Failure::usage(reason));
            }
        };
        self.with_token(door, None)
    }

    /// Doors of the validators whose configurations these are.
    pub(crate) fn doors_of(&self, configs: &[PathBuf]) -> Result<Vec<Door>, Failure> {
        configs.iter().map(|path| self.door_of(path)).collect()
    }

    /// Doors of a testnet's validators.
    pub(crate) fn doors_in(&self, folder: &Path) -> Result<Vec<Door>, Failure> {
        self.doors_of(&configs_in(folder)?)
    }

    fn door_of(&self, path: &Path) -> Result<Door, Failure> {
        let config = NodeConfig::load(path).map_err(Failure::usage)?;
        let door = match config.tls_files().filter(|_| config.http_tls) {
            None => Door::from(&*config.http),
            Some(_) if self.ca.is_some() => Door::encrypted(&*config.http, self.trust()?),
            Some(files) => {
                let trust = Trust::pinned(&files.cert).map_err(Failure::usage)?;
                Door::encrypted(&*config.http, trust)
            }
        };
        match config.http_access() {
            Access::Token(path) => self.with_token(door, Some(&path)),
            Access::Open | Access::Users(_) => self.with_token(door, None),
        }
    }

    fn trust(&self) -> Result<Trust, Failure> {
        let trust = match &self.ca {
            Some(path) => Trust::authorities(path),
            None => Trust::system(),
        };
        trust.map_err(Failure::usage)
    }

    fn with_token(&self, door: Door, usual: Option<&Path>) -> Result<Door, Failure> {
        let Some(path) = self.token_file.as_deref().or(usual) else { return Ok(door) };
        let token = Token::read_text(path).map_err(Failure::usage)?;
        door.with_token(&token).map_err(Failure::usage)
    }
}
