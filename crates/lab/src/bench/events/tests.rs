use super::{At, Deed, Pause, Who, plan};

fn at(text: &str) -> At {
    text.parse().expect("I@T")
}

fn pause(text: &str) -> Pause {
    text.parse().expect("I@T+D")
}

#[test]
fn events_are_written_validator_at_second() {
    assert_eq!(at("0@5"), At { who: Who::Member(0), second: 5.0 });
    assert_eq!(at("leader@5").who, Who::Leader);
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
fn the_next_event_is_the_last_of_the_plan() {
    let events = plan(&[at("0@5")], &[at("0@9")], &[pause("1@3+4")]);
    let order: Vec<_> = events.iter().rev().map(|e| (e.deed, e.at.to_string())).collect();
    let expected =
        [(Deed::Pause, "1@3"), (Deed::Kill, "0@5"), (Deed::Resume, "1@7"), (Deed::Restart, "0@9")];
    assert_eq!(order, expected.map(|(deed, text)| (deed, text.to_owned())));
}
