//! Ethereum's public execution tests ("state tests"), run on this ledger.
//!
//! Each gives accounts, a block and a transaction, and names the root of the accounts after it and
//! the hash of its logs, as Ethereum commits to them. The transaction is signed, read, executed
//! and written as any other; the block is the test's, and what this ledger refuses by its own rules
//! is left out and counted. Source: <https://github.com/ethereum/execution-spec-tests>,
//! `state_tests`; the older <https://github.com/ethereum/tests>, `GeneralStateTests`.

use super::execution::{self, Candidate, ExecutedBlock, ExecutionContext};
use super::history::StoredLog;
use super::transaction::Recovered;
use super::world::{self, Account, Changes, Codes};
use super::{ChainRules, Fork, Genesis, Signer, TransactionError, stored};
use crate::map::entries;
use alloy_consensus::proofs::state_root_unhashed;
use alloy_consensus::{TxEip1559, TxEip2930, TxEip7702, TxLegacy};
use alloy_eips::eip7702::SignedAuthorization;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, Log, TxKind, U256, keccak256};
use quorate_types::Outcome;
use quorate_types::service::{KeyRange, State, StateError, Visitor};
use revm::context::{CfgEnv, TransactionType};
use revm_statetest_types::{SpecName, Test, TestSuite, TestUnit, TransactionParts};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A transaction in a block of its own, and what became of the test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The test's name, and which of its transactions.
    pub name: String,
    /// Verdict on the test, or the reason for skipping it.
    pub verdict: Verdict,
}

/// Verdict on one conformance test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The accounts and the logs are those that the test names.
    Passed,
    /// Results differ from those expected.
    Failed(String),
    /// This ledger's own rules have no place for it.
    LeftOut(&'static str),
}

impl Fork {
    /// Rules as the tests name them.
    fn name(self) -> SpecName {
        match self {
            Self::London => SpecName::London,
            Self::Paris => SpecName::Paris,
            Self::Shanghai => SpecName::Shanghai,
            Self::Cancun => SpecName::Cancun,
            Self::Prague => SpecName::Prague,
            Self::Osaka => SpecName::Osaka,
        }
    }

    /// The ledger's configuration by these rules, but for its bound on a transaction's gas: here
    /// the test's block bounds it, and from Osaka on the fork.
    fn test_configuration(self) -> CfgEnv {
        let mut configuration = execution::configuration(CHAIN, self);
        configuration.tx_gas_limit_cap = (self != Self::Osaka).then_some(u64::MAX);
        configuration
    }
}

/// Runs the tests of a file, as far as they are for these rules.
///
/// # Errors
/// When the text is no file of tests.
pub fn run(text: &str, fork: Fork) -> Result<Vec<Case>, serde_json::Error> {
    let suite: TestSuite = serde_json::from_str(text)?;
    let cases = suite.0.iter().flat_map(|(name, unit)| {
        let Some(tests) = unit.post.get(&fork.name()) else {
            return vec![Case { name: name.clone(), verdict: Verdict::LeftOut(OTHER_RULES) }];
        };
        tests.iter().map(|test| case((name, fork), unit, test)).collect()
    });
    Ok(cases.collect())
}

const OTHER_RULES: &str = "for other rules";
const RESERVED_CODE: &str = "accounts whose code begins with 0xef";
const BLOBS: &str = "a transaction with blobs (EIP-4844)";
/// What would become of them is asked by contracts that are created there (EIP-7610).
const STORAGE_ALONE: &str =
    "with another end, and accounts of storage alone, which no genesis may have here";
const NO_SUCH_FORM: &str = "a transaction that cannot be written";
const TOO_LONG: &str = "a transaction beyond this ledger's length";

fn case((name, fork): (&str, Fork), unit: &TestUnit, test: &Test) -> Case {
    let at = &test.indexes;
    let name = format!("{name} (data {}, gas {}, value {})", at.data, at.gas, at.value);
    let verdict = attempt(fork, unit, test).unwrap_or_else(Verdict::LeftOut);
    Case { name, verdict }
}

