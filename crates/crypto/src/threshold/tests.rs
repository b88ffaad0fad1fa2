use super::*;
use crate::error::KeyError;
use crate::scheme::tests::{MESSAGE, secret};
use crate::{KeyCache, PossessionProof, VotingKey, VotingSecret, committee_scheme};
use blst::min_sig::AggregateSignature;
use proptest::prelude::*;
use serde_json::Value;
use std::sync::Arc;

const OTHER: &[u8] = b"block 2";
const POLICIES: [Policy; 3] = [Policy::Each, Policy::Batch, Policy::Aggregate];
pub(crate) const KIND: SchemeKind = SchemeKind::BlsThreshold;

/// All sharings with one threshold; each size and threshold has polynomials of its own.
pub(crate) fn dealing(members: usize, threshold: usize) -> Dealing {
    deal(members, &BySharing::from_fn(|_| threshold), &[0x5a; 32]).unwrap()
}

/// The encoding of the identity.
pub(crate) fn identity(bytes: usize) -> Vec<u8> {
    let mut encoding = vec![0; bytes];
    encoding[0] = 0xc0;
    encoding
}

/// A point of the curve outside the subgroup: of G1 for 48 bytes, of G2 for 96.
pub(crate) fn outside_subgroup(bytes: usize) -> Vec<u8> {
    let mut encoding = vec![0; bytes];
    encoding[0] = 0x80;
    let on_curve = |encoding: &[u8]| match bytes {
        48 => Signature::uncompress(encoding).is_ok_and(|one| !one.subgroup_check()),
        _ => PublicKey::uncompress(encoding).is_ok_and(|one| one.validate().is_err()),
    };
    let at = |x| {
        encoding[bytes - 1] = x;
        on_curve(&encoding).then(|| encoding.clone())
    };
    (1..=255).find_map(at).expect("half of all x are on the curve")
}

fn add(left: &Share, right: &[u8]) -> Share {
    let points = [&left.0[..], right].map(|bytes| Signature::uncompress(bytes).unwrap());
    let sum = AggregateSignature::aggregate(&[&points[0], &points[1]], false).unwrap();
    Share(sum.to_signature().to_bytes().to_vec())
}

fn negate(encoding: &[u8]) -> Vec<u8> {
    let mut negated = encoding.to_vec();
    negated[0] ^= 0x20;
    negated
}

fn keys(dealing: &Dealing) -> Vec<VotingKey> {
    dealing.secrets.iter().map(VotingSecret::public).collect()
}

/// A committee's slow sharing.
struct Committee {
    dealing: Dealing,
    scheme: Arc<dyn Scheme>,
    threshold: usize,
}

impl Committee {
    fn new(members: usize, threshold: usize) -> Self {
        let dealing = dealing(members, threshold);
        let thresholds = BySharing::from_fn(|_| threshold);
        let schemes = threshold_schemes(&keys(&dealing), &dealing.groups, &thresholds).unwrap();
        Self { dealing, scheme: schemes.slow, threshold }
    }

    fn share(&self, message: &[u8], signer: usize) -> Share {
        self.dealing.secrets[signer].sign(message)
    }

    fn shares(&self, signers: impl IntoIterator<Item = usize>) -> Vec<(usize, Share)> {
        signers.into_iter().map(|signer| (signer, self.share(MESSAGE, signer))).collect()
    }

    fn nobody(&self) -> Bitmap {
        Bitmap::new(self.scheme.members())
    }

    fn combine(&self, shares: &[(usize, Share)], policy: Policy) -> Combined {
        self.scheme.combine(MESSAGE, shares, &self.nobody(), policy)
    }

    fn certificate(&self, signers: impl IntoIterator<Item = usize>) -> Certificate {
        let combined = self.combine(&self.shares(signers), Policy::Aggregate);
        assert!(combined.bad.is_empty());
        combined.certificate.unwrap()
    }

    /// That a result blames exactly `bad` and has a certificate that verifies.
    fn assert_good(&self, combined: &Combined, bad: &[usize]) {
        assert_eq!(combined.bad, bad);
        let certificate = combined.certificate.as_ref().expect("enough good shares");
        assert_eq!(certificate.signers.count(), self.threshold);
        assert!(bad.iter().all(|signer| !certificate.signers.contains(*signer)));
        assert_eq!(self.scheme.verify(MESSAGE, certificate), Ok(()));
    }
}

/// All subsets of `0..members` with so many in them.
fn subsets(members: usize, count: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..1_usize << members)
        .map(move |set| (0..members).filter(|one| set & (1 << one) != 0).collect::<Vec<_>>())
        .filter(move |subset| subset.len() == count)
}

