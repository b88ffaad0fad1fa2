use super::{CertifiedBy, ExportedState, ExportedStateError};
use crate::committee::tests::file;
use crate::executed::ExecutionCertificate;
use crate::{
    Committee, CommitteeError, CommitteeFile, Header, Height, Manifest, NetworkId, Purpose,
    Rejected,
};
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_crypto::{Bitmap, Digest, KeyCache, KeyFile, Policy, SchemeKind, hash};

fn genesis() -> Committee {
    Committee::load(&file(4), KeyCache::Off).expect("a sound file")
}

fn header(height: u64) -> Header {
    Header { height: Height(height), state: hash(b"state"), ..Header::default() }
}

/// What these members sign of a header.
fn certify(members: &[u8], header: Header) -> ExecutionCertificate {
    let committee = genesis();
    let statement = header.statement(committee.scope());
    let share = |member: &u8| {
        let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[member + 1; 32]);
        (usize::from(*member), committee.sign(Purpose::Execute, &keys.voting, &statement))
    };
    let shares: Vec<_> = members.iter().map(share).collect();
    let (scheme, _) = committee.scheme(Purpose::Execute);
    let combined = scheme.combine(&statement, &shares, &Bitmap::new(4), Policy::Aggregate);
    ExecutionCertificate { header, certificate: combined.certificate.expect("good shares") }
}

fn state(height: u64, certificate: Option<ExecutionCertificate>) -> ExportedState {
    let (service, chunks) = ("noop".to_owned(), vec![hash(b"chunk")]);
    let manifest = Manifest { service, header: header(height), operations: 3, chunks };
    ExportedState { network: genesis().network(), steps: Vec::new(), manifest, certificate }
}

fn refusal(state: &ExportedState) -> ExportedStateError {
    state.check(genesis(), KeyCache::Off).expect_err("it is refused")
}

#[test]
fn a_state_is_believed_with_an_honest_members_word() {
    let good = state(8, Some(certify(&[1, 3], header(8))));
    let (history, by) = good.check(genesis(), KeyCache::Off).expect("it holds");
    assert_eq!((history.steps().len(), by), (0, CertifiedBy::Members));
    assert_eq!(ExportedState::decode(&good.encode()), Some(good.clone()));
    assert_eq!(ExportedState::decode(&good.encode()[1..]), None);

    let few = state(8, Some(certify(&[1], header(8))));
    assert_eq!(refusal(&few), ExportedStateError::Certificate(Rejected::BelowThreshold));
    assert_eq!(refusal(&state(8, None)), ExportedStateError::Uncertified);
    let network = NetworkId([7; 32]);
    let elsewhere = ExportedState { network, ..good };
    let expected = genesis().network();
    let other = ExportedStateError::OtherNetwork { found: network, expected };
    assert_eq!(refusal(&elsewhere), other);
}

/// ★ What members signed is this state's own root.
fn check_the_certificate_is_of_the_state() {
    let other = state(8, Some(certify(&[0, 1], header(16))));
    assert_eq!(refusal(&other), ExportedStateError::OtherHeader);
}

#[test]
fn the_certificate_is_of_the_state() {
    check_the_certificate_is_of_the_state();
}

#[test]
fn another_states_certificate_is_noticed() {
    assert_noticed(Mutant::StateOfOtherHeader, check_the_certificate_is_of_the_state);
}

/// The state that a network begins with is part of what it is, and no later file's to say.
#[test]
fn a_network_is_named_by_the_state_that_it_begins_with() {
    let from = state(8, None).from_state();
    let founding = |from| CommitteeFile { from_state: Some(from), ..file(4) };
    let base = founding(from);
    let mut ids = vec![file(4).network_id(), base.network_id()];
    let mut digests = vec![file(4).digest(), base.digest()];
    let mut others = [from; 4];
    others[0].network = NetworkId([1; 32]);
    others[1].height = Height(9);
    others[2].root = Digest::ZERO;
    others[3].snapshot = Digest::ZERO;
    for other in others {
        ids.push(founding(other).network_id());
        digests.push(founding(other).digest());
    }
    ids.sort_unstable();
    ids.dedup();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!((ids.len(), digests.len()), (6, 6));

    let later = CommitteeFile { network: Some(base.network_id()), ..base };
    let ended = Committee::load(&file(4), KeyCache::Off).expect("sound");
    let later =
        CommitteeFile { network: Some(ended.network()), epoch: ended.epoch().next(), ..later };
    let hand_over = crate::HandOver { file: later.digest(), ..crate::HandOver::default() };
    let refused = ended.load_next(&later, &hand_over, KeyCache::Off).expect_err("refused");
    assert_eq!(refused, CommitteeError::BeginsTwice);
}

#[test]
fn a_network_that_goes_on_has_a_golden_id() {
    let founded = CommitteeFile { from_state: Some(state(8, None).from_state()), ..file(4) };
    let golden = "48455ac37a1111038262c44d7612417d46a7e82f2dd2bdb10dd7a2331d404fa0";
    assert_eq!(founded.network_id().to_string(), golden);
}
