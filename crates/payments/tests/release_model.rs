//! ADR 26 as a model: every order of votes, freezes, reports, lies and decisions over one coin and
//! two transactions that spend it, with one Byzantine authority. Nothing of it is built yet; the
//! model is the design's check.
//!
//! What is left out cannot help a liar: signatures (nobody forges), the log's own workings (an
//! ordered report is counted by all alike), messages (a vote counts as soon as it was given, and
//! whoever wants collects it). The Byzantine authority votes for everything, and reports what it
//! likes.

use stateright::{Checker, Model, Property};

/// Transaction that may get the coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Tx {
    /// One that its payer signed.
    One,
    /// The other one that its payer signed.
    Two,
    /// Back to the payer, by decision alone.
    Refund,
}

/// Transactions that a payer can show to authorities.
const SIGNED: [Tx; 2] = [Tx::One, Tx::Two];

/// Rule by which coins are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The rule of ADR 26.
    Designed,
    /// Authorities report, and go on voting.
    WithoutFreeze,
    /// The transaction that most reports name is decided.
    MostReported,
    /// Instead of a refund the coin is set free: everybody may vote for anything once more.
    SetFree,
}

/// A committee in which one authority is Byzantine.
struct Release {
    authorities: usize,
    rule: Rule,
}

const FAULTY: usize = 1;

/// Progress of an honest authority in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    /// Nothing is executed: before the freeze.
    Open,
    /// The freeze is executed, and nothing after it.
    Frozen,
    /// The log has its report, too.
    Reported,
    /// The decision is executed as well.
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Honest {
    /// Transaction that it locked the coin for, and voted for.
    locked: Option<Tx>,
    /// Transaction that it voted for because of the decision.
    followed: Option<Tx>,
    stage: Stage,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// Sorted: who is who makes no difference.
    honest: Vec<Honest>,
    /// Reports in the log, in sorted order; a lie is among them.
    reports: Vec<Option<Tx>>,
    /// True once the Byzantine authority reported: once, as everybody.
    lied: bool,
    decided: Option<Tx>,
}

#[derive(Clone, Debug, PartialEq)]
enum Action {
    /// A transaction reaches an honest authority.
    Show(usize, Tx),
    /// An honest authority executes the freeze.
    Freeze(usize),
    /// The log orders an honest authority's report.
    Report(usize),
    /// The log orders the Byzantine authority's.
    Lie(Option<Tx>),
    /// The log orders a certificate.
    ShowCertificate(Tx),
    /// An honest authority executes the decision, and votes.
    Follow(usize, Tx),
}

impl Release {
    fn quorum(&self) -> usize {
        self.authorities - FAULTY
    }

    /// Votes by honest authorities.
    fn honest_votes(state: &State, tx: Tx) -> usize {
        let voted = |one: &&Honest| one.locked == Some(tx) || one.followed == Some(tx);
        state.honest.iter().filter(voted).count()
    }

    fn is_certified(&self, state: &State, tx: Tx) -> bool {
        let is_known = tx != Tx::Refund || state.decided == Some(tx);
        is_known && Self::honest_votes(state, tx) + FAULTY >= self.quorum()
    }

    fn named(state: &State, tx: Tx) -> usize {
        state.reports.iter().filter(|report| **report == Some(tx)).count()
    }

    /// Tells whether so many honest authorities may have voted for it that with the liars it is
    /// certified.
    fn is_possible(&self, state: &State, tx: Tx) -> bool {
        let unheard = self.authorities - state.reports.len();
        Self::named(state, tx) + unheard >= self.quorum() - FAULTY
    }

    /// Decision that follows from the reports so far.
    fn decide(&self, state: &State) -> Option<Tx> {
        if state.reports.len() < self.quorum() {
            return None;
        }
        if self.rule == Rule::MostReported {
            return SIGNED.into_iter().max_by_key(|tx| Self::named(state, *tx));
        }
        match SIGNED.map(|tx| self.is_possible(state, tx)) {
            [false, false] => Some(Tx::Refund),
            [true, false] => Some(Tx::One),
            [false, true] => Some(Tx::Two),
            [true, true] => None,
        }
    }

    fn add_report(&self, state: &mut State, report: Option<Tx>) {
        state.reports.push(report);
        state.reports.sort_unstable();
        if state.decided.is_none() {
            state.decided = self.decide(state);
        }
    }

