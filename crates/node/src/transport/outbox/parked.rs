//! A connection whose task waits for frames, in the hands of whoever has one.

use crate::metrics::Metrics;
use bytes::{Buf, BytesMut};
use quorate_engine::Frame;
use quorate_types::Lane;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::io::AsyncWrite;

/// The writing half of a connection, when no task polls it.
pub(super) struct Parked {
    pub(super) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// The last frame, if the connection did not take all of it at once or has failed: the task's
    /// to see to.
    pub(super) stuck: Vec<Frame>,
    /// Bytes of it that the connection has not taken.
    pub(super) rest: BytesMut,
    lane: Lane,
    metrics: Arc<Metrics>,
}

impl Parked {
    pub(super) fn new(
        writer: impl AsyncWrite + Send + Unpin + 'static,
        lane: Lane,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let (writer, metrics) = (Box::new(writer), Arc::clone(metrics));
        Self { writer, stuck: Vec::new(), rest: BytesMut::new(), lane, metrics }
    }

    /// Writes a frame without waiting, as far as the connection takes it now.
    pub(super) fn write(&mut self, frame: Frame) {
        frame.0.iter().for_each(|piece| self.rest.extend_from_slice(piece));
        // The task polls again whatever is not ready or has failed, with a waker of its own.
        let mut context = Context::from_waker(Waker::noop());
        match self.poll_rest(&mut context) {
            Poll::Ready(Ok(())) => self.metrics.sent(self.lane, 1, frame.len()),
            Poll::Ready(Err(_)) | Poll::Pending => self.stuck.push(frame),
        }
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut writer = Pin::new(&mut self.writer);
        while !self.rest.is_empty() {
            match writer.as_mut().poll_write(context, &self.rest) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(written)) => self.rest.advance(written),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        writer.poll_flush(context)
    }
}

impl fmt::Debug for Parked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Parked({:?})", self.lane)
    }
}
