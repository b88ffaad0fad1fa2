use super::{Course, Roster, chained};
use quorate_report::results::beside::Minimum;
use quorate_wan::{Emulation, Topology};
use std::time::Duration;

/// With one millisecond between any two members, latencies read as multiples of the delay.
fn uniform(members: usize, quorum: u64, weak: u64) -> Minimum {
    equal(&Topology::uniform(members, Duration::from_millis(1)), quorum, weak)
}

fn equal(network: &Topology, quorum: u64, weak: u64) -> Minimum {
    let weights = vec![1; network.members()];
    let turns: Vec<usize> = (0..network.members()).collect();
    chained(
        network,
        Roster { turns: &turns, weights: &weights, course: Course::Views(2), quorum, weak },
    )
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-6
}

/// Four members, a delay of δ. A view takes 2δ: the third vote comes from a member that is neither
/// leader. From a proposal to the decision at its second successor 4δ, to the client beside a
/// member that is not this collector 5δ, to one beside it 6δ (another's decision and reply). Beside
/// member 0:
///
/// | ordered by | sent within | least |
/// |---|---|---|
/// | 0, decided by 2 | 3δ | 5δ |
/// | 1, decided by 3 | δ | δ + 5δ |
/// | 2, decided by 0 | 2δ | δ + 6δ |
/// | 3, decided by 1 | 2δ | δ + 5δ |
///
/// Mean of the least (15 + 6 + 14 + 12) / 8, of the wait (9 + 1 + 4 + 4) / 16.
#[test]
fn four_members_at_one_distance_need_seven_delays() {
    let minimum = uniform(4, 3, 2);
    assert!(close(minimum.view_ms, 2.0), "{minimum:?}");
    assert!(close(minimum.mean_without_wait_ms, 47.0 / 8.0), "{minimum:?}");
    assert!(close(minimum.mean_ms, 7.0), "{minimum:?}");
    // Below 7δ: 2 of the 3δ from [5, 8], the δ from [6, 7], 1 of 2δ from [6, 8], none from [7, 9].
    assert!(close(minimum.p50_ms, 7.0), "{minimum:?}");
}

/// A quorum of two is the leader and the next one: a view takes δ. From a proposal to the decision
/// at its second successor 2δ, and to the client of any member 3δ at the first reply.
#[test]
fn three_members_that_need_no_third_vote_are_quicker() {
    let minimum = uniform(3, 2, 1);
    assert!(close(minimum.view_ms, 1.0), "{minimum:?}");
    // Beside member 0, ordered by 0 within 2δ, decided by 2 and heard from 2 after 3δ; by 1 within
    // no time; by 2 within δ, decided by 1, δ + 3δ. Wait (4 + 0 + 1) / 6.
    assert!(close(minimum.mean_without_wait_ms, (2.0 * 3.0 + 4.0) / 3.0), "{minimum:?}");
    assert!(close(minimum.mean_ms - minimum.mean_without_wait_ms, 5.0 / 6.0), "{minimum:?}");
}

#[test]
fn one_member_waits_for_nobody() {
    let minimum = uniform(1, 1, 1);
    assert_eq!((minimum.p50_ms, minimum.mean_ms, minimum.view_ms), (0.0, 0.0, 0.0));
}

#[test]
fn twice_the_distance_is_twice_the_latency() {
    let of = |ms| equal(&Topology::uniform(7, Duration::from_millis(ms)), 5, 3);
    let (once, twice) = (of(10), of(20));
    assert!(close(2.0 * once.p50_ms, twice.p50_ms) && close(2.0 * once.mean_ms, twice.mean_ms));
}

#[test]
fn no_distance_leaves_nothing() {
    let minimum = equal(&Topology::uniform(4, Duration::ZERO), 3, 2);
    assert_eq!(minimum, Minimum::default());
}

