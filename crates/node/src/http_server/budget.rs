//! Bytes that a server keeps for a connection.
//!
//! A WebSocket carries any number of messages: each is kept until it is answered, and the answers
//! until the other side reads them. Whoever answers counts both in the connection's
//! [`ConnectionBudget`]. One that has spent it is not read from until less is kept, so that its
//! messages wait where they were sent, as TCP has senders wait for readers. Nothing that was read
//! is refused for it.

use parking_lot::Mutex;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Bytes of messages under way, and of answers that were not read, from which on a connection is
/// not read from. The last of each come on top.
const BYTES_MAX: usize = 4 << 20;

/// Bytes that a message counts for beside its own: what it takes while it is answered. Thousands
/// may be under way, for some wait for a block.
const MESSAGE_BYTES: usize = 1 << 10;

/// Budget of one connection, among the extensions of its requests. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ConnectionBudget(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    kept: Mutex<Kept>,
    /// Told when answers were read.
    read: Notify,
}

#[derive(Debug, Default)]
struct Kept {
    under_way: usize,
    answers: usize,
    /// Whoever would read more.
    reader: Option<Waker>,
}

impl Kept {
    fn is_spent(&self) -> bool {
        self.under_way >= BYTES_MAX || self.answers >= BYTES_MAX
    }

    /// Has more be read, where that is possible again.
    fn go_on(&mut self) {
        if !self.is_spent()
            && let Some(reader) = self.reader.take()
        {
            reader.wake();
        }
    }
}

/// A message that is being answered, until it is dropped.
#[derive(Debug)]
pub struct MessageUnderWay {
    budget: ConnectionBudget,
    bytes: usize,
}

impl ConnectionBudget {
    /// Counts a message of so many bytes.
    #[must_use]
    pub fn begin(&self, bytes: usize) -> MessageUnderWay {
        let bytes = bytes + MESSAGE_BYTES;
        self.0.kept.lock().under_way += bytes;
        MessageUnderWay { budget: self.clone(), bytes }
    }

    /// Returns `true` if so much was answered and not read that nothing more should be answered.
    #[must_use]
    pub fn is_unread(&self) -> bool {
        self.0.kept.lock().answers >= BYTES_MAX
    }

    /// Waits until answers were read, if many were not.
    pub async fn room(&self) {
        loop {
            let read = self.0.read.notified();
            if !self.is_unread() {
                return;
            }
            read.await;
        }
    }

    /// Counts an answer of so many bytes, until they are written to the connection.
    pub fn answer(&self, bytes: usize) {
        self.0.kept.lock().answers += bytes;
    }

    /// So many bytes were written. Among them are frames and what subscribers are told, so that
    /// answers count for a little less than they are.
    fn written(&self, bytes: usize) {
        let mut kept = self.0.kept.lock();
        kept.answers = kept.answers.saturating_sub(bytes);
        kept.go_on();
        if kept.answers < BYTES_MAX {
            self.0.read.notify_waiters();
        }
    }

    /// Waits until more may be read.
    fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut kept = self.0.kept.lock();
        if kept.is_spent() {
            kept.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }
}

impl Drop for MessageUnderWay {
    fn drop(&mut self) {
        let mut kept = self.budget.0.kept.lock();
        kept.under_way -= self.bytes;
        kept.go_on();
    }
}

/// A connection that is read from within its budget.
#[derive(Debug)]
pub(super) struct Metered<W> {
    pub(super) wire: W,
    pub(super) budget: ConnectionBudget,
}

impl<W: AsyncRead + Unpin> AsyncRead for Metered<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.budget.poll_room(context));
        Pin::new(&mut self.wire).poll_read(context, buffer)
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Metered<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.wire).poll_write(context, bytes))?;
        self.budget.written(written);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.wire).poll_write_vectored(context, parts))?;
        self.budget.written(written);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    fn metered() -> (Metered<DuplexStream>, DuplexStream) {
        let (wire, other) = duplex(1 << 20);
        (Metered { wire, budget: ConnectionBudget::default() }, other)
    }

    /// What a future comes to if it is polled once.
    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ready) => Some(ready),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn who_has_much_under_way_is_read_from_when_it_is_answered() {
        let (mut metered, mut other) = metered();
        let budget = metered.budget.clone();
        other.write_all(&[7; 3]).await.expect("written");
        let mut byte = [0];
        let first = budget.begin(BYTES_MAX / 2);
        assert!(now(metered.read(&mut byte)).is_some());
        let second = budget.begin(BYTES_MAX / 2);
        assert!(now(metered.read(&mut byte)).is_none(), "two halves and what they take");
        let reading = tokio::spawn(async move {
            metered.read_exact(&mut byte).await.expect("read");
            metered
        });
        tokio::task::yield_now().await;
        assert!(!reading.is_finished());
        drop(first);
        let mut metered = reading.await.expect("goes on");
        drop(second);
        assert!(now(metered.read(&mut byte)).is_some());
    }

    #[tokio::test]
    async fn who_does_not_read_is_answered_no_more_until_it_does() {
        let (mut metered, mut other) = metered();
        let budget = metered.budget.clone();
        assert!(now(budget.room()).is_some());
        budget.answer(BYTES_MAX);
        assert!(budget.is_unread() && now(budget.room()).is_none());
        let mut byte = [0];
        other.write_all(&[7]).await.expect("written");
        assert!(now(metered.read(&mut byte)).is_none(), "nor is anything read");
        let waiting = budget.clone();
        let waiting = tokio::spawn(async move { waiting.room().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        metered.write_all(&[1; 10]).await.expect("written");
        waiting.await.expect("goes on");
        assert!(now(metered.read(&mut byte)).is_some());
    }

    /// Every small message counts.
    #[test]
    fn messages_without_content_are_bounded() {
        let budget = ConnectionBudget::default();
        let kept: Vec<_> = (0..BYTES_MAX / MESSAGE_BYTES).map(|_| budget.begin(0)).collect();
        let mut context = Context::from_waker(Waker::noop());
        assert!(budget.poll_room(&mut context).is_pending());
        drop(kept);
        assert!(budget.poll_room(&mut context).is_ready());
    }
}
