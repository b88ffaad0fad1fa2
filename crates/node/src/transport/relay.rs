//! Links over another member, where two members do not reach each other.
//!
//! ```text
//! A ──TLS, "relay to X"──▶ R ──TCP──▶ X
//! A ═════════ TLS as ever, end to end ═════════▶ X
//! ```
//!
//! `R` hands on bytes that it can neither read nor change: what it does to them ends the
//! connection, and all that arrives at `X` is `A`'s, proven by `A`'s key and charged to `A`. `R`
//! relays to members alone, and to those alone that it reaches directly; a member may have
//! [`RELAYED_MAX`] connections through it.
//!
//! Before all of this `R` writes one byte, the mark: `X` relays nothing further on a connection
//! with it, so that none has more than one hop, and does not take it and a direct one that replaces
//! it for two processes with one key. Anybody may write the mark. It has rights taken away and none
//! given: without it a connection may be all that it may be with it.

use super::socket;
use crate::connections::AcceptedStream;
use parking_lot::Mutex;
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Connections that one member may have relayed by another: all lanes to one member, and once more
/// while a new one takes the place of an old one.
pub const RELAYED_MAX: usize = 6;

/// First byte of a connection that was relayed. TLS begins with another (0x16).
pub const RELAYED_MARK: u8 = b'R';

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

/// Opens the second half of a relayed connection, and marks it.
///
/// # Errors
/// When the address does not answer within `within`.
pub(super) async fn reach(address: &str, within: Duration) -> io::Result<TcpStream> {
    let mut tcp = match timeout(within, TcpStream::connect(address)).await {
        Ok(connected) => connected?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    };
    socket::prepare(&tcp)?;
    tcp.write_u8(RELAYED_MARK).await?;
    Ok(tcp)
}

/// Takes the mark off a connection that was relayed; `false` for one that was not.
///
/// # Errors
/// When the connection ends.
pub(super) async fn take_mark(stream: &mut AcceptedStream) -> io::Result<bool> {
    let is_relayed = stream.peek().await? == RELAYED_MARK;
    if is_relayed {
        stream.read_u8().await?;
    }
    Ok(is_relayed)
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
