use super::*;
use crate::{
    BySharing, Dealing, IdentitySecret, Sharing, Signature, VotingSecret, committee_scheme, deal,
    threshold_schemes, verify_batch,
};
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

const THRESHOLDS: BySharing<usize> = BySharing { fast: 7, slow: 5, execution: 3 };

fn dealt() -> (Dealing, BySharing<Arc<dyn Scheme>>) {
    let dealing = deal(10, &THRESHOLDS, &[3; 32]).unwrap();
    let keys: Vec<VotingKey> = dealing.secrets.iter().map(VotingSecret::public).collect();
    let schemes = threshold_schemes(&keys, &dealing.groups, &THRESHOLDS).unwrap();
    (dealing, schemes)
}

#[test]
fn stand_in_shares_are_as_long_and_as_particular() {
    let (real, real_schemes) = dealt();
    let _stand_ins = StandIns::begin();
    let (dealing, schemes) = dealt();
    let (secret, member) = (&real.secrets[0], &dealing.secrets[0]);
    assert_eq!(member.kind(), secret.kind());
    assert_eq!(member.public().0.len(), secret.public().0.len());
    assert_eq!(member.to_bytes().len(), secret.to_bytes().len());
    for sharing in Sharing::ALL {
        let (scheme, threshold) = (schemes.get(sharing), *THRESHOLDS.get(sharing));
        assert_eq!(scheme.share_bytes(), real_schemes.get(sharing).share_bytes());
        let commitments = |dealing: &Dealing| dealing.commitments.get(sharing).len();
        assert_eq!(commitments(&dealing), commitments(&real));
        let sign = |signer: usize| dealing.secrets[signer].sign_with(sharing, MESSAGE);
        assert_eq!(sign(0).0.len(), scheme.share_bytes());
        let signers = Bitmap::from_indices(10, 0..threshold);
        let aggregate = Aggregate(sign(0).0[1..].to_vec());
        let short = scheme.verify(MESSAGE, &Certificate { signers, aggregate });
        assert!(matches!(short, Err(SignatureError::Length { .. })), "{short:?}");
        let mut shares: Vec<_> = (0..=threshold).map(|signer| (signer, sign(signer))).collect();
        shares[1].1 = dealing.secrets[1].sign_with(sharing, b"something else");
        let nobody = Bitmap::new(10);
        let combined = scheme.combine(MESSAGE, &shares, &nobody, Policy::Aggregate);
        assert_eq!(combined.bad, [1]);
        let mut certificate = combined.certificate.unwrap();
        assert_eq!(certificate.signers.count(), threshold);
        assert_eq!(certificate.aggregate.0.len(), scheme.aggregate_bytes(threshold));
        assert_eq!(scheme.verify(MESSAGE, &certificate), Ok(()));
        let mismatch = Err(SignatureError::Mismatch);
        assert_eq!(scheme.verify(b"something else", &certificate), mismatch);
        for other in Sharing::ALL.into_iter().filter(|other| *other != sharing) {
            let share = dealing.secrets[0].sign_with(other, MESSAGE);
            assert_eq!(scheme.verify_share(MESSAGE, 0, &share), mismatch);
        }
        shares.truncate(threshold);
        let too_few = scheme.combine(MESSAGE, &shares, &nobody, Policy::Aggregate);
        assert_eq!(too_few, Combined { certificate: None, bad: vec![1] });
        let found = threshold - 1;
        certificate.signers = Bitmap::from_indices(10, 0..found);
        let refused = SignatureError::TooFewSigners { threshold, found };
        assert_eq!(scheme.verify(MESSAGE, &certificate), Err(refused));
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

    fn threshold_work(sharing: Sharing, policy: Policy) -> Vec<OpCounts> {
        let (dealing, schemes) = dealt();
        let scheme = schemes.get(sharing);
        let mut work = Vec::new();
        counts::take();
        let sign = |signer: usize| (signer, dealing.secrets[signer].sign_with(sharing, MESSAGE));
        let shares: Vec<_> = (0..10).map(sign).collect();
        work.push(counts::take());
        scheme.verify_share(MESSAGE, 0, &shares[0].1).unwrap();
        work.push(counts::take());
        for suspects in [Bitmap::new(10), Bitmap::from_indices(10, [1, 3])] {
            for count in [1, 4, 7, 10] {
                let combined = scheme.combine(MESSAGE, &shares[..count], &suspects, policy);
                work.push(counts::take());
                let Some(certificate) = combined.certificate else { continue };
                scheme.verify(MESSAGE, &certificate).unwrap();
                work.push(counts::take());
                let items = [(MESSAGE, &certificate), (MESSAGE, &certificate)];
                scheme.verify_many(&items).unwrap();
                work.push(counts::take());
            }
        }
        work
    }

    #[test]
    fn the_same_work_with_shares_that_were_dealt_counts_the_same() {
        for sharing in Sharing::ALL {
            for policy in [Policy::Each, Policy::Batch, Policy::Aggregate] {
                let real = threshold_work(sharing, policy);
                let _stand_ins = StandIns::begin();
                assert_eq!(threshold_work(sharing, policy), real, "{sharing} {policy}");
            }
        }
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
