//! Outbound connections: the task that keeps one up and writes its queue to it.

use super::cuts::Cuts;
use super::detour::{Detour, DetourTurns, Detours, Over, RelayedStream};
use super::emulated::{self, DelayedReader, Ways};
use super::frames::IngressContext;
use super::hello::{Answer, Ended, Hello, TurnedAway};
pub use super::opening::DialedStream;
use super::opening::open;
use super::outbox::{Outbox, drain_parked};
use super::{LEARNER_LANE, Network};
use crate::metrics::{Metrics, lane_name};
use crate::tls::Dialer;
use parking_lot::Mutex;
use quorate_crypto::Bitmap;
use quorate_types::{Committee, Lane, Peer, ReplicaId};
use quorate_wan::Topology;
use rustls::ClientConfig;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// A connection that lasted so long was a good one: the next attempt is not delayed for its sake.
const STABLE_AFTER: Duration = Duration::from_secs(1);

/// A link that could not be had directly for so long goes over another member.
const DETOUR_AFTER: Duration = Duration::from_millis(500);

/// A direct attempt that takes longer than connections between continents do has the way over
/// another member tried beside it: packets that vanish are told by no answer alone.
const DETOUR_BESIDE: Duration = Duration::from_secs(1);

/// While a link goes over another member, the direct way is tried so often.
pub(super) const DIRECT_EVERY: Duration = Duration::from_secs(5);

/// Opens a connection: TCP, TLS with the pinned key, hello.
///
/// # Errors
/// When any of them fails or takes longer than `handshake_max`.
pub async fn dial(
    address: &str,
    tls: Arc<ClientConfig>,
    hello: Hello,
    handshake_max: Duration,
) -> io::Result<DialedStream> {
    open(address, tls, &hello.encode(), handshake_max).await
}

/// Told of a member whenever a connection to it is up.
pub type OnConnect = Arc<dyn Fn(ReplicaId) + Send + Sync>;

/// Told how the own epoch ended, by a member that is in a later one; unchecked.
pub type OnLater = Arc<dyn Fn(ReplicaId, &Ended) + Send + Sync>;

/// Connection that is kept up, with the queue that it sends.
#[derive(Clone)]
pub struct Link {
    /// Member that is expected at the other end.
    pub peer: ReplicaId,
    /// Address to dial, as `host:port`.
    pub address: String,
    /// Pins the peer's key.
    pub tls: Arc<ClientConfig>,
    /// Network and lane that the connection asks for.
    pub hello: Hello,
    /// Queue of the frames to send.
    pub outbox: Arc<Outbox>,
    /// True while the connection is up.
    pub up: Arc<AtomicBool>,
    /// Handling of frames that come back: clients and learners read answers, members send nothing
    /// back.
    pub replies: Option<IngressContext>,
    /// Counters for sent frames and bytes.
    pub metrics: Arc<Metrics>,
    /// Longest silence of the other end in a handshake, and longest time that it takes no byte of a
    /// write.
    pub timeouts: (Duration, Duration),
    /// The network to emulate, if any.
    pub ways: Option<Ways>,
    /// Whom to tell when the connection is up.
    pub on_connect: Option<OnConnect>,
    /// Members over which it may go.
    pub detours: Detours,
    /// Set while the link goes over another member.
    pub over: Arc<Over>,
    /// Links that a laboratory has cut.
    pub cuts: Cuts,
    /// What becomes of a client's attempts, for whoever waits for its answers.
    pub refusals: Option<Arc<Refusals>>,
    /// Whom to tell when a peer is in a later epoch.
    pub on_later: Option<OnLater>,
}

/// Members that do not let a client in.
#[derive(Debug)]
pub struct Refusals {
    committee: Arc<Committee>,
    /// `None` once the client has left their epoch.
    members: Mutex<Option<BTreeSet<ReplicaId>>>,
    reason: watch::Sender<Option<&'static str>>,
}

impl Refusals {
    /// No member has refused anything yet.
    #[must_use]
    pub fn new(committee: Arc<Committee>) -> Self {
        let members = Mutex::new(Some(BTreeSet::new()));
        Self { committee, members, reason: watch::Sender::new(None) }
    }

