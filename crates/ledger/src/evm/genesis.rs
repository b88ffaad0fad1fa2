//! Genesis of a chain: Ethereum's genesis file, as its tools write it.

use super::fork::ForkSchedule;
use super::transaction::ChainRules;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes};
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::Versions;
use std::collections::BTreeMap;
use std::path::Path;

/// Most gas of one transaction, whatever the block still holds.
pub const TRANSACTION_GAS_MAX: u64 = 30_000_000;

/// Number of the last blocks that keep their transactions and receipts, unless a genesis file says
/// otherwise.
pub const HISTORY_BLOCKS: u64 = 1 << 20;

/// The version of the service from which on there are delegations (EIP-7702), and forks that a
/// genesis names.
pub(super) const DELEGATIONS: u64 = 2;

/// Everything that replicas must agree on before the first block.
///
/// It is read from the `genesis.json` of Ethereum's tools. Of `config`, `chainId` counts, the times
/// of Prague and Osaka, and two that are ours: `historyBlocks`, how many blocks keep their
/// transactions, and `unprotectedTransactions`, whether legacy ones that name no chain are taken.
/// The rules are Cancun's or later ones, without blobs; those of Prague where no fork is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// Chain that transactions must name (EIP-155).
    pub chain_id: u64,
    /// The first block's time, in seconds since the Unix epoch.
    pub timestamp: u64,
    /// Most gas of a block, at least [`TRANSACTION_GAS_MAX`].
    pub gas_limit: u64,
    /// Wei a unit of gas that every transaction pays at least, and that is burnt; 0 by default.
    pub base_fee: u64,
    /// Address that gets what transactions pay beyond the base fee.
    pub fees_to: Address,
    /// Number of the last blocks that keep their transactions and receipts.
    pub history_blocks: u64,
    /// Legacy transactions that name no chain are taken: contracts that lie at the same address on
    /// all chains are deployed by such.
    pub takes_unprotected: bool,
    /// Forks by which the rules change.
    pub forks: ForkSchedule,
    /// Accounts with balances, nonces, code and storage.
    pub accounts: BTreeMap<Address, GenesisAccount>,
    /// The first block's extra data.
    pub extra_data: Bytes,
}

