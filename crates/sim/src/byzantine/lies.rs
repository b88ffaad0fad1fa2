//! One lie at a time. Whatever is signed in them is signed with the liar's own keys.

use bytes::Bytes;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{
    Block, Message as Statement, Phase, PhaseVote, Proposal, Tc, Timeout, Vote,
};
use quorate_consensus::{Verifier, chained};
use quorate_crypto::{Certificate, Digest, KeyFile, Share, hash};
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_engine::message::FetchBlocks;
use quorate_types::{
    BlockId, Body, BodyRef, HandOver, Height, Kind, Payload, Recipients, ReplicaId, Scope, View,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Blocks by their ids.
type Heard = BTreeMap<BlockId, Block>;

/// Certificates kept back at most.
const WITHHELD_MAX: usize = 8;

/// Messages that leave, with their recipients.
pub(super) type Outgoing = Vec<(Recipients, Message)>;

/// Keys and context that a liar signs with.
pub(super) struct Pen<'a> {
    pub(super) id: ReplicaId,
    pub(super) keys: &'a KeyFile,
    pub(super) verifier: &'a Verifier,
}

impl Pen<'_> {
    pub(super) fn sign_alone(&self, message: &[u8]) -> Vec<u8> {
        self.verifier.sign_alone(&self.keys.identity, &self.keys.voting, message)
    }

    pub(super) fn has_fast_path(&self) -> bool {
        self.verifier.protocol().windowed_rules().is_some_and(|rules| rules.fast_path)
    }

    pub(super) fn sign_block(&self, block: Block) -> Proposal {
        let message = self.verifier.statement(Kind::Propose, &(block.view, block.id()));
        let signature = self.sign_alone(&message);
        Proposal { block, signature }
    }

    pub(super) fn sign_vote(&self, phase: Phase, vote: &Vote) -> Vote {
        let share = self.keys.voting.sign(&vote.message(self.verifier, phase));
        Vote { signer: self.id, share, ..*vote }
    }

    pub(super) fn sign_timeout(&self, timeout: Timeout) -> Timeout {
        let rules = chained_rules(self.verifier);
        let statement = (timeout.view, timeout.high_qc.view);
        let share = self.keys.voting.sign(&self.verifier.statement(rules.timeout, &statement));
        Timeout { signer: self.id, share, ..timeout }
    }

    /// A statement as if its member had meant to say just that: with new signatures where it has
    /// any of its own.
    pub(super) fn signed_again(&self, statement: Statement) -> Statement {
        match statement {
            Statement::Proposal(proposal) => Statement::Proposal(self.sign_block(proposal.block)),
            Statement::Vote(vote) => Statement::Vote(self.sign_vote(Phase::Prepare, &vote)),
            Statement::PhaseVote(PhaseVote { phase, vote }) => {
                Statement::PhaseVote(PhaseVote { phase, vote: self.sign_vote(phase, &vote) })
            }
            Statement::Timeout(timeout) => Statement::Timeout(self.sign_timeout(timeout)),
            other => other,
        }
    }

    /// As a correct member would, if it heard of the blocks below.
    fn vote_for(&self, phase: Phase, block: &Block, heard: &Heard) -> Vote {
        let parent = (block.justify.view, block.justify.id);
        let links = chained_rules(self.verifier).links;
        let (base_view, base_id) = (1..links).fold(parent, |(view, id), _| {
            heard.get(&id).map_or((view, id), |below| (below.justify.view, below.justify.id))
        });
        let (view, id) = (block.view, block.id());
        let is_last = phase == Phase::Commit;
        let (base_view, base_id) = if is_last { (view, id) } else { (base_view, base_id) };
        self.sign_vote(
            phase,
            &Vote { view, id, base_view, base_id, signer: self.id, share: Share(Vec::new()) },
        )
    }

    /// In the words of the committee's protocol.
    pub(super) fn say(&self, statement: Statement) -> Message {
        Message::Consensus(self.verifier.protocol().message(statement))
    }

    pub(super) fn members(&self) -> impl Iterator<Item = ReplicaId> {
        let id = self.id;
        self.verifier.committee().members().filter(move |member| *member != id)
    }
}

