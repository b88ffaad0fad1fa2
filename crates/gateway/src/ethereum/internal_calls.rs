//! What a transaction did inside: calls of contracts, in Otterscan's terms, by running it again.

use super::context::Context;
use super::error::{Failure, internal};
use super::module::{Module, Registered, computing};
use super::traces;
use alloy_primitives::{Address, B256, Bytes};
use alloy_rpc_types_trace::otterscan::{
    ContractCreator, InternalOperation, OperationType, TraceEntry,
};
use alloy_rpc_types_trace::parity::{
    Action, CallType, CreateAction, CreationMethod, TraceOutput, TransactionTrace,
};
use quorate_ledger::evm::{FoundTransaction, IndexQuery, Query};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn register(module: &mut Module) -> Registered {
    computing(module, "ots_traceTransaction", |context, mut arguments| {
        let Some(traces) = flat(context, arguments.next()?)? else { return Ok(None) };
        Ok(Some(traces.iter().filter_map(entry).collect::<Vec<_>>()))
    })?;
    computing(module, "ots_getInternalOperations", |context, mut arguments| {
        Ok(flat(context, arguments.next()?)?.map(|traces| operations(&traces)))
    })?;
    computing(module, "ots_getTransactionError", |context, mut arguments| {
        error(context, arguments.next()?)
    })?;
    computing(module, "ots_getContractCreator", |context, mut arguments| {
        creator(context, arguments.next()?)
    })
}

/// The calls of a transaction, each with where it is in their tree; `None` where the transaction is
/// not known.
fn flat(context: &Context, hash: B256) -> Result<Option<Vec<TransactionTrace>>, Failure> {
    if context.chain.transaction(hash)?.is_none() {
        return Ok(None);
    }
    let trace = traces::of_transaction(context, hash, traces::flat())?;
    serde_json::from_str(trace.get()).map(Some).map_err(internal)
}