    fn votes_freely(&self, one: &Honest) -> bool {
        let stage = match self.rule {
            Rule::WithoutFreeze => one.stage < Stage::Done,
            _ => one.stage == Stage::Open,
        };
        stage && one.locked.is_none()
    }
}

impl Model for Release {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let honest = Honest { locked: None, followed: None, stage: Stage::Open };
        vec![State {
            honest: vec![honest; self.authorities - FAULTY],
            reports: Vec::new(),
            lied: false,
            decided: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (at, one) in state.honest.iter().enumerate() {
            if self.votes_freely(one) {
                actions.extend(SIGNED.map(|tx| Action::Show(at, tx)));
            }
            match one.stage {
                Stage::Open => actions.push(Action::Freeze(at)),
                Stage::Frozen => actions.push(Action::Report(at)),
                Stage::Reported | Stage::Done => {}
            }
            // Who executes the decision has executed the freeze, whether or not its report was
            // counted.
            if let (Stage::Frozen | Stage::Reported, Some(decided)) = (one.stage, state.decided) {
                if self.rule == Rule::SetFree && decided == Tx::Refund {
                    actions.extend(SIGNED.map(|tx| Action::Follow(at, tx)));
                } else {
                    actions.push(Action::Follow(at, decided));
                }
            }
        }
        if !state.lied {
            actions.extend([None, Some(Tx::One), Some(Tx::Two)].map(Action::Lie));
        }
        if state.decided.is_none() {
            let certified = SIGNED.into_iter().filter(|tx| self.is_certified(state, *tx));
            actions.extend(certified.map(Action::ShowCertificate));
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        match action {
            Action::Show(at, tx) => next.honest[at].locked = Some(tx),
            Action::Freeze(at) => next.honest[at].stage = Stage::Frozen,
            Action::Report(at) => {
                next.honest[at].stage = Stage::Reported;
                self.add_report(&mut next, state.honest[at].locked);
            }
            Action::Lie(report) => {
                next.lied = true;
                self.add_report(&mut next, report);
            }
            Action::ShowCertificate(tx) => next.decided = Some(tx),
            Action::Follow(at, tx) => {
                next.honest[at].followed = Some(tx);
                next.honest[at].stage = Stage::Done;
            }
        }
        next.honest.sort_unstable();
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let for_ever: fn(&Self, &State) -> bool =
            |model, state| state.reports.len() == model.authorities && state.decided.is_none();
        let in_time: fn(&Self, &State) -> bool =
            |model, state| state.reports.len() < model.quorum() || state.decided.is_some();
        vec![
            if self.authorities > 5 * FAULTY {
                Property::always("decided once all but the faulty reported", in_time)
            } else {
                Property::sometimes("two stay possible for ever", for_ever)
            },
            Property::always(NEVER_TWO, |model: &Self, state: &State| {
                let all = [Tx::One, Tx::Two, Tx::Refund];
                all.into_iter().filter(|tx| model.is_certified(state, *tx)).count() <= 1
            }),
            Property::sometimes(
                "one that was stuck is certified",
                |model: &Self, state: &State| {
                    let first =
                        |tx: Tx| state.honest.iter().filter(|one| one.locked == Some(tx)).count();
                    let all = |tx: &Tx| Self::honest_votes(state, *tx) >= model.quorum();
                    SIGNED.iter().any(|tx| all(tx) && first(*tx) < model.quorum())
                },
            ),
            Property::sometimes("a refund is certified", |model, state| {
                Self::honest_votes(state, Tx::Refund) >= model.quorum()
            }),
        ]
    }
}

const NEVER_TWO: &str = "never two certificates";

/// Every state that can be reached, and what was found on the way.
fn explored(authorities: usize, rule: Rule) -> impl Checker<Release> {
    Release { authorities, rule }.checker().spawn_bfs().join()
}

#[test]
fn a_release_never_makes_two_certificates_and_gives_coins_back() {
    explored(4, Rule::Designed).assert_properties();
}

#[test]
fn a_larger_committee_decides_as_soon_as_all_but_the_faulty_reported() {
    explored(6, Rule::Designed).assert_properties();
}

#[test]
fn broken_rules_are_caught() {
    for rule in [Rule::WithoutFreeze, Rule::MostReported, Rule::SetFree] {
        assert!(explored(4, rule).discovery(NEVER_TWO).is_some(), "{rule:?}");
    }
}
