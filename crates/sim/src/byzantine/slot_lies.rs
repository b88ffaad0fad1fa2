//! Statements of faulty members of a windowed protocol in the place of their machine's.
//!
//! Behaviours are named by what they do to chained protocols; here each does the like: who lies
//! about its highest certificate hides slots in its view changes, who extends the wrong parent
//! fills slots far ahead.

use super::Behaviour;
use super::lies::{Outgoing, Pen, to_some};
use quorate_consensus::windowed::{
    CommitShare, FastReport, Message as Statement, NewView, Path, PrePrepare, Proof, Proposal,
    Shares, SignShare, SlotCertificate, Status, ViewChange, WINDOW, digest_of,
};
use quorate_crypto::{Aggregate, Bitmap, Certificate, Digest, Policy, Share, hash};
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_types::{BodyRef, Height, Kind, Payload, Purpose, Recipients, ReplicaId, View};
use std::collections::BTreeMap;

/// Certificates kept back at most.
const WITHHELD_MAX: usize = 8;
/// Votes remembered, to cast them again too late.
const CAST_MAX: usize = 16;

/// Memory that a liar has of slots.
#[derive(Debug, Default)]
pub(super) struct SlotMemory {
    withheld: Vec<Statement>,
    /// Its own last votes.
    cast: Vec<Statement>,
    /// An early view change of each member.
    heard: BTreeMap<ReplicaId, (View, Digest)>,
}

impl SlotMemory {
    /// Remembers a statement that was heard.
    pub(super) fn hear(&mut self, said: &Statement) {
        if let Statement::ViewChange(change) = said {
            let early = (change.view, change.digest());
            self.heard.entry(change.signer).or_insert(early);
        }
    }
}

/// Returns what leaves in the place of a statement; `None` where it leaves as it is. Sets `gone`
/// when it will never say a word again.
pub(super) fn twist(
    pen: &Pen<'_>,
    behaviour: Behaviour,
    memory: &mut SlotMemory,
    gone: &mut bool,
    (to, said): (Recipients, &Statement),
    rng: &mut Rng,
) -> Option<Outgoing> {
    remember(memory, said);
    let truth = || (to, say(pen, said.clone()));
    let instead = |lie: Statement| Some(vec![(to, say(pen, lie))]);
    let beside = |lies: Vec<Statement>| {
        let lies = lies.into_iter().map(|lie| (Recipients::All, say(pen, lie)));
        Some(lies.chain([truth()]).collect())
    };
    match (behaviour, said) {
        (Behaviour::Silent, _) => Some(Vec::new()),
        (Behaviour::SilentLeader, Statement::PrePrepare(_) | Statement::NewView(_)) => {
            Some(Vec::new())
        }
        (
            Behaviour::Mute,
            Statement::SignShare(_) | Statement::CommitShare(_) | Statement::ViewChange(_),
        ) => Some(Vec::new()),
        (Behaviour::FutureFlood, Statement::SignShare(share)) => beside(far_votes(pen, share, rng)),
        (Behaviour::Forger, Statement::SignShare(share)) => beside(vec![forged_proof(pen, share)]),
        (Behaviour::StaleLeader, Statement::NewView(new_view)) => {
            instead(another_new_view(pen, new_view, memory, rng))
        }
        (Behaviour::CrashAtCertificate, Statement::Prepare(_) | Statement::Proof(_)) => {
            *gone = rng.one_in(8);
            gone.then(Vec::new)
        }
        (Behaviour::Equivocator, Statement::PrePrepare(proposed)) if to == Recipients::All => {
            Some(equivocate(pen, proposed, rng))
        }
        (Behaviour::SelectiveSend, _) => Some(to_some(pen, to, &say(pen, said.clone()), rng)),
        (Behaviour::WithheldCertificate, Statement::Prepare(_) | Statement::Proof(_)) => {
            Some(withhold(pen, said, memory, rng))
        }
        (Behaviour::WrongParent, Statement::PrePrepare(proposed)) => {
            instead(far_slot(pen, proposed, rng))
        }
        (Behaviour::DoubleVote, Statement::SignShare(share)) => {
            let other = Proposal { digest: Digest(rng.bytes32()), ..share.proposal };
            beside(vec![vote_for(pen, other), commit_for(pen, other)])
        }
        (Behaviour::TimeoutThenVote, Statement::ViewChange(_)) => beside(memory.cast.clone()),
        (Behaviour::LyingHighQc, Statement::ViewChange(change)) => {
            instead(hiding(pen, change, rng))
        }
        (Behaviour::PoisonedTc, Statement::ViewChange(change)) => {
            beside(vec![claiming(pen, change, rng)])
        }
        (Behaviour::BadShares, Statement::SignShare(_) | Statement::CommitShare(_)) => {
            instead(bad_share(pen, said, rng))
        }
        (Behaviour::BitmapMalleator, Statement::Prepare(_) | Statement::Proof(_)) => {
            instead(malleated(said, rng))
        }
        (Behaviour::Oversized, Statement::PrePrepare(proposed)) => {
            instead(oversized(pen, proposed))
        }
        (Behaviour::Censor, Statement::PrePrepare(proposed)) => instead(censored(pen, proposed)),
        (Behaviour::SyncAmplifier, _) => beside(questions(pen, said.view(), rng)),
        _ => None,
    }
}

