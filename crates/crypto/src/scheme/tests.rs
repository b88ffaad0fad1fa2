//! Duties that every scheme has to the protocols, tried on each of them.

use super::*;
use crate::error::KeyError;
use crate::{KeyCache, PossessionProof, VotingKey, VotingSecret, committee_scheme};
use borsh::{from_slice, to_vec};
use std::sync::Arc;

pub(crate) const MESSAGE: &[u8] = b"block 1";
const OTHER: &[u8] = b"block 2";
const POLICIES: [Policy; 3] = [Policy::Each, Policy::Batch, Policy::Aggregate];

pub(crate) struct Committee {
    pub(crate) secrets: Vec<VotingSecret>,
    pub(crate) scheme: Arc<dyn Scheme>,
}

pub(crate) fn secret(kind: SchemeKind, member: usize) -> VotingSecret {
    let mut seed = [0x5a; 32];
    seed[..8].copy_from_slice(&(member as u64).to_le_bytes());
    VotingSecret::from_seed(kind, &seed)
}

pub(crate) fn entry(secret: &VotingSecret) -> (VotingKey, PossessionProof) {
    (secret.public(), secret.prove_possession())
}

impl Committee {
    pub(crate) fn new(kind: SchemeKind, members: usize) -> Self {
        Self::of((0..members).map(|member| secret(kind, member)).collect(), KeyCache::On)
    }

    pub(crate) fn of(secrets: Vec<VotingSecret>, cache: KeyCache) -> Self {
        let keys: Vec<_> = secrets.iter().map(entry).collect();
        let scheme = committee_scheme(secrets[0].kind(), &keys, cache).unwrap();
        Self { secrets, scheme }
    }

    pub(crate) fn shares(
        &self,
        message: &[u8],
        signers: impl IntoIterator<Item = usize>,
    ) -> Vec<(usize, Share)> {
        signers.into_iter().map(|signer| (signer, self.secrets[signer].sign(message))).collect()
    }

    pub(crate) fn combine(&self, shares: &[(usize, Share)], policy: Policy) -> Combined {
        self.scheme.combine(MESSAGE, shares, &self.nobody(), policy)
    }

    pub(crate) fn nobody(&self) -> Bitmap {
        Bitmap::new(self.secrets.len())
    }

    pub(crate) fn certificate(
        &self,
        message: &[u8],
        signers: impl IntoIterator<Item = usize>,
    ) -> Certificate {
        let shares = self.shares(message, signers);
        let combined = self.scheme.combine(message, &shares, &self.nobody(), Policy::default());
        assert!(combined.bad.is_empty());
        combined.certificate.unwrap()
    }
}

fn each_committee(members: usize, test: impl Fn(&Committee)) {
    test(&Committee::new(SchemeKind::Ed25519, members));
    test(&Committee::new(SchemeKind::Bls, members));
    #[cfg(feature = "stub")]
    test(&Committee::new(SchemeKind::Stub, members));
}

fn each_policy(members: usize, test: impl Fn(&Committee, Policy)) {
    each_committee(members, |committee| {
        for policy in POLICIES {
            test(committee, policy);
        }
    });
}

#[test]
fn good_shares_make_a_certificate_that_verifies() {
    each_policy(7, |committee, policy| {
        let shares = committee.shares(MESSAGE, [6, 0, 2, 3, 5]);
        let combined = committee.combine(&shares, policy);
        assert!(combined.bad.is_empty());
        let certificate = combined.certificate.unwrap();
        assert_eq!(certificate.signers.iter().collect::<Vec<_>>(), [0, 2, 3, 5, 6]);
        assert_eq!(certificate.aggregate.0.len(), committee.scheme.aggregate_bytes(5));
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        assert_eq!(
            committee.scheme.verify(OTHER, &certificate),
            Err(SignatureError::Mismatch),
            "{policy}"
        );
    });
}

#[test]
fn the_order_of_shares_does_not_show() {
    each_policy(4, |committee, policy| {
        let mut shares = committee.shares(MESSAGE, [0, 1, 2]);
        let forwards = committee.combine(&shares, policy);
        shares.reverse();
        assert_eq!(committee.combine(&shares, policy), forwards);
    });
}