/// A call in the list that a tree of them is made of.
fn entry(trace: &TransactionTrace) -> Option<TraceEntry> {
    let depth = u32::try_from(trace.trace_address.len()).expect("depth is bounded");
    let output = trace.result.as_ref().map(|result| result.output().clone()).unwrap_or_default();
    let (kind, from, to, value, input) = match &trace.action {
        Action::Call(call) => {
            let kind = call.call_type.to_string().to_uppercase();
            // These carry no value of their own.
            let carries = matches!(call.call_type, CallType::Call | CallType::CallCode);
            let value = carries.then_some(call.value);
            (kind, call.from, call.to, value, call.input.clone())
        }
        Action::Create(create) => {
            let to = created(trace).unwrap_or_default();
            let kind = if is_create2(create) { "CREATE2" } else { "CREATE" };
            (kind.into(), create.from, to, Some(create.value), create.init.clone())
        }
        Action::Selfdestruct(end) => {
            let kind = "SELFDESTRUCT".into();
            (kind, end.address, end.refund_address, Some(end.balance), Bytes::new())
        }
        Action::Reward(_) => return None,
    };
    Some(TraceEntry { r#type: kind, depth, from, to, value, input, output })
}

fn created(trace: &TransactionTrace) -> Option<Address> {
    match &trace.result {
        Some(TraceOutput::Create(output)) => Some(output.address),
        _ => None,
    }
}

fn is_create2(create: &CreateAction) -> bool {
    create.creation_method == CreationMethod::Create2
}

/// Ether that contracts sent, contracts that they created, and that destroyed themselves: without
/// what was taken back.
fn operations(traces: &[TransactionTrace]) -> Vec<InternalOperation> {
    let failed = traces.iter().filter(|trace| trace.error.is_some());
    let failed: BTreeSet<&[usize]> = failed.map(|trace| &trace.trace_address[..]).collect();
    let is_taken_back = |trace: &TransactionTrace| {
        (0..=trace.trace_address.len()).any(|depth| failed.contains(&trace.trace_address[..depth]))
    };
    let inner = traces.iter().filter(|trace| !trace.trace_address.is_empty());
    inner.filter(|trace| !is_taken_back(trace)).filter_map(operation).collect()
}

fn operation(trace: &TransactionTrace) -> Option<InternalOperation> {
    let (r#type, from, to, value) = match &trace.action {
        Action::Call(call) if call.call_type == CallType::Call && !call.value.is_zero() => {
            (OperationType::OpTransfer, call.from, call.to, call.value)
        }
        Action::Create(create) => {
            let kind =
                if is_create2(create) { OperationType::OpCreate2 } else { OperationType::OpCreate };
            (kind, create.from, created(trace)?, create.value)
        }
        Action::Selfdestruct(end) => {
            (OperationType::OpSelfDestruct, end.address, end.refund_address, end.balance)
        }
        Action::Call(_) | Action::Reward(_) => return None,
    };
    Some(InternalOperation { r#type, from, to, value })
}

/// The outermost call of a transaction.
#[derive(Deserialize)]
struct Outermost {
    #[serde(default)]
    output: Bytes,
    error: Option<String>,
}

/// What a failed transaction returned; nothing for one that succeeded.
fn error(context: &Context, hash: B256) -> Result<Option<Bytes>, Failure> {
    let Some(found) = context.chain.transaction(hash)? else { return Ok(None) };
    if found.transaction.success {
        return Ok(Some(Bytes::new()));
    }
    let options = json!({ "tracer": "callTracer", "tracerConfig": { "onlyTopCall": true } });
    let trace = traces::of_transaction(context, hash, traces::geth(&options))?;
    let outermost: Outermost = serde_json::from_str(trace.get()).map_err(internal)?;
    Ok(Some(outermost.error.map_or_else(Bytes::new, |_| outermost.output)))
}

/// Who created a contract, and in which transaction.
fn creator(context: &Context, contract: Address) -> Result<Option<ContractCreator>, Failure> {
    let query = Query::Index(IndexQuery::Creation(contract));
    let Some(found) = context.chain.query::<Option<FoundTransaction>>(&query)? else {
        return Ok(None);
    };
    let hash = found.transaction.hash;
    if found.transaction.created == Some(contract) {
        return Ok(Some(ContractCreator { hash, creator: found.transaction.sender }));
    }
    let traces = flat(context, hash)?.unwrap_or_default();
    let by = traces.iter().find_map(|trace| match &trace.action {
        Action::Create(create) if created(trace) == Some(contract) => Some(create.from),
        _ => None,
    });
    Ok(by.map(|creator| ContractCreator { hash, creator }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::U256;

    /// Calls as `flatCallTracer` has them: the second inner one failed, with all that it did.
    fn traces() -> Vec<TransactionTrace> {
        let at = |byte: u8| Address::repeat_byte(byte);
        let call = |kind: &str, value: u64, place: &[usize]| {
            json!({
                "type": "call",
                "action": {
                    "callType": kind, "from": at(1), "to": at(2), "value": U256::from(value),
                    "gas": "0x0", "input": "0xabcdef01",
                },
                "result": { "gasUsed": "0x0", "output": "0x05" },
                "subtraces": 0,
                "traceAddress": place,
            })
        };
        let mut failed = call("call", 7, &[1]);
        (failed["result"], failed["error"]) = (json!(null), json!("Reverted"));
        let create = json!({
            "type": "create",
            "action": {
                "from": at(2), "value": "0x0", "gas": "0x0", "init": "0x60",
                "creationMethod": "create2",
            },
            "result": { "gasUsed": "0x0", "address": at(3), "code": "0x01" },
            "subtraces": 0,
            "traceAddress": [2],
        });
        let end = json!({
            "type": "suicide",
            "action": { "address": at(3), "balance": "0x9", "refundAddress": at(4) },
            "result": null,
            "subtraces": 0,
            "traceAddress": [3],
        });
        let all = [
            call("call", 5, &[]),
            call("call", 6, &[0]),
            call("delegatecall", 6, &[0, 0]),
            call("call", 0, &[0, 1]),
            failed,
            call("call", 8, &[1, 0]),
            create,
            end,
        ];
        all.into_iter().map(|each| serde_json::from_value(each).expect("a trace")).collect()
    }

    #[test]
    fn operations_are_those_inside_that_were_not_taken_back() {
        let of = |r#type, from: u8, to: u8, value: u64| InternalOperation {
            r#type,
            from: Address::repeat_byte(from),
            to: Address::repeat_byte(to),
            value: U256::from(value),
        };
        let expected = [
            of(OperationType::OpTransfer, 1, 2, 6),
            of(OperationType::OpCreate2, 2, 3, 0),
            of(OperationType::OpSelfDestruct, 3, 4, 9),
        ];
        assert_eq!(operations(&traces()), expected);
    }

    #[test]
    fn every_call_is_listed_with_its_depth_and_only_some_have_a_value() {
        let shown: Vec<_> = traces().iter().filter_map(entry).collect();
        let depths: Vec<_> = shown.iter().map(|each| each.depth).collect();
        assert_eq!(depths, [0, 1, 2, 2, 1, 2, 1, 1]);
        let kinds: Vec<_> = shown.iter().map(|each| &each.r#type[..]).collect();
        let expected = ["CALL", "CALL", "DELEGATECALL", "CALL", "CALL", "CALL"];
        assert_eq!(kinds[..6], expected);
        assert_eq!(kinds[6..], ["CREATE2", "SELFDESTRUCT"]);
        assert_eq!((shown[2].value, shown[0].value), (None, Some(U256::from(5))));
        assert_eq!(shown[6].to, Address::repeat_byte(3));
        assert!(shown[4].output.is_empty() && shown[0].output[..] == [5]);
    }
}
