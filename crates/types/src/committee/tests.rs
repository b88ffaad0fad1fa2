use super::{Committee, CommitteeError, CommitteeFile, Groups, Member, Purpose, deal_keys};
use crate::{AgreedSettings, Epoch, NetworkId, ReplicaId, Weights};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, KeyCache, KeyFile, Policy, SchemeKind, VotingSecret,
};

type Change = fn(&mut CommitteeFile);

fn member(i: u8) -> Member {
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[i; 32]);
    Member::new(&keys.public(), format!("host{i}:1"))
}

pub(crate) fn file(members: u8) -> CommitteeFile {
    CommitteeFile {
        name: "test".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (1..=members).map(member).collect(),
    }
}

fn load(file: &CommitteeFile) -> Result<Committee, CommitteeError> {
    Committee::load(file, KeyCache::Off)
}

/// Two quorums share an honest member, a quorum can be reached without the faulty, and `weak` has
/// an honest member in it.
#[test]
fn thresholds() {
    let expected = [
        (1, 0, 1, 1),
        (2, 0, 2, 1),
        (3, 0, 2, 1),
        (4, 1, 3, 2),
        (5, 1, 4, 2),
        (6, 1, 4, 2),
        (7, 2, 5, 3),
        (10, 3, 7, 4),
    ];
    for (members, faulty, quorum, weak) in expected {
        let committee = load(&file(members)).unwrap();
        let (n, f) = (u64::from(members), committee.faulty_max());
        assert_eq!((f, committee.quorum(), committee.weak()), (faulty, quorum, weak), "n = {n}");
        assert!(2 * committee.quorum() > n + f && committee.quorum() <= n - f, "n = {n}");
    }
}

#[test]
fn enough_is_a_quorum_of_this_committees_members() {
    let committee = load(&file(4)).unwrap();
    let enough = |members, signers: &[usize]| {
        let signers = Bitmap::from_indices(members, signers.iter().copied());
        committee.is_enough(Purpose::Vote, &Certificate { signers, aggregate: Aggregate(vec![]) })
    };
    assert!(enough(4, &[0, 1, 3]) && enough(4, &[0, 1, 2, 3]));
    assert!(!enough(4, &[0, 1]) && !enough(4, &[]) && !enough(5, &[0, 1, 2]));
    assert_eq!(committee.weight(ReplicaId(9)), 0);
}

fn weighted(each: &[u64]) -> Committee {
    let mut file = file(u8::try_from(each.len()).expect("few"));
    for (member, weight) in file.members.iter_mut().zip(each) {
        member.weight = *weight;
    }
    load(&file).expect("sound weights")
}