/// One signature, whoever signs, and the group's own under the plain ciphersuite.
#[test]
fn whoever_signs_the_signature_is_the_groups() {
    for (members, threshold) in [(1, 1), (4, 1), (4, 2), (5, 3), (5, 4)] {
        let committee = Committee::new(members, threshold);
        let group = PublicKey::uncompress(&committee.dealing.groups.slow.0).unwrap();
        let expected = committee.certificate(0..threshold).aggregate;
        for signers in subsets(members, threshold) {
            let certificate = committee.certificate(signers.iter().copied());
            assert_eq!(certificate.aggregate, expected, "{signers:?}");
            assert_eq!(certificate.signers, Bitmap::from_indices(members, signers));
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
            assert_eq!(committee.scheme.verify(OTHER, &certificate), Err(SignatureError::Mismatch));
        }
        let tag = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_POP_";
        let signature = Signature::uncompress(&expected.0).unwrap();
        let verdict = signature.verify(true, MESSAGE, tag, &[], &group, true);
        assert_eq!(verdict, blst::BLST_ERROR::BLST_SUCCESS);
    }
}

/// The signatures of all members are added up: the plain ciphersuite's, under the sum of their
/// keys.
#[test]
fn what_all_sign_is_the_sum_of_their_signatures() {
    for (members, threshold) in [(4, 3), (5, 3), (4, 4)] {
        let committee = Committee::new(members, threshold);
        let shares = committee.shares(0..members);
        let sum = shares[1..].iter().fold(shares[0].1.clone(), |sum, (_, one)| add(&sum, &one.0));
        for policy in POLICIES {
            let certificate = committee.combine(&shares, policy).certificate.unwrap();
            assert_eq!(certificate.aggregate.0, sum.0, "{policy}");
            assert_eq!(certificate.signers.count(), members);
            assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
            let refused = committee.scheme.verify(OTHER, &certificate);
            assert_eq!(refused, Err(SignatureError::Mismatch));
        }
        let whole = committee.certificate(0..members);
        let many = [(MESSAGE, &whole), (MESSAGE, &whole)];
        assert_eq!(committee.scheme.verify_many(&many), Ok(()));
        // The sum is not the group's signature: neither passes for the other ★.
        if threshold < members {
            let some = committee.certificate(0..threshold);
            let as_some = Certificate { signers: some.signers.clone(), ..whole.clone() };
            let as_all = Certificate { signers: whole.signers.clone(), ..some };
            for certificate in [as_some, as_all] {
                let verdict = committee.scheme.verify(MESSAGE, &certificate);
                assert_eq!(verdict, Err(SignatureError::Mismatch));
            }
        }
    }
}

/// One bad share among all: without it the others are interpolated.
#[test]
fn without_a_bad_share_the_others_make_the_groups_signature() {
    let committee = Committee::new(5, 3);
    for policy in POLICIES {
        let mut shares = committee.shares(0..5);
        shares[2].1 = committee.share(OTHER, 2);
        committee.assert_good(&committee.combine(&shares, policy), &[2]);
    }
}

#[test]
fn of_many_shares_the_first_good_ones_are_used() {
    let committee = Committee::new(7, 4);
    for policy in POLICIES {
        let mut shares = committee.shares([6, 0, 2, 3, 5]);
        let combined = committee.combine(&shares, policy);
        let signers: Vec<usize> = combined.certificate.unwrap().signers.iter().collect();
        assert_eq!(signers, [0, 2, 3, 5], "{policy}");
        shares[1].1 = committee.share(OTHER, 0);
        let combined = committee.combine(&shares, policy);
        committee.assert_good(&combined, &[0]);
        let signers: Vec<usize> = combined.certificate.unwrap().signers.iter().collect();
        assert_eq!(signers, [2, 3, 5, 6], "{policy}");
    }
}

#[test]
fn too_few_shares_make_no_certificate() {
    let committee = Committee::new(5, 3);
    for policy in POLICIES {
        for count in 0..3 {
            let combined = committee.combine(&committee.shares(0..count), policy);
            assert_eq!(combined, Combined { certificate: None, bad: vec![] });
        }
        let mut shares = committee.shares(0..3);
        shares[1].1 = committee.share(OTHER, 1);
        let combined = committee.combine(&shares, policy);
        assert_eq!(combined, Combined { certificate: None, bad: vec![1] }, "{policy}");
        shares[1].1 = Share(vec![0; 48]);
        let combined = committee.combine(&shares, policy);
        assert_eq!(combined, Combined { certificate: None, bad: vec![1] }, "{policy}");
    }
}

