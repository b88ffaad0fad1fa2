use super::*;
use crate::threshold::tests::{KIND, dealing, identity, outside_subgroup};
use crate::{Sharing, VotingKey, VotingSecret, deal};
use proptest::prelude::*;

/// The group's key and the public shares of the slow sharing.
fn published(members: usize, threshold: usize) -> (VotingKey, Vec<VotingKey>) {
    let dealing = dealing(members, threshold);
    let slow = |secret: &VotingSecret| VotingKey(secret.public().0[96..192].to_vec());
    (dealing.groups.slow, dealing.secrets.iter().map(slow).collect())
}

/// Checks a sharing, and drops its points.
pub(crate) fn checked(
    group: &VotingKey,
    publics: &[VotingKey],
    threshold: usize,
) -> Result<(), KeyError> {
    let publics: Vec<&[u8]> = publics.iter().map(|key| &key.0[..]).collect();
    read_sharing(&group.0, &publics, threshold).map(drop)
}

#[test]
fn what_a_dealer_publishes_is_taken() {
    for (members, threshold) in [(1, 1), (2, 1), (2, 2), (4, 1), (4, 3), (4, 4), (16, 11)] {
        let (group, publics) = published(members, threshold);
        assert_eq!(checked(&group, &publics, threshold), Ok(()), "{threshold} of {members}");
    }
}

/// One share off the polynomial would make certificates of good shares that nobody accepts.
#[test]
pub(crate) fn a_share_off_the_polynomial_is_refused() {
    for (members, threshold) in [(4, 3), (4, 1), (7, 6), (7, 7)] {
        let refused = Err(KeyError::Polynomial { threshold });
        for member in 0..members {
            let (group, mut publics) = published(members, threshold);
            publics[member] = published(members + 1, threshold).1[member].clone();
            assert_eq!(checked(&group, &publics, threshold), refused, "member {member}");
        }
        let (_, publics) = published(members, threshold);
        let (other, _) = published(members + 1, threshold);
        assert_eq!(checked(&other, &publics, threshold), refused, "another group's key");
    }
}

#[test]
fn shares_in_another_order_are_refused() {
    let (group, mut publics) = published(4, 3);
    publics.swap(1, 2);
    assert_eq!(checked(&group, &publics, 3), Err(KeyError::Polynomial { threshold: 3 }));
}

/// A polynomial of a higher degree needs more shares than the threshold says.
#[test]
fn a_higher_degree_is_refused() {
    let (group, publics) = published(7, 5);
    for threshold in 2..5 {
        assert_eq!(checked(&group, &publics, threshold), Err(KeyError::Polynomial { threshold }));
    }
    assert_eq!(checked(&group, &publics, 5), Ok(()));
}

#[test]
fn thresholds_and_sizes_are_checked() {
    let (group, publics) = published(4, 3);
    for threshold in [0, 5] {
        assert_eq!(
            checked(&group, &publics, threshold),
            Err(KeyError::Threshold { threshold, members: 4 })
        );
    }
    assert_eq!(checked(&group, &[], 1), Err(KeyError::NoMembers));
    let crowd = vec![group.clone(); 65_536];
    assert_eq!(checked(&group, &crowd, 1), Err(KeyError::TooManyMembers { members: 65_536 }));
}

#[test]
pub(crate) fn every_point_is_checked() {
    let (group, publics) = published(4, 3);
    let long = KeyError::Length { kind: KIND, what: "public share", expected: 96, found: 97 };
    let short = KeyError::Length { kind: KIND, what: "public share", expected: 96, found: 95 };
    for (bytes, expected) in [
        (identity(96), KeyError::Identity),
        (outside_subgroup(96), KeyError::Subgroup),
        (vec![0xff; 96], KeyError::Encoding),
        (vec![0; 97], long),
        (vec![0; 95], short),
    ] {
        let bad = VotingKey(bytes);
        assert_eq!(checked(&bad, &publics, 3), Err(expected.clone()), "as the group's key");
        let mut altered = publics.clone();
        altered[2] = bad;
        let cause = Box::new(expected);
        assert_eq!(
            checked(&group, &altered, 3),
            Err(KeyError::Member { member: 2, cause }),
            "as a member's"
        );
    }
}

#[test]
fn nobody_has_anothers_share_or_the_groups() {
    let (group, mut publics) = published(4, 3);
    publics[3] = publics[1].clone();
    assert_eq!(checked(&group, &publics, 3), Err(KeyError::Duplicate { first: 1, second: 3 }));
    publics[3] = group.clone();
    assert_eq!(checked(&group, &publics, 3), Err(KeyError::GroupSecret { member: 3 }));
    // A constant polynomial passes for one of every higher degree, and each share signs alone.
    let (group, publics) = published(4, 1);
    assert_eq!(checked(&group, &publics, 3), Err(KeyError::GroupSecret { member: 0 }));
}

/// Feldman's commitments, evaluated at a member's place, are its public share.
#[test]
fn commitments_give_every_public_share() {
    let (members, threshold) = (6, 4);
    let dealing = dealing(members, threshold);
    for sharing in Sharing::ALL {
        let commitments = dealing.commitments.get(sharing);
        assert_eq!(commitments.len(), threshold);
        assert_eq!(&commitments[0], dealing.groups.get(sharing));
        let points: Vec<PublicKey> = commitments.iter().map(|one| read(&one.0).unwrap()).collect();
        for (member, secret) in dealing.secrets.iter().enumerate() {
            let place = Scalar::from(member as u64 + 1);
            let powers =
                std::iter::successors(Some(Scalar::one()), |power| Some(power.times(place)));
            // The sum of the commitments, less the public share, is nothing.
            let mut scalars: Vec<u8> =
                powers.take(threshold).flat_map(Scalar::to_le_bytes).collect();
            scalars.extend(Scalar::one().negated_if(true).to_le_bytes());
            let start = sharing as usize * 96;
            let public = read(&secret.public().0[start..start + 96]).unwrap();
            let all: Vec<PublicKey> = points.iter().copied().chain([public]).collect();
            assert!(points::sum_to_nothing(&all, &scalars), "{sharing}, member {member}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn every_dealing_is_consistent_and_no_other_threshold_below_is(
        members in 1..12_usize,
        pick in any::<prop::sample::Index>(),
        seed in any::<[u8; 32]>(),
    ) {
        let threshold = pick.index(members) + 1;
        let thresholds = crate::BySharing::from_fn(|_| threshold);
        let dealing = deal(members, &thresholds, &seed).unwrap();
        let publics: Vec<_> =
            dealing.secrets.iter().map(|one| VotingKey(one.public().0[..96].to_vec())).collect();
        let check = |threshold| checked(&dealing.groups.fast, &publics, threshold);
        prop_assert_eq!(check(threshold), Ok(()));
        if threshold > 1 {
            let lower = threshold - 1;
            prop_assert_eq!(check(lower), Err(KeyError::Polynomial { threshold: lower }));
        }
    }
}
