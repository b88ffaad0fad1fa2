//! The state in the tree that validators have: by the key-value service, whose tree is that of the
//! EVM ledger, with the ledger's keys and values.

use crate::workload::{Account, Changes, TOKEN};
use alloy_primitives::{KECCAK256_EMPTY, U256};
use bytes::Bytes;
use quorate_crypto::{IdentitySecret, hash};
use quorate_ledger::Kv;
use quorate_ledger::kv::{BATCH_STEPS_MAX, Operation, Step};
use quorate_storage::Store;
use quorate_types::service::{self, BlockContext, Service};
use quorate_types::{ClientId, Height};

pub(crate) struct Own {
    service: Kv,
    store: Box<dyn Store>,
    client: ClientId,
}

impl Own {
    pub(crate) fn new(store: Box<dyn Store>) -> Self {
        let client = ClientId(IdentitySecret::from_seed([1; 32]).public());
        Self { service: Kv::default(), store, client }
    }

    /// Carries out the operations of a height and comes to its root. What was not made durable
    /// before becomes so at a checkpoint.
    pub(crate) fn follow(&mut self, operations: &[Bytes], is_checkpoint: bool) {
        let client = self.client;
        let operations: Vec<service::Operation<'_>> =
            operations.iter().map(|bytes| service::Operation { client, bytes }).collect();
        let context = BlockContext { height: Height(1), proposed_at_ms: 0 };
        let mut state = self.store.begin().expect("begins");
        self.service.execute(&mut *state, context, &operations).expect("executes");
        self.service.root(&*state).expect("has a root");
        state.commit(is_checkpoint).expect("commits");
    }
}

/// Keys and values in a store and in no tree: what the state tree's figures are beside.
pub(crate) struct Values(pub(crate) Box<dyn Store>);

impl Values {
    /// Reads and replaces what a height changes, each value with a hash before it.
    pub(crate) fn follow(&mut self, changes: &Changes, is_checkpoint: bool) {
        let mut state = self.0.begin().expect("begins");
        for (key, value) in entries(changes) {
            state.get(&key).expect("reads");
            state.put(&key, &[hash(&value).0.as_slice(), &value].concat()).expect("writes");
        }
        state.commit(is_checkpoint).expect("commits");
    }
}

/// A height's changes as operations of the service.
pub(crate) fn operations(changes: &Changes) -> Vec<Bytes> {
    let steps: Vec<Step> = entries(changes).map(|(key, value)| Step::put(key, value)).collect();
    let batches = steps.chunks(BATCH_STEPS_MAX);
    batches.map(|steps| Operation::batch(steps.to_vec()).encode()).collect()
}

/// Keys and values as the EVM ledger has them.
fn entries(changes: &Changes) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    let accounts = changes.accounts.iter();
    let accounts = accounts.map(|(address, account)| (address.to_vec(), encoded(account)));
    let slots = changes.slots.iter().map(|(slot, value): (_, &U256)| {
        ([TOKEN.as_slice(), slot.as_slice()].concat(), value.to_be_bytes_vec())
    });
    accounts.chain(slots)
}

/// An account as the EVM ledger has it: nonce, balance and hash of the code.
fn encoded(Account { nonce, balance }: &Account) -> Vec<u8> {
    let balance = balance.to_le_bytes::<32>();
    [nonce.to_le_bytes().as_slice(), &balance, KECCAK256_EMPTY.as_slice()].concat()
}