/// Interpolating fewer shares than the threshold gives another signature, as it must.
#[test]
fn fewer_shares_than_the_threshold_sign_nothing() {
    let committee = Committee::new(5, 3);
    let group = PublicKey::uncompress(&committee.dealing.groups.slow.0).unwrap();
    for signers in subsets(5, 2) {
        let shares = committee.shares(signers.iter().copied());
        let signatures: Vec<Signature> =
            shares.iter().map(|(_, share)| Signature::uncompress(&share.0).unwrap()).collect();
        let bitmap = Bitmap::from_indices(5, signers);
        let sum = points::interpolate(&signatures, &coefficients(&bitmap));
        assert!(!points::equation_holds(MESSAGE, &group, &sum));
    }
}

/// ★ The signature itself is good: what is refused is the claim that so few made it, and at no
/// cost.
#[test]
pub(crate) fn a_certificate_that_names_too_few_is_refused_before_any_pairing() {
    let committee = Committee::new(5, 3);
    let certificate = committee.certificate(0..3);
    for signers in [vec![0], vec![1, 4]] {
        let found = signers.len();
        let renamed =
            Certificate { signers: Bitmap::from_indices(5, signers), ..certificate.clone() };
        let refused = Err(SignatureError::TooFewSigners { threshold: 3, found });
        #[cfg(feature = "count")]
        crate::counts::take();
        assert_eq!(committee.scheme.verify(MESSAGE, &renamed), refused);
        #[cfg(feature = "count")]
        assert_eq!(crate::counts::take(), crate::counts::OpCounts::default(), "nothing is done");
        assert_eq!(committee.scheme.verify_many(&[(MESSAGE, &renamed); 2]), refused);
        assert_eq!(committee.scheme.signers_key(&renamed.signers), None);
    }
    let nobody = Certificate { signers: committee.nobody(), ..certificate };
    assert_eq!(committee.scheme.verify(MESSAGE, &nobody), Err(SignatureError::NoSigners));
}

#[test]
fn a_certificate_for_a_committee_of_another_size_is_refused() {
    let committee = Committee::new(5, 3);
    let certificate = committee.certificate(0..3);
    for found in [4, 6, 8] {
        let signers = Bitmap::from_indices(found, 0..3);
        assert_eq!(committee.scheme.signers_key(&signers), None);
        assert_eq!(
            committee.scheme.verify(MESSAGE, &Certificate { signers, ..certificate.clone() }),
            Err(SignatureError::Committee { members: 5, found })
        );
    }
}

/// A certificate's bitmap is not authenticated, as the module says.
#[test]
fn the_bitmap_is_hearsay() {
    let committee = Committee::new(5, 3);
    let certificate = committee.certificate(0..3);
    let renamed =
        Certificate { signers: Bitmap::from_indices(5, [1, 3, 4]), ..certificate.clone() };
    assert_eq!(committee.scheme.verify(MESSAGE, &renamed), Ok(()));
    assert_eq!(renamed, committee.certificate([1, 3, 4]));
    let group = PublicKey::uncompress(&committee.dealing.groups.slow.0).unwrap();
    assert_eq!(
        committee.scheme.signers_key(&renamed.signers),
        Some(group.serialize().to_vec()),
        "whoever signed"
    );
}

#[test]
pub(crate) fn bad_shares_are_left_out_and_blamed() {
    let committee = Committee::new(6, 3);
    for policy in POLICIES {
        for bad in [vec![0], vec![2], vec![0, 1], vec![0, 1, 2], vec![1, 3]] {
            let mut shares = committee.shares(0..6);
            for signer in &bad {
                shares[*signer].1 = committee.share(OTHER, *signer);
            }
            committee.assert_good(&committee.combine(&shares, policy), &bad);
        }
    }
}

/// Each of these is refused for a reason of its own.
#[test]
fn malformed_shares_are_bad_shares() {
    let committee = Committee::new(5, 3);
    let shifted = add(&committee.share(MESSAGE, 1), &outside_subgroup(48));
    let bytes = [
        (vec![], SignatureError::Length { expected: 48, found: 0 }),
        (vec![0; 49], SignatureError::Length { expected: 48, found: 49 }),
        (
            committee.share(MESSAGE, 1).0[1..].to_vec(),
            SignatureError::Length { expected: 48, found: 47 },
        ),
        (vec![0xff; 48], SignatureError::Encoding),
        (identity(48), SignatureError::Identity),
        (outside_subgroup(48), SignatureError::Subgroup),
        (shifted.0, SignatureError::Subgroup),
        (negate(&committee.share(MESSAGE, 1).0), SignatureError::Mismatch),
        (committee.share(MESSAGE, 2).0, SignatureError::Mismatch),
    ];
    for (bytes, error) in bytes {
        let share = Share(bytes.clone());
        assert_eq!(committee.scheme.verify_share(MESSAGE, 1, &share), Err(error.clone()));
        for policy in POLICIES {
            let mut shares = committee.shares(0..5);
            shares[1].1 = share.clone();
            committee.assert_good(&committee.combine(&shares, policy), &[1]);
        }
        let aggregate = Aggregate(bytes);
        let certificate = Certificate { signers: Bitmap::from_indices(5, 0..3), aggregate };
        assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Err(error));
    }
}

