//! Votes for payments alone: what making and checking them costs on this machine (paper 003, table
//! 4.1, figures 4.1 and 4.2).

use super::{Measured, RunError, Runner, Signatures};
use crate::experiment::Setup;
use crate::stopwatch;
use quorate_crypto::merkle::Tree;
use quorate_crypto::{Bitmap, Digest, KeyFile, SchemeKind, VotingSecret, hash};
use quorate_payments::{AuthorityEntry, Network, NetworkFile, PayScheme, TxCertificate, TxId};
use quorate_types::{Epoch, Groups, ReplicaId, Weights, deal_keys};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Trees whose first votes are checked: each once, for what was checked is remembered.
const TREES: usize = 64;

/// Number of certificates checked together.
const BATCH: usize = 64;

/// Spans that an operation is repeated in; the best counts.
const SPANS: usize = 5;

/// Measures votes for payments.
#[derive(Clone, Copy, Debug)]
pub struct PayVotes;

impl Runner for PayVotes {
    /// One at a time: they are timed.
    fn is_parallel(&self) -> bool {
        false
    }

    fn estimate_s(&self, setup: &Setup) -> f64 {
        let signature_ms = match setup.pay_scheme {
            PayScheme::Plain | PayScheme::Merkle => 0.05,
            PayScheme::Bls | PayScheme::BlsThreshold => 1.6,
        };
        1.0 + f64::from(setup.validators) * signature_ms * TREES as f64 / 1_000.0
    }

    fn run(&self, setup: &Setup, interrupted: &AtomicBool) -> Result<Measured, RunError> {
        let authorities = Authorities::new(setup);
        let span = Duration::from_millis(setup.measure_ms) / u32::try_from(SPANS).expect("few");
        let leaves = setup.leaves as usize;
        let votes = authorities.network.votes();
        let ids = names(0, leaves);
        let vote_us = stopwatch::microseconds(SPANS, span, || {
            votes.sign(&authorities.secrets[0], ReplicaId(0), &ids)
        }) / leaves as f64;
        if interrupted.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        let trees: Vec<Vec<(TxId, TxCertificate)>> =
            (0..TREES).map(|tree| authorities.certificates(tree, leaves)).collect();
        let first_us = authorities.each_once(trees.iter().map(|tree| &tree[0]));
        let others = trees.iter().map(|tree| tree.last().expect("two at least"));
        let again_us = authorities.each_once(others);
        let batch: Vec<_> = trees.iter().map(|tree| (tree[0].0, &tree[0].1)).take(BATCH).collect();
        let batch_us =
            stopwatch::microseconds(SPANS, span, || votes.verify(&batch)) / batch.len() as f64;
        let hash_us = hash_us(span);
        let quorum = authorities.quorum as f64;
        let numbers = [
            ("vote_us", vote_us),
            ("first_us", first_us),
            ("again_us", again_us),
            ("batch_us", batch_us),
            (
                "cost_us",
                vote_us + first_us / leaves as f64 + again_us * (1.0 - 1.0 / leaves as f64),
            ),
            ("hash_us", hash_us),
            ("signers", quorum),
        ];
        let mut numbers: BTreeMap<String, f64> =
            numbers.map(|(name, number)| (name.to_owned(), number)).into();
        if setup.pay_scheme == PayScheme::Merkle {
            let signature_us = (first_us - again_us) / quorum;
            let sign_us = vote_us * leaves as f64 - 2.0 * leaves as f64 * hash_us;
            let formula = formula_leaves(hash_us, sign_us.max(0.0), signature_us, quorum);
            numbers.insert("formula_leaves".into(), formula);
        }
        Ok(Measured { numbers, signatures: Signatures::Real, details: Value::Null })
    }
}

/// Paper 003, §4.2.1: a transaction costs `q (c_v / n + log₂ n · c_h) + 2 c_h + c_s / n` with `n`
/// leaves; least where `n = ln 2 · (q c_v + c_s) / (q c_h)`.
fn formula_leaves(hash: f64, sign: f64, verify: f64, quorum: f64) -> f64 {
    std::f64::consts::LN_2 * (quorum * verify + sign) / (quorum * hash)
}

/// Cost of a node of a tree: a tree of `n` leaves has `2n - 1` of them, and a root.
fn hash_us(span: Duration) -> f64 {
    let leaves: Vec<Digest> = (0..64_u64).map(|leaf| hash(&leaf.to_le_bytes())).collect();
    stopwatch::microseconds(SPANS, span, || Tree::new(&leaves).root()) / 128.0
}

fn names(tree: usize, count: usize) -> Vec<TxId> {
    (0..count).map(|leaf| TxId(hash(&[tree.to_le_bytes(), leaf.to_le_bytes()].concat()))).collect()
}

/// A network in memory with everybody's keys.
struct Authorities {
    network: Network,
    secrets: Vec<VotingSecret>,
    quorum: usize,
}