/// One bad share poisons neither the certificate nor its neighbours, wherever it is.
#[test]
pub(crate) fn bad_shares_are_left_out_and_blamed() {
    each_policy(5, |committee, policy| {
        for bad in [vec![0], vec![4], vec![1, 2], vec![0, 2, 4], vec![0, 1, 2, 3]] {
            let mut shares = committee.shares(MESSAGE, 0..5);
            for signer in &bad {
                shares[*signer].1 = committee.secrets[*signer].sign(OTHER);
            }
            let combined = committee.combine(&shares, policy);
            let certificate = combined.certificate.unwrap();
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()), "{bad:?} {policy}");
            assert_eq!(combined.bad, bad, "{policy}");
            assert_eq!(certificate.signers.absent().collect::<Vec<_>>(), bad, "{policy}");
        }
    });
}

#[test]
fn malformed_shares_are_bad_shares() {
    each_policy(4, |committee, policy| {
        let size = committee.scheme.share_bytes();
        for bytes in [vec![], vec![0; size - 1], vec![0; size], vec![0xff; size], vec![0; size + 1]]
        {
            let mut shares = committee.shares(MESSAGE, 0..4);
            shares[1].1 = Share(bytes);
            let combined = committee.combine(&shares, policy);
            assert_eq!(combined.bad, [1]);
            let certificate = combined.certificate.unwrap();
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        }
    });
}

#[test]
fn nothing_good_makes_no_certificate() {
    each_policy(4, |committee, policy| {
        let nothing = Combined { certificate: None, bad: vec![] };
        assert_eq!(committee.combine(&[], policy), nothing);
        let shares: Vec<_> =
            (0..3).map(|signer| (signer, committee.secrets[signer].sign(OTHER))).collect();
        let all_bad = Combined { certificate: None, bad: vec![0, 1, 2] };
        assert_eq!(committee.combine(&shares, policy), all_bad);
    });
}

#[test]
fn suspects_are_checked_before_they_join() {
    each_policy(5, |committee, policy| {
        let mut shares = committee.shares(MESSAGE, 0..5);
        shares[3].1 = committee.secrets[3].sign(OTHER);
        let suspects = Bitmap::from_indices(5, [1, 3]);
        let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, policy);
        assert_eq!(combined.bad, [3], "{policy}");
        let certificate = combined.certificate.unwrap();
        assert_eq!(certificate.signers.iter().collect::<Vec<_>>(), [0, 1, 2, 4]);
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
        let everyone = Bitmap::from_indices(5, 0..5);
        assert_eq!(committee.scheme.combine(MESSAGE, &shares, &everyone, policy).bad, [3]);
    });
}

#[test]
fn a_second_share_of_one_signer_is_dropped_quietly() {
    each_policy(4, |committee, policy| {
        let mut shares = committee.shares(MESSAGE, [0, 1, 2, 1]);
        shares[3].1 = Share(vec![1, 2, 3]);
        let combined = committee.combine(&shares, policy);
        assert!(combined.bad.is_empty());
        assert_eq!(combined.certificate, Some(committee.certificate(MESSAGE, 0..3)));
    });
}

#[test]
#[should_panic(expected = "a share came attributed to 4, of 4 members")]
fn a_share_of_a_stranger_is_a_bug() {
    let committee = Committee::new(SchemeKind::Ed25519, 4);
    committee.combine(&[(4, Share(vec![0; 64]))], Policy::Each);
}

#[test]
fn a_share_is_its_signers_on_its_message() {
    each_committee(4, |committee| {
        let share = committee.secrets[2].sign(MESSAGE);
        let verify = |message, signer, share| committee.scheme.verify_share(message, signer, share);
        assert_eq!(share.0.len(), committee.scheme.share_bytes());
        assert_eq!(verify(MESSAGE, 2, &share), Ok(()));
        assert_eq!(verify(OTHER, 2, &share), Err(SignatureError::Mismatch));
        assert_eq!(verify(MESSAGE, 1, &share), Err(SignatureError::Mismatch));
        assert_eq!(
            verify(MESSAGE, 4, &share),
            Err(SignatureError::Signer { signer: 4, members: 4 })
        );
        let (expected, found) = (share.0.len(), share.0.len() - 1);
        assert_eq!(
            verify(MESSAGE, 2, &Share(share.0[1..].to_vec())),
            Err(SignatureError::Length { expected, found })
        );
    });
}

