use super::super::contacts::Contacts;
use super::super::hello::{Asked, receive, receive_asked};
use super::super::tests::{NETWORK, network, votes_to_first};
use super::*;
use crate::tls;
use quorate_crypto::IdentitySecret;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server;

const ME: ReplicaId = ReplicaId(1);
/// The member that is looked for.
const MEMBER: ReplicaId = ReplicaId(0);

fn identity(member: u16) -> IdentitySecret {
    IdentitySecret::from_seed([10 + member as u8; 32])
}

fn acceptor(member: ReplicaId) -> TlsAcceptor {
    TlsAcceptor::from(tls::listener(&identity(member.0)).unwrap())
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// Member that is reached at `socket` and may relay.
fn detour(member: u16, socket: &TcpListener) -> Detour {
    Detour {
        member: ReplicaId(member),
        address: socket.local_addr().unwrap().to_string(),
        tls: Dialer::new(&identity(ME.0)).unwrap().to(identity(member).public()).unwrap(),
        up: Arc::new(AtomicBool::new(true)),
        over: Arc::default(),
    }
}

/// A member's link for votes to [`MEMBER`], which listens at `socket`.
fn link_with(detours: Vec<Detour>, socket: &TcpListener) -> Link {
    let tls = Dialer::new(&identity(ME.0)).unwrap().to(identity(MEMBER.0).public());
    let detours = Detours::new(detours, &Arc::new(Contacts::new(8)));
    Link { detours, ..votes_to_first(&network(), socket, tls) }
}

/// The next connection of a member that is asked to relay, once it has said to whom.
async fn asked(member: ReplicaId, socket: &TcpListener) -> server::TlsStream<TcpStream> {
    let (tcp, _) = socket.accept().await.unwrap();
    let mut stream = acceptor(member).accept(tcp).await.unwrap();
    let asked = receive_asked(&mut stream, NETWORK, Peer::Replica(ME)).await.unwrap();
    assert_eq!(asked, Ok(Asked::Relay(MEMBER)));
    stream
}

async fn answer(stream: &mut (impl AsyncWrite + Unpin), answer: Answer) {
    stream.write_all(&[answer as u8]).await.unwrap();
    stream.flush().await.unwrap();
}

/// A member that relays nothing, and tells of being asked.
async fn refuse(member: ReplicaId, socket: TcpListener, met: UnboundedSender<ReplicaId>) {
    loop {
        let mut stream = asked(member, &socket).await;
        let _ = met.send(member);
        answer(&mut stream, Answer::OutOfReach).await;
    }
}

/// A member that is dead behind its address, and tells of being tried.
async fn die(socket: TcpListener, met: UnboundedSender<ReplicaId>) {
    while socket.accept().await.is_ok() {
        let _ = met.send(MEMBER);
    }
}

#[test]
fn waits_grow_to_two_seconds_and_differ() {
    let mut backoff = Backoff::new();
    let waits: Vec<_> = (0..10).map(|_| backoff.next()).collect();
    assert!(waits[0] >= BACKOFF_MIN / 2 && waits[0] <= BACKOFF_MIN);
    assert!(waits[9] >= BACKOFF_MAX / 2 && waits[9] <= BACKOFF_MAX);
    backoff.reset();
    assert!(backoff.next() <= BACKOFF_MIN);
}

#[tokio::test]
async fn a_dead_member_has_two_others_asked_at_a_time_and_all_of_them_in_turn() {
    let (met, mut meetings) = unbounded_channel();
    let mut detours = Vec::new();
    for member in 2..7 {
        let socket = listener().await;
        detours.push(detour(member, &socket));
        tokio::spawn(refuse(ReplicaId(member), socket, met.clone()));
    }
    let socket = listener().await;
    let link = tokio::spawn(link_with(detours, &socket).run());
    tokio::spawn(die(socket, met));

    let (mut asked, mut in_a_row) = (Vec::new(), 0);
    while asked.len() < 5 {
        let member = meetings.recv().await.unwrap();
        in_a_row = if member == MEMBER { 0 } else { in_a_row + 1 };
        assert!(in_a_row <= 2, "{member} is asked by one attempt with two others");
        asked.extend((member != MEMBER).then_some(member.0));
    }
    assert_eq!(asked, [2, 3, 4, 5, 6]);
    link.abort();
}

/// The direct attempt gets no answer for an hour; what the link has meanwhile is a connection.
#[tokio::test]
async fn where_packets_vanish_the_way_over_another_is_not_held_up() {
    let (silent, relay) = (listener().await, listener().await);
    let hour = Duration::from_secs(3_600);
    let link = link_with(vec![detour(2, &relay)], &silent);
    let (up, over) = (Arc::clone(&link.up), Arc::clone(&link.over));
    let link = tokio::spawn(Link { timeouts: (hour, hour), ..link }.run());

    let mut near = asked(ReplicaId(2), &relay).await;
    answer(&mut near, Answer::Welcome).await;
    let mut far = acceptor(MEMBER).accept(near).await.unwrap();
    let hello = receive(&mut far, NETWORK, Peer::Replica(ME)).await.unwrap();
    assert_eq!(hello, Ok(Hello::new(NETWORK, Lane::Votes)));
    answer(&mut far, Answer::Welcome).await;
    while !(up.load(Ordering::Relaxed) && over.is_somebody()) {
        sleep(Duration::from_millis(1)).await;
    }
    link.abort();
}

/// What answers late is taken all the same, with nobody to relay.
#[tokio::test]
async fn a_direct_way_that_is_slow_is_taken() {
    let (member, relay) = (listener().await, listener().await);
    let (met, mut meetings) = unbounded_channel();
    let hour = Duration::from_secs(3_600);
    let link = link_with(vec![detour(2, &relay)], &member);
    let link = Link { timeouts: (hour, hour), ..link };
    tokio::spawn(refuse(ReplicaId(2), relay, met));
    let up = Arc::clone(&link.up);
    let link = tokio::spawn(link.run());
    let (tcp, _) = member.accept().await.unwrap();
    assert_eq!(meetings.recv().await, Some(ReplicaId(2)), "asked beside it");
    let mut stream = acceptor(MEMBER).accept(tcp).await.unwrap();
    receive(&mut stream, NETWORK, Peer::Replica(ME)).await.unwrap().unwrap();
    answer(&mut stream, Answer::Welcome).await;
    while !up.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(1)).await;
    }
    link.abort();
}
