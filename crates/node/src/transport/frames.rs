//! Reading frames: every length is checked before anything is allocated, every frame has a
//! deadline.

use super::contacts::probe_bytes_max;
use super::{Limits, Network};
use crate::metrics::Metrics;
use crate::pool::{Delivery, MessageSink, Permit, Pool};
use bytes::{Buf, Bytes, BytesMut};
use quorate_engine::FrameTag;
use quorate_types::{Lane, Peer, Request};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

const LENGTH_BYTES: usize = 4;
const HEAD_BYTES: usize = LENGTH_BYTES + 1;
const READ_BYTES: usize = 64 * 1024;
const MIB: usize = 1024 * 1024;

/// Reason that a connection is cut.
#[derive(Debug, thiserror::Error)]
pub enum Cut {
    /// The other end is gone, cleanly or not.
    #[error("the connection ended: {0}")]
    Ended(#[from] io::Error),
    /// A frame without content.
    #[error("a frame of no bytes")]
    Empty,
    /// A tag that does not exist, or not in this lane.
    #[error("a frame with the unknown tag {0}")]
    UnknownTag(u8),
    /// Longer than its tag allows. Nothing was allocated.
    #[error("a frame of {bytes} bytes with the tag {tag}, which allows {max}")]
    TooLarge {
        /// Length that the frame announces, in bytes.
        bytes: usize,
        /// Tag of the frame.
        tag: u8,
        /// Cap of the tag on this lane, in bytes.
        max: usize,
    },
    /// Begun and not finished in time.
    #[error("a frame that was not complete in time")]
    Slow,
    /// A message on it was refused, or nothing is taken from its peer for what it sent before.
    #[error("a message that was refused")]
    Refused,
}

impl Cut {
    /// A name for metrics; `None` when nobody did anything wrong.
    #[must_use]
    pub fn fault(&self) -> Option<&'static str> {
        match self {
            Self::Ended(_) | Self::Refused => None,
            Self::Empty => Some("empty-frame"),
            Self::UnknownTag(_) => Some("unknown-tag"),
            Self::TooLarge { .. } => Some("oversized-frame"),
            Self::Slow => Some("slow-frame"),
        }
    }
}

/// The longest content of a frame with this tag in this lane; `None` where there is none.
#[must_use]
pub fn content_bytes_max(lane: Lane, tag: u8) -> Option<usize> {
    let lane_max = match lane {
        Lane::Votes => MIB,
        // What clients send; replies to them are bounded by their tag.
        Lane::Client => (1 + Request::WIRE_BYTES_MAX).max(MIB),
        Lane::Consensus | Lane::Bulk => usize::MAX,
    };
    if lane == Lane::Votes
        && let Some(max) = probe_bytes_max(tag)
    {
        return Some(max);
    }
    Some(FrameTag::parse(tag)?.rules().bytes_max.min(lane_max))
}

/// Most bytes of one connection under way from its reader to the machine. Never less than the
/// largest frame that the lane is meant for.
#[must_use]
pub fn budget(from: Peer, lane: Lane) -> usize {
    match (from, lane) {
        (Peer::Client(_) | Peer::Learner(_), _) => 512 * 1024,
        (_, Lane::Votes | Lane::Client) => 2 * MIB,
        (_, Lane::Consensus) => 6 * MIB,
        (_, Lane::Bulk) => 6 * MIB,
    }
}

/// Bytes that the smallest frame is taken for while it is under way: what it occupies here besides.
const FRAME_BYTES_MIN: usize = 512;

/// Header of a frame: its length and tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The bytes of tag and content, within the tag's cap.
    pub bytes: usize,
    /// Tag of the frame, which says its kind.
    pub tag: u8,
}

/// Whether the reader of a connection may check the next frame itself (ADR 49): for a fifth of its
/// time at most, since the network's thread has other connections to serve.
#[derive(Debug, Default)]
struct OwnChecks {
    not_before: Option<Instant>,
}

impl OwnChecks {
    /// Time that a check takes, so many times over, until the next one.
    const REST: u32 = 4;

    fn may_check(&self, now: Instant) -> bool {
        self.not_before.is_none_or(|not_before| now >= not_before)
    }

    /// A check began and ended.
    fn checked(&mut self, began: Instant, ended: Instant) {
        self.not_before = Some(ended + Self::REST * ended.duration_since(began));
    }
}

/// Takes frames off a stream.
#[derive(Debug)]
pub struct FrameReader<R, C> {
    stream: R,
    /// Read and not yet taken: several small frames at a time.
    buffer: BytesMut,
    cap: C,
    frame_timeout: Duration,
}

