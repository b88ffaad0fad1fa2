//! Certificates of availability: the proof, made before ordering, that an honest member stores a
//! body.
//!
//! ```text
//!  author ──Body──▶ members ──(Stored)──Acknowledgement──▶ author ──Certificate──▶ all
//! ```
//!
//! Every member follows each author's [chain](quorate_types::availability) of bodies as they are
//! stored here, and acknowledges to the author how far it reaches. The author turns
//! acknowledgements of `weak` weight into a certificate and broadcasts it. A leader proposes
//! certified bodies, and a voter takes a certified body for available though it does not hold it.
//!
//! All of this is soft state and none of it is waited for: a leader proposes an uncertified body
//! after two round trips, a voter fetches a body that it knows no certificate for, and a restart
//! begins without any. What is lost is made good by the next acknowledgement or certificate, for
//! each says all that its forerunners said.
//!
//! A member that lacks a body goes on after it once the body is certified; while it can chain
//! nothing else of an author it asks the author for its last certificate and the names of the rest.

mod certificate;
mod chain;
mod collector;
mod coverage;

pub use certificate::{Acknowledged, Acknowledgement, AvailabilityCertificate, Covered};

use crate::settings::Availability;
use crate::{Message, ReplicaConfig, Verifier};
use chain::{AHEAD_MAX, Chain};
use collector::Collector;
use coverage::Coverage;
use quorate_consensus::Occupancy;
use quorate_crypto::IdentitySecret;
use quorate_types::{Available, BodyRef, Recipients, ReplicaId, Time};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Between two rounds of acknowledgements, and between two certificates: each costs its receivers
/// signatures, and a later one says all that an earlier one did. The first after a pause leaves at
/// once.
const ROUND: Duration = Duration::from_millis(10);
/// A missing body is usually on its way.
const GAP_GRACE: Duration = Duration::from_millis(100);
/// Time between two queries about one gap.
const GAP_RETRY: Duration = Duration::from_millis(1_000);
/// Queries about a gap while nothing more of its author is stored.
const GAP_ATTEMPTS: u32 = 4;
/// Names told to a member with a gap: as many as it takes on hearsay.
const NAMES_TOLD: usize = 64;

/// A replica's part in certifying bodies: member, author, leader and voter.
#[derive(Debug)]
pub(crate) struct Certifier {
    id: ReplicaId,
    identity: Arc<IdentitySecret>,
    verifier: Arc<Verifier>,
    enabled: bool,
    signs: bool,
    /// A leader proposes uncertified bodies that are here for longer.
    grace: Duration,
    chains: BTreeMap<ReplicaId, Chain>,
    gaps: BTreeMap<ReplicaId, Gap>,
    unacknowledged: BTreeSet<ReplicaId>,
    acknowledge_from: Time,
    collector: Collector,
    is_ripe: bool,
    certify_from: Time,
    coverage: Coverage,
    fresh: Vec<BodyRef>,
    outbox: VecDeque<(Recipients, Message)>,
}

/// A body that is lacking while later ones of its author are stored.
#[derive(Debug)]
struct Gap {
    ask_at: Time,
    asked: u32,
}

