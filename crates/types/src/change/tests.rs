mod group_keys;

use super::{Acceptance, Approval, Change, ChangeError, SignedChange};
use crate::committee::tests::file;
use crate::{
    Committee, CommitteeFile, Epoch, HandOver, Height, Kind, Member, NetworkId, ReplicaId, Scope,
    sign,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile, SchemeKind, VotingSecret};

/// Heights between which the changes of these tests may be ordered.
const TIME: (Height, Height) = (Height(20_000), Height(20_100));

type Spoil<T> = fn(&mut T);

fn genesis() -> Committee {
    Committee::load(&file(4), KeyCache::Off).expect("a sound file")
}

/// Keys of the `index`th member of a file of [`file`].
fn keys(index: u8) -> KeyFile {
    KeyFile::from_seed(SchemeKind::Ed25519, &[index + 1; 32])
}

/// The first of four members is replaced, and a fifth joins: members 1 to 5 of a larger file.
fn change() -> Change {
    let mut next = CommitteeFile { network: Some(genesis().network()), ..file(6) };
    next.epoch = Epoch(2);
    next.members.remove(0);
    let (not_before, expires) = TIME;
    Change { network: genesis().network(), epoch: Epoch(1), file: next, not_before, expires }
}

/// Approved by three of four, accepted by four of five: two that stay, and both newcomers.
fn signed(change: Change) -> SignedChange {
    sign_as(change, &[0, 1, 3], &[0, 1, 3, 4])
}

fn sign_as(change: Change, approvers: &[u8], acceptors: &[u8]) -> SignedChange {
    let ends = genesis();
    let approve = |member: &u8| approve(&change, &ends, *member);
    let approvals = approvers.iter().map(approve).collect();
    let acceptances = acceptors.iter().map(|member| accept(&change, *member, TIME.0)).collect();
    SignedChange { change, approvals, acceptances }
}

fn approve(change: &Change, ends: &Committee, member: u8) -> Approval {
    change.approve(ends, ReplicaId(member.into()), &keys(member).identity)
}

/// Acceptance of a member of the next committee, which is the one after it of a larger file.
fn accept(change: &Change, member: u8, executed: Height) -> Acceptance {
    let (ends, next) = (genesis(), self::change().check(&genesis()).expect("a sound change"));
    let KeyFile { identity, voting, .. } = keys(member + 1);
    let place = (ReplicaId(member.into()), executed);
    change.accept((&ends, &next), place, (&identity, &voting))
}

fn refused(signed: &SignedChange) -> ChangeError {
    signed.check(&genesis()).expect_err("a rule is broken")
}

#[test]
fn a_change_by_the_rules_is_good() {
    let signed = signed(change());
    let next = signed.check(&genesis()).expect("a good change");
    assert_eq!((next.size(), next.epoch(), next.network()), (5, Epoch(2), genesis().network()));
    let bytes = borsh::to_vec(&signed).expect("encoding into memory cannot fail");
    assert_eq!(SignedChange::decode(&bytes), Ok(signed));
}

/// ★ A quorum of the epoch that ends approves it, and no fewer.
fn check_a_quorum_approves() {
    let few = sign_as(change(), &[0, 1], &[0, 1, 3, 4]);
    assert_eq!(refused(&few).to_string(), "the approvals weigh 2; 3 are needed");
}

/// ★ A quorum of the next epoch accepts it, and no fewer.
fn check_a_quorum_accepts() {
    let few = sign_as(change(), &[0, 1, 3], &[1, 3, 4]);
    assert_eq!(refused(&few).to_string(), "the acceptances weigh 3; 4 are needed");
}

/// ★ Every newcomer accepts, though a quorum is there without it.
fn check_newcomers_accept() {
    let silent = sign_as(change(), &[0, 1, 3], &[0, 1, 2, 3]);
    let said = "r4 is new in the next committee and has not accepted its place";
    assert_eq!(refused(&silent).to_string(), said);
}

