use super::History;
use crate::committee::tests::file;
use crate::executed::ExecutionCertificate;
use crate::{
    BlockId, Committee, CommitteeError, CommitteeFile, Epoch, HandOver, HandedOver,
    HandedOverError, Header, Height, Purpose, Rejected, ReplicaId, SignedHandOver,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Bitmap, Certificate, KeyCache, KeyFile, Policy, SchemeKind, hash};

/// Last heights of the first two epochs.
const ENDS: [u64; 2] = [9, 20];

fn genesis() -> Committee {
    Committee::load(&file(4), KeyCache::Off).expect("a sound file")
}

/// File of a later epoch of the network: nobody of the first is in it.
fn file_of(epoch: u64) -> CommitteeFile {
    let mut next = CommitteeFile { network: Some(genesis().network()), ..file(12) };
    next.epoch = Epoch(epoch);
    next.members.drain(..8);
    next
}

/// A certificate by these members, whose keys are known by their seeds.
fn certify(by: &Committee, purpose: Purpose, statement: &[u8], signers: &[u16]) -> Certificate {
    let key = |seed: u8| KeyFile::from_seed(SchemeKind::Ed25519, &[seed; 32]);
    let share = |signer: &u16| {
        let identity = by.identity(ReplicaId(*signer)).expect("a member");
        let keys = (1..=12).map(key).find(|keys| keys.identity.public() == *identity);
        (usize::from(*signer), by.sign(purpose, &keys.expect("one of ours").voting, statement))
    };
    let shares: Vec<_> = signers.iter().map(share).collect();
    let (scheme, _) = by.scheme(purpose);
    let nobody = Bitmap::new(by.size());
    let combined = scheme.combine(statement, &shares, &nobody, Policy::Aggregate);
    combined.certificate.expect("good shares")
}

fn header(height: u64) -> Header {
    Header { height: Height(height), proposed_at_ms: height, ..Header::default() }
}

/// End of an epoch of this committee, signed by these members.
fn step(ended: &Committee, height: u64, signers: &[u16]) -> HandedOver {
    step_with(ended, header(height), signers)
}

fn step_with(ended: &Committee, header: Header, signers: &[u16]) -> HandedOver {
    let file = file_of(ended.epoch().0 + 1);
    let content = HandOver {
        height: header.height,
        stop: BlockId(hash(b"stop")),
        root: header.root(),
        file: file.digest(),
    };
    let statement = content.statement(ended.scope());
    let certificate = certify(ended, Purpose::HandOver, &statement, signers);
    HandedOver { signed: SignedHandOver { content, certificate }, header, file }
}

fn append(history: &mut History, step: HandedOver) -> Result<(), HandedOverError> {
    history.append(step, KeyCache::Off)
}

/// Three epochs.
fn history() -> History {
    let mut history = History::new(genesis().into());
    for height in ENDS {
        let step = step(history.committee(), height, &[0, 1, 2]);
        append(&mut history, step).expect("a sound step");
    }
    history
}

fn executed(by: &Committee, height: u64) -> ExecutionCertificate {
    let header = header(height);
    let statement = header.statement(by.scope());
    let certificate = certify(by, Purpose::Execute, &statement, &[0, 1]);
    ExecutionCertificate { header, certificate }
}

/// ★ Each height is of one epoch, whose keys alone prove anything about it: those of long ago may
/// be known to anybody.
fn check_proofs_count_under_the_owner_of_their_height() {
    let history = history();
    for (height, owner) in [(1, 0), (9, 0), (10, 1), (20, 1), (21, 2), (1_000, 2)] {
        for (epoch, committee) in history.committees().iter().enumerate() {
            let proof = executed(committee, height);
            let expected = if epoch == owner {
                Ok(())
            } else {
                Err(Rejected::BadSignature("an execution certificate"))
            };
            let found = proof.check(history.owner_of(Height(height)));
            assert_eq!(found, expected, "height {height}, keys of epoch {epoch}");
        }
    }
}

#[test]
fn proofs_count_under_the_owner_of_their_height() {
    check_proofs_count_under_the_owner_of_their_height();
}

#[test]
fn proofs_by_former_keys_are_noticed() {
    assert_noticed(Mutant::FirstEpochOwnsAll, check_proofs_count_under_the_owner_of_their_height);
}

#[test]
fn a_false_step_leaves_the_epoch_in_force() {
    let mut history = History::new(genesis().into());
    let few = step(history.committee(), 9, &[0, 1]);
    let (epoch, reason) = (Epoch(1), Rejected::BelowThreshold);
    assert_eq!(append(&mut history, few), Err(HandedOverError::Signatures { epoch, reason }));
    let sound = step(history.committee(), 9, &[1, 2, 3]);
    let other = HandedOver { file: file_of(3), ..sound.clone() };
    let reason = CommitteeError::OtherEpoch { found: Epoch(3), expected: Epoch(2) };
    assert_eq!(append(&mut history, other), Err(HandedOverError::File { epoch, reason }));
    assert_eq!((history.committee().epoch(), history.steps().len()), (Epoch(1), 0));
    assert_eq!(append(&mut history, sound), Ok(()));
    assert_eq!((history.committee().epoch(), history.steps().len()), (Epoch(2), 1));
}

