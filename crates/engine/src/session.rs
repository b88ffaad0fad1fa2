//! A client, as a machine: numbers, bundles, signs, sends, retries, and counts equal replies. A
//! replica that says it is busy slows it down.
//!
//! A request goes to one member. If it takes longer than answers take of late, as many more are
//! asked as make an honest one among them certain, and after as long again all: the member that
//! was asked may be dead. Where they answer and it says nothing, it is passed over, for a while,
//! and what else it was asked goes elsewhere at once. So a dead member costs a session one such
//! wait, seldom, and a committee in which all is well gets not one message more.

mod config;
mod entering;
mod members;
mod pace;
mod queries;
mod widening;

use crate::Incoming;
use crate::message::{Busy, NotAdmitted, Query, QueryResponse};
use bytes::Bytes;
pub use config::{
    Bundling, CheckAnswer, ClientConfig, LearnerAddress, NoLearnerAddress, SessionSpec,
    reject_answers,
};
use members::Members;
use pace::Pace;
use queries::Queries;
use quorate_crypto::{Bitmap, Digest, IdentitySecret};
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::service::Proven;
use quorate_types::{
    Height, Machine, Outcome, Receipt, ReplicaId, Reply, Request, Results, Time, Verified,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use widening::Widening;

/// Input of a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// Submits an operation for ordering and execution.
    Submit {
        /// The caller's mark, which comes back with the result.
        tag: u64,
        /// Operation in the service's encoding.
        operation: Bytes,
    },
    /// Submits many operations that came together: they share requests.
    SubmitMany(Vec<(u64, Bytes)>),
    /// Puts a query about the state, which is not ordered and changes nothing.
    Query {
        /// The caller's mark, which comes back with the result.
        tag: u64,
        /// Query in the service's encoding.
        query: Bytes,
    },
    /// Delivers a checked message from a replica to a client.
    Message {
        /// Replica that the channel authenticates.
        from: ReplicaId,
        /// Reply, answer or refusal, with its signatures checked.
        message: Verified<Incoming>,
    },
}

/// Effect that a session requires of its host.
#[derive(Debug)]
pub enum SessionEffect {
    /// Sends a request in the client lane.
    Send {
        /// Member that receives it.
        to: ReplicaId,
        /// Request to send, signed.
        request: Request,
    },
    /// Sends a query in the client lane.
    Query {
        /// Member or learner that receives it.
        to: ReplicaId,
        /// Query with the session's number for it.
        query: Query,
    },
    /// Returns the result of an operation or a query to the caller, once for each tag.
    Return {
        /// Mark that the caller gave it.
        tag: u64,
        /// Result of the operation or query.
        result: CallResult,
    },
}

/// Result of a call: of a submitted operation or of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// The operation was ordered and executed.
    Completed(Completed),
    /// The query's checked answer and the certified header of the height at which it is true;
    /// otherwise the reason that the member that was asked last gave.
    Answered(Result<(Proven, ExecutionCertificate), String>),
    /// Window and queue of the session are full, or the operation is too large: it was never sent.
    Overloaded {
        /// Reason that a busy replica gave last, if one did.
        reason: Option<Arc<str>>,
    },
    /// Every member was asked, and those that answer have no room on their disks; at least one of
    /// them is honest. What was sent is sent again until it is executed, so that the operation may
    /// take effect when there is room.
    DiskFull {
        /// Reason that the member gave that was asked last.
        reason: Arc<str>,
    },
    /// The service admits nothing of the request that carried the operation, an honest replica
    /// among those that say so: it takes no effect.
    NotAdmitted {
        /// Words of the service, from the member that said so last.
        reason: Arc<str>,
    },
}

/// Executed operation whose result an honest replica vouches for: by a certificate, or by so many
/// equal replies that one of them is honest (f+1, or more than the tolerated faulty weight).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Result by the service: applied or refused.
    pub outcome: Outcome,
    /// Height of the block that executed it.
    pub height: Height,
    /// Proof for others, where the committee certifies what it executes, with the operation's
    /// index among those of the receipt's request. An operation that had to be asked about again
    /// is answered by equal replies, and has none.
    pub receipt: Option<(Arc<Receipt>, usize)>,
}

/// The wait between two attempts doubles this often.
const RETRY_DOUBLINGS_MAX: u32 = 2;

