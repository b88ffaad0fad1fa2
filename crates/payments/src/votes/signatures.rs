//! Votes that are signed each by itself: plain Ed25519, BLS multi-signatures, threshold BLS. What a
//! certificate of them is, the committee's [`Scheme`] says.

use super::{Counted, QuorumVotes, TxCertificate, Vote, Votes};
use crate::TxId;
use quorate_crypto::{Bitmap, Policy, Scheme, VotingSecret, bad_items};
use quorate_types::{Committee, Kind, Purpose, ReplicaId, Scope, sign};
use std::sync::Arc;

/// Votes under a committee's voting scheme.
#[derive(Debug)]
pub(super) struct SignatureVotes {
    scope: Scope,
    committee: Arc<Committee>,
    scheme: Arc<dyn Scheme>,
}

impl SignatureVotes {
    pub(super) fn new(scope: Scope, committee: Arc<Committee>) -> Self {
        let (scheme, _) = committee.scheme(Purpose::Vote);
        Self { scope, committee, scheme }
    }

    fn statement(&self, id: TxId) -> Vec<u8> {
        sign::statement(Kind::TxVote, self.scope, &id)
    }
}

impl Votes for SignatureVotes {
    fn sign(&self, secret: &VotingSecret, _me: ReplicaId, ids: &[TxId]) -> Vec<Vote> {
        let vote = |id: &TxId| {
            Vote::Share(self.committee.sign(Purpose::Vote, secret, &self.statement(*id)))
        };
        ids.iter().map(vote).collect()
    }

    fn batch_size(&self) -> usize {
        1
    }

    fn count(&self, id: TxId, votes: &[(ReplicaId, Vote)], suspects: &Bitmap) -> Counted {
        let mut shares = Vec::with_capacity(votes.len());
        let mut bad = Vec::new();
        for (voter, vote) in votes {
            match vote {
                Vote::Share(share) => shares.push((voter.index(), share.clone())),
                Vote::Merkle(_) => bad.push(voter.index()),
            }
        }
        let combined =
            self.scheme.combine(&self.statement(id), &shares, suspects, Policy::Aggregate);
        bad.extend(combined.bad);
        bad.sort_unstable();
        let certificate = combined
            .certificate
            .filter(|certificate| self.committee.is_enough(Purpose::Vote, certificate))
            .map(|one| TxCertificate {
                epoch: self.committee.epoch(),
                votes: QuorumVotes::Signatures(one),
            });
        Counted { certificate, bad }
    }

    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool> {
        let mut good = vec![false; items.len()];
        let mut open = Vec::with_capacity(items.len());
        for (index, (id, certificate)) in items.iter().enumerate() {
            match &certificate.votes {
                QuorumVotes::Signatures(one) if self.committee.is_enough(Purpose::Vote, one) => {
                    open.push((index, self.statement(*id), one));
                    good[index] = true;
                }
                _ => {}
            }
        }
        let indices: Vec<usize> = (0..open.len()).collect();
        let bad = bad_items(&indices, |part| {
            let part: Vec<_> = part.iter().map(|at| (&open[*at].1[..], open[*at].2)).collect();
            self.scheme.verify_many(&part).is_ok()
        });
        for at in bad {
            good[open[at].0] = false;
        }
        good
    }
}
