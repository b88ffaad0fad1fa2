//! Bytes that members of a chained protocol sign.

use super::messages::Vote;
use super::rules::Phase;
use crate::Verifier;
use quorate_types::{BlockId, Kind, View};

impl Vote {
    /// Bytes that are signed in this phase.
    #[must_use]
    pub fn message(&self, verifier: &Verifier, phase: Phase) -> Vec<u8> {
        let (block, base) = ((self.view, self.id), (self.base_view, self.base_id));
        vote_message(verifier, phase, block, base)
    }
}

pub(crate) fn vote_message(
    verifier: &Verifier,
    phase: Phase,
    block: (View, BlockId),
    base: (View, BlockId),
) -> Vec<u8> {
    verifier.statement(verifier.rules().kind(phase), &(block, base))
}

pub(crate) fn timeout_message(verifier: &Verifier, view: View, high_qc_view: View) -> Vec<u8> {
    verifier.statement(verifier.rules().timeout, &(view, high_qc_view))
}

pub(crate) fn proposal_message(verifier: &Verifier, view: View, id: BlockId) -> Vec<u8> {
    verifier.statement(Kind::Propose, &(view, id))
}