/// Two colluders send `σ₁ + δ` and `σ₂ − δ`. Their sum is right, and what it interpolates to is
/// not.
#[test]
fn colluders_whose_errors_cancel_do_not_poison() {
    let committee = Committee::new(7, 4);
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    for (left, right) in [(0, 1), (0, 3), (1, 2)] {
        let mut shares = committee.shares(0..6);
        shares[left].1 = add(&shares[left].1, &delta);
        shares[right].1 = add(&shares[right].1, &negate(&delta));
        for policy in POLICIES {
            committee.assert_good(&committee.combine(&shares, policy), &[left, right]);
        }
        // Where only one of them is among the first, it is the one that spoils the result.
        let suspects = Bitmap::from_indices(7, [left]);
        let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, Policy::Aggregate);
        committee.assert_good(&combined, &[left, right]);
    }
}

/// Errors in proportion to the coefficients do cancel: the result is the group's signature all the
/// same, which is all that a certificate claims.
#[test]
fn errors_that_cancel_in_the_result_do_no_harm() {
    let committee = Committee::new(5, 2);
    // At zero, members 0 and 1 count 2 and −1: errors of δ and 2δ cancel.
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    let mut shares = committee.shares(0..4);
    shares[0].1 = add(&shares[0].1, &delta);
    shares[1].1 = add(&add(&shares[1].1, &delta), &delta);
    assert!(committee.scheme.verify_share(MESSAGE, 0, &shares[0].1).is_err());
    let combined = committee.combine(&shares, Policy::Aggregate);
    committee.assert_good(&combined, &[]);
    for policy in [Policy::Each, Policy::Batch] {
        committee.assert_good(&committee.combine(&shares, policy), &[0, 1]);
    }
}

#[test]
fn suspects_are_checked_before_they_join() {
    let committee = Committee::new(5, 3);
    for policy in POLICIES {
        let mut shares = committee.shares(0..5);
        shares[4].1 = committee.share(OTHER, 4);
        let suspects = Bitmap::from_indices(5, [1, 4]);
        let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, policy);
        committee.assert_good(&combined, &[4]);
        assert!(combined.certificate.unwrap().signers.contains(1), "a good suspect joins");
    }
}

#[test]
fn a_second_share_of_one_signer_is_dropped_quietly() {
    let committee = Committee::new(4, 3);
    for policy in POLICIES {
        let mut shares = committee.shares([0, 1, 2, 1]);
        shares[3].1 = Share(vec![1, 2, 3]);
        committee.assert_good(&committee.combine(&shares, policy), &[]);
        // Nor does it count as another's: the same member twice is one member.
        let twice = committee.shares([0, 1, 1, 0]);
        assert_eq!(committee.combine(&twice, policy).certificate, None);
    }
}

#[test]
#[should_panic(expected = "a share came attributed to 4, of 4 members")]
fn a_share_of_a_stranger_is_a_bug() {
    let committee = Committee::new(4, 3);
    committee.combine(&[(4, Share(vec![0; 48]))], Policy::Each);
}

#[test]
fn a_share_is_its_signers_on_its_message() {
    let committee = Committee::new(4, 3);
    let share = committee.share(MESSAGE, 2);
    let verify = |message, signer| committee.scheme.verify_share(message, signer, &share);
    assert_eq!(verify(MESSAGE, 2), Ok(()));
    assert_eq!(verify(OTHER, 2), Err(SignatureError::Mismatch));
    assert_eq!(verify(MESSAGE, 1), Err(SignatureError::Mismatch));
    assert_eq!(verify(MESSAGE, 4), Err(SignatureError::Signer { signer: 4, members: 4 }));
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let committee = Committee::new(4, 3);
    let certificate = committee.certificate(0..3);
    for position in 0..48 {
        let mut flipped = certificate.clone();
        flipped.aggregate.0[position] ^= 1 << (position % 8);
        assert!(committee.scheme.verify(MESSAGE, &flipped).is_err(), "byte {position}");
    }
}

