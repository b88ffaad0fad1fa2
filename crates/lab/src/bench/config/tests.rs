use super::{At, BenchConfig, Shape};
use crate::load::{LoadConfig, SendTo};
use quorate_crypto::SchemeKind;
use quorate_engine::Settings;
use quorate_storage::Durability;

pub(in crate::bench) fn config() -> BenchConfig {
    BenchConfig {
        validators: 4,
        redundancy: 0,
        weights: None,
        scheme: SchemeKind::Ed25519,
        members: None,
        load: LoadConfig {
            shape: Shape::Fixed,
            rate: 20_000,
            outstanding: 64,
            send_to: SendTo::One,
            tx_bytes: 512,
            keys: 1_000,
            duration_s: 20,
            warmup_s: 2,
            drain_s: 10,
            sessions: None,
            bundle_delay_ms: 5,
            retry_after_ms: 2_000,
            seed: 1,
        },
        mix: crate::load::MixPlan::default(),
        settle_s: 0,
        fill: false,
        time_restart: false,
        reads: 0,
        trace: None,
        kills: Vec::new(),
        restarts: Vec::new(),
        pauses: Vec::new(),
        lies: Vec::new(),
        crowds: Vec::new(),
        descriptors: None,
        cuts: Vec::new(),
        changes: Vec::new(),
        durability: Durability::Fsync,
        retention_bytes: 64 << 20,
        archive: quorate_node::Archive::default(),
        service: "log".parse().expect("a service"),
        settings: Settings::default(),
        emulation: None,
        bounds: false,
        directory: None,
        executable: "quorate".into(),
    }
}

fn at(text: &str) -> At {
    text.parse().expect("I@T")
}

#[test]
fn the_defaults_are_valid() {
    assert_eq!(config().validate(), Ok(()));
}

#[test]
fn what_a_committee_cannot_do_is_refused() {
    let refusal = |config: BenchConfig| config.validate().err().unwrap_or_default();
    let kv = "kv".parse().expect("a service");
    assert_eq!(refusal(BenchConfig { fill: true, service: kv, ..config() }), "");
    let said = refusal(BenchConfig { fill: true, ..config() });
    assert_eq!(said, "--fill is for --service kv: other services have no keys to put");
    assert_eq!(refusal(BenchConfig { time_restart: true, ..config() }), "");
    let said = refusal(BenchConfig { time_restart: true, validators: 3, ..config() });
    assert_eq!(said, "--time-restart is for four validators or more, all of whom run");
}

#[test]
fn liars_and_the_dead_are_no_more_than_a_committee_bears() {
    let refusal = |lies: &[&str], kills: &[&str]| {
        let mut config = config();
        config.lies = lies.iter().map(|text| text.parse().expect("I=BEHAVIOUR@T")).collect();
        config.kills = kills.iter().map(|text| at(text)).collect();
        config.validate().err().unwrap_or_default()
    };
    assert_eq!(refusal(&["3=silent@1"], &[]), "");
    assert_eq!(refusal(&["3=silent@1"], &["3@5"]), "");
    assert!(refusal(&["3=silent@1"], &["2@5"]).contains("2 of 4 validators dead or lying"));
    assert!(refusal(&["4=silent@1"], &[]).contains("there are only validators 0 to 3"));
}

#[test]
fn weights_are_as_many_as_validators_and_kills_are_weighed() {
    let refusal = |weights: &str, kills: &[&str]| {
        let mut config = config();
        config.weights = Some(weights.parse().expect("weights"));
        config.kills = kills.iter().map(|text| at(text)).collect();
        config.validate().err().unwrap_or_default()
    };
    assert!(refusal("3,1,1", &[]).contains("--weights names 3 weights for 4 validators"));
    assert_eq!(refusal("3,1,1,1", &["1@5"]), "");
    let said = refusal("3,1,1,1", &["0@5"]);
    assert!(said.contains("leaves 3 of 6 units of weight dead"), "{said}");
    assert!(said.contains("a committee of 6 bears 1"), "{said}");
    assert_eq!(refusal("4,4,1,1", &["2@5", "3@5"]), "", "2 of 10, in two heads");
}

#[test]
fn a_committee_must_survive_its_events() {
    let refusal = |kills: &[&str], restarts: &[&str]| {
        let mut config = config();
        config.kills = kills.iter().map(|text| at(text)).collect();
        config.restarts = restarts.iter().map(|text| at(text)).collect();
        config.validate().err().unwrap_or_default()
    };
    assert_eq!(refusal(&["0@5"], &[]), "");
    assert_eq!(refusal(&["0@5", "1@6"], &["0@8"]), "");
    assert!(refusal(&["0@5", "1@6"], &[]).contains("leaves 2 of 4 validators dead"));
    assert!(refusal(&["4@5"], &[]).contains("only validators 0 to 3"));
    assert!(refusal(&["0@21"], &[]).contains("the load ends after 20 seconds"));
    assert!(refusal(&["0@5"], &["0@4"]).contains("no --kill of that validator comes before"));
}

#[test]
fn pauses_end_before_the_load_does() {
    let refusal = |pause: &str| {
        let pauses = vec![pause.parse().expect("I@T+D")];
        BenchConfig { pauses, ..config() }.validate().err().unwrap_or_default()
    };
    assert_eq!(refusal("1@5+3"), "");
    assert_eq!(refusal("leader@5+15"), "");
    assert!(refusal("1@5+16").contains("--pause 1@5+16: the load ends after 20 seconds"));
    assert!(refusal("4@5+1").contains("only validators 0 to 3"));
}

#[test]
fn a_role_counts_as_one_validator() {
    let dead = |kills: &[&str], restarts: &[&str]| {
        let list = |texts: &[&str]| texts.iter().map(|text| at(text)).collect();
        BenchConfig { kills: list(kills), restarts: list(restarts), ..config() }.dead_at_the_end()
    };
    assert_eq!(dead(&["leader@1"], &[]).len(), 1);
    assert_eq!(dead(&["leader@1", "0@2"], &[]).len(), 2);
    assert_eq!(dead(&["leader@1", "0@2", "leader@3"], &["leader@2"]).len(), 2);
    assert_eq!(dead(&["leader@1"], &["leader@2"]).len(), 0);
}

#[test]
fn sessions_grow_with_the_rate() {
    let count = |rate| LoadConfig { rate, ..config().load }.session_count();
    assert_eq!((count(100), count(20_000), count(100_000)), (4, 4, 5));
}

#[test]
fn a_bad_setting_names_itself() {
    let mut config = config();
    config.settings.timeout_ms = 1;
    let refused = config.validate().expect_err("too short");
    assert!(refused.contains("timeout_ms"), "{refused}");
}
