use super::{Availability, Comparison, FlowControl, Settings};
use crate::Truncation;
use quorate_consensus::ProposalKey;
use quorate_crypto::KeyCache;

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

/// A field that [`Comparison::departures`] forgets, validators would take.
#[test]
fn every_departure_from_a_comparisons_defaults_is_named() {
    let usual = Comparison::default;
    let departing = [
        ("block_operations_max", Comparison { block_operations_max: 1, ..usual() }),
        ("filter_requests", Comparison { filter_requests: false, ..usual() }),
        ("key_cache", Comparison { key_cache: KeyCache::Subtract, ..usual() }),
        ("proposal_key", Comparison { proposal_key: ProposalKey::Voting, ..usual() }),
        ("vote_salvage", Comparison { vote_salvage: false, ..usual() }),
        ("truncation", Comparison { truncation: Truncation::Off, ..usual() }),
        ("signatures", Comparison { signatures: false, ..usual() }),
        ("flow_control", Comparison { flow_control: FlowControl::Fixed, ..usual() }),
    ];
    assert_eq!(usual().departures(), [""; 0]);
    for (name, comparison) in &departing {
        assert_eq!(comparison.departures(), [*name]);
    }
    let all = Comparison {
        block_operations_max: 1,
        filter_requests: false,
        key_cache: KeyCache::Off,
        proposal_key: ProposalKey::Voting,
        vote_salvage: false,
        truncation: Truncation::Heights,
        signatures: false,
        flow_control: FlowControl::Fixed,
    };
    assert_eq!(all.departures(), departing.map(|(name, _)| name));
}
