//! Reputation of leaders: those that are passed over, as the chain shows it.

use super::LeaderElection;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_types::{ReplicaId, View, Weights};

/// After its first failure a member is passed over for so many rounds of as many views as there are
/// members; after each further one for twice as long.
const ROUNDS: u64 = 8;

/// Most doublings of the time: at a thousand views a second, four members then try a dead one every
/// half a minute.
const DOUBLINGS_MAX: u8 = 10;

/// A member whose last turn came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Failing {
    member: ReplicaId,
    /// The view that it led last, to no block.
    since: View,
    /// Turns in a row that came to nothing, the first not counted.
    again: u8,
}

impl Failing {
    fn is_passed_over(&self, view: View, round: u64) -> bool {
        let span = (round * ROUNDS) << self.again.min(DOUBLINGS_MAX);
        view.0.saturating_sub(self.since.0) <= span
    }
}

/// The reputation of leaders after a block: those whose last turns came to nothing, by member.
///
/// Each block carries it, made from its parent's by one rule, so that whoever has a block knows who
/// leads after it: also one that starts from a snapshot, without the chain before. Where reputation
/// is off it is empty. At most as many are in it as may be faulty: whom nobody saw fail leads.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LeaderReputation(Vec<Failing>);

impl LeaderReputation {
    /// Nobody is passed over.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns `true` if nobody is passed over.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leader of `view`, entered by the certificate of the block that this is the reputation at:
    /// the first of those in turn that is not passed over.
    #[must_use]
    pub fn leader(&self, view: View, turns: &dyn LeaderElection, members: usize) -> ReplicaId {
        let (nominal, round) = (turns.leader(view), round(turns, members));
        let passed_over = |member: ReplicaId| {
            let failing = self.0.iter().find(|failing| failing.member == member);
            failing.is_some_and(|failing| failing.is_passed_over(view, round))
        };
        let later = |turn: u64| turns.leader(View(view.0.saturating_add(turn * turns.tenure())));
        // With weights a round has more turns than members; nobody is passed over for all of a few.
        let most = 4 * members as u64;
        (0..most).map(later).find(|member| !passed_over(*member)).unwrap_or(nominal)
    }

    /// The reputation after a block of `view` by `author`, whose parent of view `parent` has this
    /// one.
    ///
    /// The views between came to nothing. Who led the first of them is known if the parent's
    /// certificate led there, which it did unless timeouts came first; the others were entered by
    /// timeout certificates, and so went by turns.
    #[must_use]
    pub fn after(
        &self,
        (parent, view): (View, View),
        author: ReplicaId,
        turns: &dyn LeaderElection,
        weights: &Weights,
    ) -> Self {
        let mut next = self.clone();
        // Views of one turn fail together.
        let mut failed = self.failed(parent.next(), view, turns, weights.each().len());
        let mut turn = failed.next();
        while let Some((member, first)) = turn {
            turn = failed.find(|(other, _)| *other != member);
            next.fail(member, first);
        }
        next.0.retain(|failing| failing.member != author);
        next.forget_the_oldest(weights);
        next
    }

    /// Leaders of the views from `first` on to before `next`, as far as they say anything.
    fn failed<'a>(
        &self,
        first: View,
        next: View,
        turns: &'a dyn LeaderElection,
        members: usize,
    ) -> impl Iterator<Item = (ReplicaId, View)> + 'a {
        let by_certificate = (first < next).then(|| (self.leader(first, turns, members), first));
        // After a long stop the last round says enough.
        let last_round = next.0.saturating_sub(round(turns, members));
        let by_turns = (first.0.saturating_add(1).max(last_round)..next.0).map(View);
        by_certificate.into_iter().chain(by_turns.map(|view| (turns.leader(view), view)))
    }

    fn fail(&mut self, member: ReplicaId, since: View) {
        match self.0.binary_search_by_key(&member, |failing| failing.member) {
            Ok(at) => {
                let failing = &mut self.0[at];
                *failing = Failing { since, again: failing.again.saturating_add(1), ..*failing };
            }
            Err(at) => self.0.insert(at, Failing { member, since, again: 0 }),
        }
    }

    /// Until no more are in it than may be faulty: the others were unlucky.
    fn forget_the_oldest(&mut self, weights: &Weights) {
        let weigh = |all: &[Failing]| -> u64 {
            all.iter().filter_map(|failing| weights.each().get(failing.member.index())).sum()
        };
        while weigh(&self.0) > weights.faulty_max() {
            let oldest = (0..self.0.len()).min_by_key(|at| self.0[*at].since);
            self.0.remove(oldest.expect("what weighs something is not empty"));
        }
    }
}

