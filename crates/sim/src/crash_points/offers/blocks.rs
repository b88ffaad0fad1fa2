//! Other blocks, for the chained protocols.

use super::{A_MOMENT, Bodies, Step, another, sign_as};
use crate::epoch::EpochConfig;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{Block, Message as Statement, PhaseVote, Proposal};
use quorate_types::{Kind, ReplicaId, View};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Views before the last signed one whose blocks are offered again.
const VIEWS: u64 = 6;

/// Proposals heard, and the last view in which the subject signed.
#[derive(Clone, Default)]
pub(super) struct Blocks {
    proposals: BTreeMap<View, Proposal>,
    /// The last view in which the subject has signed anything.
    signed: View,
}

impl Blocks {
    pub(super) fn hear(&mut self, by_subject: bool, said: &Statement) {
        let view = match said {
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

    fn views(&self) -> RangeInclusive<View> {
        let last = View(self.signed.0 + 1);
        View(last.0.saturating_sub(VIEWS))..=last
    }

    /// For each view another block before the one that was proposed.
    pub(super) fn others(
        &self,
        epoch: &EpochConfig,
        subject: ReplicaId,
        bodies: &Bodies,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        for (view, proposal) in self.proposals.range(self.views()) {
            steps.extend(bodies.of(&proposal.block.payload));
            let parent = self.proposals.get(&proposal.block.justify.view);
            steps.extend(offers(epoch, subject, proposal, parent));
            if *view == View(self.signed.0) {
                steps.push(Step::Wait(A_MOMENT));
            }
        }
        steps
    }

    /// The other blocks again, backwards.
    pub(super) fn again(&self, epoch: &EpochConfig) -> Vec<Step> {
        let others = self.proposals.range(self.views()).rev();
        let others = others.map(|(_, proposal)| other_block(epoch, &proposal.block));
        others.flat_map(|other| [from_author(epoch, &other), Step::Wait(A_MOMENT)]).collect()
    }
}

/// Frames that lead into the view, another block, one that extends too little, and the one
/// proposed.
fn offers(
    epoch: &EpochConfig,
    subject: ReplicaId,
    proposal: &Proposal,
    parent: Option<&Proposal>,
) -> Vec<Step> {
    let block = &proposal.block;
    let lead_in =
        Statement::Certificates { high_qc: block.justify.clone(), high_tc: block.tc.clone() };
    let somebody = ReplicaId(u16::from(subject.0 == 0));
    let mut steps = vec![frame(epoch, somebody, lead_in), Step::Wait(A_MOMENT)];
    if block.author == subject {
        // Nobody else can propose in its own view: it may want to, and must not want something new.
        return steps;
    }
    steps.push(from_author(epoch, &other_block(epoch, block)));
    if let Some(parent) = parent {
        let stale = Block { justify: parent.block.justify.clone(), ..block.clone() };
        steps.push(from_author(epoch, &signed(epoch, stale)));
    }
    steps.push(Step::Wait(A_MOMENT));
    steps.push(from_author(epoch, proposal));
    steps.push(Step::Wait(A_MOMENT));
    steps
}

/// Another block for the same place.
fn other_block(epoch: &EpochConfig, block: &Block) -> Proposal {
    signed(epoch, Block { payload: another(&block.payload), ..block.clone() })
}

fn signed(epoch: &EpochConfig, block: Block) -> Proposal {
    let verifier = epoch.verifier(&epoch.settings);
    let message = verifier.consensus().statement(Kind::Propose, &(block.view, block.id()));
    let signature = sign_as(epoch, block.author, &message);
    Proposal { block, signature }
}

fn from_author(epoch: &EpochConfig, proposal: &Proposal) -> Step {
    frame(epoch, proposal.block.author, Statement::Proposal(proposal.clone()))
}

fn frame(epoch: &EpochConfig, from: ReplicaId, message: Statement) -> Step {
    super::frame(from, epoch.settings.protocol.message(message))
}
