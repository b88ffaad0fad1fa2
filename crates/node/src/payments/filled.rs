//! Inputs that are spent before anything is locked, for measurements of an authority that has
//! spent much.

use super::epochs::{epoch_folder, owner_of};
use super::locks::{HOT_INPUTS, SPENT_FOLDER};
use super::{AuthorityConfig, locks::cold, read_network};
use crate::NodeError;
use quorate_crypto::{KeyFile, hash};
use quorate_payments::{Locked, OutputId, TxId};
use quorate_storage::{Owner, RealDisk, RunItem, Runs, StorageError};
use std::ops::Range;
use std::path::Path;

/// So many inputs that nobody locked, in runs of the sizes that moves out of memory leave.
#[derive(Clone, Debug)]
pub struct SpentFill {
    /// Numbers of the inputs in each run, the largest run first.
    runs: Vec<Range<u64>>,
}

impl SpentFill {
    /// Plans the runs: two of like size became one, so there is one for each binary digit of the
    /// number of moves.
    #[must_use]
    pub fn new(inputs: u64) -> Self {
        let move_inputs = HOT_INPUTS as u64;
        let moves = inputs / move_inputs;
        let digits = (0..u64::BITS).rev().map(|digit| moves & (1 << digit));
        let mut sizes: Vec<u64> =
            digits.filter(|moves| *moves > 0).map(|moves| moves * move_inputs).collect();
        match sizes.first_mut() {
            Some(first) => *first += inputs % move_inputs,
            None => sizes.extend((inputs > 0).then_some(inputs)),
        }
        let mut next = 0;
        let numbered = |size: u64| {
            next += size;
            next - size..next
        };
        Self { runs: sizes.into_iter().map(numbered).collect() }
    }

    /// Number of runs that [`SpentFill::write`] writes.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Input of a number below that of all inputs.
    ///
    /// # Panics
    /// When there is no such input.
    #[must_use]
    pub fn input(&self, number: u64) -> OutputId {
        let after = self.runs.partition_point(|run| run.start <= number);
        input(&self.runs[after - 1], number)
    }

    /// Writes the runs where [`recover`](super::recover) finds them.
    ///
    /// # Errors
    /// When they are somebody else's or the disk fails.
    ///
    /// # Panics
    /// When something is spent there already.
    pub fn write(&self, folder: &Path, owner: &Owner) -> Result<(), StorageError> {
        // Written once, from start to end, as a move does.
        let disk = RealDisk::open(&folder.join(SPENT_FOLDER))?.without_zeroing();
        let runs = Runs::open(Box::new(disk), owner)?;
        assert!(runs.is_empty() && runs.covered() == 0, "only what is empty is filled");
        for run in &self.runs {
            let count = usize::try_from(run.end - run.start).expect("fewer than memory has bytes");
            let item = |number| item(run, run.start + number as u64);
            runs.add(0, (0..count).map(item))?;
        }
        Ok(())
    }

    /// Writes the runs for a shard of an authority that never ran.
    ///
    /// # Errors
    /// When its network cannot be read, or as [`SpentFill::write`].
    ///
    /// # Panics
    /// When something is spent there already.
    pub fn write_for(&self, config: &AuthorityConfig, keys: &KeyFile) -> Result<(), NodeError> {
        let network = read_network(&config.network)?;
        let owner = owner_of(&network, keys.identity.public(), config.shard);
        Ok(self.write(&epoch_folder(&config.data_dir, &network), &owner)?)
    }
}

/// Made in the order of numbers, and as spread as hashes.
fn input(run: &Range<u64>, number: u64) -> OutputId {
    let mut name = hash(&number.to_le_bytes());
    let apart = u64::MAX / (run.end - run.start);
    name.0[..8].copy_from_slice(&((number - run.start) * apart).to_be_bytes());
    OutputId { tx: TxId(name), index: 0 }
}

fn item(run: &Range<u64>, number: u64) -> RunItem {
    let input = input(run, number);
    cold::item(input, Locked { tx: input.tx, sequence: number })
}

#[cfg(test)]
mod tests;
