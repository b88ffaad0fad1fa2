//! A network's files with a committee behind it.

use super::*;
use crate::NodeConfig;
use crate::payments::AuthorityConfigError;

/// Members agree on who is paid and who votes, not on where authorities are.
#[test]
fn the_committee_agrees_on_the_network_and_not_on_its_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let plan = PayTestnetPlan { committee: Some(Settings::default()), ..PayTestnetPlan::default() };
    let testnet = PayTestnet::create(&folder.path().join("net"), &plan).unwrap();
    let committee = testnet.committee.expect("planned");
    assert_eq!(committee.committee, testnet.directory.join(ReleaseCommittee::FILE));
    for (index, path) in committee.configs.iter().enumerate() {
        let beside = format!("authority-{index}/validator/config.toml");
        assert_eq!(*path, testnet.directory.join(beside));
        let config = NodeConfig::load(path).unwrap();
        let genesis = config.genesis.as_ref().expect("the network's file");
        let text = std::fs::read_to_string(genesis).unwrap();
        config.check_genesis(&text).unwrap();
        config.check_genesis(&text.replace("127.0.0.1:7400", "10.0.0.1:7400")).unwrap();
        let other = text.replace("shards = 1", "shards = 2");
        assert!(config.check_genesis(&other).is_err(), "it is no such network");
        assert!(config.check_genesis(&text.replace("testnet", "another")).is_err());
    }
    let authority = AuthorityConfig::load(&testnet.configs[0][0]).unwrap();
    let named = authority.committee.expect("named").canonicalize().unwrap();
    assert_eq!(named, committee.committee.canonicalize().unwrap());
}

/// An authority follows no committee that releases another network's coins, or none.
#[test]
fn another_committee_is_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let create = |name: &str| {
        let committee = Some(Settings::default());
        let plan = PayTestnetPlan { committee, ..PayTestnetPlan::default() };
        PayTestnet::create(&folder.path().join(name), &plan).unwrap()
    };
    let (own, other) = (create("own"), create("other"));
    let network = read_network(&own.network).unwrap();
    let committee = own.committee.expect("planned").committee;
    let links = ReleaseCommittee::check(&committee, &network).unwrap();
    assert_eq!(links, 2 * 4, "f + 1 sessions, four members");
    let foreign = other.committee.expect("planned").committee;
    let refused = ReleaseCommittee::check(&foreign, &network).unwrap_err();
    assert!(matches!(refused, AuthorityConfigError::OtherCommittee { .. }), "{refused}");
    let text = std::fs::read_to_string(&committee).unwrap();
    write(&committee, &text.replace("service = \"payments\"", "service = \"kv\"")).unwrap();
    let refused = ReleaseCommittee::check(&committee, &network).unwrap_err();
    assert!(matches!(refused, AuthorityConfigError::OtherCommittee { .. }), "{refused}");
}

/// Ports of authorities and validators follow one another; a plan that has no room says so.
#[test]
fn a_committee_takes_two_more_ports_for_each_authority() {
    let plan = PayTestnetPlan { shards: 2, base_port: 65_512, ..PayTestnetPlan::default() };
    plan.check().expect("16 ports and no committee");
    let plan = PayTestnetPlan { committee: Some(Settings::default()), ..plan };
    plan.check().expect("24 ports");
    let validators = plan.validators(String::new()).expect("planned");
    assert_eq!(validators.base_port, 65_528);
    let plan = PayTestnetPlan { base_port: 65_513, ..plan };
    let refused = plan.check();
    assert!(
        matches!(refused, Err(TestnetError::Ports { last: 65_536, highest: 65_512, .. })),
        "{refused:?}"
    );
}
