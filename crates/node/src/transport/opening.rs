//! Opening a connection, whatever is asked for on it.

use super::{hello, socket};
use crate::tls;
use rustls::ClientConfig;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Connection that was dialed.
pub type DialedStream = TlsStream<BufReader<TcpStream>>;

/// Opens a connection: TCP, TLS with the pinned key, and this first message.
pub(super) async fn open(
    address: &str,
    tls: Arc<ClientConfig>,
    first: &[u8],
    handshake_max: Duration,
) -> io::Result<DialedStream> {
    let open = async {
        let tcp = TcpStream::connect(address).await?;
        socket::prepare(&tcp)?;
        let tcp = socket::buffered(tcp);
        let mut stream = TlsConnector::from(tls).connect(tls::no_name(), tcp).await?;
        hello::introduce(&mut stream, first).await?;
        Ok(stream)
    };
    match timeout(handshake_max, open).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
    }
}