#[test]
fn many_certificates_are_checked_at_once() {
    let committee = Committee::new(4, 3);
    let messages: [&[u8]; 3] = [b"timeout 1", b"timeout 2", b"timeout 3"];
    let certificates = messages.map(|message| {
        let shares: Vec<_> = (0..3).map(|one| (one, committee.share(message, one))).collect();
        let nobody = committee.nobody();
        committee.scheme.combine(message, &shares, &nobody, Policy::Aggregate).certificate.unwrap()
    });
    let items: Vec<_> = messages.into_iter().zip(&certificates).collect();
    for some in 0..=items.len() {
        assert_eq!(committee.scheme.verify_many(&items[..some]), Ok(()));
    }
    let swapped = [(messages[0], &certificates[1]), (messages[1], &certificates[0])];
    assert_eq!(committee.scheme.verify_many(&swapped), Err(SignatureError::Mismatch));
    let delta = secret(SchemeKind::Bls, 99).sign(b"delta").0;
    let mut shifted = [certificates[0].clone(), certificates[1].clone()];
    for (certificate, shift) in shifted.iter_mut().zip([delta.clone(), negate(&delta)]) {
        certificate.aggregate = Aggregate(add(&Share(certificate.aggregate.0.clone()), &shift).0);
    }
    let items = [(messages[0], &shifted[0]), (messages[1], &shifted[1])];
    assert_eq!(
        committee.scheme.verify_many(&items),
        Err(SignatureError::Mismatch),
        "errors do not cancel between certificates"
    );
}

/// ★ With one secret for all, the shares that suffice for the lowest threshold would be shares of
/// the highest. Equal thresholds are the harder case: nothing but their names tells the sharings
/// apart.
#[test]
pub(crate) fn a_share_of_one_sharing_is_worth_nothing_in_another() {
    for thresholds in [
        BySharing { fast: 4, slow: 3, execution: 2 },
        BySharing::from_fn(|_| 3),
        BySharing::from_fn(|_| 1),
    ] {
        assert_independent(&thresholds);
    }
}

fn assert_independent(thresholds: &BySharing<usize>) {
    let dealing = deal(4, thresholds, &[7; 32]).unwrap();
    let schemes = threshold_schemes(&keys(&dealing), &dealing.groups, thresholds).unwrap();
    let combine = |of: Sharing, by: Sharing| {
        let share = |signer: usize| (signer, dealing.secrets[signer].sign_with(of, MESSAGE));
        let shares: Vec<_> = (0..*thresholds.get(by)).map(share).collect();
        schemes.get(by).combine(MESSAGE, &shares, &Bitmap::new(4), Policy::Aggregate)
    };
    for (of, by) in Sharing::ALL.iter().flat_map(|of| Sharing::ALL.map(|by| (*of, by))) {
        let combined = combine(of, by);
        assert_eq!(combined.certificate.is_some(), of == by, "{of} shares, {by} scheme");
        assert_eq!(combined.bad.is_empty(), of == by, "{of} shares, {by} scheme");
    }
}

#[test]
pub(crate) fn sharings_of_one_secret_are_refused() {
    let dealing = dealing(4, 3);
    let thresholds = BySharing::from_fn(|_| 3);
    let slow_for_fast = |key: VotingKey| VotingKey([&key.0[96..192], &key.0[96..]].concat());
    let keys: Vec<VotingKey> = keys(&dealing).into_iter().map(slow_for_fast).collect();
    let groups = BySharing { fast: dealing.groups.slow.clone(), ..dealing.groups };
    let loaded = threshold_schemes(&keys, &groups, &thresholds).map(|_| ());
    let (first, second) = (Sharing::Fast, Sharing::Slow);
    assert_eq!(loaded, Err(KeyError::OneSecret { first, second }));
}