/// ★ Who accepts has the state, or nearly.
fn check_acceptors_have_the_state() {
    let nearest = Height(TIME.0.0 - Change::BEHIND_MAX);
    let with = |executed| {
        let mut signed = signed(change());
        signed.acceptances[2] = accept(&signed.change, 3, executed);
        signed
    };
    assert!(with(nearest).check(&genesis()).is_ok());
    let said = "r3 accepted its place with the state at h9999, more than 10000 heights before the \
                change may be ordered: it accepts again once it has caught up";
    assert_eq!(refused(&with(Height(nearest.0 - 1))).to_string(), said);
}

#[test]
fn a_quorum_approves() {
    check_a_quorum_approves();
}

#[test]
fn a_quorum_accepts() {
    check_a_quorum_accepts();
}

#[test]
fn newcomers_accept() {
    check_newcomers_accept();
}

#[test]
fn acceptors_have_the_state() {
    check_acceptors_have_the_state();
}

#[test]
fn changes_by_few_are_noticed() {
    assert_noticed(Mutant::ChangeApprovedByFew, check_a_quorum_approves);
    assert_noticed(Mutant::ChangeAcceptedByFew, check_a_quorum_accepts);
    assert_noticed(Mutant::NewcomersUnasked, check_newcomers_accept);
    assert_noticed(Mutant::AcceptedFarBehind, check_acceptors_have_the_state);
}

/// Weights count, not heads.
#[test]
fn approvals_count_by_weight() {
    let mut heavy = file(4);
    heavy.members[2].weight = 4;
    let ends = Committee::load(&heavy, KeyCache::Off).expect("a sound file");
    let mut change = change();
    (change.network, change.file.network) = (ends.network(), Some(ends.network()));
    let approve = |member| approve(&change, &ends, member);
    let approvals = [0, 1, 3].map(approve).to_vec();
    let light = SignedChange { change: change.clone(), approvals, acceptances: Vec::new() };
    let too_few = ChangeError::TooFew { what: "approval", found: 3, needed: 5 };
    assert_eq!(light.check(&ends).expect_err("three of four heads"), too_few);
}

#[test]
fn a_change_that_has_no_place_here_is_refused_with_a_sentence() {
    let cases: [(&str, Spoil<Change>); 8] = [
        ("the change is of network 0909", |c| c.network = NetworkId([9; 32])),
        ("the change ends epoch e0, and e1 is in force", |c| c.epoch = Epoch(0)),
        ("the change ends epoch e2, and e1 is in force", |c| c.epoch = Epoch(2)),
        ("the change may be ordered from h20000 on and expires at h19999: never", |c| {
            c.expires = Height(19_999);
        }),
        ("the next committee file: the committee file is of network 0909", |c| {
            c.file.network = Some(NetworkId([9; 32]));
        }),
        ("the next committee file: the committee file names no network", |c| c.file.network = None),
        ("the next committee file: the committee file is of epoch e1; epoch e2 is next", |c| {
            c.file.epoch = Epoch(1);
        }),
        ("the next committee file: the committee file is of epoch e3; epoch e2 is next", |c| {
            c.file.epoch = Epoch(3);
        }),
    ];
    for (reason, spoil) in cases {
        let mut change = change();
        spoil(&mut change);
        let found = refused(&signed(change)).to_string();
        assert!(found.starts_with(reason), "'{found}' is not '{reason}'");
    }
}

/// The file is as sound as one that founds a network, and of a scheme that counts.
#[test]
fn the_next_file_is_sound() {
    let cases: [(&str, Spoil<CommitteeFile>); 4] = [
        ("the voting scheme 'stub' is unknown", |f| f.scheme = "stub".into()),
        ("members 0 and 1 have the same identity key", |f| f.members[1] = f.members[0].clone()),
        ("member 3: the identity key is unusable", |f| f.members[3].identity_proof.clear()),
        ("a committee has 1 to 1024 members, this one has 0", |f| f.members.clear()),
    ];
    for (reason, spoil) in cases {
        let mut change = change();
        spoil(&mut change.file);
        let found = refused(&signed(change)).to_string();
        let expected = format!("the next committee file: {reason}");
        assert!(found.starts_with(&expected), "'{found}' is not '{expected}'");
    }
}

/// One good change with one signature spoiled.
fn spoiled(spoil: impl FnOnce(&mut SignedChange)) -> String {
    let mut signed = signed(change());
    spoil(&mut signed);
    refused(&signed).to_string()
}

