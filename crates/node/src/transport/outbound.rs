//! Sending: bounded queues, and the task that keeps one connection up and writes its queue to it.

use super::emulated::{self, DelayedReader, Ways};
use super::frames::Intake;
use super::hello::{self, Hello};
use super::{LEARNER_LANE, Network, socket};
use crate::metrics::{Metrics, lane_name};
use crate::tls;
use crate::tls::Dialer;
use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use quorate_engine::Frame;
use quorate_types::{Committee, Lane, Peer, ReplicaId};
use quorate_wan::Topology;
use rustls::ClientConfig;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Frames are gathered into one write up to this many bytes.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Pieces from this size on are written from where they lie instead of being copied together.
const COPY_BYTES_MAX: usize = 16 * 1024;

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// A connection that lasted so long was a good one: the next attempt is not delayed for its sake.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// What a full queue does with one frame too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// Makes room: newer messages supersede older ones.
    DropOldest,
    /// Refuses it: what is queued was promised first.
    DropNewest,
}

/// A bounded queue of frames to one peer in one lane. Outlives its connections.
#[derive(Debug)]
pub struct Outbox {
    queue: Mutex<Queue>,
    ready: Notify,
    frames_max: usize,
    bytes_max: usize,
    full: Full,
    dropped: Counter,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
}

impl Outbox {
    /// An empty queue; `dropped` counts what it drops.
    #[must_use]
    pub fn new(frames_max: usize, bytes_max: usize, full: Full, dropped: Counter) -> Self {
        let (queue, ready) = (Mutex::default(), Notify::new());
        Self { queue, ready, frames_max, bytes_max, full, dropped }
    }

    /// Queues a frame, never blocks. One that alone exceeds the bound in bytes finds place in an
    /// empty queue.
    pub fn push(&self, frame: Frame) {
        let mut queue = self.queue.lock();
        let bytes = frame.len();
        while !self.has_room(&queue, bytes) {
            self.dropped.inc();
            match self.full {
                Full::DropNewest => return,
                Full::DropOldest => queue.pop(),
            };
        }
        queue.bytes += bytes;
        queue.frames.push_back(frame);
        drop(queue);
        self.ready.notify_one();
    }

    /// How many frames wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.lock().frames.len()
    }

    /// How many frames wait, and their bytes.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.frames.len(), queue.bytes)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for frames and takes what makes one write.
    pub(super) async fn batch(&self) -> Vec<Frame> {
        loop {
            let batch = self.queue.lock().take(BATCH_BYTES_MAX);
            if !batch.is_empty() {
                return batch;
            }
            self.ready.notified().await;
        }
    }

    /// Puts back what was taken and not written, in front.
    pub(super) fn put_back(&self, batch: Vec<Frame>) {
        let mut queue = self.queue.lock();
        for frame in batch.into_iter().rev() {
            if !self.has_room(&queue, frame.len()) {
                self.dropped.inc();
                continue;
            }
            queue.bytes += frame.len();
            queue.frames.push_front(frame);
        }
    }

    fn has_room(&self, queue: &Queue, bytes: usize) -> bool {
        queue.frames.is_empty()
            || (queue.frames.len() < self.frames_max && queue.bytes + bytes <= self.bytes_max)
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Frame> {
        let frame = self.frames.pop_front()?;
        self.bytes -= frame.len();
        Some(frame)
    }

    fn take(&mut self, bytes_max: usize) -> Vec<Frame> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(frame) = self.frames.front()
            && (batch.is_empty() || bytes + frame.len() <= bytes_max)
        {
            bytes += frame.len();
            batch.extend(self.pop());
        }
        batch
    }
}

/// Opens a connection: TCP, TLS with the pinned key, hello.
///
/// # Errors
/// When any of them fails or takes longer than `patience`.
pub async fn dial(
    address: &str,
    tls: Arc<ClientConfig>,
    hello: Hello,
    patience: Duration,
) -> io::Result<TlsStream<TcpStream>> {
    let open = async {
        let tcp = TcpStream::connect(address).await?;
        socket::prepare(&tcp)?;
        let mut stream = TlsConnector::from(tls).connect(tls::no_name(), tcp).await?;
        hello::introduce(&mut stream, hello).await?;
        Ok(stream)
    };
    match timeout(patience, open).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
    }
}

