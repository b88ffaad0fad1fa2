use super::{PlannedChange, Roster, Shape, What};
use crate::bench::BenchConfig;
use crate::bench::config::sample;
use quorate_crypto::SchemeKind;
use quorate_engine::ProtocolKind;

fn change(text: &str) -> PlannedChange {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn shape(members: usize) -> Shape {
    Shape {
        weights: quorate_types::Weights::equal(members),
        redundancy: 0,
        scheme: SchemeKind::Ed25519,
        protocol: ProtocolKind::Jolteon,
        newcomers: 0,
    }
}

#[test]
fn a_change_is_read_as_it_is_shown() {
    let texts = [
        "replace 2 at 10",
        "replace all at 0.5",
        "add 3 at 1",
        "remove 1 at 2",
        "protocol sbft at 3",
        "scheme bls at 4",
    ];
    for text in texts {
        assert_eq!(change(text).to_string(), text);
    }
    for text in
        ["", "replace at 3", "replace 0 at 3", "replace 2 at -1", "add many at 2", "grow 1 at 2"]
    {
        let error = text.parse::<PlannedChange>().expect_err(text).to_string();
        assert!(error.contains("is not 'WHAT at T'"), "{error}");
    }
}

#[test]
fn what_leaves_no_committee_is_refused() {
    let refused = |what| shape(4).after(what).expect_err("no committee");
    assert_eq!(refused(What::Remove(4)), "there are only 4 members");
    assert_eq!(refused(What::Replace(Some(5))), "there are only 4 members");
    assert!(refused(What::Scheme(SchemeKind::BlsThreshold)).contains("keys dkg"));
    let dealt = Shape { scheme: SchemeKind::BlsThreshold, ..shape(4) };
    assert!(dealt.after(What::Add(1)).expect_err("no share").contains("keys dkg"));

    let config = BenchConfig {
        changes: vec![change("add 3 at 1"), change("replace all at 2"), change("remove 3 at 3")],
        ..sample()
    };
    assert_eq!(config.newcomers(), Ok(3 + 7));
    assert_eq!(config.processes(), config.validators + 10);
    let late = BenchConfig { changes: vec![change("add 1 at 99999")], ..sample() };
    let changes = vec![change("add 1 at 2"), change("add 1 at 2.5")];
    let at_once = BenchConfig { changes, ..sample() }.validate().expect_err("one epoch each");
    assert!(at_once.contains("--change 'add 1 at 2.5': it comes 1 s after"), "{at_once}");
    assert!(late.validate().expect_err("it is late").contains("the load ends after"));
}

/// Who is dead is replaced first, then the last; places keep their order.
#[test]
fn places_go_to_newcomers() {
    let mut roster = Roster::new(4, 3);
    roster.change(What::Replace(Some(2)), &[1]);
    let processes =
        |roster: &Roster| (0..roster.size()).map(|id| roster.process(id)).collect::<Vec<_>>();
    let [first, second] = [4, 5];
    let replaced = processes(&roster);
    assert_eq!((replaced[0], replaced[2]), (0, 2), "they stay: {replaced:?}");
    assert!([first, second].iter().all(|new| replaced.contains(new)), "{replaced:?}");
    roster.change(What::Add(1), &[]);
    assert_eq!(processes(&roster).last(), Some(&6));
    roster.change(What::Remove(4), &[0]);
    assert_eq!(roster.size(), 1);
    assert!(!processes(&roster).contains(&0));
}
