//! Blocks that a quorum decided, as members have them in their logs.

use super::{committee, verifier, voting};
use bytes::Bytes;
use quorate_consensus::block_tree::TreeBlock;
use quorate_consensus::chained::{Block, DecidedBlock, Qc};
use quorate_consensus::leader::LeaderReputation;
use quorate_crypto::{Aggregate, Bitmap, Certificate, Policy, hash};
use quorate_types::{BlockId, BodyRef, Height, Kind, Payload, Purpose, ReplicaId, View, sign};

/// Blocks of consecutive heights, each certified in its own view. What a block shows of its parent
/// is named, and signed by nobody: fetched blocks are proven by their links.
pub(crate) struct History {
    first: u64,
    blocks: Vec<Block>,
}

impl History {
    /// Heights from the first on, each in the view of its number, with these bodies.
    pub(crate) fn new(
        heights: std::ops::RangeInclusive<u64>,
        bodies: impl Fn(u64) -> Vec<BodyRef>,
    ) -> Self {
        Self::with_views(heights, |height| height, bodies)
    }

    /// The same in other views. Where they leave gaps nothing is decided.
    pub(crate) fn with_views(
        heights: std::ops::RangeInclusive<u64>,
        view: impl Fn(u64) -> u64,
        bodies: impl Fn(u64) -> Vec<BodyRef>,
    ) -> Self {
        let (first, last) = heights.into_inner();
        let mut justify = match first {
            1 => Qc::genesis(verifier().consensus().genesis(), 4),
            _ => unsigned(View(view(first - 1)), BlockId(hash(b"before")), View(0)),
        };
        let mut blocks = Vec::new();
        // One more, whose certificate decides the last.
        for height in first..=last + 1 {
            let block = Block {
                epoch: committee().epoch_id(),
                view: View(view(height)),
                author: ReplicaId(0),
                justify,
                tc: None,
                reputation: LeaderReputation::new(),
                payload: Payload::new(Height(height), 0, bodies(height)),
            };
            justify = unsigned(block.view, block.id(), block.justify.view);
            blocks.push(block);
        }
        Self { first, blocks }
    }

    /// No bodies at all.
    pub(crate) fn empty(heights: std::ops::RangeInclusive<u64>) -> Self {
        Self::new(heights, |_| Vec::new())
    }

    pub(crate) fn block(&self, height: u64) -> &Block {
        &self.blocks[usize::try_from(height - self.first).expect("few")]
    }

    pub(crate) fn id(&self, height: u64) -> BlockId {
        if height == 0 { verifier().consensus().genesis() } else { self.block(height).id() }
    }

    /// The block's certificate, by three of four members. It decides the parent if that is of the
    /// view before.
    pub(crate) fn certificate(&self, height: u64) -> Qc {
        let block = self.block(height);
        let (view, id) = (block.view, block.id());
        let (base_view, base_id) = (block.justify.view, block.justify.id);
        let said = ((view, id), (base_view, base_id));
        let scope = committee().scope();
        let statement = sign::statement(Kind::JolteonVote, scope, &said);
        let shares: Vec<_> =
            (0..3u8).map(|one| (usize::from(one), voting(one).sign(&statement))).collect();
        let (scheme, _) = committee().scheme(Purpose::Vote);
        let combined = scheme.combine(&statement, &shares, &Bitmap::new(4), Policy::Each);
        let certificate = combined.certificate.expect("good shares");
        Qc { view, id, base_view, base_id, certificate }
    }

    /// The height's decided record, which proves itself.
    pub(crate) fn record(&self, height: u64) -> Bytes {
        self.record_by(height, height)
    }

    /// The height's decided record with the certificate that decided a later one.
    pub(crate) fn record_by(&self, height: u64, proven: u64) -> Bytes {
        let commit = self.certificate(proven + 1);
        encode(&DecidedBlock::new(self.block(height).clone(), commit))
    }

    /// These heights' records, all decided by the certificate of the last.
    pub(crate) fn records(&self, heights: std::ops::RangeInclusive<u64>) -> Vec<Bytes> {
        let commit = self.certificate(heights.end() + 1);
        let record =
            |height| encode(&DecidedBlock::new(self.block(height).clone(), commit.clone()));
        heights.map(record).collect()
    }

    /// The height's block, undecided.
    pub(crate) fn undecided(&self, height: u64) -> Bytes {
        encode(self.block(height))
    }
}

fn encode(value: &impl borsh::BorshSerialize) -> Bytes {
    Bytes::from(borsh::to_vec(value).expect("encoding into memory cannot fail"))
}

fn unsigned(view: View, id: BlockId, base_view: View) -> Qc {
    let certificate = Certificate { signers: Bitmap::new(4), aggregate: Aggregate(Vec::new()) };
    Qc { view, id, base_view, base_id: BlockId(hash(b"nobody looks at it")), certificate }
}
