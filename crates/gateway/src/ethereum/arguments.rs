//! A call's parameters, one after the other; those at the end may be left out.

use super::error::{Failure, invalid};
use jsonrpsee::core::DeserializeOwned;
use jsonrpsee::types::Params;
use jsonrpsee::types::params::ParamsSequence;

/// Parameters of a call that are not read yet.
#[derive(Debug)]
pub(super) struct Arguments<'a>(ParamsSequence<'a>);

impl<'a> Arguments<'a> {
    pub(super) fn of(params: &'a Params<'_>) -> Self {
        Self(params.sequence())
    }

    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        self.0.next().map_err(|error| invalid(error.message()))
    }

    /// Reads a parameter that may be left out, or be null.
    pub(super) fn optional<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Failure> {
        self.0.optional_next().map_err(|error| invalid(error.message()))
    }
}
