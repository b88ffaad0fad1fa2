//! A committee that does nothing wrong because it does nothing is broken too.

use super::{Observation, Oracle, RunEnd};
use quorate_types::Height;

/// After the faults are over, everything that was asked is done, and every replica has executed up
/// to the last height that holds an operation. Empty heights after it may be known to some only: an
/// idle committee says no more. Every change of committee that was brought has ended its epoch, and
/// every replica is in the last one.
#[derive(Debug, Default)]
pub struct Progress {
    submitted: u64,
    completed: u64,
    last_filled: Height,
}

impl Oracle for Progress {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Submitted { .. } => self.submitted += 1,
            Observation::Completed { .. } => self.completed += 1,
            Observation::Executed { height, operations, .. } if !operations.is_empty() => {
                self.last_filled = self.last_filled.max(*height);
            }
            _ => (),
        }
        Ok(())
    }

    fn finish(&mut self, ending: &RunEnd) -> Result<(), String> {
        let Self { submitted, completed, last_filled } = self;
        if *completed == 0 {
            return Err(format!("none of {submitted} operations completed"));
        }
        if completed < submitted {
            return Err(format!("{completed} of {submitted} operations completed in time"));
        }
        if ending.changes_waiting > 0 {
            return Err(format!("{} changes of committee took no effect", ending.changes_waiting));
        }
        let last = ending.last_epoch;
        if let Some((replica, epoch)) = ending.epochs.iter().find(|(_, epoch)| *epoch < last) {
            return Err(format!("{replica} is in epoch {epoch}, others are in {last}"));
        }
        for (replica, height) in &ending.heights {
            match height {
                None => return Err(format!("{replica} is down")),
                Some(height) if height < last_filled => {
                    return Err(format!("{replica} is at {height}, others executed {last_filled}"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
