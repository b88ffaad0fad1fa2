use super::{Options, Role, run};
use quorate_consensus::ProtocolKind;

/// The whole of it is a lane of its own (`quorate sim --crash-points`).
#[test]
fn nothing_is_wrong_at_every_fiftieth_point() {
    ProtocolKind::ALL.into_iter().for_each(nothing_is_wrong);
}

#[track_caller]
fn nothing_is_wrong(protocol: ProtocolKind) {
    let mut left = None;
    let options =
        Options { threads: 2, only: None, every: 50, protocol, border: None, mutant: None };
    let report = run(&options, |done, total| left = Some(total - done));
    assert_eq!(report.broken, []);
    assert_eq!(left, Some(0), "the progress ends where it should");
    assert!(report.cases["torn"] > 100, "{report:?}");
    assert!(report.cases["unsynced lost"] > 5, "{report:?}");
}

#[test]
fn the_recorded_run_has_everything_that_can_happen_in_it() {
    let options = Options {
        threads: 1,
        only: Some(u64::MAX),
        every: 1,
        protocol: ProtocolKind::Jolteon,
        border: None,
        mutant: None,
    };
    let report = run(&options, |_, _| {});
    let steps = [
        "send",
        "persist",
        "append",
        "store",
        "release",
        "combine",
        "execute",
        "take a snapshot",
        "snapshot",
        "sync",
        "release",
        "task",
    ];
    for step in steps {
        assert!(report.steps.contains_key(step), "{step} in {report:?}");
    }
    assert!(report.points > 500, "{report:?}");
}

#[test]
fn nothing_is_wrong_over_a_change_of_committee() {
    for protocol in ProtocolKind::ALL {
        Role::ALL.into_iter().for_each(|role| holds_over_a_change(protocol, role));
    }
}

#[track_caller]
fn holds_over_a_change(protocol: ProtocolKind, role: Role) {
    let options =
        Options { threads: 2, only: None, every: 60, protocol, border: Some(role), mutant: None };
    let report = run(&options, |_, _| {});
    assert_eq!(report.broken, [], "{protocol}, {role}");
    assert!(report.steps.contains_key("note of the hand-over"), "{protocol}, {role}: {report:?}");
}
