//! A client, as a machine: numbers, bundles, signs, sends, retries, and counts equal replies. A replica
//! that says it is busy slows it down.

mod asking;
mod pace;

use crate::Incoming;
use crate::message::{Busy, Question};
use asking::Asking;
use bytes::Bytes;
use pace::Pace;
use quorate_crypto::{Bitmap, Digest, IdentitySecret};
use quorate_types::executed::{CertifiedReply, Completion, ExecutionCertificate};
use quorate_types::service::Proven;
use quorate_types::{
    Committee, Header, Height, Machine, Outcome, Receipt, ReplicaId, Reply, Request, Time, Verified,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Which operations share a request, and so a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bundling {
    /// How long an operation waits for others. Longer: fewer signatures, more latency.
    pub delay: Duration,
    /// Most operations of one request: at least one, and no more than [`Request::OPERATIONS_MAX`].
    pub operations_max: usize,
}

impl Bundling {
    /// As many as a request takes, after so long.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay, operations_max: Request::OPERATIONS_MAX }
    }

    /// With no more operations in a request than this, for committees whose blocks take few: a
    /// request is ordered whole.
    #[must_use]
    pub fn at_most(self, operations: usize) -> Self {
        Self { operations_max: operations.clamp(1, Request::OPERATIONS_MAX), ..self }
    }
}

/// How a session behaves.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Whom it talks to.
    pub committee: Arc<Committee>,
    /// Its key: the client's identity on its channels and under its requests.
    pub identity: Arc<IdentitySecret>,
    /// The replica that it sends to first; the next ones follow when it is silent.
    pub first: ReplicaId,
    /// Which operations share a request.
    pub bundling: Bundling,
    /// How long a request may stay unanswered before it goes to the next replica.
    pub retry_after: Duration,
    /// The sequence number of the first request: one past the last one that this key ever used.
    pub next_sequence: u64,
    /// The service's check of an answer to a question.
    pub check_answer: CheckAnswer,
    /// Whether there is a learner, at the first index beyond the members: questions go to it first.
    pub learner: bool,
}

/// Whether an answer to a question is true of a state with this header's root; otherwise what is wrong.
/// A member whose answer does not pass is asked nothing more about it.
pub type CheckAnswer = fn(&[u8], &Header, &Proven) -> Result<(), String>;

/// The check of a session that asks nothing: no answer passes.
///
/// # Errors
/// Always.
pub fn asks_nothing(_: &[u8], _: &Header, _: &Proven) -> Result<(), String> {
    Err("this session has no check for answers".to_owned())
}

/// What a session is fed.
#[derive(Debug)]
pub enum SessionEvent {
    /// An operation to have executed; `tag` comes back with its outcome.
    Submit {
        /// The caller's own mark.
        tag: u64,
        /// The operation.
        operation: Bytes,
    },
    /// Many operations that came together: they share requests.
    SubmitMany(Vec<(u64, Bytes)>),
    /// A question about the state; `tag` comes back with its answer.
    Ask {
        /// The caller's own mark.
        tag: u64,
        /// In the service's own words.
        question: Bytes,
    },
    /// A checked message from a replica to a client.
    Message {
        /// Who sent it.
        from: ReplicaId,
        /// What.
        message: Verified<Incoming>,
    },
}

/// What a session asks of its host.
#[derive(Debug)]
pub enum SessionEffect {
    /// Send a request in the client lane.
    Send {
        /// To whom.
        to: ReplicaId,
        /// What.
        request: Request,
    },
    /// Send a question in the client lane.
    Ask {
        /// To whom.
        to: ReplicaId,
        /// What.
        question: Question,
    },
    /// An operation is done.
    Completed(Completed),
    /// A question is answered.
    Answered(Told),
    /// The window and the queue are full: this operation was not taken.
    Overloaded {
        /// The caller's mark.
        tag: u64,
        /// What the replica that was busy last said, if one was.
        reason: Option<Arc<str>>,
    },
}

/// An operation whose result an honest replica vouches for: by a certificate, or since so many answered
/// alike that one of them is honest (f+1, or more than the tolerated faulty weight).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The caller's mark.
    pub tag: u64,
    /// What the operation came to.
    pub outcome: Outcome,
    /// Where it took effect.
    pub height: Height,
    /// What proves it, where the committee certifies what it executes; shared by the operations of a
    /// request, of which this is number `place`.
    pub receipt: Option<Arc<Receipt>>,
    /// The operation's place in its request, from 0.
    pub place: usize,
}

/// What became of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The caller's mark.
    pub tag: u64,
    /// The answer, which was checked, and the certified header of the height that it is true of; or what
    /// the member that was asked last said.
    pub result: Result<(Proven, ExecutionCertificate), String>,
}

/// The wait between two attempts doubles this often.
const RETRY_DOUBLINGS_MAX: u32 = 2;

