//! A load of real contracts: two tokens and an exchange between them, placed in the genesis, and
//! accounts that use them. Its sources are in `contracts/`.
//!
//! Of a hundred transactions of [`Shape::Mixed`] one creates a contract, as in the paper's trace
//! (some 5,000 of 500,000; paper 002, §IX), twenty swap, and the others transfer tokens.

use super::{Genesis, Signer};
use alloy_consensus::TxEip1559;
use alloy_genesis::GenesisAccount;
use alloy_primitives::{Address, B256, Bytes, TxKind, U256, address, keccak256};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The first token's address.
pub const TOKEN: Address = address!("0000000000000000000000000000000000001001");
/// Address of the other token's contract.
pub const OTHER_TOKEN: Address = address!("0000000000000000000000000000000000001002");
/// Address of the exchange's contract.
pub const EXCHANGE: Address = address!("0000000000000000000000000000000000001003");

/// Kind of load: the transactions that it consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// Transfers of a token, each to another account.
    Transfers,
    /// Creations, swaps and transfers of tokens.
    #[default]
    Mixed,
}

/// A name that no load has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no mix '{0}': use mixed or transfers")]
pub struct UnknownShape(String);

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        match name {
            "mixed" => Ok(Self::Mixed),
            "transfers" => Ok(Self::Transfers),
            _ => Err(UnknownShape(name.to_owned())),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Transfers => "transfers",
        })
    }
}

/// Compiled contract, as the compiler's output describes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Artefact {
    /// Code that creates the contract; the constructor's arguments follow it.
    pub bytecode: Bytes,
    /// The code that the account has then.
    pub deployed_bytecode: Bytes,
}

impl Artefact {
    /// An ERC-20 token; its constructor takes name, symbol and supply.
    #[must_use]
    pub fn token() -> Self {
        Self::parse(include_str!("../../../../contracts/artifacts/Token.json"))
    }

    /// An exchange of constant product; its constructor takes two tokens.
    #[must_use]
    pub fn exchange() -> Self {
        Self::parse(include_str!("../../../../contracts/artifacts/Exchange.json"))
    }

    fn parse(text: &str) -> Self {
        serde_json::from_str(text).expect("the artefacts come with the source")
    }
}

/// Accounts that send transactions one after the other, with what the next of each is numbered.
#[derive(Debug)]
pub struct Mix {
    chain_id: u64,
    shape: Shape,
    accounts: Vec<(Signer, u64)>,
    creation: Bytes,
    sent: u64,
}

impl Mix {
    /// A load of so many accounts, at least 1, whose keys follow from the seed.
    #[must_use]
    pub fn new(chain_id: u64, shape: Shape, accounts: usize, seed: u64) -> Self {
        let signer = |index| Signer::derived(&format!("quorate mix {seed} {index}")).0;
        let accounts = (0..accounts.max(1)).map(|index| (signer(index), 0)).collect();
        Self { chain_id, shape, accounts, creation: token_creation(), sent: 0 }
    }

    /// A chain on which all its transactions succeed.
    #[must_use]
    pub fn genesis(&self) -> Genesis {
        let mut genesis = Genesis::new(self.chain_id);
        let holders: Vec<Address> =
            self.accounts.iter().map(|(signer, _)| signer.address()).collect();
        let ether = U256::from(10).pow(U256::from(24));
        for holder in &holders {
            genesis.accounts.insert(*holder, GenesisAccount::default().with_balance(ether));
        }
        let token = Artefact::token().deployed_bytecode;
        for address in [TOKEN, OTHER_TOKEN] {
            let storage = token_storage(holders.iter().copied());
            genesis.accounts.insert(address, contract(&token, storage));
        }
        let exchange = Artefact::exchange().deployed_bytecode;
        genesis.accounts.insert(EXCHANGE, contract(&exchange, exchange_storage()));
        genesis
    }

