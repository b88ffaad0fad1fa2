//! Statements of faulty members in the place of their machine's.

use super::Behaviour;
use super::floods::FloodMemory;
use super::lies::{self, Outgoing, Pen};
use super::slot_lies::{self, SlotMemory};
use super::variants::{self, VariantMemory};
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_consensus::Verifier;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{
    Block, Message as Statement, Phase, PhaseVote, Proposal, Qc, Timeout, Vote,
};
use quorate_crypto::{Bitmap, Digest, KeyFile, Policy, Share, hash};
use quorate_deterministic::Rng;
use quorate_engine::Message;
use quorate_engine::message::{Blocks, Chunk, Kept, Offer};
use quorate_types::executed::executed_statement;
use quorate_types::request::Answer;
use quorate_types::{
    BlockId, Header, Height, Manifest, Outcome, Payload, Purpose, Recipients, ReplicaId, Reply,
    Results, View,
};
use std::collections::BTreeMap;

/// Filter between a faulty member's machine and the network.
#[derive(Debug)]
pub(crate) struct Liar {
    id: ReplicaId,
    behaviour: Behaviour,
    keys: KeyFile,
    /// Blocks that it heard of, the latest ones.
    heard: BTreeMap<BlockId, Block>,
    /// Certificates that it keeps to itself for a while.
    withheld: Vec<Statement>,
    slots: SlotMemory,
    variants: VariantMemory,
    floods: FloodMemory,
    /// It never says a word again.
    gone: bool,
}

impl Liar {
    /// Nothing for members that send what their machine says.
    pub(crate) fn new(id: ReplicaId, behaviour: Behaviour, keys: &KeyFile) -> Option<Self> {
        let truthful = behaviour.says_what_its_machine_says();
        let liar = || Self {
            id,
            behaviour,
            keys: keys.clone(),
            heard: BTreeMap::new(),
            withheld: Vec::new(),
            slots: SlotMemory::default(),
            variants: VariantMemory::default(),
            floods: FloodMemory::default(),
            gone: false,
        };
        (!truthful).then(liar)
    }

    /// A message of another member came.
    pub(crate) fn hear(&mut self, message: &consensus::Message) {
        if self.behaviour.is_flood() {
            self.floods.hear(message);
        }
        if let Some(said) = message.windowed() {
            self.slots.hear(said);
        }
        let Some(Statement::Proposal(proposal)) = message.chained() else {
            return;
        };
        self.heard.insert(proposal.block.id(), proposal.block.clone());
        let newest = proposal.block.view.0;
        self.heard.retain(|_, block| block.view.0 + 64 > newest);
    }

    /// Returns the messages that leave in the place of `message`.
    pub(crate) fn speak(
        &mut self,
        verifier: &Verifier,
        to: Recipients,
        message: Message,
        rng: &mut Rng,
    ) -> Outgoing {
        if self.gone {
            return Vec::new();
        }
        if self.behaviour.is_flood() {
            return self.flooded(verifier, to, message, rng);
        }
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        let (variants, said) = (&mut self.variants, (to, &message));
        if let Some(said) = variants::twist(&pen, self.behaviour, variants, said, rng) {
            return said;
        }
        if let Some(said) = self.twist_slots(verifier, to, &message, rng) {
            return said;
        }
        if let Some(said) = self.twist(verifier, to, &message, rng) {
            return said;
        }
        if self.behaviour == Behaviour::FalseReplies {
            match message {
                Message::Reply(reply) => {
                    return vec![(to, Message::Reply(self.false_reply(verifier, &reply)))];
                }
                Message::ExecutionShare(height, root, _) => {
                    return vec![(to, self.false_share(verifier, height, root))];
                }
                _ => {}
            }
        }
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        let made_up = match (self.behaviour, statement_of(&message)) {
            (Behaviour::Silent, _) => return Vec::new(),
            (Behaviour::SilentLeader, Some(Statement::Proposal(_))) => return Vec::new(),
            (
                Behaviour::Mute,
                Some(Statement::Vote(_) | Statement::PhaseVote(_) | Statement::Timeout(_)),
            ) => return Vec::new(),
            (Behaviour::FutureFlood, Some(statement)) => {
                self.future_flood(verifier, statement, rng)
            }
            (Behaviour::Forger, Some(Statement::Vote(vote))) => {
                vec![self.forged_certificate(verifier, vote, rng)]
            }
            (Behaviour::StaleLeader, Some(Statement::Proposal(proposal))) => {
                match self.stale_proposal(verifier, proposal) {
                    Some(stale) => return vec![(to, pen.say(Statement::Proposal(stale)))],
                    None => Vec::new(),
                }
            }
            (Behaviour::BadServer, None) => return vec![(to, spoiled(message))],
            _ => Vec::new(),
        };
        let made_up = made_up.into_iter().map(|statement| (Recipients::All, pen.say(statement)));
        made_up.chain([(to, message)]).collect()
    }

