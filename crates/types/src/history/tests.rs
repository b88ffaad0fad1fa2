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
    let (header, file) = (header(height), file_of(ended.epoch().0 + 1));
    let content = HandOver {
        height: Height(height),
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
