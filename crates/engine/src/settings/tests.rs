use super::{Availability, Settings};

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
