//! A client's host: a session over the network.

use crate::epoch::EpochConfig;
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, KeyFile, SchemeKind};
use quorate_engine::{
    CallResult, ClientConfig, Completed, Incoming, Session, SessionEffect, SessionEvent,
    SessionSpec, Verifier,
};
use quorate_types::{
    ClientId, History, Machine, Peer, Rejected, ReplicaId, Request, Time, Verified,
};
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
    config: ClientConfig,
    session: Session,
    verifier: Arc<Verifier>,
    next_tag: u64,
    pending: BTreeMap<u64, Bytes>,
}

impl ClientHost {
    /// A client that asks this member first.
    pub(crate) fn new(seed: &[u8; 32], first: ReplicaId, epoch: &Arc<EpochConfig>) -> Self {
        let identity: IdentitySecret = KeyFile::from_seed(SchemeKind::Ed25519, seed).identity;
        let id = ClientId(identity.public());
        let sessions = vec![SessionSpec::fresh(identity, first)];
        let config = ClientConfig {
            retry_after: Duration::from_millis(300),
            ..ClientConfig::new(Arc::clone(&epoch.committee), sessions)
        };
        Self {
            id,
            armed: None,
            epoch: Arc::clone(epoch),
            session: Session::new(Arc::new(config.clone()), 0),
            config,
            verifier: epoch.client_verifier(),
            next_tag: 0,
            pending: BTreeMap::new(),
        }
    }

    /// Goes on in the next epoch, as a validator's client does: what is under way is asked of its
    /// members under the same numbers.
    pub(crate) fn enter(&mut self, now: Time, epoch: Arc<EpochConfig>) -> ClientTurn {
        let history = History::new(Arc::clone(&epoch.committee));
        self.session.enter(now, Arc::new(self.config.following(history)));
        self.verifier = epoch.client_verifier();
        self.epoch = epoch;
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
        let tag = self.next_tag;
        self.next_tag += 1;
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
                    let operation = self.pending.remove(&tag);
                    let operation = operation.expect("a session completes what it took, once");
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
