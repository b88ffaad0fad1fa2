//! Plan of the epoch after the one that a plan ends.

use super::{MEMBERS, Plan, id};
use quorate_consensus::ProtocolKind;
use quorate_crypto::hash_parts;
use quorate_deterministic::Rng;
use quorate_types::{Height, ReplicaId, View};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Origin of a member of the next committee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Successor {
    /// This member of the committee before, with its keys.
    Stays(ReplicaId),
    /// This member of the committee before, with another voting key.
    Renews(ReplicaId),
    /// Nobody of the committee before.
    Joins,
}

/// The committee after a plan's own, and what happens to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NextEpoch {
    /// Origin of each member, by its index.
    pub members: [Successor; MEMBERS],
    /// The protocol that they run, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolKind>,
    /// Twins show what was said in one epoch to machines of the other, and hand-overs that nobody
    /// signed.
    pub replays: bool,
    /// Leaders, reach and restarts, by index in this epoch.
    pub plan: Plan,
}

impl Successor {
    /// The member of the committee before that it was.
    #[must_use]
    pub fn former(self) -> Option<ReplicaId> {
        match self {
            Self::Stays(member) | Self::Renews(member) => Some(member),
            Self::Joins => None,
        }
    }
}

impl NextEpoch {
    /// The machine of this epoch that a machine of the one before goes on as. The second one of a
    /// twin does where its member is two here as well.
    #[must_use]
    pub fn successor(&self, ended: &Plan, machine: usize) -> Option<usize> {
        let member = ended.member(machine);
        let index = self.members.iter().position(|origin| origin.former() == Some(member))?;
        if machine < MEMBERS {
            return Some(index);
        }
        let is_two = self.plan.second && self.plan.twin == id(index);
        is_two.then_some(MEMBERS)
    }

    /// The machine of the epoch before that goes on as this one.
    #[must_use]
    pub fn predecessor(&self, ended: &Plan, machine: usize) -> Option<usize> {
        (0..ended.machines()).find(|former| self.successor(ended, *former) == Some(machine))
    }
}

impl Plan {
    /// The scenario of a number in which a second committee takes over.
    #[must_use]
    pub fn draw_changing(number: u64) -> Self {
        let mut rng = Rng::new(number, "twins change", 0);
        let mut plan = Self::draw(number);
        plan.ends_from = Some(View(rng.between(&(1..=4))));
        let seed = hash_parts("quorate sim twins next epoch", &[&number.to_le_bytes()]);
        let seed = u64::from_le_bytes(*seed.0.first_chunk().expect("32 bytes"));
        let second = Self { begins_after: Height(0), ends_from: None, ..Self::draw(seed) };
        let protocol = rng.coin().then(|| *rng.choose(&ProtocolKind::ALL));
        let members = draw_members(&mut rng);
        let mut next = NextEpoch { members, protocol, replays: rng.coin(), plan: second };
        match rng.below(4) {
            0 => next.plan.second = false,
            1 => plan.second = false,
            2 => {}
            _ => next.keep_twin(plan.twin),
        }
        plan.next = Some(Box::new(next));
        plan
    }
}

impl NextEpoch {
    /// The member that is two stays, and is two here as well.
    fn keep_twin(&mut self, twin: ReplicaId) {
        let index = self.members.iter().position(|origin| origin.former() == Some(twin));
        if let Some(index) = index {
            self.members.swap(index, self.plan.twin.index());
        }
    }
}

/// The same members; in another order; with other keys; some others or all.
fn draw_members(rng: &mut Rng) -> [Successor; MEMBERS] {
    let mut members: [Successor; MEMBERS] =
        std::array::from_fn(|member| Successor::Stays(id(member)));
    let kind = rng.below(6);
    if kind > 0 {
        for last in (1..MEMBERS).rev() {
            members.swap(last, rng.index(last + 1));
        }
    }
    for (index, member) in members.iter_mut().enumerate() {
        let former = member.former().expect("all of them are");
        *member = match kind {
            2 if rng.coin() => Successor::Renews(former),
            3 if index == 0 => Successor::Joins,
            4 if rng.coin() => Successor::Joins,
            5 => Successor::Joins,
            _ => *member,
        };
    }
    members
}

impl fmt::Display for NextEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "then the next epoch")?;
        if let Some(protocol) = self.protocol {
            write!(f, ", under {protocol}")?;
        }
        let members: Vec<String> = self.members.iter().map(ToString::to_string).collect();
        writeln!(f, ", of {}", members.join(", "))?;
        if self.replays {
            writeln!(f, "twins show statements of one epoch in the other, and false hand-overs")?;
        }
        self.plan.fmt(f)
    }
}

impl fmt::Display for Successor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stays(member) => write!(f, "{member}"),
            Self::Renews(member) => write!(f, "{member} with another key"),
            Self::Joins => f.write_str("a newcomer"),
        }
    }
}