fn remember(memory: &mut SlotMemory, said: &Statement) {
    if matches!(said, Statement::SignShare(_) | Statement::CommitShare(_)) {
        memory.cast.push(said.clone());
        if memory.cast.len() > CAST_MAX {
            memory.cast.remove(0);
        }
    }
}

pub(super) fn say(pen: &Pen<'_>, said: Statement) -> Message {
    Message::Consensus(pen.verifier.protocol().windowed(said))
}

pub(super) fn sign(pen: &Pen<'_>, purpose: Purpose, statement: &[u8]) -> Share {
    pen.verifier.committee().sign(purpose, &pen.keys.voting, statement)
}

fn sign_shares(pen: &Pen<'_>, proposal: &Proposal) -> Shares {
    let statement = pen.verifier.statement(Kind::Prepare, &proposal);
    let splits = pen.has_fast_path() && pen.verifier.committee().splits_keys();
    Shares {
        slow: sign(pen, Purpose::Vote, &statement),
        fast: splits.then(|| sign(pen, Purpose::Fast, &statement)),
    }
}

fn propose(pen: &Pen<'_>, view: View, payload: Payload) -> PrePrepare {
    let proposal = Proposal { view, slot: payload.header.height, digest: digest_of(&payload) };
    let signature = pen.sign_alone(&pen.verifier.statement(Kind::PrePrepare, &proposal));
    PrePrepare { view, payload, shares: sign_shares(pen, &proposal), signature }
}

pub(super) fn vote_for(pen: &Pen<'_>, proposal: Proposal) -> Statement {
    Statement::SignShare(SignShare { proposal, shares: sign_shares(pen, &proposal) })
}

fn commit_for(pen: &Pen<'_>, proposal: Proposal) -> Statement {
    let share = sign(pen, Purpose::Vote, &pen.verifier.statement(Kind::Commit, &proposal));
    Statement::CommitShare(CommitShare { proposal, share })
}

/// Well signed, for slots and views that nobody will reach.
fn far_votes(pen: &Pen<'_>, share: &SignShare, rng: &mut Rng) -> Vec<Statement> {
    let mut far = |from: u64| {
        let ahead = if rng.coin() { rng.below(600) } else { rng.bits() >> 1 };
        from.saturating_add(ahead)
    };
    (0..8)
        .map(|_| {
            let (view, slot) =
                (View(far(share.proposal.view.0)), Height(far(share.proposal.slot.0)));
            vote_for(pen, Proposal { view, slot, ..share.proposal })
        })
        .collect()
}

