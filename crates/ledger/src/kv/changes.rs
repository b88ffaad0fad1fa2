//! A block's operations, executed one after the other.

use super::operation::{Operation, RESULT_BYTES_MAX, Scan, Step};
use super::result::{Entry, Output, Page, Refusal, StepOutput};
use crate::map::{MapWriter, entries};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::service::{KeyRange, Outcome, State, StateError};
use std::ops::ControlFlow;

/// The map with what a block changed of it so far.
pub(super) struct Changes<'a> {
    pub(super) map: MapWriter<'a>,
}

impl<'a> Changes<'a> {
    /// Changes to a state, none yet.
    pub(super) fn new(state: &'a mut dyn State) -> Self {
        Self { map: MapWriter::new(state) }
    }

    /// Executes an operation.
    ///
    /// # Errors
    /// When the state cannot be read or written.
    pub(super) fn apply(&mut self, operation: &Operation) -> Result<Outcome, StateError> {
        Ok(match operation {
            Operation::Step(step) => {
                let before = entries::get(self.map.state(), step.key())?;
                Output::Step(self.step(step, before.as_deref())?).outcome()
            }
            Operation::Scan(scan) => Output::Page(page(self.map.state(), scan)?).outcome(),
            Operation::Batch(steps) => match self.batch(steps)? {
                Ok(outputs) => Output::Batch(outputs).outcome(),
                Err(refusal) => refusal.outcome(),
            },
        })
    }

    /// All steps or none (★).
    fn batch(&mut self, steps: &[Step]) -> Result<Result<Vec<StepOutput>, Refusal>, StateError> {
        let mut before = Vec::with_capacity(steps.len());
        let mut outputs = Vec::with_capacity(steps.len());
        let mut bytes = 0;
        for (index, step) in (0..).zip(steps) {
            let entry = entries::get(self.map.state(), step.key())?;
            let output = self.step(step, entry.as_deref())?;
            before.push((step.key(), entry));
            if let StepOutput::Value(Some(value)) = &output {
                bytes += value.len();
            }
            let refusal = match output {
                StepOutput::NotSwapped { actual } => Refusal::NotSwapped { step: index, actual },
                _ if bytes > RESULT_BYTES_MAX => Refusal::ResultTooLong,
                output => {
                    outputs.push(output);
                    continue;
                }
            };
            if !mutants::active(Mutant::KvPartialBatch) {
                self.restore(before)?;
            }
            return Ok(Err(refusal));
        }
        Ok(Ok(outputs))
    }

    fn restore(&mut self, before: Vec<(&Bytes, Option<Vec<u8>>)>) -> Result<(), StateError> {
        for (key, entry) in before.into_iter().rev() {
            self.map.restore(key, entry.as_deref())?;
        }
        Ok(())
    }

    /// One step; `before` is the entry of its key.
    fn step(&mut self, step: &Step, before: Option<&[u8]>) -> Result<StepOutput, StateError> {
        let (before, value) = before.map(entries::decode).transpose()?.unzip();
        let done = StepOutput::Done { replaced: value.is_some() };
        Ok(match step {
            Step::Get { .. } => StepOutput::Value(value.map(Bytes::copy_from_slice)),
            Step::Put { key, value } => {
                self.map.replace(key, before, Some(value))?;
                done
            }
            Step::Delete { key } => {
                self.map.replace(key, before, None)?;
                done
            }
            Step::CompareAndSwap { key, expected, new } if value == expected.as_deref() => {
                self.map.replace(key, before, new.as_deref())?;
                StepOutput::Swapped
            }
            Step::CompareAndSwap { .. } => {
                StepOutput::NotSwapped { actual: value.map(Bytes::copy_from_slice) }
            }
        })
    }
}

/// Entries of a scan, as many as its limits allow.
///
/// # Errors
/// When the state cannot be read.
pub(super) fn page(state: &dyn State, scan: &Scan) -> Result<Page, StateError> {
    let mut page = Page { entries: Vec::new(), more: false };
    let mut bytes = 0;
    let keys = KeyRange { from: &scan.from, to: scan.to.as_deref() };
    entries::scan(state, keys, &mut |key, _, value| {
        bytes += key.len() + value.len();
        page.more = page.entries.len() == scan.limit as usize || bytes > RESULT_BYTES_MAX;
        if page.more {
            return ControlFlow::Break(());
        }
        let (key, value) = (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        page.entries.push(Entry { key, value });
        ControlFlow::Continue(())
    })?;
    Ok(page)
}
