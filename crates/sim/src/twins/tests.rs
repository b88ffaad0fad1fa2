use super::*;
use quorate_consensus::{MessageClass, ProtocolKind};
use std::collections::BTreeMap;

fn campaign(count: u64, threads: usize) -> Campaign {
    campaign_of(ProtocolKind::Jolteon, count, threads)
}

fn campaign_of(protocol: ProtocolKind, count: u64, threads: usize) -> Campaign {
    run_plans(0..count, threads, None, Plan::draw, || Ground::of(protocol), |_| ())
}

#[test]
fn a_thousand_plans_hold_every_property() {
    ProtocolKind::ALL.into_iter().for_each(a_thousand_plans_hold);
}

#[track_caller]
fn a_thousand_plans_hold(protocol: ProtocolKind) {
    let campaign = campaign_of(protocol, 1_000, 2);
    let shown: Vec<_> = campaign.found.iter().map(|f| (f.replay(None), &f.violation)).collect();
    assert!(campaign.broken == 0, "{shown:#?}");
    // Neither a world in which nothing is in the way, nor one in which nothing happens.
    assert!(campaign.heights >= 3 * campaign.plans, "{campaign:?}");
    assert!(campaign.rings >= 2 * campaign.plans, "{campaign:?}");
    // Where one leader fills several heights, views are not gone through by deciding.
    let per_view = if protocol.windowed_rules().is_some() { 2 } else { 1 };
    assert!(per_view * campaign.views > campaign.heights, "{campaign:?}");
}

#[test]
fn the_same_plans_give_the_same_on_any_number_of_threads() {
    let (one, two) = (campaign(200, 1), campaign(200, 2));
    assert_eq!(one, two);
    assert_ne!(one.hash(), campaign(199, 1).hash());
}

#[test]
fn plans_differ_in_twin_leaders_reach_and_restarts() {
    let mut twins = BTreeMap::<_, u32>::new();
    let (mut restarts, mut twin_leads, mut open, mut closed) = (0, 0, 0, 0);
    for plan in (0..400).map(Plan::draw) {
        assert!((5..=7).contains(&plan.views.len()));
        *twins.entry(plan.twin).or_default() += 1;
        for view in &plan.views {
            restarts += u32::from(view.restarts.is_some());
            twin_leads += u32::from(view.leader == plan.twin);
            let all = view.reach.iter().flatten().all(|mask| *mask == 0b11111);
            open += u32::from(all);
            closed += u32::from(!all);
        }
    }
    assert!(twins.values().all(|count| *count > 50) && twins.len() == MEMBERS, "{twins:?}");
    assert!(restarts > 100 && twin_leads > 500 && open > 300 && closed > 1_000);
}

#[test]
fn the_machines_of_a_twin_never_talk_and_the_plan_decides_who_else_does() {
    let mut plan = Plan::draw(1);
    let (first, second) = (plan.twin.index(), MEMBERS);
    let late = quorate_types::View(100);
    assert!(!plan.reaches(late, MessageClass::Vote, first, second));
    let other = (first + 1) % MEMBERS;
    assert!(plan.reaches(late, MessageClass::Vote, first, other));
    plan.views[0].reach[MessageClass::Vote as usize][first] = 1 << second;
    assert!(!plan.reaches(quorate_types::View(1), MessageClass::Vote, first, other));
}
