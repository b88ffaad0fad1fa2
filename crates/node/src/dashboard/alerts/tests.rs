use super::*;
use crate::dashboard::testing::{OTHERS, silence, status};
use quorate_consensus::{Evidence, Misbehaviour, Rule};
use quorate_engine::{GivenUp, GivenUpFor, SyncStatus};
use quorate_types::{Height, View, Weights};
use std::time::Duration;

fn healthy() -> Health {
    Health { unready: Vec::new(), ..Health::starting(&Weights::equal(4)) }
}

fn judged(status: &NodeStatus) -> Vec<Alert> {
    Recent::default().judge(status, &healthy(), 0)
}

/// Level and first words of an alert of this name.
fn found<'a>(alerts: &'a [Alert], name: &str) -> (Level, &'a str) {
    let alert = alerts.iter().find(|alert| alert.name == name);
    let alert = alert.unwrap_or_else(|| panic!("no {name} in {alerts:?}"));
    assert!(alert.todo.ends_with('.'), "{}", alert.todo);
    (alert.level, &alert.what)
}

#[test]
fn a_committee_that_is_well_has_no_alerts() {
    assert_eq!(judged(&status()), []);
}

#[test]
fn a_silent_member_is_named_and_so_is_what_is_left() {
    for (connected, end) in [(true, "though it is connected"), (false, "and not connected")] {
        let mut now = status();
        silence(&mut now, OTHERS[1], connected);
        let alerts = judged(&now);
        assert_eq!(alerts.len(), 2, "{alerts:?}");
        let what = format!("r2 is silent, {end}");
        assert_eq!(found(&alerts, "silent-r2"), (Level::Warning, what.as_str()));
        let (level, what) = found(&alerts, "quorum-at-risk");
        assert_eq!(level, Level::Warning);
        assert!(what.contains("3 of 4 are heard, 3 are needed"), "{what}");
    }
}

#[test]
fn a_committee_that_has_no_quorum_is_not_at_risk() {
    let mut now = status();
    silence(&mut now, OTHERS[1], true);
    silence(&mut now, OTHERS[2], false);
    let health =
        Health { silent: OTHERS[1..].to_vec(), unready: vec![Unready::NoQuorum], ..healthy() };
    let alerts = Recent::default().judge(&now, &health, 0);
    let names: Vec<_> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(names, ["no-quorum", "silent-r2", "silent-r3"], "what matters most comes first");
    let (level, what) = found(&alerts, "no-quorum");
    assert!(level == Level::Critical && what.starts_with("No quorum: heard"), "{what}");
}

#[test]
fn a_committee_that_can_lose_none_is_not_always_at_risk() {
    let mut now = status();
    (now.config.members, now.config.weight_total, now.config.quorum) = (3, 3, 3);
    now.members.truncate(3);
    (now.heard, now.heard_weight) = (3, 3);
    assert_eq!(judged(&now), [], "all that there are, are there");
}

#[test]
fn every_reason_against_readiness_says_what_to_do() {
    let syncing = SyncStatus { from: Height(3), to: Height(9), why: "blocks".to_owned() };
    let all = [
        (Unready::Listening, "starting", Level::Notice),
        (Unready::Stalled(Duration::from_secs(9)), "stalled", Level::Critical),
        (Unready::CatchingUp(syncing), "catching-up", Level::Warning),
        (Unready::NotSigning, "not-signing", Level::Critical),
        (Unready::Diverged(Height(7)), "diverged", Level::Critical),
    ];
    for (reason, name, level) in all {
        let health = Health { unready: vec![reason], ..healthy() };
        let alerts = Recent::default().judge(&status(), &health, 0);
        assert_eq!((alerts.len(), found(&alerts, name).0), (1, level));
    }
}

#[test]
fn the_disk_the_next_committee_and_witnesses_are_told_of() {
    let mut now = status();
    now.disk.level = RoomLevel::Low;
    now.must_not_stop = true;
    now.replica.witnesses.state = WitnessState::Waiting;
    let alerts = judged(&now);
    assert!(found(&alerts, "disk").1.contains("1024 MiB are free"), "{alerts:?}");
    assert_eq!(found(&alerts, "must-not-stop").0, Level::Warning);
    assert_eq!(found(&alerts, "waits-for-witnesses").0, Level::Warning);
    now.disk.level = RoomLevel::Out;
    assert_eq!(found(&judged(&now), "disk").0, Level::Critical);
}