impl Authorities {
    fn new(setup: &Setup) -> Self {
        let keys: Vec<KeyFile> =
            (0..setup.validators).map(|member| keys_of(setup, member)).collect();
        let mut secrets: Vec<VotingSecret> = keys.iter().map(|one| one.voting.clone()).collect();
        let mut groups = None;
        if setup.pay_scheme == PayScheme::BlsThreshold {
            let weights = Weights::equal(keys.len());
            let dealing = deal_keys(&weights, &[9; 32]).expect("equal weights");
            groups = Some(Groups::from(&dealing.groups));
            secrets = dealing.secrets;
        }
        let entry = |(keys, voting): (&KeyFile, &VotingSecret)| {
            let keys = KeyFile { voting: voting.clone(), ..keys.clone() };
            AuthorityEntry::new(&keys.public(), vec!["127.0.0.1:1".into()])
        };
        let file = NetworkFile {
            name: "votes".into(),
            network: None,
            epoch: Epoch(1),
            scheme: setup.pay_scheme,
            shards: 1,
            issuer: keys[0].identity.public().to_string(),
            groups,
            genesis: Vec::new(),
            authorities: keys.iter().zip(&secrets).map(entry).collect(),
        };
        let network = Network::load(&file).expect("keys made here");
        let quorum = usize::try_from(network.committee().quorum()).expect("heads");
        Self { network, secrets, quorum }
    }

    /// Certificates of the first and the last transaction of a tree; of both even where they are
    /// one.
    fn certificates(&self, tree: usize, leaves: usize) -> Vec<(TxId, TxCertificate)> {
        let ids = names(tree + 1, leaves.max(1));
        let picked = [0, ids.len() - 1];
        let signed: Vec<_> = self
            .network
            .committee()
            .members()
            .zip(&self.secrets)
            .take(self.quorum)
            .map(|(me, secret)| (me, self.sign(secret, me, &ids, picked)))
            .collect();
        // Counted by a network of their own: this one's caches stay as they are.
        let nobody = Bitmap::new(self.secrets.len());
        let counter = self.network.votes_uncached();
        let certificate = |at: usize| {
            let votes: Vec<_> = signed.iter().map(|(me, votes)| (*me, votes[at].clone())).collect();
            let counted = counter.count(ids[picked[at]], &votes, &nobody);
            (ids[picked[at]], counted.certificate.expect("good votes"))
        };
        vec![certificate(0), certificate(1)]
    }

    /// Votes for two of many; alone where there are no trees.
    fn sign(
        &self,
        secret: &VotingSecret,
        me: ReplicaId,
        ids: &[TxId],
        picked: [usize; 2],
    ) -> Vec<quorate_payments::Vote> {
        let votes = self.network.votes();
        if votes.batch_size() == 1 {
            return votes.sign(secret, me, &picked.map(|at| ids[at]));
        }
        let all = votes.sign(secret, me, ids);
        picked.map(|at| all[at].clone()).into()
    }

    /// Mean time of checking each of these by itself, once.
    fn each_once<'a>(&self, items: impl Iterator<Item = &'a (TxId, TxCertificate)>) -> f64 {
        let items: Vec<_> = items.collect();
        let began = Instant::now();
        for (id, certificate) in &items {
            let verdict = self.network.votes().verify(&[(*id, certificate)]);
            assert_eq!(verdict, [true], "a certificate made here");
        }
        began.elapsed().as_secs_f64() * 1e6 / items.len() as f64
    }
}

fn keys_of(setup: &Setup, member: u16) -> KeyFile {
    let kind = match setup.pay_scheme.keys() {
        // The identity alone is used of these: the dealer makes the voting keys.
        SchemeKind::BlsThreshold => SchemeKind::Ed25519,
        kind => kind,
    };
    let mut count = 0_u8;
    let mut draw = |bytes: &mut [u8]| {
        count += 1;
        let seed = [&setup.seed.to_le_bytes()[..], &member.to_le_bytes(), &[count]].concat();
        bytes.copy_from_slice(&hash(&seed).0[..bytes.len()]);
    };
    KeyFile::generate(kind, &mut draw).expect("any seed is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_gives_the_papers_optimum() {
        let leaves = formula_leaves(1.0, 63.0, 107.0, 7.0);
        assert!((leaves - 80.41).abs() < 0.01, "{leaves}");
    }

    #[test]
    fn a_small_point_of_every_scheme_is_measured() {
        for pay_scheme in PayScheme::ALL {
            let setup = Setup { pay_scheme, leaves: 2, measure_ms: 5, ..Setup::default() };
            let measured = PayVotes.run(&setup, &AtomicBool::new(false)).expect("measured");
            assert!(measured.numbers["vote_us"] > 0.0, "{pay_scheme}");
            let is_tree = pay_scheme == PayScheme::Merkle;
            assert_eq!(measured.numbers.contains_key("formula_leaves"), is_tree, "{pay_scheme}");
        }
    }
}
