//! Connections of this machine that say they come from elsewhere.

use super::{AcceptedStream, Acceptor, ConnectionHandle, ConnectionLimiter, counted};
use socket2::SockRef;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};

/// Both ends of a connection.
pub(crate) struct Ends {
    pub(crate) accepted: AcceptedStream,
    _other: TcpStream,
}

impl Ends {
    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.accepted.handle()
    }

    /// True if the connection has ended for whoever accepted it.
    pub(crate) fn is_cut(&self) -> bool {
        let socket = SockRef::from(&self.accepted.connection.socket);
        (&*socket).read(&mut [0]).is_ok_and(|bytes| bytes == 0)
    }
}

/// A connection that was let in from this machine.
pub(crate) async fn connection(limiter: &Arc<ConnectionLimiter>) -> Ends {
    connection_from(limiter, "127.0.0.1").await.expect("let in")
}

/// A connection as from this address; `None` when it is refused.
pub(crate) async fn connection_from(
    limiter: &Arc<ConnectionLimiter>,
    address: &str,
) -> Option<Ends> {
    let address: IpAddr = address.parse().expect("an address");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let (other, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
    let semaphore = Arc::new(tokio::sync::Semaphore::new(1));
    let descriptor = semaphore.acquire_owned().await.expect("one");
    let (socket, from) = accepted.expect("accepted");
    let from = (counted(address), from.port()).into();
    let accepted = AcceptedStream::new(socket, from, limiter, descriptor)?;
    Some(Ends { accepted, _other: other.expect("connected") })
}

/// A listener of this machine with these limits, and its address.
pub(crate) async fn acceptor(limiter: &Arc<ConnectionLimiter>) -> (Acceptor, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    (Acceptor::new(listener, Arc::clone(limiter), limiter.limits.total), at)
}
