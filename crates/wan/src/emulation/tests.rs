use super::{Emulation, EmulationError};
use std::time::Duration;

fn parse(text: &str) -> Emulation {
    toml::from_str(text).expect("TOML")
}

#[test]
fn regions_delay_and_bandwidth_become_a_topology() {
    let wan = parse("regions = [\"us-east-1\", \"us-west-1\"]\nbandwidth_mbit = 80\n");
    let topology = wan.topology(4).expect("known regions");
    assert_eq!(topology.regions()[3], "us-west-1");
    assert_eq!(topology.route(0, 1).bytes_per_second(), Some(10_000_000));
    assert_ne!(topology.latency(0, 1).longest(), topology.latency(0, 1).median());
    let still = Emulation { jitter: false, ..wan }.topology(4).expect("known regions");
    assert_eq!(still.latency(0, 1).longest(), still.latency(0, 1).median());

    let uniform = parse("delay_ms = 20").topology(3).expect("in range");
    assert_eq!(uniform.latency(0, 2).median(), Duration::from_millis(20));
    assert_eq!(uniform.route(0, 2).bytes_per_second(), None);
}

#[test]
fn what_cannot_be_is_refused() {
    let refusal = |text| parse(text).topology(4).expect_err(text);
    assert_eq!(refusal("regions = [\"us-east-1\"]\ndelay_ms = 1"), EmulationError::Both);
    let too_long = EmulationError::Range { what: "delay_ms", value: 10_001, max: 10_000 };
    assert_eq!(refusal("delay_ms = 10001"), too_long);
    let unknown = refusal("regions = [\"eu-cental-1\"]").to_string();
    assert!(unknown.contains("near it are eu-central-1"), "{unknown}");
    assert!(
        toml::from_str::<Emulation>("region = \"x\"")
            .is_err_and(|e| e.to_string().contains("unknown field"))
    );
}