    /// Makes the next transaction, signed and encoded.
    pub fn next_transaction(&mut self) -> bytes::Bytes {
        let count = self.accounts.len() as u64;
        let at = (self.sent % count) as usize;
        let to = self.accounts[((self.sent + self.sent / count + 1) % count) as usize].0.address();
        let (to, input, gas_limit) = match (self.shape, self.sent % 100) {
            (Shape::Mixed, 99) => (TxKind::Create, self.creation.clone(), 2_000_000),
            (Shape::Mixed, 0..20) => {
                (TxKind::Call(EXCHANGE), swap(self.sent.is_multiple_of(2)), 200_000)
            }
            _ => (TxKind::Call(TOKEN), transfer(to, U256::from(1_000)), 80_000),
        };
        self.sent += 1;
        let (signer, nonce) = &mut self.accounts[at];
        let transaction = TxEip1559 {
            chain_id: self.chain_id,
            nonce: *nonce,
            gas_limit,
            max_fee_per_gas: 1,
            max_priority_fee_per_gas: 0,
            to,
            input,
            ..TxEip1559::default()
        };
        *nonce += 1;
        signer.sign(transaction)
    }
}

/// Input of the call `transfer(address,uint256)`.
#[must_use]
pub fn transfer(to: Address, amount: U256) -> Bytes {
    call("transfer(address,uint256)", &[to.into_word(), amount.into()])
}

/// `swap(address,uint256,uint256)` of a little, at whatever price.
fn swap(is_first: bool) -> Bytes {
    let token = if is_first { TOKEN } else { OTHER_TOKEN };
    call(
        "swap(address,uint256,uint256)",
        &[token.into_word(), U256::from(1_000_000).into(), B256::ZERO],
    )
}

/// The input of a call.
#[must_use]
pub fn call(signature: &str, arguments: &[B256]) -> Bytes {
    let mut input = keccak256(signature)[..4].to_vec();
    arguments.iter().for_each(|argument| input.extend_from_slice(&argument[..]));
    input.into()
}

/// Creates a token "T" of 10^24.
#[must_use]
pub fn token_creation() -> Bytes {
    let word = |value: u64| U256::from(value).to_be_bytes::<32>();
    let mut text = [0; 32];
    text[0] = b'T';
    let supply = U256::from(10).pow(U256::from(24)).to_be_bytes::<32>();
    let arguments = [word(96), word(160), supply, word(1), text, word(1), text].concat();
    [&Artefact::token().bytecode[..], &arguments].concat().into()
}

fn contract(code: &Bytes, storage: BTreeMap<B256, B256>) -> GenesisAccount {
    GenesisAccount::default()
        .with_nonce(Some(1))
        .with_code(Some(code.clone()))
        .with_storage(Some(storage))
}

/// Slot in which a mapping keeps a key's value.
fn mapping_slot(key: B256, slot: B256) -> B256 {
    keccak256([&key[..], &slot[..]].concat())
}

/// Everybody has 10^24 and lets the exchange have as much; the exchange has 10^27.
fn token_storage(holders: impl Iterator<Item = Address>) -> BTreeMap<B256, B256> {
    let word = |value: u64| B256::from(U256::from(value));
    let amount = B256::from(U256::from(10).pow(U256::from(24)));
    let mut storage = BTreeMap::new();
    for holder in holders {
        storage.insert(mapping_slot(holder.into_word(), word(0)), amount);
        let allowances = mapping_slot(holder.into_word(), word(1));
        storage.insert(mapping_slot(EXCHANGE.into_word(), allowances), amount);
    }
    storage.insert(mapping_slot(EXCHANGE.into_word(), word(0)), reserve());
    storage
}

fn reserve() -> B256 {
    U256::from(10).pow(U256::from(27)).into()
}

fn exchange_storage() -> BTreeMap<B256, B256> {
    let words = [TOKEN.into_word(), OTHER_TOKEN.into_word(), reserve(), reserve(), reserve()];
    (0_u64..).map(|slot| B256::from(U256::from(slot))).zip(words).collect()
}
