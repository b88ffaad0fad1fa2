use super::{KEPT_MAX, Replies};
use crate::testing::client;
use bytes::Bytes;
use quorate_types::request::Answer;
use quorate_types::{ClientId, Height, Outcome, Results};

const MIB: usize = 1024 * 1024;

/// An answer that counts for this many bytes: two results and what is kept beside them.
fn answer(sequence: u64, size: usize) -> Answer {
    let result = |bytes| Outcome::Applied(Bytes::from(vec![7; bytes]));
    Answer {
        client: ClientId(client().public()),
        sequence,
        height: Height(1),
        results: Results::new(vec![result(10), result(size - 200 - 2 * 32 - 10)]),
        index: None,
    }
}

fn kept(replies: &Replies, among: u64) -> Vec<u64> {
    let client = ClientId(client().public());
    (0..among).filter(|sequence| replies.get(client, *sequence).is_some()).collect()
}

#[test]
fn the_oldest_answers_are_forgotten_first() {
    let mut replies = Replies::default();
    let most = KEPT_MAX as u64;
    for sequence in 0..most {
        replies.keep(answer(sequence, 300));
    }
    assert_eq!(kept(&replies, 2 * most).len(), KEPT_MAX, "as many as may be");
    for sequence in most..most + 3 {
        replies.keep(answer(sequence, 300));
    }
    assert!(kept(&replies, 2 * most).into_iter().eq(3..most + 3));
    assert_eq!(replies.occupancy().entries, KEPT_MAX);
}

/// Sixteen mebibytes of answers are kept, and an answer that comes again counts once.
#[test]
fn answers_are_bounded_in_bytes() {
    let mut replies = Replies::default();
    for _ in 0..2 {
        (0..16).for_each(|sequence| replies.keep(answer(sequence, MIB)));
        assert!(kept(&replies, 100).into_iter().eq(0..16));
    }
    (16..40).for_each(|sequence| replies.keep(answer(sequence, MIB)));
    assert!(kept(&replies, 100).into_iter().eq(24..40), "the last sixteen");
    replies.keep(answer(40, MIB + 1));
    assert!(kept(&replies, 100).into_iter().eq(26..41), "a byte too many");
}
