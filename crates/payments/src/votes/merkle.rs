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
use borsh::{BorshDeserialize, BorshSerialize};
use parking_lot::Mutex;
use quorate_crypto::merkle::{Path, Tree};
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, Digest, Scheme, Share, VotingSecret, bad_items,
};
use quorate_types::{Committee, Kind, Purpose, ReplicaId, Scope, sign};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Deepest tree: 65,536 votes under one signature.
const DEPTH_MAX: usize = 16;

/// Transactions worth gathering before they are signed: the cost of a vote is lowest near this many
/// (see docs/results/payments.md), and flat around it.
const TOGETHER: usize = 128;

/// Roots remembered of each authority, in each of two generations: some seconds at full speed.
const ROOTS_MAX: usize = 4_096;

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
    /// Roots whose signature was checked, by authority.
    checked: Vec<Mutex<Roots>>,
}

/// Roots with the signature that was good, the younger half and the older.
#[derive(Debug, Default)]
struct Roots {
    young: BTreeMap<Digest, Share>,
    old: BTreeMap<Digest, Share>,
}

impl Roots {
    fn has(&self, root: &Digest, signature: &Share) -> bool {
        let known = self.young.get(root).or_else(|| self.old.get(root));
        known == Some(signature)
    }

    fn add(&mut self, root: Digest, signature: Share) {
        if self.young.len() >= ROOTS_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(root, signature);
    }
}

/// A root's signature that is to be checked, and for which item.
struct Claim {
    item: usize,
    signer: usize,
    root: Digest,
    statement: Vec<u8>,
    certificate: Certificate,
}

impl MerkleVotes {
    pub(super) fn new(scope: Scope, committee: Arc<Committee>) -> Self {
        let (scheme, _) = committee.scheme(Purpose::Vote);
        let checked = committee.members().map(|_| Mutex::default()).collect();
        Self { scope, committee, scheme, checked }
    }

    /// Statement that is signed; the root covers the count as well, which is stated so that nobody
    /// has to know.
    fn statement(&self, signer: usize, count: u32, root: Digest) -> Vec<u8> {
        let signer = u16::try_from(signer).expect("committees have fewer members");
        let payload = (ReplicaId(signer), count, root);
        sign::statement(Kind::MerkleRoot, self.scope, &payload)
    }

    /// The root that a vote leads to; `None` where it leads nowhere.
    fn root(id: TxId, vote: &MerkleVote) -> Option<Digest> {
        (vote.path.siblings.len() <= DEPTH_MAX).then(|| vote.path.root(&id.0)).flatten()
    }

    fn is_known(&self, signer: usize, root: &Digest, signature: &Share) -> bool {
        if mutants::active(Mutant::PayRootOfAnybody) {
            let knows = |roots: &Mutex<Roots>| {
                let roots = roots.lock();
                roots.young.contains_key(root) || roots.old.contains_key(root)
            };
            return self.checked.iter().any(knows);
        }
        self.checked[signer].lock().has(root, signature)
    }

    /// The claims among these votes that were not checked before; `false` where a vote leads
    /// nowhere.
    fn open<'a>(
        &self,
        item: usize,
        id: TxId,
        votes: impl Iterator<Item = (usize, &'a MerkleVote)>,
        claims: &mut Vec<Claim>,
    ) -> bool {
        let before = claims.len();
        for (signer, vote) in votes {
            let Some(root) = Self::root(id, vote) else {
                claims.truncate(before);
                return false;
            };
            if self.is_known(signer, &root, &vote.signature) {
                continue;
            }
            let signers = Bitmap::from_indices(self.committee.size(), [signer]);
            let aggregate = Aggregate(vote.signature.0.clone());
            let statement = self.statement(signer, vote.path.count, root);
            let certificate = Certificate { signers, aggregate };
            claims.push(Claim { item, signer, root, statement, certificate });
        }
        true
    }

    /// Checks claims, remembers the good ones and returns the others' items. Votes of one tree make
    /// one claim.
    fn settle(&self, claims: &[Claim]) -> Vec<usize> {
        let mut distinct: BTreeMap<(usize, &Digest, &[u8]), usize> = BTreeMap::new();
        for (at, claim) in claims.iter().enumerate() {
            distinct
                .entry((claim.signer, &claim.root, &claim.certificate.aggregate.0))
                .or_insert(at);
        }
        let open: Vec<usize> = distinct.values().copied().collect();
        let bad = bad_items(&open, |part| {
            let part: Vec<_> = part
                .iter()
                .map(|at| (&claims[*at].statement[..], &claims[*at].certificate))
                .collect();
            self.scheme.verify_many(&part).is_ok()
        });
        for at in open.iter().filter(|at| !bad.contains(at)) {
            let Claim { signer, root, certificate, .. } = &claims[*at];
            self.checked[*signer].lock().add(*root, Share(certificate.aggregate.0.clone()));
        }
        let is_bad = |claim: &&Claim| {
            let key = (claim.signer, &claim.root, &claim.certificate.aggregate.0[..]);
            bad.contains(&distinct[&key])
        };
        claims.iter().filter(is_bad).map(|claim| claim.item).collect()
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
        let mut good = BTreeMap::new();
        let mut claims = Vec::new();
        for (voter, vote) in votes {
            let signer = voter.index();
            match vote {
                Vote::Merkle(vote)
                    if signer < self.committee.size()
                        && self.open(signer, id, std::iter::once((signer, vote)), &mut claims) =>
                {
                    good.insert(signer, vote.clone());
                }
                _ => bad.push(signer),
            }
        }
        bad.extend(self.settle(&claims));
        bad.sort_unstable();
        bad.dedup();
        good.retain(|signer, _| !bad.contains(signer));
        let signers = Bitmap::from_indices(self.committee.size(), good.keys().copied());
        let is_enough = self.committee.are_enough(Purpose::Vote, &signers);
        let certificate = is_enough.then(|| TxCertificate {
            epoch: self.committee.epoch(),
            votes: QuorumVotes::Merkle { signers, votes: good.into_values().collect() },
        });
        Counted { certificate, bad }
    }

    fn verify(&self, items: &[(TxId, &TxCertificate)]) -> Vec<bool> {
        let mut claims = Vec::new();
        let mut good = Vec::with_capacity(items.len());
        for (item, (id, certificate)) in items.iter().enumerate() {
            good.push(match &certificate.votes {
                QuorumVotes::Merkle { signers, votes }
                    if votes.len() == signers.count()
                        && self.committee.are_enough(Purpose::Vote, signers) =>
                {
                    self.open(item, *id, signers.iter().zip(votes), &mut claims)
                }
                _ => false,
            });
        }
        for item in self.settle(&claims) {
            good[item] = false;
        }
        good
    }
}

#[cfg(test)]
mod tests;
