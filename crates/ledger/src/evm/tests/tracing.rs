//! Traces of what was executed, beside what it came to.

use super::*;
use alloy_consensus::{Block as EvmBlock, TxEnvelope};
use alloy_primitives::Bloom;
use alloy_rlp::Decodable;
use serde_json::{Value, json};

/// Trace of a block, or of one transaction in it.
pub(super) fn traced(
    ledger: &mut Ledger,
    height: u64,
    transaction: Option<u32>,
    options: &Value,
) -> Result<Value, String> {
    let form = TraceForm::Geth(options.to_string().into());
    traced_as(ledger, height, transaction, form)
}

fn traced_as(
    ledger: &mut Ledger,
    height: u64,
    transaction: Option<u32>,
    form: TraceForm,
) -> Result<Value, String> {
    let found = block_at(ledger, height);
    let query = Query::TraceBlock(TraceBlock { found, transaction, form });
    let answer = ledger.answer_past(height - 1, &query)?;
    Ok(serde_json::from_slice(&answer).expect("JSON"))
}

fn replay(trace: bool, state_diff: bool, vm_trace: bool) -> TraceForm {
    TraceForm::Replay(ReplayParts { trace, state_diff, vm_trace })
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("hexadecimal").trim_start_matches("0x");
    u64::from_str_radix(text, 16).expect("a number")
}

pub(super) fn block_at(ledger: &mut Ledger, height: u64) -> FoundBlock {
    let query = Query::Block { at: BlockAt::Height(height), transactions: true };
    ledger.ask::<Option<FoundBlock>>(&query).expect("an answer").expect("a block")
}

/// Heights of token transfers and of exchanges, more than are kept as views.
pub(super) fn busy(shape: Shape) -> Ledger {
    let mut mix = Mix::new(CHAIN, shape, 5, 9);
    let mut ledger = Ledger::new(mix.genesis());
    for _ in 0..20 {
        let transactions: Vec<Bytes> = (0..4).map(|_| mix.next_transaction()).collect();
        ledger.execute(&transactions);
    }
    ledger
}

#[test]
fn a_trace_has_the_gas_the_calls_and_the_logs_that_the_receipt_has() {
    for shape in [Shape::Transfers, Shape::Mixed] {
        let mut ledger = busy(shape);
        for height in 1..=20 {
            let found = block_at(&mut ledger, height);
            let options = json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } });
            let all = traced(&mut ledger, height, None, &options).expect("traces");
            let all = all.as_array().expect("one each");
            assert_eq!(all.len(), found.transactions.len());
            for (index, (trace, stored)) in all.iter().zip(&found.transactions).enumerate() {
                assert_eq!(trace["txHash"], json!(stored.hash));
                let (trace, index) = (&trace["result"], Some(index as u32));
                assert_eq!(number(&trace["gasUsed"]), stored.gas_used, "{trace}");
                assert_eq!(trace["from"], json!(stored.sender));
                assert_eq!(trace["error"].is_null(), stored.success, "{trace}");
                assert_eq!(logs(trace), stored.logs.len(), "{trace}");
                let alone = traced(&mut ledger, height, index, &options).expect("a trace");
                assert_eq!(&alone, trace);
                let steps = traced(&mut ledger, height, index, &json!({})).expect("a trace");
                assert_eq!(steps["gas"], json!(stored.gas_used));
                assert_eq!(steps["failed"], json!(!stored.success));
            }
        }
    }
}

fn logs(frame: &Value) -> usize {
    let below = frame["calls"].as_array().into_iter().flatten().map(logs).sum::<usize>();
    below + frame["logs"].as_array().map_or(0, Vec::len)
}