fn rule(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

/// ★ Signers count by weight: the heavy member and two more are enough, three light ones are not.
fn check_certificates_count_weights() -> Result<(), String> {
    let committee = weighted(&[3, 1, 1, 1]);
    let enough = |signers: &[usize]| {
        let signers = Bitmap::from_indices(4, signers.iter().copied());
        committee.is_enough(Purpose::Vote, &Certificate { signers, aggregate: Aggregate(vec![]) })
    };
    rule(!enough(&[1, 2, 3]), "three of four heads weigh half")?;
    rule(!enough(&[0, 1]) && enough(&[0, 1, 2]) && enough(&[0, 1, 3]), "5 of 6 are a quorum")?;
    let committee = weighted(&[3, 1, 1, 1, 1]);
    let light = Bitmap::from_indices(5, [1, 2, 3, 4]);
    rule(!committee.are_enough(Purpose::Vote, &light), "four of five heads weigh 4 of 7")?;
    let committee = weighted(&[9, 9, 9, 1, 1, 1, 1]);
    let heavy = Bitmap::from_indices(7, [0, 1, 2]);
    rule(committee.are_enough(Purpose::Vote, &heavy), "27 of 31, in three heads of seven")
}

/// ★ A set that must include an honest member is weighed: three light members of seven may all lie.
fn check_weak_counts_weights() -> Result<(), String> {
    let committee = weighted(&[4, 4, 4, 4, 1, 1, 1]);
    let honest = |members: &[usize]| {
        committee.includes_honest(&Bitmap::from_indices(7, members.iter().copied()))
    };
    rule(!honest(&[4, 5, 6]) && !honest(&[0, 4]), "6 may be faulty")?;
    rule(honest(&[0, 1]) && honest(&[0, 4, 5, 6]), "7 may not")
}

#[test]
fn certificates_count_weights() {
    check_certificates_count_weights().unwrap();
}

#[test]
fn weak_counts_weights() {
    check_weak_counts_weights().unwrap();
}

#[test]
fn counting_heads_breaks_the_rules() {
    use quorate_crypto::mutants::{Mutant, set};
    let noticed = |mutant, check: fn() -> Result<(), String>| {
        set(Some(mutant));
        let found = check();
        set(None);
        found.is_err()
    };
    assert!(noticed(Mutant::CertificateCountsHeads, check_certificates_count_weights));
    assert!(noticed(Mutant::WeakCountsHeads, check_weak_counts_weights));
}

#[test]
fn a_committee_weighs_what_its_file_says() {
    let committee = weighted(&[3, 1, 2]);
    let each: Vec<u64> = committee.members().map(|member| committee.weight(member)).collect();
    assert_eq!((each, committee.quorum()), (vec![3, 1, 2], 5));
}

#[test]
fn a_bad_file_is_refused_with_a_reason() {
    let cases: [(&str, Change); 13] = [
        ("a committee has 1 to 1024 members, this one has 0", |f| f.members.clear()),
        ("members 0 and 3 have the same identity key", |f| {
            f.members[3].identity = f.members[0].identity.clone();
        }),
        ("member 2 has weight 0", |f| f.members[2].weight = 0),
        ("the voting scheme 'rsa' is unknown", |f| f.scheme = "rsa".into()),
        ("member 1: ", |f| f.members[1].identity = "ab".into()),
        ("member 1: the voting key is not hexadecimal", |f| f.members[1].voting = "xy".into()),
        ("member 1: the proof of possession is not hexadecimal", |f| {
            f.members[1].possession = "xy".into();
        }),
        // 32 bytes that encode no point of the curve.
        ("member 1: ", |f| f.members[1].identity = format!("02{}", "00".repeat(31))),
        // The identity point, under which anybody signs anything; and a second encoding of it.
        ("member 1: the identity key is unusable: the public key is the identity point", |f| {
            f.members[1].identity = format!("01{}", "00".repeat(31));
        }),
        ("member 1: the identity key is unusable: the public key is not the canonical", |f| {
            f.members[1].identity = format!("ee{}7f", "ff".repeat(30));
        }),
        ("member 2's voting key is member 0's identity key: each key has one use", |f| {
            f.members[2].voting = f.members[0].identity.clone();
        }),
        ("member 1: the identity key is unusable: the proof that its owner holds", |f| {
            f.members[1].identity_proof.clear();
        }),
        ("member 1: the identity key is unusable: the proof of possession does not match", |f| {
            f.members[1].identity_proof = f.members[2].identity_proof.clone();
        }),
    ];
    for (reason, spoil) in cases {
        let mut file = file(4);
        spoil(&mut file);
        let found = load(&file).expect_err(reason).to_string();
        assert!(found.starts_with(reason), "'{found}' is not '{reason}'");
    }
    let mut file = file(4);
    file.members[3].voting = file.members[0].voting.clone();
    assert!(matches!(load(&file), Err(CommitteeError::Keys(_))));
}

/// ★ A member takes part under a key that it holds.
fn check_identities_are_held() {
    let mut file = file(4);
    let [first, second] = [0, 1].map(|member| file.members[member].identity_proof.clone());
    (file.members[0].identity_proof, file.members[1].identity_proof) = (second, first);
    assert!(load(&file).is_err(), "each shows the other's proof");
}

#[test]
fn identities_are_held() {
    check_identities_are_held();
}

#[test]
fn taking_any_identity_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::AcceptUnheldIdentity, check_identities_are_held);
}

/// A committee of four with threshold keys from this seed, and its members' secrets.
pub(crate) fn dealt(seed: u8) -> (CommitteeFile, Vec<VotingSecret>) {
    let dealing = deal_keys(&Weights::equal(4), &[seed; 32]).expect("four members");
    let mut file = file(4);
    file.scheme = "bls-threshold".into();
    file.groups = Some(Groups::from(&dealing.groups));
    for (member, secret) in file.members.iter_mut().zip(&dealing.secrets) {
        member.voting = secret.public().to_string();
    }
    (file, dealing.secrets)
}

/// ★ Each purpose has its own keys: what is signed for a low threshold counts for no higher one.
#[test]
fn threshold_keys_are_of_their_purposes() {
    check_keys_by_purpose();
}

#[test]
fn one_share_for_all_purposes_is_noticed() {
    use quorate_crypto::mutants::{Mutant, assert_noticed};
    assert_noticed(Mutant::SignWithOneShare, check_keys_by_purpose);
}

