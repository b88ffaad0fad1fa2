//! Reports read side by side, in the order of transactions.

use super::LockEntry;
use crate::{OutputId, Transaction, TxId};
use std::fmt;
use std::iter::Peekable;

/// A transaction that reports name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// Name of the transaction.
    pub tx: TxId,
    /// Inputs that it takes, as reports have them, each with the weight of those that say so (★):
    /// honest ones say the same, and what a liar adds or leaves out supports nothing of theirs.
    pub inputs: Vec<(Vec<OutputId>, u64)>,
}

/// Several authorities' locks, merged. Each is in ascending order; memory is for one transaction of
/// each.
pub struct Claims<I: Iterator> {
    reports: Vec<(u64, Peekable<I>)>,
}

impl<E, I: Iterator<Item = Result<LockEntry, E>>> Claims<I> {
    /// Merges reports, each with its authority's weight.
    pub fn of(reports: impl IntoIterator<Item = (u64, I)>) -> Self {
        let reports = reports.into_iter().map(|(weight, locks)| (weight, locks.peekable()));
        Self { reports: reports.collect() }
    }

    fn merge(&mut self) -> Result<Option<Claimed>, E> {
        let mut least: Option<TxId> = None;
        for (_, report) in &mut self.reports {
            match report.next_if(Result::is_err) {
                Some(Err(error)) => return Err(error),
                _ => least = least.into_iter().chain(first(report)).min(),
            }
        }
        let Some(tx) = least else { return Ok(None) };
        let mut inputs: Vec<(Vec<OutputId>, u64)> = Vec::new();
        for (weight, report) in &mut self.reports {
            let taken = take(report, tx);
            match inputs.iter_mut().find(|(known, _)| *known == taken) {
                Some((_, total)) => *total += *weight,
                None => inputs.push((taken, *weight)),
            }
        }
        let is_one = |taken: &[OutputId]| (1..=Transaction::INPUTS_MAX).contains(&taken.len());
        inputs.retain(|(taken, _)| is_one(taken));
        Ok(Some(Claimed { tx, inputs }))
    }
}

fn first<E>(report: &mut Peekable<impl Iterator<Item = Result<LockEntry, E>>>) -> Option<TxId> {
    report.peek()?.as_ref().ok().map(|(tx, _)| *tx)
}

/// Inputs that a report has for a transaction; of too many, one more than there may be.
fn take<E>(
    report: &mut Peekable<impl Iterator<Item = Result<LockEntry, E>>>,
    tx: TxId,
) -> Vec<OutputId> {
    let mut inputs = Vec::new();
    let is_here = |entry: &Result<LockEntry, E>| matches!(entry, Ok((found, _)) if *found == tx);
    while let Some(Ok((_, input))) = report.next_if(is_here) {
        if inputs.len() <= Transaction::INPUTS_MAX {
            inputs.push(input);
        }
    }
    inputs
}

impl<E, I: Iterator<Item = Result<LockEntry, E>>> Iterator for Claims<I> {
    type Item = Result<Claimed, E>;

    fn next(&mut self) -> Option<Self::Item> {
        let merged = self.merge();
        if merged.is_err() {
            self.reports.clear();
        }
        merged.transpose()
    }
}

impl<I: Iterator> fmt::Debug for Claims<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claims({} reports)", self.reports.len())
    }
}