#[test]
fn signatures_are_of_their_members_once_each() {
    let twice = spoiled(|signed| signed.approvals.push(signed.approvals[1]));
    assert_eq!(twice, "the approval of r1 is there twice");
    let stranger = spoiled(|signed| signed.approvals[1].member = ReplicaId(4));
    assert_eq!(stranger, "the approval of r4 is of no member");
    let others = spoiled(|signed| signed.approvals[1].member = ReplicaId(2));
    assert_eq!(others, "the approval of r2 does not verify");
    let twice = spoiled(|signed| signed.acceptances.push(signed.acceptances[0].clone()));
    assert_eq!(twice, "the acceptance of r0 is there twice");
    let stranger = spoiled(|signed| signed.acceptances[0].member = ReplicaId(5));
    assert_eq!(stranger, "the acceptance of r5 is of no member");
}

/// More signatures than count do no harm, as long as each of them is good.
#[test]
fn every_signature_is_checked() {
    let mut all = sign_as(change(), &[0, 1, 2, 3], &[0, 1, 2, 3, 4]);
    assert!(all.check(&genesis()).is_ok());
    all.approvals[3].signature = all.approvals[0].signature;
    assert_eq!(refused(&all).to_string(), "the approval of r3 does not verify");
}

/// Members approve with their identities: whoever leads or votes for one signs with another key.
#[test]
fn voting_keys_do_not_approve() {
    let with_voting_key = spoiled(|signed| {
        let statement = signed.change.approval_statement(&genesis());
        let share = genesis().sign(super::Purpose::Checkpoint, &keys(1).voting, &statement);
        signed.approvals[1].signature.0 = share.0.try_into().expect("64 bytes");
    });
    assert_eq!(with_voting_key, "the approval of r1 does not verify");
}

/// A place is accepted with both keys that the member will use, and for this change alone.
#[test]
fn a_place_is_accepted_with_both_keys_for_one_change() {
    let spoil = |other: Acceptance, which: fn(&mut Acceptance, Acceptance)| {
        spoiled(|signed| which(&mut signed.acceptances[2], other))
    };
    let said = "the acceptance of r3 does not verify";
    let by = |identity: &IdentitySecret, voting: &VotingSecret| {
        let next = change().check(&genesis()).expect("a sound change");
        change().accept((&genesis(), &next), (ReplicaId(3), TIME.0), (identity, voting))
    };
    let (own, other) = (keys(4), keys(5));
    assert_eq!(spoil(by(&own.identity, &other.voting), |one, other| *one = other), said);
    assert_eq!(spoil(by(&other.identity, &own.voting), |one, other| *one = other), said);
    let later = Change { expires: Height(TIME.1.0 + 1), ..change() };
    assert_eq!(spoil(accept(&later, 3, TIME.0), |one, other| *one = other), said);
}

/// An approval is of this epoch by its id: one signed for another that began otherwise, for the
/// whole network or as another statement is none.
#[test]
fn approvals_are_of_this_epoch() {
    let change = change();
    let (kind, scope) = (Kind::Change, genesis().scope());
    let network = Scope::network(scope.network);
    let other = Scope { epoch: HandOver::default().begins(scope.network, Epoch(1)), ..scope };
    for (kind, scope) in [(kind, network), (kind, other), (Kind::Acceptance, scope)] {
        let statement = sign::statement(kind, scope, &change.digest());
        let signature = keys(1).identity.sign(&statement);
        let said =
            spoiled(|signed| signed.approvals[1] = Approval { member: ReplicaId(1), signature });
        assert_eq!(said, "the approval of r1 does not verify");
    }
}

#[test]
fn a_change_has_its_time() {
    let (first, last) = TIME;
    let at = |height: u64| change().check_height(Height(height));
    assert_eq!(at(first.0 - 1), Err(ChangeError::Early(first)));
    assert_eq!((at(first.0), at(last.0)), (Ok(()), Ok(())));
    assert_eq!(at(last.0 + 1), Err(ChangeError::Expired(last)));
}

