//! From a broken plan to the smallest one found that is broken in the same way, as
//! [`crate::shrink`] does for scenarios of the swarm. Nothing is drawn: the same plan shrinks the
//! same way every time.

use super::campaign::run_plan;
use super::ground::Ground;
use super::plan::{MEMBERS, NextEpoch, OPEN, Plan, PlanFile, Successor, id, in_turn};
use super::run::Outcome;
use crate::mutants::{Active, Mutant};
use quorate_types::{Height, View};
use std::fmt;
use std::sync::Arc;

/// Size of a plan, as people see it: of both its epochs, where it has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanSize {
    /// Views that are planned.
    pub views: usize,
    /// Machines, over all classes and views, that do not reach everybody.
    pub obstacles: usize,
    /// Machines that start again.
    pub restarts: usize,
    /// Members that are two.
    pub twins: usize,
}

impl PlanSize {
    /// Counts the parts of a plan.
    #[must_use]
    pub fn of(plan: &Plan) -> Self {
        let masks = plan.views.iter().flat_map(|view| view.reach.iter().flatten());
        let next = plan.next.as_ref().map(|next| Self::of(&next.plan)).unwrap_or_default();
        Self {
            views: next.views + plan.views.len(),
            obstacles: next.obstacles + masks.filter(|mask| **mask != OPEN[0]).count(),
            restarts: next.restarts
                + plan.views.iter().filter(|view| view.restarts.is_some()).count(),
            twins: next.twins + usize::from(plan.second),
        }
    }
}

impl fmt::Display for PlanSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { views, obstacles, restarts, twins } = self;
        write!(f, "{views} views, {obstacles} obstacles, {restarts} restarts, {twins} twins")
    }
}

/// Smallest plan that was found.
#[derive(Clone, Debug)]
pub struct ShrunkPlan {
    /// The smallest plan found.
    pub file: PlanFile,
    /// Outcome of its run; the verdict is the same oracle's complaint.
    pub outcome: Outcome,
    /// Number of plans run.
    pub runs: u64,
}

impl ShrunkPlan {
    /// Its file: how it fails and what happens in comments, then the plan.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        if let Err(violation) = &self.outcome.verdict {
            let one_line = violation.text.replace('\n', " ");
            text.push_str(&format!("# Breaks '{}': {one_line}\n", violation.oracle));
        }
        for line in self.file.plan.to_string().lines() {
            text.push_str(&format!("# {line}\n"));
        }
        text + "\n" + &self.file.to_toml()
    }
}

/// Simpler plans, boldest first; what costs most to understand goes first.
const PASSES: [fn(&Plan) -> Vec<Plan>; 7] = [
    fewer_views,
    fewer_twins,
    fewer_borders,
    fewer_changes,
    fewer_restarts,
    fewer_obstacles,
    plainer_leaders,
];

/// Shrinks a plan that breaks `oracle` with this rule left out. `None` when it does not.
///
/// # Panics
/// When there is a mutant and the crate was built without the feature `mutants`.
#[must_use]
pub fn shrink_plan(
    plan: &Plan,
    mutant: Option<Mutant>,
    oracle: &str,
    ground: &Ground,
) -> Option<ShrunkPlan> {
    let _active = Active::set(mutant);
    let mut runs = 0;
    let mut try_one = |plan: &Plan| {
        runs += 1;
        let outcome = run_plan(&Arc::new(plan.clone()), ground);
        let same = matches!(&outcome.verdict, Err(violation) if violation.oracle == oracle);
        same.then(|| (plan.clone(), outcome))
    };
    let mut best = try_one(plan)?;
    while let Some(simpler) = simpler_that_fails(&best.0, &mut try_one) {
        best = simpler;
    }
    let (plan, outcome) = best;
    Some(ShrunkPlan { file: PlanFile { protocol: ground.protocol(), mutant, plan }, outcome, runs })
}

fn simpler_that_fails(
    plan: &Plan,
    try_one: &mut impl FnMut(&Plan) -> Option<(Plan, Outcome)>,
) -> Option<(Plan, Outcome)> {
    let all = PASSES.iter().flat_map(|pass| of_each_epoch(*pass, plan));
    all.filter(|candidate| candidate != plan).find_map(|candidate| try_one(&candidate))
}

/// Simpler plans of the first epoch, then those that have a simpler second one.
fn of_each_epoch(pass: fn(&Plan) -> Vec<Plan>, plan: &Plan) -> Vec<Plan> {
    let mut simpler = pass(plan);
    let second = plan.next.iter().flat_map(|next| pass(&next.plan));
    simpler.extend(second.map(|second| with_next(plan, |next| next.plan = second)));
    simpler
}

fn with(plan: &Plan, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut simpler = plan.clone();
    change(&mut simpler);
    simpler
}

/// The first ones alone; and all but one.
fn fewer_views(plan: &Plan) -> Vec<Plan> {
    let views = 0..plan.views.len();
    let first = views.clone().map(|count| with(plan, |p| p.views.truncate(count)));
    first
        .chain(views.map(|index| {
            with(plan, |p| {
                p.views.remove(index);
            })
        }))
        .collect()
}

fn fewer_twins(plan: &Plan) -> Vec<Plan> {
    vec![with(plan, |p| p.second = false)]
}

/// One epoch, the first, and one that does not end.
fn fewer_borders(plan: &Plan) -> Vec<Plan> {
    let first = with(plan, |p| p.begins_after = Height(0));
    let one = with(plan, |p| p.next = None);
    vec![one, first, with(plan, |p| (p.next, p.ends_from) = (None, None))]
}

/// The same members under the same protocol, who hear nothing of the other epoch.
fn fewer_changes(plan: &Plan) -> Vec<Plan> {
    let same = std::array::from_fn(|member| Successor::Stays(id(member)));
    let alike = [
        with_next(plan, |next| next.members = same),
        with_next(plan, |next| next.protocol = None),
        with_next(plan, |next| next.replays = false),
    ];
    let of_one = (0..MEMBERS).filter_map(|index| {
        let former = plan.next.as_ref()?.members[index].former()?;
        Some(with_next(plan, |next| next.members[index] = Successor::Stays(former)))
    });
    alike.into_iter().chain(of_one).collect()
}

fn with_next(plan: &Plan, change: impl FnOnce(&mut NextEpoch)) -> Plan {
    with(plan, |plan| {
        if let Some(next) = &mut plan.next {
            change(next);
        }
    })
}

fn fewer_restarts(plan: &Plan) -> Vec<Plan> {
    let views = 0..plan.views.len();
    views.map(|index| with(plan, |p| p.views[index].restarts = None)).collect()
}

/// A view without any, a class without any, a sender without any.
fn fewer_obstacles(plan: &Plan) -> Vec<Plan> {
    let mut simpler = Vec::new();
    for index in 0..plan.views.len() {
        simpler.push(with(plan, |p| p.views[index].reach = [OPEN; 3]));
        for class in 0..3 {
            simpler.push(with(plan, |p| p.views[index].reach[class] = OPEN));
        }
    }
    for index in 0..plan.views.len() {
        for class in 0..3 {
            let one =
                |sender: usize| with(plan, |p| p.views[index].reach[class][sender] = OPEN[sender]);
            simpler.extend((0..OPEN.len()).map(one));
        }
    }
    simpler
}

/// As in views that no plan speaks of.
fn plainer_leaders(plan: &Plan) -> Vec<Plan> {
    let turn = |index: usize| in_turn(View(index as u64 + 1));
    let views = 0..plan.views.len();
    views.map(|index| with(plan, |p| p.views[index].leader = turn(index))).collect()
}

#[cfg(test)]
mod tests;
