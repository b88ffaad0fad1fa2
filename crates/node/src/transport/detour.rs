//! Ways to a member over another one: whom a link asks to relay, and how often.
//!
//! A member that is dead answers nobody, and nobody can relay to it. So that this costs each other
//! one next to nothing however large the committee is, a link asks two members at a time,
//! in turn, and waits longer from one time to the next.

use super::contacts::Contacts;
use super::hello::{self, Ask, Hello};
use super::opening::{DialedStream, open};
use crate::tls;
use quorate_types::ReplicaId;
use rustls::ClientConfig;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Members that a link asks to relay at a time.
const ASKED_MAX: usize = 2;

/// Pause of a link whose members relayed nothing; doubles up to the longest one.
const PAUSE_MIN: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Longest pause while the member is heard: it lives, and so somebody may reach it.
const PAUSE_MAX_HEARD: Duration = Duration::from_secs(5);

/// Connection to a member over another one.
pub type RelayedStream = TlsStream<DialedStream>;

/// The member over which a link goes, if it does.
#[derive(Debug, Default)]
pub struct Over(AtomicU32);

impl Over {
    pub(super) fn set(&self, member: Option<ReplicaId>) {
        let value = member.map_or(0, |member| u32::from(member.0) + 1);
        self.0.store(value, Ordering::Relaxed);
    }

    /// Returns `true` while the link goes over another member.
    #[must_use]
    pub fn is_somebody(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// Member over which a link may go.
#[derive(Clone, Debug)]
pub struct Detour {
    /// Member in the middle.
    pub member: ReplicaId,
    /// Address to dial, as `host:port`.
    pub address: String,
    /// Pins the key of the member in the middle.
    pub tls: Arc<ClientConfig>,
    /// True while the own link to it is up.
    pub up: Arc<AtomicBool>,
    /// Set while that one goes over somebody itself.
    pub over: Arc<Over>,
}

impl Detour {
    /// Returns `true` if this member is reached, and directly.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.up.load(Ordering::Relaxed) && !self.over.is_somebody()
    }

    /// Opens a connection to another member: to the one that relays, and through it TLS with the
    /// other's pinned key, and hello.
    ///
    /// # Errors
    /// When any of them fails or takes longer than `handshake_max`.
    pub async fn dial(
        &self,
        (to, tls): (ReplicaId, Arc<ClientConfig>),
        hello: Hello,
        handshake_max: Duration,
    ) -> io::Result<RelayedStream> {
        let through = async {
            let ask = Ask { network: hello.network, epoch: hello.epoch, to };
            let tls_to_it = Arc::clone(&self.tls);
            let near = open(&self.address, tls_to_it, &ask.encode(), handshake_max).await?;
            let mut stream = TlsConnector::from(tls).connect(tls::no_name(), near).await?;
            hello::introduce(&mut stream, &hello.encode()).await?;
            Ok(stream)
        };
        match timeout(handshake_max, through).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "it relays nothing")),
        }
    }
}

/// Members over which links may go, all links of a validator alike.
#[derive(Clone, Debug)]
pub struct Detours {
    /// In the order of their indices.
    members: Arc<[Detour]>,
    contacts: Arc<Contacts>,
}

impl Default for Detours {
    /// Nobody: links are direct or not at all.
    fn default() -> Self {
        Self { members: Arc::default(), contacts: Arc::new(Contacts::new(0)) }
    }
}

impl Detours {
    pub(super) fn new(members: Vec<Detour>, contacts: &Arc<Contacts>) -> Self {
        Self { members: members.into(), contacts: Arc::clone(contacts) }
    }

    /// Time since something was heard of this member; `None` if nothing ever was.
    fn silence(&self, peer: ReplicaId) -> Option<Duration> {
        let contact = self.contacts.of(peer)?;
        contact.heard.then_some(contact.silence)
    }
}

/// Whom one link asks to relay next, and when.
#[derive(Debug)]
pub(super) struct DetourTurns {
    peer: ReplicaId,
    /// Member that was asked last and did not relay; at first the peer, whose next is asked first.
    last: ReplicaId,
    /// When nobody relayed, and the pause from then on.
    failed: Option<Instant>,
    pause: Duration,
}

impl DetourTurns {
    pub(super) fn new(peer: ReplicaId) -> Self {
        Self { peer, last: peer, failed: None, pause: PAUSE_MIN }
    }

    /// The members to ask now, of those that are reached; none during a pause.
    pub(super) fn due<'a>(&self, detours: &'a Detours, now: Instant) -> Vec<&'a Detour> {
        if self.is_pause(now, detours.silence(self.peer)) {
            return Vec::new();
        }
        let (after, before): (Vec<_>, Vec<_>) =
            detours.members.iter().partition(|detour| detour.member > self.last);
        let in_turn = after.into_iter().chain(before);
        let open = in_turn.filter(|detour| detour.member != self.peer && detour.is_open());
        open.take(ASKED_MAX).collect()
    }

    fn is_pause(&self, now: Instant, silence: Option<Duration>) -> bool {
        let Some(failed) = self.failed else { return false };
        let span = now.saturating_duration_since(failed);
        let is_heard = silence.is_some_and(|silence| silence < span);
        span < if is_heard { self.pause.min(PAUSE_MAX_HEARD) } else { self.pause }
    }

    /// Notes that this one did not relay: another's turn is next.
    pub(super) fn refused(&mut self, detour: &Detour) {
        self.last = detour.member;
    }

    /// Notes that none of those that were due relays.
    pub(super) fn failed(&mut self, now: Instant) {
        if self.failed.replace(now).is_some() {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }

    /// Notes that the member is reached, by whatever way.
    pub(super) fn succeeded(&mut self) {
        (self.failed, self.pause) = (None, PAUSE_MIN);
    }
}

#[cfg(test)]
mod tests;
