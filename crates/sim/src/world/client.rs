//! A client's host: a session over the network.

use super::epochs::EpochConfig;
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_engine::{
    Bundling, CallResult, ClientConfig, Completed, Incoming, Session, SessionEffect, SessionEvent,
    SessionSpec, Verifier,
};
use quorate_types::{ClientId, Machine, Peer, Rejected, ReplicaId, Request, Time, Verified};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Outcome of one turn of a client.
#[derive(Debug, Default)]
pub(crate) struct ClientTurn {
    pub(crate) sends: Vec<(ReplicaId, Request)>,
    /// Operations with their results.
    pub(crate) completed: Vec<(Bytes, Completed)>,
    /// Operations that were not taken: hand them in again.
    pub(crate) overloaded: Vec<Bytes>,
}

/// A client's session with its host.
pub(crate) struct ClientHost {
    pub(crate) id: ClientId,
    /// The world's timer that is set for it.
    pub(crate) armed: Option<Time>,
    pub(crate) epoch: Arc<EpochConfig>,
    identity: IdentitySecret,
    first: ReplicaId,
    /// Operations share requests.
    bundles: bool,
    session: Session,
    verifier: Arc<Verifier>,
    /// All operations, by their tags: where they share no requests, these are their numbers.
    operations: Vec<Bytes>,
    pending: BTreeMap<u64, Bytes>,
}

impl ClientHost {
    /// A client that asks this member first. Where it may have to go on in another epoch, each of
    /// its operations is a request of its own.
    pub(crate) fn new(
        seed: &[u8; 32],
        first: ReplicaId,
        epoch: &Arc<EpochConfig>,
        bundles: bool,
    ) -> Self {
        let identity: IdentitySecret = KeyFile::from_seed(SchemeKind::Ed25519, seed).identity;
        let verifier = epoch.client_verifier();
        Self {
            id: ClientId(identity.public()),
            armed: None,
            epoch: Arc::clone(epoch),
            session: session(&identity, (first, 0), bundles, &verifier),
            identity,
            first,
            bundles,
            verifier,
            operations: Vec::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Goes on in the next epoch: all from the first request that was not answered on is asked of
    /// its members under the same numbers. What was answered is so again, and nobody hears it.
    pub(crate) fn enter(&mut self, now: Time, epoch: Arc<EpochConfig>) -> ClientTurn {
        let all = self.operations.len() as u64;
        let unanswered = self.pending.first_key_value().map_or(all, |(tag, _)| *tag);
        self.verifier = epoch.client_verifier();
        self.epoch = epoch;
        let member = self.first.index() % self.epoch.committee.size();
        let first = ReplicaId(u16::try_from(member).expect("few members"));
        let place = (first, unanswered);
        self.session = session(&self.identity, place, self.bundles, &self.verifier);
        for tag in unanswered..all {
            let operation = self.operations[usize::try_from(tag).expect("few")].clone();
            self.session.handle(now, SessionEvent::Submit { tag, operation });
        }
        self.drain()
    }

    /// Number of operations submitted and not done.
    pub(crate) fn pending(&self) -> usize {
        self.pending.len()
    }

    pub(crate) fn next_wake(&self) -> Option<Time> {
        self.session.next_timeout()
    }

    pub(crate) fn submit(&mut self, now: Time, operation: Bytes) -> ClientTurn {
        let tag = self.operations.len() as u64;
        self.operations.push(operation.clone());
        self.pending.insert(tag, operation.clone());
        self.session.handle(now, SessionEvent::Submit { tag, operation });
        self.drain()
    }

    pub(crate) fn deliver(
        &mut self,
        now: Time,
        from: Peer,
        content: Bytes,
    ) -> Result<ClientTurn, Rejected> {
        let message = Verified::<Incoming>::check(content, from, &self.verifier)?;
        let from = from.replica()?;
        self.session.handle(now, SessionEvent::Message { from, message });
        Ok(self.drain())
    }

    pub(crate) fn wake(&mut self, now: Time) -> ClientTurn {
        self.session.handle_timeout(now);
        self.drain()
    }

    fn drain(&mut self) -> ClientTurn {
        let mut turn = ClientTurn::default();
        while let Some(effect) = self.session.poll() {
            match effect {
                SessionEffect::Send { to, request } => turn.sends.push((to, request)),
                SessionEffect::Return { tag, result } => {
                    let Some(operation) = self.pending.remove(&tag) else {
                        assert!(!self.bundles, "a session completes what it took, once");
                        continue;
                    };
                    match result {
                        CallResult::Completed(done) => turn.completed.push((operation, done)),
                        CallResult::Overloaded { .. } => turn.overloaded.push(operation),
                        CallResult::DiskFull { .. } => unreachable!("these disks have room"),
                        CallResult::Answered(_) | CallResult::NotAdmitted { .. } => {
                            unreachable!("these clients ask no questions, and no door judges")
                        }
                    }
                }
                SessionEffect::Query { .. } => unreachable!("these clients ask no questions"),
            }
        }
        turn
    }
}

/// A session whose next request has this number, and goes to this member.
fn session(
    identity: &IdentitySecret,
    (first, next_sequence): (ReplicaId, u64),
    bundles: bool,
    verifier: &Verifier,
) -> Session {
    let spec = SessionSpec { next_sequence, ..SessionSpec::fresh(identity.clone(), first) };
    let committee = Arc::clone(verifier.committee());
    let usual = ClientConfig::new(committee, vec![spec]);
    let operations_max = if bundles { usual.bundling.operations_max } else { 1 };
    let config = ClientConfig {
        retry_after: Duration::from_millis(300),
        bundling: Bundling { operations_max, ..usual.bundling },
        ..usual
    };
    Session::new(Arc::new(config), 0)
}