    /// The truth, after a flood if it is a statement.
    fn flooded(
        &mut self,
        verifier: &Verifier,
        to: Recipients,
        message: Message,
        rng: &mut Rng,
    ) -> Outgoing {
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        self.floods.say(&message);
        let is_statement = matches!(message, Message::Consensus(_) | Message::Inline(..));
        let flood = if is_statement {
            self.floods.beside_one(&pen, self.behaviour, rng)
        } else {
            Vec::new()
        };
        let said = flood.into_iter().chain([(to, message)]);
        if self.behaviour == Behaviour::BodyHider {
            return said.flat_map(|one| self.floods.hide_body(&pen, one)).collect();
        }
        said.collect()
    }

    /// Returns `count` messages of its flood, which it sends without having anything to say; none
    /// if it floods nobody.
    pub(crate) fn flood(&mut self, verifier: &Verifier, count: usize, rng: &mut Rng) -> Outgoing {
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        self.floods.flood(&pen, self.behaviour, count, rng)
    }

    /// Twists a windowed protocol's statement; `None` of what is none, or leaves as it is.
    fn twist_slots(
        &mut self,
        verifier: &Verifier,
        to: Recipients,
        message: &Message,
        rng: &mut Rng,
    ) -> Option<Outgoing> {
        let Message::Consensus(inner) = message else { return None };
        let said = inner.windowed()?;
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        let (memory, gone) = (&mut self.slots, &mut self.gone);
        slot_lies::twist(&pen, self.behaviour, memory, gone, (to, said), rng)
    }

    /// Twists it as behaviours with a file of their own do; `None` where it leaves as it is, or
    /// others say.
    fn twist(
        &mut self,
        verifier: &Verifier,
        to: Recipients,
        message: &Message,
        rng: &mut Rng,
    ) -> Option<Outgoing> {
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        let statement = statement_of(message);
        if let (Behaviour::CrashAtCertificate, Some(Statement::Proposal(_))) =
            (self.behaviour, statement)
        {
            // It collected the certificate, and nobody will ever hear of it.
            self.gone = rng.one_in(8);
            return self.gone.then(Vec::new);
        }
        if let (Behaviour::WithheldCertificate, Some(statement)) = (self.behaviour, statement) {
            return lies::withhold(&pen, statement, &mut self.withheld, rng);
        }
        let lie = match (self.behaviour, statement) {
            (Behaviour::Equivocator, Some(Statement::Proposal(proposal))) => {
                lies::equivocate(&pen, to, proposal, message, rng)
            }
            (Behaviour::SelectiveSend, _) => lies::to_some(&pen, to, message, rng),
            (Behaviour::WrongParent, Some(Statement::Proposal(proposal))) => {
                vec![(to, pen.say(lies::wrong_parent(&pen, proposal, rng)))]
            }
            (Behaviour::DoubleVote, Some(Statement::Vote(vote))) => {
                lies::double_vote(&pen, Phase::Prepare, vote, &self.heard, rng)
            }
            (Behaviour::DoubleVote, Some(Statement::PhaseVote(PhaseVote { phase, vote }))) => {
                lies::double_vote(&pen, *phase, vote, &self.heard, rng)
            }
            (Behaviour::TimeoutThenVote, Some(Statement::Timeout(timeout))) => {
                lies::vote_after(&pen, timeout, &self.heard)
            }
            (Behaviour::LyingHighQc, Some(Statement::Timeout(timeout))) => {
                vec![(to, pen.say(lies::lower_high_qc(&pen, timeout, &self.heard)))]
            }
            (Behaviour::PoisonedTc, Some(Statement::Timeout(timeout))) => {
                lies::poisoned_tc(&pen, timeout, rng)
            }
            (Behaviour::BadShares, Some(statement)) => lies::bad_shares(&pen, to, statement, rng),
            (Behaviour::BitmapMalleator, Some(statement)) => {
                vec![(to, pen.say(lies::malleated(statement, rng)))]
            }
            (Behaviour::Oversized, Some(Statement::Proposal(proposal))) => {
                vec![(to, pen.say(lies::oversized(&pen, proposal)))]
            }
            (Behaviour::Censor, Some(Statement::Proposal(proposal))) => {
                vec![(to, pen.say(lies::censored(&pen, proposal)))]
            }
            (Behaviour::BadBodies, None) => lies::bad_bodies(&pen, to, message, rng)?,
            (Behaviour::SyncAmplifier, Some(_)) => lies::questions(&self.heard, rng),
            _ => return None,
        };
        Some(if self.behaviour.adds_to_the_truth() {
            lie.into_iter().chain([(to, message.clone())]).collect()
        } else {
            lie
        })
    }

    /// Well signed, over a root that the height did not come to.
    fn false_share(&self, verifier: &Verifier, height: Height, root: Digest) -> Message {
        let (root, committee) = (hash(&root.0), verifier.committee());
        let statement = executed_statement(committee.scope(), height, root);
        let share = committee.sign(Purpose::Execute, &self.keys.voting, &statement);
        Message::ExecutionShare(height, root, share)
    }