/// A proof by its own vote alone; where that makes none, one that says that everybody voted.
fn forged_proof(pen: &Pen<'_>, share: &SignShare) -> Statement {
    let members = pen.verifier.committee().size();
    let proposal = Proposal { digest: hash(&share.proposal.digest.0), ..share.proposal };
    let (path, kind, purpose) = if pen.has_fast_path() {
        (Path::Fast, Kind::Prepare, Purpose::Fast)
    } else {
        (Path::Slow, Kind::Commit, Purpose::Vote)
    };
    let message = pen.verifier.statement(kind, &proposal);
    let vote = sign(pen, purpose, &message);
    let shares = [(pen.id.index(), vote.clone())];
    let (scheme, _) = pen.verifier.committee().scheme(purpose);
    let combined = scheme.combine(&message, &shares, &Bitmap::new(members), Policy::Each);
    let certificate = combined.certificate.unwrap_or_else(|| Certificate {
        signers: Bitmap::from_indices(members, 0..members),
        aggregate: Aggregate(vote.0),
    });
    Statement::Proof(Proof { path, certificate: SlotCertificate { proposal, certificate } })
}

/// It names a view change that its member never sent, or one too few, or what members said as they
/// gave up earlier views.
fn another_new_view(
    pen: &Pen<'_>,
    new_view: &NewView,
    memory: &SlotMemory,
    rng: &mut Rng,
) -> Statement {
    let mut changes = new_view.changes.clone();
    match rng.below(3) {
        0 => drop(changes.pop()),
        1 => changes.last_mut().into_iter().for_each(|(_, digest)| *digest = hash(&digest.0)),
        _ => changes.iter_mut().for_each(|(member, digest)| {
            let earlier = memory.heard.get(member).filter(|(view, _)| *view < new_view.view);
            *digest = earlier.map_or(*digest, |(_, earlier)| *earlier);
        }),
    }
    Statement::NewView(sign_new_view(pen, NewView { changes, ..new_view.clone() }))
}

fn equivocate(pen: &Pen<'_>, proposed: &PrePrepare, rng: &mut Rng) -> Outgoing {
    let each = rng.coin();
    let header = proposed.payload.header;
    let variant = |number: usize| {
        let stamp = header.proposed_at_ms + number as u64;
        Payload::new(header.height, stamp, proposed.payload.bodies.clone())
    };
    let members: Vec<ReplicaId> = pen.members().collect();
    let variants = members.into_iter().enumerate().map(|(place, member)| {
        let number = if each { place } else { place % 2 };
        let message = propose(pen, proposed.view, variant(number));
        (Recipients::One(member), say(pen, Statement::PrePrepare(message)))
    });
    variants.collect()
}

/// Withholds what only it has certified, until later, all at once.
fn withhold(pen: &Pen<'_>, said: &Statement, memory: &mut SlotMemory, rng: &mut Rng) -> Outgoing {
    memory.withheld.push(said.clone());
    if memory.withheld.len() < WITHHELD_MAX && !rng.one_in(4) {
        return Vec::new();
    }
    let shown = std::mem::take(&mut memory.withheld).into_iter();
    shown.map(|said| (Recipients::All, say(pen, said))).collect()
}

/// A primary that leaves gaps, up to the end of the window and beyond.
fn far_slot(pen: &Pen<'_>, proposed: &PrePrepare, rng: &mut Rng) -> Statement {
    let Payload { header, bodies } = proposed.payload.clone();
    let ahead = rng.below(WINDOW + 8);
    let payload = Payload::new(Height(header.height.0 + ahead), header.proposed_at_ms, bodies);
    Statement::PrePrepare(propose(pen, proposed.view, payload))
}

pub(super) fn resign(pen: &Pen<'_>, mut change: ViewChange) -> Statement {
    let statement = pen.verifier.statement(Kind::ViewChange, &change.signed_content());
    change.signature = pen.sign_alone(&statement);
    Statement::ViewChange(Box::new(change))
}

/// A statement as if its member had meant to say just that: with new signatures where it has any of
/// its own.
pub(super) fn signed_again(pen: &Pen<'_>, said: Statement) -> Statement {
    match said {
        Statement::PrePrepare(proposed) => {
            Statement::PrePrepare(propose(pen, proposed.view, proposed.payload))
        }
        Statement::SignShare(share) => vote_for(pen, share.proposal),
        Statement::CommitShare(share) => commit_for(pen, share.proposal),
        Statement::ViewChange(change) => resign(pen, *change),
        Statement::NewView(new_view) => Statement::NewView(sign_new_view(pen, new_view)),
        other => other,
    }
}