/// Signatures cover everything: whatever is changed in the content of a good change, addresses
/// too, no signature of it is good any more.
#[test]
fn nothing_in_a_good_change_can_be_altered() {
    let content = borsh::to_vec(&change()).expect("encoding into memory cannot fail");
    let good = signed(change());
    let mut decoded = 0;
    for at in 0..content.len() {
        let mut altered = content.clone();
        altered[at] ^= 1;
        let Ok(change) = borsh::from_slice::<Change>(&altered) else { continue };
        decoded += 1;
        assert_ne!(change.digest(), good.change.digest(), "byte {at}");
        let altered = SignedChange { change, ..good.clone() };
        assert!(altered.check(&genesis()).is_err(), "byte {at}");
    }
    assert!(decoded > content.len() / 2, "{decoded} of {} altered changes decode", content.len());
}

/// No byte of its signatures either: whatever else is in it is checked.
#[test]
fn no_byte_of_a_signature_can_be_altered() {
    let good = signed(change());
    let whole = borsh::to_vec(&good).expect("encoding into memory cannot fail");
    let content = borsh::to_vec(&good.change).expect("encoding into memory cannot fail").len();
    for at in content..whole.len() {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        let is_good = SignedChange::decode(&altered).is_ok_and(|it| it.check(&genesis()).is_ok());
        assert!(!is_good, "byte {} of the signatures", at - content);
    }
}

#[test]
fn bytes_that_are_no_change_are_refused() {
    for bytes in [&b""[..], &[0; 40], &vec![0; SignedChange::BYTES_MAX + 1]] {
        assert_eq!(SignedChange::decode(bytes), Err(ChangeError::Malformed(bytes.len())));
    }
    let mut longer = borsh::to_vec(&signed(change())).expect("encoding into memory cannot fail");
    longer.push(0);
    assert_eq!(SignedChange::decode(&longer), Err(ChangeError::Malformed(longer.len())));
    // A file that claims more members than bytes follow allocates nothing for them.
    let claims = borsh::to_vec(&(NetworkId([7; 32]), 1u64, u32::MAX)).expect("encoding");
    assert_eq!(SignedChange::decode(&claims), Err(ChangeError::Malformed(claims.len())));
}

/// The largest committee's change fits: threshold keys, the longest host names, all signatures.
#[test]
fn the_largest_change_fits() {
    let member = Member {
        identity: "a".repeat(64),
        identity_proof: "a".repeat(128),
        voting: "a".repeat(2 * 3 * 96),
        possession: "a".repeat(2 * 96),
        address: "a".repeat(253 + 6),
        weight: u64::MAX,
    };
    let mut change = change();
    change.file.members = vec![member; Committee::MEMBERS_MAX];
    let signature = keys(1).identity.sign(b"");
    let (share, member) = (quorate_crypto::Share(vec![0; 96]), ReplicaId(1));
    let acceptance = Acceptance { member, executed: Height(1), identity: signature, voting: share };
    let largest = SignedChange {
        change,
        approvals: vec![Approval { member, signature }; Committee::MEMBERS_MAX],
        acceptances: vec![acceptance; Committee::MEMBERS_MAX],
    };
    let bytes = borsh::to_vec(&largest).expect("encoding into memory cannot fail");
    assert!(bytes.len() <= SignedChange::BYTES_MAX, "{}", bytes.len());
}

#[test]
fn the_golden_statements() {
    let digest = change().digest();
    assert_eq!(digest.to_hex(), "f20bc12358ccf71ad6b54d54d293412c59b82d08d039ee6e3c36c417e1ab14b0");
    let scope = genesis().scope();
    let head = |kind: &str| [kind.as_bytes(), &scope.network.0, &scope.epoch.0].concat();
    let approval = [&head("quorate/v1/CHANGE/")[..], &digest.0].concat();
    assert_eq!(change().approval_statement(&genesis()), approval);
    let state = [2, 1, 0, 0, 0, 0, 0, 0];
    let acceptance = [&head("quorate/v1/ACCEPTANCE/")[..], &digest.0, &[3, 0], &state].concat();
    let made = change().acceptance_statement(&genesis(), ReplicaId(3), Height(0x0102));
    assert_eq!(made, acceptance);
}
