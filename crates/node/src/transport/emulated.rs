//! Networks that are not there: frames that are held back as if they had far to go.
//!
//! What a member or a client sends is held back before it is written (`drain`); what a client hears
//! from a member is held back as it is read (`DelayedReader`), since members do not know where
//! their clients are. Each connection has a [`Line`] of its own, so that lanes do not delay one
//! another; it holds the bandwidth-delay product, and what exceeds that waits in the [`Outbox`]
//! with its bounds, or in the kernel. There is no task or timer per frame. Without an emulation
//! none of this is used.

use super::outbox::{Outbox, write_batch};
use crate::metrics::Metrics;
use bytes::{Buf, Bytes, BytesMut};
use quorate_engine::Frame;
use quorate_types::{Lane, ReplicaId};
use quorate_wan::{Line, Route, Topology};
use std::io;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// Timers are rounded up to the next whole millisecond: asked for half of one earlier, they are as
/// often early as late.
const GRAIN: Duration = Duration::from_micros(500);

/// Bytes read at a time.
const READ_BYTES: usize = 16 * 1024;

/// Origin of time for all delay lines of a process, so that all lanes of a link see one jitter.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// The ways of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Ways {
    /// Route of written bytes.
    pub out: Route,
    /// Route of read bytes, where the other end does not delay them itself.
    pub back: Option<Route>,
}

impl Ways {
    /// Routes between two members: each delays what it sends.
    #[must_use]
    pub fn between_members(topology: &Topology, from: ReplicaId, to: ReplicaId) -> Self {
        Self { out: topology.route(from.index(), to.index()), back: None }
    }

    /// Routes between a client that sits beside `home` and a member, both directions at the client.
    #[must_use]
    pub fn of_client(topology: &Topology, home: ReplicaId, member: ReplicaId) -> Self {
        let (home, member) = (home.index(), member.index());
        Self { out: topology.route(home, member), back: Some(topology.route(member, home)) }
    }
}

/// As [`super::outbox::drain`], late. What had not left the line when the connection fails goes
/// back.
pub(super) async fn drain<W: AsyncWrite + Unpin>(
    outbox: &Outbox,
    mut writer: W,
    lane: Lane,
    metrics: &Metrics,
    write_timeout: Duration,
    route: Route,
) -> io::Error {
    let mut scratch = BytesMut::new();
    let mut held = Held { outbox, line: Line::new(route), arrived: Vec::new() };
    loop {
        let due = held.line.due().map(|due| origin() + due.saturating_sub(GRAIN));
        tokio::select! {
            biased;
            () = sleep_until(due.unwrap_or_else(origin)), if due.is_some() => {
                held.collect();
                let write = write_batch(&mut writer, &held.arrived, &mut scratch, write_timeout);
                if let Err(error) = write.await {
                    return error;
                }
                let written = std::mem::take(&mut held.arrived);
                metrics.sent(lane, written.len(), written.iter().map(Frame::len).sum());
            }
            batch = outbox.batch(), if held.line.has_room() => held.depart(batch),
        }
    }
}

/// Frames taken from a queue and not written; back into the queue when that is cut short.
struct Held<'a> {
    outbox: &'a Outbox,
    line: Line<Frame>,
    /// Frames that are at the other end, as far as the emulation goes.
    arrived: Vec<Frame>,
}

impl Held<'_> {
    fn depart(&mut self, batch: Vec<Frame>) {
        let now = origin().elapsed();
        for frame in batch {
            self.line.push(now, frame.len(), frame);
        }
    }

    fn collect(&mut self) {
        let now = origin().elapsed() + GRAIN;
        while let Some(frame) = self.line.pop(now) {
            self.arrived.push(frame);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut frames = std::mem::take(&mut self.arrived);
        frames.extend(self.line.take_all());
        self.outbox.put_back(frames);
    }
}

/// Reads what another stream brings, late.
#[derive(Debug)]
pub(super) struct DelayedReader<R> {
    stream: R,
    line: Line<Bytes>,
    /// Arrived and not yet taken.
    arrived: Bytes,
    buffer: BytesMut,
    /// The stream has ended: well, or with an error that is told once everything before it is.
    ended: Option<io::Result<()>>,
    timer: Pin<Box<Sleep>>,
}

impl<R: AsyncRead + Unpin> DelayedReader<R> {
    /// Delays the bytes of `stream` by `route`.
    pub(super) fn new(stream: R, route: Route) -> Self {
        Self {
            stream,
            line: Line::new(route),
            arrived: Bytes::new(),
            buffer: BytesMut::new(),
            ended: None,
            timer: Box::pin(sleep_until(origin())),
        }
    }

    /// Takes in what the stream has, as far as there is room for it.
    fn fill(&mut self, cx: &mut Context<'_>) {
        while self.ended.is_none() && self.line.has_room() {
            self.buffer.resize(READ_BYTES, 0);
            let mut part = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut self.stream).poll_read(cx, &mut part) {
                Poll::Pending => return,
                Poll::Ready(Err(error)) => self.ended = Some(Err(error)),
                Poll::Ready(Ok(())) if part.filled().is_empty() => self.ended = Some(Ok(())),
                Poll::Ready(Ok(())) => {
                    let bytes = Bytes::copy_from_slice(part.filled());
                    self.line.push(origin().elapsed(), bytes.len(), bytes);
                }
            }
        }
    }

    /// Waits for the next bytes to arrive; ready without any when nothing is under way.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.arrived.is_empty() {
            self.fill(cx);
            let Some(due) = self.line.due() else {
                return if self.ended.is_some() { Poll::Ready(()) } else { Poll::Pending };
            };
            if let Some(bytes) = self.line.pop(origin().elapsed() + GRAIN) {
                self.arrived = bytes;
                continue;
            }
            self.timer.as_mut().reset(origin() + due.saturating_sub(GRAIN));
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for DelayedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.poll_arrival(cx).is_pending() {
            return Poll::Pending;
        }
        if self.arrived.is_empty() {
            return Poll::Ready(self.ended.take().unwrap_or(Ok(())));
        }
        let count = self.arrived.len().min(buffer.remaining());
        buffer.put_slice(&self.arrived[..count]);
        self.arrived.advance(count);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
