use super::plan::id;
use super::*;
use quorate_consensus::{MessageClass, ProtocolKind};
use std::collections::BTreeMap;

fn campaign(count: u64, threads: usize) -> Campaign {
    campaign_of(ProtocolKind::Jolteon, Plan::draw, count, threads)
}

fn campaign_of(
    protocol: ProtocolKind,
    draw: fn(u64) -> Plan,
    count: u64,
    threads: usize,
) -> Campaign {
    run_plans(0..count, threads, None, draw, || Ground::of(protocol), |_| ())
}

#[test]
fn a_thousand_plans_hold_every_property() {
    ProtocolKind::ALL.into_iter().for_each(a_thousand_plans_hold);
}

#[track_caller]
fn a_thousand_plans_hold(protocol: ProtocolKind) {
    let campaign = campaign_of(protocol, Plan::draw, 1_000, 2);
    nothing_is_broken(&campaign);
    // Neither a world in which nothing is in the way, nor one in which nothing happens.
    assert!(campaign.heights >= 3 * campaign.plans, "{campaign:?}");
    assert!(campaign.rings >= 2 * campaign.plans, "{campaign:?}");
    // Where one leader fills several heights, views are not gone through by deciding.
    let per_view = if protocol.windowed_rules().is_some() { 2 } else { 1 };
    assert!(per_view * campaign.views > campaign.heights, "{campaign:?}");
}

#[track_caller]
fn nothing_is_broken(campaign: &Campaign) {
    let shown: Vec<_> = campaign.found.iter().map(|f| (f.replay(None), &f.violation)).collect();
    assert!(campaign.broken == 0, "{shown:#?}");
}

#[test]
fn plans_over_a_border_hold_every_property_in_both_epochs() {
    for protocol in ProtocolKind::ALL {
        let campaign = campaign_of(protocol, Plan::draw_changing, 300, 2);
        nothing_is_broken(&campaign);
        // One height or more in the first epoch, two or more in the second.
        assert!(campaign.heights >= 4 * campaign.plans, "{campaign:?}");
    }
}

#[test]
fn the_same_plans_over_a_border_give_the_same_and_their_replay_says_so() {
    let campaign = |threads| campaign_of(ProtocolKind::Sbft, Plan::draw_changing, 200, threads);
    assert_eq!(campaign(1), campaign(2));
    let (plan, protocol) = (Plan::draw_changing(7), ProtocolKind::Sbft);
    let violation = crate::oracles::Violation { oracle: "void", text: String::new() };
    let replay = Found { protocol, plan, violation }.replay(None);
    assert_eq!(replay, "quorate sim --twins-scenarios 1 --from 7 --changes --protocol sbft");
}

/// All that a committee may become is drawn, with twins in either epoch, both, and one that stays
/// two.
#[test]
fn plans_over_a_border_differ_in_members_protocols_and_twins() {
    let (mut joiners, mut renewed, mut moved) = (BTreeMap::<_, u32>::new(), 0, 0);
    let (mut protocols, mut twins) = (BTreeMap::<_, u32>::new(), BTreeMap::<_, u32>::new());
    for plan in (0..400).map(Plan::draw_changing) {
        let next = plan.next.as_ref().expect("each has one");
        let joins = next.members.iter().filter(|origin| origin.former().is_none()).count();
        *joiners.entry(joins).or_default() += 1;
        let is_renewed = |origin: &Successor| matches!(origin, Successor::Renews(_));
        renewed += u32::from(next.members.iter().any(is_renewed));
        let formers = next.members.iter().filter_map(|origin| origin.former());
        moved += u32::from(!formers.is_sorted());
        *protocols.entry(next.protocol).or_default() += 1;
        let both_are = plan.second && next.plan.second;
        let stays = both_are && next.successor(&plan, MEMBERS) == Some(MEMBERS);
        *twins.entry((plan.second, next.plan.second, stays)).or_default() += 1;
    }
    assert!(joiners.len() == MEMBERS + 1 && joiners.values().all(|n| *n >= 4), "{joiners:?}");
    assert!(renewed > 30 && moved > 150, "{renewed} {moved}");
    let others = protocols.keys().flatten().count();
    assert!(others == ProtocolKind::ALL.len() && protocols[&None] > 100, "{protocols:?}");
    assert!(twins.len() == 4 && twins.values().all(|n| *n > 40), "{twins:?}");
}

/// A machine goes on as the member that it was, and the second one of a twin where that is two.
#[test]
fn machines_go_on_as_members_wherever_their_index_is() {
    let (twin, other) = (id(1), id(3));
    let mut plan = Plan { twin, second: true, ..Plan::draw_changing(1) };
    let mut next = *plan.next.take().expect("it has one");
    next.members =
        [Successor::Joins, Successor::Stays(other), Successor::Renews(twin), Successor::Joins];
    (next.plan.twin, next.plan.second) = (id(2), true);
    let successors = |next: &NextEpoch| {
        (0..MACHINES).map(|machine| next.successor(&plan, machine)).collect::<Vec<_>>()
    };
    assert_eq!(successors(&next), [None, Some(2), None, Some(1), Some(MEMBERS)]);
    next.plan.second = false;
    assert_eq!(successors(&next), [None, Some(2), None, Some(1), None]);
    assert_eq!(next.predecessor(&plan, 1), Some(3));
    assert_eq!(next.predecessor(&plan, 0), None);
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
