use super::{Flow, Shortest, WINDOW_FIRST, WINDOW_MIN};
use quorate_types::Time;
use std::time::Duration;

const MIB: usize = 1024 * 1024;
const SLACK: Duration = Duration::from_millis(50);

/// Seals `bytes` at `at` and decides them `ms` later.
fn round(flow: &mut Flow, sequence: u64, at: Time, bytes: usize, ms: u64) -> Time {
    flow.sealed(at, sequence, bytes);
    let decided = Time(at.0 + ms * 1_000);
    flow.executed(decided, sequence);
    decided
}

#[test]
fn one_body_may_always_leave() {
    let mut flow = Flow::new(MIB, SLACK);
    assert!(flow.has_room() && flow.is_idle());
    flow.sealed(Time(0), 0, 8 * MIB);
    assert!(!flow.has_room(), "it is larger than the window");
    flow.executed(Time(1), 0);
    assert!(flow.has_room());
}

#[test]
fn the_window_grows_while_little_waits_and_only_when_it_is_used() {
    let mut flow = Flow::new(64 * MIB, SLACK);
    let mut now = Time(0);
    for sequence in 0..20 {
        now = round(&mut flow, sequence, now, WINDOW_FIRST / 4, 20);
    }
    assert_eq!(flow.window(), WINDOW_FIRST, "a quarter of it does not press it");
    for sequence in 20..200 {
        now = round(&mut flow, sequence, now, 40 * MIB, 20);
    }
    assert_eq!(flow.window(), 64 * MIB);
}

#[test]
fn the_window_shrinks_while_much_waits_but_once_for_what_was_under_way_together() {
    let mut flow = Flow::new(64 * MIB, SLACK);
    let mut now = Time(0);
    for sequence in 0..20 {
        now = round(&mut flow, sequence, now, 40 * MIB, 20);
    }
    for sequence in 20..24 {
        flow.sealed(now, sequence, MIB);
    }
    for sequence in 20..24 {
        flow.executed(Time(now.0 + 900_000), sequence);
    }
    assert_eq!(flow.window(), 16 * MIB, "ten times too late: to a quarter, once");
    let mut now = Time(now.0 + 900_000);
    for sequence in 24..44 {
        now = round(&mut flow, sequence, now, 1, 250);
    }
    assert_eq!(flow.window(), WINDOW_MIN);
}

/// A network that became slower itself makes the old shortest time forgotten.
#[test]
fn what_is_needed_is_learnt_anew() {
    let mut flow = Flow::new(64 * MIB, SLACK);
    let mut now = round(&mut flow, 0, Time(0), 1, 1);
    for sequence in 1..200 {
        now = round(&mut flow, sequence, now, 32 * MIB, 600);
    }
    assert_eq!(flow.window(), 64 * MIB, "600 ms is the shortest of the last half minute");
}

#[test]
fn a_body_decided_twice_or_never_sealed_changes_nothing() {
    let mut flow = Flow::new(MIB, SLACK);
    flow.sealed(Time(0), 7, 10);
    flow.executed(Time(5), 7);
    flow.executed(Time(5), 7);
    flow.executed(Time(5), 99);
    assert!(flow.is_idle() && flow.has_room());
}

/// A dead member costs each round a view's timeout: that is no reason to send less.
#[test]
fn time_of_views_that_timed_out_leaves_the_window_alone() {
    let timeout = Duration::from_millis(500);
    let mut flow = Flow::new(64 * MIB, timeout / 4);
    let mut now = Time(0);
    for sequence in 0..100 {
        flow.sealed(now, sequence, 40 * MIB);
        let times_out = sequence % 4 == 3;
        if times_out {
            flow.view_timed_out(now, now + timeout);
        }
        now = Time(now.0 + if times_out { 520_000 } else { 20_000 });
        flow.executed(now, sequence);
    }
    assert_eq!(flow.window(), 64 * MIB);
    // Not so for what was sealed after it.
    flow.view_timed_out(now - timeout, now);
    round(&mut flow, 100, now, 40 * MIB, 520);
    assert_eq!(flow.window(), 16 * MIB);
}

