//! Accepting payers: TLS, hello, then orders one way and answers the other.

use super::{content, payer_bytes_max};
use crate::connections::{AcceptedStream, Acceptor, ConnectionLimiter, ConnectionLimits};
use crate::metrics::Metrics;
use crate::tls;
use crate::transport::Limits;
use crate::transport::frames::{Cut, FrameReader};
use crate::transport::hello::{self, ANY_EPOCH, Answer};
use crate::transport::outbox::{Full, Outbox, drain};
use crate::transport::socket;
use bytes::Bytes;
use crossbeam_channel::Sender;
use parking_lot::RwLock;
use quorate_crypto::IdentityKey;
use quorate_types::{ClientId, Lane, NetworkId, Peer};
use rustls::ServerConfig;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Channel to a payer whose key is being proven, or is proven.
type PayerStream = TlsStream<BufReader<AcceptedStream>>;

/// Bytes of orders of one payer between its connection and their check.
const PAYER_BYTES: usize = 5 * 1024 * 1024;

/// Bytes of orders under way of all payers together.
const PAYERS_BYTES: usize = 64 * 1024 * 1024;

/// Answers that wait for one payer: frames and bytes. The oldest go: the payer asks again.
const ANSWERS_MAX: (usize, usize) = (32_768, 32 * 1024 * 1024);

/// An order as it came, with what it takes of the bounds until it is checked.
pub(super) struct Arrived {
    /// Ticket of the connection that it came by.
    pub(super) ticket: u64,
    /// Key of the payer, as the channel proved.
    pub(super) from: IdentityKey,
    frame: Bytes,
    permits: [Option<OwnedSemaphorePermit>; 2],
}

impl Arrived {
    /// A frame of this payer, for tests.
    #[cfg(test)]
    pub(super) fn of(from: IdentityKey) -> Self {
        Self { ticket: 0, from, frame: Bytes::new(), permits: [None, None] }
    }

    pub(super) fn tag(&self) -> u8 {
        self.frame[0]
    }

    pub(super) fn content(&self) -> &[u8] {
        content(&self.frame)
    }

    /// Gives back what orders took of the bounds, of each bound at once: a reader that waits for
    /// room wakes once for all of them, not for every order.
    pub(super) fn release(orders: impl IntoIterator<Item = Self>) {
        let mut by_bound: BTreeMap<*const Semaphore, OwnedSemaphorePermit> = BTreeMap::new();
        for permit in orders.into_iter().flat_map(|order| order.permits).flatten() {
            match by_bound.entry(Arc::as_ptr(permit.semaphore())) {
                Entry::Vacant(none) => drop(none.insert(permit)),
                Entry::Occupied(mut taken) => taken.get_mut().merge(permit),
            }
        }
    }
}

/// Connected payers, with the queues for their answers.
#[derive(Debug, Default)]
pub(super) struct Payers {
    next: AtomicU64,
    outboxes: RwLock<BTreeMap<u64, Arc<Outbox>>>,
}

impl Payers {
    /// Queue for answers to this connection's orders, while it lasts.
    pub(super) fn outbox(&self, ticket: u64) -> Option<Arc<Outbox>> {
        self.outboxes.read().get(&ticket).cloned()
    }

    pub(super) fn count(&self) -> usize {
        self.outboxes.read().len()
    }

    fn enter(&self, outbox: &Arc<Outbox>) -> u64 {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed);
        self.outboxes.write().insert(ticket, Arc::clone(outbox));
        ticket
    }

    fn leave(&self, ticket: u64) {
        self.outboxes.write().remove(&ticket);
    }
}

/// Everything that accepting needs.
pub(super) struct Server {
    tls: TlsAcceptor,
    network: NetworkId,
    payers: Arc<Payers>,
    orders: Sender<Arrived>,
    share: Arc<Semaphore>,
    handshakes: Arc<ConnectionLimiter>,
    connected: Arc<ConnectionLimiter>,
    limits: Limits,
    metrics: Arc<Metrics>,
}

impl Server {
    pub(super) fn new(
        tls: Arc<ServerConfig>,
        network: NetworkId,
        payers: Arc<Payers>,
        orders: Sender<Arrived>,
        (limits, metrics): (Limits, Arc<Metrics>),
    ) -> Self {
        let limiter = |total, reason| {
            ConnectionLimiter::new(ConnectionLimits::of(total), metrics.cut_counter(reason))
        };
        let handshakes = limiter(limits.handshakes_max, "too-many-handshakes");
        let connected = limiter(limits.clients_max, "too-many-clients");
        let share = Arc::new(Semaphore::new(PAYERS_BYTES));
        let tls = TlsAcceptor::from(tls);
        Self { tls, network, payers, orders, share, handshakes, connected, limits, metrics }
    }

