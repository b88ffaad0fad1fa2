use super::*;
use crate::transport::outbox::Full;
use prometheus_client::metrics::counter::Counter;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

const DELAY: Duration = Duration::from_millis(60);
const TIMEOUT: Duration = Duration::from_secs(20);

fn route(delay: Duration) -> Route {
    Topology::uniform(2, delay).route(0, 1)
}

fn frame(mark: u8, bytes: usize) -> Frame {
    Frame(vec![Bytes::from(vec![mark; bytes])])
}

fn outbox() -> Outbox {
    Outbox::new(1_000, 1 << 30, Full::DropOldest, Counter::default())
}

/// Runs a line from `outbox` until `read` is done.
async fn while_draining<T>(
    outbox: &Outbox,
    writer: impl AsyncWrite + Unpin,
    read: impl Future<Output = T>,
) -> T {
    let metrics = Metrics::new();
    let draining = drain(outbox, writer, Lane::Votes, &metrics, TIMEOUT, route(DELAY));
    tokio::select! {
        error = draining => panic!("{error}"),
        read = timeout(TIMEOUT, read) => read.expect("in time"),
    }
}

#[tokio::test]
async fn frames_arrive_late_and_in_order() {
    let (writer, mut reader) = tokio::io::duplex(1 << 20);
    let outbox = outbox();
    let sent = Instant::now();
    (1..=3).for_each(|mark| outbox.push(frame(mark, 4)));
    let mut bytes = [0; 12];
    while_draining(&outbox, writer, reader.read_exact(&mut bytes)).await.unwrap();
    assert!(sent.elapsed() + GRAIN >= DELAY, "{:?}", sent.elapsed());
    assert_eq!(bytes, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
}

#[tokio::test]
async fn what_is_under_way_when_the_connection_fails_goes_back_in_order() {
    let (writer, reader) = tokio::io::duplex(1 << 20);
    let outbox = outbox();
    (1..=3).for_each(|mark| outbox.push(frame(mark, 4)));
    let metrics = Metrics::new();
    {
        let draining = drain(&outbox, writer, Lane::Votes, &metrics, TIMEOUT, route(TIMEOUT));
        assert!(timeout(Duration::from_millis(20), draining).await.is_err(), "still on the way");
    }
    drop(reader);
    outbox.push(frame(4, 4));
    let frames = outbox.batch().await;
    let marks: Vec<u8> = frames.iter().map(|frame| frame.0[0][0]).collect();
    assert_eq!(marks, [1, 2, 3, 4]);
}

#[tokio::test]
async fn a_line_holds_what_the_link_does_and_the_rest_stays_in_the_queue() {
    let (writer, _reader) = tokio::io::duplex(1);
    let outbox = outbox();
    // A second of a gigabit is 125 MB.
    let frames = 40;
    (0..frames).for_each(|_| outbox.push(frame(1, 5_000_000)));
    let metrics = Metrics::new();
    let second = route(Duration::from_secs(1));
    let draining = drain(&outbox, writer, Lane::Bulk, &metrics, TIMEOUT, second);
    tokio::pin!(draining);
    // It takes all that it has room for before it waits for the first time.
    std::future::poll_fn(|cx| {
        assert!(draining.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    assert_eq!(outbox.len(), frames - 25);
}

#[tokio::test]
async fn a_reader_hears_everything_late_and_then_the_end() {
    let (mut writer, reader) = tokio::io::duplex(1 << 20);
    let mut reader = DelayedReader::new(reader, route(DELAY));
    let sent = Instant::now();
    let text: Vec<u8> = (0..100_000).map(|n| (n % 251) as u8).collect();
    writer.write_all(&text).await.unwrap();
    drop(writer);
    let mut heard = Vec::new();
    timeout(TIMEOUT, reader.read_to_end(&mut heard)).await.expect("in time").unwrap();
    assert!(sent.elapsed() + GRAIN >= DELAY, "{:?}", sent.elapsed());
    assert!(heard == text);
}
