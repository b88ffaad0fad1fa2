//! Messages by the dozen, as cheap to send and as dear to check as a liar can make them.

use super::Behaviour;
use super::lies::{Outgoing, Pen, chained_rules};
use super::slot_lies;
use quorate_consensus::chained::{Message as Statement, Qc, Timeout, Vote};
use quorate_consensus::windowed::collectors::primary;
use quorate_consensus::windowed::{
    self, DecidedSlot, FastReport, NewView, Path, Proof, Proposal, SlotCertificate, SlotReport,
    SlowReport, ViewChange, WINDOW, digest_of,
};
use quorate_consensus::{FamilyMessage, Message as Said};
use quorate_crypto::{Aggregate, Bitmap, Certificate, Digest, Share};
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_types::{BlockId, Body, Height, Payload, Purpose, Recipients, ReplicaId, View};
use std::collections::VecDeque;
use std::sync::Arc;

/// Messages that go with one statement.
const BESIDE_ONE: usize = 20;

/// Messages that go with all statements together, lest a run have no end.
const BESIDE_ALL: usize = 10_000;

/// Messages remembered, to be sent again.
const KEPT_MAX: usize = 64;

/// Memory that a flood is made from.
#[derive(Debug, Default)]
pub(super) struct FloodMemory {
    /// What it said itself, and of others what is as good from anybody.
    kept: VecDeque<Said>,
    /// The last body of its own.
    body: Option<Arc<Body>>,
    /// The highest certificate of a chained protocol.
    high_qc: Option<Qc>,
    /// The highest view, and the highest slot.
    view: View,
    slot: Height,
    /// Its share over nothing, which stands for all that nobody will find to be good.
    share: Option<Share>,
    /// Messages sent beside statements so far.
    sent: usize,
}

impl FloodMemory {
    /// Remembers a statement that was heard.
    pub(super) fn hear(&mut self, said: &Said) {
        if is_good_from_anybody(said) {
            self.keep(said);
        }
        self.note(said);
    }

    /// Remembers what its machine says.
    pub(super) fn say(&mut self, message: &Message) {
        match message {
            Message::Consensus(said) => {
                self.keep(said);
                self.note(said);
            }
            Message::Body(body) => self.body = Some(Arc::clone(body)),
            _ => {}
        }
    }

    fn keep(&mut self, said: &Said) {
        self.kept.push_back(said.clone());
        if self.kept.len() > KEPT_MAX {
            self.kept.pop_front();
        }
    }

    fn note(&mut self, said: &Said) {
        self.view = self.view.max(said.view());
        match said.by_family() {
            FamilyMessage::Chained(said) => {
                let newer = |qc: &&Qc| self.high_qc.as_ref().is_none_or(|high| high.view < qc.view);
                if let Some(qc) = said.rests_on().filter(newer) {
                    self.high_qc = Some(qc.clone());
                }
            }
            FamilyMessage::Windowed(windowed::Message::SignShare(share)) => {
                self.slot = self.slot.max(share.proposal.slot);
            }
            FamilyMessage::Windowed(_) => {}
        }
    }

    /// Returns what goes with one more statement.
    pub(super) fn beside_one(
        &mut self,
        pen: &Pen<'_>,
        behaviour: Behaviour,
        rng: &mut Rng,
    ) -> Outgoing {
        let count = BESIDE_ONE.min(BESIDE_ALL - self.sent);
        let flood = self.flood(pen, behaviour, count, rng);
        self.sent += flood.len();
        flood
    }

    /// Returns `count` messages of a flood; none where the behaviour is no flood, or nothing was
    /// said yet to make them from.
    pub(super) fn flood(
        &mut self,
        pen: &Pen<'_>,
        behaviour: Behaviour,
        count: usize,
        rng: &mut Rng,
    ) -> Outgoing {
        let is_chained = pen.verifier.protocol().chained_rules().is_some();
        let share = self.share.get_or_insert_with(|| pen.keys.voting.sign(&[])).clone();
        let memory = &*self;
        let one = |number: usize, rng: &mut Rng| match (behaviour, is_chained) {
            (Behaviour::CertificateFlood, true) => {
                Some(forged(pen, memory.view, share.clone(), rng))
            }
            (Behaviour::CertificateFlood, false) => Some(forged_slot(pen, memory, &share, rng)),
            (Behaviour::ReplayFlood, _) => memory.again(rng),
            (Behaviour::VoteFlood, true) => Some(vote_for_nothing(pen, memory.view, rng)),
            (Behaviour::VoteFlood, false) => Some(slot_vote_for_nothing(pen, memory, rng)),
            (Behaviour::TimeoutFlood, true) => timeout(pen, memory, share.clone(), rng),
            (Behaviour::TimeoutFlood, false) => Some(departure(pen, memory.view, rng)),
            (Behaviour::BodyFlood, _) => memory.another_body(pen, number),
            (Behaviour::BodyHider, _) => memory.another_body(pen, memory.sent + number),
            _ => None,
        };
        let flood = (0..count).filter_map(|number| one(number, rng));
        flood.map(|message| (Recipients::All, message)).collect()
    }

