use super::{ProtocolKind, refuse_unless};
use quorate_types::Weights;

#[test]
fn weights_that_differ_need_a_protocol_that_weighs() {
    let heavy: Weights = "3,1,1,1".parse().expect("weights");
    for kind in ProtocolKind::ALL {
        assert_eq!(kind.check_weights(&heavy), Ok(()));
    }
    let refused = refuse_unless(false, "headcount", &heavy).expect_err("refused").to_string();
    assert!(refused.starts_with("headcount counts members, not weights"), "{refused}");
    for same in [Weights::equal(4), "2,2,2,2".parse().expect("weights")] {
        assert_eq!(refuse_unless(false, "headcount", &same), Ok(()));
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
