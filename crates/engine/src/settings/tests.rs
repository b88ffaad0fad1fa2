use super::table::Table;
use super::{Availability, Comparison, FlowControl, Sealing, Settings};
use crate::Truncation;
use quorate_consensus::{Liveness, ProposalKey, ProtocolKind};
use quorate_crypto::{KeyCache, Policy};
use quorate_types::AgreedSettings;

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

/// Every field at another value than its default.
fn unusual_comparison() -> Comparison {
    Comparison {
        block_operations_max: 12,
        block_bodies_max: 31,
        sealing: Sealing::Demand,
        filter_requests: false,
        key_cache: KeyCache::Off,
        proposal_key: ProposalKey::Voting,
        vote_salvage: false,
        truncation: Truncation::Heights,
        signatures: false,
        flow_control: FlowControl::Fixed,
        fetch_grace: false,
    }
}

/// A field that [`Comparison::departures`] forgets, validators would take.
#[test]
fn every_departure_from_a_comparisons_defaults_is_named() {
    let usual = Comparison::default;
    let departing = [
        ("block_operations_max", Comparison { block_operations_max: 1, ..usual() }),
        ("block_bodies_max", Comparison { block_bodies_max: 1, ..usual() }),
        ("sealing", Comparison { sealing: Sealing::Demand, ..usual() }),
        ("filter_requests", Comparison { filter_requests: false, ..usual() }),
        ("key_cache", Comparison { key_cache: KeyCache::Subtract, ..usual() }),
        ("proposal_key", Comparison { proposal_key: ProposalKey::Voting, ..usual() }),
        ("vote_salvage", Comparison { vote_salvage: false, ..usual() }),
        ("truncation", Comparison { truncation: Truncation::Off, ..usual() }),
        ("signatures", Comparison { signatures: false, ..usual() }),
        ("flow_control", Comparison { flow_control: FlowControl::Fixed, ..usual() }),
        ("fetch_grace", Comparison { fetch_grace: false, ..usual() }),
    ];
    assert_eq!(usual().departures(), [""; 0]);
    for (name, comparison) in &departing {
        assert_eq!(comparison.departures(), [*name]);
    }
    assert_eq!(unusual_comparison().departures(), departing.map(|(name, _)| name));
}

/// Both ends of each range, and one step beyond each.
#[test]
fn ranges_are_checked_to_the_end() {
    type Set = fn(&mut Settings, u64);
    let ranges: [(&str, Set, u64, u64); 8] = [
        ("batch_bytes", |s, to| s.batch_bytes = to as usize, 1_024, 3_145_728),
        ("batch_delay_ms", |s, to| s.batch_delay_ms = to, 0, 10_000),
        ("timeout_ms", |s, to| s.timeout_ms = to, 10, 600_000),
        ("vote_wait_ms", |s, to| s.vote_wait_ms = to, 0, 999),
        ("leader_tenure", |s, to| s.leader_tenure = to, 1, 1_000),
        ("concurrent_slots", |s, to| s.concurrent_slots = to, 1, 256),
        ("timeout_growth", |s, to| s.timeout_growth = to as u32, 0, 100),
        ("snapshot_every", |s, to| s.snapshot_every = to, 4, 1_048_576),
    ];
    let least: [(&str, Set, u64); 2] = [
        ("mempool_bytes_max", |s, to| s.mempool_bytes_max = to as usize, 1_000_000),
        ("author_bytes_max", |s, to| s.author_bytes_max = to as usize, 8_388_608),
    ];
    let least = least.map(|(name, set, from)| (name, set, from, u64::from(u32::MAX)));
    for (name, set, from, to) in ranges.into_iter().chain(least) {
        let refused = |value| {
            let mut settings = Settings::default();
            set(&mut settings, value);
            settings.validate().err().map(|refused| refused.name())
        };
        assert_eq!((refused(from), refused(to)), (None, None), "{name}");
        if let Some(less) = from.checked_sub(1) {
            assert_eq!(refused(less), Some(name), "{less}");
        }
        if to < u64::from(u32::MAX) {
            assert_eq!(refused(to + 1), Some(name), "{to} and one");
        }
    }
}

