//! A checkpoint that is on its way to the disk.

use parking_lot::{Condvar, Mutex};
use quorate_types::service::StateError;
use std::fmt;
use std::sync::Arc;

/// Handle on a checkpoint: what was committed before it, becoming durable. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint(Arc<Shared>);

#[derive(Default)]
struct Shared {
    outcome: Mutex<Option<Result<(), StateError>>>,
    ended: Condvar,
    /// Ends it now, where no thread does.
    finish: Option<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Shared").field(&self.outcome).finish()
    }
}

impl Checkpoint {
    /// A checkpoint that is durable.
    #[must_use]
    pub fn durable() -> Self {
        let checkpoint = Self::default();
        checkpoint.end(Ok(()));
        checkpoint
    }

    /// A checkpoint that no thread writes: whoever waits calls this, and it is over then.
    pub(super) fn finished_by(finish: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { finish: Some(Box::new(finish)), ..Shared::default() }))
    }

    /// Says how it ended.
    pub(crate) fn end(&self, outcome: Result<(), StateError>) {
        *self.0.outcome.lock() = Some(outcome);
        self.0.ended.notify_all();
    }

    /// Outcome of the checkpoint; `None` while it is on its way.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<(), StateError>> {
        self.0.outcome.lock().clone()
    }

    /// Blocks until it is durable.
    ///
    /// # Errors
    /// When the store could not be written.
    pub fn wait(&self) -> Result<(), StateError> {
        if let Some(finish) = &self.0.finish {
            finish();
        }
        let mut outcome = self.0.outcome.lock();
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => self.0.ended.wait(&mut outcome),
            }
        }
    }
}