    /// Well signed, and with positions that no operation has.
    fn false_reply(&self, verifier: &Verifier, reply: &Reply) -> Reply {
        let Reply { client, sequence, height, .. } = *reply;
        let nowhere = Outcome::Applied(Bytes::copy_from_slice(&u64::MAX.to_le_bytes()));
        let results = Results::new(vec![nowhere; reply.results.len()]);
        let committee = verifier.committee();
        let answer = Answer { client, sequence, height, results, index: None };
        Reply::sign(&self.keys.identity, committee.scope(), self.id, answer)
    }

    /// Votes and timeouts for far views, well signed.
    fn future_flood(
        &self,
        verifier: &Verifier,
        statement: &Statement,
        rng: &mut Rng,
    ) -> Vec<Statement> {
        let now = match statement {
            Statement::Vote(vote) | Statement::PhaseVote(PhaseVote { vote, .. }) => vote.view,
            Statement::Timeout(timeout) => timeout.view,
            Statement::Proposal(proposal) => proposal.block.view,
            Statement::Certificates { .. } | Statement::PreCommitted(_) | Statement::NewView(_) => {
                return Vec::new();
            }
        };
        (0..8)
            .map(|_| {
                let ahead = if rng.coin() { rng.below(16) } else { rng.bits() >> 1 };
                let view = View(now.0.saturating_add(ahead));
                match statement {
                    // The certificates in it do not lead to its view.
                    Statement::Timeout(timeout) => {
                        Statement::Timeout(Timeout { view, ..timeout.clone() })
                    }
                    _ => Statement::Vote(self.vote_for_nothing(verifier, view, rng)),
                }
            })
            .collect()
    }

    fn vote_for_nothing(&self, verifier: &Verifier, view: View, rng: &mut Rng) -> Vote {
        let id = BlockId(Digest(rng.bytes32()));
        let base_id = BlockId(Digest(rng.bytes32()));
        let base_view = view.previous();
        let share = Share(Vec::new());
        let mut vote = Vote { view, id, base_view, base_id, signer: self.id, share };
        vote.share = self.keys.voting.sign(&vote.message(verifier, Phase::Prepare));
        vote
    }

    /// A certificate over a block of its own making, with its own share alone.
    fn forged_certificate(&self, verifier: &Verifier, vote: &Vote, rng: &mut Rng) -> Statement {
        let forged = self.vote_for_nothing(verifier, vote.view, rng);
        let shares = [(self.id.index(), forged.share.clone())];
        let members = verifier.committee().size();
        let combined = verifier.voting().combine(
            &forged.message(verifier, Phase::Prepare),
            &shares,
            &Bitmap::new(members),
            Policy::Each,
        );
        let certificate = combined.certificate.expect("the own share is good");
        let Vote { view, id, base_view, base_id, .. } = forged;
        let high_qc = Qc { view, id, base_view, base_id, certificate };
        Statement::Certificates { high_qc, high_tc: None }
    }

    /// After a view timed out: a block that extends its parent's parent, in spite of what the
    /// timeout certificate reports.
    fn stale_proposal(&self, verifier: &Verifier, proposal: &Proposal) -> Option<Proposal> {
        proposal.block.tc.as_ref()?;
        let parent = self.heard.get(&proposal.block.justify.id)?;
        let header = parent.payload.header;
        let bodies = proposal.block.payload.bodies.clone();
        let block = Block {
            justify: parent.justify.clone(),
            payload: Payload::new(header.height, header.proposed_at_ms, bodies),
            ..proposal.block.clone()
        };
        let pen = Pen { id: self.id, keys: &self.keys, verifier };
        Some(pen.sign_block(block))
    }
}

pub(super) fn statement_of(message: &Message) -> Option<&Statement> {
    let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
        return None;
    };
    inner.chained()
}

/// Spoils what it serves: it is not what was asked for.
fn spoiled(message: Message) -> Message {
    match message {
        Message::Chunk(chunk) => {
            let mut bytes = chunk.bytes.to_vec();
            bytes.push(0);
            Message::Chunk(Chunk { bytes: Bytes::from(bytes), ..chunk })
        }
        Message::Offer(offer) => {
            // Nothing of the state, under a root of its own: whoever believes it needs no chunk.
            let manifest = Manifest::decode(&offer.manifest).map(|manifest| {
                let state = hash(&manifest.header.state.0);
                let header = Header { state, ..manifest.header };
                Bytes::from(Manifest { header, chunks: Vec::new(), ..manifest }.encode())
            });
            Message::Offer(Offer { manifest: manifest.unwrap_or_default(), ..offer })
        }
        Message::Blocks(blocks) => {
            let kept = Kept { oldest: blocks.kept.newest, ..blocks.kept };
            Message::Blocks(Blocks { decided: Vec::new(), tail: Vec::new(), kept, ..blocks })
        }
        other => other,
    }
}
