//! Clients that a member lets in.
//!
//! Members agree on the policy ([`ClientPolicy`]). Where they let in listed clients alone, each has
//! the list in a file of its own, read at the start and again when the process gets SIGHUP: who
//! was struck off is cut. A session is let in by its own key, or by a listed client that vouches
//! for it ([`Voucher`]); members vouch for the gateways beside them, and need not be listed.
//!
//! **A door, not a rule of the order.** It keeps strangers from correct members. A member that lies
//! can order what it likes, a stranger's requests too: what must hold against liars belongs into
//! the service, which is asked again when an operation is executed.

use crate::config::read_toml;
use crate::{ClientPolicy, ConfigError, NodeConfig};
use quorate_crypto::IdentityKey;
use quorate_types::{ClientId, Committee, NetworkId, Voucher};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// A list of clients, as its file states it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientsFile {
    /// The clients, in any order.
    #[serde(default)]
    pub clients: Vec<ListedClient>,
}

/// A client that is let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListedClient {
    /// Identity key, 64 hexadecimal digits.
    pub key: String,
    /// A name for people; nothing depends on it.
    #[serde(default)]
    pub name: String,
}

impl ClientsFile {
    /// Reads the keys of a file.
    ///
    /// # Errors
    /// When it cannot be read, or something in it is no key.
    pub fn load(path: &Path) -> Result<BTreeSet<IdentityKey>, ConfigError> {
        let file: Self = read_toml("list of clients", path)?;
        let parse = |client: &ListedClient| {
            client.key.parse().map_err(|_| ConfigError::Field {
                path: path.to_owned(),
                field: "key",
                value: format!("\"{}\"", client.key),
                rule: "it is an identity key of 64 hexadecimal digits: `quorate keys show` prints it",
            })
        };
        file.clients.iter().map(parse).collect()
    }
}

/// Door of the peer port for clients: whom it lets in.
#[derive(Debug)]
pub struct ClientDoor {
    /// Network of the vouchers, and the keys that need no list; `None` where everybody is let in.
    listed: Option<Listed>,
}

#[derive(Debug)]
struct Listed {
    network: NetworkId,
    members: BTreeSet<IdentityKey>,
    path: PathBuf,
    clients: watch::Sender<Arc<BTreeSet<IdentityKey>>>,
}

impl ClientDoor {
    /// A door that lets everybody in.
    #[must_use]
    pub fn open() -> Self {
        Self { listed: None }
    }

    /// The door that a configuration asks for.
    ///
    /// # Errors
    /// When the list of clients cannot be read.
    pub fn of(config: &NodeConfig, committee: &Committee) -> Result<Self, ConfigError> {
        if config.clients != ClientPolicy::Listed {
            return Ok(Self::open());
        }
        // There is one once the configuration was loaded.
        let path = config.clients_file.clone().unwrap_or_else(|| "clients.toml".into());
        let clients = watch::Sender::new(Arc::new(ClientsFile::load(&path)?));
        let keys = committee.members().filter_map(|member| committee.identity(member));
        let (network, members) = (committee.network(), keys.copied().collect());
        Ok(Self { listed: Some(Listed { network, members, path, clients }) })
    }

    /// Returns `true` if there is a list.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// Reads the list again; the number of clients in it, 0 where there is none.
    ///
    /// # Errors
    /// When the list cannot be read: the former one stays in force.
    pub fn reload(&self) -> Result<usize, ConfigError> {
        let Some(listed) = &self.listed else { return Ok(0) };
        let clients = ClientsFile::load(&listed.path)?;
        let count = clients.len();
        listed.clients.send_replace(Arc::new(clients));
        Ok(count)
    }

    /// Key by which a session is let in: its own, or that of a client that vouches for it. `None`:
    /// it is not.
    #[must_use]
    pub fn admits(&self, session: ClientId, voucher: Option<&Voucher>) -> Option<IdentityKey> {
        let Some(listed) = &self.listed else { return Some(session.0) };
        let vouching = voucher
            .filter(|voucher| listed.has(&voucher.client))
            .filter(|voucher| voucher.check(listed.network, &session.0).is_ok());
        let by = vouching.map_or(session.0, |voucher| voucher.client);
        listed.has(&by).then_some(by)
    }

    /// Waits until a client that was let in by this key is struck off; for ever where there is no
    /// list.
    pub async fn struck_off(&self, by: IdentityKey) {
        let Some(listed) = &self.listed else { return std::future::pending().await };
        let mut clients = listed.clients.subscribe();
        // The sender lives as long as this does: the wait ends when the key is gone.
        let is_gone = |clients: &Arc<BTreeSet<IdentityKey>>| {
            !listed.members.contains(&by) && !clients.contains(&by)
        };
        let _ = clients.wait_for(is_gone).await;
    }
}

impl Listed {
    fn has(&self, key: &IdentityKey) -> bool {
        self.members.contains(key) || self.clients.borrow().contains(key)
    }
}

#[cfg(test)]
mod tests;
