use super::HandOver;
use crate::committee::tests::file;
use crate::{
    BlockId, Committee, CommitteeError, CommitteeFile, Epoch, Height, Kind, NetworkId, Purpose,
    Rejected, Scope, SignedHandOver, sign,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Bitmap, Digest, KeyCache, KeyFile, Policy, SchemeKind, hash};

const FIRST: Epoch = Epoch(1);

fn hand_over(file: &CommitteeFile) -> HandOver {
    HandOver {
        height: Height(9),
        stop: BlockId(hash(b"stop")),
        root: hash(b"root"),
        file: file.digest(),
    }
}

fn genesis() -> Committee {
    Committee::load(&file(4), KeyCache::Off).expect("a sound file")
}

/// File of the epoch after [`genesis`]: its first member has left.
fn next() -> CommitteeFile {
    let mut next = CommitteeFile { network: Some(genesis().network()), ..file(5) };
    next.epoch = FIRST.next();
    next.members.remove(0);
    next
}

/// Signs as these members of [`genesis`].
fn signed(content: HandOver, scope: Scope, signers: &[usize]) -> SignedHandOver {
    let committee = genesis();
    let statement = content.statement(scope);
    let share = |member: usize| {
        let seed = [u8::try_from(member + 1).expect("few"); 32];
        let keys = KeyFile::from_seed(SchemeKind::Ed25519, &seed);
        (member, committee.sign(Purpose::Checkpoint, &keys.voting, &statement))
    };
    let shares: Vec<_> = signers.iter().map(|member| share(*member)).collect();
    let (scheme, _) = committee.scheme(Purpose::Checkpoint);
    let nobody = Bitmap::new(committee.size());
    let combined = scheme.combine(&statement, &shares, &nobody, Policy::Aggregate);
    SignedHandOver { content, certificate: combined.certificate.expect("good shares") }
}

/// ★ What a quorum of the epoch that ends says is handed over, and nothing that fewer say.
fn check_a_quorum_hands_over() {
    let (committee, content) = (genesis(), hand_over(&next()));
    let scope = committee.scope();
    assert_eq!(signed(content, scope, &[0, 1, 3]).check(&committee), Ok(()));
    let few = signed(content, scope, &[0, 1]);
    assert!(committee.weight_of(&few.certificate.signers) >= committee.weak());
    assert_eq!(few.check(&committee), Err(Rejected::BelowThreshold));
    let changed = SignedHandOver {
        content: HandOver { root: hash(b"other"), ..content },
        ..signed(content, scope, &[0, 1, 3])
    };
    assert_eq!(changed.check(&committee), Err(Rejected::BadSignature("a hand-over")));
    let elsewhere = signed(content, Scope::network(committee.network()), &[0, 1, 3]);
    assert_eq!(elsewhere.check(&committee), Err(Rejected::BadSignature("a hand-over")));
}

#[test]
fn a_quorum_hands_over() {
    check_a_quorum_hands_over();
}

#[test]
fn a_hand_over_by_few_is_noticed() {
    assert_noticed(Mutant::HandOverByFew, check_a_quorum_hands_over);
}

#[test]
fn a_hand_over_is_its_content() {
    let (content, scope) = (hand_over(&next()), genesis().scope());
    let [one, other] = [[0, 1, 2], [1, 2, 3]].map(|by| signed(content, scope, &by));
    assert_ne!(one.certificate, other.certificate);
    assert_eq!(one, other);
    let changed = HandOver { height: Height(10), ..content };
    assert_ne!(one, SignedHandOver { content: changed, ..one.clone() });
}