#[test]
fn a_member_whose_votes_do_not_come_is_named_if_it_is_there() {
    let (mut recent, mut now) = (Recent::default(), status());
    let heights = ABSENCES_MAX as u64;
    now.replica.decided = Height(1_000);
    now.members[3].absences = ABSENCES_MAX - 1;
    assert_eq!(recent.judge(&now, &healthy(), 0), [], "it may be the last of four, now and then");
    now.members[3].absences = ABSENCES_MAX;
    let alerts = recent.judge(&now, &healthy(), 0);
    assert!(found(&alerts, "no-votes-r3").1.contains("the last 100 certificates"));

    let mut away = now.clone();
    silence(&mut away, OTHERS[2], false);
    let alerts = recent.judge(&away, &healthy(), 0);
    assert!(alerts.iter().all(|alert| alert.name != "no-votes-r3"), "that is said already");
    assert_eq!(recent.judge(&now, &healthy(), 0), [], "nothing was decided since it came back");
    now.replica.decided = Height(1_000 + heights);
    found(&recent.judge(&now, &healthy(), 0), "no-votes-r3");
}

#[test]
fn views_are_counted_within_a_minute() {
    let (mut recent, mut now) = (Recent::default(), status());
    let lost = |view| GivenUp { view: View(view), leader: OTHERS[1], reason: GivenUpFor::Timeout };
    now.replica.view_changes = 50;
    assert_eq!(recent.judge(&now, &healthy(), 0), [], "those before the first look are no news");
    now.replica.view_changes += VIEWS_GIVEN_UP_MAX;
    now.given_up = vec![lost(3), lost(7), lost(11)];
    let alerts = recent.judge(&now, &healthy(), 1_000);
    let (_, what) = found(&alerts, "views-given-up");
    assert!(what.starts_with("3 views were given up") && what.ends_with("led by r2"), "{what}");
    let looks =
        (2..=VIEWS_PAST as u64).map(|second| recent.judge(&now, &healthy(), second * 1_000));
    assert_eq!(looks.filter(Vec::is_empty).count(), 1, "over after a minute");
    assert_eq!(recent.given_up.len(), VIEWS_PAST);
}

#[test]
fn a_rule_that_was_broken_is_told_for_ten_minutes() {
    let (mut recent, mut now) = (Recent::default(), status());
    let (first, second) = (quorate_crypto::hash(b"one"), quorate_crypto::hash(b"other"));
    now.replica.misbehaviour.count(&Misbehaviour {
        member: OTHERS[2],
        rule: Rule::Equivocation,
        evidence: Evidence::Conflict { view: View(7), first, second },
    });
    let alerts = recent.judge(&now, &healthy(), 5);
    assert!(found(&alerts, "rule-equivocation-r3").1.starts_with("r3 broke the rule equivocation"));
    assert_eq!(recent.judge(&now, &healthy(), 4 + BROKEN_RULE_MS).len(), 1);
    assert_eq!(recent.judge(&now, &healthy(), 5 + BROKEN_RULE_MS), []);
}

#[test]
fn an_alert_knows_since_when_it_holds() {
    let (mut recent, mut now) = (Recent::default(), status());
    silence(&mut now, OTHERS[0], false);
    let since = |alerts: Vec<Alert>| alerts.first().map(|alert| alert.since_ms);
    assert_eq!(since(recent.judge(&now, &healthy(), 1_000)), Some(1_000));
    assert_eq!(since(recent.judge(&now, &healthy(), 9_000)), Some(1_000));
    assert_eq!(since(recent.judge(&status(), &healthy(), 10_000)), None);
    assert_eq!(since(recent.judge(&now, &healthy(), 11_000)), Some(11_000), "another silence");
    assert_eq!(recent.since.len(), 2, "only of those that hold");
}
