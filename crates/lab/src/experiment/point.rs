//! One point measured, whoever asks for it.

use super::results::{self, FORMAT, Record};
use super::{Measured, RunError, Runner, Setup, Shard};
use quorate_report::text::utc;
use serde_json::Value;
use std::sync::atomic::AtomicBool;
use std::time::{Instant, SystemTime};

/// A point to measure, and what its result says of its origin.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// Id of the experiment.
    pub experiment: &'a str,
    /// The preset that asks for it.
    pub preset: &'a str,
    /// The part that it is measured in, if it is of one.
    pub shard: Option<Shard>,
    /// Everything that decides it.
    pub setup: &'a Setup,
    /// The machine and the binary.
    pub machine: &'a Value,
}

impl Point<'_> {
    /// Measures it. That nothing could be measured, because the point is beyond what committee or
    /// machine can do, is a result too.
    ///
    /// # Errors
    /// When it was interrupted, or no point of its kind can be measured.
    pub fn measure(
        &self,
        runner: &dyn Runner,
        interrupted: &AtomicBool,
    ) -> Result<Record, RunError> {
        let (started, began) = (utc(SystemTime::now()), Instant::now());
        let (measured, failed) = match runner.run(self.setup, interrupted) {
            Ok(measured) => (measured, None),
            Err(RunError::Failed(reason)) => (Measured::default(), Some(reason)),
            Err(error) => return Err(error),
        };
        Ok(Record {
            format: FORMAT,
            experiment: self.experiment.to_owned(),
            preset: self.preset.to_owned(),
            shard: self.shard,
            key: self.setup.key(),
            setup: self.setup.clone(),
            measured: results::rounded_all(measured.numbers),
            failed,
            signatures: measured.signatures,
            started,
            wall_s: results::rounded(began.elapsed().as_secs_f64()),
            machine: self.machine.clone(),
            details: results::rounded_within(measured.details),
        })
    }
}
