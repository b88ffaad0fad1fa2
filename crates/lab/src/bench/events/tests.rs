use super::{Action, At, Lie, Pause, Target, plan};
use crate::bench::BenchConfig;
use crate::bench::config::tests::config;

fn at(text: &str) -> At {
    text.parse().expect("I@T")
}

fn pause(text: &str) -> Pause {
    text.parse().expect("I@T+D")
}

#[test]
fn events_are_written_validator_at_second() {
    assert_eq!(at("0@5"), At { who: Target::Member(0), second: 5.0 });
    assert_eq!(at("leader@5").who, Target::Leader);
    assert_eq!(at("12@0.5").to_string(), "12@0.5");
    assert_eq!(at("follower@2").to_string(), "follower@2");
    for text in ["", "0", "@5", "0@", "0@-1", "a@1", "0@inf", "70000@1"] {
        let refused = text.parse::<At>().expect_err(text).to_string();
        assert!(refused.contains("is not I@T"), "{refused}");
    }
}

#[test]
fn pauses_have_a_length() {
    assert_eq!(pause("1@5+2.5"), Pause { at: at("1@5"), for_s: 2.5 });
    assert_eq!(pause("leader@5+3").to_string(), "leader@5+3");
    for text in ["1@5", "1@5+", "1+5", "1@5+-1", "1@+3"] {
        let refused = text.parse::<Pause>().expect_err(text).to_string();
        assert!(refused.contains("is not I@T+D"), "{refused}");
    }
}

#[test]
fn lies_name_a_validator_and_a_behaviour() {
    let lie: Lie = "3=certificate-flood@2.5".parse().expect("I=BEHAVIOUR@T");
    assert_eq!((lie.liar(), lie.behaviour.as_str()), (Some(3), "certificate-flood"));
    assert_eq!(lie.to_string(), "3=certificate-flood@2.5");
    for text in ["3@1", "3=@1", "3=silent", "leader=silent@1", "=silent@1", "3=silent@-1"] {
        let refused = text.parse::<Lie>().expect_err(text).to_string();
        assert!(refused.contains("is not I=BEHAVIOUR@T"), "{refused}");
    }
}

#[test]
fn the_next_event_is_the_last_of_the_plan() {
    let config = BenchConfig {
        kills: vec![at("0@5")],
        restarts: vec![at("0@9")],
        pauses: vec![pause("1@3+4")],
        lies: vec!["2=silent@6".parse().expect("I=BEHAVIOUR@T")],
        crowds: vec![at("3@8")],
        ..config()
    };
    let events = plan(&config);
    let order: Vec<_> = events.iter().rev().map(|e| (e.action, e.at.to_string())).collect();
    let expected = [
        (Action::Pause, "1@3"),
        (Action::Kill, "0@5"),
        (Action::Lie, "2@6"),
        (Action::Resume, "1@7"),
        (Action::Crowd, "3@8"),
        (Action::Restart, "0@9"),
    ];
    assert_eq!(order, expected.map(|(action, text)| (action, text.to_owned())));
}
