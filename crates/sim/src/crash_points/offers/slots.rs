//! Other values for slots, for the windowed protocols.

use super::{A_MOMENT, Bodies, Step, another, sign_as};
use crate::epoch::EpochConfig;
use quorate_consensus::windowed::collectors::primary;
use quorate_consensus::windowed::{Message as Statement, PrePrepare, Proposal, Shares, digest_of};
use quorate_types::{Height, Kind, Payload, Purpose, ReplicaId, View};
use std::collections::BTreeMap;

/// The last slots of the subject's view whose values are offered again.
const SLOTS: usize = 8;

/// Proposals heard, and the last view in which the subject signed.
#[derive(Clone, Default)]
pub(super) struct Slots {
    proposals: BTreeMap<(View, Height), PrePrepare>,
    /// The last view for which the subject has signed anything.
    signed: View,
}

impl Slots {
    pub(super) fn hear(&mut self, by_subject: bool, said: &Statement) {
        let view = match said {
            Statement::PrePrepare(proposed) => {
                let Proposal { view, slot, .. } = proposed.proposal();
                self.proposals.insert((view, slot), proposed.clone());
                view
            }
            Statement::SignShare(share) => share.proposal.view,
            Statement::CommitShare(share) => share.proposal.view,
            Statement::ViewChange(change) => change.view,
            _ => return,
        };
        if by_subject {
            self.signed = self.signed.max(view);
        }
    }

    /// The last of its view and of the one before, the latest first: whoever contradicts one of its
    /// votes contradicts it before the view is left for it. Its own are nobody else's to
    /// replace.
    fn last(&self, epoch: &EpochConfig, subject: ReplicaId) -> impl Iterator<Item = &PrePrepare> {
        let members = epoch.committee.size();
        let from = View(self.signed.0.saturating_sub(1));
        let last = self.proposals.range((from, Height(0))..=(self.signed, Height(u64::MAX))).rev();
        let others = last.filter(move |((view, _), _)| primary(*view, members) != subject);
        others.map(|(_, proposed)| proposed).take(SLOTS)
    }

    /// Another value for each slot, and then the one that was proposed.
    pub(super) fn others(
        &self,
        epoch: &EpochConfig,
        subject: ReplicaId,
        bodies: &Bodies,
    ) -> Vec<Step> {
        let offers = |proposed: &PrePrepare| {
            let mut steps: Vec<Step> = bodies.of(&proposed.payload).collect();
            steps.push(from_primary(epoch, &other(epoch, proposed)));
            steps.push(Step::Wait(A_MOMENT));
            steps.push(from_primary(epoch, proposed));
            steps.push(Step::Wait(A_MOMENT));
            steps
        };
        self.last(epoch, subject).flat_map(offers).collect()
    }

    /// The other values again.
    pub(super) fn again(&self, epoch: &EpochConfig, subject: ReplicaId) -> Vec<Step> {
        let others = self.last(epoch, subject).map(|proposed| other(epoch, proposed));
        others.flat_map(|other| [from_primary(epoch, &other), Step::Wait(A_MOMENT)]).collect()
    }
}

fn other(epoch: &EpochConfig, proposed: &PrePrepare) -> PrePrepare {
    let payload = another(&proposed.payload);
    signed(epoch, proposed.view, payload)
}

fn signed(epoch: &EpochConfig, view: View, payload: Payload) -> PrePrepare {
    let verifier = epoch.verifier(&epoch.settings);
    let verifier = verifier.consensus();
    let proposal = Proposal { view, slot: payload.header.height, digest: digest_of(&payload) };
    let author = primary(view, epoch.committee.size());
    let voting = &epoch.keys(author).voting;
    let vote = verifier.statement(Kind::Prepare, &proposal);
    let shares = Shares { slow: epoch.committee.sign(Purpose::Vote, voting, &vote), fast: None };
    let signature = sign_as(epoch, author, &verifier.statement(Kind::PrePrepare, &proposal));
    PrePrepare { view, payload, shares, signature }
}

fn from_primary(epoch: &EpochConfig, proposed: &PrePrepare) -> Step {
    let author = primary(proposed.view, epoch.committee.size());
    let message = Statement::PrePrepare(proposed.clone());
    super::frame(author, epoch.settings.protocol.windowed(message))
}
