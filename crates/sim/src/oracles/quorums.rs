//! A certificate stands for a quorum's weight.

use super::shown::shown;
use super::{Observation, Oracle};
use quorate_consensus::chained::{Qc, Tc};
use quorate_crypto::Bitmap;
use quorate_engine::Message;
use quorate_types::View;
use std::collections::BTreeSet;

/// Weighs the signers of every certificate that a correct member passes on. Two quorums must
/// overlap in more than a third of the weight: it is more than two thirds where members weigh
/// differently, and more than `(n+f)/2` members where they do not.
#[derive(Debug)]
pub struct Quorums {
    each: Vec<u64>,
}

impl Quorums {
    /// For members of these weights.
    #[must_use]
    pub fn new(each: &[u64]) -> Self {
        Self { each: each.to_vec() }
    }

    fn weigh(&self, what: &str, view: View, signers: &BTreeSet<usize>) -> Result<(), String> {
        let weight: u64 = signers.iter().map(|signer| self.each[*signer]).sum();
        let (total, members) = (self.each.iter().sum::<u64>(), self.each.len());
        let equal = self.each.iter().all(|weight| *weight == self.each[0]);
        let enough = if equal {
            2 * signers.len() > members + (members - 1) / 3
        } else {
            3 * weight > 2 * total
        };
        let text = || format!("{what} of {view} is signed by {signers:?}: {weight} of {total}");
        if enough { Ok(()) } else { Err(text()) }
    }

    fn qc(&self, qc: &Qc) -> Result<(), String> {
        if qc.view == View(0) {
            return Ok(());
        }
        self.weigh("a certificate", qc.view, &indices(&qc.certificate.signers))
    }

    fn tc(&self, tc: &Tc) -> Result<(), String> {
        let groups = tc.groups.iter().flat_map(|(_, group)| indices(&group.signers));
        self.weigh("a timeout certificate", tc.view, &groups.collect())?;
        self.qc(&tc.high_qc)
    }
}

impl Oracle for Quorums {
    fn name(&self) -> &'static str {
        "quorums"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        let Observation::Released { message, .. } = observation else {
            return Ok(());
        };
        let (Message::Consensus(inner) | Message::Inline(inner, _)) = message else {
            return Ok(());
        };
        let shown = shown(inner);
        shown.qc.map_or(Ok(()), |(_, qc)| self.qc(qc))?;
        shown.tc.map_or(Ok(()), |tc| self.tc(tc))
    }
}

fn indices(signers: &Bitmap) -> BTreeSet<usize> {
    signers.iter().collect()
}
