//! A committee that does nothing wrong because it does nothing is broken too.

use super::{Ending, Observation, Oracle};

/// After the faults are over, everything that was asked is done and every replica gets there.
#[derive(Debug, Default)]
pub struct Progress {
    submitted: u64,
    completed: u64,
}

impl Oracle for Progress {
    fn name(&self) -> &'static str {
        "progress"
    }

    fn observe(&mut self, observation: &Observation<'_>) -> Result<(), String> {
        match observation {
            Observation::Submitted { .. } => self.submitted += 1,
            Observation::Completed { .. } => self.completed += 1,
            _ => (),
        }
        Ok(())
    }

    fn finish(&mut self, ending: &Ending) -> Result<(), String> {
        let Self { submitted, completed } = self;
        if *completed == 0 {
            return Err(format!("none of {submitted} operations completed"));
        }
        if completed < submitted {
            return Err(format!("{completed} of {submitted} operations completed in time"));
        }
        let heights: Vec<_> = ending.heights.iter().map(|(_, height)| *height).collect();
        if heights.windows(2).any(|pair| pair[0] != pair[1]) {
            let shown: Vec<String> = ending
                .heights
                .iter()
                .map(|(id, height)| height.map_or(format!("{id} down"), |h| format!("{id} at {h}")))
                .collect();
            return Err(format!("the replicas did not come together: {}", shown.join(", ")));
        }
        Ok(())
    }
}
