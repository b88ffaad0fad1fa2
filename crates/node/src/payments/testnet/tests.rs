//! A network's files with a committee behind it.

use super::*;
use crate::NodeConfig;

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
