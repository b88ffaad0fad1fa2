//! Accepting: who is at the other end, and whether they may stay.

use super::Network;
use super::frames::IngressContext;
use super::hello::{self, Answer};
use super::outbox::{Outbox, drain};
use super::pending::{AcceptedConnection, Pending};
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

/// Pause of the listener when the system has no connection to give (no descriptors left).
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Members and learners that are known by their keys.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Members of the committee, by identity key.
    pub committee: Arc<Committee>,
    /// Learners, which may follow without being members.
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

/// Listener for peers, with the context that its connections need.
pub struct Listener {
    tls: TlsAcceptor,
    peers: Peers,
    network: Arc<Network>,
    ingress: IngressContext,
    pending: Pending,
    connected: Connected,
}

impl Listener {
    /// A listener that hands frames to `ingress` and lets clients be answered through `network`.
    #[must_use]
    pub fn new(
        tls: Arc<ServerConfig>,
        peers: Peers,
        network: Arc<Network>,
        ingress: IngressContext,
    ) -> Self {
        let pending = Pending::new(ingress.limits.handshakes_max);
        let connected = Connected::default();
        Self { tls: TlsAcceptor::from(tls), peers, network, ingress, pending, connected }
    }

    /// Accepts connections, for ever.
    pub async fn run(self, socket: TcpListener) {
        let listener = Arc::new(self);
        loop {
            match socket.accept().await {
                Ok((tcp, from)) => listener.accept(tcp, from),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(ACCEPT_REST).await;
                }
            }
        }
    }

    fn accept(self: &Arc<Self>, tcp: TcpStream, from: SocketAddr) {
        let (accepted, crowded) = self.pending.enter();
        if crowded {
            self.ingress.metrics.cut("too-many-handshakes");
        }
        let listener = Arc::clone(self);
        tokio::spawn(async move {
            tokio::select! {
                () = listener.receive(tcp, from, &accepted) => {}
                () = accepted.leave.notified() => tracing::debug!(%from, "connection gives way"),
            }
            listener.pending.leave(&accepted);
        });
    }

    async fn receive(&self, tcp: TcpStream, from: SocketAddr, accepted: &AcceptedConnection) {
        match self.handshake(tcp).await {
            Ok((stream, peer, lane)) => {
                self.pending.leave(accepted);
                self.serve(stream, peer, lane, accepted).await;
            }
            Err(error) => {
                self.ingress.metrics.cut("handshake");
                tracing::debug!(%from, %error, "connection turned away");
            }
        }
    }

    /// From the first byte to the end of the hello, within the limit for it.
    async fn handshake(&self, tcp: TcpStream) -> io::Result<(TlsStream<TcpStream>, Peer, Lane)> {
        let work = async {
            socket::prepare(&tcp)?;
            let mut stream = self.tls.accept(tcp).await?;
            let peer = self.identify(&stream)?;
            let answer = hello::receive(&mut stream, self.peers.committee.chain(), peer).await?;
            let barred = self.ingress.pool.is_barred(peer);
            let answer = if barred { Err(Answer::Barred) } else { answer };
            match answer {
                Ok(lane) => Ok((stream, peer, lane)),
                Err(refusal) => {
                    send_answer(&mut stream, refusal).await?;
                    Err(io::Error::other(format!("{peer:?} is refused: {refusal:?}")))
                }
            }
        };
        match timeout(self.ingress.limits.handshake, work).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "a slow handshake")),
        }
    }

    /// Peer whose key TLS proved.
    fn identify(&self, stream: &TlsStream<TcpStream>) -> io::Result<Peer> {
        let connection = stream.get_ref().1;
        let key = tls::proven_key(connection)
            .filter(|_| tls::speaks_quorate(connection))
            .ok_or_else(|| io::Error::other("not a peer of this protocol"))?;
        Ok(self.peers.named(key))
    }

    async fn serve(
        &self,
        stream: TlsStream<TcpStream>,
        peer: Peer,
        lane: Lane,
        accepted: &AcceptedConnection,
    ) {
        tracing::debug!(?peer, lane = lane_name(lane), "accepted");
        match peer {
            Peer::Replica(_) => self.serve_member(stream, peer, lane, accepted).await,
            Peer::Learner(learner) => {
                let outbox = self.network.admit_learner(learner);
                self.answer(stream, (peer, learner, lane), outbox, accepted).await;
            }
            Peer::Client(client) => self.serve_client(stream, client, accepted).await,
        }
    }

    async fn serve_member(
        &self,
        mut stream: TlsStream<TcpStream>,
        peer: Peer,
        lane: Lane,
        accepted: &AcceptedConnection,
    ) {
        let _place = self.connected.enter(peer, lane, accepted);
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let cut = self.ingress.read(stream, peer, lane).await;
        match cut.fault() {
            Some(_) => tracing::warn!(?peer, lane = lane_name(lane), %cut, "a member was cut off"),
            None => tracing::debug!(?peer, lane = lane_name(lane), %cut, "gone"),
        }
    }

    async fn serve_client(
        &self,
        mut stream: TlsStream<TcpStream>,
        client: ClientId,
        accepted: &AcceptedConnection,
    ) {
        let Some(outbox) = self.network.admit_client(client, self.ingress.limits.clients_max)
        else {
            self.ingress.metrics.cut("too-many-clients");
            let _ = send_answer(&mut stream, Answer::Full).await;
            return;
        };
        self.answer(stream, (Peer::Client(client), client, Lane::Client), outbox, accepted).await;
    }

    /// Takes questions off a connection, and writes the answers to it.
    async fn answer(
        &self,
        mut stream: TlsStream<TcpStream>,
        (peer, client, lane): (Peer, ClientId, Lane),
        outbox: Arc<Outbox>,
        accepted: &AcceptedConnection,
    ) {
        let _place = self.connected.enter(peer, lane, accepted);
        let _leave = OnDrop(|| self.network.forget_client(client, &outbox));
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let (reader, writer) = tokio::io::split(stream);
        let (metrics, write_timeout) = (&self.ingress.metrics, self.ingress.limits.write);
        tokio::select! {
            cut = self.ingress.read(reader, peer, lane) => {
                tracing::debug!(?peer, %cut, "gone");
            }
            error = drain(&outbox, writer, lane, metrics, write_timeout) => {
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

/// One connection for each peer and lane: a newer one takes the place of an older, which belongs to
/// a process that is gone or to a path that is broken.
#[derive(Debug, Default)]
struct Connected(Mutex<BTreeMap<(Peer, Lane), AcceptedConnection>>);

impl Connected {
    fn enter(&self, peer: Peer, lane: Lane, accepted: &AcceptedConnection) -> impl Drop + use<'_> {
        if let Some(older) = self.0.lock().insert((peer, lane), accepted.clone()) {
            older.leave.notify_one();
        }
        let ticket = accepted.ticket;
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