/// `Err`: why it is left out.
fn attempt(fork: Fork, unit: &TestUnit, test: &Test) -> Result<Verdict, &'static str> {
    let raw = transaction(unit, test)?;
    let accounts = accounts_before(unit)?;
    let mut state = Memory::holding(&accounts);
    let context = ExecutionContext {
        configuration: fork.test_configuration(),
        block: unit.block_env(&mut fork.test_configuration()),
        // The older tests were made with these.
        hashes: &|height| Ok(keccak256(height.to_string())),
    };
    let read = Recovered::read(&raw, RULES);
    if matches!(read, Err(TransactionError::TooLong)) {
        return Err(TOO_LONG);
    }
    let candidate = Candidate { raw, read: read.map(Arc::new) };
    let executed = execution::execute_under(context, &state, &Codes::default(), vec![candidate]);
    let verdict = judge(test, &mut state, executed.expect("memory can be read"));
    let is_possible = !accounts.values().any(Genesis::has_storage_alone);
    if is_possible || verdict == Verdict::Passed { Ok(verdict) } else { Err(STORAGE_ALONE) }
}

fn judge(test: &Test, state: &mut Memory, executed: ExecutedBlock) -> Verdict {
    match (&executed.outcomes[0], &test.expect_exception) {
        (Outcome::Refused(reason), None) => {
            return Verdict::Failed(format!("refused: {}", String::from_utf8_lossy(reason)));
        }
        (Outcome::Applied(_), Some(reason)) => {
            return Verdict::Failed(format!("executed, where {reason} was expected"));
        }
        _ => {}
    }
    let logs: Vec<Log> =
        executed.included.iter().flat_map(|one| one.logs.iter().map(StoredLog::log)).collect();
    executed.changes.write(state).expect("memory can be written");
    let root = state_root_unhashed(state.accounts());
    let logs = keccak256(alloy_rlp::encode(&logs));
    if root != test.hash {
        return Verdict::Failed(format!("the accounts' root is {root}, not {}", test.hash));
    }
    if logs != test.logs {
        return Verdict::Failed(format!("the logs' hash is {logs}, not {}", test.logs));
    }
    Verdict::Passed
}

/// The chain that the tests' transactions are for.
const CHAIN: u64 = 1;

const RULES: ChainRules =
    ChainRules { chain_id: CHAIN, takes_unprotected: false, takes_delegations: true };

fn accounts_before(unit: &TestUnit) -> Result<BTreeMap<Address, GenesisAccount>, &'static str> {
    let account = |(address, account): (&Address, &revm_statetest_types::AccountInfo)| {
        let slots = account.storage.iter().filter(|(_, value)| !value.is_zero());
        let storage = slots.map(|(slot, value)| (B256::from(*slot), B256::from(*value))).collect();
        let account = GenesisAccount::default()
            .with_balance(account.balance)
            .with_nonce(Some(account.nonce))
            .with_code(Some(account.code.clone()))
            .with_storage(Some(storage));
        (*address, account)
    };
    let accounts: BTreeMap<Address, GenesisAccount> = unit.pre.iter().map(account).collect();
    let is_reserved = accounts.values().any(Genesis::has_reserved_code);
    if is_reserved { Err(RESERVED_CODE) } else { Ok(accounts) }
}

