use super::{At, Cut, Lie, Pause, Target};

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
fn cuts_name_two_ends() {
    let cut: Cut = "0-2@5.5".parse().expect("A-B@T");
    assert_eq!(cut, Cut { ends: (0, 2), second: 5.5 });
    assert_eq!(cut.to_string(), "0-2@5.5");
    for text in ["0-2", "0@5", "0-0@5", "0-@5", "-2@5", "0-2@-1", "leader-2@5"] {
        let refused = text.parse::<Cut>().expect_err(text).to_string();
        assert!(refused.contains("is not A-B@T"), "{refused}");
    }
}
