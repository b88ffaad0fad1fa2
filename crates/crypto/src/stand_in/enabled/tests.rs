use super::*;
use crate::{IdentitySecret, Signature, VotingSecret, committee_scheme, verify_batch};
use std::sync::Arc;

const MESSAGE: &[u8] = b"a statement";

struct Voters {
    secrets: Vec<VotingSecret>,
    scheme: Arc<dyn Scheme>,
}

impl Voters {
    fn new(kind: SchemeKind, members: usize, cache: KeyCache) -> Self {
        let seed = |member: usize| [u8::try_from(member).unwrap() + 1; 32];
        let secrets: Vec<_> =
            (0..members).map(|m| VotingSecret::from_seed(kind, &seed(m))).collect();
        let keys: Vec<_> = secrets.iter().map(|s| (s.public(), s.prove_possession())).collect();
        let scheme = committee_scheme(kind, &keys, cache).unwrap();
        Self { secrets, scheme }
    }

    fn shares(&self, count: usize) -> Vec<(usize, Share)> {
        (0..count).map(|member| (member, self.secrets[member].sign(MESSAGE))).collect()
    }
}

#[test]
fn stand_ins_are_as_long_as_what_they_stand_for_and_are_told_from_mistakes() {
    let real: Vec<usize> = [SchemeKind::Ed25519, SchemeKind::Bls]
        .map(|kind| Voters::new(kind, 1, KeyCache::On).secrets[0].sign(MESSAGE).0.len())
        .into();
    let _stand_ins = StandIns::begin();
    for (kind, length) in [SchemeKind::Ed25519, SchemeKind::Bls].into_iter().zip(real) {
        let voters = Voters::new(kind, 4, KeyCache::On);
        let mut shares = voters.shares(4);
        assert_eq!(shares[0].1.0.len(), length);
        shares[2].1 = voters.secrets[2].sign(b"something else");
        let nobody = Bitmap::new(4);
        let combined = voters.scheme.combine(MESSAGE, &shares, &nobody, Policy::Aggregate);
        assert_eq!(combined.bad, [2]);
        let mut certificate = combined.certificate.unwrap();
        assert_eq!(certificate.aggregate.0.len(), voters.scheme.aggregate_bytes(3));
        assert_eq!(voters.scheme.verify(MESSAGE, &certificate), Ok(()));
        let other = voters.scheme.verify(b"something else", &certificate);
        assert_eq!(other, Err(SignatureError::Mismatch));
        certificate.signers = Bitmap::from_indices(4, [0, 1, 2]);
        let forged = voters.scheme.verify(MESSAGE, &certificate);
        assert_eq!(forged, Err(SignatureError::Mismatch));
    }
}

#[test]
fn they_end_with_their_guard() {
    let secret = IdentitySecret::from_seed([1; 32]);
    let real = secret.sign(MESSAGE);
    let priced = {
        let _outer = StandIns::begin();
        drop(StandIns::begin());
        let priced = secret.sign(MESSAGE);
        assert_eq!(secret.public().verify(MESSAGE, &priced), Ok(()));
        assert_eq!(secret.public().verify(MESSAGE, &real), Err(SignatureError::Mismatch));
        priced
    };
    assert_eq!(secret.public().verify(MESSAGE, &real), Ok(()));
    assert_eq!(secret.public().verify(MESSAGE, &priced), Err(SignatureError::Mismatch));
    let forged = [(secret.public(), MESSAGE, Signature([0; 64]))];
    assert!(verify_batch(&forged).is_err());
}

#[cfg(feature = "count")]
mod counted {
    use super::*;
    use crate::counts::{self, OpCounts};

    fn identity_work() -> OpCounts {
        let secrets: Vec<_> = (1..6).map(|seed| IdentitySecret::from_seed([seed; 32])).collect();
        let prepared = secrets[0].public().prepare().unwrap();
        counts::take();
        let items: Vec<_> =
            secrets.iter().map(|s| (s.public(), MESSAGE, s.sign(MESSAGE))).collect();
        verify_batch(&items).unwrap();
        prepared.verify(MESSAGE, &items[0].2).unwrap();
        secrets[1].public().verify(MESSAGE, &items[1].2).unwrap();
        counts::take()
    }

    fn voting_work(kind: SchemeKind, cache: KeyCache, policy: Policy) -> Vec<OpCounts> {
        let voters = Voters::new(kind, 10, cache);
        let mut work = Vec::new();
        counts::take();
        let shares = voters.shares(8);
        work.push(counts::take());
        voters.scheme.verify_share(MESSAGE, 0, &shares[0].1).unwrap();
        work.push(counts::take());
        for suspects in [Bitmap::new(10), Bitmap::from_indices(10, [1, 3])] {
            for count in [1, 4, 7, 8] {
                let combined = voters.scheme.combine(MESSAGE, &shares[..count], &suspects, policy);
                work.push(counts::take());
                let certificate = combined.certificate.unwrap();
                voters.scheme.verify(MESSAGE, &certificate).unwrap();
                work.push(counts::take());
                let items = [(MESSAGE, &certificate), (MESSAGE, &certificate)];
                voters.scheme.verify_many(&items).unwrap();
                work.push(counts::take());
            }
        }
        work
    }

    #[test]
    fn the_same_work_counts_the_same() {
        let real = identity_work();
        let stand_ins = StandIns::begin();
        assert_eq!(identity_work(), real);
        drop(stand_ins);
        for kind in [SchemeKind::Ed25519, SchemeKind::Bls] {
            for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
                for cache in [KeyCache::On, KeyCache::Subtract, KeyCache::Off] {
                    let real = voting_work(kind, cache, policy);
                    let _stand_ins = StandIns::begin();
                    assert_eq!(voting_work(kind, cache, policy), real, "{kind} {policy} {cache}");
                }
            }
        }
    }
}
