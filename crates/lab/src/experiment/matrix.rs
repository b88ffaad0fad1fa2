//! From base, preset and matrix to points, in random order.

use super::Setup;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use toml::{Table, Value};

/// One point to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Identity of the point: [`Setup::key`].
    pub key: String,
    /// Everything that decides it.
    pub setup: Setup,
}

/// Fields whose single value is a list already.
const LISTS: [&str; 1] = ["regions"];

/// Most points of an experiment.
const POINTS_MAX: usize = 100_000;

/// Every combination of a matrix' values, over `base`.
///
/// # Errors
/// What does not fit, naming the field where that is known.
pub(super) fn expand(base: &Table, matrix: &Table) -> Result<Vec<Setup>, String> {
    let mut tables = vec![base.clone()];
    for (name, value) in matrix {
        let choices = choices(name, value)?;
        if tables.len().saturating_mul(choices.len()) > POINTS_MAX {
            return Err(format!("more than {POINTS_MAX} points"));
        }
        let with = |choice: &Value| {
            tables
                .iter()
                .cloned()
                .map(|mut table| {
                    table.insert(name.clone(), choice.clone());
                    table
                })
                .collect::<Vec<_>>()
        };
        tables = choices.iter().flat_map(with).collect();
    }
    tables.into_iter().map(setup_of).collect()
}

fn choices(name: &str, value: &Value) -> Result<Vec<Value>, String> {
    let one_list = LISTS.contains(&name)
        && value.as_array().is_some_and(|items| items.iter().all(Value::is_str));
    match value {
        Value::Array(items) if items.is_empty() && !one_list => {
            Err(format!("'{name}' is an empty list: nothing would be measured"))
        }
        Value::Array(items) if !one_list => Ok(items.clone()),
        single => Ok(vec![single.clone()]),
    }
}

/// The point that a table of fields describes.
///
/// # Errors
/// What does not fit, naming the field where that is known.
pub(crate) fn setup_of(table: Table) -> Result<Setup, String> {
    // One at a time, so that the error can name the field: the whole would only say "invalid type".
    for (name, value) in &table {
        let alone = Table::from_iter([(name.clone(), value.clone())]);
        alone.try_into::<Setup>().map_err(|error| {
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            format!("'{name}' is {value}: {message}")
        })?;
    }
    let setup: Setup = table.try_into().map_err(|error| error.message().to_owned())?;
    setup.validate()?;
    Ok(setup)
}

/// Each setup so often, with seeds that count up; each different point once, shuffled by `seed`.
pub(super) fn jobs(setups: &[Setup], repeats: u32, seed: u64) -> Vec<Job> {
    let repeated = |setup: &Setup| {
        let setup = setup.clone();
        (0..u64::from(repeats)).map(move |repeat| {
            let setup = Setup { seed: setup.seed + repeat, ..setup.clone() };
            Job { key: setup.key(), setup }
        })
    };
    let mut jobs: Vec<Job> = setups.iter().flat_map(repeated).collect();
    jobs.sort_by(|a, b| a.key.cmp(&b.key));
    jobs.dedup_by(|a, b| a.key == b.key);
    shuffle(&mut jobs, seed);
    jobs
}

/// Fisher and Yates' shuffle.
pub(crate) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut draws = ChaCha8Rng::seed_from_u64(seed);
    for last in (1..items.len()).rev() {
        let other = (draws.next_u64() % (last as u64 + 1)) as usize;
        items.swap(last, other);
    }
}
