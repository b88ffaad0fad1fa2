//! What a recovered replica is offered: other blocks in the views in which it has signed.
//!
//! Everybody's keys are known here, so any member can be made to contradict itself; the replica under
//! test must not. The only part of this lane that knows one protocol from another.

use super::room::Shared;
use bytes::Bytes;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{Block, Message as Statement, PhaseVote, Proposal};
use quorate_consensus::{ProposalKey, Verifier};
use quorate_crypto::IdentitySecret;
use quorate_engine::Message;
use quorate_types::{BodyRef, ClientId, Kind, Payload, Peer, ReplicaId, Request, View};
use std::collections::BTreeMap;
use std::time::Duration;

/// Views before the last signed one whose blocks are offered again.
const VIEWS: u64 = 6;

/// Long enough for a body to be sealed and synced, too short for a view to be given up.
const A_MOMENT: Duration = Duration::from_millis(3);

/// Longer than any view takes.
const AGES: Duration = Duration::from_secs(2);

/// What has been said, as far as it makes an offer.
#[derive(Clone, Default)]
pub(super) struct Heard {
    proposals: BTreeMap<View, Proposal>,
    bodies: BTreeMap<BodyRef, (ReplicaId, Bytes)>,
    /// The last view in which the subject has signed anything.
    signed: View,
}

/// Something done to a recovered replica.
pub(super) enum Step {
    /// A frame arrives.
    Frame(Peer, Bytes),
    /// Nothing else happens for so long.
    Wait(Duration),
}

impl Heard {
    /// A message left its host.
    pub(super) fn hear(&mut self, from: ReplicaId, by_subject: bool, message: &Message) {
        let inner = match message {
            Message::Body(body) => {
                self.bodies.insert(body.reference, (from, content_of(message)));
                return;
            }
            Message::Consensus(inner) => inner.chained(),
            _ => None,
        };
        let Some(inner) = inner else { return };
        let view = match inner {
            Statement::Proposal(proposal) => {
                self.proposals.insert(proposal.block.view, proposal.clone());
                proposal.block.view
            }
            Statement::Vote(vote) => vote.view,
            Statement::Timeout(timeout) => timeout.view,
            Statement::PhaseVote(PhaseVote { vote, .. }) => vote.view,
            Statement::Certificates { .. } | Statement::PreCommitted(_) | Statement::NewView(_) => {
                return;
            }
        };
        if by_subject {
            self.signed = self.signed.max(view);
        }
    }

    /// First a wait, so that it says again what it has to say; then for each view another block before
    /// the one that was proposed, then time to give up, and all of it backwards.
    pub(super) fn conflicting(&self, shared: &Shared, subject: ReplicaId) -> Vec<Step> {
        let verifier = shared.verifier();
        let last = View(self.signed.0 + 1);
        let window = View(last.0.saturating_sub(VIEWS))..=last;
        let mut steps = vec![Step::Wait(A_MOMENT), request(shared, 1), Step::Wait(A_MOMENT)];
        for (view, proposal) in self.proposals.range(window.clone()) {
            for body in &proposal.block.payload.bodies {
                if let Some((from, content)) = self.bodies.get(body) {
                    steps.push(Step::Frame(Peer::Replica(*from), content.clone()));
                }
            }
            let parent = self.proposals.get(&proposal.block.justify.view);
            let offers = offers(shared, verifier.consensus(), subject, proposal, parent);
            steps.extend(offers);
            if view.0 + 1 == last.0 {
                steps.push(Step::Wait(A_MOMENT));
            }
        }
        steps.extend([Step::Wait(AGES), request(shared, 2), Step::Wait(A_MOMENT)]);
        for (_, proposal) in self.proposals.range(window).rev() {
            let other = other_block(shared, verifier.consensus(), &proposal.block);
            steps.push(from_author(verifier.consensus(), &other));
            steps.push(Step::Wait(A_MOMENT));
        }
        steps.push(Step::Wait(AGES));
        steps
    }
}

/// What leads into the view, another block, one that extends too little, and the one proposed.
fn offers(
    shared: &Shared,
    verifier: &Verifier,
    subject: ReplicaId,
    proposal: &Proposal,
    parent: Option<&Proposal>,
) -> Vec<Step> {
    let block = &proposal.block;
    let lead_in =
        Statement::Certificates { high_qc: block.justify.clone(), high_tc: block.tc.clone() };
    let somebody = ReplicaId(u16::from(subject.0 == 0));
    let mut steps = vec![frame(verifier, somebody, lead_in), Step::Wait(A_MOMENT)];
    if block.author == subject {
        // Nobody else can propose in its own view: it may want to, and must not want something new.
        return steps;
    }
    steps.push(from_author(verifier, &other_block(shared, verifier, block)));
    if let Some(parent) = parent {
        let stale = Block { justify: parent.block.justify.clone(), ..block.clone() };
        steps.push(from_author(verifier, &signed(shared, verifier, stale)));
    }
    steps.push(Step::Wait(A_MOMENT));
    steps.push(from_author(verifier, proposal));
    steps.push(Step::Wait(A_MOMENT));
    steps
}

/// Another block for the same place.
fn other_block(shared: &Shared, verifier: &Verifier, block: &Block) -> Proposal {
    let header = block.payload.header;
    let payload = Payload::new(header.height, header.proposed_at_ms + 1, Vec::new());
    signed(shared, verifier, Block { payload, ..block.clone() })
}

fn signed(shared: &Shared, verifier: &Verifier, block: Block) -> Proposal {
    let message = verifier.statement(Kind::Propose, &(block.view, block.id()));
    let keys = &shared.keys[block.author.index()];
    let signature = match shared.settings.proposal_key {
        ProposalKey::Identity => keys.identity.sign(&message).0.to_vec(),
        ProposalKey::Voting => keys.voting.sign(&message).0,
    };
    Proposal { block, signature }
}

fn from_author(verifier: &Verifier, proposal: &Proposal) -> Step {
    frame(verifier, proposal.block.author, Statement::Proposal(proposal.clone()))
}

fn frame(verifier: &Verifier, from: ReplicaId, message: Statement) -> Step {
    let message = Message::Consensus(verifier.protocol().message(message));
    Step::Frame(Peer::Replica(from), content_of(&message))
}

/// An operation that nobody has handed in before.
fn request(shared: &Shared, number: u8) -> Step {
    let secret = IdentitySecret::from_seed([200 + number; 32]);
    let (peer, content) = request_of(shared, &secret, 0, &Bytes::from(vec![number; 8]));
    Step::Frame(peer, content)
}

/// A client's request as a frame.
pub(super) fn request_of(
    shared: &Shared,
    secret: &IdentitySecret,
    sequence: u64,
    operation: &Bytes,
) -> (Peer, Bytes) {
    let chain = shared.committee.chain();
    let operations = std::slice::from_ref(operation);
    let request = Request::sign(secret, chain, sequence, operations).expect("a small request");
    let peer = Peer::Client(ClientId(secret.public()));
    (peer, content_of(&Message::Request(request)))
}

/// A frame's content, without the length before it.
pub(super) fn content_of(message: &Message) -> Bytes {
    Bytes::from(message.frame().0.concat()).slice(4..)
}