    /// Those of the next epoch, of whom nobody has refused anything yet: they are told of where
    /// these were, which say nothing any more.
    #[must_use]
    pub fn following(&self, committee: Arc<Committee>) -> Self {
        self.members.lock().take();
        self.reason.send_replace(None);
        Self { reason: self.reason.clone(), ..Self::new(committee) }
    }

    /// Reason that members give, once an honest one must be among them.
    #[must_use]
    pub fn reason(&self) -> watch::Receiver<Option<&'static str>> {
        self.reason.subscribe()
    }

    fn note(&self, member: ReplicaId, refusal: Option<&TurnedAway>) {
        let refusal = refusal.filter(|refusal| refusal.answer == Answer::NotListed);
        if !self.committee.contains(member) {
            return;
        }
        let mut members = self.members.lock();
        let Some(members) = members.as_mut() else { return };
        let changed = match refusal {
            Some(_) => members.insert(member),
            None => members.remove(&member),
        };
        if changed {
            let indices = members.iter().map(|member| member.index());
            let refusing = Bitmap::from_indices(self.committee.size(), indices);
            let now = self.committee.includes_honest(&refusing);
            self.reason.send_replace(now.then_some(Answer::NotListed.refusal()).flatten());
        }
    }
}

/// What a link knows of its own attempts since it was up last.
#[derive(Debug)]
struct Outage {
    since: Instant,
    /// Set once the log has it: for each time that the peer goes, not for each attempt.
    is_reported: bool,
    turns: DetourTurns,
}

impl Outage {
    fn begin(peer: ReplicaId) -> Self {
        Self { since: Instant::now(), is_reported: false, turns: DetourTurns::new(peer) }
    }
}

/// A connection that is open, by one way or the other.
enum Opened {
    Directly(Box<DialedStream>),
    Over(ReplicaId, Box<RelayedStream>),
}

impl Link {
    /// Keeps the connection up, for ever: directly, or else over another member.
    pub async fn run(self) {
        let mut backoff = Backoff::new();
        let mut outage = Outage::begin(self.peer);
        let mut regained = None;
        loop {
            let began = Instant::now();
            let opened = match regained.take() {
                Some(stream) => Some(Opened::Directly(Box::new(stream))),
                None => self.open(&mut outage).await,
            };
            match opened {
                Some(Opened::Directly(stream)) => {
                    outage = Outage::begin(self.peer);
                    self.report_up();
                    let error = self.serve_directly(*stream).await;
                    outage.since = Instant::now();
                    self.report_down("lost", &error, &mut outage.is_reported);
                }
                Some(Opened::Over(relay, stream)) => {
                    outage.turns.succeeded();
                    regained = self.serve_over(relay, *stream).await;
                }
                None => {}
            }
            if began.elapsed() >= STABLE_AFTER + self.timeouts.0 {
                backoff.reset();
            }
            if regained.is_none() {
                sleep(backoff.next()).await;
            }
        }
    }

    /// Opens a connection directly, or over another member where that fails or takes long: the
    /// first that is there (as RFC 8305 does with addresses).
    async fn open(&self, outage: &mut Outage) -> Option<Opened> {
        let mut direct = pin!(self.dial_directly());
        if let Ok(result) = timeout(DETOUR_BESIDE, &mut direct).await {
            return match self.reached(result, &mut outage.is_reported) {
                None if outage.since.elapsed() >= DETOUR_AFTER => {
                    self.dial_over_another(&mut outage.turns).await
                }
                opened => opened,
            };
        }
        let mut detour = pin!(self.dial_over_another(&mut outage.turns));
        tokio::select! {
            result = &mut direct => match self.reached(result, &mut outage.is_reported) {
                None => detour.await,
                opened => opened,
            },
            found = &mut detour => match found {
                None => self.reached(direct.await, &mut outage.is_reported),
                opened => opened,
            },
        }
    }

    /// The direct way, if it is open.
    fn reached(&self, result: io::Result<DialedStream>, is_reported: &mut bool) -> Option<Opened> {
        self.note_refusal(result.as_ref().err().and_then(TurnedAway::of).as_ref());
        match result {
            Ok(stream) => Some(Opened::Directly(Box::new(stream))),
            Err(error) => {
                self.report_down("cannot be reached", &error, is_reported);
                None
            }
        }
    }

