//! Correct members meet: 004's theorem that after GST there are infinitely many views in which all
//! honest replicas stand together under an honest leader.

use super::{Observation, Oracle, RunEnd};

/// After the faults are over, so many views must not pass without such a one.
#[derive(Debug)]
pub struct Together {
    views_max: u64,
}

impl Together {
    /// For a committee of `members`: every one of them has led several times by then.
    #[must_use]
    pub fn new(members: usize) -> Self {
        Self { views_max: 8 * members as u64 }
    }
}

impl Oracle for Together {
    fn name(&self) -> &'static str {
        "together"
    }

    fn observe(&mut self, _: &Observation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn finish(&mut self, ending: &RunEnd) -> Result<(), String> {
        if ending.together || ending.views_after <= self.views_max {
            return Ok(());
        }
        Err(format!(
            "in {} views after the faults no correct leader had all correct members with it",
            ending.views_after
        ))
    }
}
