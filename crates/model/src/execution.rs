//! Execution that is the same at all validators, computed once; and the bodies that they stored,
//! for those that ask for them.

use crate::frames::SharedCheck;
use bytes::Bytes;
use quorate_crypto::Digest;
use quorate_ledger::Noop;
use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
use quorate_types::machine::{Block, Executed, ReadAnswer, ReadItem, ReadRequest};
use quorate_types::{Body, BodyRef, Header, Height, Payload};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// One execution for all validators.
pub(crate) struct SharedExecution {
    /// Absent where nobody executes.
    executor: Option<Executor>,
    results: BTreeMap<Height, Shared>,
    bodies: BTreeMap<BodyRef, Arc<Body>>,
    /// Checks of the bodies that are sent.
    checks: BTreeMap<BodyRef, SharedCheck>,
    decided: BTreeMap<Height, Bytes>,
    /// Number of members that will execute every height.
    members: usize,
}

/// Result of a height.
struct Shared {
    payload: Payload,
    executed: Rc<Executed>,
    /// Members that have not executed it.
    left: usize,
}

impl SharedExecution {
    pub(crate) fn new(members: usize, executes: bool) -> Self {
        let open = || {
            let store = Box::new(MemoryStore::new());
            let config = ExecutorConfig::default();
            Executor::open(store, Box::new(Noop), config).expect("memory").0
        };
        Self {
            executor: executes.then(open),
            results: BTreeMap::new(),
            bodies: BTreeMap::new(),
            checks: BTreeMap::new(),
            decided: BTreeMap::new(),
            members,
        }
    }

    /// Executes a block: computed for the first, and what was decided compared by all. `lives`: the
    /// member will execute every height.
    ///
    /// # Errors
    /// When two validators execute different blocks at one height.
    pub(crate) fn execute(&mut self, block: &Block, lives: bool) -> Result<Rc<Executed>, String> {
        let height = block.height();
        if !self.results.contains_key(&height) {
            let executed = Rc::new(self.compute(block)?);
            self.decided.insert(height, block.decided.clone());
            let payload = block.payload.clone();
            self.results.insert(height, Shared { payload, executed, left: self.members });
        }
        let shared = self.results.get_mut(&height).expect("computed above");
        if shared.payload != block.payload {
            return Err(format!("two different blocks at {height}"));
        }
        shared.left -= usize::from(lives);
        let executed = Rc::clone(&shared.executed);
        if shared.left == 0 {
            for body in &block.bodies {
                self.bodies.remove(&body.reference);
                self.checks.remove(&body.reference);
            }
            // Kept without its answers: a validator that comes late compares its payload.
            let empty = Executed { answers: Vec::new(), ..(*executed).clone() };
            shared.executed = Rc::new(empty);
        }
        Ok(executed)
    }

    /// Keeps a body for those that ask for it.
    pub(crate) fn store(&mut self, body: &Arc<Body>) {
        self.bodies.entry(body.reference).or_insert_with(|| Arc::clone(body));
    }

    /// The check of a body, which its author and all that pass it on send alike.
    pub(crate) fn check_of(&mut self, name: BodyRef) -> SharedCheck {
        if !self.bodies.contains_key(&name) {
            // It is executed everywhere, or not stored yet: nobody else asks for it.
            return SharedCheck::default();
        }
        Rc::clone(self.checks.entry(name).or_default())
    }

    /// Last height that was executed anywhere, and its root.
    pub(crate) fn last(&self) -> (Height, Digest) {
        let last = self.results.last_key_value();
        last.map_or((Height(0), Digest::ZERO), |(height, shared)| (*height, shared.executed.root()))
    }

    /// Number of requests in a body; 0 for one that nobody stored.
    pub(crate) fn requests(&self, name: &BodyRef) -> usize {
        self.bodies.get(name).map_or(0, |body| body.requests.len())
    }

    /// Bytes of a body; 0 for one that nobody stored.
    pub(crate) fn bytes(&self, name: &BodyRef) -> usize {
        self.bodies.get(name).map_or(0, |body| body.raw.len())
    }

    pub(crate) fn read(&self, request: &ReadRequest) -> ReadAnswer {
        let items = request.items.iter().map(|item| {
            let found = match item {
                ReadItem::Body(name) => self.bodies.get(name).map(|body| body.raw.clone()),
                ReadItem::Decided(height) => self.decided.get(height).cloned(),
                ReadItem::Manifest(_) | ReadItem::Chunk(..) => None,
            };
            (*item, found)
        });
        ReadAnswer { ticket: request.ticket, items: items.collect(), oldest: Height(1) }
    }

    fn compute(&mut self, block: &Block) -> Result<Executed, String> {
        match &mut self.executor {
            Some(executor) => executor.execute(block).map_err(|error| error.to_string()),
            None => Ok(Executed {
                header: Header { height: block.height(), ..Header::default() },
                leaves: Vec::new(),
                answers: Vec::new(),
                operations: block.bodies.iter().map(|body| body.operations() as u64).sum(),
            }),
        }
    }
}
