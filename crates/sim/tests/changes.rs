//! Committees that change while they serve, in the swarm: seeds of every protocol, and what only a
//! scenario of its own is sure to meet.

use quorate_engine::ProtocolKind;
use quorate_sim::byzantine::Behaviour;
use quorate_sim::faults::Fault;
use quorate_sim::scenario::changes::PlannedChange;
use quorate_sim::{Report, Scenario, run, run_many};
use quorate_types::{Time, Weights};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

#[track_caller]
fn passes(report: &Report) {
    if let Err(failure) = &report.verdict {
        panic!("seed {}: {failure}", report.seed);
    }
}

/// Runs a scenario, which goes through so many epochs and breaks nothing.
#[track_caller]
fn goes_through(epochs: u64, scenario: &Scenario) {
    let report = run(scenario);
    passes(&report);
    assert_eq!(report.epochs, epochs, "{report:?}");
}

/// A quiet committee of four for three seconds, with so many learners.
fn quiet(learners: usize) -> Scenario {
    let mut scenario = Scenario::calm(7, 4);
    scenario.learners = learners;
    scenario.operations = 120;
    scenario.fault_phase = 3_000 * MS;
    scenario
}

/// To these hosts, at this time.
fn to(scenario: &Scenario, at: Duration, members: &[usize]) -> PlannedChange {
    let weights = Weights::equal(members.len());
    PlannedChange { members: members.to_vec(), weights, ..PlannedChange::of(scenario, at) }
}

/// Seeds that change their committee, of one protocol.
fn seeds(protocol: ProtocolKind) -> Vec<Report> {
    let draw = |seed| Scenario::from_seed(seed).running(protocol).short().with_changes();
    let reports = run_many(0..60, 2, draw, |_| ());
    reports.into_iter().filter(|report| report.tried.contains_key("changes of committee")).collect()
}

#[test]
fn seeds_of_every_protocol_hold_every_property() {
    for protocol in ProtocolKind::ALL {
        let reports = seeds(protocol);
        reports.iter().for_each(passes);
        let went_on = reports.iter().filter(|report| report.epochs > 1).count();
        assert!(went_on >= 10, "{protocol}: {went_on} of {} changed", reports.len());
        assert!(reports.iter().any(|report| report.epochs > 2), "{protocol}: all changed once");
    }
}

/// A file that names a change is read back as it was written.
#[test]
fn changes_are_part_of_a_scenarios_file() {
    let changing = (0..100).map(|seed| Scenario::from_seed(seed).with_changes());
    let changing: Vec<Scenario> = changing.filter(|drawn| !drawn.changes.is_empty()).collect();
    assert!((20..50).contains(&changing.len()), "a third, less those beyond: {}", changing.len());
    for scenario in changing {
        let read = Scenario::from_toml(&scenario.to_toml()).expect("a scenario");
        assert_eq!(read, Scenario { options: Vec::new(), ..scenario });
    }
}

#[test]
fn all_members_are_replaced_at_once() {
    let mut scenario = quiet(4);
    scenario.changes.push(to(&scenario, 500 * MS, &[4, 5, 6, 7]));
    goes_through(2, &scenario);
}

/// A member that lost its disk gives its place to a learner.
#[test]
fn a_member_without_its_disk_is_replaced() {
    let mut scenario = quiet(1);
    scenario.schedule.push((Time(200_000), Fault::Wipe { host: 2, down: 20 * MS }));
    scenario.changes.push(to(&scenario, 500 * MS, &[0, 1, 4, 3]));
    goes_through(2, &scenario);
}

/// Three, four and three again, and then the first ones in another order.
#[test]
fn members_come_and_go() {
    let mut scenario = quiet(2);
    for (at, members) in [(300, &[0, 1, 2, 3, 4][..]), (900, &[4, 1, 2, 3]), (1_500, &[3, 5, 4])] {
        scenario.changes.push(to(&scenario, at * MS, members));
    }
    scenario.changes.push(to(&scenario, 2_100 * MS, &[3, 2, 1, 0]));
    goes_through(5, &scenario);
}

