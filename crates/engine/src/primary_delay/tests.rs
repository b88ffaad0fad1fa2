use super::allowance::GOOD_RUN_TIMEOUTS;
use super::*;

const TIMEOUT: Duration = Duration::from_millis(800);
/// The first allowance.
const ALLOWED: Duration = Duration::from_millis(100);
const MS: Duration = Duration::from_millis(1);

/// Member 0's view of its primary, in a committee of four.
struct Bench {
    delay: PrimaryDelay,
    now: Time,
}

impl Bench {
    fn new() -> Self {
        let mut bench =
            Self { delay: PrimaryDelay::new(ReplicaId(0), TIMEOUT, TIMEOUT), now: Time(0) };
        bench.begin();
        bench
    }

    /// A view begins with a decision.
    fn begin(&mut self) {
        self.delay.entered();
        self.delay.decided(self.now, std::iter::empty());
    }

    /// So many bodies of an author are decided, each after it waited for so long.
    fn decide(&mut self, author: u16, bodies: usize, wait: Duration) {
        self.now = self.now + TIMEOUT;
        for _ in 0..bodies {
            let since = Time(self.now.0 - u64::try_from(wait.as_micros()).expect("short"));
            self.delay.decided(self.now, std::iter::once((ReplicaId(author), since)));
        }
    }

    fn is_too_long(&mut self) -> bool {
        self.is_too_long_with(&[])
    }

    /// With bodies of these authors that wait since these times.
    fn is_too_long_with(&mut self, waiting: &[(ReplicaId, Time)]) -> bool {
        let weights = Weights::equal(4);
        self.delay.is_too_long(self.now, waiting.iter().copied(), &weights)
    }
}

#[test]
fn own_bodies_wait_no_longer_than_is_allowed() {
    for (wait, bodies, expected) in
        [(ALLOWED, 16, false), (ALLOWED + MS, 16, true), (ALLOWED + MS, 15, false)]
    {
        let mut bench = Bench::new();
        bench.decide(0, bodies, wait);
        assert_eq!(bench.is_too_long(), expected, "{bodies} after {wait:?}");
    }
}

#[test]
fn a_primary_that_stays_too_slow_is_missed() {
    mutants::assert_noticed(Mutant::KeepSlowPrimary, own_bodies_wait_no_longer_than_is_allowed);
}

/// A few that waited, for a lost message, say nothing.
#[test]
fn half_of_the_bodies_must_wait() {
    for (slow, expected) in [(7, false), (8, true)] {
        let mut bench = Bench::new();
        bench.decide(0, 16 - slow, MS);
        bench.decide(0, slow, 2 * ALLOWED);
        assert_eq!(bench.is_too_long(), expected, "{slow} of 16");
    }
}

/// Nearly half of them do not wait for ever longer either; one alone, for a lost message, may.
#[test]
fn the_mean_counts_too() {
    for (slow, wait, expected) in
        [(7, 9 * ALLOWED, false), (7, 10 * ALLOWED, true), (1, 4 * TIMEOUT, false)]
    {
        let mut bench = Bench::new();
        bench.now = bench.now + 4 * TIMEOUT;
        bench.decide(0, 16 - slow, MS);
        bench.decide(0, slow, wait);
        assert_eq!(bench.is_too_long(), expected, "{slow} of 16 after {wait:?}");
    }
}

/// One author of four may make its own bodies look slow, and only as slow as the others let it; two
/// are not both faulty.
#[test]
fn the_worst_treated_authors_are_left_out_who_may_be_faulty() {
    let judged = |slow: &[u16], wait: Duration| {
        let mut bench = Bench::new();
        for author in 0..4 {
            let wait = if slow.contains(&author) { wait } else { MS };
            bench.decide(author, 16, wait);
        }
        bench.is_too_long()
    };
    assert!(!judged(&[3], TIMEOUT));
    assert!(judged(&[3], TIMEOUT + MS), "it cannot withhold them for so long");
    assert!(judged(&[2, 3], 2 * ALLOWED));
    assert!(judged(&[0], 2 * ALLOWED), "its own");
}

/// A primary has a timeout to begin with, and what waited for the view to begin waits for it from
/// its first decision on.
#[test]
fn a_view_has_time_to_begin() {
    let mut bench = Bench::new();
    bench.now = bench.now + TIMEOUT - MS;
    let old = Time(0);
    bench.delay.decided(bench.now, (0..16).map(|_| (ReplicaId(0), old)));
    assert!(!bench.is_too_long(), "a timeout is not over");
    bench.now = bench.now + MS;
    assert!(bench.is_too_long());
    bench.begin();
    let all = (0..16).map(|_| (ReplicaId(0), old));
    bench.delay.decided(bench.now, all);
    bench.now = bench.now + TIMEOUT;
    assert!(!bench.is_too_long());
}