    async fn dial_directly(&self) -> io::Result<DialedStream> {
        if self.cuts.concern(self.peer) {
            return Err(cut());
        }
        dial(&self.address, Arc::clone(&self.tls), self.hello, self.timeouts.0).await
    }

    async fn serve_directly(&self, stream: DialedStream) -> io::Error {
        let error = tokio::select! {
            error = self.serve(stream) => error,
            () = self.cuts.until_cut(self.peer) => cut(),
        };
        self.up.store(false, Ordering::Relaxed);
        error
    }

    /// Sends over another member until that ends; or until the direct way is open again, which it
    /// returns.
    async fn serve_over(&self, relay: ReplicaId, stream: RelayedStream) -> Option<DialedStream> {
        let (member, lane) = (self.peer, lane_name(self.hello.lane));
        if self.reports_loss() {
            tracing::warn!(%member, %relay, "connection goes over another member");
        }
        self.over.set(Some(relay));
        let regained = tokio::select! {
            error = self.serve(stream) => {
                tracing::debug!(%member, lane, %relay, %error, "connection over another member lost");
                None
            }
            stream = self.regain() => Some(stream),
        };
        self.up.store(false, Ordering::Relaxed);
        self.over.set(None);
        regained
    }

    /// Asks the members whose turn it is, one after the other.
    async fn dial_over_another(&self, turns: &mut DetourTurns) -> Option<Opened> {
        let due = turns.due(&self.detours, Instant::now());
        for detour in &due {
            let to = (self.peer, Arc::clone(&self.tls));
            match detour.dial(to, self.hello, self.timeouts.0).await {
                Ok(stream) => return Some(Opened::Over(detour.member, Box::new(stream))),
                Err(error) => {
                    let (member, relay) = (self.peer, detour.member);
                    tracing::trace!(%member, %relay, %error, "no way over another member");
                    turns.refused(detour);
                }
            }
        }
        if !due.is_empty() {
            turns.failed(Instant::now());
        }
        None
    }

    /// Waits until the direct way is open again.
    async fn regain(&self) -> DialedStream {
        loop {
            sleep(DIRECT_EVERY).await;
            if let Ok(stream) = self.dial_directly().await {
                return stream;
            }
        }
    }

    fn note_refusal(&self, refusal: Option<&TurnedAway>) {
        let ended = refusal.and_then(|refusal| refusal.ended.as_ref());
        if let Some((tell, ended)) = self.on_later.as_ref().zip(ended) {
            tell(self.peer, ended);
        }
        self.refusals.iter().for_each(|refusals| refusals.note(self.peer, refusal));
    }

    /// Writes the queue to a connection until it fails.
    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    ) -> io::Error {
        self.up.store(true, Ordering::Relaxed);
        if let Some(tell) = &self.on_connect {
            tell(self.peer);
        }
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            // A peer that went away is noticed at once, and not only by a later write that fails.
            error = self.listen(reader) => error,
            error = self.write(writer) => error,
        }
    }

    async fn write(&self, writer: impl AsyncWrite + Send + Unpin + 'static) -> io::Error {
        let (lane, write_timeout) = (self.hello.lane, self.timeouts.1);
        match self.ways {
            None => drain_parked(&self.outbox, writer, lane, &self.metrics, write_timeout).await,
            Some(Ways { out, .. }) => {
                emulated::drain(&self.outbox, writer, lane, &self.metrics, write_timeout, out).await
            }
        }
    }

    async fn listen(&self, mut reader: impl AsyncRead + Unpin) -> io::Error {
        if let Some(replies) = &self.replies {
            let (from, lane) = (Peer::Replica(self.peer), self.hello.lane);
            let cut = match self.ways.and_then(|ways| ways.back) {
                None => replies.read(reader, from, lane).await,
                Some(back) => replies.read(DelayedReader::new(reader, back), from, lane).await,
            };
            return io::Error::other(cut);
        }
        match reader.read_u8().await {
            Ok(_) => io::Error::new(io::ErrorKind::InvalidData, "it sent bytes where none belong"),
            Err(error) => error,
        }
    }

    /// Tells whether the loss of this link is worth a line in the log: one of a member's links is.
    fn reports_loss(&self) -> bool {
        match self.hello.lane {
            Lane::Votes => true,
            LEARNER_LANE => self.replies.is_some(),
            Lane::Consensus | Lane::Client => false,
        }
    }

    fn report_up(&self) {
        let (member, lane) = (self.peer, lane_name(self.hello.lane));
        tracing::debug!(%member, lane, address = self.address, "connected");
    }

    fn report_down(&self, what: &str, error: &io::Error, reported: &mut bool) {
        let (member, lane, address) = (self.peer, lane_name(self.hello.lane), &self.address);
        if std::mem::replace(reported, true) {
            tracing::trace!(%member, lane, address, %error, "connection {what}");
        } else if self.reports_loss() {
            tracing::warn!(%member, address, %error, "connection {what}; trying again");
        } else {
            tracing::debug!(%member, lane, address, %error, "connection {what}; trying again");
        }
    }
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, "the laboratory has cut this link")
}

