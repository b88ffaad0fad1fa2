//! Formats, pinned by golden bytes: whoever changes one sees it here.

use super::harness::*;
use super::*;

/// One message of each kind, as member 1 or everybody may have sent it.
fn messages(verifier: &Verifier) -> Vec<(&'static str, Message)> {
    let both = [A, B].map(|stamp| signed_pre_prepare(verifier, 1, 1, value(1, stamp)));
    let [one, other] = both;
    let fast = certificate(verifier, Kind::Prepare, at(1, 3, A), &[0, 1, 2, 3]);
    let mut reports = vec![prepared_report(prepared(verifier, at(1, 2, A)), A)];
    reports[0].fast = FastReport::Accepted(View(1), at(1, 2, A).digest);
    let (slow, slot) = (SlowReport::Nothing, Height(3));
    reports.push(SlotReport { slot, slow, fast: FastReport::Decided(fast) });
    let stable = checkpoint(verifier, CHECKPOINT_EVERY, &[0, 1, 2]);
    let lacks = vec![(Height(4), hash(b"value"))];
    let status = Status { has: vec![Height(3)], lacks, ..status(2) };
    let changes = empty_changes(verifier, 2);
    vec![
        ("pre-prepare", pre_prepare(verifier, 1, value(1, A))),
        ("sign-share", sign_share(verifier, 2, at(1, 1, A))),
        ("prepare", Message::Prepare(prepared(verifier, at(1, 1, A)))),
        ("commit-share", commit_share(verifier, 2, at(1, 1, A))),
        ("proof", Message::Proof(proof(verifier, at(1, 1, A)))),
        ("payload", Message::Payload(value(1, A))),
        ("decided", Message::Decided(Box::new(decided(verifier, 1, value(1, A))))),
        ("view change", Message::ViewChange(Box::new(change(verifier, 2, 3, reports)))),
        ("new view", new_view(verifier, 2, &changes)),
        ("fetch", Message::FetchViewChanges(View(2), vec![ReplicaId(1), ReplicaId(3)])),
        ("status", Message::Status(status)),
        ("stable", Message::Stable(stable)),
        ("equivocation", Message::Equivocation(Box::new((one, other)))),
        ("suspicion", Message::Suspicion(View(2))),
    ]
}

fn hashed(bytes: &[u8]) -> String {
    hash(bytes).to_hex()[..16].to_owned()
}

/// In the order of the test that reads them.
const GOLDEN: [&str; 18] = [
    "19d6644125c92c78",
    "369ef0a0373d1fc1",
    "83ebd09707616ecc",
    "a72a1322fc3cb6b7",
    "48333738fcfc8510",
    "03ab3d45e7f4f1cb",
    "ede6a461e2424182",
    "02903106c0ec4caa",
    "81fbb55a2d661e6d",
    "4197c4cedfd5d6a3",
    "84dd90471e56ebc2",
    "63ff011c3bd911d4",
    "b801d32e6cee2e7e",
    "08fc89d7cd877cd0",
    "a74e2a61a771d433",
    "6ba2aa987e370eb0",
    "a4f92b6721fe0beb",
    "2d9189d64d168c5f",
];

#[test]
fn golden_bytes() {
    let verifier = verifier(ProtocolKind::Sbft);
    let said = messages(&verifier);
    let mut found: Vec<(&str, String)> =
        said.iter().map(|(name, message)| (*name, hashed(&encode(message)))).collect();
    let view = ViewRecord {
        epoch: Epoch(1),
        view: View(3),
        in_view_change: true,
        base: Height(5),
        stable: Some(checkpoint(&verifier, CHECKPOINT_EVERY, &[0, 1, 2])),
    };
    let slot = SlotRecord {
        epoch: Epoch(1),
        slot: Height(1),
        accepted: Some((View(2), at(2, 1, B).digest)),
        prepared: Some(prepared(&verifier, at(1, 1, A))),
        payloads: vec![value(1, B), value(1, A)],
    };
    found.push(("view record", hashed(&view.encode().bytes)));
    found.push(("slot record", hashed(&slot.encode().bytes)));
    found.push(("decided record", hashed(&decided(&verifier, 1, value(1, A)).encode())));
    found.push(("genesis", hashed(&verifier.genesis().0.0)));
    let texts: Vec<&str> = found.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, GOLDEN, "{found:?}");
}

#[test]
fn everything_decodes_to_itself() {
    let verifier = verifier(ProtocolKind::Sbft);
    for (name, message) in messages(&verifier) {
        let bytes = encode(&message);
        assert_eq!(borsh::from_slice::<Message>(&bytes).ok().as_ref(), Some(&message), "{name}");
        assert!(borsh::from_slice::<Message>(&bytes[..bytes.len() - 1]).is_err(), "{name}");
    }
}

#[test]
fn every_sample_passes_its_check() {
    let verifier = verifier(ProtocolKind::Sbft);
    for (name, message) in messages(&verifier) {
        assert!(receive(&verifier, message).is_ok(), "{name}");
    }
}

/// Statements of each kind are of one width, and start with kind, chain and epoch: a signature of
/// one is none of another.
#[test]
fn statements_of_each_kind_differ() {
    let verifier = verifier(ProtocolKind::Pbft);
    let proposal = at(1, 1, A);
    let kinds = [Kind::PrePrepare, Kind::Prepare, Kind::Commit];
    let statements = kinds.map(|kind| verifier.statement(kind, &proposal));
    let alike: BTreeSet<&Vec<u8>> = statements.iter().collect();
    assert_eq!(alike.len(), kinds.len());
    for (kind, statement) in kinds.into_iter().zip(&statements) {
        let far = verifier.statement(kind, &at(u64::MAX, u64::MAX, B));
        assert_eq!(far.len(), statement.len(), "{kind:?}");
        let signature = keys(2).voting.sign(statement);
        let (scheme, _) = verifier.committee().scheme(Purpose::Vote);
        for other in &statements {
            let verifies = scheme.verify_share(other, 2, &signature).is_ok();
            assert_eq!(verifies, other == statement, "{kind:?}");
        }
    }
}

/// A payload's digest is that of its header, whatever the view; every field of the header counts.
#[test]
fn a_value_has_one_digest_in_every_view() {
    let payload = value(1, A);
    assert_eq!(at(1, 1, A).digest, at(9, 1, A).digest);
    let mut other = payload.clone();
    other.header.height = Height(2);
    assert_ne!(digest_of(&other), digest_of(&payload));
    let mut other = payload.clone();
    other.header.proposed_at_ms += 1;
    assert_ne!(digest_of(&other), digest_of(&payload));
    let mut other = payload.clone();
    other.header.payload_root = hash(b"other");
    assert_ne!(digest_of(&other), digest_of(&payload));
}
