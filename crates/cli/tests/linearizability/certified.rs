//! Reads that members prove without a place in the order: they may be old, but they were so.

use super::history::{Call, CertifiedRead, End, History, Value};
use std::collections::BTreeMap;

/// Reason for which a certified read of a key cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lie<'a> {
    /// Two differ about one height.
    Disagree(&'a CertifiedRead, &'a CertifiedRead),
    /// Nobody had written the value when it was read.
    Invented(&'a CertifiedRead),
    /// The value was written above the height.
    TooEarly(&'a CertifiedRead, &'a Call),
    /// The call had replaced the value at the height or before.
    Replaced(&'a CertifiedRead, &'a Call),
}

/// Checks the certified reads of one key against each other and against its calls, by heights.
///
/// # Errors
/// The first that cannot be.
pub(crate) fn check(history: &History) -> Result<(), Lie<'_>> {
    let mut by_height = BTreeMap::new();
    for read in &history.reads {
        let first = by_height.entry(read.height).or_insert(read);
        if first.value != read.value {
            return Err(Lie::Disagree(first, read));
        }
        check_one(&history.calls, read)?;
    }
    Ok(())
}

fn check_one<'a>(calls: &'a [Call], read: &'a CertifiedRead) -> Result<(), Lie<'a>> {
    let explains =
        |call: &&Call| call.written() == Some(read.value) && call.invoked <= read.returned;
    let writers: Vec<&Call> = calls.iter().filter(explains).collect();
    match read.value {
        Some(_) => check_value(calls, read, &writers),
        None => check_absence(calls, read, &writers),
    }
}

/// A value is written by one call. What replaced it can be told apart where both heights are known.
fn check_value<'a>(
    calls: &'a [Call],
    read: &'a CertifiedRead,
    writers: &[&'a Call],
) -> Result<(), Lie<'a>> {
    let Some(writer) = writers.first() else { return Err(Lie::Invented(read)) };
    let Some(written) = writer.end.map(|end| end.height) else { return Ok(()) };
    if written > read.height {
        return Err(Lie::TooEarly(read, writer));
    }
    refute(read, calls.iter().find(|call| wrote_between(call, written, read)))
}

/// The key held nothing from the start, or since some call that is at or above all that wrote
/// something.
fn check_absence<'a>(
    calls: &'a [Call],
    read: &'a CertifiedRead,
    removers: &[&'a Call],
) -> Result<(), Lie<'a>> {
    let mut since = 0;
    for remover in removers {
        match remover.end {
            // It may have been at any height.
            None => return Ok(()),
            Some(end) if end.height <= read.height => since = since.max(end.height),
            Some(_) => {}
        }
    }
    refute(read, calls.iter().find(|call| wrote_between(call, since, read)))
}

/// Returns `true` if the call wrote another value for certain, above `after` and at the read's
/// height or before.
fn wrote_between(call: &Call, after: u64, read: &CertifiedRead) -> bool {
    let is_between = |height: u64| after < height && height <= read.height;
    let is_other = |value: Value| value != read.value;
    call.written().is_some_and(is_other) && call.end.is_some_and(|end| is_between(end.height))
}

fn refute<'a>(read: &'a CertifiedRead, by: Option<&'a Call>) -> Result<(), Lie<'a>> {
    by.map_or(Ok(()), |call| Err(Lie::Replaced(read, call)))
}

/// Two calls of which the second began when the first had returned, and took effect at a lower
/// height.
pub(crate) fn find_disorder(calls: &[Call]) -> Option<(Call, Call)> {
    let ended = || calls.iter().filter_map(|call| Some((call, call.end?)));
    ended().find_map(|(first, end)| {
        let is_below =
            |(call, other): &(&Call, End)| end.returned < call.invoked && other.height < end.height;
        ended().find(is_below).map(|(second, _)| (*first, *second))
    })
}

#[cfg(test)]
mod tests;