#[test]
fn four_continents_need_several_of_their_round_trips() {
    let regions = ["us-east-1", "us-west-1", "ap-southeast-2", "eu-central-1"];
    let wan = Emulation { regions: regions.map(str::to_owned).into(), ..Emulation::default() };
    let minimum = equal(&wan.topology(4).expect("known regions"), 3, 2);
    assert!(minimum.mean_without_wait_ms < minimum.mean_ms, "{minimum:?}");
    // Between the same four members at the nearest distance and at the farthest.
    let at = |us| equal(&Topology::uniform(4, Duration::from_micros(us)), 3, 2);
    let (near, far) = (at(32_025), at(125_748));
    assert!(minimum.p50_ms > near.p50_ms && minimum.p50_ms < far.p50_ms, "{minimum:?}");
    assert!(minimum.view_ms > near.view_ms && minimum.view_ms < far.view_ms, "{minimum:?}");
}

/// Member 0 weighs three of six: with any other one it is a quorum of four, and it alone answers.
#[test]
fn a_heavy_member_spares_the_others_way() {
    let network = Topology::uniform(4, Duration::from_millis(1));
    let least = |turns: &[usize]| {
        let weights = [3, 1, 1, 1];
        chained(
            &network,
            Roster { turns, weights: &weights, course: Course::Views(2), quorum: 4, weak: 2 },
        )
    };
    // A view in which member 0 leads or collects takes δ; one of 1 to 2 or of 2 to 3 takes 2δ, by
    // way of member 0.
    let equal_turns = least(&[0, 1, 2, 3]);
    assert!(close(equal_turns.view_ms, 1.5), "{equal_turns:?}");
    assert!(equal_turns.mean_ms < equal(&network, 3, 2).mean_ms, "{equal_turns:?}");
    let by_weight = least(&[0, 1, 0, 2, 0, 3]);
    assert!(close(by_weight.view_ms, 1.0), "{by_weight:?}");
}

#[test]
fn a_round_twice_is_the_same_round() {
    let network = Topology::uniform(4, Duration::from_millis(1));
    let of = |turns: &[usize]| {
        chained(
            &network,
            Roster { turns, weights: &[1; 4], course: Course::Views(2), quorum: 3, weak: 2 },
        )
    };
    let (once, twice) = (of(&[0, 1, 2, 3]), of(&[0, 1, 2, 3, 0, 1, 2, 3]));
    assert!(close(once.mean_ms, twice.mean_ms) && close(once.p50_ms, twice.p50_ms), "{twice:?}");
}

/// On a network where every way takes the same, a view takes two of them: HotStuff needs one view
/// more, less what is saved where another leader decides, who may sit beside the client.
#[test]
fn a_decision_after_three_views_takes_nearly_one_view_longer() {
    let network = Topology::uniform(4, Duration::from_millis(10));
    let of = |course| {
        let roster = Roster { turns: &[0, 1, 2, 3], weights: &[1; 4], course, quorum: 3, weak: 2 };
        chained(&network, roster)
    };
    let (two, three) = (of(Course::Views(2)), of(Course::Views(3)));
    assert!((two.view_ms - three.view_ms).abs() < 0.001);
    let longer = three.mean_without_wait_ms - two.mean_without_wait_ms;
    assert!((0.9..=1.0).contains(&(longer / two.view_ms)), "{longer} ms");
}

/// Beside a client that waits for nothing, basic HotStuff takes six ways to decide; two more,
/// DECIDE and the new-views, lead to the next proposal.
#[test]
fn a_view_of_three_phases_takes_eight_ways() {
    let network = Topology::uniform(4, Duration::from_millis(10));
    let turns = [0, 1, 2, 3];
    let course = Course::Phases(3);
    let roster = Roster { turns: &turns, weights: &[1; 4], course, quorum: 3, weak: 2 };
    let least = chained(&network, roster);
    assert!(close(least.view_ms, 80.0), "{least:?}");
}
