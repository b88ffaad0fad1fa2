//! Connections that others open: how many are kept, how many from one address, and which of them
//! gives way when there are too many.
//!
//! Every listener takes its connections from an [`Acceptor`] with a [`ConnectionLimiter`]. When a
//! limit is reached, a newcomer is let in at the expense of the connection that was used least
//! recently, of the address that has most: whoever holds connections open for nothing loses them
//! first, and whoever works is served.
//!
//! An address stands for the /64 around it in IPv6. Connections from this machine are not counted
//! by address: a proxy in front of a door speaks for many.

use crate::transport::socket;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use socket2::SockRef;
use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

/// Pause of a listener when the system has no connection to give, as without descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Descriptors beyond the limits of an acceptor, for connections that were told to end and are
/// about to.
pub(crate) const ENDING_MAX: usize = 16;

/// Most connections of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// From all addresses together, at least 1.
    pub total: usize,
    /// From one address, at least 1; other machines' alone are counted.
    pub per_address: usize,
}

impl ConnectionLimits {
    /// Limits of `total` connections, of which other machines have three quarters each at most.
    #[must_use]
    pub fn of(total: usize) -> Self {
        Self { total, per_address: (total - total / 4).max(1) }
    }
}

/// Connections of one kind, such as those that have not proven a key, with their limits.
#[derive(Debug)]
pub struct ConnectionLimiter {
    limits: ConnectionLimits,
    cut: ArcSwap<Counter>,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: BTreeMap<u64, Arc<Connection>>,
    by_address: BTreeMap<IpAddr, usize>,
}

/// A connection, as long as its socket is open.
#[derive(Debug)]
struct Connection {
    socket: TcpStream,
    address: IpAddr,
    opened: Instant,
    /// Milliseconds from `opened` to the last byte that was written to it.
    used_ms: AtomicU64,
    /// Requests on it that are being answered.
    busy: AtomicUsize,
    _descriptor: OwnedSemaphorePermit,
}

impl Connection {
    fn used(&self) -> Instant {
        self.opened + Duration::from_millis(self.used_ms.load(Ordering::Relaxed))
    }

    fn touch(&self) {
        let span = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.used_ms.store(span, Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }

    /// Ends it: whoever reads it finds its end.
    fn cut(&self) {
        // Fails only where it has ended already.
        let _ = SockRef::from(&self.socket).shutdown(Shutdown::Both);
    }
}

/// Address by which connections are counted.
#[must_use]
pub fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64))
        }
        address => address,
    }
}

impl Table {
    fn insert(&mut self, connection: &Arc<Connection>) -> u64 {
        self.next += 1;
        self.open.insert(self.next, Arc::clone(connection));
        *self.by_address.entry(connection.address).or_default() += 1;
        self.next
    }

    fn remove(&mut self, id: u64) -> Option<Arc<Connection>> {
        let connection = self.open.remove(&id)?;
        if let Some(count) = self.by_address.get_mut(&connection.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&connection.address);
            }
        }
        Some(connection)
    }

    fn count(&self, address: IpAddr) -> usize {
        self.by_address.get(&address).copied().unwrap_or_default()
    }

    /// The connection that was used least recently, of those that fit.
    fn oldest(&self, fits: impl Fn(&Connection) -> bool) -> Option<u64> {
        let fitting = self.open.iter().filter(|(_, connection)| fits(connection));
        fitting.min_by_key(|(id, connection)| (connection.used(), **id)).map(|(id, _)| *id)
    }

    /// Connection that gives way to one from `address` when all places are taken. One that is busy
    /// does only for an address that has fewer.
    fn gives_way(&self, address: IpAddr) -> Option<u64> {
        let (most, count) = self.by_address.iter().max_by_key(|(_, count)| **count)?;
        let idle = self.oldest(|other| other.is_idle() && other.address == *most);
        idle.or_else(|| self.oldest(Connection::is_idle)).or_else(|| {
            let has_fewer = self.count(address) + 1 < *count;
            has_fewer.then(|| self.oldest(|other| other.address == *most)).flatten()
        })
    }
}

impl ConnectionLimiter {
    /// No connections yet; `cut` counts those that gave way or were refused.
    #[must_use]
    pub fn new(limits: ConnectionLimits, cut: Counter) -> Arc<Self> {
        Arc::new(Self { limits, cut: ArcSwap::from_pointee(cut), table: Mutex::default() })
    }

    /// Counts with another counter from now on: a listener may outlive the metrics that show it.
    pub fn count_with(&self, cut: Counter) {
        self.cut.store(Arc::new(cut));
    }

    pub(crate) fn limits(&self) -> ConnectionLimits {
        self.limits
    }

    /// Number of open connections.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table.lock().open.len()
    }

    /// Lets a connection in; `None` when nothing gives way to it.
    fn enter(&self, connection: &Arc<Connection>) -> Option<u64> {
        let mut table = self.table.lock();
        let address = connection.address;
        let crowded = !address.is_loopback() && table.count(address) >= self.limits.per_address;
        if crowded || table.open.len() >= self.limits.total {
            self.cut.load().inc();
            let other = if crowded {
                table.oldest(|other| other.is_idle() && other.address == address)
            } else {
                table.gives_way(address)
            };
            table.remove(other?)?.cut();
        }
        Some(table.insert(connection))
    }
}