/// Seven become four, at once and one by one.
#[test]
fn seven_shrink_to_four() {
    for steps in [&[4][..], &[6, 5, 4]] {
        let mut scenario = Scenario::calm(7, 7);
        (scenario.operations, scenario.fault_phase) = (120, 3_000 * MS);
        for (number, count) in (0..).zip(steps) {
            let members: Vec<usize> = (0..*count).collect();
            scenario.changes.push(to(&scenario, (400 + 600 * number) * MS, &members));
        }
        goes_through(1 + steps.len() as u64, &scenario);
    }
}

/// The members stay as they are, and weigh otherwise, then as before. PBFT and SBFT count heads.
#[test]
fn weights_alone_change() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::HotStuff, ProtocolKind::HotStuffBasic] {
        let mut scenario = quiet(0).running(protocol);
        for (at, each) in [(400, [3, 2, 2, 2]), (1_200, [1, 2, 3, 3]), (2_000, [1; 4])] {
            let weights = Weights::new(each.to_vec()).expect("none decides alone");
            let change = to(&scenario, at * MS, &[0, 1, 2, 3]);
            scenario.changes.push(PlannedChange { weights, ..change });
        }
        goes_through(4, &scenario);
    }
}

/// Four protocols of both families in one run, the members in another order each time.
#[test]
fn protocols_follow_one_another() {
    let mut scenario = quiet(0);
    scenario.fault_phase = 4_000 * MS;
    let next = [ProtocolKind::Sbft, ProtocolKind::HotStuff, ProtocolKind::Pbft];
    for (number, protocol) in (0..).zip(next) {
        let mut change = to(&scenario, (400 + 900 * number) * MS, &[1, 2, 3, 0]);
        change.settings.protocol = protocol.to_string();
        scenario.changes.push(change);
    }
    goes_through(4, &scenario);
}

/// A member and a learner are away while the committee changes twice, the member among those that
/// change their places.
#[test]
fn who_slept_through_two_epochs_follows() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::Sbft] {
        let mut scenario = quiet(1).running(protocol);
        scenario.fault_phase = 6_000 * MS;
        for host in [3, 4] {
            scenario.schedule.push((Time(100_000), Fault::Crash { host, down: 5_500 * MS }));
        }
        scenario.changes.push(to(&scenario, 300 * MS, &[1, 2, 3, 0]));
        let mut other = to(&scenario, 1_200 * MS, &[3, 2, 1, 0]);
        other.settings.protocol = ProtocolKind::HotStuff.to_string();
        scenario.changes.push(other);
        goes_through(3, &scenario);
    }
}

/// Two changes are brought to different members at once: one of them takes effect.
#[test]
fn two_changes_race() {
    let mut scenario = quiet(1);
    for (brought_to, members) in [(0, [0, 1, 2, 4]), (3, [3, 2, 1, 0])] {
        let change = PlannedChange { brought_to, races: true, ..to(&scenario, 500 * MS, &members) };
        scenario.changes.push(change);
    }
    goes_through(2, &scenario);
}

/// Everybody loses power at the border, before the next epoch is noted or after.
#[test]
fn everybody_loses_power_at_the_border() {
    for (seed, protocol) in (0..).zip(ProtocolKind::ALL) {
        let mut scenario = Scenario { seed, ..quiet(0) }.running(protocol);
        let change = to(&scenario, 500 * MS, &[0, 1, 2, 3]);
        scenario.changes.push(PlannedChange { crashes: vec![0, 1, 2, 3], ..change });
        goes_through(2, &scenario);
    }
}

/// A member shows false hand-overs to whoever comes late.
#[test]
fn false_hand_overs_are_not_followed() {
    let mut scenario = quiet(0);
    scenario.behaviours[1] = Behaviour::BadServer;
    scenario.schedule.push((Time(100_000), Fault::Crash { host: 3, down: 2_500 * MS }));
    scenario.changes.push(to(&scenario, 300 * MS, &[0, 1, 2, 3]));
    goes_through(2, &scenario);
}

