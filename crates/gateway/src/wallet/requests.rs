//! Requests for payment that a wallet keeps: open until a receipt pays them.
//!
//! ```text
//! Wallet::request ─▶ open ─┬─▶ paid       by coins that come in with its reference
//!                          ├─▶ expired    and paid all the same if the coins come later
//!                          └─▶ cancelled  likewise
//! ```
//!
//! A request has a reference, `#` and 16 hexadecimal digits, at the end of the memo that its payer
//! is to sign: so a payer's wallet needs to know nothing of requests.
//!
//! * ★ A request is paid by coins that were not here before, whose payer signed exactly its memo. A
//!   payer can sign any number of memos about one transaction; its coins come in once.
//! * What is paid is known from the records of what came in ([`WalletState`]): a wallet that was
//!   killed has the coins and the paid request, or neither.
//!
//! [`WalletState`]: super::state::WalletState

use super::record::Record;
use super::request::{Request, RequestId, RequestState, RequestTerms};
use super::{Received, Wallet, WalletError};
use quorate_node::testnet::system_random;
use quorate_node::unix_ms;
use quorate_payments::{Memo, PayReceipt};
use std::time::Duration;

/// Most requests that are open at once: whoever may make them could fill the disk otherwise.
pub const OPEN_REQUESTS_MAX: usize = 10_000;

/// Longest time for a request to be open.
pub const REQUEST_TIME_MAX: Duration = Duration::from_secs(366 * 86_400);

/// Longest memo of a request in bytes: its reference has to fit behind it.
pub const REQUEST_MEMO_BYTES_MAX: usize = Memo::BYTES_MAX - " #0123456789abcdef".len();

impl Wallet {
    /// Makes a request and stores it, open for a time of at most [`REQUEST_TIME_MAX`].
    ///
    /// # Errors
    /// When value, memo or time are none, or too many are open.
    pub fn request(
        &mut self,
        value: u64,
        memo: Option<String>,
        open_for: Duration,
        by: Option<String>,
    ) -> Result<Request, WalletError> {
        if value == 0 {
            return Err(WalletError::Order("the value must be at least 1"));
        }
        if memo.as_ref().is_some_and(|memo| memo.len() > REQUEST_MEMO_BYTES_MAX) {
            return Err(WalletError::Order("the memo of a request has at most 1006 bytes"));
        }
        if open_for.is_zero() || open_for > REQUEST_TIME_MAX {
            return Err(WalletError::Order("a request is open for 1 s to 366 days"));
        }
        let made_ms = unix_ms();
        let is_open = |request: &&Request| request.state(made_ms) == RequestState::Open;
        if self.state.requests().filter(is_open).count() >= OPEN_REQUESTS_MAX {
            return Err(WalletError::TooManyRequests);
        }
        let time_ms = u64::try_from(open_for.as_millis()).expect("a year fits");
        let expires_ms = made_ms.saturating_add(time_ms);
        let terms = RequestTerms { value, memo, by, made_ms, expires_ms };
        let id = self.unused_request_id();
        self.write(Record::Requested { id, terms })?;
        self.requested(id).cloned()
    }

    fn unused_request_id(&self) -> RequestId {
        let mut bytes = [0; 8];
        loop {
            system_random(&mut bytes);
            let id = RequestId::new(bytes);
            if self.state.request(id).is_none() {
                return id;
            }
        }
    }

    /// A request of this wallet's.
    ///
    /// # Errors
    /// [`WalletError::NoRequest`].
    pub fn requested(&self, id: RequestId) -> Result<&Request, WalletError> {
        self.state.request(id).ok_or(WalletError::NoRequest(id))
    }

    /// All requests, in the order in which they were made.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        self.state.requests()
    }

    /// Cancels a request that is open; one that was cancelled stays so.
    ///
    /// # Errors
    /// [`WalletError::NoRequest`]; [`WalletError::NotOpen`] when it is paid or its time is over.
    pub fn cancel(&mut self, id: RequestId) -> Result<&Request, WalletError> {
        let at_ms = unix_ms();
        match self.requested(id)?.state(at_ms) {
            RequestState::Open => self.write(Record::Cancelled { id, at_ms })?,
            RequestState::Cancelled => {}
            state => return Err(WalletError::NotOpen { id, state }),
        }
        self.requested(id)
    }

    /// Takes a receipt in from whoever brings it, if it pays a request that is open and so is worth
    /// its place on the disk. Of one that paid such a request before nothing changes.
    ///
    /// # Errors
    /// When it proves nothing, or pays no open request of this wallet's.
    pub fn receive_for_request(&mut self, receipt: &PayReceipt) -> Result<Received, WalletError> {
        let memo = receipt.memo.as_ref().map(|memo| memo.text.as_str());
        let request = memo.and_then(|memo| self.state.requested_by(memo));
        let request = request.ok_or(WalletError::PaysNoRequest)?;
        let (id, needed, state) = (request.id, request.terms.value, request.state(unix_ms()));
        let tx = receipt.coins.first().map(|coin| coin.id.tx);
        let is_known = request.paid.as_ref().is_some_and(|paid| Some(paid.tx) == tx);
        if is_known {
            let paid = receipt.check(&self.network)?;
            return Ok(Received { paid, added: 0, request: Some(id) });
        }
        self.check_recovered()?;
        if state != RequestState::Open {
            return Err(WalletError::NotOpen { id, state });
        }
        let fresh = self.fresh(receipt)?;
        let found = fresh.iter().map(|coin| u128::from(coin.output.value)).sum();
        if found < u128::from(needed) {
            return Err(WalletError::PaysTooLittle { id, needed, found });
        }
        self.receive(receipt)
    }
}
