//! Accepting: who is at the other end, and whether they may stay.

use super::frames::IngressContext;
use super::hello::{self, Answer, Asked, Ended};
use super::outbound::DIRECT_EVERY;
use super::outbox::{Outbox, drain};
use super::relay::{self, RELAYED_MAX, Relayed};
use super::socket;
use super::{Limits, MEMBER_LANES, Network, learners_max};
use crate::clients::ClientDoor;
use crate::connections::{AcceptedStream, Acceptor, ConnectionHandle};
use crate::connections::{ConnectionLimiter, ConnectionLimits};
use crate::epochs::Epochs;
use crate::metrics::{self, lane_name};
use crate::quotas::{ClientQuotas, SessionPlace};
use crate::tls;
use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::IdentityKey;
use quorate_engine::refuse_unchecked;
use quorate_types::{ClientId, Committee, Epoch, Lane, Peer, ReplicaId};
use rustls::ServerConfig;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Reason for refusing what exceeds a client's rate.
const OVER_RATE: &str = "this client sends more than its rate at this validator: send slower";

/// Channel to a peer whose key is being proven, or is proven.
type PeerStream = TlsStream<BufReader<AcceptedStream>>;

/// A connection that is let in.
struct Newcomer {
    stream: PeerStream,
    peer: Peer,
    asked: Asked,
    is_relayed: bool,
    /// Key by which a client was let in.
    by: Option<IdentityKey>,
}

/// Tells whether a host has the state with which its epoch began.
#[derive(Clone)]
pub struct HasState(pub Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for HasState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HasState({})", (self.0)())
    }
}

/// Answers whether a key is that of a member of an epoch to come.
#[derive(Clone)]
pub struct IsNextMember(pub Arc<dyn Fn(&IdentityKey) -> bool + Send + Sync>);

impl fmt::Debug for IsNextMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IsNextMember")
    }
}

/// Members and learners that are known by their keys, and who else is let in.
#[derive(Clone, Debug)]
pub struct Peers {
    /// Members of the committee, by identity key.
    pub committee: Arc<Committee>,
    /// Learners, which may follow without being members.
    pub learners: BTreeSet<ClientId>,
    /// Members of the next epoch by a change that a quorum approved, which may follow too.
    pub is_next_member: IsNextMember,
    /// Clients that are let in.
    pub clients: Arc<ClientDoor>,
    /// The way to this epoch, for whoever comes from an earlier one.
    pub epochs: Arc<Epochs>,
    /// Whether the state with which this epoch began is here.
    pub has_state: HasState,
}