    /// The same message, to all but the leader if it is a body.
    pub(super) fn hide_body(
        &self,
        pen: &Pen<'_>,
        (to, message): (Recipients, Message),
    ) -> Outgoing {
        if to != Recipients::All || !matches!(message, Message::Body(_)) {
            return vec![(to, message)];
        }
        let leader = primary(self.view, pen.verifier.committee().size());
        let others = pen.members().filter(|member| *member != leader);
        others.map(|member| (Recipients::One(member), message.clone())).collect()
    }

    fn again(&self, rng: &mut Rng) -> Option<Message> {
        let place = (!self.kept.is_empty()).then(|| rng.index(self.kept.len()))?;
        Some(Message::Consensus(self.kept[place].clone()))
    }

    /// The requests of its last body, under a later number.
    fn another_body(&self, pen: &Pen<'_>, number: usize) -> Option<Message> {
        let body = self.body.as_ref()?;
        let sequence = body.reference.sequence + 1 + number as u64;
        Some(Message::Body(Arc::new(Body::seal(pen.id, sequence, &body.requests))))
    }
}

/// Votes and questions are their sender's; all else proves itself.
fn is_good_from_anybody(said: &Said) -> bool {
    match said.by_family() {
        FamilyMessage::Chained(said) => matches!(
            said,
            Statement::Certificates { .. } | Statement::PreCommitted(_) | Statement::NewView(_)
        ),
        FamilyMessage::Windowed(said) => matches!(
            said,
            windowed::Message::PrePrepare(_)
                | windowed::Message::Prepare(_)
                | windowed::Message::Proof(_)
                | windowed::Message::Decided(_)
                | windowed::Message::ViewChange(_)
                | windowed::Message::NewView(_)
                | windowed::Message::Stable(_)
        ),
    }
}

/// Everybody's signature in form, and nobody's in truth.
fn forged_certificate(pen: &Pen<'_>, purpose: Purpose, share: &Share) -> Certificate {
    let members = pen.verifier.committee().size();
    let (scheme, _) = pen.verifier.committee().scheme(purpose);
    let bytes = share.0.iter().copied().cycle().take(scheme.aggregate_bytes(members));
    let signers = Bitmap::from_indices(members, 0..members);
    Certificate { signers, aggregate: Aggregate(bytes.collect()) }
}

fn any_block(rng: &mut Rng) -> BlockId {
    BlockId(Digest(rng.bytes32()))
}

/// A certificate over a block that nobody proposed, in one of the messages that show any.
fn forged(pen: &Pen<'_>, view: View, share: Share, rng: &mut Rng) -> Message {
    let rules = chained_rules(pen.verifier);
    let high_qc = Qc {
        view,
        id: any_block(rng),
        base_view: View(view.0.saturating_sub(rules.links)),
        base_id: any_block(rng),
        certificate: forged_certificate(pen, Purpose::Vote, &share),
    };
    let kinds = if rules.is_phased() { 4 } else { 2 };
    pen.say(match rng.below(kinds) {
        0 => Statement::Certificates { high_qc, high_tc: None },
        1 => Statement::Timeout(Timeout {
            view: high_qc.leads_to(rules),
            high_qc,
            high_tc: None,
            last_vote: None,
            signer: pen.id,
            share,
        }),
        2 => Statement::PreCommitted(Qc { base_view: view.previous(), ..high_qc }),
        _ => Statement::NewView(high_qc),
    })
}