/// A client session: up to [`Session::WINDOW`] requests under way, more operations waiting.
#[derive(Debug)]
pub struct Session {
    config: Arc<ClientConfig>,
    identity: Arc<IdentitySecret>,
    effects: VecDeque<SessionEffect>,
    queue: VecDeque<(u64, Bytes)>,
    queued_bytes: usize,
    queued_since: Option<Time>,
    next_sequence: u64,
    /// Numbers of requests that were not admitted: the next ones get them, or the replicas' window
    /// would wait for them.
    free: BTreeSet<u64>,
    under_way: BTreeMap<u64, UnderWay>,
    /// Member that gets the first request, and new ones whenever it is not passed over.
    home: ReplicaId,
    /// Set while new requests go elsewhere: they go there again after this time, unless that one is
    /// passed over.
    home_after: Option<Time>,
    target: ReplicaId,
    members: Members,
    pace: Pace,
    /// Reason that the replica gave that was busy last.
    reason: Option<Arc<str>>,
    queries: Queries,
}

#[derive(Debug)]
struct UnderWay {
    request: Request,
    tags: Vec<u64>,
    /// Time at which it was sent last, and at which it is sent again.
    sent_at: Time,
    retry_at: Time,
    /// What of the attempt was sent to others than the replica that was asked, and when more is.
    widening: Widening,
    /// Replica that was asked last; it was sent again `retries` times, and found no room `refusals`
    /// times.
    asked: ReplicaId,
    retries: u32,
    refusals: u32,
    /// Members whose disk is full.
    full: Bitmap,
    /// Members whose service does not admit it.
    not_admitted: Bitmap,
    /// Set if its number was another request's, which was not admitted.
    is_reused: bool,
    /// Members that were asked, one after the other.
    asked_all: Bitmap,
    /// Members whose answer was counted: the first of each counts.
    answered: Bitmap,
    /// Replicas by the answer that they gave.
    answers: BTreeMap<(Height, Digest), Bitmap>,
}

impl Session {
    /// Most requests under way: what a replica remembers of a client reaches as far.
    pub const WINDOW: u64 = 64;
    /// Most operations that wait for a place in the window.
    pub const QUEUE_MAX: usize = 16_384;

    /// The session with this index in [`ClientConfig::sessions`], with nothing under way.
    ///
    /// # Panics
    /// When the configuration has no such session.
    #[must_use]
    pub fn new(config: Arc<ClientConfig>, index: usize) -> Self {
        let SessionSpec { identity, first, next_sequence, .. } = config.sessions[index].clone();
        Self {
            identity,
            effects: VecDeque::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_since: None,
            next_sequence,
            free: BTreeSet::new(),
            under_way: BTreeMap::new(),
            home: first,
            home_after: None,
            target: first,
            members: Members::new(Arc::clone(config.committee()), config.retry_after / 2),
            pace: Pace::new(Self::WINDOW, config.retry_after),
            reason: None,
            queries: Queries::new(&config),
            config,
        }
    }

