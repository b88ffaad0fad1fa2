//! Releasing a locked coin (docs/adr/0026-releasing-a-locked-coin.md): every order of votes, freezes, reports and lies of
//! four authorities, the last of which is Byzantine, over two transactions that spend one coin.

use stateright::{Checker, Model, Property};

/// Honest authorities; one more is Byzantine.
const HONEST: usize = 3;
const AUTHORITIES: usize = 4;
const FAULTY: usize = 1;
const QUORUM: usize = 3;

/// What a quorum may certify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Choice {
    /// The payer's one transaction.
    A,
    /// Its other.
    B,
    /// The release's own: the money back, under a new name.
    Refund,
}

/// An honest authority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Authority {
    /// What it voted for before it froze.
    locked: Option<Choice>,
    frozen: bool,
    /// What it voted for because it was decided.
    followed: Option<Choice>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct State {
    honest: [Authority; HONEST],
    /// The ordered log: of each authority that reported, what it said it was locked for.
    reports: [Option<Option<Choice>>; AUTHORITIES],
    decided: Option<Choice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    Vote(usize, Choice),
    /// An honest authority freezes, and its report is ordered.
    Freeze(usize),
    /// The Byzantine authority's report is ordered.
    Lie(Option<Choice>),
    Decide,
    Follow(usize),
}

/// How a release goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rules {
    /// As the decision record has it.
    Sound,
    /// Authorities that reported go on voting.
    NoFreeze,
    /// What most reports name is decided.
    Majority,
    /// The coin is set free again instead of refunded: whoever is not locked votes for anything.
    SetFree,
}

struct Release(Rules);

impl State {
    fn reported(&self, choice: Choice) -> usize {
        self.reports.iter().filter(|report| **report == Some(Some(choice))).count()
    }

    /// Honest voters, and the Byzantine authority, which votes for everything.
    fn is_certified(&self, choice: Choice) -> bool {
        let voted = |one: &&Authority| one.locked == Some(choice) || one.followed == Some(choice);
        self.honest.iter().filter(voted).count() + FAULTY >= QUORUM
    }

    fn certified(&self) -> usize {
        let all = [Choice::A, Choice::B, Choice::Refund];
        all.into_iter().filter(|choice| self.is_certified(*choice)).count()
    }
}

impl Release {
    /// What is decided with these reports, if anything can be.
    fn decision(&self, state: &State) -> Option<Choice> {
        let reports = state.reports.iter().flatten().count();
        if reports < AUTHORITIES - FAULTY {
            return None;
        }
        let (a, b) = (state.reported(Choice::A), state.reported(Choice::B));
        if self.0 == Rules::Majority {
            return Some(if a >= b { Choice::A } else { Choice::B });
        }
        let possible = |named: usize| named + (AUTHORITIES - reports) >= QUORUM - FAULTY;
        match (possible(a), possible(b)) {
            (true, false) => Some(Choice::A),
            (false, true) => Some(Choice::B),
            (false, false) => Some(Choice::Refund),
            (true, true) => None,
        }
    }
}

impl Model for Release {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for (index, one) in state.honest.iter().enumerate() {
            let votes_on = !one.frozen || self.0 == Rules::NoFreeze;
            if one.locked.is_none() && votes_on {
                steps.extend([Step::Vote(index, Choice::A), Step::Vote(index, Choice::B)]);
            }
            if !one.frozen {
                steps.push(Step::Freeze(index));
            }
            if state.decided.is_some() && one.frozen && one.followed.is_none() {
                steps.push(Step::Follow(index));
            }
            if self.0 == Rules::SetFree && state.decided == Some(Choice::Refund) {
                let free = one.frozen && one.followed.is_none();
                steps.extend(
                    [Choice::A, Choice::B]
                        .map(|choice| Step::Vote(index, choice))
                        .into_iter()
                        .filter(|_| free),
                );
            }
        }
        if state.reports[HONEST].is_none() {
            let lies = [None, Some(Choice::A), Some(Choice::B)];
            steps.extend(lies.map(Step::Lie));
        }
        if state.decided.is_none() && self.decision(state).is_some() {
            steps.push(Step::Decide);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        match step {
            Step::Vote(index, choice) if state.honest[index].frozen && self.0 == Rules::SetFree => {
                state.honest[index].followed = Some(choice);
            }
            Step::Vote(index, choice) => state.honest[index].locked = Some(choice),
            Step::Freeze(index) => {
                state.honest[index].frozen = true;
                state.reports[index] = Some(state.honest[index].locked);
            }
            Step::Lie(report) => state.reports[HONEST] = Some(report),
            Step::Decide => state.decided = self.decision(&state),
            Step::Follow(index) => state.honest[index].followed = state.decided,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one certificate", |_, state: &State| state.certified() <= 1),
            Property::sometimes("a half payment is finished", |_, state: &State| {
                state.decided == Some(Choice::A) && state.is_certified(Choice::A)
            }),
            Property::sometimes("a coin is refunded", |_, state: &State| {
                state.is_certified(Choice::Refund)
            }),
            Property::sometimes("an even split stays locked", |model: &Release, state: &State| {
                state.reports.iter().all(Option::is_some) && model.decision(state).is_none()
            }),
        ]
    }
}

#[test]
fn a_release_never_makes_a_second_certificate() {
    let checker = Release(Rules::Sound).checker().spawn_bfs().join();
    checker.assert_properties();
    let states = checker.unique_state_count();
    assert!(states > 2_000, "{states} states are too few to have tried everything");
}

#[test]
fn broken_rules_make_two_certificates() {
    for rules in [Rules::NoFreeze, Rules::Majority, Rules::SetFree] {
        let checker = Release(rules).checker().spawn_bfs().join();
        let found = checker.discovery("at most one certificate");
        assert!(found.is_some(), "{rules:?} seems sound");
    }
}
