use super::*;
use crate::threshold::consistency::tests::checked;
use crate::{Bitmap, Policy, threshold_schemes};
use proptest::prelude::*;

const THRESHOLDS: BySharing<usize> = BySharing { fast: 4, slow: 3, execution: 2 };
const CONTEXT: &[u8] = b"generation 1, dealer 0";

fn contribution(seed: u8) -> Contribution {
    contribute(4, &THRESHOLDS, &[seed; 32], CONTEXT).expect("four members")
}

fn read(contribution: &Contribution) -> Result<Commitments, KeyError> {
    Commitments::read(&contribution.commitments, &contribution.possession, &THRESHOLDS, CONTEXT)
}

fn refusal(contribution: &Contribution) -> KeyError {
    match read(contribution).expect_err("refused") {
        KeyError::Sharing { sharing: Sharing::Slow, cause } => *cause,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_share_is_what_its_dealer_committed_to() {
    let (one, other) = (contribution(1), contribution(2));
    let commitments = read(&one).expect("sound");
    for member in 0..4 {
        assert!(commitments.holds(member, &one.shares[member]));
        assert!(!commitments.holds(member, &other.shares[member]));
        assert!(!commitments.holds(member, &one.shares[(member + 1) % 4]));
    }
}

#[test]
fn contributions_show_no_secrets() {
    let contribution = contribution(1);
    let shown = format!("{contribution:?}");
    assert!(shown.starts_with("Contribution(4 members, "), "{shown}");
    let commitments = format!("{:?}", read(&contribution).expect("sound"));
    assert!(commitments.starts_with("Commitments("), "{commitments}");
    for share in &contribution.shares {
        assert!(!shown.contains(&hex::encode(&share.to_bytes()[..4])), "{shown}");
    }
}

#[test]
fn commitments_of_another_degree_are_refused() {
    let changes: [fn(&mut Vec<VotingKey>); 2] =
        [|keys| drop(keys.pop()), |keys| keys.push(keys[0].clone())];
    for change in changes {
        let mut spoilt = contribution(1);
        change(&mut spoilt.commitments.slow);
        let found = spoilt.commitments.slow.len();
        assert_eq!(refusal(&spoilt), KeyError::Coefficients { expected: 3, found });
    }
}

#[test]
fn commitments_that_are_no_points_of_the_group_are_refused() {
    let mut identity = vec![0; KEY_BYTES];
    identity[0] = 0xc0;
    for (bytes, error) in
        [(vec![0xff; KEY_BYTES], KeyError::Encoding), (identity, KeyError::Identity)]
    {
        for at in 0..3 {
            let mut spoilt = contribution(1);
            spoilt.commitments.slow[at] = VotingKey(bytes.clone());
            assert_eq!(refusal(&spoilt), error, "coefficient {at}");
        }
    }
}

fn check_possession() {
    let honest = contribution(1);
    assert!(read(&honest).is_ok());
    let elsewhere = |commitments, possession, context| {
        Commitments::read(commitments, possession, &THRESHOLDS, context).map(|_| ())
    };
    let copied = elsewhere(&honest.commitments, &honest.possession, b"generation 1, dealer 1");
    assert!(copied.is_err(), "a proof is its dealer's");
    let mut swapped = honest.clone();
    swapped.commitments.slow.clone_from(&honest.commitments.fast);
    swapped.commitments.slow.truncate(3);
    swapped.possession.slow = honest.possession.fast.clone();
    assert_eq!(refusal(&swapped), KeyError::Possession, "a proof is its sharing's");
}

#[test]
fn a_proof_of_possession_is_its_dealers_and_its_sharings() {
    check_possession();
}

#[test]
fn leaving_rules_out_is_noticed() {
    use crate::mutants::assert_noticed;
    assert_noticed(Mutant::DkgNoPossession, check_possession);
    assert_noticed(Mutant::DkgNoShareCheck, a_share_is_what_its_dealer_committed_to);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// The sum of the dealers' parts is what one dealer could have dealt: the committee's loader
    /// takes it, and as many members as each threshold sign for the group.
    #[test]
    fn any_threshold_of_members_sign_with_the_sum(
        members in 1_usize..=7,
        dealers in 1_usize..=4,
        seed: [u8; 32],
        skipped in 0_usize..7,
    ) {
        let weak = members.div_ceil(3);
        let thresholds =
            BySharing { fast: members, slow: members - weak + 1, execution: weak };
        let parts: Vec<_> = (0..dealers).map(|dealer| {
            let mut seed = seed;
            seed[0] = u8::try_from(dealer).expect("few");
            contribute(members, &thresholds, &seed, CONTEXT).expect("sizes that go together")
        }).collect();
        let read = parts.iter().map(|part| {
            Commitments::read(&part.commitments, &part.possession, &thresholds, CONTEXT)
        });
        let read: Vec<Commitments> = read.collect::<Result<_, _>>().expect("sound");
        let sum = Commitments::sum(&read.iter().collect::<Vec<_>>());
        let secrets: Vec<VotingSecret> = (0..members).map(|member| {
            let given: Vec<_> = parts.iter().map(|part| part.shares[member].clone()).collect();
            add_shares(&given).expect("a sum that is not zero")
        }).collect();
        let publics: Vec<VotingKey> = (0..members).map(|member| sum.public(member)).collect();
        for (secret, public) in secrets.iter().zip(&publics) {
            prop_assert_eq!(&secret.public(), public);
        }
        let groups = sum.groups();
        for sharing in Sharing::ALL {
            let at = sharing as usize * KEY_BYTES;
            let shares: Vec<_> =
                publics.iter().map(|key| VotingKey(key.0[at..at + KEY_BYTES].to_vec())).collect();
            let threshold = *thresholds.get(sharing);
            prop_assert_eq!(checked(groups.get(sharing), &shares, threshold), Ok(()));
        }
        let schemes = threshold_schemes(&publics, &groups, &thresholds).expect("one polynomial");
        for sharing in Sharing::ALL {
            let signers = (0..members).map(|at| (at + skipped) % members);
            let mut signers: Vec<_> = signers.take(*thresholds.get(sharing)).collect();
            signers.sort_unstable();
            let shares: Vec<_> = signers
                .iter()
                .map(|member| (*member, secrets[*member].sign_with(sharing, b"it")))
                .collect();
            let nobody = Bitmap::new(members);
            let scheme = schemes.get(sharing);
            let made = scheme.combine(b"it", &shares, &nobody, Policy::Aggregate).certificate;
            prop_assert_eq!(scheme.verify(b"it", &made.expect("enough")), Ok(()));
        }
    }
}
