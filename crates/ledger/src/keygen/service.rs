//! The ceremony as a replicated service.

use super::ceremony::Ceremony;
use super::plan::{Plan, SERVICE};
use super::step::SignedStep;
use bytes::Bytes;
use quorate_crypto::{Digest, hash_parts};
use quorate_types::service::{
    BlockContext, KeyRange, Operation, Outcome, Service, State, StateError,
};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Generates threshold keys: its operations are [`SignedStep`]s.
///
/// * **Result**: nothing, or in words why the step changed nothing.
/// * **State**: the steps that were not refused, under their numbers. All else follows from them
///   and is kept in memory.
#[derive(Debug)]
pub struct KeyGeneration {
    ceremony: Ceremony,
}

impl KeyGeneration {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = SERVICE;

    /// One that nobody has joined.
    #[must_use]
    pub fn new(plan: Arc<Plan>) -> Self {
        Self { ceremony: Ceremony::new(plan) }
    }

    /// Progress of the generation, step by step.
    #[must_use]
    pub fn ceremony(&self) -> &Ceremony {
        &self.ceremony
    }
}

impl Service for KeyGeneration {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn open(&mut self, state: &dyn State) -> Result<(), StateError> {
        let mut ceremony = Ceremony::new(Arc::clone(self.ceremony.plan()));
        let mut sound = true;
        state.scan(KeyRange::ALL, &mut |_, bytes| {
            let step = SignedStep::decode(bytes);
            sound = step.is_some_and(|step| ceremony.apply(&step).is_ok());
            if sound { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        if !sound {
            return Err(StateError("a step that was taken is refused when it is read back".into()));
        }
        self.ceremony = ceremony;
        Ok(())
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        if operation.bytes.len() > SignedStep::BYTES_MAX {
            let most = SignedStep::BYTES_MAX;
            return Err(format!("a step takes at most {most} bytes"));
        }
        let signed = SignedStep::decode(operation.bytes).ok_or("this is no step")?;
        match signed.open(self.ceremony.plan()) {
            Some(_) => Ok(()),
            None => Err("the step does not decode, or its member did not sign it".into()),
        }
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            let (number, _) = self.ceremony.head();
            let taken = match SignedStep::decode(operation.bytes) {
                Some(step) => self.ceremony.apply(&step).map_err(|refusal| refusal.to_string()),
                None => Err("this is no step".to_owned()),
            };
            outcomes.push(match taken {
                Ok(()) => {
                    state.put(&number.to_be_bytes(), operation.bytes)?;
                    Outcome::Applied(Bytes::new())
                }
                Err(reason) => Outcome::Refused(reason.into()),
            });
        }
        Ok(outcomes)
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        let (count, head) = self.ceremony.head();
        Ok(hash_parts("quorate v1 key generation root", &[&count.to_le_bytes(), &head.0]))
    }
}
