use super::{Weights, WeightsError, WeightsWarning};
use quorate_crypto::Bitmap;

fn weights(each: &[u64]) -> Weights {
    Weights::new(each.to_vec()).expect("sound weights")
}

#[test]
fn thresholds_by_weight() {
    let expected: [(&[u64], u64, u64, u64); 12] = [
        // weights, tolerated, quorum, weak
        (&[1], 0, 1, 1),
        (&[1, 1], 0, 2, 1),
        (&[2, 1], 0, 3, 1),
        (&[1, 1, 2], 1, 3, 2),
        (&[1, 1, 1, 1], 1, 3, 2),
        (&[3, 1, 1, 1], 1, 5, 2),
        (&[4, 3, 2, 1], 3, 7, 4),
        (&[1, 1, 1, 1, 1], 1, 4, 2),
        (&[2, 1, 1, 1, 1], 1, 5, 2),
        (&[4, 4, 4, 4, 1, 1, 1], 6, 13, 7),
        (&[40, 30, 20, 10], 33, 67, 34),
        (&[1, 65_535 / 3, 65_535 / 3, 65_535 / 3], 21_845, 43_691, 21_846),
    ];
    for (each, faulty_max, quorum, weak) in expected {
        let w = weights(each);
        assert_eq!((w.faulty_max(), w.quorum(), w.weak()), (faulty_max, quorum, weak), "{each:?}");
        assert_eq!((w.total(), w.members()), (each.iter().sum(), each.len()));
    }
}

/// ADR 7: equal weights follow the rule by heads, whatever the weight is, and it names the same
/// sets as the rule by weight unless 3 divides the members; there it asks for one member less.
#[test]
fn the_rules_by_heads_and_by_weight_agree_unless_three_divides_the_members() {
    for members in 1..=209_u64 {
        let heads = Weights::equal(members as usize);
        let by_weight = 2 * members / 3 + 1;
        let more = u64::from(members.is_multiple_of(3));
        assert_eq!(heads.quorum() + more, by_weight, "n = {members}");
        assert_eq!(heads.faulty_max(), (members - 1) / 3);
        for weight in [2, 7] {
            let heavy = weights(&vec![weight; members as usize]);
            let enough = |count| count * weight >= heavy.quorum();
            assert!(enough(heads.quorum()) && !enough(heads.quorum() - 1), "n = {members}");
            let honest = |count| count * weight >= heavy.weak();
            assert!(honest(heads.weak()) && !honest(heads.weak() - 1), "n = {members}");
        }
    }
}