/// A client session: up to [`Session::WINDOW`] requests under way, more operations waiting.
#[derive(Debug)]
pub struct Session {
    config: SessionConfig,
    effects: VecDeque<SessionEffect>,
    queue: VecDeque<(u64, Bytes)>,
    queued_bytes: usize,
    queued_since: Option<Time>,
    next_sequence: u64,
    under_way: BTreeMap<u64, UnderWay>,
    target: ReplicaId,
    /// When each replica last answered anything.
    heard: BTreeMap<ReplicaId, Time>,
    pace: Pace,
    /// Why a replica was busy, last.
    reason: Option<Arc<str>>,
    asking: Asking,
}

#[derive(Debug)]
struct UnderWay {
    request: Request,
    tags: Vec<u64>,
    /// When it was sent last, and when it is sent again.
    sent_at: Time,
    retry_at: Time,
    /// Who was asked last, how often it was sent again, and how often somebody had no room for it.
    asked: ReplicaId,
    retries: u32,
    refusals: u32,
    /// Each replica's first answer counts.
    answered: Bitmap,
    /// Who gave which answer.
    answers: BTreeMap<(Height, Digest), Bitmap>,
}

impl Session {
    /// Most requests under way: what a replica remembers of a client reaches as far.
    pub const WINDOW: u64 = 64;
    /// Most operations that wait for a place in the window.
    pub const QUEUE_MAX: usize = 16_384;

    /// A session with nothing under way.
    #[must_use]
    pub fn new(config: SessionConfig) -> Self {
        Self {
            effects: VecDeque::new(),
            queue: VecDeque::new(),
            queued_bytes: 0,
            queued_since: None,
            next_sequence: config.next_sequence,
            under_way: BTreeMap::new(),
            target: config.first,
            heard: BTreeMap::new(),
            pace: Pace::new(Self::WINDOW),
            reason: None,
            asking: Asking::new(&config),
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
            self.effects.push_back(SessionEffect::Overloaded { tag, reason });
            return;
        }
        self.queued_bytes += operation.len();
        self.queue.push_back((tag, operation));
        self.queued_since.get_or_insert(now);
    }

    /// Sends what is ready: a full bundle, one that has waited, or anything when nothing is under way.
    fn flush(&mut self, now: Time) {
        while self.is_window_open() && self.is_bundle_ready(now) {
            let bundle = self.take_bundle(now);
            let (tags, operations): (Vec<u64>, Vec<Bytes>) = bundle.into_iter().unzip();
            let chain = self.config.committee.chain();
            let request =
                Request::sign(&self.config.identity, chain, self.next_sequence, &operations)
                    .expect("a bundle is cut to a request's limits");
            self.next_sequence += 1;
            self.effects
                .push_back(SessionEffect::Send { to: self.target, request: request.clone() });
            let under_way = UnderWay {
                request,
                tags,
                sent_at: now,
                retry_at: now + self.pace.patience(self.config.retry_after),
                asked: self.target,
                retries: 0,
                refusals: 0,
                answered: Bitmap::new(self.config.committee.size()),
                answers: BTreeMap::new(),
            };
            self.under_way.insert(self.next_sequence - 1, under_way);
        }
    }

