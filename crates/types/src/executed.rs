//! Result of executing a height, and the one hash that stands for all of it.
//!
//! ```text
//! root = H(height ‖ proposed_at_ms ‖ state ‖ sessions ‖ requests)
//! requests = the Merkle root over H(height ‖ index ‖ client ‖ sequence ‖ H(request) ‖ H(results))
//! ```
//!
//! Members that executed the same sign the same root. Whoever holds enough of their signatures can
//! show with a path what one request came to, or with a service's proof what the state holds.
//! Source: paper 002, §IV and §V-A.

use crate::{ClientId, Committee, Height, Kind, Purpose, Rejected, Request, Results, Scope, sign};
use borsh::{BorshDeserialize, BorshSerialize};
use quorate_crypto::merkle::Path;
use quorate_crypto::mutants::{self, Mutant};
use quorate_crypto::{Certificate, Digest, hash, hash_parts};

/// Content that a height's root is the hash of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Header {
    /// Height that was executed.
    pub height: Height,
    /// Its proposer's clock, in milliseconds since the Unix epoch.
    pub proposed_at_ms: u64,
    /// Root of the service's state after it.
    pub state: Digest,
    /// The hash chain over the sessions' changes.
    pub sessions: Digest,
    /// The root of the tree over the requests that took effect here, in their order.
    pub requests: Digest,
}

impl Header {
    /// The hash that stands for everything at this height.
    #[must_use]
    pub fn root(&self) -> Digest {
        let content = borsh::to_vec(self).expect("encoding into memory cannot fail");
        hash_parts("quorate v1 block root", &[&content])
    }

    /// The bytes that a member signs once it has executed the height.
    #[must_use]
    pub fn statement(&self, scope: Scope) -> Vec<u8> {
        executed_statement(scope, self.height, self.root())
    }
}

/// The bytes that a member signs once `height` came to `root` for it.
#[must_use]
pub fn executed_statement(scope: Scope, height: Height, root: Digest) -> Vec<u8> {
    sign::statement(Kind::Executed, scope, &(height, root))
}

/// A header that members sign of whom one at least is honest: what it says is so.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ExecutionCertificate {
    /// Header of the executed height.
    pub header: Header,
    /// Signatures over [`Header::statement`], by members of [`Purpose::Execute`]'s weight.
    pub certificate: Certificate,
}

impl ExecutionCertificate {
    /// Checks it as a whole: weight, then signature (★).
    ///
    /// # Errors
    /// [`Rejected::BelowThreshold`] and [`Rejected::BadSignature`].
    pub fn check(&self, committee: &Committee) -> Result<(), Rejected> {
        let statement = self.header.statement(committee.scope());
        let what = ("an execution certificate", Mutant::ExecutedByFew);
        check_certificate(committee, Purpose::Execute, &statement, &self.certificate, what)
    }
}

/// Checks a certificate as a whole: weight, then signature (★). `what` names it, with the mutant
/// that leaves the weight out.
pub(crate) fn check_certificate(
    committee: &Committee,
    purpose: Purpose,
    statement: &[u8],
    certificate: &Certificate,
    what: (&'static str, Mutant),
) -> Result<(), Rejected> {
    if !committee.is_enough(purpose, certificate) && !mutants::active(what.1) {
        return Err(Rejected::BelowThreshold);
    }
    let (scheme, _) = committee.scheme(purpose);
    scheme.verify(statement, certificate).map_err(|_| Rejected::BadSignature(what.0))
}

/// The bytes that a member signs once its state at `height` may replace all before it.
#[must_use]
pub fn checkpoint_statement(scope: Scope, height: Height, root: Digest) -> Vec<u8> {
    sign::statement(Kind::Checkpoint, scope, &(height, root))
}

/// A quorum has executed everything up to a height and keeps its state: who needs what was before
/// it fetches that state (paper 002, §V-F).
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CheckpointCertificate {
    /// Height whose state it is.
    pub height: Height,
    /// [`Header::root`] at that height.
    pub root: Digest,
    /// Signatures over [`checkpoint_statement`], by members of [`Purpose::Checkpoint`]'s weight.
    pub certificate: Certificate,
}

impl CheckpointCertificate {
    /// Checks it as a whole: weight, then signature (★).
    ///
    /// # Errors
    /// [`Rejected::BelowThreshold`] and [`Rejected::BadSignature`].
    pub fn check(&self, committee: &Committee) -> Result<(), Rejected> {
        let statement = checkpoint_statement(committee.scope(), self.height, self.root);
        let what = ("a checkpoint's certificate", Mutant::CheckpointByFew);
        check_certificate(committee, Purpose::Checkpoint, &statement, &self.certificate, what)
    }
}

/// The one answer that a client needs: what its request came to, with the way from there to a
/// certified root.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CertifiedReply {
    /// The request, and what it came to.
    pub completion: Completion,
    /// One result per operation.
    pub results: Results,
    /// Path from the request's leaf to [`Header::requests`].
    pub path: Path,
    /// Certificate of the height where it took effect.
    pub executed: ExecutionCertificate,
}

impl CertifiedReply {
    /// Returns `true` if it is of this request (★): a client signs what it asks for, and takes no
    /// other's results for its own.
    #[must_use]
    pub fn answers(&self, request: &Request) -> bool {
        let Completion { client, sequence, request: digest, .. } = self.completion;
        let is_same =
            (client, sequence, digest) == (request.client, request.sequence, request.digest());
        let is_whole = self.results.len() == request.operations.len();
        is_whole && (is_same || mutants::active(Mutant::OthersReply))
    }

    /// Checks everything but the certificate, which many acknowledgements share (★).
    ///
    /// # Errors
    /// [`Rejected::RuleBroken`] when results, path or place do not fit.
    pub fn check_path(&self) -> Result<(), Rejected> {
        let Self { completion, results, path, executed: ExecutionCertificate { header, .. } } =
            self;
        if results.digest() != completion.results {
            return Err(Rejected::RuleBroken("a certified reply's results are those it names"));
        }
        let leaf = completion.leaf(header.height, path.index);
        let leads = path.leads(&leaf, &header.requests) || mutants::active(Mutant::AnyPath);
        leads
            .then_some(())
            .ok_or(Rejected::RuleBroken("a certified reply's path leads to its root"))
    }
}

/// A request that took effect, as the tree of its height holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Completion {
    /// Client that signed the request.
    pub client: ClientId,
    /// Sequence number that the client gave the request.
    pub sequence: u64,
    /// [`Request::digest`](crate::Request::digest): everything in it but the signature.
    pub request: Digest,
    /// Hash of what it came to: [`Results::digest`].
    pub results: Digest,
}

impl Completion {
    /// The leaf of this request at a place of its height.
    #[must_use]
    pub fn leaf(&self, height: Height, index: u32) -> Digest {
        let content =
            borsh::to_vec(&(height, index, self)).expect("encoding into memory cannot fail");
        hash(&content)
    }
}
