//! Links over another member, where two members do not reach each other.
//!
//! ```text
//! A ──TLS, "relay to X"──▶ R ──TCP──▶ X
//! A ═════════ TLS as ever, end to end ═════════▶ X
//! ```
//!
//! `R` hands on bytes that it can neither read nor change: what it does to them ends the
//! connection, and all that arrives at `X` is `A`'s, proven by `A`'s key and charged to `A`. `R`
//! relays to members alone, and to those alone that it reaches directly, so that no connection has
//! more than one hop; a member may have [`RELAYED_MAX`] of them through it.

use super::hello::{self, Ask, Hello};
use super::opening::open;
use super::socket;
use crate::tls;
use parking_lot::Mutex;
use quorate_types::ReplicaId;
use rustls::ClientConfig;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connections that one member may have relayed by another: all lanes to one member, and once more
/// while a new one takes the place of an old one.
pub const RELAYED_MAX: usize = 6;

/// Connection to a member over another one.
pub type RelayedStream = TlsStream<TlsStream<TcpStream>>;

/// The member over which a link goes, if it does.
#[derive(Debug, Default)]
pub struct Over(AtomicU32);

impl Over {
    pub(super) fn set(&self, member: Option<ReplicaId>) {
        let value = member.map_or(0, |member| u32::from(member.0) + 1);
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns `true` while the link goes over another member.
    #[must_use]
    pub fn is_somebody(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Member over which a link may go.
#[derive(Clone, Debug)]
pub struct Detour {
    /// Member in the middle.
    pub member: ReplicaId,
    /// Address to dial, as `host:port`.
    pub address: String,
    /// Pins the key of the member in the middle.
    pub tls: Arc<ClientConfig>,
    /// True while the own link to it is up.
    pub up: Arc<AtomicBool>,
    /// Set while that one goes over somebody itself.
    pub over: Arc<Over>,
}

impl Detour {
    /// Returns `true` if this member is reached, and directly.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.up.load(Ordering::Relaxed) && !self.over.is_somebody()
    }

    /// Opens a connection to another member: to the one that relays, and through it TLS with the
    /// other's pinned key, and hello.
    ///
    /// # Errors
    /// When any of them fails or takes longer than `handshake_max`.
    pub async fn dial(
        &self,
        (to, tls): (ReplicaId, Arc<ClientConfig>),
        hello: Hello,
        handshake_max: Duration,
    ) -> io::Result<RelayedStream> {
        let through = async {
            let ask = Ask { chain: hello.chain, to };
            let tls_to_it = Arc::clone(&self.tls);
            let near = open(&self.address, tls_to_it, &ask.encode(), handshake_max).await?;
            let mut stream = TlsConnector::from(tls).connect(tls::no_name(), near).await?;
            hello::introduce(&mut stream, &hello.encode()).await?;
            Ok(stream)
        };
        match timeout(handshake_max, through).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it relays nothing")),
        }
    }
}

/// Connections that are relayed, counted by the member that asked for them.
#[derive(Debug, Default)]
pub(super) struct Relayed(Mutex<BTreeMap<ReplicaId, usize>>);

impl Relayed {
    /// A place for one more, until it is dropped; `None` if the member has as many as it may have.
    pub(super) fn enter(&self, author: ReplicaId) -> Option<impl Drop + use<'_>> {
        let mut counts = self.0.lock();
        let count = counts.entry(author).or_default();
        if *count == RELAYED_MAX {
            return None;
        }
        *count += 1;
        Some(Place { relayed: self, author })
    }
}

struct Place<'a> {
    relayed: &'a Relayed,
    author: ReplicaId,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.relayed.0.lock().get_mut(&self.author) {
            *count -= 1;
        }
    }
}

/// Opens the second half of a relayed connection.
///
/// # Errors
/// When the address does not answer within `within`.
pub(super) async fn reach(address: &str, within: Duration) -> io::Result<TcpStream> {
    let tcp = match timeout(within, TcpStream::connect(address)).await {
        Ok(connected) => connected?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    socket::prepare(&tcp)?;
    Ok(tcp)
}

#[cfg(test)]
mod tests {
    use super::{RELAYED_MAX, Relayed};
    use quorate_types::ReplicaId;

    #[test]
    fn each_member_has_so_many_relayed() {
        let relayed = Relayed::default();
        let mut places: Vec<_> =
            (0..RELAYED_MAX).map(|_| relayed.enter(ReplicaId(0)).expect("there is room")).collect();
        assert!(relayed.enter(ReplicaId(0)).is_none());
        assert!(relayed.enter(ReplicaId(1)).is_some(), "others have room of their own");
        drop(places.pop());
        assert!(relayed.enter(ReplicaId(0)).is_some());
    }
}