    /// Accepts payers, for ever.
    pub(super) async fn run(self, socket: TcpListener) {
        let total = self.limits.handshakes_max + self.limits.clients_max;
        let acceptor = Acceptor::new(socket, Arc::clone(&self.handshakes), total);
        let server = Arc::new(self);
        loop {
            let (tcp, _) = acceptor.accept().await;
            let server = Arc::clone(&server);
            tokio::spawn(async move { server.receive(tcp).await });
        }
    }

    async fn receive(&self, tcp: AcceptedStream) {
        match timeout(self.limits.handshake, self.handshake(tcp)).await {
            Ok(Ok((stream, from))) => self.serve(stream, from).await,
            Ok(Err(error)) => {
                self.metrics.cut("handshake");
                tracing::debug!(%error, "a payer was turned away");
            }
            Err(_) => self.metrics.cut("handshake"),
        }
    }

    async fn handshake(&self, tcp: AcceptedStream) -> io::Result<(PayerStream, IdentityKey)> {
        let mut stream = self.tls.accept(socket::buffered(tcp)).await?;
        let connection = stream.get_ref().1;
        let key = tls::proven_key(connection)
            .filter(|_| tls::speaks_quorate(connection))
            .ok_or_else(|| io::Error::other("not a peer of this protocol"))?;
        let peer = Peer::Client(ClientId(key));
        match hello::receive(&mut stream, (self.network, ANY_EPOCH), peer).await? {
            Ok(_) => Ok((stream, key)),
            Err(refusal) => {
                send(&mut stream, refusal).await?;
                Err(io::Error::other(format!("{refusal:?}")))
            }
        }
    }

    async fn serve(&self, mut stream: PayerStream, from: IdentityKey) {
        if !stream.get_mut().0.get_mut().move_to(&self.connected) {
            let _ = send(&mut stream, Answer::Full).await;
            return;
        }
        let handle = stream.get_ref().0.get_ref().handle();
        let (frames, bytes) = ANSWERS_MAX;
        let dropped = self.metrics.answers_dropped();
        let outbox = Arc::new(Outbox::new(frames, bytes, Full::DropOldest, dropped));
        let ticket = self.payers.enter(&outbox);
        if send(&mut stream, Answer::Welcome).await.is_ok() {
            let (reader, writer) = tokio::io::split(stream);
            let (metrics, write_timeout) = (&self.metrics, self.limits.write);
            tokio::select! {
                cut = self.read(reader, (ticket, from)) => {
                    if let Some(fault) = cut.fault() {
                        self.metrics.cut(fault);
                    }
                }
                _ = drain(&outbox, writer, Lane::Client, metrics, write_timeout) => {}
                () = handle.idle_for(self.limits.idle) => self.metrics.cut("idle"),
            }
        }
        self.payers.leave(ticket);
    }

    /// Reads orders until the connection is cut.
    async fn read(
        &self,
        stream: impl AsyncRead + Unpin,
        (ticket, from): (u64, IdentityKey),
    ) -> Cut {
        let mut reader = FrameReader::new(stream, payer_bytes_max, self.limits.frame);
        let own = Arc::new(Semaphore::new(PAYER_BYTES));
        loop {
            let next = async {
                let head = reader.begin().await?;
                let own = take(&own, head.bytes).await;
                let frame = reader.finish(head).await?;
                let common = take(&self.share, frame.len()).await;
                Ok::<_, Cut>(Arrived { ticket, from, frame, permits: [own, common] })
            };
            match next.await {
                Ok(order) => {
                    self.metrics.received(Lane::Client, order.frame.len());
                    if self.orders.send(order).is_err() {
                        return Cut::Refused;
                    }
                }
                Err(cut) => return cut,
            }
        }
    }
}

/// The semaphores are never closed: there is always a permit, sooner or later.
async fn take(share: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let bytes = u32::try_from(bytes).expect("orders are megabytes at most");
    Arc::clone(share).acquire_many_owned(bytes).await.ok()
}

async fn send(stream: &mut PayerStream, answer: Answer) -> io::Result<()> {
    stream.write_all(&[answer as u8]).await?;
    stream.flush().await
}

#[cfg(test)]
mod tests;
