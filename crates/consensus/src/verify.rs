//! Checks that need no state, done before a machine sees a message: on a pool in a node, in line in
//! the simulator.
//!
//! For a vote, *verified* means that its sender is its signer; its share is checked when it is
//! combined. For a certificate it means everything: signers, weight, signature. Each certificate is
//! checked once: the [`Verifier`] remembers it by its identity (kind, view, ids), never by its
//! signature bytes, and hands on the copy that was checked.

use crate::{Family, Message, Verifier, chained, windowed};
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, Peer, Rejected, Verify};

/// Blocks that a replica missed, linked by hashes to a certified one.
#[derive(Clone, Debug)]
pub enum VerifiedRun {
    /// Blocks of a chained protocol.
    Chained(chained::Run),
    /// Slots of a windowed protocol.
    Windowed(windowed::Run),
}

impl Verify for Message {
    type Raw = Self;
    type Verifier = Verifier;

    fn verify(raw: Self, from: Peer, verifier: &Verifier) -> Result<Self, Rejected> {
        let from = from.replica()?;
        if raw.protocol() != verifier.protocol() && !mutants::active(Mutant::AnyProtocol) {
            let frame = raw.kind().name().to_owned();
            return Err(Rejected::RuledOut { frame, setting: "protocol" });
        }
        let protocol = verifier.protocol();
        if let Some(said) = raw.windowed() {
            return windowed::verify(said, from, verifier).map(|()| raw);
        }
        let said = raw.into_chained().expect("of one family or the other");
        chained::verify(said, from, verifier).map(|said| protocol.message(said))
    }
}

impl VerifiedRun {
    /// Returns `true` if it brings no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Chained(run) => run.decided.is_empty() && run.tail.is_empty(),
            Self::Windowed(run) => run.decided.is_empty(),
        }
    }

    /// The first and the last height of its decided blocks.
    #[must_use]
    pub fn heights(&self) -> Option<(Height, Height)> {
        match self {
            Self::Chained(run) => {
                let height = |block: &chained::Block| block.payload.header.height;
                Some((height(run.decided.first()?), height(run.decided.last()?)))
            }
            Self::Windowed(run) => {
                let height = |slot: &windowed::DecidedSlot| slot.payload.header.height;
                Some((height(run.decided.first()?), height(run.decided.last()?)))
            }
        }
    }

    /// Decodes and checks blocks that answer a request by a replica that decided `after` at
    /// `height`: `decided` records follow it link by link, the last of them proven by its own
    /// certificate; `tail` goes on from there to `target`. Without `after` the run begins at
    /// whatever its proof leads down to, and has no tail. A proven record *at* `height` that is
    /// another block is taken as what it is: evidence that more than f members are faulty.
    ///
    /// # Errors
    /// The first link, hash or certificate that is wrong.
    pub fn check(
        height: Height,
        after: Option<BlockId>,
        target: BlockId,
        decided: &[Bytes],
        tail: &[Bytes],
        verifier: &Verifier,
    ) -> Result<Self, Rejected> {
        match verifier.protocol().family() {
            Family::Chained(_) => {
                chained::verify_run(height, after, target, decided, tail, verifier)
                    .map(Self::Chained)
            }
            Family::Windowed(_) if !tail.is_empty() => {
                Err(Rejected::RuleBroken("what is not decided is not served"))
            }
            Family::Windowed(_) => {
                windowed::verify_run(height, after, decided, verifier).map(Self::Windowed)
            }
        }
    }
}

/// Checks the decided records from `height` on, link by link, up to one that its own certificate
/// commits (★: a state is taken over only at a height that a quorum decided). Returns the record of
/// `height` with the certificate that was checked in the place of its own.
///
/// # Errors
/// The first link, hash or certificate that is wrong.
pub fn check_anchor(
    height: Height,
    records: &[Bytes],
    verifier: &Verifier,
) -> Result<Bytes, Rejected> {
    match verifier.protocol().family() {
        Family::Chained(_) => chained::check_anchor(height, records, verifier),
        Family::Windowed(_) => windowed::check_anchor(height, records, verifier),
    }
}

/// Checks that `certificate`, as [`ProtocolView::rests_on`](crate::ProtocolView::rests_on) encodes
/// it, is one of this block (★: blocks that nobody asked for are taken in only below a certified
/// one).
///
/// # Errors
/// When it is of another block, or no good certificate.
pub fn check_certified(
    block: BlockId,
    certificate: &Bytes,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    match verifier.protocol().family() {
        Family::Chained(_) => chained::check_certified(block, certificate, verifier),
        Family::Windowed(_) => Err(Rejected::RuleBroken("messages rest on no blocks here")),
    }
}
