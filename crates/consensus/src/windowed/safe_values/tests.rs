use super::*;
use crate::windowed::{Proposal, SlotCertificate, null_operation};
use quorate_crypto::{Aggregate, Certificate, KeyCache, KeyFile, SchemeKind, hash};
use quorate_types::{AgreedSettings, Anchor, CommitteeFile, Epoch, Member};

const A: &str = "A";
const B: &str = "B";

fn committee(members: u8, redundancy: u64) -> Committee {
    let member = |index: u8| {
        let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[index; 32]);
        Member::new(&keys.public(), String::new())
    };
    let file = CommitteeFile {
        name: "outcome".into(),
        network: None,
        epoch: Epoch(1),
        scheme: "ed25519".into(),
        redundancy,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..members).map(member).collect(),
    };
    Committee::load(&file, KeyCache::Off).expect("a sound committee")
}

fn certificate(view: u64, slot: u64, value: &str) -> SlotCertificate {
    let proposal =
        Proposal { view: View(view), slot: Height(slot), digest: hash(value.as_bytes()) };
    let nothing = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(Vec::new()) };
    SlotCertificate { proposal, certificate: nothing }
}

/// Report of a prepared value, which is not looked at here.
fn prepared(view: u64, slot: u64, value: &str) -> SlowReport {
    SlowReport::Prepared(certificate(view, slot, value), null_operation(Height(slot)))
}

/// View change with a report on slot 1: prepared and accepted, each as a view and a value.
fn says(signer: u16, slow: Option<(u64, &str)>, accepted: Option<(u64, &str)>) -> Arc<ViewChange> {
    let slow = slow.map(|(view, value)| prepared(view, 1, value));
    let fast =
        accepted.map(|(view, value)| FastReport::Accepted(View(view), hash(value.as_bytes())));
    change(signer, slow.unwrap_or(SlowReport::Nothing), fast.unwrap_or(FastReport::Nothing))
}

fn change(signer: u16, slow: SlowReport, fast: FastReport) -> Arc<ViewChange> {
    Arc::new(ViewChange {
        view: View(9),
        signer: ReplicaId(signer),
        stable: None,
        slots: vec![SlotReport { slot: Height(1), slow, fast }],
        signature: Vec::new(),
    })
}

fn first(changes: &[Arc<ViewChange>], committee: &Committee) -> SafeValue {
    safe_values(changes, committee, Anchor::default())
        .slots
        .remove(&Height(1))
        .unwrap_or(SafeValue::Null)
}

fn adopted(value: &str) -> SafeValue {
    SafeValue::Propose(hash(value.as_bytes()))
}

/// h1 and h2 accepted A, h3 accepted B, z signed both; A was prepared at h1 and h2 and decided at
/// h1 alone. Of h2, h3 and z the last two speak for B in the same view.
#[test]
fn the_tie_vector() {
    let committee = committee(4, 0);
    let changes = [
        says(1, Some((0, A)), Some((0, A))),
        says(2, None, Some((0, B))),
        says(3, None, Some((0, B))),
    ];
    assert_eq!(first(&changes, &committee), adopted(A));
}

#[test]
fn a_later_fast_value_beats_an_earlier_prepared_one() {
    let committee = committee(4, 0);
    let changes = [
        says(1, Some((1, A)), Some((2, B))),
        says(2, None, Some((2, B))),
        says(3, None, Some((1, A))),
    ];
    assert_eq!(first(&changes, &committee), adopted(B));
}

/// With redundant members f+1 reports may all be of members that did not decide: it takes f+c+1.
#[test]
fn a_fast_value_takes_f_c_1_reports() {
    let committee = committee(6, 1);
    let mut changes =
        vec![says(0, None, Some((3, A))), says(1, None, Some((3, A))), says(2, None, None)];
    changes.extend([says(3, None, None), says(4, None, None)]);
    assert_eq!(first(&changes, &committee), SafeValue::Null);
    changes[2] = says(2, None, Some((3, A)));
    assert_eq!(first(&changes, &committee), adopted(A));
}

/// The (f+c+1)-th largest view counts: views of single members do not make a value later.
#[test]
fn one_member_does_not_lift_a_value() {
    let committee = committee(4, 0);
    let changes = [
        says(0, None, Some((8, B))),
        says(1, None, Some((1, B))),
        says(2, Some((2, A)), Some((2, A))),
    ];
    assert_eq!(first(&changes, &committee), adopted(A));
}