impl<R: AsyncRead + Unpin, C: Fn(u8) -> Option<usize>> FrameReader<R, C> {
    /// A reader of frames that have at most as many bytes as `cap` says of their tag, `None` for a
    /// tag that is not expected. A frame once begun has `frame_timeout` to be complete.
    pub fn new(stream: R, cap: C, frame_timeout: Duration) -> Self {
        Self { stream, buffer: BytesMut::with_capacity(READ_BYTES), cap, frame_timeout }
    }

    /// Returns `true` if nothing of another frame has been read.
    fn is_drained(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Waits, without limit, for a frame to begin, and checks what it announces.
    ///
    /// # Errors
    /// When the stream ends or the frame is refused.
    pub async fn begin(&mut self) -> Result<Head, Cut> {
        if self.buffer.is_empty() {
            self.fill().await?;
        }
        let frame_timeout = self.frame_timeout;
        timeout(frame_timeout, self.fill_to(HEAD_BYTES)).await.map_err(|_| Cut::Slow)??;
        let length: [u8; LENGTH_BYTES] = self.buffer[..LENGTH_BYTES].try_into().expect("4 bytes");
        let bytes = u32::from_le_bytes(length) as usize;
        let tag = self.buffer[LENGTH_BYTES];
        if bytes == 0 {
            return Err(Cut::Empty);
        }
        let max = (self.cap)(tag).ok_or(Cut::UnknownTag(tag))?;
        if bytes > max {
            return Err(Cut::TooLarge { bytes, tag, max });
        }
        Ok(Head { bytes, tag })
    }

    /// Takes the frame that [`FrameReader::begin`] announced: tag and content, in a buffer of
    /// exactly their size.
    ///
    /// # Errors
    /// When the stream ends or the frame is not complete in time.
    pub async fn finish(&mut self, head: Head) -> Result<Bytes, Cut> {
        let frame_timeout = self.frame_timeout;
        timeout(frame_timeout, self.take(head)).await.map_err(|_| Cut::Slow)?
    }

    async fn take(&mut self, head: Head) -> Result<Bytes, Cut> {
        self.buffer.advance(LENGTH_BYTES);
        let mut content = BytesMut::with_capacity(head.bytes);
        let here = self.buffer.len().min(head.bytes);
        content.extend_from_slice(&self.buffer[..here]);
        self.buffer.advance(here);
        let mut rest = (&mut self.stream).take((head.bytes - here) as u64);
        while content.len() < head.bytes {
            if rest.read_buf(&mut content).await? == 0 {
                return Err(ended());
            }
        }
        Ok(content.freeze())
    }

    async fn fill_to(&mut self, bytes: usize) -> Result<(), Cut> {
        while self.buffer.len() < bytes {
            self.fill().await?;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<(), Cut> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(ended()),
            _ => Ok(()),
        }
    }
}

fn ended() -> Cut {
    Cut::Ended(io::ErrorKind::UnexpectedEof.into())
}

/// Context that reading a connection needs besides the connection.
#[derive(Clone, Debug)]
pub struct IngressContext {
    /// Pool that checks the frames.
    pub pool: Pool,
    /// Receiver of the checked messages.
    pub sink: Arc<dyn MessageSink>,
    /// Counters for refused frames and cut connections.
    pub metrics: Arc<Metrics>,
    /// Time limits of the connection.
    pub limits: Limits,
    /// Share of the bounds that all clients have together.
    pub clients_share: Arc<Semaphore>,
    /// Network that takes note of whoever is heard and answers probes, in a validator.
    network: Option<Arc<Network>>,
}

impl IngressContext {
    /// An ingress whose clients may have 32 MiB under way together.
    #[must_use]
    pub fn new(
        pool: Pool,
        sink: Arc<dyn MessageSink>,
        metrics: Arc<Metrics>,
        limits: Limits,
    ) -> Self {
        let clients_share = Arc::new(Semaphore::new(32 * MIB));
        Self { pool, sink, metrics, limits, clients_share, network: None }
    }

    /// As it is, but for members that are heard and probed through this network.
    #[must_use]
    pub fn beside(self, network: &Arc<Network>) -> Self {
        Self { network: Some(Arc::clone(network)), ..self }
    }

    /// Reads frames into the pool until the connection is cut.
    pub async fn read<R: AsyncRead + Unpin>(&self, stream: R, from: Peer, lane: Lane) -> Cut {
        self.read_some(stream, from, lane, |_| true).await
    }

