//! Sessions of clients, so that each of their requests takes effect once.

use crate::StorageError;
use crate::store::Transaction;
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::Digest;
use quorate_types::{ClientId, Height, Request, Results};

/// A client's window of completed sequence numbers.
///
/// A client may have [`Session::WINDOW`] requests on their way at once, and they may be decided in
/// any order. It sends number `s` only when all up to `s − WINDOW` are answered. From that follows:
///
/// * Everything below [`Session::lowest`] is completed. A number in the window is completed or it
///   is not. Either way a request is executed when it is seen first, and never again.
/// * **At or beyond `lowest + WINDOW`** nothing is executed, recorded or *answered*. An honest
///   client is never there: what was answered was executed first. It is no refusal: the same signed
///   bytes may be ordered again after the window moved on, and then take effect.
/// * **Results are kept** for `WINDOW` numbers below `lowest` and for all completed ones above it.
///   A client that lost its replies asks again for a number no more than `WINDOW` below its
///   highest, which `lowest` cannot have passed by more: it is answered, unless others have left
///   more than 256 MiB of results since (`kept_results`). Below that nothing is answered any more;
///   its client has the answer, or has lost its own count and needs a new key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// The lowest sequence number that is not completed.
    pub lowest: u64,
    /// Bit `i` says that `lowest + i` is completed; bit 0 never does.
    pub completed: u64,
}

/// Status of a request in its client's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestStatus {
    Fresh,
    Completed,
    TooFarAhead,
}

impl Session {
    /// Number of requests that may be on their way at once.
    pub const WINDOW: u64 = 64;
    /// Results of one request that take more bytes than this are not kept: only their digest is,
    /// and a repeat of the request is not answered.
    pub const RESULT_BYTES_MAX: usize = 64 * 1024;

    /// Returns `true` if the request with this number took effect.
    #[cfg(test)]
    pub(crate) fn is_completed(&self, sequence: u64) -> bool {
        self.status(sequence) == RequestStatus::Completed
    }

    pub(super) fn status(&self, sequence: u64) -> RequestStatus {
        match sequence.checked_sub(self.lowest) {
            None => RequestStatus::Completed,
            Some(ahead) if ahead >= Self::WINDOW => RequestStatus::TooFarAhead,
            Some(ahead) if self.completed >> ahead & 1 == 1 => RequestStatus::Completed,
            Some(_) => RequestStatus::Fresh,
        }
    }

    /// Completes a number in the window; the numbers whose results are kept no longer.
    pub(super) fn mark(&mut self, sequence: u64) -> std::ops::Range<u64> {
        let before = self.kept_from();
        if let Some(ahead) = sequence.checked_sub(self.lowest) {
            assert!(ahead < Self::WINDOW, "only what is in the window is completed");
            self.completed |= 1 << ahead;
        }
        while self.completed & 1 == 1 {
            self.completed >>= 1;
            self.lowest += 1;
        }
        before..self.kept_from()
    }

    /// Numbers whose results are kept, unless they were dropped.
    pub(super) fn kept(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { lowest, completed } = *self;
        let ahead = (0..Self::WINDOW).filter(move |ahead| completed >> ahead & 1 == 1);
        (self.kept_from()..lowest).chain(ahead.map(move |ahead| lowest + ahead))
    }

    fn kept_from(&self) -> u64 {
        self.lowest.saturating_sub(Self::WINDOW)
    }

    pub(super) fn encode(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.lowest.to_le_bytes());
        bytes[8..].copy_from_slice(&self.completed.to_le_bytes());
        bytes
    }
}

/// Begins the keys of all sessions.
pub(super) const FIRST: u8 = b'c';

pub(super) fn key(client: ClientId) -> Vec<u8> {
    [&[FIRST], &client.0.0[..]].concat()
}

pub(super) fn result_key(client: ClientId, sequence: u64) -> Vec<u8> {
    [b"r", &client.0.0[..], &sequence.to_be_bytes()].concat()
}

/// Result of a request that took effect.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(super) struct CompletedResult {
    /// Height at which it took effect.
    pub(super) height: Height,
    /// The digest that a reply signs.
    pub(super) digest: Digest,
    /// One for each operation; `None` when they were too large to keep.
    pub(super) results: Option<Results>,
}

impl CompletedResult {
    pub(super) fn new(height: Height, results: Results) -> Self {
        Self { height, digest: results.digest(), results: Some(results) }
    }

    /// Encoding that is kept: without the results, where they are too large.
    pub(super) fn kept(&self) -> Vec<u8> {
        let whole = borsh::to_vec(self).expect("encoding into memory cannot fail");
        if whole.len() <= Session::RESULT_BYTES_MAX {
            return whole;
        }
        let Self { height, digest, .. } = *self;
        let digest_only = Self { height, digest, results: None };
        borsh::to_vec(&digest_only).expect("encoding into memory cannot fail")
    }

    /// The kept result of a completed request.
    pub(super) fn load(
        state: &dyn Transaction,
        request: &Request,
    ) -> Result<Option<Self>, StorageError> {
        let Some(bytes) = state.get(&result_key(request.client, request.sequence))? else {
            return Ok(None);
        };
        let damaged = |_| StorageError::StateDamaged { entry: "completed request" };
        Self::try_from_slice(&bytes).map(Some).map_err(damaged)
    }
}

#[cfg(test)]
mod tests;
