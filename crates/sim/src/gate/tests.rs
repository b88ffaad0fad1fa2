use super::*;
use bytes::Bytes;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_types::machine::RecordKind;
use quorate_types::{ChainId, ReplicaId, Request};

fn record() -> Record {
    Record { kind: RecordKind::Safety, bytes: Bytes::from_static(b"a vote") }
}

fn body(sequence: u64) -> Arc<Body> {
    let secret = IdentitySecret::from_seed([1; 32]);
    let operation = Bytes::from_static(&[7; 1_000]);
    let request = Request::sign(&secret, ChainId([0; 32]), sequence, &[operation]).unwrap();
    Arc::new(Body::seal(ReplicaId(0), sequence, &[request]))
}

fn lengths(gate: &mut Gate<u8>, bytes_max: usize) -> Vec<(usize, usize)> {
    let mut groups = Vec::new();
    while let Some(entries) = gate.begin_in_turn(bytes_max) {
        let bodies = entries.iter().filter(|entry| is_bulk(entry)).count();
        groups.push((entries.len() - bodies, bodies));
        gate.finish();
    }
    groups
}

#[test]
fn a_send_leaves_with_the_group_of_the_record_before_it() {
    let mut gate = Gate::default();
    assert_eq!(gate.hold(1), Some(1), "nothing is persisted yet");
    gate.persist(record());
    assert_eq!(gate.hold(2), None);
    assert_eq!(gate.begin().map(|entries| entries.len()), Some(1));
    gate.persist(record());
    assert_eq!(gate.hold(4), None);
    assert!(gate.begin().is_none(), "one group at a time");
    assert_eq!(gate.finish().released, [2]);
    assert_eq!(gate.hold(5), None, "behind the record under way");
    gate.begin().unwrap();
    assert_eq!(gate.finish().released, [4, 5]);
}

#[test]
fn records_and_bodies_take_turns() {
    let mut gate = Gate::default();
    for sequence in 0..5 {
        gate.store(body(sequence));
        gate.persist(record());
    }
    assert_eq!(lengths(&mut gate, 2_000), [(5, 0), (0, 2), (0, 2), (0, 1)]);
}

#[test]
fn a_group_of_bodies_makes_no_record_durable() {
    let mut gate = Gate::default();
    gate.store(body(0));
    let stored = body(0).reference;
    assert_eq!(gate.begin_in_turn(1).unwrap().len(), 1);
    gate.persist(record());
    assert_eq!(gate.hold(1), None);
    let opened = gate.finish();
    assert_eq!((opened.released.len(), opened.stored), (0, vec![stored]));
    gate.begin_in_turn(1).unwrap();
    assert_eq!(gate.finish().released, [1]);
    assert_ne!(stored.digest, Digest::ZERO);
}
