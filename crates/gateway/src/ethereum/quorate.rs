//! Methods of the committee's own: certificates of blocks, proofs, and receipts that stand alone.

use super::arguments::{Arguments, Slot};
use super::beside::{Beside, Description};
use super::context::Context;
use super::error::{Failure, internal, invalid, server};
use crate::receipt::ReceiptFile;
use alloy_eips::BlockId;
use alloy_primitives::{B256, Bytes, U64, U256};
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use quorate_crypto::Digest;
use quorate_crypto::mutants::{self, Mutant};
use quorate_ledger::evm::{BlockAt, PROVEN_BLOCKS_MAX, ProofOf, verify_account};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::service::Proven;
use quorate_types::{Header, Height, History, ReplicaId};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::spawn_blocking;

pub(super) fn register(module: &mut RpcModule<Context>) -> Result<(), RegisterMethodError> {
    module.register_method("quorate_committee", |_, context, _| describe(context))?;
    module.register_blocking_method("quorate_getCertificate", |params, context, _| {
        certificate(&context, Arguments::of(&params).next()?)
    })?;
    module.register_blocking_method("quorate_getReceipt", |params, context, _| {
        receipt(&context, Arguments::of(&params).next()?)
    })?;
    module.register_async_method("eth_getProof", |params, context, _| async move {
        let mut arguments = Arguments::of(&params);
        let (address, slots) = (arguments.next()?, arguments.next::<Vec<Slot>>()?);
        let slots = slots.into_iter().map(|Slot(slot)| slot).collect();
        let of = ProofOf { address, slots, height: None };
        prove(&context, of, arguments.optional()?).await
    })?;
    Ok(())
}

fn hex_of(digest: &Digest) -> B256 {
    B256::from(digest.0)
}

fn describe(context: &Context) -> Value {
    let Description { protocol, validator, dashboard } = context.chain.beside.description();
    let history = context.connection.history();
    let committee = history.committee();
    let member = |id: ReplicaId| {
        json!({
            "index": U64::from(id.index()),
            "identity": committee.identity(id).map(|key| format!("0x{key}")),
            "address": committee.address(id),
            "weight": U64::from(committee.weight(id)),
        })
    };
    json!({
        "network": Bytes::copy_from_slice(&committee.network().0),
        "epoch": U64::from(committee.epoch().0),
        "protocol": protocol,
        "scheme": committee.scheme_kind().to_string(),
        "quorum": U64::from(committee.quorum()),
        "weight": U64::from(committee.weights().total()),
        "validator": U64::from(validator.index()),
        "dashboard": dashboard,
        "members": committee.members().map(member).collect::<Vec<_>>(),
    })
}

/// Certificate of a block, with its signers where it proves them (an empty list and no weight
/// otherwise); null where this validator has none, or has pruned it.
fn certificate(context: &Context, height: U64) -> Result<Value, Failure> {
    let height = context.executed(height)?;
    let Some(certificate) = context.chain.beside.read(|reading| reading.certificate(height))?
    else {
        return Ok(Value::Null);
    };
    let found = context.chain.block(BlockAt::Height(height.0), false)?;
    let mut shown = show(&certificate, &context.connection.history());
    shown["blockHash"] = json!(found.map(|found| found.block.hash));
    Ok(shown)
}

fn show(of: &ExecutionCertificate, history: &History) -> Value {
    let ExecutionCertificate { header, certificate } = of;
    let committee = history.owner_of(header.height);
    let is_proven = committee.scheme_kind().proves_signers();
    let signed = |id: &ReplicaId| is_proven && certificate.signers.contains(id.index());
    let signers: Vec<ReplicaId> = committee.members().filter(signed).collect();
    let weight: u64 = signers.iter().map(|id| committee.weight(*id)).sum();
    let bytes = borsh::to_vec(of).expect("encoding into memory cannot fail");
    let signers: Vec<U64> = signers.into_iter().map(|id| U64::from(id.index())).collect();
    json!({
        "height": U64::from(header.height.0),
        "proposedAtMs": U64::from(header.proposed_at_ms),
        "root": hex_of(&header.root()),
        "state": hex_of(&header.state),
        "sessions": hex_of(&header.sessions),
        "requests": hex_of(&header.requests),
        "signers": signers,
        "weight": is_proven.then(|| U64::from(weight)),
        "certificate": Bytes::from(bytes),
    })
}

