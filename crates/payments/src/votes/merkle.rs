//! One signature for many votes (paper 003 §4.2): an authority gathers transactions into a tree,
//! signs its root, and gives each its way there. Whoever checks votes checks a root's signature
//! once and then hashes.
//!
//! A root is signed as whose it is, of which epoch and over how many leaves; roots that were
//! checked are remembered as their signer's (★): the paper's cache is keyed by the root alone, so
//! that a root that one authority signed passes for another's, and f liars that copy an honest root
//! make up a quorum.

use super::{Counted, QuorumVotes, TxCertificate, Vote, Votes};
use crate::TxId;
use crate::recent::Recent;
use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::Mutex;
use quorate_crypto::merkle::{Path, Tree};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, Digest, Scheme, Share, VotingSecret, bad_items,
};
use quorate_types::{Committee, Kind, Purpose, ReplicaId, Scope, sign};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Deepest tree: 65,536 votes under one signature.
const DEPTH_MAX: usize = 16;

/// Transactions worth gathering before they are signed: the cost of a vote is lowest near this many
/// (see docs/results/payments.md), and flat around it.
const TOGETHER: usize = 128;

/// Slots for the roots of each authority: some seconds' at full speed.
const ROOT_SLOTS: usize = 1 << 13;

/// A vote under a signature that others share.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MerkleVote {
    /// Path from the transaction's name to the root.
    pub path: Path,
    /// The authority's signature over the root.
    pub signature: Share,
}

/// Voting scheme with Merkle trees.
#[derive(Debug)]
pub(super) struct MerkleVotes {
    scope: Scope,
    committee: Arc<Committee>,
    scheme: Arc<dyn Scheme>,
    /// Roots whose signature was checked, with it, by authority.
    checked: Vec<Mutex<Recent<Share>>>,
}

/// A vote as it is checked.
struct Cast<'a> {
    /// What is refused where this vote is bad: a vote alone, or a certificate.
    item: usize,
    signer: usize,
    id: TxId,
    vote: &'a MerkleVote,
}

/// A root under a signature that is to be checked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Claim<'a> {
    signer: usize,
    root: Digest,
    signature: &'a Share,
    /// Number of leaves, which the root covers.
    count: u32,
}

impl MerkleVotes {
    pub(super) fn new(scope: Scope, committee: Arc<Committee>) -> Self {
        let (scheme, _) = committee.scheme(Purpose::Vote);
        let remember = |_| Mutex::new(Recent::new(ROOT_SLOTS));
        let checked = committee.members().map(remember).collect();
        Self { scope, committee, scheme, checked }
    }

    /// Statement that is signed; the root covers the count as well, which is stated so that nobody
    /// has to know.
    fn statement(&self, signer: usize, count: u32, root: Digest) -> Vec<u8> {
        let signer = u16::try_from(signer).expect("committees have fewer members");
        let payload = (ReplicaId(signer), count, root);
        sign::statement(Kind::MerkleRoot, self.scope, &payload)
    }