/// ★ Votes are bound to a hand-over: two epochs of one number that began otherwise share no
/// signature.
fn check_votes_name_the_hand_over() {
    let next = next();
    let content = hand_over(&next);
    let begun = |content: &HandOver| {
        Committee::load_simulated_after(&next, content, KeyCache::Off)
            .expect("a sound file")
            .scope()
    };
    let vote = |scope| sign::statement(Kind::JolteonVote, scope, &7u64);
    let others = [
        HandOver { height: Height(10), ..content },
        HandOver { stop: BlockId(hash(b"other")), ..content },
        HandOver { root: hash(b"other"), ..content },
    ];
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[2; 32]);
    let signature = keys.identity.sign(&vote(begun(&content)));
    let is_good = |scope| keys.public().identity.verify(&vote(scope), &signature).is_ok();
    assert!(is_good(begun(&content)));
    for other in others {
        assert!(!is_good(begun(&other)), "{other:?}");
    }
}

#[test]
fn votes_name_the_hand_over() {
    check_votes_name_the_hand_over();
}

#[test]
fn votes_for_a_number_are_noticed() {
    assert_noticed(Mutant::EpochByNumber, check_votes_name_the_hand_over);
}

#[test]
fn an_epochs_id_is_of_its_network_number_and_beginning() {
    let (network, content) = (NetworkId([7; 32]), HandOver::default());
    let ids = [
        content.begins(network, FIRST),
        content.begins(NetworkId([8; 32]), FIRST),
        content.begins(network, Epoch(2)),
        HandOver { file: Digest([1; 32]), ..content }.begins(network, FIRST),
        HandOver::of_genesis(network).begins(network, FIRST),
    ];
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(id), "{at}");
    }
    assert_eq!(
        genesis().epoch_id(),
        HandOver::of_genesis(genesis().network()).begins(genesis().network(), FIRST)
    );
}

#[test]
fn the_golden_id_and_statement() {
    let content = HandOver {
        height: Height(0x0102),
        stop: BlockId(Digest([3; 32])),
        root: Digest([4; 32]),
        file: Digest([5; 32]),
    };
    let id = content.begins(NetworkId([7; 32]), Epoch(2));
    assert_eq!(id.to_string(), "98565cae82ff1780b6668bbc5ac3fdf40a1c2d984a5e5f3433cb0409dc893c9c");
    let scope = Scope { network: NetworkId([7; 32]), epoch: id };
    let expected = [
        b"quorate/v1/HANDOVER/".as_slice(),
        &[7; 32],
        &id.0,
        &[2, 1, 0, 0, 0, 0, 0, 0],
        &[3; 32],
        &[4; 32],
        &[5; 32],
    ]
    .concat();
    assert_eq!(content.statement(scope), expected);
}

#[test]
fn a_file_is_loaded_in_its_place() {
    let (founding, next) = (file(4), next());
    let load = |file: &CommitteeFile| Committee::load(file, KeyCache::Off).map(drop);
    let after = |file: &CommitteeFile| {
        Committee::load_simulated_after(file, &hand_over(&next), KeyCache::Off).map(drop)
    };
    assert_eq!(after(&next), Ok(()));
    assert_eq!(load(&next), Err(CommitteeError::NotGenesis(Epoch(2))));
    assert_eq!(after(&founding), Err(CommitteeError::Founds));
    let mut moved = next.clone();
    moved.members[0].address = "elsewhere:1".into();
    assert_eq!(after(&moved), Err(CommitteeError::OtherFile(next.digest())));
}

#[test]
fn a_file_follows_that_of_the_epoch_before() {
    let (committee, next) = (genesis(), next());
    assert_eq!(committee.check_next(&next), Ok(()));
    let network = NetworkId([9; 32]);
    let cases = [
        (CommitteeFile { network: None, ..next.clone() }, CommitteeError::Founds),
        (
            CommitteeFile { network: Some(network), ..next.clone() },
            CommitteeError::OtherNetwork(network),
        ),
        (
            CommitteeFile { epoch: Epoch(3), ..next },
            CommitteeError::OtherEpoch { found: Epoch(3), expected: Epoch(2) },
        ),
    ];
    for (file, refused) in cases {
        assert_eq!(committee.check_next(&file), Err(refused));
    }
}