const DAY_MS: u64 = 86_400_000;

/// An end of the first epoch that a quorum of it signed, which says that it ended at this time.
fn end_at(time_ms: u64) -> HandedOver {
    step_with(&genesis(), Header { proposed_at_ms: time_ms, ..header(9) }, &[0, 1, 2])
}

/// ★ All keys of an epoch may leak once nobody guards them. Within the trusting period their word
/// is taken, as their owners' is; beyond it whoever shows an end of their epoch is refused,
/// whatever time it says that it ended at.
fn check_leaked_keys_end_no_epoch() {
    let now_ms = 1_000 * DAY_MS;
    let ago_ms = |days| now_ms - days * DAY_MS;
    let too_old =
        |age_days| Err(HandedOverError::TooOld { epoch: Epoch(1), age_days, period_days: 180 });
    let cases = [
        // Known in force, said to have ended.
        (Some(0), 0, Ok(())),
        (Some(180), 0, Ok(())),
        (Some(181), 0, too_old(181)),
        (Some(900), 180, too_old(900)),
        // Nobody says of the founding file that it was in force when it was fetched.
        (None, 180, Ok(())),
        (None, 181, too_old(181)),
        (Some(3), 700, too_old(700)),
    ];
    for (known, ended, expected) in cases {
        let history = History::new(genesis().into());
        let mut history = known.map(ago_ms).into_iter().fold(history, History::known_at);
        let followed = history.follow(end_at(ago_ms(ended)), now_ms, KeyCache::Off);
        assert_eq!(followed, expected, "known in force {known:?}, ended {ended} days ago");
        assert_eq!(history.committees().len(), if expected.is_ok() { 2 } else { 1 });
    }
}

#[test]
fn leaked_keys_end_no_epoch() {
    check_leaked_keys_end_no_epoch();
}

#[test]
fn leaked_keys_without_a_period_are_noticed() {
    assert_noticed(Mutant::TrustForEver, check_leaked_keys_end_no_epoch);
}

#[test]
fn the_word_of_leaked_keys_about_the_time_is_noticed() {
    assert_noticed(Mutant::TrustShownTime, check_leaked_keys_end_no_epoch);
}

/// Steps from a source that is trusted are taken whatever their age, and the last of them says when
/// its epoch was in force: from there the period counts anew.
#[test]
fn a_newer_history_leads_on() {
    let now_ms = 1_000 * DAY_MS;
    let mut history = History::new(genesis().into()).known_at(now_ms - 900 * DAY_MS);
    append(&mut history, end_at(now_ms - 100 * DAY_MS)).expect("a sound step");
    assert_eq!(history.known_ms(), Some(now_ms - 100 * DAY_MS));
    let last = Header { proposed_at_ms: now_ms - DAY_MS, ..header(20) };
    let shown = step_with(history.committee(), last, &[0, 1, 2]);
    let late = history.follow(shown.clone(), now_ms + 81 * DAY_MS, KeyCache::Off);
    let (epoch, age_days) = (Epoch(2), 181);
    assert_eq!(late, Err(HandedOverError::TooOld { epoch, age_days, period_days: 180 }));
    assert_eq!(history.follow(shown, now_ms + 80 * DAY_MS, KeyCache::Off), Ok(()));
    assert_eq!(history.known_ms(), Some(now_ms - DAY_MS));
}

/// A false signature is said to be one, however old the file is: who shows it lies.
#[test]
fn signatures_are_checked_before_ages() {
    let mut history = History::new(genesis().into()).known_at(0);
    let few = step(&genesis(), 9, &[0, 1]);
    let (epoch, reason) = (Epoch(1), Rejected::BelowThreshold);
    let refused = history.follow(few, 1_000 * DAY_MS, KeyCache::Off);
    assert_eq!(refused, Err(HandedOverError::Signatures { epoch, reason }));
}

type Way = fn(&mut History, Vec<HandedOver>) -> Result<(), HandedOverError>;

/// Steps go on from those that are known, whichever of them they begin with, and never beside them:
/// those that are shown, and those of a source that is trusted.
#[test]
fn what_is_shown_goes_on_from_what_is_known() {
    let all = history();
    let follow: Way = |history, shown| history.follow_all(shown, DAY_MS, KeyCache::Off);
    let append: Way = |history, steps| history.append_all(steps, KeyCache::Off);
    for (way, known) in
        [follow, append].into_iter().flat_map(|way| (0..=2).map(move |known| (way, known)))
    {
        let known = &all.steps()[..known];
        let go_on = |shown: Vec<HandedOver>| {
            let mut history = History::walk(genesis(), known, KeyCache::Off).expect("sound steps");
            way(&mut history, shown).map(|()| history.steps().to_vec())
        };
        assert_eq!(go_on(all.steps().to_vec()), Ok(all.steps().to_vec()));
        let fork = end_at(DAY_MS);
        let expected = match known {
            [] => Ok(vec![fork.clone()]),
            _ => Err(HandedOverError::OtherEnd(Epoch(2))),
        };
        assert_eq!(go_on(vec![fork]), expected);
    }
}