    fn is_window_open(&self) -> bool {
        let oldest = self.under_way.first_key_value().map_or(self.next_sequence, |(seq, _)| *seq);
        self.next_sequence < oldest + Self::WINDOW && self.pace.has_room(self.under_way.len())
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

    /// A learner answers questions, and nothing else that it says means anything.
    fn on_message(&mut self, now: Time, from: ReplicaId, message: Incoming) {
        let is_member = self.config.committee.contains(from);
        if is_member {
            self.heard.insert(from, now);
        }
        match message {
            Incoming::Answered(answered) => self.asking.on_answered(now, from, *answered),
            Incoming::Reply(reply) if is_member => self.on_reply(now, from, reply),
            Incoming::Busy(busy) if is_member => self.on_busy(now, from, busy),
            Incoming::CertifiedReply(reply) if is_member => self.on_certified(now, *reply),
            _ => {}
        }
    }

    /// Counts an answer: as soon as enough replicas to include an honest one say the same, the
    /// request is done.
    fn on_reply(&mut self, now: Time, from: ReplicaId, reply: Reply) {
        let committee = &self.config.committee;
        let Some(under_way) = self.under_way.get_mut(&reply.sequence) else {
            return;
        };
        let fits = reply.client.0 == self.config.identity.public()
            && reply.results.len() == under_way.tags.len();
        if !fits || !under_way.answered.insert(from.index()) {
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
        self.complete(now, done, reply.height, reply.results, None);
    }

    /// One certified answer is enough.
    fn on_certified(&mut self, now: Time, reply: CertifiedReply) {
        let Completion { client, sequence, .. } = reply.completion;
        let is_own = client.0 == self.config.identity.public();
        let Some(under_way) = self.under_way.get(&sequence).filter(|_| is_own) else { return };
        if !reply.answers(&under_way.request) {
            return;
        }
        let Some(done) = self.under_way.remove(&sequence) else { return };
        let height = reply.executed.header.height;
        let results = reply.results.clone();
        let receipt = Receipt { request: done.request.raw().clone(), reply };
        self.complete(now, done, height, results, Some(&Arc::new(receipt)));
    }

    fn complete(
        &mut self,
        now: Time,
        done: UnderWay,
        height: Height,
        results: Vec<Outcome>,
        receipt: Option<&Arc<Receipt>>,
    ) {
        self.pace.completed(done.sent_at, now);
        for (place, (tag, outcome)) in done.tags.into_iter().zip(results).enumerate() {
            let receipt = receipt.cloned();
            let completed = Completed { tag, outcome, height, receipt, place };
            self.effects.push_back(SessionEffect::Completed(completed));
        }
    }

    /// A replica has no room: the request goes to the next one after a pause, new ones too, and fewer
    /// are sent.
    fn on_busy(&mut self, now: Time, from: ReplicaId, busy: Busy) {
        let Some(under_way) = self.under_way.get_mut(&busy.sequence) else {
            return;
        };
        // What somebody executed, or what was sent elsewhere meanwhile, needs nothing of this one.
        if under_way.asked != from || !under_way.answers.is_empty() {
            return;
        }
        self.pace.refused(under_way.sent_at, now);
        under_way.retry_at = now + Pace::pause(under_way.refusals);
        under_way.refusals += 1;
        if self.reason.as_deref() != Some(&busy.reason) {
            self.reason = Some(busy.reason.into());
        }
    }

    /// Unanswered requests go to the next replica, one at a time: every replica that takes one seals it
    /// into a body, so asking all of them at once would multiply the load just when there is too much
    /// of it. The wait doubles with each attempt. New requests go elsewhere too. A request that
    /// somebody answered was executed: it only lacks further answers, and all are asked for theirs.
    fn retry(&mut self, now: Time) {
        let due: Vec<u64> =
            self.under_way.iter().filter(|(_, u)| u.retry_at <= now).map(|(seq, _)| *seq).collect();
        if due.is_empty() {
            return;
        }
        self.target = self.next_lively(self.target);
        for sequence in due {
            let Some(next) = self.under_way.get(&sequence).map(|u| self.next_for(u)) else {
                continue;
            };
            let Some(under_way) = self.under_way.get_mut(&sequence) else { continue };
            let to: Vec<ReplicaId> = if under_way.answers.is_empty() {
                vec![next]
            } else {
                let answered = &under_way.answered;
                let members = self.config.committee.members();
                members.filter(|member| !answered.contains(member.index())).collect()
            };
            under_way.asked = next;
            under_way.retries += 1;
            under_way.sent_at = now;
            let doublings = (under_way.retries - under_way.refusals.min(under_way.retries))
                .min(RETRY_DOUBLINGS_MAX);
            under_way.retry_at =
                now + self.pace.patience(self.config.retry_after) * (1 << doublings);
            let request = &under_way.request;
            self.effects.extend(
                to.into_iter().map(|to| SessionEffect::Send { to, request: request.clone() }),
            );
        }
    }

    /// Who is asked next for this. Replicas that say much and take nothing are lively too: once as
    /// many were asked as there are, everybody's turn comes.
    fn next_for(&self, under_way: &UnderWay) -> ReplicaId {
        let size = u32::try_from(self.config.committee.size()).expect("members are few");
        if under_way.retries < size {
            self.next_lively(under_way.asked)
        } else {
            self.turn(under_way.asked, 1)
        }
    }

    /// The next replica in turn that answered about as lately as the latest to answer: one that fell
    /// silent while others did not is passed over. Never the same one, if there is another.
    fn next_lively(&self, after: ReplicaId) -> ReplicaId {
        let heard = |member: ReplicaId| self.heard.get(&member).copied().unwrap_or_default();
        let latest = self.heard.values().copied().max().unwrap_or_default();
        (1..self.config.committee.size())
            .map(|step| self.turn(after, step))
            .find(|member| heard(*member) + self.config.retry_after / 2 >= latest)
            .unwrap_or_else(|| self.turn(after, 1))
    }

    /// So many members further.
    fn turn(&self, after: ReplicaId, steps: usize) -> ReplicaId {
        let index = (after.index() + steps) % self.config.committee.size();
        ReplicaId(u16::try_from(index).expect("members are few"))
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
            SessionEvent::Ask { tag, question } => self.asking.ask(now, tag, question, self.target),
            SessionEvent::Message { from, message } => {
                self.on_message(now, from, message.into_inner());
            }
        }
        self.flush(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.retry(now);
        self.asking.due(now);
        self.flush(now);
    }

    fn poll(&mut self) -> Option<SessionEffect> {
        self.effects.pop_front().or_else(|| self.asking.poll())
    }

    fn next_timeout(&self) -> Option<Time> {
        let retry = self.under_way.values().map(|under_way| under_way.retry_at).min();
        let flush = self
            .queued_since
            .filter(|_| self.is_window_open())
            .map(|since| since + self.config.bundling.delay);
        [retry, flush, self.asking.deadline()].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