/// What a transaction changed, by its trace, is what the states before and after differ in.
#[test]
fn a_difference_is_that_of_the_states() {
    let mut ledger = busy(Shape::Transfers);
    let options = json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } });
    for height in [1, 2, 10, 20] {
        let all = traced(&mut ledger, height, None, &options).expect("traces");
        let mut after = std::collections::BTreeMap::new();
        for trace in all.as_array().expect("one each") {
            for (address, account) in trace["result"]["post"].as_object().expect("accounts") {
                for (slot, value) in account["storage"].as_object().into_iter().flatten() {
                    after.insert((address.clone(), slot.clone()), value.clone());
                }
            }
        }
        assert!(!after.is_empty(), "tokens were transferred");
        for ((address, slot), value) in after {
            let slot: B256 = slot.parse().expect("a word");
            let slots = vec![(address.parse().expect("an address"), slot.into())];
            let found: Vec<U256> = ledger.ask_past(height, &Query::Slots(slots)).expect("a slot");
            assert_eq!(json!(B256::from(found[0])), value);
        }
    }
}

/// Erigon's form of the same: what the two have in common is equal, and no more is shown than is
/// asked for.
#[test]
fn a_replay_shows_calls_and_differences() {
    let mut ledger = busy(Shape::Transfers);
    let form = replay(true, true, false);
    let replayed = traced_as(&mut ledger, 7, Some(2), form).expect("a trace");
    let flat = json!({ "tracer": "flatCallTracer" });
    let flat = traced(&mut ledger, 7, Some(2), &flat).expect("a trace");
    for part in ["from", "to", "input", "value"] {
        assert_eq!(replayed["trace"][0]["action"][part], flat[0]["action"][part]);
    }
    assert_eq!(replayed["trace"][0]["result"]["output"], flat[0]["result"]["output"]);
    let token = mix::TOKEN.to_string().to_lowercase();
    let diff = json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } });
    let diff = traced(&mut ledger, 7, Some(2), &diff).expect("a trace");
    let slots = diff["post"][&token]["storage"].as_object().expect("slots");
    assert!(!slots.is_empty(), "a token was transferred");
    for (slot, after) in slots {
        let change = &replayed["stateDiff"][&token]["storage"][slot]["*"];
        assert_eq!(&change["to"], after, "{slot}");
    }
    let absent = Address::repeat_byte(0xab);
    let pay = payment(0, absent, U256::from(1));
    let mut fresh = Ledger::new(genesis());
    fresh.execute(&[signer(RICH).sign(pay)]);
    let form = replay(false, true, false);
    let first = traced_as(&mut fresh, 1, Some(0), form).expect("a trace");
    let balance = &first["stateDiff"][&absent.to_string().to_lowercase()]["balance"];
    assert_eq!(balance, &json!({ "+": "0x1" }), "it was not there");

    let form = replay(false, false, false);
    let bare = traced_as(&mut ledger, 7, Some(2), form).expect("a trace");
    assert_eq!((&bare["trace"], &bare["stateDiff"]), (&json!([]), &Value::Null));
    assert_eq!(bare["output"], replayed["output"]);
}

/// Steps in Erigon's form are those in Geth's: the same operations at the same places, what each
/// pushes is what the next one finds, and what is called is below its call.
#[test]
fn a_replay_shows_the_steps_of_the_machine() {
    fn steps<'a>(code: &'a Value, found: &mut Vec<&'a Value>) {
        for step in code["ops"].as_array().expect("steps") {
            found.push(step);
            if !step["sub"].is_null() {
                steps(&step["sub"], found);
            }
        }
    }
    let (mut ledger, mut pushed) = (busy(Shape::Mixed), 0);
    for (height, index) in [(3, 0), (3, 1), (9, 2), (20, 3)] {
        let form = replay(false, false, true);
        let replayed = traced_as(&mut ledger, height, Some(index), form).expect("a trace");
        assert_eq!(replayed["trace"], json!([]), "it was not asked for");
        let logged = traced(&mut ledger, height, Some(index), &json!({})).expect("a trace");
        let logged = logged["structLogs"].as_array().expect("steps");
        let mut found = Vec::new();
        steps(&replayed["vmTrace"], &mut found);
        assert_eq!(found.len(), logged.len(), "{height} {index}");
        for (at, (step, log)) in found.iter().zip(logged).enumerate() {
            assert_eq!((&step["pc"], &step["op"]), (&log["pc"], &log["op"]), "{height} {index}");
            let next = logged.get(at + 1).filter(|next| next["depth"] == log["depth"]);
            let top = next.and_then(|next| next["stack"].as_array()?.last());
            if let (Some(last), Some(top)) =
                (step["ex"]["push"].as_array().and_then(|p| p.last()), top)
            {
                assert_eq!(last, top, "{step}");
                pushed += 1;
            }
        }
    }
    assert!(pushed > 100, "{pushed} were compared");
    let form = replay(true, false, true);
    let mut tokens = busy(Shape::Transfers);
    let token = traced_as(&mut tokens, 7, Some(2), form).expect("a trace");
    let stored: EvmBytes = tokens.ask(&Query::Code(mix::TOKEN)).expect("code");
    assert_eq!(token["vmTrace"]["code"], json!(stored));
    assert!(!token["trace"].as_array().expect("calls").is_empty());
}

