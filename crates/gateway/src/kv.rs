//! The key-value store's client.

use crate::{CallError, Completed, Connection};
use bytes::Bytes;
pub use quorate_ledger::kv::check_answer;
use quorate_ledger::kv::{
    Answer, FormError, Operation, OutcomeError, Output, Page, Query, Scan, Step, StepOutput,
    verify_answer,
};
use quorate_types::{Header, Height};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A client of a committee that replicates the key-value store.
///
/// What goes through the order ([`KvClient::get`] and everything that writes) is linearizable. What
/// one member answers ([`KvClient::get_certified`]) is proven to be what the committee's state held
/// at some height; its age is said.
#[derive(Clone, Debug)]
pub struct KvClient {
    connection: Connection,
}

/// Error of an operation or a read of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// No result came back from the committee.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The operation was refused, or the committee replicates something else.
    #[error(transparent)]
    Outcome(#[from] OutcomeError),
    /// The operation or query is not one.
    #[error(transparent)]
    Form(#[from] FormError),
}

/// Value of a certified state, with the height at which it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified<T> {
    /// Value that the state held.
    pub value: T,
    /// The height after which it did.
    pub height: Height,
    /// Time since that height was proposed, by the proposer's clock and this machine's: nothing
    /// that was decided since is in it.
    pub age: Duration,
}

impl KvClient {
    /// A client over a connection, whose check of answers must be [`check_answer`].
    #[must_use]
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Connection that carries the operations.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Has an operation executed.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn execute(&self, operation: &Operation) -> Result<(Output, Completed), KvError> {
        let bytes = operation.encode();
        Operation::decode(&bytes)?;
        let completed = self.connection.execute(bytes).await?;
        Ok((Output::read(&completed.outcome)?, completed))
    }

    async fn step(&self, step: Step) -> Result<StepOutput, KvError> {
        match self.execute(&Operation::Step(step)).await? {
            (Output::Step(output), _) => Ok(output),
            _ => Err(OutcomeError::Undecodable.into()),
        }
    }

    /// The value of a key, by a read in the order.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>, KvError> {
        match self.step(Step::get(key)).await? {
            StepOutput::Value(value) => Ok(value),
            _ => Err(OutcomeError::Undecodable.into()),
        }
    }

    /// Sets the value of a key; whether there was one before.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn put(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) -> Result<bool, KvError> {
        replaced(&self.step(Step::put(key, value)).await?)
    }

    /// Removes a key; whether there was a value.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn delete(&self, key: impl Into<Bytes>) -> Result<bool, KvError> {
        replaced(&self.step(Step::delete(key)).await?)
    }

    /// Makes the value of a key `new` if it is `expected`, where `None` is no value. The inner
    /// error is the value that there is.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn compare_and_swap(
        &self,
        key: impl Into<Bytes>,
        expected: Option<Bytes>,
        new: Option<Bytes>,
    ) -> Result<Result<(), Option<Bytes>>, KvError> {
        match self.step(Step::compare_and_swap(key, expected, new)).await? {
            StepOutput::Swapped => Ok(Ok(())),
            StepOutput::NotSwapped { actual } => Ok(Err(actual)),
            _ => Err(OutcomeError::Undecodable.into()),
        }
    }

    /// Keys in order, by a read in the order.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn scan(&self, scan: Scan) -> Result<Page, KvError> {
        match self.execute(&Operation::Scan(scan)).await? {
            (Output::Page(page), _) => Ok(page),
            _ => Err(OutcomeError::Undecodable.into()),
        }
    }

    /// The value of a key as one member proves it, without a place in the order.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn get_certified(
        &self,
        key: impl Into<Bytes>,
    ) -> Result<Certified<Option<Bytes>>, KvError> {
        let Certified { value, height, age } = self.query(&Query::Get { key: key.into() }).await?;
        match value {
            Answer::Value(value) => Ok(Certified { value, height, age }),
            Answer::Page(_) => Err(OutcomeError::Undecodable.into()),
        }
    }

    /// Keys in order as one member proves them, without a place in the order.
    ///
    /// # Errors
    /// [`KvError`].
    pub async fn scan_certified(&self, scan: Scan) -> Result<Certified<Page>, KvError> {
        let Certified { value, height, age } = self.query(&Query::Scan(scan)).await?;
        match value {
            Answer::Page(value) => Ok(Certified { value, height, age }),
            Answer::Value(_) => Err(OutcomeError::Undecodable.into()),
        }
    }

    async fn query(&self, query: &Query) -> Result<Certified<Answer>, KvError> {
        let bytes = query.encode();
        Query::decode(&bytes)?;
        let (proven, certificate) = self.connection.query(bytes).await?;
        let header = certificate.header;
        let value = verify_answer(header.state, query, &proven)
            .map_err(|reason| CallError::Unanswered(reason.to_string()))?;
        Ok(Certified { value, height: header.height, age: age(&header) })
    }
}

fn replaced(output: &StepOutput) -> Result<bool, KvError> {
    match output {
        StepOutput::Done { replaced } => Ok(*replaced),
        _ => Err(OutcomeError::Undecodable.into()),
    }
}

fn age(header: &Header) -> Duration {
    let proposed = UNIX_EPOCH + Duration::from_millis(header.proposed_at_ms);
    // A proposer's clock may be a little ahead of this one.
    SystemTime::now().duration_since(proposed).unwrap_or_default()
}