#[test]
fn a_committee_is_checked_when_it_is_loaded() {
    let dealing = dealing(4, 3);
    let good = keys(&dealing);
    let load = |keys: &[VotingKey], groups: &BySharing<VotingKey>, slow: usize| {
        let thresholds = BySharing { fast: 3, slow, execution: 3 };
        threshold_schemes(keys, groups, &thresholds).map(|_| ())
    };
    assert_eq!(load(&good, &dealing.groups, 3), Ok(()));
    let in_sharing = |sharing, cause| Err(KeyError::Sharing { sharing, cause: Box::new(cause) });
    let in_member = |member, cause| KeyError::Member { member, cause: Box::new(cause) };

    assert_eq!(load(&[], &dealing.groups, 3), in_sharing(Sharing::Fast, KeyError::NoMembers));
    let length = KeyError::Length { kind: KIND, what: "public key", expected: 288, found: 287 };
    let mut keys = good.clone();
    keys[1].0.pop();
    assert_eq!(load(&keys, &dealing.groups, 3), Err(in_member(1, length)));

    let mut keys = good.clone();
    keys[3].0[192..].copy_from_slice(&identity(96));
    let cause = in_member(3, KeyError::Identity);
    assert_eq!(load(&keys, &dealing.groups, 3), in_sharing(Sharing::Execution, cause));

    let off = KeyError::Polynomial { threshold: 2 };
    assert_eq!(load(&good, &dealing.groups, 2), in_sharing(Sharing::Slow, off));

    let mut keys = good.clone();
    keys[2] = keys[0].clone();
    let twice = KeyError::Duplicate { first: 0, second: 2 };
    assert_eq!(load(&keys, &dealing.groups, 3), in_sharing(Sharing::Fast, twice));

    let mut groups = dealing.groups.clone();
    groups.slow = VotingKey(outside_subgroup(96));
    assert_eq!(load(&good, &groups, 3), in_sharing(Sharing::Slow, KeyError::Subgroup));
    groups.slow = VotingKey(vec![]);
    let length = KeyError::Length { kind: KIND, what: "public share", expected: 96, found: 0 };
    assert_eq!(load(&good, &groups, 3), in_sharing(Sharing::Slow, length));
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let deal = |members, slow| {
        let thresholds = BySharing { fast: 1, slow, execution: 1 };
        deal(members, &thresholds, &[1; 32]).map(|_| ())
    };
    assert_eq!(deal(0, 1), Err(KeyError::NoMembers));
    assert_eq!(deal(65_536, 1), Err(KeyError::TooManyMembers { members: 65_536 }));
    assert_eq!(deal(3, 0), Err(KeyError::Threshold { threshold: 0, members: 3 }));
    assert_eq!(deal(3, 4), Err(KeyError::Threshold { threshold: 4, members: 3 }));
    assert_eq!(deal(3, 3), Ok(()));
}

/// A committee of keys that each member made is not one of shares.
#[test]
fn keys_without_a_dealing_make_no_committee() {
    let secret = VotingSecret::from_seed(KIND, &[1; 32]);
    assert_eq!(secret.prove_possession(), PossessionProof(vec![]));
    let entry = [(secret.public(), secret.prove_possession())];
    let loaded = committee_scheme(KIND, &entry, KeyCache::On).map(|_| ());
    assert_eq!(loaded, Err(KeyError::Dealt { kind: KIND }));
    let one = deal(1, &BySharing::from_fn(|_| 1), &[1; 32]).unwrap();
    assert_eq!(secret.public(), one.secrets[0].public(), "dealt to a committee of one");
}

/// Every size, threshold and seed has polynomials of its own: nothing of one is learnt from
/// another.
#[test]
fn dealings_have_nothing_in_common() {
    let deal = |members, threshold, seed: u8| {
        deal(members, &BySharing::from_fn(|_| threshold), &[seed; 32]).unwrap()
    };
    let mut seen = std::collections::BTreeSet::new();
    for dealing in [deal(4, 3, 1), deal(4, 3, 2), deal(5, 3, 1), deal(4, 2, 1)] {
        for sharing in Sharing::ALL {
            for commitment in dealing.commitments.get(sharing) {
                assert!(seen.insert(commitment.clone()), "{sharing}");
            }
        }
    }
}

/// Pins the derivation of polynomials, the places of members, encodings and their order.
#[test]
fn golden_dealing() {
    let dealing = deal(4, &BySharing { fast: 4, slow: 3, execution: 2 }, &[1; 32]).unwrap();
    let show = |bytes: &[u8]| crate::hash(bytes).to_hex();
    let secret = &dealing.secrets[2];
    assert_eq!(
        [
            &dealing.groups.fast.0[..],
            &dealing.groups.slow.0,
            &dealing.groups.execution.0,
            &secret.to_bytes(),
            &secret.public().0,
            &secret.sign_with(Sharing::Fast, b"m").0,
            &secret.sign(b"m").0,
            &secret.sign_with(Sharing::Execution, b"m").0,
        ]
        .map(show),
        [
            "b6a59bba43a5fee9b79c86b9cca573bce80b5441ab8cab9fed5d819c535b2f0f",
            "fdf43daf22587a750d757b9a9347ab20d22acd4b39005e5202c17122366511e6",
            "e76820d50ae77ce96ffbdf6f4a14d6ee4dc96229d7d3b6e2f54aa1e0bc5cc615",
            "4130abc786a509ed59277c2e05cdb4e65b7b8c2922598f6db2cffb9de41abc74",
            "f505c8a419baf3013ea4d0af800c9a9d70c95481291aa82478cf9312f1ff2928",
            "c6d21177cdb4397b31ae1ce17692cbb43f93fc533a419eae92e34258c97d5626",
            "2cff61e023380bb4a9a011926390851af00f9136d789542ac38b0c71abc421a7",
            "04ad062953bef37ac9c53f722de7b5809d565fff6694bc15abf67c83180eb412"
        ]
    );
}