/// Reason for which a file is no genesis.
#[derive(Debug, thiserror::Error)]
pub enum GenesisError {
    /// It cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file.
        path: String,
        /// Error that the system reported.
        source: std::io::Error,
    },
    /// It is not in the form that Ethereum's tools write.
    #[error("this is no genesis: {0}")]
    Form(#[from] serde_json::Error),
    /// A value is out of range.
    #[error("the genesis's {0}")]
    Range(&'static str),
}

impl Genesis {
    /// A chain without accounts or fees, whose blocks hold 300 million gas.
    #[must_use]
    pub fn new(chain_id: u64) -> Self {
        Self {
            chain_id,
            timestamp: 0,
            gas_limit: 300_000_000,
            base_fee: 0,
            fees_to: Address::ZERO,
            history_blocks: HISTORY_BLOCKS,
            takes_unprotected: false,
            forks: ForkSchedule::default(),
            accounts: BTreeMap::new(),
            extra_data: Bytes::new(),
        }
    }

    /// Reads a genesis file.
    ///
    /// # Errors
    /// [`GenesisError`].
    pub fn load(path: &Path) -> Result<Self, GenesisError> {
        Self::parse(&Self::read(path)?)
    }

    /// Reads the text of a genesis file, whatever it says.
    ///
    /// # Errors
    /// [`GenesisError::Read`].
    pub fn read(path: &Path) -> Result<String, GenesisError> {
        let failed = |source| GenesisError::Read { path: path.display().to_string(), source };
        std::fs::read_to_string(path).map_err(failed)
    }

    /// Reads the text of a genesis file.
    ///
    /// # Errors
    /// [`GenesisError::Form`] and [`GenesisError::Range`].
    pub fn parse(text: &str) -> Result<Self, GenesisError> {
        let json: serde_json::Value = serde_json::from_str(text)?;
        if json.pointer("/config/chainId").is_none() {
            return Err(GenesisError::Range("config names no chainId"));
        }
        let file: alloy_genesis::Genesis = serde_json::from_value(json)?;
        let forks =
            ForkSchedule::read(&file.config, file.timestamp).map_err(GenesisError::Range)?;
        let base_fee = u64::try_from(file.base_fee_per_gas.unwrap_or(0));
        let own = &file.config.extra_fields;
        let history = own.get_deserialized("historyBlocks").transpose()?;
        let unprotected = own.get_deserialized("unprotectedTransactions").transpose()?;
        let genesis = Self {
            chain_id: file.config.chain_id,
            timestamp: file.timestamp,
            gas_limit: file.gas_limit,
            base_fee: base_fee.map_err(|_| GenesisError::Range("baseFeePerGas exceeds 64 bits"))?,
            fees_to: file.coinbase,
            history_blocks: history.unwrap_or(HISTORY_BLOCKS),
            takes_unprotected: unprotected.unwrap_or_default(),
            forks,
            accounts: file.alloc,
            extra_data: file.extra_data,
        };
        genesis.check()?;
        Ok(genesis)
    }

    /// The text of this genesis file.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut file = alloy_genesis::Genesis {
            timestamp: self.timestamp,
            gas_limit: self.gas_limit,
            base_fee_per_gas: Some(self.base_fee.into()),
            coinbase: self.fees_to,
            alloc: self.accounts.clone(),
            extra_data: self.extra_data.clone(),
            ..alloy_genesis::Genesis::default()
        };
        file.config.chain_id = self.chain_id;
        let history = serde_json::Value::from(self.history_blocks);
        file.config.extra_fields.insert("historyBlocks".into(), history);
        if self.takes_unprotected {
            file.config.extra_fields.insert("unprotectedTransactions".into(), true.into());
        }
        self.forks.write(&mut file.config);
        serde_json::to_string_pretty(&file).expect("a genesis is JSON")
    }

    /// Returns `true` for an account whose code nobody could have made: it begins with 0xef and is
    /// no delegation (EIP-3541).
    pub(super) fn has_reserved_code(account: &GenesisAccount) -> bool {
        let is_delegation = |code: &Bytes| code.len() == 23 && code.starts_with(&[0xef, 0x01, 0]);
        let is_reserved = |code: &Bytes| code.starts_with(&[0xef]) && !is_delegation(code);
        account.code.as_ref().is_some_and(is_reserved)
    }

    /// Returns `true` for an account that nobody could have made: whoever would create a contract
    /// at its address could not (EIP-7610).
    pub(super) fn has_storage_alone(account: &GenesisAccount) -> bool {
        let has_code = account.code.as_ref().is_some_and(|code| !code.is_empty());
        let is_used = has_code || account.nonce.is_some_and(|nonce| nonce > 0);
        !is_used && account.storage.as_ref().is_some_and(|storage| !storage.is_empty())
    }

    /// Transactions that are this chain's, by a [version](super::Evm::VERSIONS) of the service.
    #[must_use]
    pub fn rules(&self, version: u64) -> ChainRules {
        ChainRules {
            chain_id: self.chain_id,
            takes_unprotected: self.takes_unprotected,
            takes_delegations: version >= DELEGATIONS
                || mutants::active(Mutant::EvmEarlyDelegations),
        }
    }

    /// Versions of the service that execute this chain: forks are known from the second on.
    pub(super) fn versions(&self) -> Versions {
        let first = if self.forks == ForkSchedule::default() { 1 } else { DELEGATIONS };
        Versions::new(first, DELEGATIONS)
    }

    pub(super) fn check(&self) -> Result<(), GenesisError> {
        let check = |ok: bool, rule| if ok { Ok(()) } else { Err(GenesisError::Range(rule)) };
        check(self.chain_id > 0, "chainId must be at least 1")?;
        check(self.gas_limit >= TRANSACTION_GAS_MAX, "gasLimit must be at least 30000000")?;
        // Blocks count milliseconds.
        check(
            self.timestamp <= u64::MAX / 1_000,
            "timestamp must be in seconds, at most 18446744073709551",
        )?;
        check(
            self.history_blocks >= 256,
            "historyBlocks must be at least 256: BLOCKHASH asks for them",
        )?;
        let is_zero = |account: &GenesisAccount| {
            account.storage.iter().flatten().any(|(_, value)| *value == B256::ZERO)
        };
        check(!self.accounts.values().any(is_zero), "storage must not hold zeros: leave them out")?;
        check(
            !self.accounts.values().any(Self::has_storage_alone),
            "accounts with storage must have code or a nonce (EIP-7610)",
        )?;
        check(
            !self.accounts.values().any(Self::has_reserved_code),
            "code must not begin with 0xef, but for delegations (EIP-3541, EIP-7702)",
        )
    }
}
