use super::{next_due, plan};
use crate::bench::BenchConfig;
use crate::bench::config::tests::config;
use crate::bench::events::Action;

#[test]
fn the_next_event_is_the_last_of_the_plan() {
    let plan = plan(&BenchConfig {
        kills: vec!["0@5".parse().expect("I@T")],
        restarts: vec!["0@9".parse().expect("I@T")],
        pauses: vec!["1@3+4".parse().expect("I@T+D")],
        lies: vec!["2=silent@6".parse().expect("I=BEHAVIOUR@T")],
        crowds: vec!["3@7.5".parse().expect("I@T")],
        cuts: vec!["1-3@8".parse().expect("A-B@T")],
        ..config()
    });
    let order: Vec<_> = plan.iter().rev().map(|e| (e.action, e.at.to_string())).collect();
    let expected = [
        (Action::Pause, "1@3"),
        (Action::Kill, "0@5"),
        (Action::Lie, "2@6"),
        (Action::Resume, "1@7"),
        (Action::Crowd, "3@7.5"),
        (Action::CutFrom(3), "1@8"),
        (Action::Restart, "0@9"),
    ];
    assert_eq!(order, expected.map(|(action, text)| (action, text.to_owned())));
}

#[test]
fn a_change_is_the_committee_s() {
    let changes = vec!["add 1 at 2".parse().expect("WHAT at T")];
    let plan = plan(&BenchConfig { changes, kills: vec!["0@5".parse().expect("I@T")], ..config() });
    let order: Vec<_> = plan.iter().rev().map(|e| (e.action, e.at.to_string())).collect();
    let expected = [(Action::Change(0), "committee@2".into()), (Action::Kill, "0@5".into())];
    assert_eq!(order, expected);
}

#[test]
fn a_change_waits_for_an_epoch_that_is_beginning_and_holds_up_nothing() {
    let changes = ["add 1 at 2", "protocol sbft at 3"].map(|text| text.parse().expect("WHAT at T"));
    let kills = vec!["0@4".parse().expect("I@T")];
    let mut left = plan(&BenchConfig { changes: changes.into(), kills, ..config() });
    let mut next = |second, is_beginning| {
        next_due(&left, second, is_beginning).map(|index| left.remove(index).action)
    };
    assert_eq!(next(1.9, false), None);
    assert_eq!(next(3.5, false), Some(Action::Change(0)));
    assert_eq!(next(3.5, true), None);
    assert_eq!(next(4.0, true), Some(Action::Kill));
    assert_eq!(next(60.0, true), None);
    assert_eq!(next(60.0, false), Some(Action::Change(1)));
}
