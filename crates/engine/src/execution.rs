//! Execution certificates: what a height came to, signed by so many members that one is honest.
//!
//! ```text
//!  all ──(Executed)──ExecutionShare──▶ collector ──ExecutionProof──▶ all
//!                                          │                          │
//!                                          └─CertifiedReply▶ clients ◀┘
//! ```
//!
//! Every member signs the root that a height came to and sends its share to the height's
//! collectors, the first of whom adds up shares over one root and shows the certificate to
//! everybody; each later one waits its turn (paper 002, §V-E: c + 1 of them, staggered). Whoever
//! sealed the body that carried a request answers its client: with the results, the path from them
//! to the root, and the certificate. That one answer proves itself; nobody else answers. Source:
//! paper 002, §V-A and §V-D.
//!
//! Collectors are drawn by a hash of epoch and height. Those that show nothing in time are passed
//! over for a while, and the share goes to whoever leads, then to everybody: so each member can
//! make the certificate. How long that is follows what certificates usually take. A client that
//! hears nothing asks again, and is answered with signed replies as without certificates.
//!
//! Where clients are answered by signed replies instead, the heights of snapshots alone are
//! certified: a snapshot with its certificate is what is left of a committee that lost too many.
//!
//! ★ A member whose own root is not the certified one signs and answers nothing more: one of the
//! signers is honest, so its own state is wrong.

