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
    "759f1b437abf3f7c",
    "43a85f962827d968",
    "2e4d60b40b7b6136",
    "04985fd9212d8a92",
    "cf2ad1880c5a0b96",
    "dfd8fbe3c0534c98",
    "3a2b97b2ca0913d0",
    "7364a3f5de81641a",
    "14d9e646cea4b9b3",
    "4197c4cedfd5d6a3",
    "84dd90471e56ebc2",
    "ad8b2747e6ea3b2e",
    "9717e2f5473982e9",
    "08fc89d7cd877cd0",
    "aff6ce6bf306549d",
    "b5ad61e3f6377282",
    "351ff8ba85475130",
    "a39dd265fcb699a0",
];

#[test]
fn golden_bytes() {
    let verifier = verifier(ProtocolKind::Sbft);
    let said = messages(&verifier);
    let mut found: Vec<(&str, String)> =
        said.iter().map(|(name, message)| (*name, hashed(&encode(message)))).collect();
    let view = ViewRecord {
        epoch: epoch(),
        view: View(3),
        in_view_change: true,
        base: Height(5),
        stable: Some(checkpoint(&verifier, CHECKPOINT_EVERY, &[0, 1, 2])),
    };
    let slot = SlotRecord {
        epoch: epoch(),
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

/// Statements of each kind are of one width, and start with kind, network and epoch: a signature of
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
