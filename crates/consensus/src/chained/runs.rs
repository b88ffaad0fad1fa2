//! Runs of decided blocks: what one replica fetches from another, checked before a machine sees it.

use super::check::{check_block_form, check_certificate_size, check_qc, check_tc_form};
use super::messages::{Block, Qc, encode};
use super::records::DecidedBlock;
use super::rules::Rules;
use crate::Verifier;
use crate::block_tree::TreeBlock;
use bytes::Bytes;
use quorate_crypto::mutants::{self, Mutant};
use quorate_types::{BlockId, Height, Payload, Rejected};

/// Blocks that follow a known one, link by link.
#[derive(Clone, Debug)]
pub struct Run {
    /// Decided blocks, oldest first.
    pub decided: Vec<Block>,
    /// Certificate that decided the last of them.
    pub proof: Option<Qc>,
    /// Undecided blocks after them, oldest first, the last one the target; or the void ones after a
    /// stop block, the last one what `proof` decides.
    pub tail: Vec<Block>,
    /// The first of `decided` is another block at a height that the asker has decided: more than f
    /// members are faulty.
    pub conflicts: bool,
}

/// Checks blocks that answer a request by a replica that decided `after` at `height`. The links are
/// hashes: a block's id is in its child's `justify`, so proving the last proves all.
///
/// # Errors
/// The first link, hash or certificate that is wrong.
pub fn verify_run(
    height: Height,
    after: Option<BlockId>,
    target: BlockId,
    decided: &[Bytes],
    tail: &[Bytes],
    verifier: &Verifier,
) -> Result<Run, Rejected> {
    let records = decode_all::<DecidedBlock>(decided)?;
    let mut tail = decode_all::<Block>(tail)?;
    check_nothing_follows_the_stop(&records, &tail)?;
    let first = records.first().map(|record| &record.block);
    if after.is_none() && !tail.is_empty() {
        return Err(Rejected::RuleBroken("a run from an unknown block has no tail"));
    }
    let conflicts = first.is_some_and(|block| {
        block.payload.header.height == height
            && height > verifier.anchor().height
            && after.is_some_and(|after| block.id() != after)
    });
    let known = after.filter(|_| !conflicts);
    let mut last = known.or_else(|| first.map(TreeBlock::parent)).unwrap_or(target);
    for block in records.iter().map(|record| &record.block).chain(&tail) {
        check_block_form(block, verifier)?;
        check_inner_sizes(block, verifier)?;
        if block.parent() != last {
            return Err(Rejected::RuleBroken("each block of a run extends the one before"));
        }
        last = block.id();
    }
    if !tail.is_empty() && last != target {
        return Err(Rejected::RuleBroken("a run's tail ends in the block that was asked for"));
    }
    let proof = records.last().map(|record| check_commit(record, verifier)).transpose()?;
    if let Some(stop) = records.last().filter(|record| record.block.payload.ends_epoch()) {
        tail.clone_from(&stop.void);
    }
    let decided = records.into_iter().map(|record| record.block).collect();
    Ok(Run { decided, proof, tail, conflicts })
}

/// ★ The stop block is the epoch's last.
fn check_nothing_follows_the_stop(
    records: &[DecidedBlock],
    tail: &[Block],
) -> Result<(), Rejected> {
    let ends = |record: &DecidedBlock| record.block.payload.ends_epoch();
    let stop = records.iter().position(ends);
    let is_last = stop.is_none_or(|stop| stop + 1 == records.len() && tail.is_empty());
    let has_void = |record: &DecidedBlock| !record.void.is_empty() && !ends(record);
    if records.iter().any(has_void) {
        return Err(Rejected::RuleBroken("nothing is void before a stop block"));
    }
    if is_last || mutants::active(Mutant::FollowTheStop) {
        return Ok(());
    }
    Err(Rejected::RuleBroken("nothing follows a stop block in its epoch"))
}