pub(super) fn sign_new_view(pen: &Pen<'_>, mut new_view: NewView) -> NewView {
    let statement = pen.verifier.statement(Kind::NewView, &new_view.signed_content());
    new_view.signature = pen.sign_alone(&statement);
    new_view
}

/// A view change that knows less than its sender.
fn hiding(pen: &Pen<'_>, change: &ViewChange, rng: &mut Rng) -> Statement {
    let mut change = change.clone();
    if rng.coin() {
        change.slots.clear();
    } else {
        change.slots.retain(|_| rng.coin());
    }
    resign(pen, change)
}

/// A view change that claims to have accepted what nobody proposed.
fn claiming(pen: &Pen<'_>, change: &ViewChange, rng: &mut Rng) -> Statement {
    let mut change = change.clone();
    let before = View(change.view.0.saturating_sub(1));
    for report in &mut change.slots {
        if let FastReport::Accepted(view, digest) = &mut report.fast {
            *view = before;
            *digest = if rng.coin() { hash(&digest.0) } else { Digest(rng.bytes32()) };
        }
    }
    resign(pen, change)
}

fn bad_share(pen: &Pen<'_>, said: &Statement, rng: &mut Rng) -> Statement {
    let mut twisted = said.clone();
    let (share, proposal) = match &mut twisted {
        Statement::SignShare(SignShare { proposal, shares: Shares { fast: Some(fast), .. } })
            if rng.coin() =>
        {
            (fast, *proposal)
        }
        Statement::SignShare(SignShare { proposal, shares }) => (&mut shares.slow, *proposal),
        Statement::CommitShare(CommitShare { proposal, share }) => (share, *proposal),
        _ => return twisted,
    };
    match rng.below(3) {
        0 => share.0.iter_mut().for_each(|byte| *byte ^= 0x5a),
        1 => share.0.truncate(share.0.len() / 2),
        _ => *share = foreign(pen, proposal),
    }
    twisted
}

/// Over a statement of another kind.
fn foreign(pen: &Pen<'_>, proposal: Proposal) -> Share {
    pen.keys.voting.sign(&pen.verifier.statement(Kind::Checkpoint, &proposal))
}

fn malleated(said: &Statement, rng: &mut Rng) -> Statement {
    let mut twisted = said.clone();
    let (Statement::Prepare(certificate) | Statement::Proof(Proof { certificate, .. })) =
        &mut twisted
    else {
        return twisted;
    };
    let signers = &mut certificate.certificate.signers;
    let members = signers.members();
    let left_out = rng.index(members);
    let others = signers.iter().filter(|signer| *signer != left_out);
    let mut others = Bitmap::from_indices(members, others.collect::<Vec<_>>());
    others.insert(rng.index(members));
    *signers = others;
    twisted
}

fn oversized(pen: &Pen<'_>, proposed: &PrePrepare) -> Statement {
    let header = proposed.payload.header;
    let more = (0..Payload::BODIES_MAX as u64 + 1).map(|number| BodyRef {
        author: pen.id,
        sequence: u64::MAX - number,
        digest: hash(&number.to_le_bytes()),
    });
    let payload = Payload::new(header.height, header.proposed_at_ms, more.collect());
    Statement::PrePrepare(propose(pen, proposed.view, payload))
}

fn censored(pen: &Pen<'_>, proposed: &PrePrepare) -> Statement {
    let header = proposed.payload.header;
    let own = proposed.payload.bodies.iter().filter(|body| body.author == pen.id).copied();
    let payload = Payload::new(header.height, header.proposed_at_ms, own.collect());
    Statement::PrePrepare(propose(pen, proposed.view, payload))
}

/// It lacks everything, again and again.
fn questions(pen: &Pen<'_>, view: View, rng: &mut Rng) -> Vec<Statement> {
    let lacks = (0..4).map(|slot| (Height(slot), Digest(rng.bytes32()))).collect();
    let status = Status {
        view: View(0),
        in_view_change: rng.coin(),
        stable: Height(0),
        decided: Height(rng.below(8)),
        has: Vec::new(),
        lacks,
        turn: u32::try_from(rng.below(1 << 20)).expect("small"),
    };
    vec![Statement::Status(status), Statement::FetchViewChanges(view, pen.members().collect())]
}