/// Each call of several finds what those before it left, and each is shown as it asks.
#[test]
fn calls_are_traced_one_on_the_other() {
    // return slot 0; slot 0 += 1
    let code = &[0x5f, 0x54, 0x80, 0x60, 1, 0x01, 0x5f, 0x55, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3];
    let (mut ledger, call) = called_once(code, 50_000);
    let mut trace = |calls: Vec<(Call, TraceForm)>| -> Result<Value, String> {
        let answer = ledger.answer(&Query::TraceCalls(calls, NEXT))?;
        Ok(serde_json::from_slice(&answer).expect("JSON"))
    };
    let forms =
        [replay(false, false, false), replay(true, true, false), replay(false, false, true)];
    let calls: Vec<_> = forms.into_iter().map(|form| (call.clone(), form)).collect();
    let traces = trace(calls.clone()).expect("traces");
    for (index, trace) in traces.as_array().expect("one each").iter().enumerate() {
        assert_eq!(trace["output"], json!(B256::from(U256::from(index + 1))));
        assert_eq!(trace["trace"] == json!([]), index != 1);
        assert_eq!(trace["stateDiff"].is_null(), index != 1);
        assert_eq!(trace["vmTrace"].is_null(), index != 2);
    }
    assert_eq!(trace(calls).expect("traces"), traces, "nothing of it is kept");
    assert_eq!(trace(Vec::new()), Ok(json!([])));
    let dear = Call { value: ether(2_000), ..call.clone() };
    let calls = vec![(call, replay(true, false, false)), (dear, replay(true, false, false))];
    let refused = trace(calls).expect_err("it has a thousand");
    assert!(refused.starts_with("insufficient funds"), "{refused}");
}

/// An account pays with what it was just given, creates at one address after the other, and all
/// calls together have the gas of a simulation.
#[test]
fn calls_share_a_world_and_its_bounds() {
    let (rich, heir) = (signer(RICH).address(), Address::repeat_byte(0xee));
    let mut genesis = Genesis { base_fee: 7, ..genesis() };
    let endless = Address::repeat_byte(0xc0);
    let code = EvmBytes::from_static(&[0x5b, 0x5f, 0x56]);
    let account = alloy_genesis::GenesisAccount::default().with_code(Some(code));
    genesis.accounts.insert(endless, account);
    let mut ledger = Ledger::new(genesis);
    let mut trace = |calls: Vec<Call>| -> Result<Value, String> {
        let calls = calls.into_iter().map(|call| (call, replay(true, true, false))).collect();
        let answer = ledger.answer(&Query::TraceCalls(calls, NEXT))?;
        Ok(serde_json::from_slice(&answer).expect("JSON"))
    };
    let given = Call { from: rich, value: ether(1), ..call_of(heir) };
    let paid = Call { from: heir, max_fee: 9, value: U256::from(5), ..call_of(rich) };
    let creation = Call { from: heir, ..Call::default() };
    let traces = trace(vec![given, paid, creation.clone(), creation]).expect("traces");
    let balance = &traces[1]["stateDiff"][heir.to_string().to_lowercase()]["balance"]["*"];
    let left = ether(1) - U256::from(5 + 21_000 * 9);
    assert_eq!(balance, &json!({ "from": ether(1), "to": left }));
    let created = [2, 3].map(|at: usize| &traces[at]["trace"][0]["result"]["address"]);
    assert!(created[0].is_string() && created[0] != created[1], "{created:?}");
    let forever = vec![call_of(endless); 11];
    assert!(trace(forever[..10].to_vec()).is_ok());
    let refused = trace(forever).expect_err("more than all may have");
    assert_eq!(refused, "these calls use more than 300000000 gas");
}

