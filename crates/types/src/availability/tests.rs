use super::Available;
use crate::{EpochId, NetworkId, ReplicaId, Scope};
use quorate_crypto::{Digest, hash};

const FIRST: u64 = 3 << Available::SEQUENCE_BITS;

fn link_over(author: u16, bodies: &[(u64, &[u8])]) -> Digest {
    bodies.iter().fold(Available::start(ReplicaId(author), FIRST), |link, (sequence, body)| {
        Available::link(link, *sequence, hash(body))
    })
}

#[test]
fn a_link_names_every_body_before_it_and_its_place() {
    let chain = link_over(1, &[(FIRST, b"a"), (FIRST + 1, b"b")]);
    let others = [
        link_over(2, &[(FIRST, b"a"), (FIRST + 1, b"b")]),
        link_over(1, &[(FIRST, b"x"), (FIRST + 1, b"b")]),
        link_over(1, &[(FIRST, b"b"), (FIRST + 1, b"a")]),
        link_over(1, &[(FIRST, b"a"), (FIRST + 2, b"b")]),
        link_over(1, &[(FIRST + 1, b"b")]),
    ];
    assert!(!others.contains(&chain));
}

#[test]
fn a_start_is_the_upper_part_of_a_number() {
    assert_eq!(Available::first_sequence(FIRST), FIRST);
    assert_eq!(Available::first_sequence(FIRST + 77), FIRST);
    assert_eq!(Available::first_sequence(FIRST - 1), FIRST - (1 << Available::SEQUENCE_BITS));
}

/// The statement has one width and one form.
#[test]
fn golden_statement() {
    let available =
        Available { author: ReplicaId(0x0102), sequence: 0x0304, link: Digest([9; 32]) };
    let expected = [
        b"quorate/v1/AVAILABLE/".as_slice(),
        &[0xab; 32],
        &[0xcd; 32],
        &[2, 1],
        &[4, 3, 0, 0, 0, 0, 0, 0],
        &[9; 32],
    ]
    .concat();
    let scope = Scope { network: NetworkId([0xab; 32]), epoch: EpochId([0xcd; 32]) };
    assert_eq!(available.statement(scope), expected);
}
