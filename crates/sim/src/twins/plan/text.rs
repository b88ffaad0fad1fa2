//! Form in which a plan is written in a file.

use super::{MACHINES, MEMBERS, OPEN, Plan, Reach, ViewPlan};
use crate::forms;
use crate::mutants::Mutant;
use crate::scenario::text::{self, TextError};
use quorate_consensus::ProtocolKind;
use quorate_types::{Height, ReplicaId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Content of the file of a broken plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// The protocol that the machines run; Jolteon, where a file says nothing.
    #[serde(default)]
    pub protocol: ProtocolKind,
    /// The rule that is left out.
    #[serde(default, with = "forms::mutant", skip_serializing_if = "Option::is_none")]
    pub mutant: Option<Mutant>,
    /// Plan that broke a property.
    pub plan: Plan,
}

/// Returns `true` if a file is meant to be one of a plan of Twins, and not of a scenario of the
/// swarm.
#[must_use]
pub fn is_plan_file(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("plan"))
}

impl PlanFile {
    /// As a file that [`PlanFile::from_toml`] reads back: the same run, message for message.
    ///
    /// # Panics
    /// Never: every plan can be written.
    #[must_use]
    pub fn to_toml(&self) -> String {
        text::write(self)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it is no plan, or names members or machines that there are not.
    pub fn from_toml(text: &str) -> Result<Self, TextError> {
        text::read(text, |file: &Self| file.plan.check())
    }
}

impl Plan {
    /// Refuses members that there are not, and an epoch after one that does not end.
    fn check(&self) -> Result<(), String> {
        let named = self.views.iter().map(|view| view.leader).chain([self.twin]);
        are_members(named)?;
        let Some(next) = &self.next else { return Ok(()) };
        if self.ends_from.is_none() {
            return Err("a next epoch follows one that ends".to_owned());
        }
        let second = &next.plan;
        if second.next.is_some() || second.ends_from.is_some() || second.begins_after > Height(0) {
            return Err(
                "the next epoch is the last, and begins where the one before ends".to_owned()
            );
        }
        second.check()?;
        let former: Vec<ReplicaId> = next.members.iter().filter_map(|o| o.former()).collect();
        are_members(former.iter().copied())?;
        let are_different = former.iter().collect::<BTreeSet<_>>().len() == former.len();
        are_different.then_some(()).ok_or_else(|| "a member goes on once".to_owned())
    }
}

fn are_members(mut named: impl Iterator<Item = ReplicaId>) -> Result<(), String> {
    let are = named.all(|member| member.index() < MEMBERS);
    are.then_some(()).ok_or_else(|| format!("members are numbered from 0 to {}", MEMBERS - 1))
}

/// By sender: the numbers of the machines that are reached.
type ReachText = Vec<Vec<usize>>;

/// A view in a file: where everybody reaches everybody nothing is said.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewText {
    leader: ReplicaId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restarts: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposals: Option<ReachText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    votes: Option<ReachText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<ReachText>,
}

impl From<ViewPlan> for ViewText {
    fn from(plan: ViewPlan) -> Self {
        let [proposals, votes, changes] = plan.reach.map(written);
        Self { leader: plan.leader, restarts: plan.restarts, proposals, votes, changes }
    }
}

impl TryFrom<ViewText> for ViewPlan {
    type Error = String;

    fn try_from(text: ViewText) -> Result<Self, String> {
        if text.restarts.is_some_and(|machine| machine >= MACHINES) {
            return Err(numbering());
        }
        let reach = [read(text.proposals)?, read(text.votes)?, read(text.changes)?];
        Ok(Self { leader: text.leader, reach, restarts: text.restarts })
    }
}

fn written(reach: Reach) -> Option<ReachText> {
    let inside = |mask: u8| (0..MACHINES).filter(|machine| mask >> machine & 1 == 1).collect();
    (reach != OPEN).then(|| reach.map(inside).to_vec())
}

fn read(text: Option<ReachText>) -> Result<Reach, String> {
    let Some(text) = text else { return Ok(OPEN) };
    let senders: [Vec<usize>; MACHINES] =
        text.try_into().map_err(|_| format!("there are {MACHINES} senders"))?;
    if senders.iter().flatten().any(|machine| *machine >= MACHINES) {
        return Err(numbering());
    }
    Ok(senders.map(|reached| reached.into_iter().fold(0, |mask, machine| mask | 1 << machine)))
}

fn numbering() -> String {
    format!("machines are numbered from 0 to {}", MACHINES - 1)
}