#[test]
fn signing_without_a_sharing_is_with_the_slow_one() {
    let secret = &dealing(4, 3).secrets[0];
    assert_eq!(secret.sign(MESSAGE), secret.sign_with(Sharing::Slow, MESSAGE));
    let [fast, slow, execution] = Sharing::ALL.map(|one| secret.sign_with(one, MESSAGE));
    assert!(fast != slow && slow != execution && fast != execution);
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls] {
        let secret = VotingSecret::from_seed(kind, &[6; 32]);
        assert_eq!(secret.sign(MESSAGE), secret.sign_with(Sharing::Execution, MESSAGE));
    }
}

#[test]
fn secret_shares_survive_their_encoding() {
    let secret = &dealing(4, 3).secrets[1];
    let bytes = secret.to_bytes();
    assert_eq!((bytes.len(), secret.public().0.len()), (96, 288));
    let read = VotingSecret::from_bytes(KIND, &bytes).unwrap();
    assert_eq!(read.kind(), KIND);
    assert_eq!(read.public(), secret.public());
    let read = |bytes: &[u8]| VotingSecret::from_bytes(KIND, bytes).map(|_| ());
    for found in [0, 32, 95, 97] {
        let error = KeyError::Length { kind: KIND, what: "secret key", expected: 96, found };
        assert_eq!(read(&vec![1; found]), Err(error));
    }
    let mut zero = bytes.to_vec();
    zero[32..64].fill(0);
    assert_eq!(read(&zero), Err(KeyError::Secret));
    let shown = format!("{secret:?} {:?}", dealing(4, 3));
    for part in bytes.chunks(32) {
        assert!(!shown.contains(&hex::encode(&part[..4])), "{shown}");
    }
}

#[test]
fn dealings_and_sharings_tell_what_they_are() {
    let shown = format!("{:?}", dealing(4, 3));
    assert!(shown.starts_with("Dealing(4 members, ") && shown.len() < 200, "{shown}");
    assert_eq!(Sharing::ALL.map(|one| one.to_string()), ["fast", "slow", "execution"]);
}

#[test]
fn the_scheme_tells_its_shape() {
    let scheme = Committee::new(5, 3).scheme;
    assert_eq!((scheme.kind(), scheme.members()), (KIND, 5));
    let bytes = (scheme.share_bytes(), scheme.aggregate_bytes(1), scheme.aggregate_bytes(5));
    assert_eq!(bytes, (48, 48, 48));
    assert_eq!(format!("{scheme:?}"), "ThresholdScheme(3 of 5 members)");
}

/// Against `tests/vectors/scalars.py`. Nobody stands at zero, where the secret is.
#[test]
fn coefficients_are_lagranges() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../tests/vectors/scalars.json")).unwrap();
    let cases = vectors["lagrange"].as_array().unwrap();
    assert!(cases.len() > 5);
    for case in cases {
        let members = case["members"].as_array().unwrap();
        let members: Vec<usize> =
            members.iter().map(|one| one.as_u64().unwrap() as usize).collect();
        let size = members.iter().max().unwrap() + 1;
        let found = coefficients(&Bitmap::from_indices(size, members.iter().copied()));
        let found: Vec<String> =
            found.into_iter().map(|one| hex::encode(one.to_be_bytes())).collect();
        let expected = case["coefficients"].as_array().unwrap();
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found, expected.as_str().unwrap(), "{members:?}");
        }
    }
}

/// A repeated member cannot be told to the interpolation, and would not divide by zero if it could.
#[test]
fn nobody_is_interpolated_twice_or_at_zero() {
    let twice = coefficients(&Bitmap::from_indices(4, [2, 2, 0]));
    let once = coefficients(&Bitmap::from_indices(4, [0, 2]));
    assert!(twice == once && once.len() == 2);
    // Were member 0 at zero, its coefficient would be one and the others' zero.
    assert!(once[0] != Scalar::one() && once[1] != Scalar::ZERO);
    let committee = Committee::new(4, 3);
    let alone = committee.share(MESSAGE, 0);
    assert_ne!(
        alone.0,
        committee.certificate(0..3).aggregate.0,
        "member 0 does not hold the secret"
    );
}

