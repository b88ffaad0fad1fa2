//! What happens in one scenario.

mod text;

pub use text::{PlanFile, is_plan_file};

use crate::class::Class;
use crate::dice::Dice;
use quorate_consensus::leader::LeaderElection;
use quorate_types::{ReplicaId, View, as_text};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Members of the committee.
pub const MEMBERS: usize = 4;

/// Machines: one a member, and the second of the twin, which has the last number.
pub const MACHINES: usize = MEMBERS + 1;

/// All machines, one bit each.
const EVERYBODY: u8 = (1 << MACHINES) - 1;

/// By sender: the machines that are reached, one bit each.
pub type Reach = [u8; MACHINES];

/// Everybody reaches everybody.
pub(super) const OPEN: Reach = [EVERYBODY; MACHINES];

/// One view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "text::ViewText", into = "text::ViewText")]
pub struct ViewPlan {
    /// Who leads it.
    pub leader: ReplicaId,
    /// Who reaches whom, by class.
    pub reach: [Reach; 3],
    /// The machine that loses everything but its records when it enters the view.
    pub restarts: Option<usize>,
}

/// A scenario of Twins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What it was drawn from; also the order in which messages arrive.
    #[serde(with = "as_text")]
    pub number: u64,
    /// The member that is two.
    pub twin: ReplicaId,
    /// Whether its second machine is there at all; where it is not, all members are honest.
    pub second: bool,
    /// View 1 and those after it. Later ones have leaders in turn and no obstacles.
    pub views: Vec<ViewPlan>,
}

impl Plan {
    /// The scenario of a number.
    #[must_use]
    pub fn draw(number: u64) -> Self {
        let mut dice = Dice::new(number, "twins plan", 0);
        let twin = member(&mut dice);
        // Equivocation takes a leader that is two; what it does later is up to others.
        let twin_leads = dice.coin();
        let restarts = dice.one_in(3);
        let count = dice.between(&(5..=7));
        let views = (0..count).map(|_| {
            let leader = if twin_leads && dice.coin() { twin } else { member(&mut dice) };
            let reach = draw_reach(&mut dice);
            let restarts = (restarts && dice.one_in(3)).then(|| dice.index(MACHINES));
            ViewPlan { leader, reach, restarts }
        });
        let views = views.collect();
        Self { number, twin, second: true, views }
    }

    /// How many machines there are.
    #[must_use]
    pub fn machines(&self) -> usize {
        MEMBERS + usize::from(self.second)
    }

    /// The member that a machine is.
    #[must_use]
    pub fn member(&self, machine: usize) -> ReplicaId {
        if machine == MEMBERS { self.twin } else { id(machine) }
    }

    /// Whether a machine is the only one of its member.
    #[must_use]
    pub fn is_honest(&self, machine: usize) -> bool {
        !self.second || self.member(machine) != self.twin
    }

    /// The plan of a view, if it has one.
    #[must_use]
    pub fn of(&self, view: View) -> Option<&ViewPlan> {
        let index = usize::try_from(view.0.checked_sub(1)?).ok()?;
        self.views.get(index)
    }

    /// Whether what `from` says in `view` arrives at `to`. The machines of the twin never talk.
    #[must_use]
    pub fn reaches(&self, view: View, class: Class, from: usize, to: usize) -> bool {
        if self.member(from) == self.member(to) {
            return false;
        }
        self.of(view).is_none_or(|plan| plan.reach[class as usize][from] >> to & 1 == 1)
    }
}

/// By the plan, then in turn.
impl LeaderElection for Plan {
    fn leader(&self, view: View) -> ReplicaId {
        self.of(view).map_or_else(|| in_turn(view), |plan| plan.leader)
    }
}

/// Who leads a view that no plan speaks of.
pub(super) fn in_turn(view: View) -> ReplicaId {
    id(usize::try_from(view.0 % MEMBERS as u64).expect("few"))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.second {
            writeln!(f, "{} has the machines {} and {MEMBERS}", self.twin, self.twin.index())?;
        } else {
            writeln!(f, "no member is two")?;
        }
        for (view, plan) in (1..).zip(&self.views) {
            write!(f, "view {view}, led by {}:", plan.leader)?;
            for (class, reach) in ["proposals", "votes", "changes"].iter().zip(&plan.reach) {
                if reach.iter().any(|mask| *mask != EVERYBODY) {
                    let sets: Vec<String> = reach.iter().map(|mask| set(*mask)).collect();
                    write!(f, " {class} reach {};", sets.join(" "))?;
                }
            }
            if let Some(machine) = plan.restarts {
                write!(f, " machine {machine} starts again")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn set(mask: u8) -> String {
    let inside = (0..MACHINES).filter(|machine| mask >> machine & 1 == 1);
    let names: Vec<String> = inside.map(|machine| machine.to_string()).collect();
    format!("{{{}}}", names.join(","))
}

fn id(member: usize) -> ReplicaId {
    ReplicaId(u16::try_from(member).expect("few members"))
}

fn member(dice: &mut Dice) -> ReplicaId {
    id(dice.index(MEMBERS))
}

/// Everybody reaches everybody; two parts, for all that is said or for each class anew; or each sender
/// has receivers of its own.
fn draw_reach(dice: &mut Dice) -> [Reach; 3] {
    let all = OPEN;
    match dice.below(8) {
        0 | 1 => [all; 3],
        2 | 3 => [parts(dice); 3],
        4 => [parts(dice), all, all],
        5 => [parts(dice), parts(dice), all],
        6 => [parts(dice), parts(dice), parts(dice)],
        _ => [masks(dice), masks(dice), masks(dice)],
    }
}

fn parts(dice: &mut Dice) -> Reach {
    let side = mask(dice);
    std::array::from_fn(|machine| if side >> machine & 1 == 1 { side } else { !side & EVERYBODY })
}

fn masks(dice: &mut Dice) -> Reach {
    std::array::from_fn(|_| mask(dice))
}

fn mask(dice: &mut Dice) -> u8 {
    u8::try_from(dice.below(1 << MACHINES)).expect("few machines")
}