#[test]
fn two_fast_values_of_one_view_are_none() {
    let committee = committee(7, 0);
    let report = |signer, value| says(signer, None, Some((2, value)));
    let changes: Vec<_> = (0..6).map(|i| report(i, if i < 3 { A } else { B })).collect();
    assert_eq!(first(&changes, &committee), SafeValue::Null);
}

/// Of two values that many accepted the later one counts.
#[test]
fn the_later_of_two_fast_values_is_adopted() {
    let committee = committee(7, 0);
    let report = |signer, view, value| says(signer, None, Some((view, value)));
    for (later, earlier) in [(A, B), (B, A)] {
        let of = |i| if i < 3 { report(i, 3, later) } else { report(i, 2, earlier) };
        let changes: Vec<_> = (0..6).map(of).collect();
        assert_eq!(first(&changes, &committee), adopted(later));
    }
}

#[test]
fn a_proof_decides_whatever_else_is_said() {
    let committee = committee(4, 0);
    let proof = certificate(1, 1, A);
    let decided = change(2, SlowReport::Decided(proof.clone()), FastReport::Nothing);
    let changes = [says(0, None, Some((5, B))), says(1, Some((5, B)), Some((5, B))), decided];
    let expected = SafeValue::Decided(Proof { path: Path::Slow, certificate: proof });
    assert_eq!(first(&changes, &committee), expected);
}

/// Slots are filled up to the last of which there is evidence, and not one further.
#[test]
fn gaps_are_filled_up_to_the_evidence() {
    let committee = committee(4, 0);
    let mut late = says(0, None, None).as_ref().clone();
    late.slots[0].slot = Height(4);
    late.slots[0].slow = prepared(1, 4, A);
    let mut empty = says(1, None, None).as_ref().clone();
    empty.slots[0].slot = Height(9);
    let changes = [Arc::new(late), Arc::new(empty), says(2, None, None)];
    let outcome = safe_values(&changes, &committee, Anchor::default());
    assert_eq!(outcome.last, Height(4));
    let chosen: Vec<SafeValue> = outcome.slots.into_values().collect();
    assert_eq!(chosen, [SafeValue::Null, SafeValue::Null, SafeValue::Null, adopted(A)]);
}

#[test]
fn nothing_known_is_nothing_to_do() {
    let committee = committee(4, 0);
    let changes = [says(0, None, None), says(1, None, None), says(2, None, None)];
    let outcome = safe_values(&changes, &committee, Anchor::default());
    assert_eq!((outcome.last, outcome.slots.len()), (Height(0), 0));
}

/// n = 9, f = 2, c = 1 (quorum 6, fast 8, honest 7): what was decided in a view, in either way, is
/// what any seven reports lead to, whatever members 7 and 8 claim, who voted for both values. Six
/// honest members decided it fast, and any of the seven may have seen it prepared; or four voted
/// for it, and any four or more, whatever they voted for, saw it prepared and voted to decide it.
#[test]
fn what_was_decided_is_adopted() {
    let committee = committee(9, 1);
    let saw = |fast: bool| (0..1_u8 << 7).filter(move |saw| fast || saw.count_ones() >= 4);
    let ways = [true, false].into_iter().flat_map(|fast| saw(fast).map(move |saw| (fast, saw)));
    let cases = ways.flat_map(|way| (0..49 * 9_usize).map(move |case| (way, case)));
    for ((fast, saw), case) in cases {
        let (claims, rotation) = (case % 49, case / 49);
        let view = 3;
        let voted_for_a = if fast { 6 } else { 4 };
        let honest = (0..7_u16).map(|member| {
            let accepted = if member < voted_for_a { A } else { B };
            let prepared = saw >> member & 1 == 1;
            says(member, prepared.then_some((view, A)), Some((view, accepted)))
        });
        // Seven claims each: nothing, or B in some view up to this one.
        let faulty = [(7, claims % 7), (8, claims / 7)].map(|(member, claim)| {
            let claim = (claim > 0).then(|| (view.min(claim as u64 - 1), B));
            says(member, None, claim)
        });
        let mut all: Vec<_> = honest.chain(faulty).collect();
        all.rotate_left(rotation);
        all.truncate(7);
        assert_eq!(first(&all, &committee), adopted(A), "fast: {fast}, saw {saw:b}, case {case}");
    }
}

#[test]
fn each_rule_left_out_is_noticed() {
    use quorate_crypto::mutants::assert_noticed;
    assert_noticed(Mutant::TieGoesToFast, the_tie_vector);
    assert_noticed(Mutant::FastByFew, a_fast_value_takes_f_c_1_reports);
}