impl Peers {
    /// Whoever proved this key.
    fn named(&self, key: IdentityKey) -> Peer {
        let other = ClientId(key);
        match self.committee.find(&key) {
            Some(member) => Peer::Replica(member),
            None if self.learners.contains(&other) || (self.is_next_member.0)(&key) => {
                Peer::Learner(other)
            }
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
    handshakes: Arc<ConnectionLimiter>,
    clients: Arc<ConnectionLimiter>,
    members: Arc<ConnectionLimiter>,
    quotas: Arc<ClientQuotas>,
    connected: Connected,
    replacements: Replacements,
    relayed: Relayed,
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
        let (limits, metrics) = (&ingress.limits, &ingress.metrics);
        let limiter = |total, reason| {
            ConnectionLimiter::new(ConnectionLimits::of(total), metrics.cut_counter(reason))
        };
        let size = peers.committee.size();
        let lanes = size * MEMBER_LANES.len() + learners_max(peers.learners.len(), size);
        // A new connection takes the place of an older one, which is there for a moment longer.
        let connections = 2 * lanes + RELAYED_MAX * size;
        let members = ConnectionLimits { total: connections, per_address: connections };
        Self {
            tls: TlsAcceptor::from(tls),
            handshakes: limiter(limits.handshakes_max, "too-many-handshakes"),
            clients: limiter(limits.clients_max, "too-many-clients"),
            members: ConnectionLimiter::new(members, metrics.cut_counter("too-many-members")),
            peers,
            quotas: ClientQuotas::new(limits.each_client()),
            network,
            ingress,
            connected: Connected::default(),
            replacements: Replacements::default(),
            relayed: Relayed::default(),
        }
    }

    /// Accepts connections, for ever.
    pub async fn run(self, socket: TcpListener) {
        let Limits { handshakes_max, clients_max, .. } = self.ingress.limits;
        let total = handshakes_max + clients_max + self.members.limits().total;
        let acceptor = Acceptor::new(socket, Arc::clone(&self.handshakes), total);
        let listener = Arc::new(self);
        loop {
            let (tcp, from) = acceptor.accept().await;
            let listener = Arc::clone(&listener);
            tokio::spawn(async move { listener.receive(tcp, from).await });
        }
    }

    async fn receive(&self, tcp: AcceptedStream, from: SocketAddr) {
        match self.handshake(tcp).await {
            Ok(newcomer) => self.serve(newcomer).await,
            Err(error) => {
                self.ingress.metrics.cut("handshake");
                tracing::debug!(%from, %error, "connection turned away");
            }
        }
    }

    /// From the first byte to the end of the hello, within the limit for it.
    async fn handshake(&self, mut tcp: AcceptedStream) -> io::Result<Newcomer> {
        let work = async {
            let is_relayed = relay::take_mark(&mut tcp).await?;
            let mut stream = self.tls.accept(socket::buffered(tcp)).await?;
            let peer = self.identify(&stream)?;
            let committee = &self.peers.committee;
            let at = (committee.network(), committee.epoch());
            let asked = hello::receive_asked(&mut stream, at, peer).await?;
            if let Ok(Asked::Elsewhere(epoch)) = asked {
                self.answer_elsewhere(&mut stream, epoch).await?;
                return Err(io::Error::other(format!("{peer:?} is in {epoch}")));
            }
            let admit = |asked| Ok((asked, self.admit(peer, asked, is_relayed)?));
            match asked.and_then(admit) {
                Ok((asked, by)) => Ok(Newcomer { stream, peer, asked, is_relayed, by }),
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

    /// Shows whoever is in an earlier epoch how that ended.
    async fn answer_elsewhere(&self, stream: &mut PeerStream, epoch: Epoch) -> io::Result<()> {
        let Some(step) = self.peers.epochs.step_after(epoch) else {
            return send_answer(stream, Answer::EarlierEpoch).await;
        };
        send_answer(stream, Answer::LaterEpoch).await?;
        stream.write_all(&Ended::encode((self.peers.has_state.0)(), step)).await?;
        stream.flush().await
    }

    /// Key by which a client is let in; `None` for members and learners, who need none.
    fn admit(
        &self,
        peer: Peer,
        asked: Asked,
        is_relayed: bool,
    ) -> Result<Option<IdentityKey>, Answer> {
        if self.ingress.pool.is_barred(peer) {
            return Err(Answer::Barred);
        }
        match (peer, asked) {
            // Members alone have a use for it, and a relay's places are for them.
            (Peer::Learner(_) | Peer::Client(_), _) if is_relayed => {
                return Err(Answer::LaneNotYours);
            }
            // No connection has more than one hop.
            (_, Asked::Relay(_)) if is_relayed => return Err(Answer::OutOfReach),
            _ => {}
        }
        let (Peer::Client(session), Asked::Lane(hello)) = (peer, asked) else { return Ok(None) };
        let by = self.peers.clients.admits(session, hello.voucher.as_ref());
        if by.is_none() {
            self.ingress.metrics.cut("not-listed");
        }
        by.map(Some).ok_or(Answer::NotListed)
    }

    /// Peer whose key TLS proved.
    fn identify(&self, stream: &PeerStream) -> io::Result<Peer> {
        let connection = stream.get_ref().1;
        let key = tls::proven_key(connection)
            .filter(|_| tls::speaks_quorate(connection))
            .ok_or_else(|| io::Error::other("not a peer of this protocol"))?;
        Ok(self.peers.named(key))
    }

    /// Serves the connection until it ends.
    async fn serve(&self, newcomer: Newcomer) {
        let Newcomer { stream, peer, asked, is_relayed, by } = newcomer;
        let lane = match (asked, peer) {
            (Asked::Lane(hello), _) => hello.lane,
            (Asked::Relay(to), Peer::Replica(from)) => return self.relay(stream, from, to).await,
            (Asked::Relay(_) | Asked::Elsewhere(_), _) => return,
        };
        tracing::debug!(?peer, lane = lane_name(lane), "accepted");
        match peer {
            Peer::Replica(_) => self.serve_member(stream, (peer, lane), is_relayed).await,
            Peer::Learner(learner) => {
                let Some(stream) = move_to(&self.members, stream).await else { return };
                let outbox = self.network.admit_learner(learner);
                self.answer(stream, (peer, learner, lane), outbox, None).await;
            }
            Peer::Client(client) => {
                let by = by.unwrap_or(client.0);
                self.serve_client(stream, (client, lane), by).await;
            }
        }
    }

    async fn serve_client(
        &self,
        mut stream: PeerStream,
        (client, lane): (ClientId, Lane),
        by: IdentityKey,
    ) {
        // First, so that nobody gives way to a session that is not let in.
        let Some(place) = self.quotas.enter(by) else {
            self.ingress.metrics.cut("too-many-sessions");
            let _ = send_answer(&mut stream, Answer::Full).await;
            return;
        };
        let Some(stream) = move_to(&self.clients, stream).await else { return };
        let (peer, outbox) = (Peer::Client(client), self.network.admit_client(client));
        tokio::select! {
            () = self.answer(stream, (peer, client, lane), outbox, Some(&place)) => {}
            () = self.peers.clients.struck_off(by) => {
                self.ingress.metrics.cut("not-listed");
                tracing::info!(client = %by, "a client was struck off the list: cut");
            }
        }
    }

    async fn serve_member(&self, stream: PeerStream, (peer, lane): (Peer, Lane), is_relayed: bool) {
        let Some(mut stream) = move_to(&self.members, stream).await else { return };
        let connection = Entry::new(stream.get_ref().0.get_ref().handle(), is_relayed);
        let (is_replacement, _place) = self.connected.enter(peer, lane, connection);
        if is_replacement {
            self.ingress.metrics.replaced(peer);
            if self.replacements.count(peer, Instant::now()) {
                tracing::warn!(
                    member = %metrics::peer_label(peer),
                    "connections of this member take each other's place: two processes have its \
                     identity key, or its network comes and goes"
                );
            }
        }
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let cut = self.ingress.read(stream, peer, lane).await;
        match cut.fault() {
            Some(_) => tracing::warn!(?peer, lane = lane_name(lane), %cut, "a member was cut off"),
            None => tracing::debug!(?peer, lane = lane_name(lane), %cut, "gone"),
        }
    }

    /// Hands on bytes between a member and another one that it does not reach, as they are.
    async fn relay(&self, mut stream: PeerStream, from: ReplicaId, to: ReplicaId) {
        let place = self.relayed.enter(from).filter(|_| self.network.reaches_directly(to));
        let address = self.peers.committee.address(to).filter(|_| place.is_some());
        let Some(address) = address else {
            let _ = send_answer(&mut stream, Answer::OutOfReach).await;
            return;
        };
        let Some(mut stream) = move_to(&self.members, stream).await else { return };
        let Ok(mut far) = relay::reach(address, self.ingress.limits.handshake).await else {
            let _ = send_answer(&mut stream, Answer::OutOfReach).await;
            return;
        };
        if send_answer(&mut stream, Answer::Welcome).await.is_ok() {
            tracing::debug!(%from, %to, "relaying");
            let ended = copy_bidirectional(&mut stream, &mut far).await;
            tracing::debug!(%from, %to, ?ended, "relayed");
        }
    }

    /// Takes questions off a connection, and writes the answers to it.
    async fn answer(
        &self,
        mut stream: PeerStream,
        (peer, client, lane): (Peer, ClientId, Lane),
        outbox: Arc<Outbox>,
        place: Option<&SessionPlace>,
    ) {
        let handle = stream.get_ref().0.get_ref().handle();
        let (_, _place) = self.connected.enter(peer, lane, Entry::new(handle.clone(), false));
        let _leave = OnDrop(|| self.network.forget_client(client, &outbox));
        if send_answer(&mut stream, Answer::Welcome).await.is_err() {
            return;
        }
        let (reader, writer) = tokio::io::split(stream);
        let (metrics, limits) = (&self.ingress.metrics, &self.ingress.limits);
        tokio::select! {
            cut = self.ingress.read_some(reader, peer, lane, |content| {
                place.is_none_or(|place| self.is_within_quota(place, content, &outbox))
            }) => {
                tracing::debug!(?peer, %cut, "gone");
            }
            error = drain(&outbox, writer, lane, metrics, limits.write) => {
                tracing::debug!(?peer, %error, "gone");
            }
            () = handle.idle_for(limits.idle) => {
                metrics.cut("idle");
                tracing::debug!(?peer, "idle for too long");
            }
        }
    }
}

impl Listener {
    /// Refuses a client's frame that exceeds its rate.
    fn is_within_quota(&self, place: &SessionPlace, content: &Bytes, outbox: &Outbox) -> bool {
        let is_within = place.charge(content.len());
        if !is_within && let Some(refusal) = refuse_unchecked(content, OVER_RATE) {
            self.ingress.metrics.refused("rate");
            outbox.push(refusal.frame());
        }
        is_within
    }
}

async fn send_answer(stream: &mut PeerStream, answer: Answer) -> io::Result<()> {
    stream.write_all(&[answer as u8]).await?;
    stream.flush().await
}

/// The connection, counted with its peer's kind from now on; it is told where nothing gives way.
async fn move_to(kind: &Arc<ConnectionLimiter>, mut stream: PeerStream) -> Option<PeerStream> {
    if stream.get_mut().0.get_mut().move_to(kind) {
        return Some(stream);
    }
    let _ = send_answer(&mut stream, Answer::Full).await;
    None
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
struct Connected(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    next: u64,
    taken: BTreeMap<(Peer, Lane), (u64, Entry)>,
}

/// Connection that has a place.
#[derive(Debug)]
struct Entry {
    handle: ConnectionHandle,
    is_relayed: bool,
    since: Instant,
}

impl Entry {
    fn new(handle: ConnectionHandle, is_relayed: bool) -> Self {
        Self { handle, is_relayed, since: Instant::now() }
    }

    /// Returns `true` if one process with its key, and no second one, may have opened the newer:
    /// it goes over another member as it lost the direct way, or has found it again. It looks for
    /// that no sooner than after [`DIRECT_EVERY`], whereas of two processes, one of which marks its
    /// connections so as not to be noticed, the other comes back at once.
    fn may_go_on_in(&self, newer: &Self) -> bool {
        let span = newer.since.duration_since(self.since);
        newer.is_relayed != self.is_relayed && (newer.is_relayed || span >= DIRECT_EVERY)
    }
}

impl Connected {
    /// Gives the connection its place until what is returned is dropped; `true` if it took the
    /// place of an older one that the same process has no reason to replace.
    fn enter(&self, peer: Peer, lane: Lane, connection: Entry) -> (bool, impl Drop + use<'_>) {
        let mut places = self.0.lock();
        places.next += 1;
        let ticket = places.next;
        let older = places.taken.remove(&(peer, lane)).map(|(_, older)| older);
        let is_replacement = older.as_ref().is_some_and(|older| !older.may_go_on_in(&connection));
        if let Some(older) = older {
            older.handle.cut();
        }
        places.taken.insert((peer, lane), (ticket, connection));
        let leave = OnDrop(move || {
            let taken = &mut self.0.lock().taken;
            if taken.get(&(peer, lane)).is_some_and(|(current, _)| *current == ticket) {
                taken.remove(&(peer, lane));
            }
        });
        (is_replacement, leave)
    }
}

/// How often connections of members took each other's place: once or so when a member restarts
/// behind a broken path, again and again when two processes have its identity key.
#[derive(Debug, Default)]
struct Replacements(Mutex<BTreeMap<Peer, (Instant, u32)>>);

impl Replacements {
    /// So many within [`Self::SPAN`] are worth a line in the log, one a span.
    const MANY: u32 = 2 * MEMBER_LANES.len() as u32;
    const SPAN: Duration = Duration::from_secs(60);

    /// Counts one; `true` if it is time to say so.
    fn count(&self, peer: Peer, now: Instant) -> bool {
        let mut members = self.0.lock();
        let (since, count) = members.entry(peer).or_insert((now, 0));
        if now.duration_since(*since) > Self::SPAN {
            (*since, *count) = (now, 0);
        }
        *count += 1;
        *count == Self::MANY
    }
}

#[cfg(test)]
mod tests;