fn with_payload(pen: &Pen<'_>, block: &Block, payload: Payload) -> Proposal {
    pen.sign_block(Block { payload, ..block.clone() })
}

/// To each half of the members another block, or to each member one of its own.
pub(super) fn equivocate(
    pen: &Pen<'_>,
    to: Recipients,
    proposal: &Proposal,
    original: &Message,
    rng: &mut Rng,
) -> Outgoing {
    if to != Recipients::All {
        return vec![(to, original.clone())];
    }
    let (each, block) = (rng.coin(), &proposal.block);
    let header = block.payload.header;
    let members: Vec<ReplicaId> = pen.members().collect();
    let variant = |number: usize| {
        let stamp = header.proposed_at_ms + number as u64;
        Payload::new(header.height, stamp, block.payload.bodies.clone())
    };
    let variants = members.iter().enumerate().map(|(place, member)| {
        let number = if each { place } else { place % 2 };
        let message = match number {
            0 => original.clone(),
            _ => pen.say(Statement::Proposal(with_payload(pen, block, variant(number)))),
        };
        (Recipients::One(*member), message)
    });
    variants.collect()
}

pub(super) fn to_some(pen: &Pen<'_>, to: Recipients, message: &Message, rng: &mut Rng) -> Outgoing {
    match to {
        Recipients::All => {
            let some = pen.members().filter(|_| rng.coin());
            some.map(|member| (Recipients::One(member), message.clone())).collect()
        }
        _ => vec![(to, message.clone())],
    }
}

/// Withholds what only it has certified, until later, all at once.
pub(super) fn withhold(
    pen: &Pen<'_>,
    statement: &Statement,
    withheld: &mut Vec<Statement>,
    rng: &mut Rng,
) -> Option<Outgoing> {
    let certificate = match statement {
        Statement::Proposal(Proposal { block: Block { justify: high_qc, .. }, .. })
        | Statement::Certificates { high_qc, .. } => {
            Statement::Certificates { high_qc: high_qc.clone(), high_tc: None }
        }
        Statement::PreCommitted(_) => statement.clone(),
        Statement::Vote(_)
        | Statement::PhaseVote(_)
        | Statement::Timeout(_)
        | Statement::NewView(_) => return None,
    };
    withheld.push(certificate);
    if withheld.len() < WITHHELD_MAX && !rng.one_in(4) {
        return Some(Vec::new());
    }
    let shown = std::mem::take(withheld).into_iter();
    Some(shown.map(|certificate| (Recipients::All, pen.say(certificate))).collect())
}

pub(super) fn wrong_parent(pen: &Pen<'_>, proposal: &Proposal, rng: &mut Rng) -> Statement {
    let mut block = proposal.block.clone();
    let header = block.payload.header;
    let bodies = block.payload.bodies.clone();
    match rng.below(4) {
        0 => {
            let height = Height(header.height.0 + 1 + rng.below(3));
            block.payload = Payload::new(height, header.proposed_at_ms, bodies);
        }
        1 => block.payload = Payload::new(header.height, 0, bodies),
        2 => block.justify.id = BlockId(Digest(rng.bytes32())),
        _ => block.justify.view = View(block.justify.view.0.saturating_sub(1)),
    }
    Statement::Proposal(pen.sign_block(block))
}

/// For another block of the view if it heard of one, or for one that does not exist.
pub(super) fn double_vote(
    pen: &Pen<'_>,
    phase: Phase,
    vote: &Vote,
    heard: &Heard,
    rng: &mut Rng,
) -> Outgoing {
    let other = heard.values().find(|block| block.view == vote.view && block.id() != vote.id);
    let second = match other {
        Some(block) => pen.vote_for(phase, block, heard),
        None => {
            let id = BlockId(Digest(rng.bytes32()));
            let base_id = if phase == Phase::Commit { id } else { vote.base_id };
            pen.sign_vote(phase, &Vote { id, base_id, ..vote.clone() })
        }
    };
    let say = |vote| match phase {
        Phase::Prepare => Statement::Vote(vote),
        Phase::PreCommit | Phase::Commit => Statement::PhaseVote(PhaseVote { phase, vote }),
    };
    [vote.clone(), second].map(|vote| (Recipients::All, pen.say(say(vote)))).into()
}

