//! A key-value service whose state is proven to clients.
//!
//! * **Operations** ([`Operation`]): get, put, delete, compare-and-swap, scans, and batches of
//!   steps that take effect together or not at all. Results are [`Output`]s, refusals [`Refusal`]s.
//! * **Queries** ([`Query`]): a key or a range, answered by any one member, with a proof.
//!   [`verify_answer`] checks it under the state's root, which a quorum signed.
//! * **State**: under `k` ‖ key, the value's hash and the value. Its root is that of a tree over
//!   all keys, which follows from what the state holds alone, not from its history: replicas that
//!   replayed and replicas that took a snapshot agree.
//!
//! ADR 19 has the alternatives.

mod changes;
mod operation;
mod query;
mod result;

pub use crate::map::{
    KEY_BYTES_MAX, PROOF_BYTES_MAX, ProofError, ProvenRange, value_hash, verify_get, verify_range,
};
pub use operation::{
    BATCH_STEPS_MAX, FormError, Operation, RESULT_BYTES_MAX, SCAN_ENTRIES_MAX, Scan, Step,
    VALUE_BYTES_MAX,
};
pub use query::{Answer, Query, check_answer, verify_answer};
pub use result::{Entry, OutcomeError, Output, Page, Refusal, StepOutput};

use crate::map::{Tree, entries};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use changes::Changes;
use quorate_crypto::Digest;
use quorate_types::Versions;
use quorate_types::service::{
    self, Admission, BlockContext, Outcome, Proven, Service, State, StateError,
};
use std::sync::Arc;

/// The service. In memory it keeps the upper part of its tree: some 15 bytes a key.
///
/// ```
/// use bytes::Bytes;
/// use quorate_crypto::IdentitySecret;
/// use quorate_ledger::kv::{Answer, Kv, Operation, Output, Query, StepOutput, verify_answer};
/// use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
/// use quorate_types::machine::Block;
/// use quorate_types::{Body, NetworkId, Height, Payload, ReplicaId, Request};
/// use std::sync::Arc;
///
/// // A client's request is decided and executed.
/// let client = IdentitySecret::from_seed([7; 32]);
/// let operations = [Operation::put("colour", "green").encode()];
/// let request = Request::sign(&client, NetworkId::default(), 0, &operations)?;
/// let body = Arc::new(Body::seal(ReplicaId(0), 0, &[request]));
/// let block = Block {
///     payload: Payload::new(Height(1), 0, vec![body.reference]),
///     bodies: vec![body],
///     decided: Bytes::from("proof"),
/// };
/// let (mut executor, _) = Executor::open(
///     Box::new(MemoryStore::new()),
///     Box::new(Kv::default()),
///     ExecutorConfig::default(),
/// )?;
/// let executed = executor.execute(&block)?;
/// let output = Output::read(&executed.answers[0].results[0])?;
/// assert_eq!(output, Output::Step(StepOutput::Done { replaced: false }));
///
/// // Anybody asks, and checks the answer under the root.
/// let query = Query::Get { key: "colour".into() };
/// let asked = executor.answer(&query.encode())?.expect("a height was executed");
/// let answer = verify_answer(asked.header.state, &query, &asked.answer?)?;
/// assert_eq!(answer, Answer::Value(Some("green".into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Kv {
    tree: Tree,
}

impl Kv {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = "kv";
    /// Versions of its rules that are here.
    pub const VERSIONS: Versions = Versions::FIRST;

    /// Number of keys that the state holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.tree.count()
    }

    /// Bytes of memory that the tree takes, without what the allocator adds. Costs a walk over it.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }
}

impl Service for Kv {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn versions(&self) -> Versions {
        Self::VERSIONS
    }

    fn limit_cache(&mut self, bytes: u64) {
        self.tree.limit_leaves(bytes);
    }

    fn open(&mut self, state: &dyn State) -> Result<(), StateError> {
        self.tree = self.tree.reopened(state)?;
        Ok(())
    }

    fn admit(&self, operation: service::Operation<'_>) -> Result<(), String> {
        Operation::decode(operation.bytes).map(drop).map_err(|error| error.to_string())
    }

    fn admission(&self) -> Option<Arc<dyn Admission>> {
        Some(Arc::new(Self::default()))
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        _: BlockContext,
        operations: &[service::Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let mut changes = Changes::new(state);
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            outcomes.push(match Operation::decode(operation.bytes) {
                Ok(operation) => changes.apply(&operation)?,
                Err(error) => Refusal::NotAdmitted(error.to_string()).outcome(),
            });
        }
        changes.map.finish(&mut self.tree)?;
        Ok(outcomes)
    }

    fn root(&self, _: &dyn State) -> Result<Digest, StateError> {
        Ok(self.tree.root())
    }

    fn is_whole(&self, state: &dyn State) -> Result<bool, StateError> {
        entries::are_whole(state)
    }

    fn query(&self, state: &dyn State, query: &[u8]) -> Result<Result<Proven, String>, StateError> {
        Query::answer_encoded(&self.tree, state, query)
    }
}

fn encode(content: &impl BorshSerialize) -> Bytes {
    borsh::to_vec(content).expect("encoding into memory cannot fail").into()
}

fn decode<T: BorshDeserialize>(bytes: &[u8]) -> Result<T, FormError> {
    T::try_from_slice(bytes).map_err(|_| FormError::Undecodable)
}

#[cfg(test)]
mod tests;
