//! Payments and requests in plain fields, for programs.

use super::{
    Evidence, Payment, PaymentReceipt, PaymentRequest, PaymentState, Request, RequestState, Wallet,
};
use quorate_node::unix_ms;
use serde::Serialize;

/// A payment and what is to be shown of it. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize)]
pub struct PaymentView {
    /// Identifier of its transaction, in hexadecimal.
    pub id: String,
    /// `pay`, `issue`, `redeem`, `consolidate` or `refund`.
    pub kind: &'static str,
    /// Key of the payee, in hexadecimal.
    pub payee: String,
    /// Value that the payee gets, in the smallest unit.
    pub value: u64,
    /// Memo for the payee.
    pub memo: Option<String>,
    /// The caller's name for it.
    pub key: Option<String>,
    /// Name of whoever ordered it, where there are names.
    pub by: Option<String>,
    /// `unfinished`, `certified`, `refused`, `conflicting`, `released`, `releasing` or `refunded`
    /// ([`HistoryLine::state`](super::HistoryLine::state)).
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

/// A request in plain fields, for programs. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize)]
pub struct RequestView {
    /// Its name, in hexadecimal.
    pub id: String,
    /// Value to be paid, in the smallest unit.
    pub value: u64,
    /// Memo, without the reference.
    pub memo: Option<String>,
    /// Name of whoever made it.
    pub by: Option<String>,
    /// `open`, `paid`, `expired` or `cancelled`.
    pub state: RequestState,
    /// Time at which it was made.
    pub made_ms: u64,
    /// Time from which it is not open any more.
    pub expires_ms: u64,
    /// Time at which it was cancelled.
    pub cancelled_ms: Option<u64>,
    /// Payment of it, once there is one.
    pub paid: Option<RequestPaymentView>,
    /// File for the payer's wallet.
    pub request: PaymentRequest,
}

/// Payment of a request in plain fields.
#[derive(Clone, Debug, Serialize)]
pub struct RequestPaymentView {
    /// Identifier of the transaction, in hexadecimal.
    pub transaction: String,
    /// Key of the payer, in hexadecimal.
    pub payer: Option<String>,
    /// Value that came in, in the smallest unit.
    pub value: u64,
    /// Time at which it came in, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}

impl Wallet {
    /// A payment of this wallet's in plain fields.
    #[must_use]
    pub fn view(&self, payment: &Payment) -> PaymentView {
        let receipt = self.receipt(payment).map(|receipt| {
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
            by: payment.by.clone(),
            state: self.state.state_name(payment),
            begun_ms: payment.begun_ms,
            ended_ms: payment.state.ended_ms(),
            reason,
            receipt,
            evidence,
        }
    }

    /// A request in plain fields, as it is now.
    #[must_use]
    pub fn view_request(&self, request: &Request) -> RequestView {
        let Request { id, terms, paid, cancelled_ms } = request;
        let paid = paid.as_ref().map(|paid| RequestPaymentView {
            transaction: paid.tx.to_string(),
            payer: paid.payer.map(|payer| payer.to_string()),
            value: paid.value,
            at_ms: paid.at_ms,
        });
        let file =
            PaymentRequest::new(self.network(), self.owner(), terms.value, Some(request.text()));
        RequestView {
            id: id.to_string(),
            value: terms.value,
            memo: terms.memo.clone(),
            by: terms.by.clone(),
            state: request.state(unix_ms()),
            made_ms: terms.made_ms,
            expires_ms: terms.expires_ms,
            cancelled_ms: *cancelled_ms,
            paid,
            request: file,
        }
    }
}