/// Views of a round in which everybody has one turn.
fn round(turns: &dyn LeaderElection, members: usize) -> u64 {
    members as u64 * turns.tenure()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leader::RoundRobin;

    fn turns(members: usize) -> (RoundRobin, Weights) {
        let weights = Weights::equal(members);
        (RoundRobin::new(&weights), weights)
    }

    /// The leader of each view when `dead` never makes a block, and every view that timed out is
    /// followed by a timeout certificate; and which views timed out.
    fn play(members: usize, dead: &[u16], views: u64) -> (Vec<u16>, Vec<u64>) {
        let (turns, weights) = turns(members);
        let (mut reputation, mut parent) = (LeaderReputation::default(), View(0));
        let (mut led, mut timed_out) = (Vec::new(), Vec::new());
        for view in (1..=views).map(View) {
            let by_certificate = view == parent.next();
            let leader = if by_certificate {
                reputation.leader(view, &turns, members)
            } else {
                turns.leader(view)
            };
            led.push(leader.0);
            if dead.contains(&leader.0) {
                timed_out.push(view.0);
            } else {
                reputation = reputation.after((parent, view), leader, &turns, &weights);
                parent = view;
            }
        }
        (led, timed_out)
    }

    #[test]
    fn without_failures_turns_are_kept() {
        let (led, timed_out) = play(4, &[], 12);
        assert_eq!(led, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        assert!(timed_out.is_empty());
    }

    #[test]
    fn a_dead_leader_costs_ever_fewer_views() {
        let (_, timed_out) = play(4, &[3], 4_000);
        let gaps: Vec<u64> = timed_out.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(timed_out[0], 4);
        assert!(timed_out.len() <= 8, "by turns it would be 1,000: {timed_out:?}");
        assert!(gaps.windows(2).all(|pair| pair[1] >= 3 * pair[0] / 2), "{gaps:?}");
    }

    /// With long turns a dead leader costs a turn of views at a time, and as few turns.
    #[test]
    fn whole_turns_are_passed_over() {
        let weights = Weights::equal(4);
        let turns = RoundRobin::new(&weights).with_tenure(3);
        let passing = |turn: u64| View(1 + 3 * turn);
        // Member 3's turn, views 10 to 12, came to nothing.
        let reputation = LeaderReputation::default().after(
            (View(9), passing(4)),
            ReplicaId(0),
            &turns,
            &weights,
        );
        assert_eq!(reputation.0.len(), 1);
        assert_eq!(reputation.0[0].again, 0, "one turn is one failure");
        assert_eq!(reputation.leader(passing(7), &turns, 4), ReplicaId(0), "its next turn");
        assert_eq!(reputation.leader(passing(3 + 4 * 8), &turns, 4), ReplicaId(0), "its eighth");
        assert_eq!(
            reputation.leader(passing(4 + 4 * 8 + 3), &turns, 4),
            ReplicaId(3),
            "it is tried"
        );
    }

    /// However long turns are, the next one is somebody else's.
    #[test]
    fn the_turn_after_a_long_one_is_found() {
        let weights = Weights::equal(4);
        let turns = RoundRobin::new(&weights).with_tenure(1_000);
        let (before, view) = (View(3_000), View(4_001));
        let reputation =
            LeaderReputation::default().after((before, view), ReplicaId(0), &turns, &weights);
        assert_eq!(reputation.leader(View(7_001), &turns, 4), ReplicaId(0), "3 is passed over");
    }

    /// An election by somebody else, in which whoever has a turn has many views in a row.
    #[derive(Debug)]
    struct LongRuns;

    impl LeaderElection for LongRuns {
        fn leader(&self, view: View) -> ReplicaId {
            ReplicaId(u16::try_from(view.previous().0 / 12 % 4).expect("one of four"))
        }
    }

    /// An election need not know turns: views are looked at one by one, several rounds of them.
    #[test]
    fn a_run_of_views_is_passed_over() {
        let weights = Weights::equal(4);
        // Member 3's run, views 37 to 48, came to nothing; its views come again from 85 on.
        let failed = LeaderReputation::default();
        let failed = failed.after((View(36), View(49)), ReplicaId(0), &LongRuns, &weights);
        assert_eq!(LongRuns.leader(View(85)), ReplicaId(3));
        assert_eq!(failed.leader(View(60), &LongRuns, 4), ReplicaId(0));
        let mut since_then = failed;
        since_then.fail(ReplicaId(3), View(84));
        assert_eq!(since_then.leader(View(85), &LongRuns, 4), ReplicaId(0), "12 views ahead");
    }

    #[test]
    fn as_many_as_may_be_faulty_are_passed_over_together() {
        let (_, timed_out) = play(13, &[4, 5, 6, 7], 5_000);
        assert!(timed_out.len() <= 40, "by turns it would be 1,538: {timed_out:?}");
    }

    #[test]
    fn whoever_makes_a_block_again_is_forgiven() {
        let (turns, weights) = turns(4);
        let failed =
            LeaderReputation::default().after((View(3), View(5)), ReplicaId(0), &turns, &weights);
        assert_eq!(failed.leader(View(8), &turns, 4), ReplicaId(0), "3 is passed over");
        let forgiven = failed.after((View(7), View(8)), ReplicaId(3), &turns, &weights);
        assert!(forgiven.is_empty());
    }

    #[test]
    fn no_more_are_passed_over_than_may_be_faulty() {
        let (turns, weights) = turns(4);
        let mut reputation = LeaderReputation::default();
        for (parent, view) in [(1, 4), (4, 9), (9, 40)] {
            reputation =
                reputation.after((View(parent), View(view)), ReplicaId(0), &turns, &weights);
            assert!(reputation.0.len() <= 1, "{reputation:?}");
        }
        // A stop of any length takes no longer than a round to look at.
        let far = (View(40), View(u64::MAX - 1));
        assert!(reputation.after(far, ReplicaId(0), &turns, &weights).0.len() <= 1);
    }
}
