//! A result beside an earlier one of the same machine.

use super::SuiteError;
use super::figures::FIGURES;
use super::result::{Compared, Earlier, RowResult, SuiteResult};
use crate::experiment::Setup;
use crate::experiment::results::{processor_of, rounded};
use serde_json::Value;
use std::collections::BTreeMap;

impl SuiteResult {
    /// Checks that what is measured on a machine may stand beside this earlier result.
    ///
    /// # Errors
    /// When it is of another machine, unless that is allowed, or of a binary built otherwise.
    pub fn check_earlier(&self, machine: &Value, other_machine: bool) -> Result<(), SuiteError> {
        let (there, here) = (self.processor(), processor_of(machine));
        if there != here && !other_machine {
            return Err(SuiteError::OtherMachine { there, here });
        }
        let (there, here) = (build(&self.machine), build(machine));
        if there != here {
            return Err(SuiteError::OtherBuild { there, here });
        }
        Ok(())
    }

    /// Puts it beside an earlier result.
    pub fn compare(&mut self, earlier: &Self) {
        self.against = Some(Earlier {
            started: earlier.started.clone(),
            commit: earlier.commit().to_owned(),
            processor: earlier.processor(),
        });
        for row in &mut self.rows {
            let then = earlier.rows.iter().find(|then| then.row == row.row);
            row.against = Some(then.map_or_else(|| note("not there"), |then| compared(row, then)));
        }
    }
}

fn compared(row: &RowResult, then: &RowResult) -> Compared {
    if work(row) != work(then) {
        return note("other settings");
    }
    let ratio = |figure: &super::figures::Figure| {
        let (name, now) = figure.of(&row.record)?;
        let before = then.record.measured.get(name).filter(|before| **before > 0.0)?;
        Some((name.to_owned(), rounded(now / before)))
    };
    let ratios = FIGURES.iter().filter_map(ratio).collect();
    let was_quiet = then.disturbances.is_empty();
    Compared { ratios, note: (!was_quiet).then(|| "not quiet then".to_owned()) }
}

/// Everything that decides a row's run. A rate that follows from another's or is searched for
/// does not.
fn work(row: &RowResult) -> (Setup, Option<f64>) {
    let setup = &row.record.setup;
    let rate = if row.rate_times.is_some() || setup.find_max { 0 } else { setup.rate };
    (Setup { rate, ..setup.clone() }, row.rate_times)
}

fn note(text: &str) -> Compared {
    Compared { ratios: BTreeMap::new(), note: Some(text.to_owned()) }
}

fn build(machine: &Value) -> &'static str {
    if machine["optimised"] == true { "optimised" } else { "not optimised" }
}
