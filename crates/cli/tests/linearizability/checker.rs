//! Checker of the calls of one key: they are linearizable if there is an order of them, with each
//! between its invocation and its return, in which each gets the reply that a register gives.
//!
//! The search of Wing and Gong (1993), with Lowe's memory (2017) of the sets of calls that were
//! ordered before and the value that they left. Calls that ended are tried by their return, and
//! those without a definite end after all others: they need not be ordered at all, so most often
//! the search goes straight on.
//!
//! Own, because `stateright`'s tester remembers nothing of where it was, which takes exponential
//! time where calls overlap, and lets a client go on only after its last call returned.

use super::history::{Action, Call, Reply, Value};
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// Most points of the search. A history of this test needs about as many as it has calls.
const POINTS_MAX: usize = 100_000;

/// No order explains the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The longest order that was found.
    pub(crate) ordered: Vec<Call>,
    /// Value that the key held then.
    pub(crate) value: Value,
    /// Calls that could have come next, and did not fit.
    pub(crate) misfits: Vec<Call>,
}

/// Finds an order.
///
/// # Errors
/// When there is none.
///
/// # Panics
/// When the search gives up.
pub(crate) fn check(calls: &[Call]) -> Result<(), Violation> {
    let mut search = Search::new(calls);
    let mut options = search.options();
    while !search.is_complete() {
        if let Some(call) = options.pop() {
            if search.take(call, &options) {
                options = search.options();
            }
        } else {
            options = search.give_back().ok_or_else(|| search.violation())?;
        }
    }
    Ok(())
}

/// Reply of a register that holds `value`, and the value that it holds then.
fn apply(value: Value, action: Action) -> (Reply, Value) {
    let replaced = value.is_some();
    match action {
        Action::Get => (Reply::Value(value), value),
        Action::Put(new) => (Reply::Done { replaced }, Some(new)),
        Action::Delete => (Reply::Done { replaced }, None),
        Action::Swap { expected, new } if value == expected => (Reply::Swapped, new),
        Action::Swap { .. } => (Reply::NotSwapped { actual: value }, value),
    }
}

struct Search<'a> {
    calls: &'a [Call],
    value: Value,
    is_ordered: Vec<bool>,
    order: Vec<Step>,
    longest: Vec<usize>,
    points: BTreeSet<(Vec<bool>, Value)>,
}

/// A call in the order, and how to go on without it.
struct Step {
    call: usize,
    before: Value,
    others: Vec<usize>,
}

impl<'a> Search<'a> {
    fn new(calls: &'a [Call]) -> Self {
        Self {
            calls,
            value: None,
            is_ordered: vec![false; calls.len()],
            order: Vec::new(),
            longest: Vec::new(),
            points: BTreeSet::new(),
        }
    }

    fn left(&self) -> impl Iterator<Item = usize> {
        (0..self.calls.len()).filter(|call| !self.is_ordered[*call])
    }

    fn is_complete(&self) -> bool {
        self.left().all(|call| self.calls[call].end.is_none())
    }

    /// The calls that may come next, the best last: all that nobody waited for when they began.
    fn options(&self) -> Vec<usize> {
        let first_return = self.left().map(|call| self.returned(call)).min();
        let first_return = first_return.unwrap_or(Duration::MAX);
        let may_come = |call: &usize| self.calls[*call].invoked <= first_return;
        let mut options: Vec<usize> = self.left().filter(may_come).collect();
        options.sort_by_key(|call| std::cmp::Reverse(self.returned(*call)));
        options
    }

    fn returned(&self, call: usize) -> Duration {
        self.calls[call].end.map_or(Duration::MAX, |end| end.returned)
    }

    /// Orders a call if its reply fits and nobody was here before.
    fn take(&mut self, call: usize, others: &[usize]) -> bool {
        let Call { action, .. } = self.calls[call];
        let (reply, after) = apply(self.value, action);
        if self.calls[call].reply().is_some_and(|seen| seen != reply) {
            return false;
        }
        self.is_ordered[call] = true;
        if !self.points.insert((self.is_ordered.clone(), after)) {
            self.is_ordered[call] = false;
            return false;
        }
        assert!(self.points.len() < POINTS_MAX, "the search for an order takes too long");
        let before = std::mem::replace(&mut self.value, after);
        self.order.push(Step { call, before, others: others.to_vec() });
        if self.order.len() > self.longest.len() {
            self.longest = self.order.iter().map(|step| step.call).collect();
        }
        true
    }

    /// Takes the last call back; what else could have come in its place.
    fn give_back(&mut self) -> Option<Vec<usize>> {
        let Step { call, before, others } = self.order.pop()?;
        self.is_ordered[call] = false;
        self.value = before;
        Some(others)
    }

    fn violation(&self) -> Violation {
        let mut furthest = Search::new(self.calls);
        for call in &self.longest {
            furthest.take(*call, &[]);
        }
        let calls = |indices: &[usize]| indices.iter().map(|index| self.calls[*index]).collect();
        Violation {
            ordered: calls(&self.longest),
            value: furthest.value,
            misfits: calls(&furthest.options()),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "no order explains the calls. The longest ends with")?;
        for call in &self.ordered[self.ordered.len().saturating_sub(30)..] {
            writeln!(f, "  {call}")?;
        }
        writeln!(f, "then the key holds {:?}, and next were", self.value)?;
        self.misfits.iter().try_for_each(|call| writeln!(f, "  {call}"))
    }
}

#[cfg(test)]
mod tests;
