//! Members that do not follow the protocol, built by wrapping the machine that does.

use crate::dice::Dice;
use bytes::Bytes;
use quorate_consensus as consensus;
use quorate_consensus::Verifier;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::jolteon::{Block, Message as Jolteon, Proposal, Qc, Timeout, Vote};
use quorate_crypto::{Bitmap, Digest, KeyFile, Policy, Share, hash};
use quorate_engine::Message;
use quorate_engine::message::{Blocks, Chunk, Kept, Offer};
use quorate_types::request::Answer;
use quorate_types::{
    BlockId, Kind, Manifest, Outcome, Payload, Recipients, ReplicaId, Reply, View,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a member behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// As it should.
    #[default]
    Honest,
    /// It hears everything and never says a word.
    Silent,
    /// It takes part in everything but proposes nothing.
    SilentLeader,
    /// With every statement it makes up more of them for views that nobody will reach.
    FutureFlood,
    /// With every vote it sends a certificate over something else that it alone signed.
    Forger,
    /// After a view was given up it proposes a block that extends less than it must.
    StaleLeader,
    /// It proposes and disseminates, and never votes nor gives up.
    Mute,
    /// It answers clients with results that it made up, the same as all who do.
    FalseReplies,
    /// It names snapshots that nobody took and serves chunks that are not what they should be, and says
    /// that it keeps nothing.
    BadServer,
    /// Two machines run under its key, each believing that it is the only one, and each reaching
    /// only some of the others: it equivocates in every way that two correct replicas with one name
    /// can.
    Twin,
}

impl Behaviour {
    /// What several members that behave so are called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest members",
            Self::Silent => "silent members",
            Self::SilentLeader => "silent leaders",
            Self::FutureFlood => "future floods",
            Self::Forger => "forgers",
            Self::StaleLeader => "stale leaders",
            Self::Mute => "mute members",
            Self::FalseReplies => "liars to clients",
            Self::BadServer => "bad servers",
            Self::Twin => "twins",
        }
    }

    /// What faulty members are drawn from, where all weigh the same; [`Behaviour::BadServer`] comes with
    /// little retention.
    pub const FAULTY: [Self; 7] = [
        Self::Silent,
        Self::SilentLeader,
        Self::FutureFlood,
        Self::Forger,
        Self::StaleLeader,
        Self::Mute,
        Self::Twin,
    ];

    /// What they are drawn from where a coalition of light members may be faulty at once.
    pub const FAULTY_IF_WEIGHTED: [Self; 5] =
        [Self::FalseReplies, Self::Twin, Self::Forger, Self::Mute, Self::StaleLeader];
}

/// What stands between a faulty member's machine and the network.
#[derive(Debug)]
pub(crate) struct Liar {
    id: ReplicaId,
    behaviour: Behaviour,
    keys: KeyFile,
    /// Blocks that it heard of, the latest ones.
    heard: BTreeMap<BlockId, Block>,
}

type Outgoing = Vec<(Recipients, Message)>;

impl Liar {
    /// Nothing for members that send what their machine says.
    pub(crate) fn new(id: ReplicaId, behaviour: Behaviour, keys: &KeyFile) -> Option<Self> {
        let truthful = matches!(behaviour, Behaviour::Honest | Behaviour::Twin);
        let liar = || Self { id, behaviour, keys: keys.clone(), heard: BTreeMap::new() };
        (!truthful).then(liar)
    }

    /// A message of another member came.
    pub(crate) fn hear(&mut self, message: &consensus::Message) {
        let consensus::Message::Jolteon(Jolteon::Proposal(proposal)) = message else {
            return;
        };
        self.heard.insert(proposal.block.id(), proposal.block.clone());
        let newest = proposal.block.view.0;
        self.heard.retain(|_, block| block.view.0 + 64 > newest);
    }

    /// What leaves in the place of `message`.
    pub(crate) fn speak(
        &mut self,
        verifier: &Verifier,
        to: Recipients,
        message: Message,
        dice: &mut Dice,
    ) -> Outgoing {
        if let (Behaviour::FalseReplies, Message::Reply(reply)) = (self.behaviour, &message) {
            return vec![(to, Message::Reply(self.false_reply(verifier, reply)))];
        }
        let made_up = match (self.behaviour, statement_of(&message)) {
            (Behaviour::Silent, _) => return Vec::new(),
            (Behaviour::SilentLeader, Some(Jolteon::Proposal(_))) => return Vec::new(),
            (Behaviour::Mute, Some(Jolteon::Vote(_) | Jolteon::Timeout(_))) => return Vec::new(),
            (Behaviour::FutureFlood, Some(statement)) => {
                self.future_flood(verifier, statement, dice)
            }
            (Behaviour::Forger, Some(Jolteon::Vote(vote))) => {
                vec![self.forged_certificate(verifier, vote, dice)]
            }
            (Behaviour::StaleLeader, Some(Jolteon::Proposal(proposal))) => {
                match self.stale_proposal(verifier, proposal) {
                    Some(stale) => return vec![(to, of(Jolteon::Proposal(stale)))],
                    None => Vec::new(),
                }
            }
            (Behaviour::BadServer, None) => return vec![(to, spoiled(message))],
            _ => Vec::new(),
        };
        let made_up = made_up.into_iter().map(|statement| (Recipients::All, of(statement)));
        made_up.chain([(to, message)]).collect()
    }

