//! Division of the machine's processors between an authority and its load.

use super::PayBenchError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io;

/// Processors of one authority under load, by the system's numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// Those of each shard, which runs on them alone.
    pub shards: Vec<Vec<usize>>,
    /// Those of the load, which nothing of the authority runs on.
    pub load: Vec<usize>,
}

/// Reason for which processors cannot be divided as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoresError {
    /// Some shards would have more than others.
    #[error("{cores} processors do not divide among {shards} shards: name a multiple of {shards}")]
    Uneven {
        /// Number of processors for the authority.
        cores: usize,
        /// Shards that share them.
        shards: u16,
    },
    /// Nothing is left for the load.
    #[error(
        "{cores} processors for the authority and one for its load are more than the {here} that \
         this process may use"
    )]
    TooFew {
        /// Number of processors for the authority.
        cores: usize,
        /// Processors that there are.
        here: usize,
    },
}

impl Cores {
    /// Gives the last `cores` of those that are `here` to the shards, each as many, and the others
    /// to the load.
    ///
    /// # Errors
    /// When they do not divide, or none is left for the load.
    fn divide(here: &[usize], cores: usize, shards: u16) -> Result<Self, CoresError> {
        let each = cores / usize::from(shards);
        if each == 0 || each * usize::from(shards) != cores {
            return Err(CoresError::Uneven { cores, shards });
        }
        if cores >= here.len() {
            return Err(CoresError::TooFew { cores, here: here.len() });
        }
        let (load, authority) = here.split_at(here.len() - cores);
        let shards = authority.chunks(each).map(<[usize]>::to_vec).collect();
        Ok(Self { shards, load: load.to_vec() })
    }

    /// Divides what this process may use as a measurement asks; where it names no number, one for
    /// each shard, or `None` where that leaves none for the load: then all share all.
    ///
    /// # Errors
    /// When a number is named that cannot be divided so, or the system does not say what there is.
    pub fn plan(cores: Option<usize>, shards: u16) -> Result<Option<Self>, PayBenchError> {
        let here = allowed().map_err(|source| PayBenchError::System {
            what: "ask for this process's processors",
            source,
        })?;
        match cores {
            Some(cores) => Ok(Some(Self::divide(&here, cores, shards)?)),
            None => Ok(Self::divide(&here, usize::from(shards), shards).ok()),
        }
    }

    /// Number that the authority has.
    #[must_use]
    pub fn of_authority(&self) -> usize {
        self.shards.iter().map(Vec::len).sum()
    }
}

/// Processors that this thread may run on, in ascending order.
fn allowed() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect())
}

/// Keeps this thread, and those that it starts from now on, on these processors.
///
/// # Errors
/// When one of them is not there.
pub fn pin(cores: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for core in cores.iter().filter(|core| **core < CpuSet::MAX_CPU) {
        set.set(*core);
    }
    sched_setaffinity(None, &set)?;
    // The system leaves out what it has not.
    let are_all = cores.iter().all(|core| *core < CpuSet::MAX_CPU);
    let asked: BTreeSet<usize> = cores.iter().copied().collect();
    if are_all && allowed()?.into_iter().eq(asked) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not all of them are here"))
}

#[cfg(test)]
mod tests;