    /// Operations taken and not yet completed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len() + self.under_way.values().map(|request| request.tags.len()).sum::<usize>()
    }

    fn submit(&mut self, now: Time, tag: u64, operation: Bytes) {
        if self.queue.len() >= Self::QUEUE_MAX || operation.len() > Request::BYTES_MAX {
            let reason = self.reason.clone();
            let result = CallResult::Overloaded { reason };
            self.effects.push_back(SessionEffect::Return { tag, result });
            return;
        }
        self.queued_bytes += operation.len();
        self.queue.push_back((tag, operation));
        self.queued_since.get_or_insert(now);
    }

    /// Sends what is ready: a full bundle, one that has waited, or anything when nothing is under
    /// way.
    fn flush(&mut self, now: Time) {
        self.go_home(now);
        while self.is_window_open() && self.is_bundle_ready(now) {
            let bundle = self.take_bundle(now);
            let (tags, operations): (Vec<u64>, Vec<Bytes>) = bundle.into_iter().unzip();
            let network = self.config.committee().network();
            let reused = self.free.pop_first();
            let sequence = reused.unwrap_or(self.next_sequence);
            let request = Request::sign(&self.identity, network, sequence, &operations)
                .expect("a bundle is cut to a request's limits");
            self.next_sequence = self.next_sequence.max(sequence + 1);
            self.begin(now, request, tags, reused.is_some());
        }
    }

    /// Sends a request for the first time in this epoch.
    fn begin(&mut self, now: Time, request: Request, tags: Vec<u64>, is_reused: bool) {
        let (size, asked) = (self.config.committee().size(), self.target);
        self.effects.push_back(SessionEffect::Send { to: asked, request: request.clone() });
        let sequence = request.sequence;
        let under_way = UnderWay {
            request,
            tags,
            sent_at: now,
            retry_at: now + self.pace.timeout(),
            widening: self.widening_from(now),
            asked,
            retries: 0,
            refusals: 0,
            full: Bitmap::new(size),
            not_admitted: Bitmap::new(size),
            is_reused,
            asked_all: Bitmap::from_indices(size, [asked.index()]),
            answered: Bitmap::new(size),
            answers: BTreeMap::new(),
        };
        self.under_way.insert(sequence, under_way);
    }

    fn is_window_open(&self) -> bool {
        let oldest = self.under_way.first_key_value().map_or(self.next_sequence, |(seq, _)| *seq);
        let is_in_window = self.next_sequence < oldest + Self::WINDOW || !self.free.is_empty();
        is_in_window && self.pace.has_room(self.under_way.len())
    }

    fn is_bundle_ready(&self, now: Time) -> bool {
        let Some(since) = self.queued_since else {
            return false;
        };
        let Bundling { delay, operations_max } = self.config.bundling;
        let full = self.queue.len() >= operations_max || self.queued_bytes >= Request::BYTES_MAX;
        full || self.under_way.is_empty() || since + delay <= now
    }

    fn take_bundle(&mut self, now: Time) -> Vec<(u64, Bytes)> {
        let mut bundle = Vec::new();
        let mut bytes = 0;
        while let Some((_, operation)) = self.queue.front() {
            bytes += operation.len();
            if bundle.len() == self.config.bundling.operations_max || bytes > Request::BYTES_MAX {
                break;
            }
            self.queued_bytes -= operation.len();
            bundle.extend(self.queue.pop_front());
        }
        self.queued_since = (!self.queue.is_empty()).then_some(now);
        bundle
    }

    /// Handles a message; of a learner's only answers to queries count.
    fn on_message(&mut self, now: Time, from: ReplicaId, message: Incoming) {
        let is_member = self.config.committee().contains(from);
        if is_member {
            self.members.heard(now, from);
        }
        match message {
            Incoming::QueryResponse(answered) => self.on_answer(now, from, *answered),
            Incoming::Reply(reply) if is_member => self.on_reply(now, from, &reply),
            Incoming::Busy(busy) if is_member => self.on_busy(now, from, &busy),
            Incoming::NotAdmitted(refusal) if is_member => self.on_not_admitted(now, from, refusal),
            Incoming::CertifiedReply(reply) if is_member => self.on_certified(now, *reply),
            _ => {}
        }
    }

    /// Counts an answer: as soon as enough replicas to include an honest one say the same, the
    /// request is done.
    fn on_reply(&mut self, now: Time, from: ReplicaId, reply: &Reply) {
        let committee = self.config.committee();
        let Some(under_way) = self.under_way.get_mut(&reply.sequence) else {
            return;
        };
        let fits = reply.results.len() == under_way.request.operations.len();
        let is_own = reply.client.0 == self.identity.public() && (fits || under_way.is_reused);
        if !is_own || !under_way.answered.insert(from.index()) {
            return;
        }
        let alike = under_way
            .answers
            .entry((reply.height, reply.results_digest))
            .or_insert_with(|| Bitmap::new(committee.size()));
        alike.insert(from.index());
        if !committee.includes_honest(alike) {
            if under_way.retries > 0 && under_way.answered.count() == 1 {
                under_way.retry_at = now;
            }
            return;
        }
        let Some(done) = self.under_way.remove(&reply.sequence) else {
            return;
        };
        let is_refused = reply.results.iter().all(|one| matches!(one, Outcome::Refused(_)));
        if done.is_reused && (is_refused || !fits) {
            self.send_anew(now, done);
        } else {
            self.complete(now, done, reply.height, &reply.results, None);
        }
    }

    /// The number may have been spent by the request that had it before, which a liar ordered
    /// though nobody else admits it, and which was refused as a whole: this one gets another. If
    /// the answer is its own after all, it had no effect.
    fn send_anew(&mut self, now: Time, spent: UnderWay) {
        let operations = spent.request.operations.iter().cloned();
        for (tag, operation) in spent.tags.into_iter().zip(operations).rev() {
            self.queued_bytes += operation.len();
            self.queue.push_front((tag, operation));
            self.queued_since.get_or_insert(now);
        }
    }

    /// One certified answer is enough.
    fn on_certified(&mut self, now: Time, reply: CertifiedReply) {
        let Completion { client, sequence, .. } = reply.completion;
        let is_own = client.0 == self.identity.public();
        let Some(under_way) = self.under_way.get(&sequence).filter(|_| is_own) else { return };
        let answers = reply.answers(&under_way.request);
        if !answers && !under_way.is_reused {
            return;
        }
        let Some(done) = self.under_way.remove(&sequence) else { return };
        if !answers {
            self.send_anew(now, done);
            return;
        }
        let height = reply.executed.header.height;
        let results = reply.results.clone();
        let receipt = Receipt { request: done.request.raw().clone(), reply };
        self.complete(now, done, height, &results, Some(&Arc::new(receipt)));
    }

    fn complete(
        &mut self,
        now: Time,
        done: UnderWay,
        height: Height,
        results: &Results,
        receipt: Option<&Arc<Receipt>>,
    ) {
        self.pace.completed(done.sent_at, now);
        if done.widening.is_begun() {
            self.compare(now, done.asked, done.sent_at);
        }
        for (place, (tag, outcome)) in
            done.tags.into_iter().zip(results.iter().cloned()).enumerate()
        {
            let receipt = receipt.map(|receipt| (Arc::clone(receipt), place));
            let result = CallResult::Completed(Completed { outcome, height, receipt });
            self.effects.push_back(SessionEffect::Return { tag, result });
        }
    }

    /// A replica has no room: the request goes to the next one after a pause, new ones too, and
    /// fewer are sent.
    fn on_busy(&mut self, now: Time, from: ReplicaId, busy: &Busy) {
        let Some(under_way) = self.under_way.get_mut(&busy.sequence) else {
            return;
        };
        // What somebody executed, or what was sent elsewhere meanwhile, needs nothing of this one.
        if under_way.asked != from || !under_way.answers.is_empty() {
            return;
        }
        if self.reason.as_deref() != Some(busy.reason.as_str()) {
            self.reason = Some(busy.reason.as_str().into());
        }
        under_way.refusals += 1;
        under_way.widening.end();
        if busy.is_of_disk() {
            self.on_disk_full(now, from, busy.sequence);
            return;
        }
        self.pace.refused(under_way.sent_at, now);
        under_way.retry_at = now + Pace::pause(under_way.refusals - 1);
    }

    /// A replica's service admits nothing of a request. Once an honest one says so, none will ever
    /// execute it, and its number is free. A liar may have had it ordered all the same, and refused
    /// as a whole: whoever gets the number next finds that out, and gets another.
    fn on_not_admitted(&mut self, now: Time, from: ReplicaId, refusal: NotAdmitted) {
        let NotAdmitted { sequence, request, reason } = refusal;
        let known = self.under_way.get_mut(&sequence);
        // A late refusal of the request that had this number before says nothing of this one.
        let Some(under_way) = known.filter(|u| u.request.digest() == request) else { return };
        under_way.not_admitted.insert(from.index());
        if !self.config.committee().includes_honest(&under_way.not_admitted) {
            if under_way.asked == from {
                under_way.retry_at = now;
            }
            return;
        }
        let Some(over) = self.under_way.remove(&sequence) else { return };
        self.free.insert(sequence);
        let reason: Arc<str> = reason.into();
        for tag in over.tags {
            let result = CallResult::NotAdmitted { reason: Arc::clone(&reason) };
            self.effects.push_back(SessionEffect::Return { tag, result });
        }
    }

    /// A full disk is no load: the next member is asked at once and at full speed. When everybody
    /// was asked, callers are told, of what waits behind it too; the request itself is not given
    /// up, since members answer no number that is too far beyond one that was never executed.
    fn on_disk_full(&mut self, now: Time, from: ReplicaId, sequence: u64) {
        let committee = self.config.committee();
        let Some(under_way) = self.under_way.get_mut(&sequence) else { return };
        under_way.full.insert(from.index());
        under_way.retry_at = now;
        let asked_all = under_way.asked_all.count() == committee.size();
        if !asked_all || !committee.includes_honest(&under_way.full) {
            return;
        }
        under_way.retry_at = now + Pace::pause(under_way.refusals - 1);
        let reason = self.reason.clone().unwrap_or_default();
        let told = std::mem::take(&mut under_way.tags);
        let waiting = self.queue.drain(..).map(|(tag, _)| tag);
        self.effects.extend(told.into_iter().chain(waiting).map(|tag| {
            let result = CallResult::DiskFull { reason: Arc::clone(&reason) };
            SessionEffect::Return { tag, result }
        }));
        (self.queued_bytes, self.queued_since) = (0, None);
    }

    /// Requests that more members did not answer either go to the next replica, one at a time:
    /// every replica that takes one seals it into a body, so asking all of them again and again
    /// would multiply the load just when there is too much of it. The wait doubles with each
    /// attempt. New requests go elsewhere too. A request that somebody answered was executed: it
    /// only lacks further answers, and all are asked for theirs.
    fn retry(&mut self, now: Time) {
        let due: Vec<u64> =
            self.under_way.iter().filter(|(_, u)| u.retry_at <= now).map(|(seq, _)| *seq).collect();
        if due.is_empty() {
            return;
        }
        self.go_elsewhere(now, &due);
        for sequence in due {
            let Some(next) = self.under_way.get(&sequence).map(|u| self.next_for(now, u)) else {
                continue;
            };
            let Some(under_way) = self.under_way.get_mut(&sequence) else { continue };
            let to: Vec<ReplicaId> = if under_way.answers.is_empty() {
                vec![next]
            } else {
                let answered = &under_way.answered;
                let members = self.config.committee().members();
                members.filter(|member| !answered.contains(member.index())).collect()
            };
            under_way.asked = next;
            under_way.asked_all.insert(next.index());
            under_way.retries += 1;
            under_way.sent_at = now;
            under_way.widening.end();
            let doublings = (under_way.retries - under_way.refusals.min(under_way.retries))
                .min(RETRY_DOUBLINGS_MAX);
            under_way.retry_at = now + self.pace.timeout() * (1 << doublings);
            let request = &under_way.request;
            self.effects.extend(
                to.into_iter().map(|to| SessionEffect::Send { to, request: request.clone() }),
            );
        }
    }

    /// Replica that is asked next for this. Replicas that say much and take nothing are lively too:
    /// once as many were asked as there are, everybody's turn comes. Where a disk is full, whoever
    /// was not asked comes first: nothing is said of all disks before.
    fn next_for(&self, now: Time, under_way: &UnderWay) -> ReplicaId {
        let is_new = |member: &ReplicaId| !under_way.asked_all.contains(member.index());
        if under_way.full.count() > 0
            && let Some(other) = self.members.others(under_way.asked).find(is_new)
        {
            return other;
        }
        let size = u32::try_from(self.config.committee().size()).expect("members are few");
        if under_way.retries < size {
            self.members.next_lively(now, under_way.asked)
        } else {
            self.members.turn(under_way.asked, 1)
        }
    }

    /// Takes an answer to a query. Members that did not answer it in time, while this one did, are
    /// passed over as those are that were asked for something.
    fn on_answer(&mut self, now: Time, from: ReplicaId, answer: QueryResponse) {
        if let Some((first, since)) = self.queries.on_response(now, from, answer) {
            self.compare(now, first, since);
        }
    }
}

