use super::{Committee, CommitteeError, CommitteeFile, Member, Purpose};
use crate::{Epoch, ReplicaId};
use quorate_crypto::{
    Aggregate, Bitmap, Certificate, IdentitySecret, KeyCache, SchemeKind, VotingSecret,
};

type Change = fn(&mut CommitteeFile);

fn member(i: u8) -> Member {
    Member {
        identity: IdentitySecret::from_seed([i; 32]).public().to_string(),
        voting: VotingSecret::from_seed(SchemeKind::Ed25519, &[i; 32]).public().to_string(),
        possession: String::new(),
        address: format!("host{i}:1"),
        weight: 1,
    }
}

fn file(members: u8) -> CommitteeFile {
    CommitteeFile {
        name: "test".into(),
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        members: (1..=members).map(member).collect(),
    }
}

fn load(file: &CommitteeFile) -> Result<Committee, CommitteeError> {
    Committee::load(file, KeyCache::Off)
}

/// Two quorums share an honest member, a quorum can be reached without the faulty, and `weak` has an
/// honest member in it.
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

#[test]
fn a_bad_file_is_refused_with_a_reason() {
    let cases: [(&str, Change); 8] = [
        ("a committee has 1 to 1024 members, this one has 0", |f| f.members.clear()),
        ("members 0 and 3 have the same identity key", |f| {
            f.members[3].identity = f.members[0].identity.clone();
        }),
        ("member 2 has a weight other than 1", |f| f.members[2].weight = 0),
        ("the voting scheme 'rsa' is unknown", |f| f.scheme = "rsa".into()),
        ("member 1: ", |f| f.members[1].identity = "ab".into()),
        ("member 1: the voting key is not hexadecimal", |f| f.members[1].voting = "xy".into()),
        ("member 1: the proof of possession is not hexadecimal", |f| {
            f.members[1].possession = "xy".into();
        }),
        // 32 bytes that encode no point of the curve.
        ("member 1: ", |f| f.members[1].identity = format!("02{}", "00".repeat(31))),
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

/// The chain's identity follows from everything that decides who may sign, and from nothing else.
#[test]
fn the_chain_id_covers_names_keys_and_epoch() {
    let base = file(4).chain_id();
    let changes: [(bool, Change); 5] = [
        (true, |f| f.name = "other".into()),
        (true, |f| f.epoch = Epoch(2)),
        (true, |f| f.members.swap(0, 1)),
        (true, |f| drop(f.members.pop())),
        (false, |f| f.members[0].address = "elsewhere:2".into()),
    ];
    for (changes_it, change) in changes {
        let mut file = file(4);
        change(&mut file);
        assert_eq!(file.chain_id() != base, changes_it);
    }
}
