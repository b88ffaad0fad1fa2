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
