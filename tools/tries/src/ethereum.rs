//! The state in Ethereum's tries: one of accounts, one of the token's slots, each under the hashes
//! of its keys. By two libraries, and a third that makes the root anew.

use crate::nodes::Nodes;
use crate::workload::{Account, Changes, TOKEN};
use alloy_primitives::{Address, B256, U256, keccak256};
use alloy_trie::TrieAccount;
use alloy_trie::root::{state_root_unhashed, storage_root_unhashed};
use eth_trie::{EthTrie, MemoryDB, Trie as _};
use ethrex_crypto::{Crypto, NativeCrypto};
use ethrex_trie::Trie;
use std::collections::BTreeMap;
use std::sync::Arc;

const ACCOUNTS: u8 = b'a';
const SLOTS: u8 = b's';

/// Code of the token, whose hash alone is in the trie.
const CODE: &[u8] = b"the code of a token";

/// Both tries.
pub(crate) struct Ethereum {
    accounts: Trie,
    slots: Trie,
    nodes: Nodes,
    /// Nodes that were read or made stay in memory from height to height.
    is_held: bool,
}

impl Ethereum {
    pub(crate) fn new(nodes: Nodes, is_held: bool) -> Self {
        let [accounts, slots] = [ACCOUNTS, SLOTS].map(|trie| Trie::new(nodes.of(trie)));
        Self { accounts, slots, nodes, is_held }
    }

    /// Follows the changes of a height, and returns its root.
    pub(crate) fn follow(&mut self, changes: &Changes) -> B256 {
        for (slot, value) in &changes.slots {
            insert(&mut self.slots, slot, alloy_rlp::encode(value));
        }
        let storage_root = self.settle(SLOTS);
        for (address, account) in &changes.accounts {
            insert(&mut self.accounts, address, alloy_rlp::encode(entry(account)));
        }
        let token = alloy_rlp::encode(token(storage_root));
        insert(&mut self.accounts, TOKEN, token);
        self.settle(ACCOUNTS)
    }

    /// Hashes what changed in a trie, and hands it to the store.
    fn settle(&mut self, letter: u8) -> B256 {
        let trie = if letter == ACCOUNTS { &mut self.accounts } else { &mut self.slots };
        let (root, changed) = trie.collect_changes_since_last_hash(&NativeCrypto);
        self.nodes.put(letter, changed);
        if !self.is_held {
            *trie = Trie::open(self.nodes.of(letter), root);
        }
        B256::from(root.0)
    }
}

/// Both tries by a library that keeps nodes under their hashes, here in memory.
pub(crate) struct Hashed {
    accounts: EthTrie<MemoryDB>,
    slots: EthTrie<MemoryDB>,
}

impl Hashed {
    pub(crate) fn new() -> Self {
        // Nodes that were replaced are removed.
        let [accounts, slots] = [(); 2].map(|()| EthTrie::new(Arc::new(MemoryDB::new(true))));
        Self { accounts, slots }
    }

    /// Follows the changes of a height, and returns its root.
    pub(crate) fn follow(&mut self, changes: &Changes) -> B256 {
        for (slot, value) in &changes.slots {
            put(&mut self.slots, slot, &alloy_rlp::encode(value));
        }
        let storage_root = self.slots.root_hash().expect("has a root");
        for (address, account) in &changes.accounts {
            put(&mut self.accounts, address, &alloy_rlp::encode(entry(account)));
        }
        put(&mut self.accounts, TOKEN, &alloy_rlp::encode(token(storage_root)));
        self.accounts.root_hash().expect("has a root")
    }
}

/// The root of everything, made anew by another library.
pub(crate) fn rebuilt(accounts: &BTreeMap<Address, TrieAccount>, slots: &Slots) -> B256 {
    let slots = slots.iter().map(|(slot, value)| (*slot, *value));
    let token = (TOKEN, token(storage_root_unhashed(slots)));
    let accounts = accounts.iter().map(|(address, account)| (*address, *account));
    state_root_unhashed(accounts.chain([token]))
}

/// Slots of the token with their values.
pub(crate) type Slots = BTreeMap<B256, U256>;

/// An account as its trie has it.
pub(crate) fn entry(&Account { nonce, balance }: &Account) -> TrieAccount {
    TrieAccount { nonce, balance, ..TrieAccount::default() }
}

fn token(storage_root: B256) -> TrieAccount {
    TrieAccount { nonce: 1, storage_root, code_hash: keccak256(CODE), ..TrieAccount::default() }
}

fn put(trie: &mut EthTrie<MemoryDB>, key: impl AsRef<[u8]>, value: &[u8]) {
    trie.insert(&NativeCrypto.keccak256(key.as_ref()), value).expect("is inserted");
}

fn insert(trie: &mut Trie, key: impl AsRef<[u8]>, value: Vec<u8>) {
    let path = NativeCrypto.keccak256(key.as_ref());
    trie.insert(path.to_vec(), value).expect("is inserted");
}