/// One connection that is to be kept up, and what flows through it.
#[derive(Clone, Debug)]
pub struct Link {
    /// Who is expected there.
    pub peer: ReplicaId,
    /// `host:port`.
    pub address: String,
    /// Pins the peer's key.
    pub tls: Arc<ClientConfig>,
    /// Chain and lane.
    pub hello: Hello,
    /// What to send.
    pub outbox: Arc<Outbox>,
    /// Whether the connection is up.
    pub up: Arc<AtomicBool>,
    /// What to do with what comes back: clients and learners read answers, members send nothing back.
    pub replies: Option<Intake>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// How long the other end may be silent in a handshake, and take no byte of a write.
    pub patience: (Duration, Duration),
    /// The network to emulate, if any.
    pub ways: Option<Ways>,
}

impl Link {
    /// Keeps the connection up, for ever.
    pub async fn run(self) {
        let mut backoff = Backoff::new();
        // Said once for each time that the peer goes, not for each attempt.
        let mut complained = false;
        loop {
            let began = Instant::now();
            let connected =
                dial(&self.address, Arc::clone(&self.tls), self.hello, self.patience.0).await;
            match connected {
                Ok(stream) => {
                    complained = false;
                    self.report_up();
                    let error = self.serve(stream).await;
                    self.up.store(false, Ordering::Relaxed);
                    self.report_down("lost", &error, &mut complained);
                }
                Err(error) => self.report_down("cannot be reached", &error, &mut complained),
            }
            if began.elapsed() >= STABLE_AFTER + self.patience.0 {
                backoff.reset();
            }
            sleep(backoff.next()).await;
        }
    }

    /// Writes the queue to a connection until it fails.
    async fn serve(&self, stream: TlsStream<TcpStream>) -> io::Error {
        self.up.store(true, Ordering::Relaxed);
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            // Whoever went away is noticed at once, and not only by a later write that fails.
            error = self.listen(reader) => error,
            error = self.write(writer) => error,
        }
    }

    async fn write(&self, writer: impl AsyncWrite + Unpin) -> io::Error {
        let (lane, patience) = (self.hello.lane, self.patience.1);
        match self.ways {
            None => drain(&self.outbox, writer, lane, &self.metrics, patience).await,
            Some(Ways { out, .. }) => {
                emulated::drain(&self.outbox, writer, lane, &self.metrics, patience, out).await
            }
        }
    }

    async fn listen(&self, mut reader: impl AsyncRead + Unpin) -> io::Error {
        if let Some(replies) = &self.replies {
            let (from, lane) = (Peer::Replica(self.peer), self.hello.lane);
            let cut = match self.ways.and_then(|ways| ways.back) {
                None => replies.read(reader, from, lane).await,
                Some(back) => replies.read(DelayedReader::new(reader, back), from, lane).await,
            };
            return io::Error::other(cut);
        }
        match reader.read_u8().await {
            Ok(_) => io::Error::new(io::ErrorKind::InvalidData, "it sent bytes where none belong"),
            Err(error) => error,
        }
    }

    /// Whether it is the one of the links to a member whose loss is worth a line in the log.
    fn is_spokesman(&self) -> bool {
        match self.hello.lane {
            Lane::Votes => true,
            LEARNER_LANE => self.replies.is_some(),
            Lane::Consensus | Lane::Client => false,
        }
    }

    fn report_up(&self) {
        let (member, lane) = (self.peer, lane_name(self.hello.lane));
        tracing::debug!(%member, lane, address = self.address, "connected");
    }

    fn report_down(&self, what: &str, error: &io::Error, complained: &mut bool) {
        let (member, lane, address) = (self.peer, lane_name(self.hello.lane), &self.address);
        if std::mem::replace(complained, true) {
            tracing::trace!(%member, lane, address, %error, "connection {what}");
        } else if self.is_spokesman() {
            tracing::warn!(%member, address, %error, "connection {what}; trying again");
        } else {
            tracing::debug!(%member, lane, address, %error, "connection {what}; trying again");
        }
    }
}