    /// As [`IngressContext::read`], but for frames that are not wanted: those are dropped.
    pub async fn read_some<R: AsyncRead + Unpin>(
        &self,
        stream: R,
        from: Peer,
        lane: Lane,
        is_wanted: impl Fn(&Bytes) -> bool,
    ) -> Cut {
        let cut = Arc::new(Notify::new());
        let cap = move |tag| content_bytes_max(lane, tag);
        let mut reader = FrameReader::new(stream, cap, self.limits.frame);
        let share = Arc::new(Semaphore::new(budget(from, lane)));
        let mut own_checks = OwnChecks::default();
        loop {
            let next = async {
                let head = reader.begin().await?;
                // Before the content is allocated; the frame's own time does not run meanwhile.
                let own = own_share(&share, from, lane, head.bytes).await;
                let content = reader.finish(head).await?;
                // Only now: a client that stops in the middle of a frame holds nothing of the
                // others'.
                let common = self.common_share(from, content.len()).await;
                Ok::<_, Cut>((content, Permit::new(own, common)))
            };
            let received = tokio::select! {
                received = next => received,
                () = cut.notified() => Err(Cut::Refused),
            };
            match received {
                Ok((content, permit)) => {
                    self.metrics.received(lane, content.len());
                    if self.is_probe(from, &content) || !is_wanted(&content) {
                        continue;
                    }
                    let (sink, cut) = (Arc::clone(&self.sink), Arc::clone(&cut));
                    let received = Instant::now();
                    let delivery = Delivery { from, lane, content, sink, cut, received, permit };
                    if !self.hand_in(delivery, reader.is_drained(), &mut own_checks) {
                        return Cut::Refused;
                    }
                }
                Err(cut) => {
                    if let Some(fault) = cut.fault() {
                        self.metrics.cut(fault);
                    }
                    return cut;
                }
            }
        }
    }

    /// Hands a frame to the pool, or has it checked here; `false` when nothing is taken from its
    /// sender now.
    fn hand_in(&self, delivery: Delivery, is_last: bool, own_checks: &mut OwnChecks) -> bool {
        let received = delivery.received;
        if !is_last || !own_checks.may_check(received) {
            return self.pool.deliver(delivery);
        }
        let is_taken = self.pool.check_or_deliver(delivery);
        own_checks.checked(received, Instant::now());
        is_taken
    }

    /// Takes note that a member was heard; `true` if there was nothing else in the frame.
    fn is_probe(&self, from: Peer, content: &[u8]) -> bool {
        match (&self.network, from) {
            (Some(network), Peer::Replica(member)) => network.hear(member, content),
            _ => content.first().is_some_and(|tag| probe_bytes_max(*tag).is_some()),
        }
    }

    async fn common_share(&self, from: Peer, bytes: usize) -> Option<OwnedSemaphorePermit> {
        match from {
            Peer::Client(_) => {
                let most = budget(from, Lane::Client);
                take_share(&self.clients_share, bytes.clamp(FRAME_BYTES_MIN, most)).await
            }
            Peer::Replica(_) | Peer::Learner(_) => None,
        }
    }
}

async fn own_share(
    share: &Arc<Semaphore>,
    from: Peer,
    lane: Lane,
    bytes: usize,
) -> Option<OwnedSemaphorePermit> {
    take_share(share, bytes.clamp(FRAME_BYTES_MIN, budget(from, lane))).await
}

/// The semaphores are never closed: there is always a permit, sooner or later.
async fn take_share(share: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let bytes = u32::try_from(bytes).expect("budgets are megabytes");
    Arc::clone(share).acquire_many_owned(bytes).await.ok()
}

#[cfg(test)]
mod tests {
    use super::OwnChecks;
    use std::time::{Duration, Instant};

    /// Whatever checks take, the network's thread has four fifths of its time for others.
    #[test]
    fn a_reader_checks_for_a_fifth_of_its_time() {
        let (start, check) = (Instant::now(), Duration::from_millis(2));
        let (mut own_checks, mut now, mut checking) = (OwnChecks::default(), start, Duration::ZERO);
        assert!(own_checks.may_check(now), "the first");
        for _ in 0..1_000 {
            if own_checks.may_check(now) {
                own_checks.checked(now, now + check);
                (now, checking) = (now + check, checking + check);
            } else {
                now += Duration::from_micros(100);
            }
        }
        let share = checking.as_secs_f64() / now.duration_since(start).as_secs_f64();
        assert!((0.18..0.22).contains(&share), "{share}");
    }
}
