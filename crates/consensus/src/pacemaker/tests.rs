use super::{LeaderFailures, Pacemaker, longest_pause};
use quorate_types::{ReplicaId, Time, Weights};
use std::time::Duration;

const SPAN: Duration = Duration::from_secs(1);

/// Views led by these members of four timed out, one after the other.
fn time_out(pacemaker: &mut Pacemaker, leaders: &[u16]) {
    for leader in leaders {
        pacemaker.failed(ReplicaId(*leader), &Weights::equal(4));
        pacemaker.enter(Time(0));
    }
}

#[test]
fn the_timer_runs_only_while_there_is_work() {
    let mut pacemaker = Pacemaker::new(SPAN, 50);
    pacemaker.enter(Time(0));
    assert_eq!(pacemaker.deadline(), None);
    pacemaker.set_working(Time(5), true);
    assert_eq!(pacemaker.deadline(), Some(Time(1_000_005)));
    pacemaker.set_working(Time(9), true);
    assert_eq!(pacemaker.deadline(), Some(Time(1_000_005)), "more work does not put it off");
    assert!(!pacemaker.is_due(Time(1_000_004)));
    assert!(pacemaker.is_due(Time(1_000_005)));
    pacemaker.set_working(Time(10), false);
    assert_eq!(pacemaker.deadline(), None);
}

#[test]
fn the_span_grows_by_half_twelve_times_and_a_decision_resets_it() {
    let mut pacemaker = Pacemaker::new(SPAN, 50);
    pacemaker.set_working(Time(0), true);
    let mut spans = Vec::new();
    time_out(&mut pacemaker, &[3]);
    for view in 0..14 {
        time_out(&mut pacemaker, &[view % 4]);
        spans.push(pacemaker.deadline().expect("it works").0);
    }
    assert_eq!(&spans[..3], [1_500_000, 2_250_000, 3_375_000]);
    assert_eq!(spans[11], spans[13]);
    pacemaker.decided();
    pacemaker.enter(Time(0));
    assert_eq!(pacemaker.deadline(), Some(Time(1_000_000)));
}

/// As many as may be dead fail without making anybody wait longer for the next; each once.
#[test]
fn the_first_failures_of_as_many_as_may_be_faulty_are_excused() {
    let grown = |leaders: &[u16], weights: &Weights| {
        let mut pacemaker = Pacemaker::new(SPAN, 100);
        pacemaker.set_working(Time(0), true);
        leaders.iter().for_each(|leader| pacemaker.failed(ReplicaId(*leader), weights));
        pacemaker.enter(Time(0));
        let span = pacemaker.deadline().expect("it works").0;
        (span / 1_000_000).ilog2()
    };
    let ten = Weights::equal(10);
    assert_eq!(grown(&[7, 8, 9], &ten), 0, "they may all be dead");
    assert_eq!(grown(&[7, 8, 9, 0], &ten), 1, "one of them is honest");
    assert_eq!(grown(&[7, 8, 9, 7, 8, 9], &ten), 3, "a round without a decision");
    let uneven: Weights = "4,4,4,4,1,1,1".parse().expect("sound weights");
    assert_eq!(grown(&[4, 5, 6], &uneven), 0);
    assert_eq!(grown(&[0], &uneven), 0);
    assert_eq!(grown(&[0, 1], &uneven), 1, "by weight");
    assert_eq!(grown(&[0], &Weights::equal(3)), 1, "nobody may be faulty");
}

#[test]
fn a_decision_excuses_the_same_leaders_again() {
    let mut pacemaker = Pacemaker::new(SPAN, 50);
    pacemaker.set_working(Time(0), true);
    for _ in 0..3 {
        time_out(&mut pacemaker, &[3]);
        assert_eq!(pacemaker.deadline(), Some(Time(1_000_000)));
        pacemaker.decided();
    }
}

#[test]
fn how_much_the_span_grows_is_set() {
    for (growth, expected) in [(0, 1_000_000), (25, 1_562_500), (100, 4_000_000)] {
        let mut pacemaker = Pacemaker::new(SPAN, growth);
        pacemaker.set_working(Time(0), true);
        time_out(&mut pacemaker, &[3, 0, 1]);
        assert_eq!(pacemaker.deadline(), Some(Time(expected)), "{growth} %");
    }
}

#[test]
fn without_trust_a_view_lasts_an_eighth_and_still_backs_off() {
    let mut pacemaker = Pacemaker::new(SPAN, 50);
    pacemaker.set_working(Time(0), true);
    pacemaker.set_full_span(false);
    pacemaker.enter(Time(0));
    assert_eq!(pacemaker.deadline(), Some(Time(125_000)));
    time_out(&mut pacemaker, &[3, 0]);
    assert_eq!(pacemaker.deadline(), Some(Time(187_500)));
    pacemaker.set_full_span(true);
    pacemaker.enter(Time(0));
    assert_eq!(pacemaker.deadline(), Some(Time(1_500_000)));
}

#[test]
fn a_member_that_failed_is_trusted_again_after_a_success_or_now_and_then() {
    let member = ReplicaId(2);
    let mut failures = LeaderFailures::default();
    assert!(failures.trusts(member));
    failures.failed(member);
    assert!(!failures.trusts(member));
    assert!(failures.trusts(ReplicaId(1)), "the others' turns are their own");
    for _ in 1..64 {
        assert!(!failures.trusts(member));
        failures.failed(member);
    }
    assert!(failures.trusts(member), "it may have come back slow");
    failures.failed(member);
    assert!(!failures.trusts(member));
    failures.succeeded(member);
    assert!(failures.trusts(member));
}

/// A leader may pause once the view before and its own depend on nobody but members whose last turn
/// is known to have come to something.
#[test]
fn a_leader_pauses_in_steady_views_alone() {
    let [first, second, third] = [0, 1, 2].map(ReplicaId);
    let mut failures = LeaderFailures::default();
    let may_pause = |failures: &mut LeaderFailures, members: [ReplicaId; 2], follows| {
        failures.entered(&members, follows);
        failures.may_pause()
    };
    failures.succeeded(first);
    failures.succeeded(second);
    assert!(!may_pause(&mut failures, [first, second], true), "others may be in a short view");
    assert!(may_pause(&mut failures, [second, first], true));
    assert!(!may_pause(&mut failures, [first, third], true), "the third had no turn yet");
    failures.succeeded(third);
    assert!(!may_pause(&mut failures, [third, first], true));
    assert!(may_pause(&mut failures, [first, second], true));
    assert!(!may_pause(&mut failures, [second, third], false), "after a timeout");
    assert!(!may_pause(&mut failures, [third, first], true));
    failures.failed(second);
    assert!(!may_pause(&mut failures, [first, second], true), "for which others wait less");
}

/// Eight round trips make a timeout: a pause is a quarter of one at most.
#[test]
fn a_pause_is_a_small_part_of_a_view() {
    assert_eq!(longest_pause(SPAN), Duration::from_micros(31_250));
}
