use super::{Availability, ProtocolKind, Settings, refuse_unless};
use quorate_types::Weights;

#[test]
fn weights_that_differ_need_a_protocol_that_weighs() {
    let heavy: Weights = "3,1,1,1".parse().expect("weights");
    assert_eq!(ProtocolKind::Jolteon.check_weights(&heavy), Ok(()));
    let refused = refuse_unless(false, "headcount", &heavy).expect_err("refused").to_string();
    assert!(refused.starts_with("headcount counts members, not weights"), "{refused}");
    for same in [Weights::equal(4), "2,2,2,2".parse().expect("weights")] {
        assert_eq!(refuse_unless(false, "headcount", &same), Ok(()));
    }
}

#[test]
fn bodies_inside_proposals_need_no_certificates() {
    let availability = Availability::Certified;
    let certified = Settings { availability, ..Settings::default() };
    assert_eq!(certified.validate(), Ok(()));
    let refused = Settings { inline_bodies: true, ..certified }.validate().expect_err("both");
    assert_eq!(refused.name(), "inline_bodies");
}

#[test]
fn availability_is_written_as_it_is_read() {
    for availability in [Availability::Stored, Availability::Certified] {
        assert_eq!(availability.to_string().parse(), Ok(availability));
    }
    let refused = "sometimes".parse::<Availability>().expect_err("neither");
    assert!(refused.contains("'stored' or 'certified'"), "{refused}");
}
