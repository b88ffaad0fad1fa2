//! Receipt of a payment, which the payee can show to anybody, for ever, without asking an
//! authority.

use crate::{Coin, Invalid, Network, TxId};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::{IdentityKey, IdentitySecret, Signature};
use quorate_types::{Kind, Scope, sign};

/// Coins that one transaction paid to one owner, and what the payer said with them.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PayReceipt {
    /// The coins: all of one transaction and one owner.
    pub coins: Vec<Coin>,
    /// Memo of the payer: an invoice's number, perhaps.
    pub memo: Option<Memo>,
}

/// A payer's word about a payment. The authorities neither see it nor vote for it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Memo {
    /// Text of at most [`Memo::BYTES_MAX`] bytes.
    pub text: String,
    /// The payer's signature over the transaction's name and the words.
    pub signature: Signature,
}

/// Statement that a valid receipt proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paid {
    /// Transaction that paid it.
    pub tx: TxId,
    /// Key of the payer; `None` for outputs of the genesis.
    pub payer: Option<IdentityKey>,
    /// Key of the payee.
    pub payee: IdentityKey,
    /// Sum of the coins, in the smallest unit.
    pub value: u64,
}

/// Reason that a receipt proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The receipt has no coins.
    #[error("the receipt has no coins")]
    Empty,
    /// Coins that do not belong together.
    #[error("the receipt's coins are not of one transaction and one owner, or one is there twice")]
    Mixed,
    /// A coin that does not exist.
    #[error(transparent)]
    Coin(#[from] Invalid),
    /// Words that the payer did not sign.
    #[error("the payer did not sign the memo")]
    Memo,
}

impl Memo {
    /// Most bytes of text.
    pub const BYTES_MAX: usize = 1_024;

    /// Signs a memo about a transaction as its payer.
    #[must_use]
    pub fn sign(network: &Network, secret: &IdentitySecret, tx: TxId, text: String) -> Self {
        let signature = secret.sign(&memo_statement(network, tx, &text));
        Self { text, signature }
    }
}

impl PayReceipt {
    /// Checks everything, offline.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, network: &Network) -> Result<Paid, ReceiptError> {
        let first = self.coins.first().ok_or(ReceiptError::Empty)?;
        let (tx, payee) = (first.id.tx, first.output.owner);
        let together = |coin: &Coin| coin.id.tx == tx && coin.output.owner == payee;
        let ascending = self.coins.windows(2).all(|pair| pair[0].id < pair[1].id);
        if !ascending || !self.coins.iter().all(together) {
            return Err(ReceiptError::Mixed);
        }
        let mut value = 0u64;
        for coin in &self.coins {
            coin.check(network)?;
            value = value.checked_add(coin.output.value).ok_or(Invalid::Overflow)?;
        }
        let payer = first.payer();
        if let Some(memo) = &self.memo {
            let statement = memo_statement(network, tx, &memo.text);
            let is_signed =
                payer.is_some_and(|key| key.verify(&statement, &memo.signature).is_ok());
            if !is_signed || memo.text.len() > Memo::BYTES_MAX {
                return Err(ReceiptError::Memo);
            }
        }
        Ok(Paid { tx, payer, payee, value })
    }
}

fn memo_statement(network: &Network, tx: TxId, text: &str) -> Vec<u8> {
    let digest = quorate_crypto::hash(text.as_bytes());
    sign::statement(Kind::TxMemo, Scope::network(network.id()), &(tx, digest))
}

#[cfg(test)]
mod tests;
