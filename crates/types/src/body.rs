//! Bodies: the bulk data that authors disseminate and consensus orders by digest.

use crate::{ChangeError, ReplicaId, Request, RequestError, SignedChange};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::Bytes;
use quorate_crypto::{Digest, PartsHasher};

/// Names a body: at most one digest per author and sequence number is honest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct BodyRef {
    /// The member that sealed it.
    pub author: ReplicaId,
    /// The author's own count. It continues across restarts.
    pub sequence: u64,
    /// The hash over its requests: [`Body::digest_of`].
    pub digest: Digest,
}

impl BodyRef {
    /// Encoded length in bytes.
    pub const BYTES: usize = 2 + 8 + size_of::<Digest>();
    /// Author of changes of committee, which no member seals: no member has this index.
    const NOBODY: ReplicaId = ReplicaId(u16::MAX);

    /// Name of the body that is a change of committee, by its
    /// [`Change::digest`](crate::Change::digest). No member seals one of that name.
    #[must_use]
    pub const fn of_change(change: Digest) -> Self {
        Self { author: Self::NOBODY, sequence: 0, digest: change }
    }

    /// Returns `true` if it names a change of committee.
    #[must_use]
    pub fn is_change(&self) -> bool {
        *self == Self::of_change(self.digest)
    }
}

impl std::fmt::Debug for BodyRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}:{}", self.author, self.sequence, self.digest)
    }
}

/// A body: the wire forms of its requests, one after the other. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    /// Name by which payloads order it.
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
        let digest = Self::digest_of(requests);
        let reference = BodyRef { author, sequence, digest };
        let mut body =
            Self { reference, raw: Bytes::from(raw), requests: Vec::with_capacity(requests.len()) };
        let mut at = 0;
        for request in requests {
            body.requests.push(request.moved_to(&body.raw, at));
            at += request.raw().len();
        }
        body
    }

    /// The hash over the requests' digests and signatures in order. It names every byte of the body
    /// and hashes none of them a second time.
    #[must_use]
    pub fn digest_of(requests: &[Request]) -> Digest {
        let mut hasher = PartsHasher::new("quorate v1 body");
        for request in requests {
            hasher.part(&request.digest().0);
            hasher.part(&request.signature().0);
        }
        hasher.finish()
    }

    /// A signed change of committee as a body: it carries no requests, and its name is of the
    /// change alone, whoever signed it. Does not check signatures.
    ///
    /// # Errors
    /// [`ChangeError::Malformed`].
    pub fn of_change(raw: Bytes) -> Result<(Self, SignedChange), ChangeError> {
        let signed = SignedChange::decode(&raw)?;
        let reference = BodyRef::of_change(signed.change.digest());
        Ok((Self { reference, raw, requests: Vec::new() }, signed))
    }

    /// Parses raw bytes and checks that `reference` names them. Does not check signatures.
    ///
    /// # Errors
    /// When the digest differs, the body is empty, or a request does not decode; for a change of
    /// committee, which [`Body::of_change`] parses.
    pub fn parse(reference: BodyRef, raw: Bytes) -> Result<Self, RequestError> {
        let body = Self::parse_named(reference, raw)?;
        if Self::digest_of(&body.requests) == reference.digest {
            Ok(body)
        } else {
            Err(RequestError::Malformed)
        }
    }

    /// Parses bytes that this replica checked before it stored them.
    ///
    /// # Errors
    /// When the body is empty, too large, or a request does not decode.
    pub fn parse_named(reference: BodyRef, raw: Bytes) -> Result<Self, RequestError> {
        if reference.is_change() {
            let (body, _) = Self::of_change(raw).map_err(|_| RequestError::Malformed)?;
            return Some(body)
                .filter(|it| it.reference == reference)
                .ok_or(RequestError::Malformed);
        }
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

    /// Number of operations that it carries.
    #[must_use]
    pub fn operations(&self) -> usize {
        self.requests.iter().map(|request| request.operations.len()).sum()
    }
}
