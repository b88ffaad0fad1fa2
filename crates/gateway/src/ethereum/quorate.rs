//! Methods of the committee's own: certificates of blocks, proofs, and receipts that stand alone.

use super::arguments::{Arguments, Slot};
use super::beside::Description;
use super::context::Context;
use super::error::{Failure, internal, invalid, server};
use crate::receipt::ReceiptFile;
use alloy_eips::{BlockId, BlockNumberOrTag};
use alloy_primitives::{B256, Bytes, U64, U256};
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use quorate_crypto::Digest;
use quorate_ledger::evm::{BlockAt, ProofOf, verify_account};
use quorate_types::executed::ExecutionCertificate;
use quorate_types::{History, ReplicaId};
use serde_json::{Value, json};
use std::sync::Arc;

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
        let of = ProofOf { address, slots: slots.into_iter().map(|Slot(slot)| slot).collect() };
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

/// An account and slots of the newest state, with proofs in the map's own form and what certifies
/// its root. A block that is named must be the newest one.
async fn prove(context: &Arc<Context>, of: ProofOf, at: Option<BlockId>) -> Result<Value, Failure> {
    let is_newest = |newest: u64, hash: Option<B256>| match at {
        None => true,
        Some(BlockId::Number(BlockNumberOrTag::Number(number))) => number == newest,
        Some(BlockId::Number(tag)) => !tag.is_earliest(),
        Some(BlockId::Hash(named)) => hash.is_none_or(|hash| named.block_hash == hash),
    };
    let other = || server("proofs are of the newest state: ask at 'latest'");
    of.check().map_err(invalid)?;
    // What is asked of an older height is not proven in vain.
    if !is_newest(context.chain.newest(), None) {
        return Err(other());
    }
    let answer = context.connection.query(of.encode().into()).await;
    let (proven, certificate) = answer.map_err(server)?;
    let shown = verify_account(certificate.header.state, &of, &proven).map_err(server)?;
    if !is_newest(certificate.header.height.0, Some(shown.block)) {
        return Err(other());
    }
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

/// The check of an answer to a [`ProofOf`].
pub(super) fn check_proof(
    question: &[u8],
    header: &quorate_types::Header,
    proven: &quorate_types::service::Proven,
) -> Result<(), String> {
    let of = ProofOf::decode(question)?;
    verify_account(header.state, &of, proven).map(drop).map_err(|error| error.to_string())
}