/// Writes a queue to a connection until it fails. What could not be written goes back.
pub async fn drain<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    mut writer: W,
    lane: Lane,
    metrics: &Metrics,
    patience: Duration,
) -> io::Error {
    let mut scratch = BytesMut::with_capacity(COPY_BYTES_MAX);
    loop {
        let mut taken = Taken { outbox, batch: outbox.batch().await };
        let write = write_batch(&mut writer, &taken.batch, &mut scratch, patience);
        if let Err(error) = write.await {
            return error;
        }
        let written = std::mem::take(&mut taken.batch);
        metrics.sent(lane, written.len(), written.iter().map(Frame::len).sum());
    }
}

/// Frames on their way from a queue into a connection; back into the queue when that is cut short.
struct Taken<'a> {
    outbox: &'a Outbox,
    batch: Vec<Frame>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.outbox.put_back(std::mem::take(&mut self.batch));
    }
}

/// Small pieces are copied together, large ones are not; one flush for all.
pub(super) async fn write_batch<W: AsyncWrite + Unpin>(
    writer: &mut W,
    batch: &[Frame],
    scratch: &mut BytesMut,
    patience: Duration,
) -> io::Result<()> {
    scratch.clear();
    for piece in batch.iter().flat_map(|frame| &frame.0) {
        if piece.len() < COPY_BYTES_MAX {
            scratch.extend_from_slice(piece);
        } else {
            write_all(writer, scratch, patience).await?;
            scratch.clear();
            write_large(writer, piece, patience).await?;
        }
    }
    write_all(writer, scratch, patience).await?;
    in_time(patience, writer.flush()).await
}

/// In portions, so that the patience is for each of them: a large body on a slow line is no fault.
async fn write_large<W: AsyncWrite + Unpin>(
    writer: &mut W,
    piece: &Bytes,
    patience: Duration,
) -> io::Result<()> {
    for portion in piece.chunks(BATCH_BYTES_MAX) {
        write_all(writer, portion, patience).await?;
    }
    Ok(())
}

async fn write_all<W: AsyncWrite + Unpin>(
    writer: &mut W,
    bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    in_time(patience, writer.write_all(bytes)).await
}

async fn in_time(patience: Duration, work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    match timeout(patience, work).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it takes no more bytes")),
    }
}

/// The links to every other member, one for each lane; `emulated` is the network to emulate and the
/// own place in it. A learner reads what comes back with `answers`.
///
/// # Errors
/// Never with the provider that this crate uses.
pub fn member_links(
    network: &Network,
    committee: &Committee,
    dialer: &Dialer,
    limits: super::Limits,
    emulated: Option<(&Topology, ReplicaId)>,
    answers: Option<&Intake>,
) -> Result<Vec<Link>, rustls::Error> {
    let mut links = Vec::new();
    for peer in committee.members() {
        let (Some(key), Some(address)) = (committee.identity(peer), committee.address(peer)) else {
            continue;
        };
        let tls = dialer.to(*key)?;
        let ways = emulated.map(|(topology, me)| Ways::between_members(topology, me, peer));
        for (index, lane) in network.lanes.iter().copied().enumerate() {
            let Some((outbox, up)) = network.lane_to(peer, index) else {
                continue;
            };
            links.push(Link {
                peer,
                address: address.to_owned(),
                tls: Arc::clone(&tls),
                hello: Hello { chain: committee.chain(), lane },
                outbox,
                up,
                replies: answers.cloned(),
                metrics: Arc::clone(&network.metrics),
                patience: (limits.handshake, limits.write),
                ways,
            });
        }
    }
    Ok(links)
}

/// Doubles from 50 ms to 2 s; each wait is drawn from the upper half of its span, so that a committee
/// that starts together does not dial together.
#[derive(Debug)]
pub(crate) struct Backoff {
    span: Duration,
    random: RandomState,
    draws: u64,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { span: BACKOFF_MIN, random: RandomState::new(), draws: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.span = BACKOFF_MIN;
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.draws += 1;
        let draw = self.random.hash_one(self.draws) % 1_000;
        let wait = self.span / 2 + self.span / 2 * u32::try_from(draw).expect("small") / 1_000;
        self.span = (self.span * 2).min(BACKOFF_MAX);
        wait
    }
}

#[cfg(test)]
mod tests;
