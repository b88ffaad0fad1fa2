//! The certificates that a statement shows.

use quorate_consensus::chained::{
    Message as Statement, Phase, PhaseVote, Proposal, Qc, Tc, Timeout, Vote,
};
use quorate_consensus::{Message, ProtocolKind};

/// Certificates that a statement shows beside itself.
pub(super) struct Shown<'a> {
    /// A certificate of votes in a phase.
    pub(super) qc: Option<(Phase, &'a Qc)>,
    /// Timeout certificate in the statement.
    pub(super) tc: Option<&'a Tc>,
    /// A vote in a phase: the statement itself, or one in a timeout.
    pub(super) vote: Option<(Phase, &'a Vote)>,
}

/// Collects the certificates that a message shows.
pub(super) fn shown(message: &Message) -> Shown<'_> {
    let phased = message.protocol() == ProtocolKind::HotStuffBasic;
    let of_qc = |qc| Some((phase_of(phased, qc), qc));
    let none = Shown { qc: None, tc: None, vote: None };
    let Some(statement) = message.chained() else { return none };
    match statement {
        Statement::Proposal(Proposal { block, .. }) => {
            Shown { qc: of_qc(&block.justify), tc: block.tc.as_ref(), ..none }
        }
        Statement::Vote(vote) => Shown { vote: Some((Phase::Prepare, vote)), ..none },
        Statement::PhaseVote(PhaseVote { phase, vote }) => {
            Shown { vote: Some((*phase, vote)), ..none }
        }
        Statement::Timeout(Timeout { high_qc, high_tc, last_vote, .. }) => {
            let last = last_vote.as_ref();
            let is_last = |vote: &Vote| phased && vote.base_view == vote.view;
            let vote = last.map(|vote| (named(is_last(vote)), vote));
            Shown { qc: of_qc(high_qc), tc: high_tc.as_ref(), vote }
        }
        Statement::Certificates { high_qc, high_tc } => {
            Shown { qc: of_qc(high_qc), tc: high_tc.as_ref(), ..none }
        }
        Statement::PreCommitted(qc) => Shown { qc: Some((Phase::PreCommit, qc)), ..none },
        Statement::NewView(qc) => Shown { qc: of_qc(qc), ..none },
    }
}

impl<'a> Shown<'a> {
    /// The certificates of votes, those that timeouts report included.
    pub(super) fn certificates(&self) -> impl Iterator<Item = &'a Qc> {
        self.qc.map(|(_, qc)| qc).into_iter().chain(self.tc.map(|tc| &tc.high_qc))
    }
}

/// Phase of a certificate: where a view has several, the last one's votes name their own block as
/// what they decide.
pub(super) fn phase_of(phased: bool, qc: &Qc) -> Phase {
    named(phased && qc.base_view == qc.view)
}

fn named(is_last: bool) -> Phase {
    if is_last { Phase::Commit } else { Phase::Prepare }
}
