//! A service that does nothing.

use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_types::Versions;
use quorate_types::service::{
    Admission, BlockContext, Operation, Outcome, Service, State, StateError,
};
use std::sync::Arc;

/// Applies every operation without looking at it; its result is empty and it has no state. What a
/// benchmark of it measures is everything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noop;

impl Noop {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = "noop";
    /// Versions of its rules that are here.
    pub const VERSIONS: Versions = Versions::FIRST;
}

impl Service for Noop {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn versions(&self) -> Versions {
        Self::VERSIONS
    }

    fn admit(&self, _: Operation<'_>) -> Result<(), String> {
        Ok(())
    }

    fn admission(&self) -> Option<Arc<dyn Admission>> {
        Some(Arc::new(Self))
    }

    fn execute(
        &mut self,
        _: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        Ok(vec![Outcome::Applied(Bytes::new()); operations.len()])
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(Digest::ZERO)
    }
}
