//! A service that remembers what it was asked to execute.

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_crypto::Digest;
use quorate_types::service::{BlockContext, State, StateError};
use quorate_types::{ClientId, Operation, Outcome, Service, Versions};
use std::sync::Arc;

/// An operation as the service saw it.
pub type Seen = (ClientId, Bytes);

/// Reads out what a [`RecordingService`] executed.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Recorder {
    /// The operations executed since the last call, in order.
    #[must_use]
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock())
    }
}

/// Passes everything on to the service inside.
pub struct RecordingService {
    inner: Box<dyn Service>,
    recorder: Recorder,
}

impl RecordingService {
    /// Wraps `inner`, and gives the reader of what it saw.
    #[must_use]
    pub fn new(inner: Box<dyn Service>) -> (Self, Recorder) {
        let recorder = Recorder::default();
        (Self { inner, recorder: recorder.clone() }, recorder)
    }
}

impl Service for RecordingService {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn versions(&self) -> Versions {
        self.inner.versions()
    }

    fn execute_by(&mut self, version: u64) {
        self.inner.execute_by(version);
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        self.inner.admit(operation)
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let seen = operations.iter().map(|operation| (operation.client, operation.bytes.clone()));
        self.recorder.seen.lock().extend(seen);
        self.inner.execute(state, block, operations)
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        self.inner.root(state)
    }
}