/// The test's transaction, signed with its key.
fn transaction(unit: &TestUnit, test: &Test) -> Result<Bytes, &'static str> {
    let parts = &unit.transaction;
    let Some(signer) = parts.secret_key.and_then(|key| Signer::from_bytes(key.0)) else {
        // Signed by nobody on purpose.
        return test.txbytes.clone().ok_or(NO_SUCH_FORM);
    };
    let narrow = |value: U256| u128::try_from(value).map_err(|_| NO_SUCH_FORM);
    let price = |value: Option<U256>| narrow(value.unwrap_or_default());
    let chain_id = u64::try_from(parts.chain_id.unwrap_or(U256::from(CHAIN)));
    let chain_id = chain_id.map_err(|_| NO_SUCH_FORM)?;
    let nonce = u64::try_from(parts.nonce).map_err(|_| NO_SUCH_FORM)?;
    let gas_limit = parts.gas_limit.get(test.indexes.gas).ok_or(NO_SUCH_FORM)?;
    let gas_limit = u64::try_from(*gas_limit).map_err(|_| NO_SUCH_FORM)?;
    let to = parts.to.map_or(TxKind::Create, TxKind::Call);
    let value = *parts.value.get(test.indexes.value).ok_or(NO_SUCH_FORM)?;
    let input = parts.data.get(test.indexes.data).ok_or(NO_SUCH_FORM)?.clone();
    let gas_price = price(parts.gas_price)?;
    let access_list = parts.access_lists.get(test.indexes.data).cloned().flatten();
    let access_list = access_list.unwrap_or_default();
    let raw = match parts.tx_type(test.indexes.data).ok_or(NO_SUCH_FORM)? {
        TransactionType::Legacy => {
            let chain_id = Some(chain_id);
            signer.sign(TxLegacy { chain_id, nonce, gas_price, gas_limit, to, value, input })
        }
        TransactionType::Eip2930 => signer.sign(TxEip2930 {
            chain_id,
            nonce,
            gas_price,
            gas_limit,
            to,
            value,
            access_list,
            input,
        }),
        TransactionType::Eip1559 => signer.sign(TxEip1559 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: price(parts.max_fee_per_gas)?,
            max_priority_fee_per_gas: price(parts.max_priority_fee_per_gas)?,
            to,
            value,
            access_list,
            input,
        }),
        TransactionType::Eip7702 => signer.sign(TxEip7702 {
            chain_id,
            nonce,
            gas_limit,
            max_fee_per_gas: price(parts.max_fee_per_gas)?,
            max_priority_fee_per_gas: price(parts.max_priority_fee_per_gas)?,
            to: parts.to.ok_or(NO_SUCH_FORM)?,
            value,
            access_list,
            authorization_list: authorizations(parts),
            input,
        }),
        TransactionType::Eip4844 => return Err(BLOBS),
        TransactionType::Custom => return Err(NO_SUCH_FORM),
    };
    Ok(raw.into())
}

fn authorizations(parts: &TransactionParts) -> Vec<SignedAuthorization> {
    parts.authorization_list.iter().flatten().cloned().map(Into::into).collect()
}

/// A state that is gone with its test.
#[derive(Default)]
struct Memory(BTreeMap<Vec<u8>, Vec<u8>>);

impl Memory {
    fn holding(accounts: &BTreeMap<Address, GenesisAccount>) -> Self {
        let (mut state, mut changes) = (Self::default(), Changes::default());
        accounts.iter().for_each(|(address, account)| changes.put(*address, account));
        drop(changes.write(&mut state).expect("memory can be written"));
        state
    }

    /// Accounts that the state holds, as Ethereum commits to them.
    fn accounts(&self) -> BTreeMap<Address, GenesisAccount> {
        let (mut accounts, mut slots) = (BTreeMap::new(), Vec::new());
        let mut visit = |key: &[u8], _, value: &[u8]| {
            let (address, slot) = key.split_at(Address::len_bytes());
            let address = Address::from_slice(address);
            if slot.is_empty() {
                accounts.insert(address, value.to_vec());
            } else {
                slots.push((address, B256::from_slice(slot), B256::from_slice(value)));
            }
            ControlFlow::Continue(())
        };
        entries::scan(self, KeyRange::ALL, &mut visit).expect("memory can be read");
        let account = |bytes: Vec<u8>| {
            let account: Account = stored::decode(&bytes).expect("it was encoded");
            GenesisAccount::default()
                .with_balance(account.balance)
                .with_nonce(Some(account.nonce))
                .with_code(Some(world::code(self, account.code_hash).expect("it was written")))
                .with_storage(Some(BTreeMap::new()))
        };
        let mut accounts: BTreeMap<_, _> =
            accounts.into_iter().map(|(address, bytes)| (address, account(bytes))).collect();
        for (address, slot, value) in slots {
            let account: &mut GenesisAccount = accounts.entry(address).or_default();
            account.storage.get_or_insert_default().insert(slot, value);
        }
        accounts
    }
}

impl State for Memory {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.0.get(key).cloned())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StateError> {
        self.0.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StateError> {
        self.0.remove(key);
        Ok(())
    }

    fn scan(&self, keys: KeyRange<'_>, visit: &mut Visitor<'_>) -> Result<(), StateError> {
        let Some(bounds) = keys.bounds() else { return Ok(()) };
        let range = self.0.range::<[u8], _>(bounds);
        let _ = range.into_iter().try_for_each(|(key, value)| visit(key, value));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