/// Networks that a laboratory makes up: the one to emulate with the own place in it, and cut links.
#[derive(Clone, Debug, Default)]
pub struct MadeUp<'a> {
    /// Distances, and the own place.
    pub emulated: Option<(&'a Topology, ReplicaId)>,
    /// Links that are cut.
    pub cuts: Cuts,
}

/// The links to every other member, one for each lane; of a member each may go over any other. A
/// learner reads what comes back with `answers`.
///
/// # Errors
/// Never with the provider that this crate uses.
pub fn member_links(
    network: &Network,
    committee: &Committee,
    dialer: &Dialer,
    limits: super::Limits,
    made_up: &MadeUp<'_>,
    answers: Option<&IngressContext>,
) -> Result<Vec<Link>, rustls::Error> {
    let mut links = Vec::new();
    let is_learner = answers.is_some();
    let detours =
        if is_learner { Detours::default() } else { detours(network, committee, dialer)? };
    for peer in committee.members() {
        let (Some(key), Some(address)) = (committee.identity(peer), committee.address(peer)) else {
            continue;
        };
        let tls = dialer.to(*key)?;
        let ways = made_up.emulated.map(|(topology, me)| Ways::between_members(topology, me, peer));
        for (index, lane) in network.lanes.iter().copied().enumerate() {
            let Some((outbox, up, over)) = network.lane_to(peer, index) else {
                continue;
            };
            links.push(Link {
                peer,
                address: address.to_owned(),
                tls: Arc::clone(&tls),
                hello: Hello::to(committee, lane),
                outbox,
                up,
                replies: answers.cloned(),
                metrics: Arc::clone(&network.metrics),
                timeouts: (limits.handshake, limits.write),
                ways,
                on_connect: None,
                detours: detours.clone(),
                over,
                cuts: made_up.cuts.clone(),
                refusals: None,
                on_later: None,
            });
        }
    }
    Ok(links)
}

/// All other members, each as one that may relay; reached is who has a link for votes.
fn detours(
    network: &Network,
    committee: &Committee,
    dialer: &Dialer,
) -> Result<Detours, rustls::Error> {
    let mut detours = Vec::new();
    for member in committee.members() {
        let (Some(key), Some(address)) = (committee.identity(member), committee.address(member))
        else {
            continue;
        };
        if let Some((_, up, over)) = network.lane_to(member, 0) {
            let (address, tls) = (address.to_owned(), dialer.to(*key)?);
            detours.push(Detour { member, address, tls, up, over });
        }
    }
    Ok(Detours::new(detours, &network.contacts))
}

/// Doubles from 50 ms to 2 s; each wait is drawn from the upper half of its span, so that a
/// committee that starts together does not dial together.
#[derive(Debug)]
pub(crate) struct Backoff {
    span: Duration,
    random: RandomState,
    draws: u64,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { span: BACKOFF_MIN, random: RandomState::new(), draws: 0 }
    }

    pub(crate) fn reset(&mut self) {
        self.span = BACKOFF_MIN;
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.draws += 1;
        let draw = self.random.hash_one(self.draws) % 1_000;
        let wait = self.span / 2 + self.span / 2 * u32::try_from(draw).expect("small") / 1_000;
        self.span = (self.span * 2).min(BACKOFF_MAX);
        wait
    }
}

#[cfg(test)]
mod tests;