/// What a signed transaction does is traced without its being sent.
#[test]
fn a_signed_transaction_is_a_call() {
    let item = AccessListItem { address: mix::TOKEN, storage_keys: vec![B256::ZERO] };
    let signed = signer(RICH).sign(TxEip1559 {
        gas_limit: 50_000,
        max_priority_fee_per_gas: 3,
        input: EvmBytes::from_static(&[1, 2]),
        access_list: AccessList(vec![item]),
        ..payment(7, Address::repeat_byte(9), U256::from(5))
    });
    let read = Recovered::read(&signed, genesis().rules(1)).expect("a transaction");
    let expected = Call {
        from: signer(RICH).address(),
        to: Some(Address::repeat_byte(9)),
        gas: Some(50_000),
        max_fee: 10,
        priority_fee: Some(3),
        value: U256::from(5),
        data: EvmBytes::from_static(&[1, 2]),
        access_list: vec![(mix::TOKEN, vec![B256::ZERO])],
        authorizations: Vec::new(),
    };
    assert_eq!(Call::from(&read), expected);
}

#[test]
fn every_tracer_that_is_named_is_there_and_no_other() {
    let mut ledger = busy(Shape::Transfers);
    let mut of = |tracer: &str| traced(&mut ledger, 3, Some(1), &json!({ "tracer": tracer }));
    let selector = format!("0x{}-64", &keccak256("transfer(address,uint256)").to_string()[2..10]);
    assert_eq!(of("4byteTracer"), Ok(json!({ selector: 1 })));
    assert_eq!(of("noopTracer"), Ok(json!({})));
    let flat = of("flatCallTracer").expect("a trace");
    assert_eq!((&flat[0]["type"], &flat[0]["blockNumber"]), (&json!("call"), &json!(3)));
    assert!(of("prestateTracer").expect("a trace").is_object());
    for unknown in ["erc7562Tracer", "muxTracer", "stateGasTracer"] {
        assert!(of(unknown).expect_err("not reckoned").starts_with("tracer not found"));
    }
    let refused = of("{ data: [] }").expect_err("JavaScript");
    assert!(refused.starts_with("tracer not found: there are callTracer"), "{refused}");
    let refused = traced(&mut ledger, 3, Some(4), &json!({})).expect_err("there are four");
    assert_eq!(refused, "transaction not found");
    let found = block_at(&mut ledger, 3);
    let mut put = |height, options: &str| {
        let form = TraceForm::Geth(options.as_bytes().to_vec());
        let of = TraceBlock { found: found.clone(), transaction: None, form };
        ledger.answer_past(height, &Query::TraceBlock(of)).expect_err("no trace")
    };
    assert!(put(2, "").starts_with("invalid tracer"));
    assert_eq!(put(3, "{}"), "block 3 does not follow block 3");
    assert_eq!(put(1, "{}"), "block 3 does not follow block 1");
}