fn check_commit(record: &DecidedBlock, verifier: &Verifier) -> Result<Qc, Rejected> {
    if !is_direct(record, verifier.rules()) && !mutants::active(Mutant::AnchorUndecided) {
        return Err(Rejected::RuleBroken("a run's last decided block is committed by its proof"));
    }
    for block in &record.void {
        check_block_form(block, verifier)?;
        check_inner_sizes(block, verifier)?;
    }
    check_qc(record.commit.clone(), verifier)
}

/// Returns `true` if the record's certificate decides its own block, not a descendant that is not
/// in it.
fn is_direct(record: &DecidedBlock, rules: &Rules) -> bool {
    record.commit.is_commit(rules) && record.tip() == Some(record.commit.base_id)
}

fn decode_all<T: borsh::BorshDeserialize>(encoded: &[Bytes]) -> Result<Vec<T>, Rejected> {
    encoded
        .iter()
        .map(|bytes| borsh::from_slice(bytes).map_err(|e| Rejected::Malformed(e.to_string())))
        .collect()
}

/// Checks that these records, from the one of `height` on, are decided; the first of them with the
/// certificate that proves it.
///
/// # Errors
/// The first link, hash or certificate that is wrong.
pub fn check_anchor(
    height: Height,
    records: &[Bytes],
    verifier: &Verifier,
) -> Result<Bytes, Rejected> {
    let before = Height(height.0.saturating_sub(1));
    let run = verify_run(before, None, verifier.genesis(), records, &[], verifier)?;
    let (Some(block), Some(commit)) = (run.decided.into_iter().next(), run.proof) else {
        return Err(Rejected::RuleBroken("a snapshot comes with the block that it is of"));
    };
    if block.payload.header.height != height {
        return Err(Rejected::RuleBroken("a snapshot's block is of its height"));
    }
    let void = if block.payload.ends_epoch() { run.tail } else { Vec::new() };
    Ok(Bytes::from(encode(&DecidedBlock { block, commit, void })))
}

/// Checks that this is a certificate of this block: then its links prove all blocks before it.
///
/// # Errors
/// When it is of another block, or no good certificate.
pub fn check_certified(
    block: BlockId,
    certificate: &Bytes,
    verifier: &Verifier,
) -> Result<(), Rejected> {
    if mutants::active(Mutant::PlantUncertified) {
        return Ok(());
    }
    let qc: Qc = borsh::from_slice(certificate).map_err(|e| Rejected::Malformed(e.to_string()))?;
    let qc = check_qc(qc, verifier)?;
    let is_it = qc.id == block;
    is_it.then_some(()).ok_or(Rejected::RuleBroken("a chain leads to a certified block"))
}

/// Payload that a decided record orders; `None` for bytes that are none.
#[must_use]
pub fn record_payload(record: &Bytes) -> Option<Payload> {
    borsh::from_slice::<DecidedBlock>(record).ok().map(|record| record.block.payload)
}

/// The id of the block in a decided record.
#[must_use]
pub fn record_id(record: &Bytes) -> Option<BlockId> {
    borsh::from_slice::<DecidedBlock>(record).ok().map(|record| record.block.id())
}

/// Number of these records, oldest first, that can be served together: up to the last whose own
/// proof commits it directly.
#[must_use]
pub fn servable(records: &[Bytes], rules: &Rules) -> usize {
    let proves_itself = |bytes: &Bytes| {
        borsh::from_slice(bytes).is_ok_and(|record: DecidedBlock| is_direct(&record, rules))
    };
    records.iter().rposition(proves_itself).map_or(0, |last| last + 1)
}

/// Certificates inside fetched blocks are proven by the links to the last one; their own bytes are
/// not, so they must at least not be padded with anything.
fn check_inner_sizes(block: &Block, verifier: &Verifier) -> Result<(), Rejected> {
    check_certificate_size(&block.justify.certificate, verifier)?;
    if let Some(tc) = &block.tc {
        check_certificate_size(&tc.high_qc.certificate, verifier)?;
        check_tc_form(tc, verifier)?;
    }
    Ok(())
}
