use super::*;
use crate::{Testnet, TestnetPlan};
use quorate_crypto::{IdentitySecret, KeyCache};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::timeout;

/// The first of four validators, which lets in listed clients alone.
fn listed() -> (TempDir, NodeConfig, Committee) {
    let place = tempfile::tempdir().expect("a folder");
    let plan = TestnetPlan { clients: ClientPolicy::Listed, ..TestnetPlan::default() };
    let testnet = Testnet::create(&place.path().join("net"), &plan).expect("written");
    let config = NodeConfig::load(&testnet.configs[0]).expect("sound");
    let committee = crate::config::load_committee(&testnet.committee, KeyCache::On);
    (place, config, committee.expect("a committee"))
}

fn file(config: &NodeConfig) -> &Path {
    config.clients_file.as_deref().expect("a list")
}

fn list(config: &NodeConfig, keys: &[IdentityKey]) {
    let client = |key: &IdentityKey| ListedClient { key: key.to_string(), name: String::new() };
    let content = ClientsFile { clients: keys.iter().map(client).collect() };
    fs::write(file(config), toml::to_string(&content).expect("a table")).expect("written");
}

fn secrets() -> [IdentitySecret; 3] {
    [1, 2, 3].map(|seed| IdentitySecret::from_seed([seed; 32]))
}

#[test]
fn a_list_lets_in_its_clients_and_their_sessions_alone() {
    let (_place, config, committee) = listed();
    let [client, session, stranger] = secrets();
    list(&config, &[client.public()]);
    let door = ClientDoor::of(&config, &committee).expect("a list");
    let (network, id) = (committee.network(), |secret: &IdentitySecret| ClientId(secret.public()));
    assert_eq!(door.admits(id(&client), None), Some(client.public()));
    assert_eq!(door.admits(id(&session), None), None);
    let voucher = Voucher::sign(&client, network, &session.public());
    assert_eq!(door.admits(id(&session), Some(&voucher)), Some(client.public()));
    assert_eq!(door.admits(id(&stranger), Some(&voucher)), None, "another's voucher");
    let own = Voucher::sign(&stranger, network, &session.public());
    assert_eq!(door.admits(id(&session), Some(&own)), None, "a stranger's voucher");
    let foreign = Voucher::sign(&client, NetworkId([9; 32]), &session.public());
    assert_eq!(door.admits(id(&session), Some(&foreign)), None, "of another network");
    assert_eq!(door.admits(id(&client), Some(&foreign)), Some(client.public()), "its own key");
    assert_eq!(ClientDoor::open().admits(id(&stranger), None), Some(stranger.public()));
}

#[test]
fn members_vouch_for_the_gateways_beside_them() {
    let (_place, config, committee) = listed();
    let member = crate::keys::load(&config, &mut |_| None).expect("keys").identity;
    let [session, ..] = secrets();
    let door = ClientDoor::of(&config, &committee).expect("a list");
    let voucher = Voucher::sign(&member, committee.network(), &session.public());
    let by = door.admits(ClientId(session.public()), Some(&voucher));
    assert_eq!(by, Some(member.public()));
}

#[tokio::test]
async fn who_is_struck_off_is_told_and_others_stay() {
    let (_place, config, committee) = listed();
    let [first, second, ..] = secrets();
    list(&config, &[first.public(), second.public()]);
    let door = ClientDoor::of(&config, &committee).expect("a list");
    list(&config, &[second.public()]);
    assert_eq!(door.reload().expect("a list"), 1);
    door.struck_off(first.public()).await;
    let stays = timeout(Duration::from_millis(50), door.struck_off(second.public())).await;
    assert!(stays.is_err(), "it is on the list");
    assert_eq!(door.admits(ClientId(first.public()), None), None);
}

#[test]
fn a_list_that_cannot_be_read_changes_nothing() {
    let (_place, config, committee) = listed();
    let [client, ..] = secrets();
    list(&config, &[client.public()]);
    let door = ClientDoor::of(&config, &committee).expect("a list");
    for (text, reason) in [
        ("[[clients]]\nkey = \"12\"", "'key' is \"12\"; it is an identity key"),
        ("[[client]]\nkey = \"12\"", "unknown field `client`"),
    ] {
        fs::write(file(&config), text).expect("written");
        let error = door.reload().expect_err("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
    fs::remove_file(file(&config)).expect("removed");
    assert!(matches!(door.reload(), Err(ConfigError::Read { .. })));
    assert_eq!(door.admits(ClientId(client.public()), None), Some(client.public()));
}