/// Whoever asks for a trace has a bounded part of this machine's memory.
#[test]
fn a_trace_that_is_too_large_is_refused_while_it_is_made() {
    // for (;;) {}, and: for (;;) this.call()
    const LOOPS: &[u8] = &[0x5b, 0x5f, 0x56];
    const CALLS: &[u8] =
        &[0x5b, 0x5f, 0x5f, 0x5f, 0x5f, 0x5f, 0x60, 0xff, 0x5f, 0xf1, 0x50, 0x5f, 0x56];
    let contract = Address::repeat_byte(0xc0);
    let trace_as = |code: &'static [u8], form: TraceForm| {
        let mut genesis = genesis();
        let account = alloy_genesis::GenesisAccount::default().with_code(Some(code.into()));
        genesis.accounts.insert(contract, account);
        let query = Query::TraceCall(run(call_of(contract), NEXT), form);
        Ledger::new(genesis).answer(&query)
    };
    let trace = |code: &'static [u8], options: Value| {
        trace_as(code, TraceForm::Geth(options.to_string().into()))
    };
    let refused = |answer: Result<Bytes, String>| {
        let reason = answer.expect_err("it is endless");
        assert!(reason.starts_with("the trace is larger than 32 MiB"), "{reason}");
    };
    refused(trace(LOOPS, json!({})));
    refused(trace(LOOPS, json!({ "tracer": "" })));
    // mstore(0x8000, 1); for (;;) {}: its memory is in each step. And sload(i++), all slots so far.
    const REMEMBERS: &[u8] = &[0x60, 1, 0x61, 0x80, 0, 0x52, 0x5b, 0x60, 6, 0x56];
    const READS: &[u8] = &[0x5f, 0x5b, 0x80, 0x54, 0x50, 0x60, 1, 0x01, 0x60, 1, 0x56];
    let limit = |options: Value| trace(REMEMBERS, options);
    refused(limit(json!({ "enableMemory": true, "disableStack": true, "limit": 1_000 })));
    refused(limit(json!({ "disableMemory": false, "disableStack": true, "limit": 1_000 })));
    assert!(limit(json!({ "disableStack": true, "limit": 1_000 })).is_ok());
    refused(trace(READS, json!({ "disableStack": true, "limit": 10_000 })));
    let few = json!({ "disableStack": true, "disableStorage": true, "limit": 10_000 });
    assert!(trace(READS, few).is_ok());
    refused(trace(CALLS, json!({ "tracer": "callTracer" })));
    refused(trace(CALLS, json!({ "tracer": "flatCallTracer" })));
    refused(trace_as(CALLS, replay(true, false, false)));
    refused(trace_as(LOOPS, replay(false, false, true)));
    // for (;;) codecopy(0, 0, 0x8000): each step writes as much as memory has.
    const WRITES: &[u8] = &[0x5b, 0x61, 0x80, 0, 0x5f, 0x5f, 0x39, 0x5f, 0x56];
    refused(trace_as(WRITES, replay(false, false, true)));
    assert!(trace_as(WRITES, replay(true, true, false)).is_ok(), "its steps are not shown");
    let shown = |answer: Result<Bytes, String>| -> Value {
        serde_json::from_slice(&answer.expect("a trace")).expect("JSON")
    };
    let few = shown(trace(LOOPS, json!({ "limit": 10 })));
    assert_eq!(few["structLogs"].as_array().expect("steps").len(), 10);
    let none = shown(trace(LOOPS, json!({ "tracer": "callTracer" })));
    assert_eq!(none["error"], json!("out of gas"), "it takes no room");
}

/// Header, block and receipts as bytes are what the block's hash covers.
#[test]
fn the_bytes_of_a_block_are_those_that_are_hashed() {
    let mut ledger = busy(Shape::Transfers);
    let found = block_at(&mut ledger, 7);
    assert_eq!(keccak256(&found.block.header), found.block.hash);
    let bytes = found.encoded().expect("whole");
    let block = EvmBlock::<TxEnvelope>::decode(&mut &bytes[..]).expect("a block");
    assert_eq!(block.header.hash_slow(), found.block.hash);
    let root = alloy_consensus::proofs::calculate_transaction_root(&block.body.transactions);
    assert_eq!(root, block.header.transactions_root);
    let receipts: Vec<_> =
        found.transactions.iter().map(StoredTransaction::encoded_receipt).collect();
    let root =
        alloy_consensus::proofs::ordered_trie_root_with_encoder(&receipts, |bytes, buffer| {
            buffer.extend_from_slice(bytes);
        });
    assert_eq!(root, block.header.receipts_root);
    assert_ne!(block.header.logs_bloom, Bloom::ZERO);
}
