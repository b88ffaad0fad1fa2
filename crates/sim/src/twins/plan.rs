//! Plan of one scenario: leaders and reach, by view.

mod next_epoch;
mod text;

pub use next_epoch::{NextEpoch, Successor};
pub use text::{PlanFile, is_plan_file};

use quorate_consensus::MessageClass;
use quorate_consensus::leader::LeaderElection;
use quorate_deterministic::Rng;
use quorate_types::{Height, ReplicaId, View, as_text};
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

/// Reach in which all machines reach all others.
pub(super) const OPEN: Reach = [EVERYBODY; MACHINES];

/// Plan of one view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "text::ViewText", into = "text::ViewText")]
pub struct ViewPlan {
    /// Member that leads it.
    pub leader: ReplicaId,
    /// Machines that each machine reaches, by class.
    pub reach: [Reach; 3],
    /// The machine that loses everything but its records when it enters the view.
    pub restarts: Option<usize>,
}

/// A scenario of Twins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Seed that it was drawn from; also decides the order in which messages arrive.
    #[serde(with = "as_text")]
    pub number: u64,
    /// The member that is two.
    pub twin: ReplicaId,
    /// `true` if its second machine is there at all; where it is not, all members are honest.
    pub second: bool,
    /// Height that the epoch begins after.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begins_after: Height,
    /// Leaders of this view and of later ones propose the end of the epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_from: Option<View>,
    /// View 1 and those after it. Later ones have leaders in turn and no obstacles.
    pub views: Vec<ViewPlan>,
    /// The epoch that this one's end begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<NextEpoch>>,
}

impl Plan {
    /// The scenario of a number.
    #[must_use]
    pub fn draw(number: u64) -> Self {
        let mut rng = Rng::new(number, "twins plan", 0);
        let twin = member(&mut rng);
        // Equivocation takes a leader that is two; what it does later is up to others.
        let twin_leads = rng.coin();
        let restarts = rng.one_in(3);
        let count = rng.between(&(5..=7));
        let views = (0..count).map(|_| {
            let leader = if twin_leads && rng.coin() { twin } else { member(&mut rng) };
            let reach = draw_reach(&mut rng);
            let restarts = (restarts && rng.one_in(3)).then(|| rng.index(MACHINES));
            ViewPlan { leader, reach, restarts }
        });
        let views = views.collect();
        let (begins_after, ends_from) = draw_borders(number);
        Self { number, twin, second: true, begins_after, ends_from, views, next: None }
    }

    /// Returns `true` if the leader of a view proposes the end of the epoch.
    #[must_use]
    pub fn ends_in(&self, view: View) -> bool {
        self.ends_from.is_some_and(|first| first <= view)
    }

    /// Number of machines, the twin's second included.
    #[must_use]
    pub fn machines(&self) -> usize {
        MEMBERS + usize::from(self.second)
    }

    /// The member that a machine is.
    #[must_use]
    pub fn member(&self, machine: usize) -> ReplicaId {
        if machine == MEMBERS { self.twin } else { id(machine) }
    }

    /// Returns `true` if a machine is the only one of its member.
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

    /// Returns `true` if a message of `from` in `view` arrives at `to`. The machines of the twin
    /// never talk.
    #[must_use]
    pub fn reaches(&self, view: View, class: MessageClass, from: usize, to: usize) -> bool {
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

/// Leader of a view beyond the plan: members in turn.
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
        if self.begins_after > Height(0) {
            writeln!(f, "the epoch begins after height {}", self.begins_after.0)?;
        }
        if let Some(view) = self.ends_from {
            writeln!(f, "leaders propose its end from view {} on", view.0)?;
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
        self.next.as_ref().map_or(Ok(()), |next| next.fmt(f))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(height: &Height) -> bool {
    *height == Height(0)
}

/// One plan in three ends its epoch, one in three begins another than the first.
fn draw_borders(number: u64) -> (Height, Option<View>) {
    let mut rng = Rng::new(number, "twins borders", 0);
    let begins_after = if rng.one_in(3) { Height(rng.between(&(1..=300))) } else { Height(0) };
    (begins_after, rng.one_in(3).then(|| View(rng.between(&(1..=8)))))
}

fn set(mask: u8) -> String {
    let inside = (0..MACHINES).filter(|machine| mask >> machine & 1 == 1);
    let names: Vec<String> = inside.map(|machine| machine.to_string()).collect();
    format!("{{{}}}", names.join(","))
}

pub(super) fn id(member: usize) -> ReplicaId {
    ReplicaId(u16::try_from(member).expect("few members"))
}

fn member(rng: &mut Rng) -> ReplicaId {
    id(rng.index(MEMBERS))
}

/// Everybody reaches everybody; two parts, for all that is said or for each class anew; or each
/// sender has receivers of its own.
fn draw_reach(rng: &mut Rng) -> [Reach; 3] {
    let all = OPEN;
    match rng.below(8) {
        0 | 1 => [all; 3],
        2 | 3 => [parts(rng); 3],
        4 => [parts(rng), all, all],
        5 => [parts(rng), parts(rng), all],
        6 => [parts(rng), parts(rng), parts(rng)],
        _ => [masks(rng), masks(rng), masks(rng)],
    }
}

fn parts(rng: &mut Rng) -> Reach {
    let side = mask(rng);
    std::array::from_fn(|machine| if side >> machine & 1 == 1 { side } else { !side & EVERYBODY })
}

fn masks(rng: &mut Rng) -> Reach {
    std::array::from_fn(|_| mask(rng))
}

fn mask(rng: &mut Rng) -> u8 {
    u8::try_from(rng.below(1 << MACHINES)).expect("few machines")
}