/// The like for a slot, in one of the messages that show certificates.
fn forged_slot(pen: &Pen<'_>, memory: &FloodMemory, share: &Share, rng: &mut Rng) -> Message {
    let kind = rng.below(4);
    let slot = |ahead: u64| Height(memory.slot.0 + 1 + ahead);
    let mut certify = |purpose: Purpose, ahead: u64| SlotCertificate {
        proposal: Proposal { view: memory.view, slot: slot(ahead), digest: Digest(rng.bytes32()) },
        certificate: forged_certificate(pen, purpose, share),
    };
    let (path, purpose) =
        if pen.has_fast_path() { (Path::Fast, Purpose::Fast) } else { (Path::Slow, Purpose::Vote) };
    let said = match kind {
        0 => windowed::Message::Prepare(certify(Purpose::Vote, 0)),
        1 => windowed::Message::Proof(Proof { path, certificate: certify(purpose, 0) }),
        2 => {
            let (payload, certificate) = with_value(certify(purpose, 0));
            let proof = Proof { path, certificate };
            windowed::Message::Decided(Box::new(DecidedSlot { payload, proof }))
        }
        _ => {
            let report = |ahead| {
                let (payload, certificate) = with_value(certify(Purpose::Vote, ahead));
                let slow = SlowReport::Prepared(certificate, payload);
                SlotReport { slot: slot(ahead), slow, fast: FastReport::Nothing }
            };
            view_change(pen, memory.view.next(), (0..WINDOW / 8).map(report).collect())
        }
    };
    slot_lies::say(pen, said)
}

/// The certificate of an empty value for its slot, with that value.
fn with_value(mut certificate: SlotCertificate) -> (Payload, SlotCertificate) {
    let payload = Payload::new(certificate.proposal.slot, 0, Vec::new());
    certificate.proposal.digest = digest_of(&payload);
    (payload, certificate)
}

fn view_change(pen: &Pen<'_>, view: View, slots: Vec<SlotReport>) -> windowed::Message {
    let signature = Vec::new();
    slot_lies::resign(pen, ViewChange { view, signer: pen.id, stable: None, slots, signature })
}

/// Well signed, in a view that is under way.
fn vote_for_nothing(pen: &Pen<'_>, view: View, rng: &mut Rng) -> Message {
    let vote = Vote {
        view,
        id: any_block(rng),
        base_view: view.previous(),
        base_id: any_block(rng),
        signer: pen.id,
        share: Share(Vec::new()),
    };
    pen.say(pen.signed_again(Statement::Vote(vote)))
}

fn slot_vote_for_nothing(pen: &Pen<'_>, memory: &FloodMemory, rng: &mut Rng) -> Message {
    let slot = Height(memory.slot.0 + rng.below(8));
    let proposal = Proposal { view: memory.view, slot, digest: Digest(rng.bytes32()) };
    slot_lies::say(pen, slot_lies::vote_for(pen, proposal))
}

/// Timeout of a view that is over, which is answered with certificates, or of this one, in which
/// another share is no news.
fn timeout(pen: &Pen<'_>, memory: &FloodMemory, share: Share, rng: &mut Rng) -> Option<Message> {
    let high_qc = memory.high_qc.clone()?;
    let now = high_qc.leads_to(chained_rules(pen.verifier));
    let view = View(now.0.saturating_sub(rng.below(8)));
    let timeout = Timeout { view, high_qc, high_tc: None, last_vote: None, signer: pen.id, share };
    Some(pen.say(Statement::Timeout(timeout)))
}

/// It complains of this view, leaves one after another with nothing to report, and begins those
/// that it leads from reports that nobody has.
fn departure(pen: &Pen<'_>, view: View, rng: &mut Rng) -> Message {
    let members = pen.verifier.committee().size();
    let ahead = 1 + rng.below(2 * members as u64);
    if ahead == 1 {
        return slot_lies::say(pen, windowed::Message::Suspicion(view));
    }
    let view = View(view.0 + ahead);
    let said = if primary(view, members) == pen.id {
        let honest = pen.verifier.committee().weights().honest();
        let named = (0..).map(ReplicaId).take(usize::try_from(honest).unwrap_or(members));
        let changes = named.map(|member| (member, Digest(rng.bytes32()))).collect();
        let unsigned = NewView { view, changes, signature: Vec::new() };
        windowed::Message::NewView(slot_lies::sign_new_view(pen, unsigned))
    } else {
        view_change(pen, view, Vec::new())
    };
    slot_lies::say(pen, said)
}
