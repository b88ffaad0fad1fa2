//! What every connection has: socket options, and reads of a size.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, BufReader};
use tokio::net::TcpStream;

/// An idle connection is probed after this long, and closed when three probes find nobody.
const PROBE_AFTER: Duration = Duration::from_secs(10);
const PROBE_INTERVAL: Duration = Duration::from_secs(3);
const PROBES: u32 = 3;

/// Sent and not acknowledged for so long: the host is gone. By default the kernel tries for a
/// quarter of an hour with growing pauses, and a validator whose host came back would be cut off
/// for minutes.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);

/// Bytes that are read from a connection at once: a full record of TLS, and more. TLS alone would
/// ask the system for every four kilobytes, some thirty times for a body of 128 KiB.
const READ_BYTES: usize = 32 * 1024;

/// The stream below TLS, read in large parts.
pub(crate) fn buffered<S: AsyncRead>(stream: S) -> BufReader<S> {
    BufReader::with_capacity(READ_BYTES, stream)
}

/// Small frames leave at once, and a host that vanished is noticed.
pub(crate) fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let socket = SockRef::from(tcp);
    let keepalive = TcpKeepalive::new()
        .with_time(PROBE_AFTER)
        .with_interval(PROBE_INTERVAL)
        .with_retries(PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_MAX))?;
    Ok(())
}
