//! The committee's side of payments: it orders the steps by which locked coins are released, and by
//! which authorities change.
//!
//! * **Operations** are [`Step`]s. Signatures, certificates and coins are checked before a step is
//!   ordered and again when it is executed; what a step comes to, the rules of
//!   [`quorate_payments::release`] and [`quorate_payments::change`] decide. The result is the coins
//!   that it decided.
//! * **State**, in the [map](crate::map): the standing of each coin, what is known of each
//!   transaction, each owner's quota, the changes so far and what was reported at each, and what
//!   changed, as [`Ordered`] numbered from 0 without gaps.
//! * **Epochs**: steps are checked for the epoch in force, and a release that is not decided when
//!   it ends is asked for anew in the next. The next change is taken once that has begun.
//! * **Queries** are the key-value store's ([`kv::Query`](crate::kv::Query)): a key or a range,
//!   with a proof. [`standing_query`] and [`ordered_query`] make them, [`read_standing`] and
//!   [`read_ordered`] check the answers.
//!
//! # Bounds
//!
//! A step has at most [`STEP_BYTES_MAX`] bytes, and so at most 64 coins whose certificates are
//! checked. One owner's coins under release are at most [`UNDECIDED_MAX`] at once, and at most
//! [`DAILY_MAX`] are frozen within a day (★): entries are kept for ever. A certificate or a report
//! needs a coin that is frozen, and each authority reports it once.
//!
//! ADR 26 has the rules of a release, ADR 42 those of a change, ADR 41 the committee's part.

mod docket;
mod epochs;
mod keys;
mod query;
mod quota;

pub use query::{
    ORDERED_MAX, OrderedError, ordered_query, read_ordered, read_standing, standing_query,
};
pub use quota::{DAILY_MAX, UNDECIDED_MAX};

use crate::kv::Query;
use crate::map::{Tree, entries};
use bytes::Bytes;
use docket::MapDocket;
use epochs::Epochs;
use quorate_crypto::Digest;
use quorate_payments::Network;
use quorate_payments::change::BorderRefusal;
use quorate_payments::committee::{Ordered, Step};
use quorate_payments::release::{self, ReleaseStep, Releases};
use quorate_types::service::{
    Admission, BlockContext, Operation, Outcome, Proven, Service, State, StateError,
};
use quorate_types::{Epoch, Request, Versions};
use std::sync::Arc;

/// Most bytes of a step: those of a request's operations.
pub const STEP_BYTES_MAX: usize = Request::BYTES_MAX;

/// The service. In memory it keeps the upper part of its map's tree.
#[derive(Debug)]
pub struct ReleaseService {
    epochs: Arc<Epochs>,
    tree: Tree,
}

/// Reason that a step of a change changes nothing.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    Border(#[from] BorderRefusal),
    #[error("epoch {} has not begun: its authorities change once a quorum of them votes in it", .0.0)]
    NotBegun(Epoch),
    #[error("epoch {} has begun: reports of the one before come too late", .0.0)]
    Begun(Epoch),
}

impl ReleaseService {
    /// Name of the service in a configuration file.
    pub const NAME: &'static str = "payments";
    /// Versions of its rules that are here.
    pub const VERSIONS: Versions = Versions::FIRST;

    /// Releases and changes of this payment network, as it was founded.
    #[must_use]
    pub fn new(founding: Arc<Network>) -> Self {
        Self { epochs: Arc::new(Epochs::new(founding)), tree: Tree::default() }
    }

    /// The step in these bytes, if it keeps every rule that needs no order.
    fn open_step(&self, bytes: &[u8]) -> Result<Step, String> {
        if bytes.len() > STEP_BYTES_MAX {
            return Err(format!("a step takes at most {STEP_BYTES_MAX} bytes"));
        }
        self.epochs.known().open(bytes).map_err(|error| error.to_string())
    }

    fn apply(
        &self,
        state: &mut MapDocket<'_>,
        step: &Step,
        day: u64,
    ) -> Result<Outcome, StateError> {
        match step {
            Step::Release(step) => self.apply_release(state, step, day),
            Step::Change(step) => Ok(match self.epochs.apply(state, step)? {
                Ok(()) => Outcome::Applied(keys::encode(&release::Decided::new()).into()),
                Err(refusal) => refused(&refusal.to_string()),
            }),
        }
    }

    fn apply_release(
        &self,
        docket: &mut MapDocket<'_>,
        step: &ReleaseStep,
        day: u64,
    ) -> Result<Outcome, StateError> {
        let network = self.epochs.known().present;
        docket.enter(network.epoch());
        let mut ordered = Vec::new();
        if let ReleaseStep::Freeze(freeze) = step {
            let coins = docket.unfrozen(freeze.coins.iter().map(|coin| coin.id))?;
            let owner = freeze.coins[0].output.owner;
            if let Err(full) = docket.charge(&owner, coins.len(), day)? {
                return Ok(refused(&full.to_string()));
            }
            let freeze = release::Ordered::Freeze { owner, coins: coins.clone() };
            ordered.extend((!coins.is_empty()).then_some(freeze));
        }
        let weights = network.committee().weights();
        match Releases::new(docket, weights).apply(step)? {
            Err(refusal) => Ok(refused(&refusal.to_string())),
            Ok(decided) => {
                docket.release_quotas(&decided)?;
                ordered.extend(query::in_parts(&decided).map(release::Ordered::Decided));
                let mut ordered = ordered.into_iter().map(Ordered::Release);
                ordered.try_for_each(|ordered| docket.append(&ordered))?;
                Ok(Outcome::Applied(keys::encode(&decided).into()))
            }
        }
    }
}

impl Service for ReleaseService {
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
        self.epochs.read(state)
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        self.open_step(operation.bytes).map(drop)
    }

    fn admission(&self) -> Option<Arc<dyn Admission>> {
        Some(Arc::new(Self { epochs: Arc::clone(&self.epochs), tree: Tree::default() }))
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let mut docket = MapDocket::new(state, self.epochs.known().present.epoch());
        let day = quota::day(block.proposed_at_ms);
        let mut outcomes = Vec::with_capacity(operations.len());
        for operation in operations {
            outcomes.push(match self.open_step(operation.bytes) {
                Ok(step) => self.apply(&mut docket, &step, day)?,
                Err(reason) => refused(&reason),
            });
        }
        docket.finish(&mut self.tree)?;
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

fn refused(reason: &str) -> Outcome {
    Outcome::Refused(Bytes::copy_from_slice(reason.as_bytes()))
}

#[cfg(test)]
mod tests;