/// Receipt of a transaction, which proves its result to anybody who has the committee's file: the
/// file of `quorate receipt`, and the transaction's index among its operations.
fn receipt(context: &Context, hash: B256) -> Result<Value, Failure> {
    let Some((receipt, operation)) = context.pool.receipt(&hash) else { return Ok(Value::Null) };
    let file = ReceiptFile::new(&receipt, &context.connection.history()).map_err(internal)?;
    Ok(json!({ "operation": U64::from(operation), "receipt": file }))
}

/// An account and slots after a block, the newest one unless another is named, with proofs in the
/// map's own form and what certifies its root.
async fn prove(
    context: &Arc<Context>,
    newest: ProofOf,
    at: Option<BlockId>,
) -> Result<Value, Failure> {
    newest.check().map_err(invalid)?;
    let height = named(context, at).await?;
    if let Some(height) = height {
        check_provable(context, height)?;
    }
    let of = ProofOf { height, ..newest };
    let answer = context.connection.query(of.encode().into()).await;
    let (proven, certificate) = answer.map_err(server)?;
    let certificate = match of.height {
        Some(height) if height != certificate.header.height.0 => {
            certificate_of(&context.chain.beside, height).map_err(server)?
        }
        _ => certificate,
    };
    let shown = verify_account(certificate.header.state, &of, &proven).map_err(server)?;
    let account = shown.account.unwrap_or_default();
    let slot = |(slot, (value, proof)): (&U256, &(U256, bytes::Bytes))| {
        let proof = [Bytes::from(proof.clone())];
        json!({ "key": slot, "value": value, "proof": proof })
    };
    Ok(json!({
        "address": of.address,
        "balance": account.balance,
        "nonce": U64::from(account.nonce),
        "codeHash": account.code_hash,
        "storageHash": B256::ZERO,
        "accountProof": [Bytes::from(shown.proof)],
        "storageProof": of.slots.iter().zip(&shown.slots).map(slot).collect::<Vec<_>>(),
        "blockHash": shown.block,
        "stateRoot": hex_of(&shown.map),
        "certificate": show(&certificate, &context.connection.history()),
    }))
}

/// The height that a block's name means; `None` for the newest.
async fn named(context: &Arc<Context>, at: Option<BlockId>) -> Result<Option<u64>, Failure> {
    let state = if matches!(at, Some(BlockId::Hash(_))) {
        // A hash is looked up in the state.
        let chain = context.chain.clone();
        spawn_blocking(move || chain.state(at)).await.map_err(internal)??
    } else {
        context.chain.state(at)?
    };
    Ok(state.map(|Height(height)| height))
}

/// Checks that there can be a proof of a block, so that no member makes one in vain. The newest
/// block's certificate may yet come along with it.
fn check_provable(context: &Context, height: u64) -> Result<(), Failure> {
    context.executed(U64::from(height))?;
    let newest = context.chain.newest();
    if newest.saturating_sub(height) > PROVEN_BLOCKS_MAX {
        let text = format!("proofs are of the last {PROVEN_BLOCKS_MAX} blocks: {height} is older");
        return Err(server(text));
    }
    if height < newest {
        certificate_of(&context.chain.beside, height).map_err(server)?;
    }
    Ok(())
}

/// The certificate of a height, which this validator learnt.
fn certificate_of(beside: &Beside, height: u64) -> Result<ExecutionCertificate, String> {
    let found = beside.read(|reading| reading.certificate(Height(height)));
    let found = found.map_err(|failure| failure.message().to_owned())?;
    found.ok_or_else(|| format!("this validator has no certificate of block {height}"))
}

/// The check of an answer to a [`ProofOf`], by the certificates that a validator has.
pub(super) fn proof_check(
    beside: Arc<Beside>,
) -> impl Fn(&[u8], &Header, &Proven) -> Result<(), String> + Send + Sync {
    move |question, header, proven| {
        let of_height = |height| certificate_of(&beside, height).map(|found| found.header);
        check_proof(question, header, proven, of_height)
    }
}

/// Checks an answer under the header of the block that was asked for (★): the one that came with
/// the answer, or that of a height that is named.
fn check_proof(
    question: &[u8],
    header: &Header,
    proven: &Proven,
    of_height: impl Fn(u64) -> Result<Header, String>,
) -> Result<(), String> {
    let of = ProofOf::decode(question)?;
    let named = of.height.filter(|height| *height != header.height.0);
    let state = match named.filter(|_| !mutants::active(Mutant::EvmProofOfAnyBlock)) {
        Some(height) => of_height(height)?.state,
        None => header.state,
    };
    verify_account(state, &of, proven).map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