use crate::certifier_output::CertifierOutput;
use crate::{Message, ReplicaConfig};
use quorate_consensus::collector_backoff::{CollectorBackoff, Turn};
use quorate_consensus::tally::{Ballots, Collector};
use quorate_consensus::windowed::execution_collectors;
use quorate_consensus::{Misbehaviour, Occupancy};
use quorate_crypto::merkle::Tree;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Certificate, Digest, Share, VotingSecret};
use quorate_types::executed::{
    CertifiedReply, Completion, ExecutionCertificate, executed_statement,
};
use quorate_types::machine::{Block, CombineOutcome, Executed};
use quorate_types::request::Answer;
use quorate_types::{ClientId, Committee, Header, Height, Purpose, Recipients, ReplicaId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// So many of the last heights are remembered: certificates, to answer members that lack them and
/// questions about their heights, and what is not certified yet. Clients of older ones ask again.
const KEPT: usize = 256;
/// Shares are taken for heights up to so many beyond the own.
const AHEAD_MAX: u64 = 64;
/// A share goes to the collectors, then to whoever leads, before it goes to everybody.
const ATTEMPTS: u32 = 2;
/// The wait between two attempts doubles so often.
const DOUBLINGS_MAX: u32 = 5;

/// A replica's part in certifying what it executed: signer, collector, and whom its clients ask.
#[derive(Debug)]
pub(crate) struct Execution {
    id: ReplicaId,
    committee: Arc<Committee>,
    voting: Arc<VotingSecret>,
    /// Requests are acknowledged by certificates.
    enabled: bool,
    /// [`Settings::certified_every`](crate::Settings::certified_every).
    every: u64,
    signs: bool,
    collector: Collector,
    /// Time after which the next collector is asked for a certificate.
    certify_timeout: Duration,
    open: BTreeMap<Height, Open>,
    certified: BTreeMap<Height, Known>,
    collector_backoff: CollectorBackoff,
    /// Who leads until it fails, as far as this member knows: the last to be asked. None where
    /// leaders take turns, and members are seldom in one view.
    leader: Option<ReplicaId>,
    executed: Height,
    /// The certificate says that the own state is wrong.
    diverged: Option<Height>,
    pub(crate) output: CertifierOutput,
    /// Certificates that are new, for the host.
    learnt: VecDeque<ExecutionCertificate>,
}

/// A height without a certificate.
#[derive(Debug, Default)]
struct Open {
    /// The requests that came by own bodies, with their digests.
    own: BTreeMap<(ClientId, u64), Digest>,
    /// What it came to here.
    executed: Option<Own>,
    shares: Shares,
}

/// A certificate, and since when it is known: about then everybody was shown it.
#[derive(Debug)]
struct Known {
    certificate: ExecutionCertificate,
    since: Time,
}

/// What a height came to here.
#[derive(Debug)]
struct Own {
    header: Header,
    leaves: Vec<Digest>,
    /// To clients that wait for this replica's acknowledgement.
    answers: Vec<Answer>,
    attempts: u32,
    /// The collectors that have the share; none once everybody has it.
    asked: Vec<ReplicaId>,
    /// Since when they have it.
    asked_at: Time,
    send_at: Option<Time>,
}

impl Own {
    fn new(header: Header, leaves: Vec<Digest>, answers: Vec<Answer>) -> Self {
        let (asked, asked_at) = (Vec::new(), Time(0));
        Self { header, leaves, answers, attempts: 0, asked, asked_at, send_at: None }
    }
}

/// What members say that a height came to.
#[derive(Debug, Default)]
struct Shares {
    by_root: Option<Ballots<Digest>>,
    /// When this member adds them up.
    turn: Turn,
    combined: Option<(Digest, Certificate)>,
}

impl Execution {
    /// One that knows nothing yet.
    pub(crate) fn new(config: &ReplicaConfig) -> Self {
        let committee = Arc::clone(config.verifier.committee());
        let policy = config.settings.verify;
        Self {
            id: config.id,
            voting: Arc::clone(&config.voting),
            enabled: config.settings.certifies_execution(),
            every: config.settings.certified_every(),
            signs: config.signs,
            collector: Collector::new(Arc::clone(&committee), Purpose::Execute, policy),
            // Two delays and two checks; a timeout is at least eight round trips.
            certify_timeout: config.settings.timeout() / 4,
            open: BTreeMap::new(),
            certified: BTreeMap::new(),
            collector_backoff: CollectorBackoff::new(config.settings.timeout() / 4),
            leader: None,
            executed: Height(0),
            diverged: None,
            output: CertifierOutput::default(),
            learnt: VecDeque::new(),
            committee,
        }
    }

    /// Whether requests are acknowledged once for all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Whether members sign what this height came to.
    fn certifies(&self, height: Height) -> bool {
        height.0.is_multiple_of(self.every)
    }

    /// Who leads until it fails, if anybody does.
    pub(crate) fn led_by(&mut self, leader: Option<ReplicaId>) {
        self.leader = leader;
    }

    // ---- executing ------------------------------------------------------------------------------

    /// A height is about to be executed.
    pub(crate) fn starts(&mut self, block: &Block) {
        if !self.enabled {
            return;
        }
        let own = block.bodies.iter().filter(|body| body.reference.author == self.id);
        let requests = own.flat_map(|body| &body.requests);
        let own = requests.map(|request| ((request.client, request.sequence), request.digest()));
        self.open.entry(block.height()).or_default().own = own.collect();
    }

    /// A height was executed. What it came to for own clients is theirs once it is certified.
    pub(crate) fn executed(&mut self, now: Time, executed: &Executed) {
        let height = executed.height();
        self.executed = height;
        if !self.certifies(height) {
            return;
        }
        let open = self.open.entry(height).or_default();
        let is_own = |answer: &&Answer| open.own.contains_key(&(answer.client, answer.sequence));
        let placed = executed.answers.iter().filter(|answer| answer.index.is_some());
        let answers = placed.filter(is_own).cloned().collect();
        open.executed = Some(Own::new(executed.header, executed.leaves.clone(), answers));
        self.settle(now, height);
    }

    /// The state is that of this height, from an earlier run or another member.
    pub(crate) fn resume(&mut self, now: Time, header: Header) {
        self.diverged = None;
        self.executed = header.height;
        self.open.retain(|height, _| *height > header.height);
        if !self.certifies(header.height) {
            return;
        }
        let own = Own::new(header, Vec::new(), Vec::new());
        self.open.insert(header.height, Open { executed: Some(own), ..Open::default() });
        self.settle(now, header.height);
    }

    /// Executed here: certified already, or to be signed.
    fn settle(&mut self, now: Time, height: Height) {
        if let Some(certificate) = self.certificate(height).cloned() {
            self.close(&certificate);
        } else if let Some((root, certificate)) = self.combined(height) {
            self.conclude(now, height, root, certificate);
        } else if self.is_recent(height) {
            self.sign(now, height);
        }
        while self.open.first_key_value().is_some_and(|(height, _)| !self.is_recent(*height)) {
            self.open.pop_first();
        }
    }

    fn combined(&mut self, height: Height) -> Option<(Digest, Certificate)> {
        self.open.get_mut(&height).and_then(|open| open.shares.combined.take())
    }

    /// Whether this height is still of interest to anybody.
    fn is_recent(&self, height: Height) -> bool {
        height.0.saturating_add(KEPT as u64) > self.newest().max(self.executed).0
    }

    /// Signs the root and sends the share to the collectors, or to everybody.
    fn sign(&mut self, now: Time, height: Height) {
        if !self.signs || self.diverged.is_some() {
            return;
        }
        let own = self.open.get(&height).and_then(|open| open.executed.as_ref());
        let Some((root, attempts)) = own.map(|own| (own.header.root(), own.attempts)) else {
            return;
        };
        let asked = self.to_be_asked(now, height, attempts);
        let wait = match &asked[..] {
            [] => self.certify_timeout * (1 << attempts.saturating_sub(1).min(DOUBLINGS_MAX)),
            some => self.collector_backoff.delay_after(now, some),
        };
        let scope = self.committee.scope();
        let statement = executed_statement(scope, height, root);
        let share = self.committee.sign(Purpose::Execute, &self.voting, &statement);
        let mut send = |to| {
            let message = Message::ExecutionShare(height, root, share.clone());
            self.output.outbox.push_back((to, message));
        };
        if asked.is_empty() {
            send(Recipients::All);
        }
        asked.iter().filter(|to| **to != self.id).for_each(|to| send(Recipients::One(*to)));
        let counts = asked.is_empty() || asked.contains(&self.id);
        if let Some(own) = self.open.get_mut(&height).and_then(|open| open.executed.as_mut()) {
            own.attempts += 1;
            (own.asked, own.asked_at, own.send_at) = (asked, now, Some(now + wait));
        }
        if counts {
            self.count(now, self.id, height, root, share);
        }
    }

    /// Who gets a share at this attempt: those of the collectors that are not passed over, then
    /// whoever leads; nobody in particular after that, or if they are all passed over.
    fn to_be_asked(&self, now: Time, height: Height, attempts: u32) -> Vec<ReplicaId> {
        let mut collectors = self.collectors(height);
        let leader = collectors.pop().into_iter().collect();
        let awaited = |some: Vec<ReplicaId>| -> Vec<ReplicaId> {
            some.into_iter().filter(|member| self.collector_backoff.awaits(now, *member)).collect()
        };
        let first = if attempts == 0 { awaited(collectors) } else { Vec::new() };
        if first.is_empty() && attempts < ATTEMPTS { awaited(leader) } else { first }
    }

    /// The height's collectors in their order, the same for all who know the same leader: that one
    /// last, or, where there is none, each member in its turn.
    fn collectors(&self, height: Height) -> Vec<ReplicaId> {
        let (epoch, members) = (self.committee.epoch(), self.committee.size());
        let redundancy = self.committee.weights().redundant_members();
        let in_turn = u16::try_from(height.0 % members as u64).expect("members are few");
        let last = self.leader.unwrap_or(ReplicaId(in_turn));
        execution_collectors(epoch, height, members, redundancy, last)
    }

    /// The collectors whose turns come before this member's. Whoever leads, and everybody where the
    /// share went to all, is asked when the others had theirs.
    fn earlier(&self, height: Height) -> Vec<ReplicaId> {
        let mut collectors = self.collectors(height);
        collectors.pop();
        let place = collectors.iter().position(|member| *member == self.id);
        collectors.truncate(place.unwrap_or(0));
        collectors
    }

    /// ★ Signs no more, and drops what has not left: its records are older than its signatures.
    pub(crate) fn stop_signing(&mut self) {
        self.signs = false;
        self.open.values_mut().filter_map(|open| open.executed.as_mut()).for_each(|own| {
            own.send_at = None;
        });
        self.output.outbox.clear();
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 2] {
        [
            Occupancy::new("open", self.open.len(), KEPT + AHEAD_MAX as usize),
            Occupancy::new("certified", self.certified.len(), KEPT),
        ]
    }

    // ---- collecting -----------------------------------------------------------------------------

    /// A member's share, its signature unchecked.
    pub(crate) fn on_share(
        &mut self,
        now: Time,
        from: ReplicaId,
        (height, root): (Height, Digest),
        share: Share,
    ) {
        if !self.certifies(height) {
            return;
        }
        if let Some(known) = self.certified.get(&height) {
            // A share that was on its way when everybody was shown the proof asks for nothing.
            if now.since(known.since) >= self.certify_timeout {
                let proof = Message::ExecutionProof(known.certificate.clone());
                self.output.outbox.push_back((Recipients::One(from), proof));
            }
            return;
        }
        if self.is_recent(height) && height.0 <= self.executed.0.saturating_add(AHEAD_MAX) {
            self.count(now, from, height, root, share);
        }
    }

    fn count(&mut self, now: Time, from: ReplicaId, height: Height, root: Digest, share: Share) {
        let members = self.committee.size();
        if !self.open.get(&height).is_some_and(|open| open.shares.turn.is_known()) {
            let at = now + self.collector_backoff.delay_after(now, &self.earlier(height));
            self.open.entry(height).or_default().shares.turn = Turn::From(at);
        }
        let open = self.open.entry(height).or_default();
        let new = || Ballots::new(members, Duration::ZERO);
        let ballots = open.shares.by_root.get_or_insert_with(new);
        // ★ What is added up is one statement.
        let sum = if mutants::active(Mutant::MixedRoots) { Digest::ZERO } else { root };
        let scope = self.committee.scope();
        ballots.add(from, sum, || executed_statement(scope, height, root), share);
        self.add_up(now, height);
    }

    /// Starts what can be added up, if it is this member's turn; whether that is anything.
    fn add_up(&mut self, now: Time, height: Height) -> bool {
        let Some(shares) = self.open.get_mut(&height).map(|open| &mut open.shares) else {
            return false;
        };
        let ballots = shares.by_root.as_mut().filter(|_| shares.turn.has_come(now));
        let jobs = ballots.map(|ballots| ballots.combine(now, &mut self.collector));
        let jobs = jobs.unwrap_or_default();
        let is_any = !jobs.is_empty();
        self.output.jobs.extend(jobs);
        is_any
    }

    /// A job of this collector's came back.
    pub(crate) fn on_combined(&mut self, now: Time, outcome: &CombineOutcome) {
        let mut open = self.open.iter_mut().filter_map(|(height, open)| {
            open.shares.by_root.as_mut().map(|ballots| (*height, ballots))
        });
        let Some((height, ballots)) = open.find(|(_, ballots)| ballots.awaits(outcome.id)) else {
            return;
        };
        let mut invalid = Vec::new();
        let made = ballots.combined(outcome, &mut self.collector, &mut invalid);
        self.output.misbehaviour.extend(invalid.into_iter().map(Misbehaviour::from));
        match made {
            Some((root, certificate)) => self.conclude(now, height, root, certificate),
            None => drop(self.add_up(now, height)),
        }
    }

    /// Enough members came to this root. Before this one came to any, it waits.
    fn conclude(&mut self, now: Time, height: Height, root: Digest, certificate: Certificate) {
        let Some(open) = self.open.get_mut(&height) else { return };
        let Some(own) = &open.executed else {
            open.shares.combined = Some((root, certificate));
            return;
        };
        if own.header.root() != root {
            self.diverge(height);
            return;
        }
        let certificate = ExecutionCertificate { header: own.header, certificate };
        self.output
            .outbox
            .push_back((Recipients::All, Message::ExecutionProof(certificate.clone())));
        self.keep(now, certificate);
    }

    // ---- certified ------------------------------------------------------------------------------

    /// A checked certificate.
    pub(crate) fn on_proof(
        &mut self,
        now: Time,
        from: ReplicaId,
        certificate: ExecutionCertificate,
    ) {
        self.collector_backoff.heard(from);
        let own = self.open.get(&certificate.header.height);
        // An answer to a share that was sent twice tells nothing of the time that it took.
        let own = own.and_then(|open| open.executed.as_ref()).filter(|own| own.attempts == 1);
        if let Some(own) = own {
            self.collector_backoff.observed(from, now.since(own.asked_at));
        }
        let height = certificate.header.height;
        if self.certifies(height) && self.is_recent(height) {
            self.keep(now, certificate);
        }
    }

    fn keep(&mut self, now: Time, certificate: ExecutionCertificate) {
        let height = certificate.header.height;
        if self.certified.contains_key(&height) {
            return;
        }
        self.close(&certificate);
        self.learnt.push_back(certificate.clone());
        self.certified.insert(height, Known { certificate, since: now });
        if self.certified.len() > KEPT {
            self.certified.pop_first();
        }
    }

    /// Acknowledges what the height came to, if it was executed here and came to the same.
    fn close(&mut self, certificate: &ExecutionCertificate) {
        let height = certificate.header.height;
        let Some(own) = self.open.get_mut(&height).and_then(|open| open.executed.take()) else {
            // To be executed yet: who waits for it stays known.
            return;
        };
        let Some(Open { own: requests, .. }) = self.open.remove(&height) else { return };
        if own.header != certificate.header && !mutants::active(Mutant::IgnoreCertifiedRoot) {
            self.diverge(height);
            return;
        }
        let tree = Tree::new(&own.leaves);
        for answer in own.answers {
            let path = answer.index.and_then(|index| tree.path(index));
            let request = requests.get(&(answer.client, answer.sequence));
            let (Some(path), Some(request)) = (path, request) else { continue };
            let Answer { client, sequence, results, .. } = answer;
            let reply = CertifiedReply {
                completion: Completion {
                    client,
                    sequence,
                    request: *request,
                    results: results.digest(),
                },
                results,
                path,
                executed: certificate.clone(),
            };
            let message = Message::CertifiedReply(Box::new(reply));
            self.output.outbox.push_back((Recipients::Client(client), message));
        }
    }

    /// The committee came to another state than this replica, from this height on.
    pub(crate) fn diverge(&mut self, height: Height) {
        self.diverged.get_or_insert(height);
        self.open.clear();
    }

    /// The height at which the committee came to another root, if it did.
    pub(crate) fn diverged(&self) -> Option<Height> {
        self.diverged
    }

    /// The certificate of a height, if it is kept.
    pub(crate) fn certificate(&self, height: Height) -> Option<&ExecutionCertificate> {
        self.certified.get(&height).map(|known| &known.certificate)
    }

    /// The last executed height.
    pub(crate) fn height(&self) -> Height {
        self.executed
    }

    /// The highest certified height.
    pub(crate) fn newest(&self) -> Height {
        self.certified.last_key_value().map_or(Height(0), |(height, _)| *height)
    }

    // ---- time -----------------------------------------------------------------------------------

    /// What is due: turns that came, and shares that go elsewhere.
    pub(crate) fn due(&mut self, now: Time) {
        self.take_turns(now);
        self.ask_again(now);
    }

    /// It is this member's turn to add up: those before it showed nothing.
    fn take_turns(&mut self, now: Time) {
        let is_due = |open: &Open| open.shares.turn.deadline().is_some_and(|at| at <= now);
        for height in self.those(is_due) {
            if self.add_up(now, height) {
                let earlier = self.earlier(height);
                self.collector_backoff.timed_out(now, &earlier);
            }
        }
    }

    /// Collectors that showed nothing are passed over, and the shares go elsewhere. Once everybody
    /// has them only the last height goes on, and those that own clients wait for.
    fn ask_again(&mut self, now: Time) {
        let is_due = |open: &Open| {
            open.executed.as_ref().and_then(|own| own.send_at).is_some_and(|at| at <= now)
        };
        for height in self.those(is_due) {
            let Some(own) = self.open.get(&height).and_then(|open| open.executed.as_ref()) else {
                continue;
            };
            let silent = own.asked.iter().filter(|asked| **asked != self.id);
            let silent: Vec<ReplicaId> = silent.copied().collect();
            self.collector_backoff.timed_out(now, &silent);
            let matters = height == self.executed || !own.answers.is_empty();
            if matters || own.attempts <= ATTEMPTS {
                self.sign(now, height);
            } else {
                self.open.remove(&height);
            }
        }
    }

    fn those(&self, which: impl Fn(&Open) -> bool) -> Vec<Height> {
        self.open.iter().filter(|(_, open)| which(open)).map(|(height, _)| *height).collect()
    }

    /// When [`Execution::due`] has something.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let sends = self.open.values().filter_map(|open| open.executed.as_ref()?.send_at);
        let turns = self.open.values().filter_map(|open| open.shares.turn.deadline());
        sends.chain(turns).min()
    }

    /// The next certificate that is new.
    pub(crate) fn poll_learnt(&mut self) -> Option<ExecutionCertificate> {
        self.learnt.pop_front()
    }
}

#[cfg(test)]
mod tests;
