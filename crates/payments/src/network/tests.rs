use super::*;
use crate::testing::{ALICE, MALLORY, TestNetwork, file, key};

fn refused(change: impl FnOnce(&mut NetworkFile)) -> NetworkError {
    let (mut file, _) = file(PayScheme::Plain, 4, 2);
    change(&mut file);
    Network::load(&file).expect_err("refused")
}

#[test]
fn a_file_is_read_as_it_is_written() {
    for scheme in PayScheme::ALL {
        let (file, _) = file(scheme, 4, 2);
        let text = toml::to_string(&file).expect("written");
        let read: NetworkFile = toml::from_str(&text).expect("read");
        assert_eq!(read, file);
        let (first, second) = (Network::load(&file), Network::load(&read));
        let (first, second) = (first.expect("sound"), second.expect("sound"));
        assert_eq!(first.id(), second.id());
        assert_eq!((second.name(), second.shards()), ("test", 2));
    }
}

#[test]
fn unknown_fields_are_refused() {
    let (file, _) = file(PayScheme::Plain, 4, 1);
    let text = toml::to_string(&file).expect("written").replace("shards = 1", "shard = 1");
    let error = toml::from_str::<NetworkFile>(&text).expect_err("no such field");
    assert!(error.to_string().contains("unknown field `shard`"), "{error}");
}

#[test]
fn an_authority_has_1_to_1024_shards_and_an_address_for_each() {
    assert_eq!(refused(|file| file.shards = 0), NetworkError::Shards(0));
    assert_eq!(refused(|file| file.shards = 1_025), NetworkError::Shards(1_025));
    let (most, _) = file(PayScheme::Plain, 4, Network::SHARDS_MAX);
    assert_eq!(Network::load(&most).expect("as many as may be").shards(), 1_024);
    let expected = NetworkError::Addresses { authority: 2, found: 1, shards: 2 };
    assert_eq!(refused(|file| drop(file.authorities[2].addresses.pop())), expected);
}

#[test]
fn keys_are_64_hexadecimal_digits_that_one_holder_signs_under() {
    let issuer = NetworkError::Key { what: "the issuer".into() };
    assert_eq!(refused(|file| file.issuer = "bank".into()), issuer);
    let of_small_order = format!("01{}", "00".repeat(31));
    assert_eq!(refused(|file| file.issuer.clone_from(&of_small_order)), issuer, "all would issue");
    let owner = NetworkError::Key { what: "a genesis owner".into() };
    assert_eq!(refused(|file| file.genesis[1].owner.truncate(63)), owner);
}

#[test]
fn genesis_outputs_are_worth_something_and_fit_64_bits() {
    assert_eq!(refused(|file| file.genesis[1].value = 0), NetworkError::Genesis);
    assert_eq!(refused(|file| file.genesis[1].value = u64::MAX), NetworkError::Genesis);
    let many = |file: &mut NetworkFile| file.genesis = vec![file.genesis[0].clone(); 65_537];
    assert_eq!(refused(many), NetworkError::Genesis);
}

#[test]
fn authorities_are_a_committee() {
    let error = refused(|file| file.authorities.clear());
    assert_eq!(error, NetworkError::Committee(CommitteeError::Size(0)));
    let error = refused(|file| file.scheme = PayScheme::Bls);
    assert!(matches!(error, NetworkError::Committee(_)), "{error}");
}

/// Under equal weights every size has them.
#[test]
fn two_quorums_share_an_honest_authority() {
    for authorities in 1..=16 {
        let testnet = TestNetwork::with(PayScheme::Plain, authorities, 1);
        let committee = testnet.network.committee();
        let n = u64::from(authorities);
        assert!(2 * committee.quorum() > n + committee.faulty_max(), "of {n}");
        assert!(committee.quorum() + committee.faulty_max() <= n, "and f may be silent");
    }
}

#[test]
fn whatever_changes_what_is_valid_changes_the_network() {
    let (sound, _) = file(PayScheme::Plain, 4, 2);
    let id = |file: &NetworkFile| Network::load(file).expect("sound").id();
    let changed = |change: &dyn Fn(&mut NetworkFile)| {
        let mut file = sound.clone();
        change(&mut file);
        id(&file)
    };
    let ids = [
        id(&sound),
        changed(&|file| file.name.push('!')),
        changed(&|file| file.epoch = Epoch(9)),
        changed(&|file| file.scheme = PayScheme::Merkle),
        changed(&|file| file.issuer = key(ALICE).to_string()),
        changed(&|file| file.genesis[0].value += 1),
        changed(&|file| file.genesis[0].owner = key(MALLORY).to_string()),
        changed(&|file| file.genesis.swap(0, 1)),
        changed(&|file| file.authorities.swap(0, 1)),
    ];
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
    let moved = changed(&|file| file.authorities[0].addresses[0] = "elsewhere:1".into());
    assert_eq!(moved, id(&sound), "an address may change");
}

#[test]
fn every_owner_has_one_shard() {
    let testnet = TestNetwork::with(PayScheme::Plain, 4, 5);
    let mut met = [0; 5];
    for person in 0..=255 {
        let shard = testnet.network.shard_of(&key(person));
        assert_eq!(shard, testnet.network.shard_of(&key(person)));
        met[usize::from(shard)] += 1;
    }
    assert!(met.iter().all(|count| *count > 25), "about evenly: {met:?}");
    assert_eq!(testnet.network.address(1, 4), Some("a1.example:4"));
    assert_eq!(testnet.network.address(1, 5), None);
    assert_eq!(testnet.network.address(4, 0), None);
}

#[test]
fn schemes_are_read_by_name() {
    for scheme in PayScheme::ALL {
        assert_eq!(scheme.to_string().parse(), Ok(scheme));
    }
    let error = "rsa".parse::<PayScheme>().expect_err("no such scheme");
    let expected = "\"rsa\" is no payment scheme: use plain, merkle, bls or bls-threshold";
    assert_eq!(error.to_string(), expected);
}
