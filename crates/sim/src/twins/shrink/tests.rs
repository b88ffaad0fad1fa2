use super::*;
use crate::twins::{MACHINES, is_plan_file};
use quorate_consensus::ProtocolKind;

fn file(plan: Plan) -> PlanFile {
    PlanFile { protocol: ProtocolKind::Jolteon, mutant: None, plan }
}

#[test]
fn every_plan_survives_being_written_and_read() {
    for number in 0..200 {
        let drawn = Plan::draw(number);
        let alone = Plan { second: false, ..drawn.clone() };
        for plan in [drawn, alone, Plan::draw_changing(number)] {
            let text = file(plan.clone()).to_toml();
            assert!(is_plan_file(&text), "{text}");
            let read = PlanFile::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(read, file(plan));
        }
    }
    assert!(!is_plan_file(&crate::Scenario::calm(1, 4).to_toml()));
}

#[test]
fn a_file_that_is_no_plan_is_refused_with_a_reason() {
    let refused = |text: &str| {
        let head = "[plan]\nnumber = \"1\"\nsecond = true\n";
        PlanFile::from_toml(&format!("{head}{text}")).expect_err("no plan").to_string()
    };
    assert!(refused("twins = 1").contains("twins"));
    assert!(refused("twin = 4\nviews = []").contains("members are numbered from 0 to 3"));
    let view = |rest: &str| refused(&format!("twin = 1\n[[plan.views]]\nleader = 1\n{rest}"));
    assert!(view("restarts = 5").contains("machines are numbered from 0 to 4"));
    assert!(view("votes = [[0], [1]]").contains("there are 5 senders"));
    assert!(view("votes = [[5], [], [], [], []]").contains("machines are numbered from 0 to 4"));
}

#[test]
fn a_next_epoch_that_does_not_fit_is_refused_with_a_reason() {
    let refused = |change: fn(&mut Plan)| {
        let mut plan = Plan::draw_changing(3);
        change(&mut plan);
        PlanFile::from_toml(&file(plan).to_toml()).expect_err("no plan").to_string()
    };
    assert!(refused(|plan| plan.ends_from = None).contains("follows one that ends"));
    let twice = refused(|plan| {
        let next = plan.next.as_mut().expect("it has one");
        next.members = [Successor::Stays(id(1)); MEMBERS];
    });
    assert!(twice.contains("a member goes on once"), "{twice}");
    let unknown = refused(|plan| {
        let next = plan.next.as_mut().expect("it has one");
        next.members[0] = Successor::Renews(id(MEMBERS));
    });
    assert!(unknown.contains("members are numbered from 0 to 3"), "{unknown}");
    let third = refused(|plan| {
        let next = plan.next.as_mut().expect("it has one");
        next.plan.ends_from = Some(View(1));
    });
    assert!(third.contains("the next epoch is the last"), "{third}");
}

/// Simpler means that something is less, or that a leader's turn comes as it does by itself.
#[test]
fn no_pass_proposes_anything_larger() {
    for plan in (0..50).flat_map(|number| [Plan::draw(number), Plan::draw_changing(number)]) {
        let before = PlanSize::of(&plan);
        for candidate in PASSES.iter().flat_map(|pass| of_each_epoch(*pass, &plan)) {
            let after = PlanSize::of(&candidate);
            assert!(after.views <= before.views && after.obstacles <= before.obstacles);
            assert!(after.restarts <= before.restarts && after.twins <= before.twins);
            assert_eq!(candidate.number, plan.number);
        }
    }
}

#[test]
fn a_plan_that_holds_does_not_shrink() {
    assert!(
        shrink_plan(&Plan::draw(1), None, "agreement", &Ground::of(ProtocolKind::Jolteon))
            .is_none()
    );
}

/// Without the second machine all members are honest, and everybody must decide and meet.
#[test]
fn members_without_a_twin_make_progress() {
    for number in 0..50 {
        let plan = Plan { second: false, ..Plan::draw(number) };
        assert_eq!((plan.machines(), plan.is_honest(plan.twin.index())), (MACHINES - 1, true));
        let outcome = run_plan(&Arc::new(plan), &Ground::of(ProtocolKind::Jolteon));
        assert_eq!(outcome.verdict, Ok(()), "plan {number}");
        assert!(outcome.decided >= 1);
    }
}
