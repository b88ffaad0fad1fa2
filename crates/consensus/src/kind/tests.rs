use super::{ProtocolKind, UnfitProtocol};
use quorate_crypto::SchemeKind;
use quorate_types::Weights;

#[test]
fn weights_that_differ_need_a_protocol_that_weighs() {
    let heavy: Weights = "3,1,1,1".parse().expect("weights");
    for kind in ProtocolKind::CHAINED {
        assert_eq!(kind.check_weights(&heavy), Ok(()));
    }
    for kind in ProtocolKind::WINDOWED {
        assert_eq!(kind.check_weights(&heavy), Err(UnfitProtocol::Unweighted(kind.name())));
        for same in [Weights::equal(4), "2,2,2,2".parse().expect("weights")] {
            assert_eq!(kind.check_weights(&same), Ok(()));
        }
    }
}

#[test]
fn redundant_members_need_a_fast_path() {
    let redundant = Weights::equal(6).with_redundancy(1).expect("3f + 2c + 1");
    for kind in ProtocolKind::ALL {
        let has_one = matches!(kind, ProtocolKind::LinearPbftFast | ProtocolKind::Sbft);
        let expected = if has_one { Ok(()) } else { Err(UnfitProtocol::NoFastPath(kind.name())) };
        assert_eq!(kind.check_weights(&redundant), expected, "{kind}");
    }
}

#[test]
fn threshold_keys_need_statements_in_one_wording() {
    let weights = Weights::equal(4);
    for kind in ProtocolKind::ALL {
        let votes_with = |scheme| kind.check_committee(&weights, scheme);
        assert_eq!(votes_with(SchemeKind::Bls), Ok(()));
        let chained = ProtocolKind::CHAINED.contains(&kind);
        let expected = if chained { Err(UnfitProtocol::Wordings(kind.name())) } else { Ok(()) };
        assert_eq!(votes_with(SchemeKind::BlsThreshold), expected, "{kind}");
    }
}

#[test]
fn a_protocol_is_written_as_it_is_read() {
    for kind in ProtocolKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let refused = "raft".parse::<ProtocolKind>().expect_err("none of ours");
    assert!(refused.contains("'jolteon' or 'hotstuff' or 'hotstuff-basic'"), "{refused}");
}