pub(super) fn vote_after(pen: &Pen<'_>, timeout: &Timeout, heard: &Heard) -> Outgoing {
    let of_the_view = heard.values().filter(|block| block.view == timeout.view);
    of_the_view
        .map(|block| pen.vote_for(Phase::Prepare, block, heard))
        .map(|vote| (Recipients::All, pen.say(Statement::Vote(vote))))
        .collect()
}

/// The certificate under the block that its highest one certifies.
pub(super) fn lower_high_qc(pen: &Pen<'_>, timeout: &Timeout, heard: &Heard) -> Statement {
    let lower = heard.get(&timeout.high_qc.id).map(|block| block.justify.clone());
    let high_qc = lower.unwrap_or_else(|| timeout.high_qc.clone());
    Statement::Timeout(pen.sign_timeout(Timeout { high_qc, ..timeout.clone() }))
}

/// A certificate that reports the future, hides its highest certificate, or counts a group twice.
pub(super) fn poisoned_tc(pen: &Pen<'_>, timeout: &Timeout, rng: &mut Rng) -> Outgoing {
    let Some(tc) = &timeout.high_tc else { return Vec::new() };
    let mut tc: Tc = tc.clone();
    match rng.below(4) {
        0 => {
            if let Some(last) = tc.groups.last_mut() {
                last.0 = View(u64::MAX);
            }
        }
        1 => tc.view = View(tc.view.0 + 1 + rng.below(8)),
        2 => tc.high_qc.view = View(tc.high_qc.view.0.saturating_sub(1)),
        _ => tc.groups.extend(tc.groups.clone()),
    }
    let high_qc = timeout.high_qc.clone();
    vec![(Recipients::All, pen.say(Statement::Certificates { high_qc, high_tc: Some(tc) }))]
}

pub(super) fn bad_shares(
    pen: &Pen<'_>,
    to: Recipients,
    statement: &Statement,
    rng: &mut Rng,
) -> Outgoing {
    let mut twisted = statement.clone();
    let (share, message) = match &mut twisted {
        Statement::Vote(vote) => {
            let message = foreign_vote(pen, Phase::Prepare, vote);
            (&mut vote.share, message)
        }
        Statement::PhaseVote(PhaseVote { phase, vote }) => {
            let message = foreign_vote(pen, *phase, vote);
            (&mut vote.share, message)
        }
        Statement::Timeout(timeout) => {
            let message = (timeout.view, timeout.high_qc.view);
            let message = foreign(pen, chained_rules(pen.verifier).timeout, &message);
            (&mut timeout.share, message)
        }
        Statement::Proposal(_)
        | Statement::Certificates { .. }
        | Statement::PreCommitted(_)
        | Statement::NewView(_) => return vec![(to, pen.say(statement.clone()))],
    };
    match rng.below(4) {
        0 => share.0.iter_mut().for_each(|byte| *byte ^= 0x5a),
        1 => share.0.truncate(share.0.len() / 2),
        2 => *share = pen.keys.voting.sign(&message),
        _ => return vec![(to, pen.say(statement.clone())), (to, pen.say(statement.clone()))],
    }
    vec![(to, pen.say(twisted))]
}

fn foreign_vote(pen: &Pen<'_>, phase: Phase, vote: &Vote) -> Vec<u8> {
    let message = (vote.view, vote.id, vote.base_view, vote.base_id);
    foreign(pen, chained_rules(pen.verifier).kind(phase), &message)
}

/// The signed bytes of a statement in the epoch after this one.
fn foreign(pen: &Pen<'_>, kind: Kind, payload: &impl borsh::BorshSerialize) -> Vec<u8> {
    let committee = pen.verifier.committee();
    let (network, next) = (committee.network(), committee.epoch().next());
    let epoch = HandOver::of_genesis(network).begins(network, next);
    quorate_types::sign::statement(kind, Scope { network, epoch }, payload)
}