/// Every vector of these weights for up to five members.
fn vectors() -> Vec<Vec<u64>> {
    let mut all: Vec<Vec<u64>> = Vec::new();
    let mut last = vec![Vec::new()];
    for _ in 0..5 {
        let longer =
            |each: &Vec<u64>| [1, 2, 3, 5, 9].map(|weight| [each.clone(), vec![weight]].concat());
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// Three assumptions of the protocols, over every set of members of every committee: the honest are
/// a quorum, two quorums share more than the faulty, and a weak set has an honest member in it.
#[test]
fn quorums_intersect_in_more_than_the_faulty_and_weak_sets_include_an_honest_member() {
    let mut sound = 0;
    for each in vectors() {
        let Ok(w) = Weights::new(each.clone()) else { continue };
        sound += 1;
        let sets = 1_usize << each.len();
        let members = |set: usize| (0..each.len()).filter(move |i| set >> i & 1 == 1);
        let weight = |set: usize| w.of_all(&Bitmap::from_indices(each.len(), members(set)));
        let quorums: Vec<usize> = (0..sets).filter(|set| weight(*set) >= w.quorum()).collect();
        for a in &quorums {
            for b in &quorums {
                assert!(weight(a & b) > w.faulty_max(), "{each:?}: {a:b} and {b:b}");
            }
        }
        for faulty in (0..sets).filter(|set| weight(*set) <= w.faulty_max()) {
            let honest = sets - 1 - faulty;
            assert!(weight(honest) >= w.quorum(), "{each:?}: {honest:b} are honest");
            for weak in (0..sets).filter(|set| weight(*set) >= w.weak()) {
                assert!(weak & honest != 0, "{each:?}: {weak:b} with {faulty:b} faulty");
            }
        }
    }
    assert!(sound > 3_000, "{sound}");
}

#[test]
fn weights_that_make_no_committee_are_refused_with_a_reason() {
    let cases: [(&[u64], &str); 6] = [
        (&[], "a committee has at least one member"),
        (&[1, 0, 1], "member 1 has weight 0: give it 1 or more, or leave it out of the committee"),
        (&[65_536, 1], "the weights add up to 65537, which is more than 65536: "),
        (&[u64::MAX, u64::MAX], "the weights add up to 36893488147419103230, "),
        (&[1, 7, 1, 1], "member 1 has 7 of the committee's weight of 10, a quorum by itself: "),
        (&[5, 1], "member 0 has 5 of the committee's weight of 6, a quorum by itself: "),
    ];
    for (each, reason) in cases {
        let found = Weights::new(each.to_vec()).expect_err(reason).to_string();
        assert!(found.starts_with(reason), "'{found}' is not '{reason}'");
    }
}

/// The largest weight that the refusal names is accepted, and one more is not.
#[test]
fn the_refusal_of_a_quorum_in_one_hand_names_the_most_that_is_taken() {
    for others in [vec![1], vec![1, 1, 1], vec![4, 9, 2]] {
        let with = |weight| Weights::new([vec![weight], others.clone()].concat());
        let Err(WeightsError::Dictator { most, .. }) = with(1_000) else {
            panic!("1000 beside {others:?} is a quorum")
        };
        assert!(with(most).is_ok() && with(most + 1).is_err(), "{most} beside {others:?}");
    }
}

#[test]
fn who_outweighs_what_may_fail_is_named() {
    let tells = |each: &[u64]| weights(each).warning();
    assert_eq!(tells(&[1, 1, 1, 1]), None);
    assert_eq!(tells(&[2, 2, 2, 1]), None);
    assert_eq!(tells(&[1, 1, 1]), Some(WeightsWarning::ToleratesNobody));
    let heavy = tells(&[3, 1, 1, 1]).expect("told");
    assert_eq!(heavy, WeightsWarning::Indispensable { members: vec![0], faulty_max: 1 });
    assert_eq!(
        heavy.to_string(),
        "no quorum without member 0, which weighs more than what may fail (1)"
    );
    let two = tells(&[3, 3, 1, 1, 1]).expect("told").to_string();
    assert_eq!(
        two,
        "no quorum without any one of members 0, 1, which weigh more than what may fail (2)"
    );
    // And it is so: without a member that is named there is no quorum, without any other there is.
    for each in vectors() {
        let Ok(w) = Weights::new(each) else { continue };
        let Some(WeightsWarning::Indispensable { members, .. }) = w.warning() else { continue };
        for member in 0..w.members() {
            let rest = w.total() - w.of(member);
            assert_eq!(rest < w.quorum(), members.contains(&member), "{w}: {member}");
        }
    }
}

#[test]
fn weights_are_written_as_they_are_read() {
    let w: Weights = "3, 1,1,1".parse().expect("weights");
    assert_eq!((w.each(), w.to_string()), ([3, 1, 1, 1].as_slice(), "3,1,1,1".to_owned()));
    for (text, reason) in [
        ("3,,1", "'' is no weight"),
        ("3,x", "'x' is no weight"),
        ("-1", "'-1' is no weight"),
        ("9,1,1", "member 0 has 9 of"),
    ] {
        let found = text.parse::<Weights>().expect_err(reason);
        assert!(found.starts_with(reason), "'{found}' is not '{reason}'");
    }
}