/// Every field at another value than its default.
fn unusual() -> Settings {
    Settings {
        protocol: ProtocolKind::Sbft,
        batch_bytes: 1,
        batch_delay_ms: 2,
        timeout_ms: 3,
        vote_wait_ms: 4,
        verify: Policy::Each,
        leader_reputation: false,
        leader_tenure: 5,
        concurrent_slots: 6,
        shorten_failed_turns: false,
        timeout_growth: 7,
        inline_bodies: true,
        availability: Availability::Certified,
        execution_certificates: true,
        heartbeat_ms: 12,
        clock_drift_max_ms: 8,
        mempool_bytes_max: 9,
        author_bytes_max: 10,
        snapshot_every: 11,
        comparison: unusual_comparison(),
    }
}

#[test]
fn no_field_is_lost_on_the_way_to_a_file_and_back() {
    assert_eq!(Settings::from(Table::from(unusual())), unusual());
}

/// A committee file that says nothing of settings has a replica do what it does by default.
#[test]
fn defaults_of_a_replica_and_of_a_committee_file_are_the_same() {
    assert_eq!(Settings::default().agreed(), AgreedSettings::default());
    let mut settings = Settings::default();
    settings.agree(&AgreedSettings::default()).expect("known words");
    assert_eq!(settings, Settings::default());
}

#[test]
fn what_members_agree_on_is_taken_over_and_the_rest_stays() {
    let mut settings = Settings::default();
    settings.agree(&unusual().agreed()).expect("known words");
    let usual = Settings::default();
    let expected = Settings {
        batch_bytes: usual.batch_bytes,
        batch_delay_ms: usual.batch_delay_ms,
        timeout_ms: usual.timeout_ms,
        vote_wait_ms: usual.vote_wait_ms,
        verify: usual.verify,
        concurrent_slots: usual.concurrent_slots,
        shorten_failed_turns: usual.shorten_failed_turns,
        timeout_growth: usual.timeout_growth,
        mempool_bytes_max: usual.mempool_bytes_max,
        author_bytes_max: usual.author_bytes_max,
        comparison: Comparison {
            proposal_key: ProposalKey::Voting,
            truncation: Truncation::Heights,
            ..usual.comparison
        },
        ..unusual()
    };
    assert_eq!(settings, expected);
}

#[test]
fn an_unknown_word_is_refused_by_its_settings_name_and_changes_nothing() {
    let word = || "paxos".to_owned();
    let usual = AgreedSettings { leader_tenure: 7, ..AgreedSettings::default() };
    let cases = [
        ("protocol", "use 'jolteon' or", AgreedSettings { protocol: word(), ..usual.clone() }),
        ("availability", "'certified'", AgreedSettings { availability: word(), ..usual.clone() }),
        ("proposal_key", "'voting'", AgreedSettings { proposal_key: word(), ..usual.clone() }),
        ("truncation", "'heights'", AgreedSettings { truncation: word(), ..usual }),
    ];
    for (name, allowed, agreed) in cases {
        let mut settings = Settings::default();
        let refused = settings.agree(&agreed).expect_err(name);
        let said = refused.to_string();
        assert!(said.starts_with(&format!("setting '{name}': 'paxos' is no ")), "{said}");
        assert!(refused.name() == name && said.contains(allowed), "{said}");
        assert_eq!(settings, Settings::default());
    }
}

#[test]
fn the_protocol_is_told_the_options_that_keep_it_going() {
    let told = Liveness {
        leader_tenure: 5,
        leader_reputation: false,
        shorten_failed_turns: false,
        timeout_growth: 7,
        vote_salvage: false,
        concurrent_slots: 6,
    };
    assert_eq!(format!("{:?}", unusual().liveness()), format!("{told:?}"));
}