#[test]
fn polynomials_are_evaluated() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../tests/vectors/scalars.json")).unwrap();
    let read = |text: &Value| {
        let mut wide = [0; 64];
        hex::decode_to_slice(text.as_str().unwrap(), &mut wide[32..]).unwrap();
        Scalar::from_wide(&wide)
    };
    for case in vectors["polynomials"].as_array().unwrap() {
        let coefficients: Vec<Scalar> =
            case["coefficients"].as_array().unwrap().iter().map(read).collect();
        for (place, value) in (1..).zip(case["values"].as_array().unwrap()) {
            let found = crate::scalar::evaluate(&coefficients, Scalar::from(place));
            assert_eq!(hex::encode(found.to_be_bytes()), value.as_str().unwrap());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Every policy blames exactly those whose shares are bad, if it has to look, and makes the one
    /// certificate whenever enough are good: of all, or of the first as many as the threshold asks
    /// for.
    #[test]
    fn policies_agree(
        members in 1..9_usize,
        threshold in any::<prop::sample::Index>(),
        sent in any::<u8>(),
        bad in any::<u8>(),
        suspected in any::<u8>(),
    ) {
        let committee = Committee::new(members, threshold.index(members) + 1);
        let chosen = |set: u8| (0..members).filter(move |member| set & (1 << member) != 0);
        let mut shares = committee.shares(chosen(sent));
        for (signer, share) in &mut shares {
            if bad & (1 << *signer) != 0 {
                *share = committee.share(OTHER, *signer);
            }
        }
        let suspects = Bitmap::from_indices(members, chosen(suspected));
        let blamed: Vec<usize> = chosen(sent & bad).collect();
        let good: Vec<usize> = chosen(sent & !bad).collect();
        for policy in POLICIES {
            let combined = committee.scheme.combine(MESSAGE, &shares, &suspects, policy);
            if policy == Policy::Aggregate {
                prop_assert!(combined.bad.iter().all(|signer| blamed.contains(signer)));
                prop_assert!(chosen(sent & bad & suspected).all(|one| combined.bad.contains(&one)));
            } else {
                prop_assert_eq!(&combined.bad, &blamed);
            }
            prop_assert_eq!(combined.certificate.is_some(), good.len() >= committee.threshold);
            if let Some(certificate) = combined.certificate {
                let signers: Vec<usize> = certificate.signers.iter().collect();
                let used = if good.len() == members { members } else { committee.threshold };
                prop_assert_eq!(&signers[..], &good[..used]);
                prop_assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Ok(()));
            }
        }
    }

    /// Whatever bytes come in, nothing panics and no honest member is blamed.
    #[test]
    fn hostile_bytes_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        tagged in any::<bool>(),
    ) {
        let committee = Committee::new(4, 3);
        let mut bytes = bytes;
        if tagged && let Some(first) = bytes.first_mut() {
            *first = 0x80 | (*first & 0x1f);
            bytes.resize(48, 0);
        }
        let mut shares = committee.shares(0..4);
        shares[0].1 = Share(bytes.clone());
        for policy in POLICIES {
            committee.assert_good(&committee.combine(&shares, policy), &[0]);
        }
        let signers = Bitmap::from_indices(4, 0..3);
        let certificate = Certificate { signers, aggregate: Aggregate(bytes) };
        prop_assert!(committee.scheme.verify(MESSAGE, &certificate).is_err());
    }
}

#[cfg(feature = "count")]
mod counted {
    use super::*;
    use crate::counts;

    fn combining(
        committee: &Committee,
        shares: &[(usize, Share)],
        policy: Policy,
    ) -> counts::OpCounts {
        counts::take();
        committee.combine(shares, policy);
        counts::take()
    }

    #[test]
    fn good_shares_are_checked_once_under_aggregate_and_batch() {
        let committee = Committee::new(10, 7);
        for (signers, interpolated, added) in [(9, 7, 0), (10, 0, 9)] {
            let shares = committee.shares(0..signers);
            let each = signers as u64;
            for (policy, checks) in
                [(Policy::Each, each), (Policy::Batch, 1), (Policy::Aggregate, 1)]
            {
                let count = combining(&committee, &shares, policy);
                assert_eq!(count.bls_verify, checks, "{policy}");
                assert_eq!(count.bls_interpolated_points, interpolated, "{policy}");
                assert_eq!(count.bls_share_additions, added, "{policy}");
            }
        }
    }

    /// One check of the result, nine of sums (see the multi-signature's test), one of the new
    /// result.
    #[test]
    fn a_bad_share_is_found_in_logarithmic_checks() {
        let committee = Committee::new(16, 11);
        let mut shares = committee.shares(0..16);
        shares[0].1 = committee.share(OTHER, 0);
        let counts = combining(&committee, &shares, Policy::Aggregate);
        assert_eq!((counts.bls_verify, counts.bls_weighted_points), (11, 0), "sums give it away");
    }

    #[test]
    fn a_certificate_takes_one_pairing_check_and_no_additions() {
        let committee = Committee::new(10, 7);
        let certificate = committee.certificate(0..7);
        counts::take();
        committee.scheme.verify(MESSAGE, &certificate).unwrap();
        let expected = counts::OpCounts {
            bls_verify: 1,
            bls_hash_to_curve: 1,
            bls_points_read: 1,
            bls_subgroup_checks: 1,
            ..counts::OpCounts::default()
        };
        assert_eq!(counts::take(), expected);
    }
}
