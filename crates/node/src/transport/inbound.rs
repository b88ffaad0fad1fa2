//! Accepting: who is at the other end, and whether they may stay.

use super::Network;
use super::frames::Intake;
use super::hello::{self, Answer};
use super::outbound::{Outbox, drain};
use super::pending::{Pending, Visit};
use super::socket;
use crate::metrics::lane_name;
use crate::tls;
use parking_lot::Mutex;
use quorate_crypto::IdentityKey;
use quorate_types::{ClientId, Committee, Lane, Peer};
use rustls::ServerConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long the listener rests when the system has no connection to give (no descriptors left).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Who is known by name.
#[derive(Clone, Debug)]
pub struct Peers {
    /// The members.
    pub committee: Arc<Committee>,
    /// Who may follow without being one.
    pub learners: BTreeSet<ClientId>,
}

impl Peers {
    /// Whoever proved this key.
    fn named(&self, key: IdentityKey) -> Peer {
        let other = ClientId(key);
        match self.committee.find(&key) {
            Some(member) => Peer::Replica(member),
            None if self.learners.contains(&other) => Peer::Learner(other),
            None => Peer::Client(other),
        }
    }
}

/// Everything that accepting needs.
pub struct Listener {
    tls: TlsAcceptor,
    peers: Peers,
    network: Arc<Network>,
    intake: Intake,
    pending: Pending,
    connected: Connected,
}

impl Listener {
    /// A listener that hands frames to `intake` and lets clients be answered through `network`.
    #[must_use]
    pub fn new(
        tls: Arc<ServerConfig>,
        peers: Peers,
        network: Arc<Network>,
        intake: Intake,
    ) -> Self {
        let pending = Pending::new(intake.limits.handshakes_max);
        let connected = Connected::default();
        Self { tls: TlsAcceptor::from(tls), peers, network, intake, pending, connected }
    }

    /// Accepts connections, for ever.
    pub async fn run(self, socket: TcpListener) {
        let listener = Arc::new(self);
        loop {
            match socket.accept().await {
                Ok((tcp, from)) => listener.take_on(tcp, from),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn take_on(self: &Arc<Self>, tcp: TcpStream, from: SocketAddr) {
        let (visit, crowded) = self.pending.enter();
        if crowded {
            self.intake.metrics.cut("too-many-handshakes");
        }
        let listener = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = listener.receive(tcp, from, &visit) => {}
                () = visit.leave.notified() => tracing::debug!(%from, "connection gives way"),
            }
            listener.pending.leave(&visit);
        });
    }

    async fn receive(&self, tcp: TcpStream, from: SocketAddr, visit: &Visit) {
        match self.get_to_know(tcp).await {
            Ok((stream, peer, lane)) => {
                self.pending.leave(visit);
                self.serve(stream, peer, lane, visit).await;
            }
            Err(error) => {
                self.intake.metrics.cut("handshake");
                tracing::debug!(%from, %error, "connection turned away");
            }
        }
    }

    /// From the first byte to the end of the hello, within the patience for it.
    async fn get_to_know(&self, tcp: TcpStream) -> io::Result<(TlsStream<TcpStream>, Peer, Lane)> {
        let work = async {
            socket::prepare(&tcp)?;
            let mut stream = self.tls.accept(tcp).await?;
            let peer = self.identify(&stream)?;
            let answer = hello::receive(&mut stream, self.peers.committee.chain(), peer).await?;
            match answer {
                Ok(lane) => Ok((stream, peer, lane)),
                Err(refusal) => {
                    send_answer(&mut stream, refusal).await?;
                    Err(io::Error::other(format!("{peer:?} is refused: {refusal:?}")))
                }
            }
        };
        match timeout(self.intake.limits.handshake, work).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "a slow handshake")),
        }
    }

    /// Whose key TLS proved.
    fn identify(&self, stream: &TlsStream<TcpStream>) -> io::Result<Peer> {
        let connection = stream.get_ref().1;
        let key = tls::proven_key(connection)
            .filter(|_| tls::speaks_quorate(connection))
            .ok_or_else(|| io::Error::other("not a peer of this protocol"))?;
        Ok(self.peers.named(key))
    }

    async fn serve(&self, stream: TlsStream<TcpStream>, peer: Peer, lane: Lane, visit: &Visit) {
        tracing::debug!(?peer, lane = lane_name(lane), "accepted");
        match peer {
            Peer::Replica(_) => self.serve_member(stream, peer, lane, visit).await,
            Peer::Learner(learner) => {
                let outbox = self.network.admit_learner(learner);
                self.answer(stream, (peer, learner, lane), outbox, visit).await;
            }
            Peer::Client(client) => self.serve_client(stream, client, visit).await,
        }
    }

    async fn serve_member(
        &self,
        mut stream: TlsStream<TcpStream>,
        peer: Peer,
        lane: Lane,
        visit: &Visit,
    ) {
        let _place = self.connected.enter(peer, lane, visit);
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let cut = self.intake.read(stream, peer, lane).await;
        match cut.fault() {
            Some(_) => tracing::warn!(?peer, lane = lane_name(lane), %cut, "a member was cut off"),
            None => tracing::debug!(?peer, lane = lane_name(lane), %cut, "gone"),
        }
    }

    async fn serve_client(
        &self,
        mut stream: TlsStream<TcpStream>,
        client: ClientId,
        visit: &Visit,
    ) {
        let Some(outbox) = self.network.admit_client(client, self.intake.limits.clients_max) else {
            self.intake.metrics.cut("too-many-clients");
            let _ = send_answer(&mut stream, Answer::Full).await;
            return;
        };
        self.answer(stream, (Peer::Client(client), client, Lane::Client), outbox, visit).await;
    }

    /// Takes questions off a connection, and writes the answers to it.
    async fn answer(
        &self,
        mut stream: TlsStream<TcpStream>,
        (peer, client, lane): (Peer, ClientId, Lane),
        outbox: Arc<Outbox>,
        visit: &Visit,
    ) {
        let _place = self.connected.enter(peer, lane, visit);
        let _leave = OnDrop(|| self.network.forget_client(client, &outbox));
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let (reader, writer) = tokio::io::split(stream);
        let (metrics, patience) = (&self.intake.metrics, self.intake.limits.write);
        tokio::select! {
            cut = self.intake.read(reader, peer, lane) => {
                tracing::debug!(?peer, %cut, "gone");
            }
            error = drain(&outbox, writer, lane, metrics, patience) => {
                tracing::debug!(?peer, %error, "gone");
            }
        }
    }
}

async fn send_answer(stream: &mut TlsStream<TcpStream>, answer: Answer) -> io::Result<()> {
    stream.write_all(&[answer as u8]).await?;
    stream.flush().await
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// One connection for each peer and lane: a newer one takes the place of an older, which belongs to a
/// process that is gone or to a path that is broken.
#[derive(Debug, Default)]
struct Connected(Mutex<BTreeMap<(Peer, Lane), Visit>>);

impl Connected {
    fn enter(&self, peer: Peer, lane: Lane, visit: &Visit) -> impl Drop + use<'_> {
        if let Some(older) = self.0.lock().insert((peer, lane), visit.clone()) {
            older.leave.notify_one();
        }
        let ticket = visit.ticket;
        OnDrop(move || {
            let mut connected = self.0.lock();
            if connected.get(&(peer, lane)).is_some_and(|current| current.ticket == ticket) {
                connected.remove(&(peer, lane));
            }
        })
    }
}

#[cfg(test)]
mod tests;