/// A view of an idle committee lasts for as long as nobody asks for anything. Taken off is what a
/// body waited in it: with more, no time at all would be what the committee needs.
#[test]
fn a_body_loses_no_time_of_a_view_before_it_was_sealed() {
    let mut flow = Flow::new(64 * MIB, SLACK);
    let now = Time(3_600_000_000);
    flow.sealed(now, 0, 100 * MIB);
    flow.view_timed_out(Time(0), Time(now.0 + 500_000));
    let now = Time(now.0 + 600_000);
    flow.executed(now, 0);
    assert_eq!(flow.window(), 64 * MIB);
    // It needed 100 ms, and this one comes within twice that and the slack.
    round(&mut flow, 1, now, 100 * MIB, 240);
    assert_eq!(flow.window(), 64 * MIB);
}

#[test]
fn a_fixed_window_follows_nothing_and_hurries_nothing() {
    let mut flow = Flow::fixed(2 * MIB);
    assert!(!flow.is_idle(), "a body is not sealed early because nothing is under way");
    for sequence in 0..20 {
        flow.sealed(Time(0), sequence, MIB);
        assert_eq!(flow.has_room(), sequence == 0);
        // However long it took.
        if sequence > 0 {
            flow.executed(Time(sequence * 60_000_000), sequence - 1);
        }
        assert_eq!(flow.window(), 2 * MIB);
    }
}

/// Each decision that comes in time opens the window by what it decided.
#[test]
fn the_window_grows_by_what_is_decided_in_time() {
    let mut flow = Flow::new(64 * MIB, SLACK);
    let now = round(&mut flow, 0, Time(0), MIB, 20);
    assert_eq!(flow.window(), WINDOW_FIRST + MIB);
    round(&mut flow, 1, now, 2 * MIB, 90);
    assert_eq!(flow.window(), WINDOW_FIRST + 3 * MIB, "twice what is needed, and the slack");
}

/// Between being in time and being so late that less would help the window stays; then it shrinks
/// to what would have been in time, in quarters.
#[test]
fn the_window_shrinks_to_what_would_have_been_in_time() {
    for (ms, quarters) in [(91, 4), (160, 4), (161, 2), (180, 2), (181, 1), (9_000, 1)] {
        let mut flow = Flow::new(64 * MIB, SLACK);
        let now = round(&mut flow, 0, Time(0), 100 * MIB, 20);
        assert_eq!(flow.window(), 64 * MIB);
        round(&mut flow, 1, now, 100 * MIB, ms);
        assert_eq!(flow.window(), 16 * MIB * quarters, "after {ms} ms");
    }
}

#[test]
fn the_shortest_time_is_that_of_the_present_and_the_last_span() {
    let (mut shortest, ms) = (Shortest::default(), Duration::from_millis);
    let at = |seconds: u64| Time(seconds * 1_000_000);
    assert_eq!(shortest.update(at(1), ms(1)), ms(1));
    assert_eq!(shortest.update(at(15), ms(600)), ms(1), "the span is not over");
    assert_eq!(shortest.update(at(30), ms(600)), ms(1), "it was the last one");
    assert_eq!(shortest.update(at(46), ms(600)), ms(600), "it is forgotten");
}

#[test]
fn a_warm_window_begins_as_wide_as_it_gets_and_shrinks_as_others() {
    let mut warm = Flow::warm(1 << 20, Duration::from_millis(10));
    assert_eq!(warm.window(), 1 << 20);
    warm.sealed(Time(0), 0, 1_000);
    warm.executed(Time(1_000), 0);
    warm.sealed(Time(1_000), 1, 1 << 20);
    warm.executed(Time(2_000_000), 1);
    assert!(warm.window() < 1 << 20, "{}", warm.window());
}
