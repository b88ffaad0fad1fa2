//! Bounded queues of frames, and writing one to a connection.
//!
//! A frame wakes the task of its connection, which writes all that waits: two threads more, one of
//! them for nothing, where the runtime has two. So while nothing waits, the task of a member's
//! connection leaves it in the queue (`drain_parked`), and whoever pushes a small frame with
//! `Outbox::push_at_once` writes it there and then, as far as that does not block; what is left,
//! and whatever fails, is the task's (ADR 49).

mod parked;

use crate::metrics::Metrics;
use bytes::{Bytes, BytesMut};
use parked::Parked;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use quorate_engine::Frame;
use quorate_types::Lane;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::time::timeout;

/// Frames are gathered into one write up to this many bytes.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// Pieces from this size on are written from where they lie instead of being copied together.
const COPY_BYTES_MAX: usize = 16 * 1024;

/// Longest frame that whoever pushes it writes itself: one record of TLS, at most.
const AT_ONCE_BYTES_MAX: usize = 16 * 1024;

/// Policy of a full queue for one frame too many.
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
    /// The connection, while its task waits.
    parked: Option<Parked>,
    /// Number of the connection that may be parked here.
    connection: u64,
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

    /// As [`Outbox::push`], but a small frame that nothing is ahead of is written here, if its
    /// connection waits for it.
    pub fn push_at_once(&self, frame: Frame) {
        match self.unpark(&frame) {
            Some((parked, connection)) => self.write_to(parked, connection, frame),
            None => self.push(frame),
        }
    }

    fn unpark(&self, frame: &Frame) -> Option<(Parked, u64)> {
        let mut queue = self.queue.lock();
        let is_next = frame.len() <= AT_ONCE_BYTES_MAX && queue.frames.is_empty();
        let parked = queue.parked.take_if(|parked| is_next && parked.stuck.is_empty())?;
        Some((parked, queue.connection))
    }

    /// What others push meanwhile stays behind it in the queue.
    fn write_to(&self, mut parked: Parked, connection: u64, frame: Frame) {
        parked.write(frame);
        let mut queue = self.queue.lock();
        if queue.connection != connection {
            drop(queue);
            self.put_back(parked.stuck);
            return self.ready.notify_one();
        }
        let is_for_the_task = !parked.stuck.is_empty() || !queue.frames.is_empty();
        queue.parked = Some(parked);
        drop(queue);
        if is_for_the_task {
            self.ready.notify_one();
        }
    }

    /// Leaves the connection in the queue until there is something for its task.
    async fn park(&self, parked: Parked) -> Parked {
        self.queue.lock().parked = Some(parked);
        loop {
            let due = self.queue.lock().take_parked();
            if let Some(parked) = due {
                return parked;
            }
            self.ready.notified().await;
        }
    }

    /// Number of frames that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.lock().frames.len()
    }

    /// Number of frames that wait, and their bytes.
    #[must_use]
    pub fn load(&self) -> (usize, usize) {
        let queue = self.queue.lock();
        (queue.frames.len(), queue.bytes)
    }

    /// Returns `true` while no frame waits.
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
    /// The connection, if it is here and there is something for its task.
    fn take_parked(&mut self) -> Option<Parked> {
        let is_due = !self.frames.is_empty();
        self.parked.take_if(|parked| is_due || !parked.stuck.is_empty())
    }

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

/// Writes a queue to a connection until it fails. What could not be written goes back.
pub async fn drain<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    mut writer: W,
    lane: Lane,
    metrics: &Metrics,
    write_timeout: Duration,
) -> io::Error {
    let mut scratch = BytesMut::with_capacity(COPY_BYTES_MAX);
    loop {
        let mut taken = Taken { outbox, batch: outbox.batch().await };
        let write = write_batch(&mut writer, &taken.batch, &mut scratch, write_timeout);
        if let Err(error) = write.await {
            return error;
        }
        let written = std::mem::take(&mut taken.batch);
        metrics.sent(lane, written.len(), written.iter().map(Frame::len).sum());
    }
}

/// As [`drain`], for a connection that is left in the queue while that is empty.
pub(super) async fn drain_parked(
    outbox: &Outbox,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    lane: Lane,
    metrics: &Arc<Metrics>,
    write_timeout: Duration,
) -> io::Error {
    let _place = Place::take(outbox);
    let mut scratch = BytesMut::with_capacity(COPY_BYTES_MAX);
    let mut parked = Parked::new(writer, lane, metrics);
    loop {
        parked = outbox.park(parked).await;
        // Both go back when this is cut short, the first in front.
        let mut stuck = Taken { outbox, batch: std::mem::take(&mut parked.stuck) };
        let mut taken = Taken { outbox, batch: outbox.queue.lock().take(BATCH_BYTES_MAX) };
        let write = async {
            write_all(&mut parked.writer, &parked.rest, write_timeout).await?;
            write_batch(&mut parked.writer, &taken.batch, &mut scratch, write_timeout).await
        };
        if let Err(error) = write.await {
            return error;
        }
        parked.rest.clear();
        let mut written = std::mem::take(&mut stuck.batch);
        written.append(&mut taken.batch);
        metrics.sent(lane, written.len(), written.iter().map(Frame::len).sum());
    }
}

/// The place of one connection in a queue. Once it is dropped, none is left there.
struct Place<'a>(&'a Outbox);

impl<'a> Place<'a> {
    fn take(outbox: &'a Outbox) -> Self {
        outbox.queue.lock().connection += 1;
        Self(outbox)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.connection += 1;
        let ended = queue.parked.take();
        drop(queue);
        self.0.put_back(ended.map(|parked| parked.stuck).unwrap_or_default());
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
    write_timeout: Duration,
) -> io::Result<()> {
    scratch.clear();
    for piece in batch.iter().flat_map(|frame| &frame.0) {
        if piece.len() < COPY_BYTES_MAX {
            scratch.extend_from_slice(piece);
        } else {
            write_all(writer, scratch, write_timeout).await?;
            scratch.clear();
            write_large(writer, piece, write_timeout).await?;
        }
    }
    write_all(writer, scratch, write_timeout).await?;
    in_time(write_timeout, writer.flush()).await
}

/// Writes in portions, each with the whole timeout: a large body on a slow line is no fault.
async fn write_large<W: AsyncWrite + Unpin>(
    writer: &mut W,
    piece: &Bytes,
    write_timeout: Duration,
) -> io::Result<()> {
    for portion in piece.chunks(BATCH_BYTES_MAX) {
        write_all(writer, portion, write_timeout).await?;
    }
    Ok(())
}

async fn write_all<W: AsyncWrite + Unpin>(
    writer: &mut W,
    bytes: &[u8],
    write_timeout: Duration,
) -> io::Result<()> {
    in_time(write_timeout, writer.write_all(bytes)).await
}

async fn in_time(
    write_timeout: Duration,
    work: impl Future<Output = io::Result<()>>,
) -> io::Result<()> {
    match timeout(write_timeout, work).await {
        Ok(result) => result,
        Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it takes no more bytes")),
    }
}

#[cfg(test)]
mod tests;
