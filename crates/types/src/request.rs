//! Requests that clients sign, and the replies to them.
//!
//! A request is a bundle of operations under one sequence number and one signature, so that one
//! check per validator serves up to [`Request::OPERATIONS_MAX`] operations. Its wire form is flat
//! and travels unchanged from the client into the body that orders it:
//!
//! ```text
//! client[32] ‖ sequence u64 ‖ count u16 ‖ bytes u32 ‖ (length u32)×count
//!     ‖ operations ‖ signature[64]
//! ```

use crate::{ClientId, Height, Kind, NetworkId, ReplicaId, Results, Scope, sign};
use borsh::{BorshDeserialize, BorshSerialize};
use bytes::{BufMut, Bytes, BytesMut};
use quorate_crypto::merkle::{Path, Tree};
use quorate_crypto::{Digest, IdentityKey, IdentitySecret, Signature, hash, hash_parts};

const HEADER_BYTES: usize = 32 + 8 + 2 + 4;
const SIGNATURE_BYTES: usize = 64;

/// A decoded request. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// Client that signs the request.
    pub client: ClientId,
    /// The client's own count of its requests, from 0.
    pub sequence: u64,
    /// The operations in order; slices of [`Request::raw`].
    pub operations: Vec<Bytes>,
    raw: Bytes,
    digest: Digest,
}

/// Reason for which bytes are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// Cut short, or lengths that do not add up.
    #[error("the request's lengths do not add up")]
    Malformed,
    /// No operation, or more than [`Request::OPERATIONS_MAX`].
    #[error("a request carries 1 to {} operations", Request::OPERATIONS_MAX)]
    OperationCount,
    /// Operations of more than [`Request::BYTES_MAX`] bytes together.
    #[error("a request's operations take at most {} bytes", Request::BYTES_MAX)]
    TooLarge,
}

impl Request {
    /// Most operations in one request.
    pub const OPERATIONS_MAX: usize = 256;
    /// Most bytes that the operations of one request take together.
    pub const BYTES_MAX: usize = 128 * 1024;
    /// Most bytes on the wire.
    pub const WIRE_BYTES_MAX: usize =
        HEADER_BYTES + 4 * Self::OPERATIONS_MAX + Self::BYTES_MAX + SIGNATURE_BYTES;

    /// Encodes and signs. The statement covers the network, so it is good in one network only; it
    /// does not cover the epoch, so it survives a change of committee.
    ///
    /// # Errors
    /// When the operations exceed the limits.
    pub fn sign(
        secret: &IdentitySecret,
        network: NetworkId,
        sequence: u64,
        operations: &[Bytes],
    ) -> Result<Self, RequestError> {
        let bytes: usize = operations.iter().map(Bytes::len).sum();
        check_limits(operations.len(), bytes)?;
        let mut raw =
            BytesMut::with_capacity(HEADER_BYTES + 4 * operations.len() + bytes + SIGNATURE_BYTES);
        raw.put_slice(&secret.public().0);
        raw.put_u64_le(sequence);
        raw.put_u16_le(u16::try_from(operations.len()).expect("limited above"));
        raw.put_u32_le(u32::try_from(bytes).expect("limited above"));
        for operation in operations {
            raw.put_u32_le(u32::try_from(operation.len()).expect("limited above"));
        }
        for operation in operations {
            raw.put_slice(operation);
        }
        let digest = hash(&raw);
        let signature = secret.sign(&client_statement(network, digest));
        raw.put_slice(&signature.0);
        let (request, rest) = Self::split(&raw.freeze(), |_| digest)?;
        assert!(rest.is_empty(), "a request's encoding ends where it ends");
        Ok(request)
    }

    /// Decodes the request that starts `bytes`; returns it and what follows. Checks form and
    /// limits, not the signature.
    ///
    /// # Errors
    /// When the bytes are not a request.
    pub fn split_from(bytes: &Bytes) -> Result<(Self, Bytes), RequestError> {
        Self::split(bytes, hash)
    }

    /// As [`Request::split_from`]; `digest_of` everything but the signature.
    fn split(
        bytes: &Bytes,
        digest_of: impl FnOnce(&[u8]) -> Digest,
    ) -> Result<(Self, Bytes), RequestError> {
        let header = bytes.get(..HEADER_BYTES).ok_or(RequestError::Malformed)?;
        let client = ClientId(IdentityKey(header[..32].try_into().expect("32 bytes")));
        let sequence = u64::from_le_bytes(header[32..40].try_into().expect("8 bytes"));
        let count = usize::from(u16::from_le_bytes(header[40..42].try_into().expect("2 bytes")));
        let size = u32::from_le_bytes(header[42..46].try_into().expect("4 bytes")) as usize;
        check_limits(count, size)?;
        let start = HEADER_BYTES + 4 * count;
        let end = start + size + SIGNATURE_BYTES;
        if bytes.len() < end {
            return Err(RequestError::Malformed);
        }
        let mut operations = Vec::with_capacity(count);
        let mut at = start;
        for length in bytes[HEADER_BYTES..start].chunks_exact(4) {
            let length = u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize;
            let next = at.checked_add(length).ok_or(RequestError::Malformed)?;
            if next > start + size {
                return Err(RequestError::Malformed);
            }
            operations.push(bytes.slice(at..next));
            at = next;
        }
        if at != start + size {
            return Err(RequestError::Malformed);
        }
        let digest = digest_of(&bytes[..end - SIGNATURE_BYTES]);
        let request = Self { client, sequence, operations, raw: bytes.slice(..end), digest };
        Ok((request, bytes.slice(end..)))
    }