/// A listener whose connections are limited.
#[derive(Debug)]
pub struct Acceptor {
    listener: TcpListener,
    limiter: Arc<ConnectionLimiter>,
    descriptors: Arc<Semaphore>,
}

impl Acceptor {
    /// A listener that lets connections into `limiter`. With the kinds that they move on to
    /// ([`AcceptedStream::move_to`]) they are `total` at most.
    #[must_use]
    pub fn new(listener: TcpListener, limiter: Arc<ConnectionLimiter>, total: usize) -> Self {
        let descriptors = Arc::new(Semaphore::new(total + ENDING_MAX));
        Self { listener, limiter, descriptors }
    }

    /// The next connection that is let in. Waits while the system has none to give.
    pub async fn accept(&self) -> (AcceptedStream, SocketAddr) {
        loop {
            // Never closed: there is a descriptor as soon as a connection has ended.
            let Ok(descriptor) = Arc::clone(&self.descriptors).acquire_owned().await else {
                std::future::pending().await
            };
            let (socket, from) = self.next().await;
            if socket::prepare(&socket).is_err() {
                continue;
            }
            if let Some(stream) = AcceptedStream::new(socket, from, &self.limiter, descriptor) {
                return (stream, from);
            }
            tracing::debug!(%from, "too many connections, and none gives way");
        }
    }

    async fn next(&self) -> (TcpStream, SocketAddr) {
        let mut is_known = false;
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => {
                    if !std::mem::replace(&mut is_known, true) {
                        tracing::warn!(%error, "cannot accept connections");
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// Stream of an accepted connection. It has its place in a [`ConnectionLimiter`] until it is
/// dropped; when it gives way to another, it ends as if the other end had closed it.
#[derive(Debug)]
pub struct AcceptedStream {
    connection: Arc<Connection>,
    limiter: Arc<ConnectionLimiter>,
    id: u64,
}

/// Handle of an accepted connection, which says what is done with it.
#[derive(Clone, Debug)]
pub struct ConnectionHandle(Arc<Connection>);

impl ConnectionHandle {
    /// A request on the connection, which is not idle until this is dropped.
    #[must_use]
    pub fn begin(&self) -> impl Drop + Send + use<> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy(Arc::clone(&self.0))
    }

    /// Ends the connection: whoever reads it finds its end, as if the other end had closed it.
    pub fn cut(&self) {
        self.0.cut();
    }

    /// Waits until nothing was written for so long.
    pub async fn idle_for(&self, span: Duration) {
        loop {
            let left = span.saturating_sub(self.0.used().elapsed());
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }
}

struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AcceptedStream {
    fn new(
        socket: TcpStream,
        from: SocketAddr,
        limiter: &Arc<ConnectionLimiter>,
        descriptor: OwnedSemaphorePermit,
    ) -> Option<Self> {
        let connection = Arc::new(Connection {
            socket,
            address: counted(from.ip()),
            opened: Instant::now(),
            used_ms: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            _descriptor: descriptor,
        });
        let id = limiter.enter(&connection)?;
        Some(Self { connection, limiter: Arc::clone(limiter), id })
    }

    /// A handle of the connection.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        ConnectionHandle(Arc::clone(&self.connection))
    }

    /// The next byte, which stays to be read.
    ///
    /// # Errors
    /// When the connection ends instead.
    pub(crate) async fn peek(&self) -> io::Result<u8> {
        let mut byte = [0];
        match self.connection.socket.peek(&mut byte).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(byte[0]),
        }
    }

    /// Counts the connection under other limits from now on; `false`, and as before, when nothing
    /// gives way to it there.
    pub fn move_to(&mut self, limiter: &Arc<ConnectionLimiter>) -> bool {
        let Some(id) = limiter.enter(&self.connection) else { return false };
        self.limiter.table.lock().remove(self.id);
        (self.limiter, self.id) = (Arc::clone(limiter), id);
        true
    }
}

impl Drop for AcceptedStream {
    fn drop(&mut self) {
        self.limiter.table.lock().remove(self.id);
        // A handle may keep the socket for a moment longer.
        self.connection.cut();
    }
}

impl AsyncRead for AcceptedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = &self.connection.socket;
        loop {
            ready!(socket.poll_read_ready(context))?;
            match read_some(socket, buffer.initialize_unfilled()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result.map(|count| buffer.advance(count))),
            }
        }
    }
}

/// Reads what there is. A read that does not fill its buffer has emptied the socket, and the next
/// one waits for more: otherwise each would be followed by one that finds nothing.
fn read_some(socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut emptied = None;
    // What arrives after the read is an event of its own, which this does not take back.
    let result = socket.try_io(Interest::READABLE, || {
        let count = (&*SockRef::from(socket)).read(buffer)?;
        if cfg!(target_os = "linux") && (1..buffer.len()).contains(&count) {
            emptied = Some(count);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(count)
    });
    emptied.map_or(result, Ok)
}

impl AsyncWrite for AcceptedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let socket = &self.connection.socket;
        loop {
            ready!(socket.poll_write_ready(context))?;
            match socket.try_write_vectored(parts) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => {
                    self.connection.touch();
                    return Poll::Ready(result);
                }
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&self.connection.socket).shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