/// The old ones are gone as soon as they handed over, long before any of the new ones has the
/// state: nothing is lost, the service waits for them.
#[test]
fn those_who_were_replaced_are_switched_off_too_soon() {
    for protocol in [ProtocolKind::Jolteon, ProtocolKind::Pbft] {
        let mut scenario = quiet(4).running(protocol);
        scenario.fault_phase = 4_000 * MS;
        scenario.changes.push(to(&scenario, 500 * MS, &[4, 5, 6, 7]));
        for host in 0..4 {
            let gone = Fault::Crash { host, down: 2_500 * MS };
            scenario.schedule.push((Time(600_000), gone));
        }
        goes_through(2, &scenario);
    }
}

/// Nobody submits anything, and any one member, the next leader among them, is dead from just
/// before the change on until long after.
#[test]
fn an_idle_committee_ends_its_epoch_past_a_dead_leader() {
    for (protocol, host) in
        ProtocolKind::ALL.into_iter().flat_map(|it| (0..4).map(move |h| (it, h)))
    {
        let mut scenario = quiet(0).running(protocol);
        scenario.operations = 0;
        scenario.schedule.push((Time(499_000), Fault::Crash { host, down: 2_400 * MS }));
        let change = to(&scenario, 500 * MS, &[0, 1, 2, 3]);
        scenario.changes.push(PlannedChange { brought_to: (host + 1) % 4, ..change });
        goes_through(2, &scenario);
    }
}

/// The change comes while views are left for others, under load.
#[test]
fn a_change_falls_into_a_view_change() {
    for protocol in ProtocolKind::ALL {
        for late in 0..6 {
            let mut scenario = quiet(0).running(protocol);
            let timeout = scenario.settings.timeout();
            for host in 0..2 {
                let at = 400_000 + 40_000 * host as u64;
                scenario.schedule.push((Time(at), Fault::Pause { host, lasts: 2 * timeout }));
            }
            let at = 400 * MS + timeout + 10 * late * MS;
            let change = to(&scenario, at, &[1, 2, 3, 0]);
            scenario.changes.push(PlannedChange { brought_to: 3, ..change });
            goes_through(2, &scenario);
        }
    }
}

/// The next epoch's first views are left before it has a checkpoint of its own: what it began with
/// is its stable one.
#[test]
fn views_change_before_the_first_checkpoint_of_an_epoch() {
    for protocol in ProtocolKind::WINDOWED {
        let mut scenario = quiet(0).running(protocol);
        let timeout = scenario.settings.timeout();
        scenario.changes.push(to(&scenario, 400 * MS, &[0, 1, 2, 3]));
        for (at, host) in [(800_000, 1), (1_600_000, 2)] {
            scenario.schedule.push((Time(at), Fault::Pause { host, lasts: 2 * timeout }));
        }
        goes_through(2, &scenario);
        let report = run(&scenario);
        assert!(report.reactions.view_changes > 0, "{protocol}: no view was left");
    }
}

/// A member that signed in the second epoch loses its disk, and starts again with the file of the
/// first: it follows, and its key signs nothing more.
#[test]
fn a_disk_lost_in_a_later_epoch_is_no_new_beginning() {
    for protocol in ProtocolKind::ALL {
        let mut scenario = quiet(0).running(protocol);
        scenario.changes.push(to(&scenario, 300 * MS, &[0, 1, 2, 3]));
        scenario.schedule.push((Time(1_500_000), Fault::Wipe { host: 2, down: 20 * MS }));
        goes_through(2, &scenario);
    }
}

/// The last height is any of a round of checkpoints and snapshots, that of one among them.
#[test]
fn a_change_falls_on_a_checkpoint_and_beside_it() {
    for protocol in ProtocolKind::ALL {
        for number in 0..8 {
            let mut scenario = quiet(1).running(protocol);
            scenario.settings.snapshot_every = 4;
            let at = (500 + 17 * number) * MS;
            scenario.changes.push(to(&scenario, at, &[0, 1, 4, 3]));
            goes_through(2, &scenario);
        }
    }
}
