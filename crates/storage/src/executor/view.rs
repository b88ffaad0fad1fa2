//! The state as one height left it, to be read on any thread.

use super::{scan_service, service_key};
use crate::history::{PastState, StateHistory};
use crate::store::View;
use bytes::Bytes;
use quorate_types::Height;
use quorate_types::service::{Index, KeyRange, Reader, State, StateError, Visitor};
use std::sync::Arc;

/// The state as of a height; later heights do not change it. While it is kept, so is what they
/// replaced.
pub struct StateView {
    pub(super) height: Height,
    pub(super) view: Box<dyn View>,
    /// What the index beside it is in; it may be ahead of it.
    pub(super) history: Option<Arc<dyn StateHistory>>,
}

impl std::fmt::Debug for StateView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StateView(height {})", self.height)
    }
}

impl StateView {
    /// Height whose state the view shows; 0 before any was executed.
    #[must_use]
    pub fn height(&self) -> Height {
        self.height
    }

    /// Has the service's reader answer a query of it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn query(
        &self,
        reader: &dyn Reader,
        query: &[u8],
    ) -> Result<Result<Bytes, String>, StateError> {
        reader.query(&self.service(), query)
    }

    /// Has the service's reader answer a query of the state as of an earlier height, which
    /// `history` knows: it must still know it afterwards, or the answer is of no use.
    ///
    /// # Errors
    /// When store or history cannot be read.
    pub fn query_past(
        &self,
        history: &dyn StateHistory,
        height: Height,
        reader: &dyn Reader,
        query: &[u8],
    ) -> Result<Result<Bytes, String>, StateError> {
        reader.query(&PastState { newest: &self.service(), history, height }, query)
    }

    pub(super) fn service(&self) -> Service<'_> {
        Service { view: self.view.as_ref(), history: self.history.as_deref() }
    }
}

/// The service's part of a view, with the index beside it.
pub(super) struct Service<'a> {
    view: &'a dyn View,
    history: Option<&'a dyn StateHistory>,
}

impl State for Service<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        self.view.get(&service_key(key))
    }

    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a query cannot write".into()))
    }

    fn delete(&mut self, _: &[u8]) -> Result<(), StateError> {
        Err(StateError("a query cannot write".into()))
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        scan_service(keys, visit, |keys, visit| self.view.range(keys, visit))
    }

    fn index(&self) -> Option<&dyn Index> {
        self.history.map(|history| history as &dyn Index)
    }
}
