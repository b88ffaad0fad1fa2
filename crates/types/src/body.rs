//! Bodies: the bulk data that authors disseminate and consensus orders by digest.

use crate::{ReplicaId, Request, RequestError};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::{Digest, hash};

/// Names a body: at most one digest per author and sequence number is honest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct BodyRef {
    /// The member that sealed it.
    pub author: ReplicaId,
    /// The author's own count. It continues across restarts.
    pub sequence: u64,
    /// The hash of the raw bytes.
    pub digest: Digest,
}

impl std::fmt::Debug for BodyRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}:{}", self.author, self.sequence, self.digest)
    }
}

/// A body: the wire forms of its requests, one after the other. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Its name.
    pub reference: BodyRef,
    /// The bytes as they travel and as they are stored.
    pub raw: Bytes,
    /// The requests in order; slices of `raw`.
    pub requests: Vec<Request>,
}

impl Body {
    /// Most bytes in one body: a frame's cap, checked before anything is allocated.
    pub const BYTES_MAX: usize = 4 * 1024 * 1024;

    /// Seals requests into a body.
    #[must_use]
    pub fn seal(author: ReplicaId, sequence: u64, requests: &[Request]) -> Self {
        let mut raw = Vec::with_capacity(requests.iter().map(|r| r.raw().len()).sum());
        for request in requests {
            raw.extend_from_slice(request.raw());
        }
        let raw = Bytes::from(raw);
        let reference = BodyRef { author, sequence, digest: hash(&raw) };
        Self::parse_named(reference, raw).expect("sealed from decoded requests")
    }

    /// Parses raw bytes and checks that `reference` names them. Does not check signatures.
    ///
    /// # Errors
    /// When the digest differs, the body is empty, or a request does not decode.
    pub fn parse(reference: BodyRef, raw: Bytes) -> Result<Self, RequestError> {
        if hash(&raw) != reference.digest {
            return Err(RequestError::Malformed);
        }
        Self::parse_named(reference, raw)
    }

    /// Parses bytes that this replica checked before it stored them.
    ///
    /// # Errors
    /// When the body is empty, too large, or a request does not decode.
    pub fn parse_named(reference: BodyRef, raw: Bytes) -> Result<Self, RequestError> {
        if raw.is_empty() {
            return Err(RequestError::Malformed);
        }
        if raw.len() > Self::BYTES_MAX {
            return Err(RequestError::TooLarge);
        }
        let mut requests = Vec::new();
        let mut rest = raw.clone();
        while !rest.is_empty() {
            let (request, tail) = Request::split_from(&rest)?;
            requests.push(request);
            rest = tail;
        }
        Ok(Self { reference, raw, requests })
    }

    /// How many operations it carries.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.requests.iter().map(|request| request.operations.len()).sum()
    }
}
