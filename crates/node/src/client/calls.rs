//! Calls of a client that wait for their results.

use super::{Client, Completion};
use crate::NodeError;
use parking_lot::Mutex;
use quorate_engine::CallResult;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Brings each result of a client to the caller that waits for it. Cloning shares it.
#[derive(Clone)]
pub struct Calls {
    waiting: Waiting,
    next_tag: Arc<AtomicU64>,
}

type Waiting = Arc<Mutex<BTreeMap<u64, Deliver>>>;
type Deliver = Box<dyn FnOnce(CallResult) + Send>;

/// A call that waits until it is dropped.
#[derive(Debug)]
pub struct Call {
    tag: u64,
    calls: Calls,
}

impl Calls {
    /// Takes a client's completions, on a thread of their own, until the client ends.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn of(client: &Client) -> Result<Self, NodeError> {
        let calls = Self { waiting: Waiting::default(), next_tag: Arc::default() };
        let (waiting, completions) = (Arc::clone(&calls.waiting), client.completions().clone());
        super::start_thread("completions", move || {
            for Completion { tag, result, .. } in completions {
                let caller = waiting.lock().remove(&tag);
                if let Some(deliver) = caller {
                    deliver(result);
                }
            }
        })?;
        Ok(calls)
    }

    /// Begins a call, whose result `deliver` gets; it must not block. Its tag goes with what is
    /// submitted.
    #[must_use]
    pub fn begin(&self, deliver: impl FnOnce(CallResult) + Send + 'static) -> Call {
        let tag = self.next_tag.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(tag, Box::new(deliver));
        Call { tag, calls: self.clone() }
    }
}

impl Call {
    /// The mark of the call.
    #[must_use]
    pub fn tag(&self) -> u64 {
        self.tag
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.waiting.lock().remove(&self.tag);
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Calls").field("waiting", &self.waiting.lock().len()).finish_non_exhaustive()
    }
}
