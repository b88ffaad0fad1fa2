//! Requests of a wallet that authorities have not answered yet: sent again until they are.

use super::{REQUEST, frame};
use crate::transport::outbox::Outbox;
use quorate_engine::Frame;
use quorate_payments::{Numbered, WalletReply, WalletRequest};
use quorate_types::ReplicaId;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Wait before a request is sent again: its connection may have ended.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Requests under way, by their number.
#[derive(Default)]
pub(super) struct Requests {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    retry_at: Option<Instant>,
}

struct Waiting {
    to: ReplicaId,
    frame: Frame,
    done: oneshot::Sender<WalletReply>,
}

impl Requests {
    /// Sends a request.
    pub(super) fn ask(
        &mut self,
        outboxes: &[Arc<Outbox>],
        to: ReplicaId,
        content: WalletRequest,
        done: oneshot::Sender<WalletReply>,
    ) {
        let number = self.next;
        self.next += 1;
        let frame = frame(REQUEST, &Numbered { number, content });
        outboxes[to.index()].push(frame.clone());
        self.waiting.insert(number, Waiting { to, frame, done });
        self.retry_at.get_or_insert(Instant::now() + RETRY_AFTER);
    }

    /// Hands a reply to whoever waits for it, if it is from the authority that was asked.
    pub(super) fn on_reply(&mut self, from: ReplicaId, reply: Numbered<WalletReply>) {
        if self.waiting.get(&reply.number).is_some_and(|waiting| waiting.to == from)
            && let Some(waiting) = self.waiting.remove(&reply.number)
        {
            let _ = waiting.done.send(reply.content);
        }
    }

    /// Time at which [`Requests::retry`] is due.
    pub(super) fn next_retry(&self) -> Option<Instant> {
        self.retry_at
    }

    /// Sends again what is due and somebody still waits for.
    pub(super) fn retry(&mut self, outboxes: &[Arc<Outbox>]) {
        let now = Instant::now();
        if self.retry_at.is_none_or(|at| at > now) {
            return;
        }
        self.waiting.retain(|_, waiting| !waiting.done.is_closed());
        for waiting in self.waiting.values() {
            outboxes[waiting.to.index()].push(waiting.frame.clone());
        }
        self.retry_at = (!self.waiting.is_empty()).then_some(now + RETRY_AFTER);
    }
}
