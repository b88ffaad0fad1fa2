//! Effects that nobody waits for, on their way to a thread that may sleep meanwhile.
//!
//! A decided height is appended without a barrier, and of one that orders nothing the execution
//! has nothing to tell anybody. Where few requests come, every other height is such a one, and
//! each woke two threads. So a host may hold these back here until something else goes the same
//! way, there are enough of them, or it is time ([`Deferred::flush`]).
//!
//! Nothing is overtaken: what goes to the log takes the heights that were appended before it along,
//! ahead of it (★: a promise may rely on them), and a task those before it. What is lost with the
//! process was promised to nobody: the decided record is in the state with its height, or others
//! have it.

use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Effect;
use quorate_types::machine::{DecidedRecord, Task};

/// So many of a kind go on their way, whatever follows: far fewer than the state keeps of decided
/// records.
const DEFERRED_MAX: usize = 8;

/// Effects held back, in their order.
#[derive(Debug, Default)]
pub struct Deferred {
    appends: Vec<DecidedRecord>,
    tasks: Vec<Task>,
}

impl Deferred {
    /// Passes an effect on to `dispatch`, after those that must be ahead of it, or holds it back.
    ///
    /// # Errors
    /// What `dispatch` fails of.
    pub fn pass<M, S>(
        &mut self,
        effect: Effect<M>,
        mut dispatch: impl FnMut(Effect<M>) -> Result<(), S>,
    ) -> Result<(), S> {
        match effect {
            Effect::Append(record) => {
                self.appends.push(record);
                if self.appends.len() < DEFERRED_MAX {
                    return Ok(());
                }
                self.flush_appends(dispatch)
            }
            Effect::Task(task) if is_empty_height(&task) => {
                self.tasks.push(task);
                if self.tasks.len() < DEFERRED_MAX {
                    return Ok(());
                }
                self.flush_tasks(dispatch)
            }
            Effect::Persist(_) | Effect::Store(_) | Effect::Release(_) | Effect::Read(_) => {
                if !mutants::active(Mutant::HostAppendsBehind) {
                    self.flush_appends(&mut dispatch)?;
                }
                dispatch(effect)
            }
            Effect::Task(_) => {
                self.flush_tasks(&mut dispatch)?;
                dispatch(effect)
            }
            Effect::Send { .. }
            | Effect::Combine(_)
            | Effect::Certified(_)
            | Effect::StopSigning(_)
            | Effect::Halt(_) => dispatch(effect),
        }
    }

    /// Passes on all that is held back: what there is has waited for long enough, or nothing may
    /// follow.
    ///
    /// # Errors
    /// What `dispatch` fails of.
    pub fn flush<M, S>(
        &mut self,
        mut dispatch: impl FnMut(Effect<M>) -> Result<(), S>,
    ) -> Result<(), S> {
        self.flush_appends(&mut dispatch)?;
        self.flush_tasks(dispatch)
    }

    /// Returns `true` if nothing is held back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.appends.is_empty() && self.tasks.is_empty()
    }

    fn flush_appends<M, S>(
        &mut self,
        dispatch: impl FnMut(Effect<M>) -> Result<(), S>,
    ) -> Result<(), S> {
        self.appends.drain(..).map(Effect::Append).try_for_each(dispatch)
    }

    fn flush_tasks<M, S>(
        &mut self,
        dispatch: impl FnMut(Effect<M>) -> Result<(), S>,
    ) -> Result<(), S> {
        self.tasks.drain(..).map(Effect::Task).try_for_each(dispatch)
    }
}

/// Returns `true` for a height that orders nothing: no client hears of its execution.
fn is_empty_height(task: &Task) -> bool {
    matches!(task, Task::Execute(block) if block.payload.is_empty())
}

#[cfg(test)]
mod tests;
