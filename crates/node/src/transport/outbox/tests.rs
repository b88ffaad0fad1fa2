use super::*;

fn frame(mark: u8, bytes: usize) -> Frame {
    Frame(vec![Bytes::from(vec![mark; bytes])])
}

fn marks(outbox: &Outbox) -> Vec<u8> {
    outbox.queue.lock().frames.iter().map(|frame| frame.0[0][0]).collect()
}

fn outbox(full: Full) -> Outbox {
    Outbox::new(3, 100, full, Counter::default())
}

#[test]
fn a_full_queue_of_votes_drops_the_oldest() {
    let outbox = outbox(Full::DropOldest);
    (1..=5).for_each(|mark| outbox.push(frame(mark, 10)));
    assert_eq!(marks(&outbox), [3, 4, 5]);
    assert_eq!(outbox.dropped.get(), 2);
}

#[test]
fn a_full_queue_of_bodies_drops_the_newest() {
    let outbox = outbox(Full::DropNewest);
    (1..=5).for_each(|mark| outbox.push(frame(mark, 10)));
    assert_eq!(marks(&outbox), [1, 2, 3]);
    assert_eq!(outbox.dropped.get(), 2);
}

#[test]
fn bytes_are_bounded_too() {
    let outbox = outbox(Full::DropOldest);
    outbox.push(frame(1, 60));
    outbox.push(frame(2, 60));
    assert_eq!(marks(&outbox), [2]);
    outbox.push(frame(3, 1_000));
    assert_eq!(marks(&outbox), [3], "an oversized frame has the queue to itself");
}

#[test]
fn what_was_not_written_goes_back_to_the_front() {
    let outbox = outbox(Full::DropOldest);
    outbox.push(frame(1, 10));
    outbox.push(frame(2, 10));
    let batch = outbox.queue.lock().take(1_000);
    outbox.push(frame(3, 10));
    outbox.put_back(batch);
    assert_eq!(marks(&outbox), [1, 2, 3]);
    assert_eq!(outbox.queue.lock().bytes, 30);
}

#[test]
fn a_batch_stops_at_its_bound_but_takes_one_frame_always() {
    let outbox = Outbox::new(100, 10_000_000, Full::DropOldest, Counter::default());
    outbox.push(frame(1, 2 * BATCH_BYTES_MAX));
    (2..=4).for_each(|mark| outbox.push(frame(mark, BATCH_BYTES_MAX / 2)));
    let take = || outbox.queue.lock().take(BATCH_BYTES_MAX).len();
    assert_eq!((take(), take(), take(), take()), (1, 2, 1, 0));
}

#[tokio::test]
async fn many_small_frames_leave_in_one_write() {
    let outbox = Outbox::new(10_000, 10_000_000, Full::DropOldest, Counter::default());
    (0..1_000).for_each(|_| outbox.push(frame(7, 100)));
    let mut writes = tokio_writes::Counting::default();
    let metrics = Metrics::new();
    let work = drain(&outbox, &mut writes, Lane::Votes, &metrics, Duration::from_secs(1));
    let _ = timeout(Duration::from_millis(100), work).await;
    assert_eq!(writes.bytes, 100_000);
    assert_eq!((writes.writes, writes.flushes), (1, 1));
}

mod tokio_writes {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::AsyncWrite;

    #[derive(Default)]
    pub(super) struct Counting {
        pub(super) bytes: usize,
        pub(super) writes: usize,
        pub(super) flushes: usize,
    }

    impl AsyncWrite for Counting {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.bytes += bytes.len();
            self.writes += 1;
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushes += 1;
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}

/// A connection that takes bytes while it is open, and says nothing of it to whoever polls.
#[derive(Clone, Default)]
struct Valve(Arc<Mutex<Pipe>>);

/// What a valve took, whether it is open, and who waits for that.
#[derive(Default)]
struct Pipe {
    taken: Vec<u8>,
    is_open: bool,
    waker: Option<std::task::Waker>,
}

impl Valve {
    fn open(is_open: bool) -> Self {
        let valve = Self::default();
        valve.0.lock().is_open = is_open;
        valve
    }

    fn turn_on(&self) {
        let mut inner = self.0.lock();
        inner.is_open = true;
        inner.waker.take().into_iter().for_each(std::task::Waker::wake);
    }

    fn taken(&self) -> Vec<u8> {
        self.0.lock().taken.clone()
    }
}

impl AsyncWrite for Valve {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        let mut inner = self.0.lock();
        if !inner.is_open {
            inner.waker = Some(context.waker().clone());
            return std::task::Poll::Pending;
        }
        // Half of it each time: what is left is the caller's to keep.
        let count = bytes.len().div_ceil(2);
        inner.taken.extend_from_slice(&bytes[..count]);
        std::task::Poll::Ready(Ok(count))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

const FOREVER: Duration = Duration::from_secs(3_600);

/// Polls a task once, as a runtime would.
fn step(task: &mut std::pin::Pin<Box<impl Future<Output = io::Error>>>) {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_pending());
}

#[tokio::test]
async fn a_small_frame_is_written_by_whoever_pushes_it() {
    let (outbox, valve, metrics) = (outbox(Full::DropOldest), Valve::open(true), Arc::default());
    let mut task = Box::pin(drain_parked(&outbox, valve.clone(), Lane::Votes, &metrics, FOREVER));
    outbox.push_at_once(frame(1, 10));
    assert_eq!(marks(&outbox), [1], "there is no connection yet");
    step(&mut task);
    outbox.push_at_once(frame(2, 10));
    assert_eq!(valve.taken(), [[1; 10], [2; 10]].concat());
    outbox.push(frame(3, 10));
    outbox.push_at_once(frame(4, 10));
    assert_eq!(marks(&outbox), [3, 4], "it overtakes nothing");
    step(&mut task);
    assert_eq!(valve.taken()[20..], [[3; 10], [4; 10]].concat());
}

#[tokio::test]
async fn what_a_connection_does_not_take_at_once_is_its_tasks() {
    let (outbox, valve, metrics) = (outbox(Full::DropOldest), Valve::open(false), Arc::default());
    let mut task = Box::pin(drain_parked(&outbox, valve.clone(), Lane::Votes, &metrics, FOREVER));
    step(&mut task);
    outbox.push_at_once(frame(1, 10));
    outbox.push_at_once(frame(2, 10));
    step(&mut task);
    assert!(valve.taken().is_empty());
    valve.turn_on();
    step(&mut task);
    assert_eq!(valve.taken(), [[1; 10], [2; 10]].concat());
}

#[tokio::test]
async fn what_a_connection_has_not_taken_when_it_ends_goes_to_the_next() {
    let (outbox, metrics) = (outbox(Full::DropOldest), Arc::default());
    let mut task =
        Box::pin(drain_parked(&outbox, Valve::open(false), Lane::Votes, &metrics, FOREVER));
    step(&mut task);
    outbox.push_at_once(frame(1, 10));
    outbox.push_at_once(frame(2, 10));
    drop(task);
    assert_eq!(marks(&outbox), [1, 2]);
    outbox.push_at_once(frame(3, 10));
    assert_eq!(marks(&outbox), [1, 2, 3], "no connection is left in the queue");
    let valve = Valve::open(true);
    let mut task = Box::pin(drain_parked(&outbox, valve.clone(), Lane::Votes, &metrics, FOREVER));
    step(&mut task);
    assert_eq!(valve.taken(), [[1; 10], [2; 10], [3; 10]].concat());
}