#[test]
pub(crate) fn a_certificate_of_nobody_is_refused() {
    each_committee(4, |committee| {
        for bytes in [0, committee.scheme.aggregate_bytes(0)] {
            let certificate =
                Certificate { signers: Bitmap::new(4), aggregate: Aggregate(vec![0; bytes]) };
            assert_eq!(
                committee.scheme.verify(MESSAGE, &certificate),
                Err(SignatureError::NoSigners)
            );
        }
    });
}

#[test]
fn a_certificate_for_a_committee_of_another_size_is_refused() {
    each_committee(4, |committee| {
        let certificate = committee.certificate(MESSAGE, 0..3);
        for found in [3, 5, 8] {
            let resized =
                Certificate { signers: Bitmap::from_indices(found, 0..3), ..certificate.clone() };
            assert_eq!(
                committee.scheme.verify(MESSAGE, &resized),
                Err(SignatureError::Committee { members: 4, found })
            );
        }
    });
}

#[test]
fn a_certificate_with_other_signers_is_refused() {
    each_committee(5, |committee| {
        let certificate = committee.certificate(MESSAGE, 0..3);
        for signers in [vec![0, 1, 3], vec![1, 2, 3], vec![2, 3, 4]] {
            let signers = Bitmap::from_indices(5, signers);
            let renamed = Certificate { signers, ..certificate.clone() };
            assert_eq!(committee.scheme.verify(MESSAGE, &renamed), Err(SignatureError::Mismatch));
        }
        for signers in [vec![0], vec![0, 1], vec![0, 1, 2, 3]] {
            let signers = Bitmap::from_indices(5, signers);
            let renamed = Certificate { signers, ..certificate.clone() };
            let error = committee.scheme.verify(MESSAGE, &renamed).unwrap_err();
            assert!(
                matches!(error, SignatureError::Mismatch | SignatureError::Length { .. }),
                "{error:?}"
            );
        }
    });
}

#[test]
fn a_certificate_of_another_length_is_refused() {
    each_committee(4, |committee| {
        let certificate = committee.certificate(MESSAGE, 0..3);
        let expected = committee.scheme.aggregate_bytes(3);
        for found in [0, expected - 1, expected + 1, expected * 2] {
            let mut bytes = certificate.aggregate.0.clone();
            bytes.resize(found, 0);
            let resized = Certificate { aggregate: Aggregate(bytes), ..certificate.clone() };
            assert_eq!(
                committee.scheme.verify(MESSAGE, &resized),
                Err(SignatureError::Length { expected, found })
            );
        }
    });
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    each_committee(4, |committee| {
        let certificate = committee.certificate(MESSAGE, 0..3);
        for position in 0..certificate.aggregate.0.len() {
            let mut flipped = certificate.clone();
            flipped.aggregate.0[position] ^= 1 << (position % 8);
            assert!(committee.scheme.verify(MESSAGE, &flipped).is_err(), "byte {position}");
        }
    });
}

#[test]
fn many_certificates_are_checked_at_once() {
    each_committee(4, |committee| {
        let messages: [&[u8]; 3] = [b"timeout 1", b"timeout 2", b"timeout 3"];
        let certificates = [
            committee.certificate(messages[0], 0..3),
            committee.certificate(messages[1], 1..4),
            committee.certificate(messages[2], [2]),
        ];
        let items: Vec<_> = messages.into_iter().zip(&certificates).collect();
        for some in 0..=items.len() {
            assert_eq!(committee.scheme.verify_many(&items[..some]), Ok(()));
        }
        let swapped = [(messages[0], &certificates[1]), (messages[1], &certificates[0])];
        assert_eq!(committee.scheme.verify_many(&swapped), Err(SignatureError::Mismatch));
        let repeated = [items[0], items[0], items[1]];
        assert_eq!(committee.scheme.verify_many(&repeated), Ok(()));
        let nobody = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(vec![]) };
        let with_nobody = [items[0], (messages[1], &nobody)];
        assert_eq!(committee.scheme.verify_many(&with_nobody), Err(SignatureError::NoSigners));
    });
}

