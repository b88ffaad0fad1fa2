use super::{CompletedResult, RequestStatus, Session};
use bytes::Bytes;
use proptest::prelude::*;
use quorate_types::{Height, Outcome, Results};
use std::collections::BTreeSet;

/// The encoding under the session root, with which a client's entry begins.
#[test]
fn golden_bytes() {
    let mut session = Session::default();
    for sequence in [0, 1, 3, 66 - 1] {
        session.mark(sequence);
    }
    assert_eq!(session, Session { lowest: 2, completed: 1 << 1 | 1 << 63 });
    let encoded = [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x80];
    assert_eq!(session.encode(), encoded);
}

#[test]
fn large_results_leave_their_digest() {
    let results = |bytes: usize| Results::new(vec![Outcome::Applied(Bytes::from(vec![7; bytes]))]);
    let small = CompletedResult::new(Height(3), results(Session::RESULT_BYTES_MAX - 100));
    let large = CompletedResult::new(Height(3), results(Session::RESULT_BYTES_MAX));
    assert_eq!(borsh::from_slice(&small.kept()).ok(), Some(small));
    let left: CompletedResult = borsh::from_slice(&large.kept()).expect("decodes");
    assert_eq!(left, CompletedResult { results: None, ..large });
}

#[test]
fn sequence_numbers_may_reach_their_end() {
    let mut session = Session { lowest: u64::MAX - 1, completed: 0 };
    session.mark(u64::MAX - 1);
    assert_eq!(session.status(u64::MAX - 1), RequestStatus::Completed);
    assert_eq!(session.status(u64::MAX), RequestStatus::Fresh);
}

proptest! {
    /// The window agrees with a set of everything that was ever completed.
    #[test]
    fn the_window_agrees_with_a_set(arrivals in prop::collection::vec(0_u64..300, 0..600)) {
        let mut session = Session::default();
        let mut completed = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for sequence in arrivals {
            let lowest = (0..).find(|n| !completed.contains(n)).expect("some");
            prop_assert_eq!(session.lowest, lowest);
            let expected = if completed.contains(&sequence) {
                RequestStatus::Completed
            } else if sequence >= lowest + Session::WINDOW {
                RequestStatus::TooFarAhead
            } else {
                RequestStatus::Fresh
            };
            prop_assert_eq!(session.status(sequence), expected);
            if expected == RequestStatus::Fresh {
                completed.insert(sequence);
                gone.extend(session.mark(sequence));
            }
        }
        let forgotten = session.lowest.saturating_sub(Session::WINDOW);
        prop_assert_eq!(gone, (0..forgotten).collect::<BTreeSet<_>>());
    }

    /// A client that keeps to its window is never too far ahead and always gets an answer, however
    /// many replies it lost and in whatever order its requests were decided.
    #[test]
    fn an_honest_client_is_never_stuck(
        turns in prop::collection::vec((0_u64..64, 0_u64..80), 1..400),
    ) {
        let mut session = Session::default();
        // Every number below is answered, as the client knows.
        let mut answered = 0;
        for (decided, acknowledged) in turns {
            let sequence = answered + decided;
            prop_assert_ne!(session.status(sequence), RequestStatus::TooFarAhead);
            if session.status(sequence) == RequestStatus::Fresh {
                session.mark(sequence);
            }
            let kept_from = session.lowest.saturating_sub(Session::WINDOW);
            prop_assert!(sequence >= kept_from, "its result is kept");
            // Some of the answers arrive.
            answered = session.lowest.min(answered + acknowledged.saturating_sub(60));
        }
    }
}