    /// The root that each vote leads to; `None` where it leads nowhere.
    fn roots(casts: &[Cast<'_>]) -> Vec<Option<Digest>> {
        let is_shallow = |cast: &&Cast<'_>| cast.vote.path.siblings.len() <= DEPTH_MAX;
        let shallow = casts.iter().filter(is_shallow);
        let paths: Vec<_> = shallow.map(|cast| (&cast.id.0, &cast.vote.path)).collect();
        // Nothing is hashed of what leads nowhere.
        let mut roots = Path::roots(&paths).into_iter();
        let root = |cast| is_shallow(&cast).then(|| roots.next().flatten()).flatten();
        casts.iter().map(root).collect()
    }

    fn is_known(&self, claim: &Claim<'_>) -> bool {
        let knows = |roots: &Mutex<Recent<Share>>| roots.lock().get(&claim.root).is_some();
        if mutants::active(Mutant::PayRootOfAnybody) {
            return self.checked.iter().any(knows);
        }
        self.checked[claim.signer].lock().get(&claim.root) == Some(claim.signature)
    }

    /// The items with a bad vote. Of those with a vote that leads nowhere no signature is checked.
    fn bad_items(&self, casts: &[Cast<'_>]) -> BTreeSet<usize> {
        let roots = Self::roots(casts);
        let lost = casts.iter().zip(&roots).filter(|(_, root)| root.is_none());
        let mut bad: BTreeSet<usize> = lost.map(|(cast, _)| cast.item).collect();
        // Votes of one tree make one claim.
        let mut claims: BTreeMap<Claim<'_>, Vec<usize>> = BTreeMap::new();
        for (Cast { item, signer, vote, .. }, root) in casts.iter().zip(roots) {
            let Some(root) = root.filter(|_| !bad.contains(item)) else { continue };
            let (signature, count) = (&vote.signature, vote.path.count);
            let claim = Claim { signer: *signer, root, signature, count };
            if !self.is_known(&claim) {
                claims.entry(claim).or_default().push(*item);
            }
        }
        for claim in self.settle(&claims.keys().copied().collect::<Vec<_>>()) {
            bad.extend(&claims[&claim]);
        }
        bad
    }

    /// Checks claims, remembers the good ones and returns the others.
    fn settle<'a>(&self, claims: &[Claim<'a>]) -> Vec<Claim<'a>> {
        let statement = |claim: &Claim<'_>| {
            let signers = Bitmap::from_indices(self.committee.size(), [claim.signer]);
            let aggregate = Aggregate(claim.signature.0.clone());
            let statement = self.statement(claim.signer, claim.count, claim.root);
            (statement, Certificate { signers, aggregate })
        };
        let statements: Vec<_> = claims.iter().map(statement).collect();
        let numbers: Vec<usize> = (0..claims.len()).collect();
        let bad = bad_items(&numbers, |part| {
            let item = |at: &usize| (&statements[*at].0[..], &statements[*at].1);
            self.scheme.verify_many(&part.iter().map(item).collect::<Vec<_>>()).is_ok()
        });
        for at in numbers.iter().filter(|at| bad.binary_search(at).is_err()) {
            let Claim { signer, root, signature, .. } = claims[*at];
            self.checked[signer].lock().put(root, signature.clone());
        }
        bad.into_iter().map(|at| claims[at]).collect()
    }
}

impl Votes for MerkleVotes {
    fn sign(&self, secret: &VotingSecret, me: ReplicaId, ids: &[TxId]) -> Vec<Vote> {
        let leaves: Vec<Digest> = ids.iter().map(|id| id.0).collect();
        let mut votes = Vec::with_capacity(ids.len());
        for leaves in leaves.chunks(1 << DEPTH_MAX) {
            let tree = Tree::new(leaves);
            let count = u32::try_from(leaves.len()).expect("at most 2^16");
            let statement = self.statement(me.index(), count, tree.root());
            let signature = self.committee.sign(Purpose::Vote, secret, &statement);
            votes.extend((0..count).map(|index| {
                let path = tree.path(index).expect("within the tree");
                Vote::Merkle(MerkleVote { path, signature: signature.clone() })
            }));
        }
        votes
    }

    fn batch_size(&self) -> usize {
        TOGETHER
    }

    fn count(&self, id: TxId, votes: &[(ReplicaId, Vote)], _suspects: &Bitmap) -> Counted {
        let mut bad = Vec::new();
        let mut casts = Vec::new();
        for (item, (voter, vote)) in votes.iter().enumerate() {
            let signer = voter.index();
            match vote {
                Vote::Merkle(vote) if signer < self.committee.size() => {
                    casts.push(Cast { item, signer, id, vote });
                }
                _ => bad.push(signer),
            }
        }
        bad.extend(self.bad_items(&casts).into_iter().map(|item| votes[item].0.index()));
        bad.sort_unstable();
        bad.dedup();
        let good = casts.iter().filter(|cast| !bad.contains(&cast.signer));
        let good: BTreeMap<usize, MerkleVote> =
            good.map(|cast| (cast.signer, cast.vote.clone())).collect();
        let signers = Bitmap::from_indices(self.committee.size(), good.keys().copied());
        let is_enough = self.committee.are_enough(Purpose::Vote, &signers);
        let certificate = is_enough.then(|| TxCertificate {
            epoch: self.committee.epoch(),
            votes: QuorumVotes::Merkle { signers, votes: good.into_values().collect() },
        });
        Counted { certificate, bad }
    }

    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool> {
        let mut casts = Vec::new();
        let mut good = Vec::with_capacity(items.len());
        for (item, (id, certificate)) in items.iter().enumerate() {
            let QuorumVotes::Merkle { signers, votes } = &certificate.votes else {
                good.push(false);
                continue;
            };
            let is_complete =
                votes.len() == signers.count() && self.committee.are_enough(Purpose::Vote, signers);
            good.push(is_complete);
            if is_complete {
                let votes = signers.iter().zip(votes);
                casts.extend(votes.map(|(signer, vote)| Cast { item, signer, id: *id, vote }));
            }
        }
        for item in self.bad_items(&casts) {
            good[item] = false;
        }
        good
    }
}

#[cfg(test)]
mod tests;