    /// The same request where its bytes begin at `at` in `bytes`, which hold a copy of them.
    pub(crate) fn moved_to(&self, bytes: &Bytes, at: usize) -> Self {
        let raw = bytes.slice(at..at + self.raw.len());
        let mut from = HEADER_BYTES + 4 * self.operations.len();
        let operations = self.operations.iter().map(|operation| {
            let to = from + operation.len();
            raw.slice(std::mem::replace(&mut from, to)..to)
        });
        let operations = operations.collect();
        Self { client: self.client, sequence: self.sequence, operations, raw, digest: self.digest }
    }

    /// Bytes of the wire form, signature included.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The signature at the end of the wire form.
    #[must_use]
    pub fn signature(&self) -> Signature {
        let start = self.raw.len() - SIGNATURE_BYTES;
        Signature(self.raw[start..].try_into().expect("64 bytes"))
    }

    /// The hash of everything but the signature. The bytes are hashed once, when they are decoded:
    /// what the client signed and the name of a body follow from it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The bytes that the client signed.
    #[must_use]
    pub fn statement(&self, network: NetworkId) -> Vec<u8> {
        client_statement(network, self.digest)
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Request({} #{}, {} operations)",
            self.client,
            self.sequence,
            self.operations.len()
        )
    }
}

fn check_limits(count: usize, bytes: usize) -> Result<(), RequestError> {
    if count == 0 || count > Request::OPERATIONS_MAX {
        return Err(RequestError::OperationCount);
    }
    if bytes > Request::BYTES_MAX {
        return Err(RequestError::TooLarge);
    }
    Ok(())
}

fn client_statement(network: NetworkId, digest: Digest) -> Vec<u8> {
    sign::statement(Kind::Client, Scope::network(network), &digest)
}

/// One replica's signed answer to one request. It binds the client, the sequence and the results,
/// so it answers nothing else; equal answers are a result when those who give them weigh enough to
/// include an honest member (`f+1` equals).
///
/// Answers that a replica gives at once, those of a height, share one signature, over the root of a
/// tree with a leaf for each: signing costs as much as some hundred hashes.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Reply {
    /// Replica that signs the reply.
    pub replica: ReplicaId,
    /// Client that signed the request.
    pub client: ClientId,
    /// Sequence number that the client gave the request.
    pub sequence: u64,
    /// Height at which the request took effect.
    pub height: Height,
    /// The hash of the results in order.
    pub results_digest: Digest,
    /// One result per operation.
    pub results: Results,
    /// Way from this answer to the root of all that were signed with it.
    pub path: Path,
    /// Signature over that root.
    pub signature: Signature,
}

impl Reply {
    /// Signs the answer to a request, for its client.
    #[must_use]
    pub fn sign(secret: &IdentitySecret, scope: Scope, replica: ReplicaId, answer: Answer) -> Self {
        Self::sign_all(secret, scope, replica, vec![answer]).remove(0)
    }

    /// Signs answers to requests, each for its client, with one signature.
    #[must_use]
    pub fn sign_all(
        secret: &IdentitySecret,
        scope: Scope,
        replica: ReplicaId,
        answers: Vec<Answer>,
    ) -> Vec<Self> {
        let leaf = |answer: &Answer| {
            reply_leaf(answer.client, answer.sequence, answer.height, answer.results.digest())
        };
        let leaves: Vec<_> = answers.iter().map(leaf).collect();
        let tree = Tree::new(&leaves);
        let signature = secret.sign(&reply_statement(scope, tree.root()));
        let reply = |(index, answer): (u32, Answer)| {
            let Answer { client, sequence, height, results, index: _ } = answer;
            let path = tree.path(index).expect("it has a leaf for each");
            let results_digest = results.digest();
            Self { replica, client, sequence, height, results_digest, results, path, signature }
        };
        (0..).zip(answers).map(reply).collect()
    }

    /// Returns `true` if the results are those that the digest names.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        self.results.digest() == self.results_digest
    }

    /// The bytes that the replica signed; `None` where the path leads to no root.
    #[must_use]
    pub fn statement(&self, scope: Scope) -> Option<Vec<u8>> {
        let leaf = reply_leaf(self.client, self.sequence, self.height, self.results_digest);
        Some(reply_statement(scope, self.path.root(&leaf)?))
    }
}

/// Result of executing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Client that signed the request.
    pub client: ClientId,
    /// Sequence number that the client gave the request.
    pub sequence: u64,
    /// Height at which the request took effect first.
    pub height: Height,
    /// One result per operation.
    pub results: Results,
    /// Its place in the tree of the height that was executed now; none for a repeat, which took
    /// effect at an earlier one.
    pub index: Option<u32>,
}

fn reply_leaf(client: ClientId, sequence: u64, height: Height, results: Digest) -> Digest {
    let [sequence, height] = [sequence, height.0].map(u64::to_le_bytes);
    hash_parts("quorate v1 reply", &[&client.0.0, &sequence, &height, &results.0])
}

fn reply_statement(scope: Scope, root: Digest) -> Vec<u8> {
    sign::statement(Kind::Reply, scope, &root)
}

#[cfg(test)]
mod tests;
