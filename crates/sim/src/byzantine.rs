//! Members that do not follow the protocol, built by wrapping the machine that does.

use crate::dice::Dice;
use quorate_consensus as consensus;
use quorate_consensus::jolteon::{Message as Jolteon, Timeout, Vote};
use quorate_consensus::Verifier;
use quorate_crypto::{Digest, Share, VotingSecret};
use quorate_engine::Message;
use quorate_types::{BlockId, Recipients, ReplicaId, View};
use std::collections::BTreeMap;

/// How a member behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// Two machines run under its key, each believing that it is the only one, and each reaching
    /// only some of the others: it equivocates in every way that two correct replicas with one name
    /// can.
    Twin,
}

impl Behaviour {
    /// All but [`Behaviour::Honest`].
    pub const FAULTY: [Self; 4] =
        [Self::Silent, Self::SilentLeader, Self::FutureFlood, Self::Twin];

    /// Whether it lets its machine send this.
    #[must_use]
    pub fn lets_pass(self, message: &Message) -> bool {
        match self {
            Self::Honest | Self::FutureFlood | Self::Twin => true,
            Self::Silent => false,
            Self::SilentLeader => !is_proposal(message),
        }
    }
}

fn is_proposal(message: &Message) -> bool {
    let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
        return false;
    };
    matches!(inner, consensus::Message::Jolteon(Jolteon::Proposal(_)))
}

/// Votes and timeouts for far views, well signed, to go out with `message`.
#[must_use]
pub fn future_flood(
    signer: ReplicaId,
    key: &VotingSecret,
    verifier: &Verifier,
    message: &Message,
    dice: &mut Dice,
) -> Vec<(Recipients, Message)> {
    let Message::Consensus(consensus::Message::Jolteon(statement)) = message else {
        return Vec::new();
    };
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
            let forged = match statement {
                Jolteon::Timeout(timeout) => forged_timeout(timeout, view, key),
                _ => forged_vote(signer, view, key, verifier, dice),
            };
            (Recipients::All, Message::Consensus(consensus::Message::Jolteon(forged)))
        })
        .collect()
}

fn forged_vote(
    signer: ReplicaId,
    view: View,
    key: &VotingSecret,
    verifier: &Verifier,
    dice: &mut Dice,
) -> Jolteon {
    let id = BlockId(Digest(dice.bytes32()));
    let parent_id = BlockId(Digest(dice.bytes32()));
    let share = Share(Vec::new());
    let mut vote = Vote { view, id, parent_view: view.previous(), parent_id, signer, share };
    vote.share = key.sign(&vote.message(verifier));
    Jolteon::Vote(vote)
}

/// The certificates in it do not lead to its view, and its share is of something else.
fn forged_timeout(timeout: &Timeout, view: View, key: &VotingSecret) -> Jolteon {
    Jolteon::Timeout(Timeout { view, share: key.sign(&view.0.to_le_bytes()), ..timeout.clone() })
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

    fn reaches(&self, pair: usize, (first, second): (usize, usize), from: usize, to: usize) -> bool {
        let allowed = match () {
            () if from == first => [Reach::First, Reach::Both],
            () if from == second => [Reach::Second, Reach::Both],
            () => return true,
        };
        to != first && to != second && allowed.contains(&self.reach[&(pair, to)])
    }
}
