use super::cuts::Cuts;
use super::detour::Detours;
use super::hello::{self, Answer, Hello};
use super::outbound::Link;
use super::*;
use crate::log::Outgoing;
use crate::tls::{self, Dialer};
use bytes::Bytes;
use quorate_crypto::{IdentityKey, IdentitySecret};
use quorate_engine::Frame;
use quorate_types::{Epoch, NetworkId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

pub(super) const NETWORK: (NetworkId, Epoch) = (NetworkId([5; 32]), Epoch(1));

pub(super) fn network() -> Network {
    Network::new(ReplicaId(1), 4, Arc::new(Metrics::new()))
}

fn outgoing(to: Recipients, lane: Lane) -> Outgoing {
    Outgoing { to, lane, frame: frame(1) }
}

fn frame(mark: u8) -> Frame {
    Frame(vec![Bytes::from(vec![mark; 8])])
}

fn waiting(network: &Network, peer: u16, index: usize) -> usize {
    network.lane_to(ReplicaId(peer), index).map_or(0, |(outbox, ..)| outbox.len())
}

#[test]
fn a_broadcast_goes_to_everybody_else_in_its_lane() {
    let network = network();
    network.send(outgoing(Recipients::All, Lane::Votes));
    network.send(outgoing(Recipients::One(ReplicaId(3)), Lane::Bulk));
    network.send(outgoing(Recipients::One(ReplicaId(1)), Lane::Bulk));
    network.send(outgoing(Recipients::One(ReplicaId(99)), Lane::Bulk));
    let votes: Vec<_> = (0..4).map(|peer| waiting(&network, peer, 0)).collect();
    let bulk: Vec<_> = (0..4).map(|peer| waiting(&network, peer, 2)).collect();
    assert_eq!(votes, [1, 0, 1, 1]);
    assert_eq!(bulk, [0, 0, 0, 1]);
}

#[test]
fn clients_are_answered_while_they_are_connected() {
    let network = network();
    let client = |seed| ClientId(IdentityKey([seed; 32]));
    let first = network.admit_client(client(1));
    let _other = network.admit_client(client(2));
    let second = network.admit_client(client(1));
    network.send(outgoing(Recipients::Client(client(1)), Lane::Client));
    assert_eq!((first.len(), second.len()), (0, 1));
    network.forget_client(client(1), &first);
    assert_eq!(network.clients_connected(), 2, "the older connection's end is not the newer's");
    network.forget_client(client(1), &second);
    network.send(outgoing(Recipients::Client(client(1)), Lane::Client));
    assert_eq!(second.len(), 1);
}

// testing.md 47
#[test]
fn a_member_that_takes_nothing_costs_a_bounded_queue() {
    let network = network();
    for _ in 0..10_000 {
        network.send(outgoing(Recipients::All, Lane::Votes));
        network.send(outgoing(Recipients::All, Lane::Bulk));
    }
    assert_eq!(waiting(&network, 0, 0), 4_096);
    assert_eq!(waiting(&network, 0, 2), 4_096);
    let dropped = network.metrics.drops(Peer::Replica(ReplicaId(0)), Lane::Votes).get();
    assert_eq!(dropped, 10_000 - 4_096);
}

/// The link for votes to member 0, which listens there.
pub(super) fn votes_to_first(
    network: &Network,
    at: &TcpListener,
    tls: Result<Arc<rustls::ClientConfig>, rustls::Error>,
) -> Link {
    let (outbox, up, over) = network.lane_to(ReplicaId(0), 0).unwrap();
    Link {
        peer: ReplicaId(0),
        address: at.local_addr().unwrap().to_string(),
        tls: tls.unwrap(),
        hello: Hello::new(NETWORK, Lane::Votes),
        outbox,
        up,
        replies: None,
        metrics: Arc::clone(&network.metrics),
        timeouts: (Duration::from_secs(5), Duration::from_secs(5)),
        ways: None,
        on_connect: None,
        detours: Detours::default(),
        over,
        cuts: Cuts::default(),
        refusals: None,
        on_later: None,
    }
}

async fn welcome(socket: &TcpListener, acceptor: &TlsAcceptor) -> TlsStream<TcpStream> {
    let (tcp, _) = socket.accept().await.unwrap();
    let mut stream = acceptor.accept(tcp).await.unwrap();
    let lane = hello::receive(&mut stream, NETWORK, Peer::Replica(ReplicaId(1))).await.unwrap();
    assert_eq!(lane.map(|hello| hello.lane), Ok(Lane::Votes));
    stream.write_all(&[Answer::Welcome as u8]).await.unwrap();
    stream.flush().await.unwrap();
    stream
}

async fn next_mark(stream: &mut TlsStream<TcpStream>) -> u8 {
    let mut bytes = [0; 8];
    stream.read_exact(&mut bytes).await.unwrap();
    bytes[0]
}

#[tokio::test]
async fn queued_frames_wait_for_the_peer_and_survive_its_restart() {
    let (ours, theirs) = (IdentitySecret::from_seed([1; 32]), IdentitySecret::from_seed([2; 32]));
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let acceptor = TlsAcceptor::from(tls::listener(&theirs).unwrap());
    let network = network();
    let link = votes_to_first(&network, &socket, Dialer::new(&ours).unwrap().to(theirs.public()));
    let (outbox, up) = (Arc::clone(&link.outbox), Arc::clone(&link.up));
    outbox.push(frame(1));
    let link = tokio::spawn(link.run());

    let mut first = welcome(&socket, &acceptor).await;
    assert_eq!(next_mark(&mut first).await, 1);
    assert!(up.load(Ordering::Relaxed));
    drop(first);
    while up.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(1)).await; // the loss is noticed without a write
    }
    outbox.push(frame(2));
    outbox.push(frame(3));
    let mut second = welcome(&socket, &acceptor).await;
    assert_eq!(next_mark(&mut second).await, 2);
    assert_eq!(next_mark(&mut second).await, 3);
    link.abort();
}