    /// Well signed, and with positions that no operation has.
    fn false_reply(&self, verifier: &Verifier, reply: &Reply) -> Reply {
        let Reply { client, sequence, height, .. } = *reply;
        let nowhere = Outcome::Applied(Bytes::copy_from_slice(&u64::MAX.to_le_bytes()));
        let results = vec![nowhere; reply.results.len()];
        let committee = verifier.committee();
        let answer = Answer { client, sequence, height, results };
        Reply::sign(&self.keys.identity, committee.chain(), committee.epoch(), self.id, answer)
    }

    /// Votes and timeouts for far views, well signed.
    fn future_flood(
        &self,
        verifier: &Verifier,
        statement: &Jolteon,
        dice: &mut Dice,
    ) -> Vec<Jolteon> {
        let now = match statement {
            Jolteon::Vote(vote) => vote.view,
            Jolteon::Timeout(timeout) => timeout.view,
            Jolteon::Proposal(proposal) => proposal.block.view,
            Jolteon::Certificates { .. } => return Vec::new(),
        };
        (0..8)
            .map(|_| {
                let ahead = if dice.coin() { dice.below(16) } else { dice.bits() >> 1 };
                let view = View(now.0.saturating_add(ahead));
                match statement {
                    // The certificates in it do not lead to its view.
                    Jolteon::Timeout(timeout) => {
                        Jolteon::Timeout(Timeout { view, ..timeout.clone() })
                    }
                    _ => Jolteon::Vote(self.vote_for_nothing(verifier, view, dice)),
                }
            })
            .collect()
    }

    fn vote_for_nothing(&self, verifier: &Verifier, view: View, dice: &mut Dice) -> Vote {
        let id = BlockId(Digest(dice.bytes32()));
        let parent_id = BlockId(Digest(dice.bytes32()));
        let parent_view = view.previous();
        let share = Share(Vec::new());
        let mut vote = Vote { view, id, parent_view, parent_id, signer: self.id, share };
        vote.share = self.keys.voting.sign(&vote.message(verifier));
        vote
    }

    /// A certificate over a block of its own making, with its own share alone.
    fn forged_certificate(&self, verifier: &Verifier, vote: &Vote, dice: &mut Dice) -> Jolteon {
        let forged = self.vote_for_nothing(verifier, vote.view, dice);
        let shares = [(self.id.index(), forged.share.clone())];
        let members = verifier.committee().size();
        let combined = verifier.voting().combine(
            &forged.message(verifier),
            &shares,
            &Bitmap::new(members),
            Policy::Each,
        );
        let certificate = combined.certificate.expect("the own share is good");
        let Vote { view, id, parent_view, parent_id, .. } = forged;
        let high_qc = Qc { view, id, parent_view, parent_id, certificate };
        Jolteon::Certificates { high_qc, high_tc: None }
    }

    /// After a view was given up: a block that extends its parent's parent, in spite of what the
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
        let message = verifier.statement(Kind::Propose, &(block.view, block.id()));
        let signature = self.keys.identity.sign(&message).0.to_vec();
        Some(Proposal { block, signature })
    }
}

fn statement_of(message: &Message) -> Option<&Jolteon> {
    let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
        return None;
    };
    let consensus::Message::Jolteon(statement) = inner;
    Some(statement)
}

fn of(statement: Jolteon) -> Message {
    Message::Consensus(consensus::Message::Jolteon(statement))
}

/// Which of the two machines of each twin an endpoint talks with.
#[derive(Debug)]
pub struct Twins {
    /// The hosts of each pair.
    pairs: Vec<(usize, usize)>,
    reach: BTreeMap<(usize, usize), Reach>,
    endpoints: usize,
    dice: Dice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    First,
    Second,
    Both,
    Neither,
}

impl Twins {
    /// The twins among the hosts.
    #[must_use]
    pub fn new(pairs: Vec<(usize, usize)>, endpoints: usize, dice: Dice) -> Self {
        let mut twins = Self { pairs, reach: BTreeMap::new(), endpoints, dice };
        twins.shuffle();
        twins
    }

    /// Whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Draws anew who reaches whom.
    pub fn shuffle(&mut self) {
        let style = self.dice.below(3);
        for pair in 0..self.pairs.len() {
            for endpoint in 0..self.endpoints {
                let reach = match (style, self.dice.below(8)) {
                    (0, _) => Reach::Both,
                    (1, draw) if draw < 4 => Reach::First,
                    (_, 0..=2) => Reach::First,
                    (_, 3) => Reach::Both,
                    (2, 4) => Reach::Neither,
                    (_, _) => Reach::Second,
                };
                self.reach.insert((pair, endpoint), reach);
            }
        }
    }

    /// Whether two endpoints talk at present. The machines of one twin never do.
    #[must_use]
    pub fn connects(&self, a: usize, b: usize) -> bool {
        self.pairs.iter().enumerate().all(|(pair, hosts)| {
            self.reaches(pair, *hosts, a, b) && self.reaches(pair, *hosts, b, a)
        })
    }

    fn reaches(
        &self,
        pair: usize,
        (first, second): (usize, usize),
        from: usize,
        to: usize,
    ) -> bool {
        let allowed = match () {
            () if from == first => [Reach::First, Reach::Both],
            () if from == second => [Reach::Second, Reach::Both],
            () => return true,
        };
        to != first && to != second && allowed.contains(&self.reach[&(pair, to)])
    }
}

/// What it serves is not what was asked for.
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
                let (root, chunks) = (hash(&manifest.root.0), Vec::new());
                Bytes::from(Manifest { root, chunks, ..manifest }.encode())
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
