use super::{HandedOver, HandedOverError};
use crate::committee::tests::file;
use crate::halt::Halt;
use crate::{
    BlockId, Committee, CommitteeError, CommitteeFile, Epoch, HandOver, Header, Height, History,
    NetworkId, Purpose, Rejected, SignedHandOver,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Bitmap, KeyCache, KeyFile, Policy, SchemeKind, hash};
use std::ops::Range;

fn genesis() -> Committee {
    Committee::load(&file(4), KeyCache::Off).expect("a sound file")
}

/// The same members, an epoch on.
fn next(ends: &Committee) -> CommitteeFile {
    CommitteeFile { network: Some(ends.network()), epoch: ends.epoch().next(), ..file(4) }
}

fn header(height: u64) -> Header {
    Header { height: Height(height), proposed_at_ms: 1_700_000_000_000, ..Header::default() }
}

/// End of this committee's epoch with this header, by its first three members.
fn end(ends: &Committee, header: Header, file: CommitteeFile) -> HandedOver {
    end_by(0..3, ends, header, file)
}

fn end_by(signers: Range<u8>, ends: &Committee, header: Header, file: CommitteeFile) -> HandedOver {
    let (height, root) = (header.height, header.root());
    let content = HandOver { height, stop: BlockId(hash(b"stop")), root, file: file.digest() };
    let statement = content.statement(ends.scope());
    let shares: Vec<_> = signers
        .map(|member| {
            let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[member + 1; 32]);
            let share = ends.sign(Purpose::HandOver, &keys.voting, &statement);
            (usize::from(member), share)
        })
        .collect();
    let (scheme, _) = ends.scheme(Purpose::HandOver);
    let combined =
        scheme.combine(&statement, &shares, &Bitmap::new(ends.size()), Policy::Aggregate);
    let certificate = combined.certificate.expect("good shares");
    HandedOver { signed: SignedHandOver { content, certificate }, header, file }
}

/// Two steps from the beginning of a network.
fn steps() -> [HandedOver; 2] {
    let first = genesis();
    let one = end(&first, header(9), next(&first));
    let second = one.check(&first, KeyCache::Off).expect("a good step");
    let two = end(&second, header(20), next(&second));
    [one, two]
}

#[test]
fn steps_lead_from_the_beginning_to_today() {
    let steps = steps();
    let history = History::walk(genesis(), &steps, KeyCache::Off).expect("good steps");
    let epochs: Vec<Epoch> = history.committees().iter().map(|one| one.epoch()).collect();
    assert_eq!(epochs, [Epoch(1), Epoch(2), Epoch(3)]);
    assert_eq!(history.committee().network(), genesis().network());
    let anchor = steps[1].anchor();
    assert_eq!((anchor.height, anchor.proposed_at_ms), (Height(20), 1_700_000_000_000));
    for step in &steps {
        assert_eq!(HandedOver::decode(&step.encode()).as_ref(), Ok(step));
    }
    let left_out = History::walk(genesis(), &steps[1..], KeyCache::Off).unwrap_err();
    let reason = Rejected::BadSignature("a hand-over");
    assert_eq!(left_out, HandedOverError::Signatures { epoch: Epoch(1), reason });
}

/// ★ The header is of the state that is handed over: nobody is told another time or root.
fn check_the_header_is_its() {
    let [step, _] = steps();
    for header in [header(10), Header { proposed_at_ms: 1, ..header(9) }] {
        let changed = HandedOver { header, ..step.clone() };
        let refused = changed.check(&genesis(), KeyCache::Off).unwrap_err();
        assert_eq!(refused, HandedOverError::OtherHeader(Epoch(1)));
    }
}

#[test]
fn the_header_is_of_the_state_that_is_handed_over() {
    check_the_header_is_its();
}

#[test]
fn another_header_is_noticed() {
    assert_noticed(Mutant::HandOverOtherHeader, check_the_header_is_its);
}

#[test]
fn other_files_are_refused() {
    let first = genesis();
    let [step, _] = steps();
    let mut moved = step.clone();
    moved.file.members[0].address = "elsewhere:1".into();
    let stranger = CommitteeFile { network: Some(NetworkId([9; 32])), ..next(&first) };
    let later = CommitteeFile { epoch: Epoch(3), ..next(&first) };
    let cases = [
        (moved, CommitteeError::OtherFile(step.file.digest())),
        (end(&first, header(9), stranger), CommitteeError::OtherNetwork(NetworkId([9; 32]))),
        (
            end(&first, header(9), later),
            CommitteeError::OtherEpoch { found: Epoch(3), expected: Epoch(2) },
        ),
    ];
    for (step, reason) in cases {
        let refused = step.check(&first, KeyCache::Off).unwrap_err();
        assert_eq!(refused, HandedOverError::File { epoch: Epoch(1), reason });
    }
}

/// ★ Its content identifies an end, and never who signed it.
fn check_two_ends_are_a_conflict() {
    let first = genesis();
    let [step, _] = steps();
    let by_others = end_by(1..4, &first, header(9), next(&first));
    assert_ne!(by_others.encode(), step.encode());
    assert_eq!(step.conflict(&by_others), None);
    let other = end_by(1..4, &first, header(10), next(&first));
    let conflict = step.conflict(&other);
    let Some(Halt::ConflictingHandOvers { height: Height(9), evidence }) = conflict else {
        panic!("{conflict:?}")
    };
    for signed in [&step.signed, &other.signed] {
        assert!(evidence.contains(&format!("{signed:?}")), "{evidence}");
    }
}

#[test]
fn two_ends_of_an_epoch_are_a_conflict() {
    check_two_ends_are_a_conflict();
}

#[test]
fn two_ends_without_a_conflict_are_noticed() {
    assert_noticed(Mutant::EndsDiffer, check_two_ends_are_a_conflict);
}

#[test]
fn bytes_of_no_step_are_refused() {
    for bytes in [Vec::new(), vec![7; 100], vec![0; HandedOver::BYTES_MAX + 1]] {
        assert_eq!(HandedOver::decode(&bytes), Err(HandedOverError::Malformed(bytes.len())));
    }
}
