//! A vote promises that every body of its block is durable: at the voter, or, where bodies are
//! certified, at some correct member. And nobody acknowledges a body that is not on its disk.

use super::{Observation, Oracle, payload_hash};
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{Message as Statement, PhaseVote};
use quorate_consensus::windowed::{Message as SlotStatement, Proposal};
use quorate_crypto::Digest;
use quorate_engine::{Availability as Proof, Message};
use quorate_types::{Available, BlockId, BodyRef, Payload, ReplicaId, View};
use std::collections::{BTreeMap, BTreeSet};

/// Holds each vote against what the disks have. It knows the blocks that correct leaders proposed.
#[derive(Clone, Debug)]
pub struct Availability {
    proof: Proof,
    proposed: BTreeMap<BlockId, Payload>,
    /// The hashes of the payloads that some correct member executed.
    executed: BTreeSet<Digest>,
    stored: BTreeMap<ReplicaId, BTreeSet<BodyRef>>,
    /// The last view in which each member was seen to vote.
    voted: BTreeMap<ReplicaId, View>,
    /// The votes for values of slots.
    voted_for: BTreeSet<(ReplicaId, Proposal)>,
}

impl Oracle for Availability {
    fn name(&self) -> &'static str {
        "availability"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Kept { replica, bodies } => {
                self.stored.insert(*replica, bodies.iter().copied().collect());
                Ok(())
            }
            Observation::Stored { replica, body } => {
                self.stored.entry(*replica).or_default().insert(*body);
                Ok(())
            }
            Observation::Executed { payload, .. } => {
                self.executed.insert(*payload);
                Ok(())
            }
            Observation::Released { replica, message, .. } => self.released(*replica, message),
            _ => Ok(()),
        }
    }
}

impl Availability {
    /// For a committee in which a vote needs this proof.
    #[must_use]
    pub fn new(proof: Proof) -> Self {
        Self {
            proof,
            proposed: BTreeMap::new(),
            executed: BTreeSet::new(),
            stored: BTreeMap::new(),
            voted: BTreeMap::new(),
            voted_for: BTreeSet::new(),
        }
    }

    fn released(&mut self, replica: ReplicaId, message: &Message) -> Result<(), String> {
        let inner = match message {
            Message::Consensus(inner) | Message::Inline(inner, _) => inner,
            Message::Acknowledgement(given) => {
                return self.acknowledged(replica, &given.available);
            }
            _ => return Ok(()),
        };
        let Some(statement) = inner.chained() else {
            return inner.windowed().map_or(Ok(()), |said| self.said_of_slots(replica, said));
        };
        match statement {
            Statement::Proposal(proposal) => {
                self.proposed.insert(proposal.block.id(), proposal.block.payload.clone());
                Ok(())
            }
            // Said again after a restart: the bodies may be executed everywhere and deleted by
            // now.
            Statement::Vote(vote) | Statement::PhaseVote(PhaseVote { vote, .. })
                if self.voted.get(&replica) == Some(&vote.view) =>
            {
                Ok(())
            }
            Statement::Vote(vote) | Statement::PhaseVote(PhaseVote { vote, .. }) => {
                self.voted.insert(replica, vote.view);
                self.voted(replica, vote.view, vote.id)
            }
            _ => Ok(()),
        }
    }

    /// As of blocks; a vote is said again to whoever asks, long after.
    fn said_of_slots(&mut self, replica: ReplicaId, said: &SlotStatement) -> Result<(), String> {
        match said {
            SlotStatement::PrePrepare(proposed) => {
                self.proposed.insert(BlockId(proposed.proposal().digest), proposed.payload.clone());
                Ok(())
            }
            SlotStatement::SignShare(share) => {
                let is_news = self.voted_for.insert((replica, share.proposal));
                let id = BlockId(share.proposal.digest);
                // Agreed on once more in a later view.
                let is_executed = |payload| self.was_executed(payload);
                if !is_news || self.proposed.get(&id).is_some_and(is_executed) {
                    return Ok(());
                }
                self.voted(replica, share.proposal.view, id)
            }
            _ => Ok(()),
        }
    }

    /// Those before the last one may have been certified by others; the last one is news.
    fn acknowledged(&self, replica: ReplicaId, available: &Available) -> Result<(), String> {
        let (author, sequence) = (available.author, available.sequence);
        let first = BodyRef { author, sequence, digest: Digest::ZERO };
        let disk = self.stored.get(&replica);
        let has = disk
            .and_then(|disk| disk.range(first..).next())
            .is_some_and(|body| (body.author, body.sequence) == (author, sequence));
        let text = || format!("{replica} acknowledged {author}#{sequence}, not on its disk");
        has.then_some(()).ok_or_else(text)
    }

    fn voted(&self, replica: ReplicaId, view: View, block: BlockId) -> Result<(), String> {
        let Some(payload) = self.proposed.get(&block) else {
            return Ok(());
        };
        let (disks, whose): (Vec<&BTreeSet<BodyRef>>, _) = match self.proof {
            Proof::Stored => (self.stored.get(&replica).into_iter().collect(), "its"),
            // A vote that was held up may leave its host when others have decided this very block
            // and released its bodies: they are in the state.
            Proof::Certified if self.was_executed(payload) => return Ok(()),
            Proof::Certified => (self.stored.values().collect(), "any correct member's"),
        };
        let is_missing = |body: &&BodyRef| !disks.iter().any(|disk| disk.contains(*body));
        match payload.bodies.iter().find(is_missing) {
            Some(body) => {
                Err(format!("{replica} voted in {view} without {body:?} on {whose} disk"))
            }
            None => Ok(()),
        }
    }

    fn was_executed(&self, payload: &Payload) -> bool {
        self.executed.contains(&payload_hash(payload))
    }
}
