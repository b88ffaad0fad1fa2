//! A payment in plain fields, for programs.

use super::{Evidence, Payment, PaymentReceipt, PaymentState, Wallet};
use serde::Serialize;

/// A payment and what is to be shown of it. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize)]
pub struct PaymentView {
    /// Identifier of its transaction, in hexadecimal.
    pub id: String,
    /// `pay`, `issue`, `redeem` or `consolidate`.
    pub kind: &'static str,
    /// Key of the payee, in hexadecimal.
    pub payee: String,
    /// Value that the payee gets, in the smallest unit.
    pub value: u64,
    /// Memo for the payee.
    pub memo: Option<String>,
    /// The caller's name for it.
    pub key: Option<String>,
    /// `unfinished`, `certified`, `refused`, `conflicting` or `released`.
    pub state: &'static str,
    /// Time at which it began, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// Time at which its outcome was known, in milliseconds since the Unix epoch.
    pub ended_ms: Option<u64>,
    /// Reason of a refusal, or how a coin was released otherwise.
    pub reason: Option<String>,
    /// Receipt to show to the payee, once it is certified.
    pub receipt: Option<PaymentReceipt>,
    /// Evidence that this wallet's key signed two transactions over one coin.
    pub evidence: Option<Evidence>,
}

impl Wallet {
    /// A payment of this wallet's in plain fields.
    #[must_use]
    pub fn view(&self, payment: &Payment) -> PaymentView {
        let receipt = self.receipt(payment.id).map(|receipt| {
            PaymentReceipt::new(&self.network, &receipt).expect("the payee's part of a payment")
        });
        let (reason, evidence) = match &payment.state {
            PaymentState::Refused { reason, .. } => (Some(reason.to_string()), None),
            PaymentState::Conflicting { evidence: Some(evidence), .. } => {
                (None, Some(Evidence::new(&self.network, evidence)))
            }
            PaymentState::Released { coin, decision, .. } => {
                (Some(format!("coin {coin} was released: {decision}")), None)
            }
            _ => (None, None),
        };
        PaymentView {
            id: payment.id.to_string(),
            kind: payment.order.purpose.name(),
            payee: payment.payee().to_string(),
            value: payment.value(),
            memo: payment.order.memo.clone(),
            key: payment.key.clone(),
            state: payment.state.name(),
            begun_ms: payment.begun_ms,
            ended_ms: payment.state.ended_ms(),
            reason,
            receipt,
            evidence,
        }
    }
}