/// Bodies that nobody orders count with the time for which they wait so far.
#[test]
fn what_is_not_ordered_counts() {
    let mut bench = Bench::new();
    bench.now = bench.now + TIMEOUT;
    let since = Time(bench.now.0 - 200_000);
    let waiting = [(ReplicaId(0), since); 16];
    assert!(bench.is_too_long_with(&waiting));
    let mut bench = Bench::new();
    bench.now = bench.now + TIMEOUT;
    let since = Time(bench.now.0 - 100_000);
    assert!(!bench.is_too_long_with(&[(ReplicaId(0), since); 16]), "not longer than is allowed");
}

/// It looks an eighth of a timeout after it looked before, whatever is decided.
#[test]
fn it_looks_once_in_a_while() {
    let mut bench = Bench::new();
    bench.decide(0, 16, 2 * ALLOWED);
    assert!(bench.is_too_long());
    assert!(!bench.is_too_long());
    bench.now = bench.now + TIMEOUT / 8;
    assert!(bench.is_too_long(), "and says so again");
}

/// The allowance settles above what the committee needs, and a view that ended for another reason
/// leaves it as it is.
#[test]
fn the_allowance_doubles_with_each_view_complained_of() {
    let mut bench = Bench::new();
    let mut complaints = 0;
    for _ in 0..20 {
        bench.decide(0, 16, 6 * ALLOWED);
        complaints += u32::from(bench.is_too_long());
        bench.begin();
    }
    assert_eq!((complaints, bench.delay.allowance.now), (3, 8 * ALLOWED));
}

/// An author that hides its bodies from the primary has primaries replaced until they may wait as
/// long as it can delay them; how long everybody else's may it does not change.
#[test]
fn an_author_sets_the_allowance_of_the_neglected_alone() {
    let mut bench = Bench::new();
    let mut complaints = 0;
    for _ in 0..20 {
        (0..3).for_each(|author| bench.decide(author, 16, MS));
        bench.decide(3, 16, 3 * TIMEOUT);
        complaints += u32::from(bench.is_too_long());
        bench.begin();
    }
    assert_eq!((complaints, bench.delay.allowance.now), (2, ALLOWED));
    assert_eq!(bench.delay.neglect.now, 4 * TIMEOUT);
}

/// What an author brought about for bodies like its own goes by as everything else does, also where
/// nobody is treated worse than the rest.
#[test]
fn the_allowance_of_the_neglected_halves_too() {
    let mut bench = Bench::new();
    bench.delay.neglect.now = 8 * TIMEOUT;
    for _ in 0..=4 * GOOD_RUN_TIMEOUTS {
        (0..4).for_each(|author| bench.decide(author, 16, MS));
        assert!(!bench.is_too_long());
    }
    assert_eq!(bench.delay.neglect.now, TIMEOUT);
}

/// A primary that passes over one author may be told so by that author alone, until the bodies wait
/// longer than their author can have them wait; the own ones, or those of two, no honest one does.
#[test]
fn censorship_is_of_the_own_or_of_an_honest_one() {
    let weights = Weights::equal(4);
    let long = 4 * TIMEOUT;
    let told = |authors: &[u16], allowed: Duration| {
        let mut bench = Bench::new();
        bench.delay.neglect.now = allowed;
        let passed: Vec<_> = authors.iter().map(|author| (ReplicaId(*author), long)).collect();
        bench.delay.is_censorship(bench.now, &passed, &weights)
    };
    assert!(!told(&[], MS));
    assert!(told(&[3], long - MS) && !told(&[3], long));
    assert!(told(&[0], 2 * long), "its own");
    assert!(told(&[2, 3], 2 * long));
}

/// After a long good run it halves, if a quarter of it was enough; never below the first.
#[test]
fn the_allowance_halves_after_a_good_run() {
    for (wait, settled) in [(MS, ALLOWED), (ALLOWED, 2 * ALLOWED), (2 * ALLOWED, 4 * ALLOWED)] {
        let mut bench = Bench::new();
        bench.delay.allowance.now = 4 * ALLOWED;
        for _ in 0..=4 * GOOD_RUN_TIMEOUTS {
            bench.decide(0, 16, wait);
            assert!(!bench.is_too_long());
        }
        assert_eq!(bench.delay.allowance.now, settled, "{wait:?}");
    }
}

/// A quiet hour shows nothing.
#[test]
fn the_allowance_stays_while_nothing_is_judged() {
    let mut bench = Bench::new();
    bench.delay.allowance.now = 4 * ALLOWED;
    for _ in 0..=4 * GOOD_RUN_TIMEOUTS {
        bench.decide(0, 0, MS);
        assert!(!bench.is_too_long());
    }
    assert_eq!(bench.delay.allowance.now, 4 * ALLOWED);
}

/// Authors that come and go leave no more than the members' last waits.
#[test]
fn waits_are_bounded() {
    let mut bench = Bench::new();
    for author in 0..4 {
        bench.decide(author, 100, MS);
    }
    let [waits] = bench.delay.occupancy(4);
    assert!(!waits.is_exceeded());
    assert_eq!(bench.delay.waits.values().map(VecDeque::len).collect::<Vec<_>>(), [SAMPLES; 4]);
}
