use super::*;
use quorate_crypto::StoredKeys;
use quorate_engine::ProtocolKind;
use quorate_types::{Purpose, ReplicaId};

#[test]
fn every_file_that_is_written_loads() {
    let folder = tempfile::tempdir().unwrap();
    for scheme in [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::BlsThreshold] {
        let settings = Settings { protocol: ProtocolKind::Sbft, ..Settings::default() };
        let plan = TestnetPlan { scheme, settings, ..TestnetPlan::default() };
        let testnet = Testnet::create(&folder.path().join(scheme.to_string()), &plan).unwrap();
        assert_eq!(testnet.configs.len(), 4);
        for (index, path) in testnet.configs.iter().enumerate() {
            let config = NodeConfig::load(path).unwrap();
            let committee = config.load_committee().unwrap();
            let keys = KeyFile::read(&config.key).unwrap();
            let id = committee.find(&keys.identity.public()).unwrap();
            assert_eq!(id.index(), index);
            let (voting, _) = committee.scheme(Purpose::Vote);
            let share = committee.sign(Purpose::Vote, &keys.voting, b"a vote");
            assert_eq!(voting.verify_share(b"a vote", index, &share), Ok(()));
            assert_eq!(
                committee.address(id),
                Some(format!("127.0.0.1:{}", 7_000 + index).as_str())
            );
            assert_eq!(config.http, format!("127.0.0.1:{}", 7_004 + index));
            assert_eq!(testnet.http[index], config.http);
        }
    }
}

/// A bench's committee runs with settings that a validator of its own refuses.
#[test]
fn files_with_settings_for_comparisons_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let config = |name: &str, settings: Settings| {
        let plan = TestnetPlan { settings, ..TestnetPlan::default() };
        let testnet = Testnet::create(&folder.path().join(name), &plan).unwrap();
        NodeConfig::load(&testnet.configs[0]).unwrap()
    };
    assert!(!config("usual", Settings::default()).comparison);
    let mut settings = Settings::default();
    settings.comparison.filter_requests = false;
    let compared = config("compared", settings.clone());
    assert!(compared.comparison);
    assert_eq!(compared.replica, settings);
}

#[test]
fn weights_reach_the_committee() {
    let folder = tempfile::tempdir().unwrap();
    let weights: Weights = "3,1,1,1".parse().unwrap();
    let plan = TestnetPlan { weights: Some(weights.clone()), ..TestnetPlan::default() };
    let testnet = Testnet::create(&folder.path().join("net"), &plan).unwrap();
    let committee = NodeConfig::load(&testnet.configs[0]).unwrap().load_committee().unwrap();
    assert_eq!((committee.weights(), committee.quorum()), (&weights, 5));
    let file = std::fs::read_to_string(&testnet.committee).unwrap();
    assert!(file.contains("weight = 3") && file.contains("# A member's `weight`"), "{file}");
    // One that the file leaves out is 1.
    std::fs::write(&testnet.committee, file.replace("weight = 1\n", "")).unwrap();
    let committee = NodeConfig::load(&testnet.configs[0]).unwrap().load_committee().unwrap();
    assert_eq!(committee.weights(), &weights);
}

/// Paths of one volume name those of another, on disk as in a container.
#[test]
fn volumes_hold_what_configurations_name() {
    let folder = tempfile::tempdir().unwrap();
    let names = |component: &str, count: usize| -> Vec<String> {
        (0..count).map(|index| format!("{component}-{index}.example")).collect()
    };
    let hosts = HostNames { members: names("validator", 4), learners: names("learner", 1) };
    let passphrase = Passphrase::from_file(b"open sesame").unwrap();
    let plan = TestnetPlan {
        learners: 1,
        layout: Layout::Volumes,
        names: Some(hosts),
        passphrase: Some(passphrase.clone()),
        ..TestnetPlan::default()
    };
    let testnet = Testnet::create(&folder.path().join("net"), &plan).unwrap();
    let learner = testnet.learners[0].config.clone();
    for (index, path) in testnet.configs.iter().chain([&learner]).enumerate() {
        let config = NodeConfig::load(path).unwrap();
        let committee = config.load_committee().unwrap();
        let StoredKeys::Sealed(sealed) = StoredKeys::read(&config.key).unwrap() else {
            panic!("{} is not sealed", config.key.display())
        };
        let id = committee.find(&sealed.open(&passphrase).unwrap().identity.public());
        assert_eq!(id.map(ReplicaId::index), (index < 4).then_some(index));
        assert_eq!(config.listen.as_deref(), Some("0.0.0.0:7000"));
        assert_eq!(config.http, "0.0.0.0:9100");
        let named = config.passphrase_file.unwrap();
        assert!(named.ends_with("config/../../passphrase/passphrase"), "{}", named.display());
        assert_eq!(config.key_notes.as_deref(), Some(Path::new(Layout::NOTES)));
        assert_eq!(committee.address(ReplicaId(3)), Some("validator-3.example:7000"));
    }
    let port = TestnetPlan { base_port: 9_100, ..plan };
    let refused = Testnet::create(&folder.path().join("other"), &port).unwrap_err().to_string();
    assert!(refused.starts_with("port 9100 is not for peers"), "{refused}");
}

#[test]
fn a_folder_with_something_in_it_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("precious"), "").unwrap();
    let error = Testnet::create(folder.path(), &TestnetPlan::default()).unwrap_err();
    assert!(matches!(&error, TestnetError::NotEmpty { path } if path == folder.path()));
    assert!(error.to_string().contains("is not empty; name a new folder"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn impossible_plans_touch_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("new");
    let plan = TestnetPlan { members: 0, ..TestnetPlan::default() };
    assert!(matches!(Testnet::create(&target, &plan), Err(TestnetError::Size(0))));
    let plan = TestnetPlan { weights: Some(Weights::equal(3)), ..TestnetPlan::default() };
    let error = Testnet::create(&target, &plan).unwrap_err().to_string();
    assert_eq!(error, "3 weights for 4 members: give one a member");
    let plan = TestnetPlan { base_port: 65_530, ..TestnetPlan::default() };
    let error = Testnet::create(&target, &plan).unwrap_err().to_string();
    assert_eq!(
        error,
        "4 members need the ports 65530 to 65537; choose a base port from 1 to 65528"
    );
    let plan = TestnetPlan { learners: 2, ..plan };
    let error = Testnet::create(&target, &plan).unwrap_err().to_string();
    assert!(error.starts_with("4 members and 2 learners need the ports 65530 to 65541"), "{error}");
    let plan = TestnetPlan { scheme: SchemeKind::BlsThreshold, ..TestnetPlan::default() };
    let error = Testnet::create(&target, &plan).unwrap_err().to_string();
    assert!(error.starts_with("jolteon cannot use threshold keys"), "{error}");
    assert!(!target.exists());
}
