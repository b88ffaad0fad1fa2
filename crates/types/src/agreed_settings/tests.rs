use super::AgreedSettings;
use borsh::BorshDeserialize;

/// Every setting at another value than its default.
fn unusual() -> AgreedSettings {
    AgreedSettings {
        service: "evm".into(),
        genesis_digest: Some("0a".into()),
        execution_version: 2,
        clients: "listed".into(),
        protocol: "sbft".into(),
        leader_reputation: false,
        leader_tenure: 5,
        inline_bodies: true,
        availability: "certified".into(),
        execution_certificates: true,
        snapshot_every: 11,
        heartbeat_ms: 700,
        clock_drift_max_ms: 8,
        trusting_period_days: 9,
        proposal_key: "voting".into(),
        truncation: "heights".into(),
    }
}

fn decode(listed: &[(&str, &str)]) -> Result<AgreedSettings, String> {
    let bytes = borsh::to_vec(listed).expect("memory");
    AgreedSettings::try_from_slice(&bytes).map_err(|error| error.to_string())
}

#[test]
fn every_setting_is_encoded_and_read_back() {
    assert_eq!(unusual().departures().len(), unusual().values().len());
    for settings in [unusual(), AgreedSettings::default()] {
        let bytes = borsh::to_vec(&settings).expect("memory");
        assert_eq!(AgreedSettings::try_from_slice(&bytes).expect("its own bytes"), settings);
    }
}

/// What is at its default adds nothing, so that a setting that comes later changes no name.
#[test]
fn the_golden_bytes() {
    assert_eq!(borsh::to_vec(&AgreedSettings::default()).expect("memory"), [0; 4]);
    let tenure = AgreedSettings { leader_tenure: 3, ..AgreedSettings::default() };
    let golden = [&[1, 0, 0, 0, 13, 0, 0, 0][..], b"leader_tenure", &[1, 0, 0, 0], b"3"].concat();
    assert_eq!(borsh::to_vec(&tenure).expect("memory"), golden);
}

#[test]
fn settings_have_one_encoding() {
    let hotstuff = ("protocol", "hotstuff");
    let tenure = ("leader_tenure", "3");
    assert_eq!(decode(&[hotstuff, tenure]).expect("in order").leader_tenure, 3);
    let refused = |listed: &[(&str, &str)]| decode(listed).expect_err("another encoding");
    for listed in [
        &[tenure, hotstuff][..],
        &[tenure, tenure],
        &[("protocol", "jolteon")],
        &[("leader_tenure", "03")],
        &[("genesis_digest", "")],
    ] {
        assert!(refused(listed).contains("'settings' is encoded wrongly"), "{listed:?}");
    }
    assert!(refused(&[("leader_tenure", "three")]).contains("'leader_tenure'"));
    assert!(refused(&[("colour", "green")]).contains("'colour'"));
}

/// Who asks for a setting that there is not hears which there are.
#[test]
fn settings_are_set_by_name_or_refused_with_a_sentence() {
    let mut settings = AgreedSettings::default();
    for (name, value) in unusual().departures() {
        settings.set(name, value).expect("a setting");
    }
    assert_eq!(settings, unusual());
    let mut refused = |name: &str, value: &str| {
        settings.set(name, value.into()).expect_err("nothing to set").to_string()
    };
    let unknown = refused("colour", "green");
    assert!(unknown.starts_with("there is no setting 'colour': members agree on service, "));
    let wrong = refused("leader_tenure", "three");
    assert!(wrong.starts_with("setting 'leader_tenure': 'three' is no value of its type: "));
    assert_eq!(settings, unusual());
}

#[test]
fn settings_that_differ_are_named_with_both_values() {
    let tenure = AgreedSettings { leader_tenure: 3, ..unusual() };
    let differing = ("leader_tenure", "5".to_owned(), "3".to_owned());
    assert_eq!(unusual().differences(&tenure), [differing]);
    assert_eq!(unusual().differences(&unusual()), []);
}