fn check_keys_by_purpose() {
    let (file, secrets) = dealt(7);
    let committee = load(&file).expect("a sound dealing");
    assert!(committee.splits_keys());
    let thresholds = [(Purpose::Fast, 4), (Purpose::Vote, 3), (Purpose::Execute, 2)];
    for (purpose, needed) in thresholds {
        let (scheme, weight) = committee.scheme(purpose);
        assert_eq!(weight, needed as u64);
        let nobody = Bitmap::new(4);
        let combine = |count: usize, signed_for: Purpose| {
            let shares: Vec<_> = (0..count)
                .map(|member| (member, committee.sign(signed_for, &secrets[member], b"it")))
                .collect();
            scheme.combine(b"it", &shares, &nobody, Policy::Aggregate).certificate
        };
        for signers in [needed, 4] {
            let certificate = combine(signers, purpose).expect("enough");
            assert!(committee.is_enough(purpose, &certificate));
            assert_eq!(certificate.signers.count(), signers);
            scheme.verify(b"it", &certificate).expect("a good certificate");
        }
        assert_eq!(combine(needed - 1, purpose), None, "{purpose:?}");
        for (other, _) in thresholds.into_iter().filter(|(other, _)| *other != purpose) {
            assert_eq!(combine(4, other), None, "{other:?} is not {purpose:?}");
        }
    }
}

#[test]
fn bad_groups_are_refused_with_a_reason() {
    let cases: [(&str, Change); 5] = [
        ("threshold keys come with their groups' keys", |f| f.groups = None),
        ("only threshold keys have groups", |f| f.scheme = "bls".into()),
        ("the slow group's key is not hexadecimal", |f| {
            f.groups.as_mut().expect("groups").slow = "xy".into();
        }),
        ("threshold keys count members, not weights", |f| f.members[0].weight = 2),
        ("the fast sharing: ", |f| {
            let groups = f.groups.as_mut().expect("groups");
            std::mem::swap(&mut groups.fast, &mut groups.execution);
        }),
    ];
    for (reason, spoil) in cases {
        let (mut file, _) = dealt(7);
        spoil(&mut file);
        let found = load(&file).expect_err(reason).to_string();
        assert!(found.starts_with(reason), "'{found}' is not '{reason}'");
    }
}

/// The network's identity follows from everything that decides who may sign and by which settings,
/// and from nothing else.
#[test]
fn the_network_id_covers_names_keys_epoch_and_settings() {
    let base = file(4).network_id();
    let changes: [(bool, Change); 8] = [
        (true, |f| f.name = "other".into()),
        (true, |f| f.settings.protocol = "hotstuff".into()),
        (true, |f| f.epoch = Epoch(2)),
        (true, |f| f.members.swap(0, 1)),
        (true, |f| f.members[0].weight = 2),
        (true, |f| drop(f.members.pop())),
        (false, |f| f.members[0].address = "elsewhere:2".into()),
        // So that a file of before there were proofs keeps its network when they are added.
        (false, |f| f.members[0].identity_proof.clear()),
    ];
    for (changes_it, change) in changes {
        let mut file = file(4);
        change(&mut file);
        assert_eq!(file.network_id() != base, changes_it);
    }
    let (dealt, _) = dealt(7);
    let mut other = dealt.clone();
    other.groups.as_mut().expect("groups").execution = String::new();
    assert_ne!(dealt.network_id(), other.network_id());
}

/// With every setting at its default, and with one that is not.
#[test]
fn the_golden_network_ids() {
    let usual = "a6de7a0abdf9f082545dc1ca649b81450e38c8fc62c9c8143ffec86a158990ba";
    assert_eq!(file(4).network_id().to_string(), usual);
    let mut other = file(4);
    other.settings.protocol = "hotstuff".into();
    let golden = "06665f0977acda8189ff44333b2fa5ca6a055ca892c335aa310f163babe88c69";
    assert_eq!(other.network_id().to_string(), golden);
}

/// What is handed over to is the whole file.
#[test]
fn the_digest_covers_everything() {
    let changes: [Change; 10] = [
        |f| f.name = "other".into(),
        |f| f.settings.leader_tenure = 2,
        |f| f.network = Some(NetworkId([1; 32])),
        |f| f.epoch = Epoch(2),
        |f| f.scheme = "bls".into(),
        |f| f.redundancy = 1,
        |f| f.members.swap(0, 1),
        |f| f.members[0].weight = 2,
        |f| f.members[0].address = "elsewhere:2".into(),
        |f| f.members[0].identity_proof.clear(),
    ];
    for change in changes {
        let mut changed = file(4);
        change(&mut changed);
        assert_ne!(changed.digest(), file(4).digest(), "{changed:?}");
    }
    let (dealt, _) = dealt(7);
    assert_ne!(CommitteeFile { groups: None, ..dealt.clone() }.digest(), dealt.digest());
}

#[test]
fn a_networks_id_has_64_digits() {
    let network = NetworkId([0xab; 32]);
    assert_eq!(network.to_string(), "ab".repeat(32));
    assert_eq!(network.to_string().parse(), Ok(network));
    for text in ["", "abab", &"xy".repeat(32)] {
        let refused = text.parse::<NetworkId>().expect_err("no id").to_string();
        let reason = format!("'{text}' names no network: its id has 64 hexadecimal digits");
        assert_eq!(refused, reason);
    }
}