/// One signer more, or one instead of another.
pub(super) fn malleated(statement: &Statement, rng: &mut Rng) -> Statement {
    let mut twisted = statement.clone();
    let qc = match &mut twisted {
        Statement::Proposal(Proposal { block, .. }) => &mut block.justify,
        Statement::Timeout(Timeout { high_qc, .. }) | Statement::Certificates { high_qc, .. } => {
            high_qc
        }
        Statement::PreCommitted(qc) | Statement::NewView(qc) => qc,
        Statement::Vote(_) | Statement::PhaseVote(_) => return twisted,
    };
    let Certificate { signers, .. } = &mut qc.certificate;
    let members = signers.members();
    let named: Vec<usize> = signers.iter().collect();
    let left_out = rng.index(members);
    let mut others = quorate_crypto::Bitmap::new(members);
    for signer in named.into_iter().filter(|signer| *signer != left_out) {
        others.insert(signer);
    }
    others.insert(rng.index(members));
    *signers = others;
    twisted
}

pub(super) fn oversized(pen: &Pen<'_>, proposal: &Proposal) -> Statement {
    let block = &proposal.block;
    let header = block.payload.header;
    let more = (0..Payload::BODIES_MAX as u64 + 1).map(|number| BodyRef {
        author: pen.id,
        sequence: u64::MAX - number,
        digest: hash(&number.to_le_bytes()),
    });
    let payload = Payload::new(header.height, header.proposed_at_ms, more.collect());
    Statement::Proposal(with_payload(pen, block, payload))
}

pub(super) fn censored(pen: &Pen<'_>, proposal: &Proposal) -> Statement {
    let block = &proposal.block;
    let header = block.payload.header;
    let own = block.payload.bodies.iter().filter(|body| body.author == pen.id).copied();
    let payload = Payload::new(header.height, header.proposed_at_ms, own.collect());
    Statement::Proposal(with_payload(pen, block, payload))
}

/// A body with a flipped bit, or its requests under another number. Nothing where it is no body.
pub(super) fn bad_bodies(
    pen: &Pen<'_>,
    to: Recipients,
    message: &Message,
    rng: &mut Rng,
) -> Option<Outgoing> {
    let Message::Body(body) = message else { return None };
    let lie = if rng.coin() {
        let mut raw = body.raw.to_vec();
        let place = rng.index(raw.len());
        raw[place] ^= 1 << rng.below(8);
        Body { raw: Bytes::from(raw), ..body.as_ref().clone() }
    } else {
        let sequence = body.reference.sequence + rng.below(3);
        Body::seal(pen.id, sequence, &body.requests)
    };
    Some(vec![(to, Message::Body(Arc::new(lie)))])
}

/// Questions whose answers are larger than they are.
pub(super) fn questions(heard: &Heard, rng: &mut Rng) -> Outgoing {
    let bodies = heard.values().flat_map(|block| block.payload.bodies.iter().copied());
    let bodies: Vec<BodyRef> = bodies.take(64).collect();
    let target = heard.keys().next_back().copied().unwrap_or(BlockId(Digest(rng.bytes32())));
    let fetch = |height| FetchBlocks { height: Height(height), after: None, target };
    let mut all = vec![
        Message::FetchBlocks(fetch(0)),
        Message::FetchBlocks(fetch(rng.bits() >> 1)),
        Message::FetchSnapshots(Height(0)),
        Message::FetchChunk(Digest(rng.bytes32()), u32::MAX),
        Message::FetchAvailable(rng.below(100)),
    ];
    if !bodies.is_empty() {
        all.push(Message::FetchBodies(bodies));
    }
    all.into_iter().map(|question| (Recipients::All, question)).collect()
}

/// Lies here are of chained protocols.
pub(super) fn chained_rules(verifier: &Verifier) -> &'static chained::Rules {
    verifier.protocol().chained_rules().expect("a chained protocol's statement was twisted")
}