impl Machine for Session {
    type Input = SessionEvent;
    type Effect = SessionEffect;

    fn handle(&mut self, now: Time, input: SessionEvent) {
        match input {
            SessionEvent::Submit { tag, operation } => self.submit(now, tag, operation),
            SessionEvent::SubmitMany(operations) => {
                operations.into_iter().for_each(|(tag, bytes)| self.submit(now, tag, bytes));
            }
            SessionEvent::Query { tag, query } => self.queries.start(now, tag, query, self.target),
            SessionEvent::Message { from, message } => {
                self.on_message(now, from, message.into_inner());
            }
        }
        self.flush(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.retry(now);
        self.widen(now);
        self.queries.retry(now);
        self.flush(now);
    }

    fn poll(&mut self) -> Option<SessionEffect> {
        self.effects.pop_front().or_else(|| self.queries.poll())
    }

    fn next_timeout(&self) -> Option<Time> {
        let waits = |under_way: &UnderWay| match under_way.widening.due() {
            Some(widen_at) => widen_at.min(under_way.retry_at),
            None => under_way.retry_at,
        };
        let retry = self.under_way.values().map(waits).min();
        let flush = self
            .queued_since
            .filter(|_| self.is_window_open())
            .map(|since| since + self.config.bundling.delay);
        [retry, flush, self.queries.next_timeout()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