impl Certifier {
    /// One that knows nothing yet.
    pub(crate) fn new(config: &ReplicaConfig) -> Self {
        Self {
            id: config.id,
            identity: Arc::clone(&config.identity),
            verifier: Arc::clone(&config.verifier),
            // A learner stores what was ordered long ago: its word is nothing to anybody.
            enabled: config.settings.availability == Availability::Certified
                && !config.is_learner(),
            signs: config.signs,
            // Certifying takes a round trip and two syncs; a timeout is at least eight round trips.
            grace: config.settings.timeout() / 4,
            chains: BTreeMap::new(),
            gaps: BTreeMap::new(),
            unacknowledged: BTreeSet::new(),
            acknowledge_from: Time(0),
            collector: Collector::new(config.id),
            is_ripe: false,
            certify_from: Time(0),
            coverage: Coverage::default(),
            fresh: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    /// ★ Signs no more, and drops what has not left: its records are older than its signatures.
    pub(crate) fn stop_signing(&mut self) {
        self.signs = false;
        self.outbox.clear();
    }

    pub(crate) fn occupancy(&self) -> [Occupancy; 3] {
        let members = self.verifier.committee().size();
        [
            Occupancy::new("chains", self.chains.len(), members),
            Occupancy::new("gaps", self.gaps.len(), members),
            Occupancy::of_fullest("ahead", self.chains.values().map(Chain::ahead), AHEAD_MAX),
        ]
    }

    // ---- what is stored here --------------------------------------------------------------------

    /// These are durable since an earlier run. Nothing is said about them before more is stored.
    pub(crate) fn recover(&mut self, stored: &[BodyRef]) {
        if !self.enabled {
            return;
        }
        // Nobody numbers changes of committee.
        let sorted: BTreeSet<&BodyRef> = stored.iter().filter(|name| !name.is_change()).collect();
        for name in sorted {
            if let Some(chain) = self.chain(name.author, name.sequence) {
                chain.store(name);
            }
        }
    }

    /// A body is durable here (★: nothing is acknowledged before).
    pub(crate) fn stored(&mut self, now: Time, name: &BodyRef) {
        if !self.enabled {
            return;
        }
        let Some(chain) = self.chain(name.author, name.sequence) else { return };
        let grew = chain.store(name);
        self.chain_changed(now, name.author, grew);
    }

    /// The chain that takes up this author's body; none for one from before the author's last
    /// start.
    fn chain(&mut self, author: ReplicaId, sequence: u64) -> Option<&mut Chain> {
        let start = Available::first_sequence(sequence);
        let chain = self.chains.entry(author).or_insert_with(|| Chain::new(author, sequence));
        if chain.start() < start {
            *chain = Chain::new(author, sequence);
        }
        (chain.start() == start).then_some(chain)
    }

    fn chain_changed(&mut self, now: Time, author: ReplicaId, grew: bool) {
        if grew && author == self.id {
            self.is_ripe = self.is_ripe();
        } else if grew && self.signs {
            self.unacknowledged.insert(author);
        }
        let has_gap = self.chains.get(&author).is_some_and(Chain::has_gap);
        if !has_gap || author == self.id {
            self.gaps.remove(&author);
            return;
        }
        let gap = self.gaps.entry(author).or_insert(Gap { ask_at: now + GAP_GRACE, asked: 0 });
        if gap.asked >= GAP_ATTEMPTS {
            *gap = Gap { ask_at: now + GAP_RETRY, asked: 0 };
        }
    }

    // ---- what others say ------------------------------------------------------------------------

    /// A member acknowledges bodies of this author.
    pub(crate) fn on_acknowledgement(&mut self, from: ReplicaId, given: &Acknowledgement) {
        if self.enabled && self.collector.acknowledge(from, given) {
            self.is_ripe = self.is_ripe();
        }
    }

    /// A checked certificate of another author. `false` if it contradicts what is known: the author
    /// sealed two bodies under one number.
    pub(crate) fn on_certificate(&mut self, now: Time, covered: &Covered) -> bool {
        let author = covered.author;
        if !self.enabled || author == self.id {
            return true;
        }
        self.verifier.publish_certified(author, covered.end());
        let agrees = self.coverage.add(covered, &mut self.fresh);
        let Some(chain) = self.chain(author, covered.first) else { return agrees };
        let Ok(grew) = chain.adopt(covered) else { return false };
        let is_more = chain.next() > covered.end();
        self.chain_changed(now, author, grew);
        if !is_more {
            // All that could be acknowledged is certified.
            self.unacknowledged.remove(&author);
        }
        agrees
    }

    /// A member can chain nothing of this author from `next` on.
    pub(crate) fn on_fetch(&mut self, from: ReplicaId, next: u64) {
        let (certificate, names) = self.collector.help(next, NAMES_TOLD);
        let certificate = certificate.cloned().map(Message::Available);
        let names = (!names.is_empty()).then_some(Message::Announce(names));
        let help = certificate.into_iter().chain(names);
        self.outbox.extend(help.map(|message| (Recipients::One(from), message)));
    }

    // ---- what is ordered ------------------------------------------------------------------------

    /// This author sealed a body.
    pub(crate) fn sealed(&mut self, name: &BodyRef) {
        if self.enabled {
            self.collector.seal(name);
        }
    }

    /// Returns `true` if a certificate covers this body: a vote may name it though it is not here
    /// (★).
    pub(crate) fn covers(&self, name: &BodyRef) -> bool {
        self.coverage.contains(name)
    }

    /// Time at which a leader may propose a pending body that has been here `since` then.
    pub(crate) fn proposable_at(&self, name: &BodyRef, since: Time) -> Time {
        if !self.enabled || self.covers(name) { since } else { since + self.grace }
    }

    /// A member that acknowledged this body, if it is certified: different ones for different
    /// bodies.
    pub(crate) fn holder(&self, name: &BodyRef) -> Option<ReplicaId> {
        self.coverage.holder(name, self.id)
    }

    /// Takes note of bodies that were decided.
    pub(crate) fn decided(&mut self, names: &[BodyRef]) {
        for name in names.iter().filter(|name| name.author == self.id) {
            self.collector.decide(name.sequence);
        }
    }

    /// These were executed, and no other height needs them.
    pub(crate) fn executed(&mut self, names: &[BodyRef]) {
        names.iter().for_each(|name| self.coverage.forget(name));
    }

    // ---- what to say ----------------------------------------------------------------------------

    /// Bodies that were covered since the last call.
    pub(crate) fn take_fresh(&mut self) -> Vec<BodyRef> {
        std::mem::take(&mut self.fresh)
    }

    /// The next message to send, after [`Certifier::due`].
    pub(crate) fn poll(&mut self) -> Option<(Recipients, Message)> {
        self.outbox.pop_front()
    }

    /// Acknowledges, certifies and asks, as far as it is time.
    pub(crate) fn due(&mut self, now: Time) {
        if !self.unacknowledged.is_empty() && self.acknowledge_from <= now {
            self.acknowledge_from = now + ROUND;
            self.acknowledge();
        }
        if self.is_ripe && self.certify_from <= now {
            self.certify_from = now + ROUND;
            self.certify();
        }
        for (author, gap) in &mut self.gaps {
            if gap.ask_at <= now && gap.asked < GAP_ATTEMPTS {
                gap.ask_at = now + GAP_RETRY;
                gap.asked += 1;
                let next = self.chains.get(author).map_or(0, Chain::next);
                let query = Message::FetchAvailable(next);
                self.outbox.push_back((Recipients::One(*author), query));
            }
        }
    }

    /// Time at which [`Certifier::due`] has something.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let acknowledge = (!self.unacknowledged.is_empty()).then_some(self.acknowledge_from);
        let certify = self.is_ripe.then_some(self.certify_from);
        let open = self.gaps.values().filter(|gap| gap.asked < GAP_ATTEMPTS);
        let ask = open.map(|gap| gap.ask_at).min();
        [acknowledge, certify, ask].into_iter().flatten().min()
    }

    fn acknowledge(&mut self) {
        for author in std::mem::take(&mut self.unacknowledged) {
            if let Some(available) = self.may_state(author) {
                let message = Message::Acknowledgement(self.sign(available));
                self.outbox.push_back((Recipients::One(author), message));
            }
        }
    }

    fn certify(&mut self) {
        self.is_ripe = false;
        let own = self.may_state(self.id).map(|available| self.sign(available));
        let committee = self.verifier.committee();
        let Some((certificate, covered)) = self.collector.certify(committee, own.as_ref()) else {
            return;
        };
        self.verifier.publish_certified(self.id, covered.end());
        self.coverage.add(&covered, &mut self.fresh);
        self.outbox.push_back((Recipients::All, Message::Available(certificate)));
    }

    fn is_ripe(&self) -> bool {
        self.collector.is_ripe(self.verifier.committee(), self.may_state(self.id).as_ref())
    }

    /// Statement on an author's bodies that are stored here; `None` without any, or where this
    /// member may not sign.
    fn may_state(&self, author: ReplicaId) -> Option<Available> {
        self.chains.get(&author).and_then(Chain::available).filter(|_| self.signs)
    }

    fn sign(&self, available: Available) -> Acknowledgement {
        let committee = self.verifier.committee();
        let statement = available.statement(committee.scope());
        Acknowledgement { available, signature: self.identity.sign(&statement) }
    }
}

#[cfg(test)]
mod tests;