#[test]
fn committees_are_checked_when_they_are_loaded() {
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls] {
        let load = |keys: &[_]| committee_scheme(kind, keys, KeyCache::On).map(|_| ());
        let keys: Vec<_> = (0..3).map(|member| entry(&secret(kind, member))).collect();
        assert_eq!(load(&keys), Ok(()));
        assert_eq!(load(&[]), Err(KeyError::NoMembers));
        let many = vec![keys[0].clone(); 65_536];
        assert_eq!(load(&many), Err(KeyError::TooManyMembers { members: 65_536 }));
        assert_eq!(load(&many[1..]), Err(KeyError::Duplicate { first: 0, second: 1 }));
        let twice = [keys[0].clone(), keys[1].clone(), keys[0].clone()];
        assert_eq!(load(&twice), Err(KeyError::Duplicate { first: 0, second: 2 }));
        let mut short = keys.clone();
        short[1].0.0.pop();
        let expected = keys[1].0.0.len();
        let cause = KeyError::Length { kind, what: "public key", expected, found: expected - 1 };
        assert_eq!(load(&short), Err(KeyError::Member { member: 1, cause: Box::new(cause) }));
        let mut garbage = keys.clone();
        garbage[2].0.0.fill(0xff);
        let cause = Box::new(KeyError::Encoding);
        assert_eq!(load(&garbage), Err(KeyError::Member { member: 2, cause }));
    }
}

#[test]
fn the_scheme_tells_its_shape() {
    each_committee(3, |committee| {
        assert_eq!(committee.scheme.kind(), committee.secrets[0].kind());
        assert_eq!(committee.scheme.members(), 3);
        let share = format!("{:?}", committee.secrets[0].sign(MESSAGE));
        assert!(share.starts_with("Share(") && share.len() < 30, "{share}");
        let shown = format!("{:?}", committee.scheme);
        assert!(shown.contains("3 members") && shown.len() < 60, "{shown}");
    });
    let shape = |kind| {
        let scheme = Committee::new(kind, 1).scheme;
        (scheme.share_bytes(), scheme.aggregate_bytes(1), scheme.aggregate_bytes(5))
    };
    assert_eq!(shape(SchemeKind::Ed25519), (64, 64, 320));
    assert_eq!(shape(SchemeKind::Bls), (48, 48, 48));
}

#[test]
fn certificate_golden_bytes() {
    let certificate = Certificate {
        signers: Bitmap::from_indices(10, [1, 8]),
        aggregate: Aggregate(vec![0xaa, 0xbb]),
    };
    let bytes = [10, 0, 0b10, 0b1, 2, 0, 0, 0, 0xaa, 0xbb];
    assert_eq!(to_vec(&certificate).unwrap(), bytes);
    assert_eq!(from_slice::<Certificate>(&bytes).unwrap(), certificate);
    assert_eq!(to_vec(&Share(vec![7])).unwrap(), [1, 0, 0, 0, 7]);
    let kinds = [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::BlsThreshold];
    assert_eq!(to_vec(&kinds).unwrap(), [0, 1, 2]);
    assert_eq!(
        format!("{certificate:?}"),
        "Certificate { signers: {1, 8}/10, aggregate: Aggregate(aabb, 2 bytes) }"
    );
}

#[test]
fn options_are_named_as_they_are_shown() {
    #[cfg(feature = "stub")]
    assert_eq!("stub".parse(), Ok(SchemeKind::Stub));
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::BlsThreshold] {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    for policy in POLICIES {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    for cache in [KeyCache::On, KeyCache::Subtract, KeyCache::Off] {
        assert_eq!(cache.to_string().parse(), Ok(cache));
    }
    assert_eq!(
        "some".parse::<Policy>().unwrap_err().to_string(),
        "\"some\" is not a way to check shares; choose one of: each, batch, aggregate"
    );
}
