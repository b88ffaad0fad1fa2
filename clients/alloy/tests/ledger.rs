//! What alloy finds when it works with a ledger.

use alloy::consensus::Transaction;
use alloy::eips::BlockId;
use alloy::primitives::{Address, B256, U256, keccak256};
use alloy::providers::Provider;
use alloy::providers::ext::DebugApi;
use alloy::rpc::types::Header;
use alloy::rpc::types::trace::geth::{
    AccountState, CallConfig, DefaultFrame, DiffMode, GethDebugTracingOptions, PreStateConfig,
    PreStateFrame,
};
use alloy::sol_types::{Revert, SolError, SolValue};
use futures_util::StreamExt;
use quorate_clients_alloy::Token::{self, TokenErrors, TokenInstance};
use quorate_clients_alloy::{account, pay, send, socket, stranger};

const CONFIRMATIONS: u64 = 2;
const SENDS: u64 = 20;
const SUPPLY: u64 = 1_000;

fn supply() -> U256 {
    U256::from(SUPPLY)
}

/// A token whose whole supply is its deployer's.
async fn token<P: Provider>(client: P) -> TokenInstance<P> {
    Token::deploy(client, "Quorate".into(), "QRT".into(), supply()).await.expect("a contract")
}

#[tokio::test]
async fn twenty_transfers_one_after_the_other() {
    let (sender, client) = account().await;
    let to = stranger();
    let mut blocks = Vec::new();
    for nonce in 0..SENDS {
        let receipt = send(&client, pay(to, U256::from(1))).await;
        assert!(receipt.status());
        assert_eq!(receipt.gas_used, 21_000);
        let sent = client.get_transaction_by_hash(receipt.transaction_hash).await;
        assert_eq!(sent.expect("an answer").expect("it is known").nonce(), nonce);
        blocks.push(receipt.block_number.expect("it is in a block"));
    }
    assert_eq!(client.get_transaction_count(sender).await.expect("an answer"), SENDS);
    for (block, held) in blocks.into_iter().zip(1..) {
        let balance = client.get_balance(to).number(block).await.expect("an answer");
        assert_eq!(balance, U256::from(held), "at {block}");
    }
}

#[tokio::test]
async fn confirmations_come_though_nobody_sends() {
    let (_, client) = account().await;
    let sent = client.send_transaction(pay(stranger(), U256::from(1))).await;
    let waiting = sent.expect("it is taken").with_required_confirmations(CONFIRMATIONS);
    let hash = waiting.watch().await.expect("confirmations");
    let receipt =
        client.get_transaction_receipt(hash).await.expect("an answer").expect("a receipt");
    let newest = client.get_block_number().await.expect("an answer");
    assert!(newest + 1 >= receipt.block_number.expect("it is in a block") + CONFIRMATIONS);
}

#[tokio::test]
async fn a_contract_is_deployed_called_and_its_events_are_read() {
    let (owner, client) = account().await;
    let token = token(&client).await;
    assert_eq!(token.name().call().await.expect("an answer"), "Quorate");
    let to = stranger();
    let sent = token.transfer(to, U256::from(7)).send().await.expect("it is taken");
    let receipt = sent.get_receipt().await.expect("it is carried out");
    let moved = Token::Transfer { from: owner, to, value: U256::from(7) };
    assert_eq!(receipt.decoded_log::<Token::Transfer>().expect("an event").data, moved);
    let block = receipt.block_number.expect("it is in a block");
    let events = token.Transfer_filter().topic2(to.into_word()).from_block(0).query().await;
    let [(event, log)] = &events.expect("an answer")[..] else { panic!("one event") };
    assert_eq!((event, log.block_number), (&moved, Some(block)));
    // What it was before.
    let before = token.balanceOf(to).block(BlockId::number(block - 1)).call().await;
    assert_eq!(before.expect("an answer"), U256::ZERO);
    assert_eq!(token.balanceOf(to).call().await.expect("an answer"), U256::from(7));
}

#[tokio::test]
async fn a_revert_says_why() {
    let (owner, client) = account().await;
    let token = token(&client).await;
    let needed = supply() + U256::from(1);
    // No more than the estimate: one that fails within `send` leaves a gap in alloy's nonces.
    let error = token.transfer(stranger(), needed).estimate_gas().await.expect_err("too much");
    let why = error.as_decoded_interface_error::<TokenErrors>().expect("the contract's error");
    let short = Token::InsufficientBalance { account: owner, balance: supply(), needed };
    assert_eq!(why, TokenErrors::InsufficientBalance(short));
    let error = token.transfer(Address::ZERO, U256::from(1)).call().await.expect_err("nobody");
    let data = error.as_revert_data().expect("data");
    let text = Revert::abi_decode(&data).expect("a text").reason;
    assert_eq!(text, "Token: transfer to the zero address");
    // Sent all the same, it is in a block.
    let sent = token.transfer(Address::ZERO, U256::from(1)).gas(100_000).send().await;
    let receipt = sent.expect("it is taken").get_receipt().await.expect("it is carried out");
    assert!(!receipt.status());
}

#[tokio::test]
async fn an_account_and_its_storage_are_proven() {
    let (owner, client) = account().await;
    let token = token(&client).await;
    // `balanceOf` is at slot 0.
    let slot = keccak256((owner, U256::ZERO).abi_encode());
    let proof = client.get_proof(*token.address(), vec![slot]).await.expect("a proof");
    let code = client.get_code_at(*token.address()).await.expect("an answer");
    assert_eq!((proof.nonce, proof.balance), (1, U256::ZERO));
    assert_eq!(proof.code_hash, keccak256(code));
    assert!(!proof.account_proof.is_empty());
    let [balance] = &proof.storage_proof[..] else { panic!("one slot") };
    assert_eq!((balance.key.as_b256(), balance.value), (slot, supply()));
    assert!(!balance.proof.is_empty());
}

#[tokio::test]
async fn blocks_and_events_are_told_of() {
    let (_, client) = account().await;
    let socket = socket().await;
    let mut blocks = socket.subscribe_blocks().await.expect("subscribes");
    let token = token(&client).await;
    let events = Token::new(*token.address(), &socket).Transfer_filter().subscribe().await;
    let mut events = events.expect("subscribes").into_stream();
    let to = stranger();
    let sent = token.transfer(to, U256::from(3)).send().await.expect("it is taken");
    let receipt = sent.get_receipt().await.expect("it is carried out");
    let (event, log) = events.next().await.expect("an event").expect("it is decoded");
    assert_eq!((event.to, event.value), (to, U256::from(3)));
    assert_eq!(log.transaction_hash, Some(receipt.transaction_hash));
    let mut told: Vec<Header> = Vec::new();
    while told.last().is_none_or(|header| Some(header.hash) != receipt.block_hash) {
        told.push(blocks.recv().await.expect("a block"));
    }
    assert!(told.is_sorted_by(|one, next| one.hash == next.parent_hash), "none is left out");
}

/// What the default tracer, the one of calls and the one of states say of a transfer of tokens.
#[tokio::test]
async fn a_transaction_is_traced() {
    let (owner, client) = account().await;
    let token = token(&client).await;
    let sent = token.transfer(stranger(), U256::from(5)).send().await.expect("it is taken");
    let receipt = sent.get_receipt().await.expect("it is carried out");
    let hash = receipt.transaction_hash;

    let logs = default_trace(&client, hash).await;
    assert_eq!(logs.gas, receipt.gas_used);
    assert!(!logs.failed);
    assert!(logs.struct_logs.iter().any(|log| log.opcode() == "SSTORE"));

    let with_log = CallConfig { with_log: Some(true), ..CallConfig::default() };
    let options = GethDebugTracingOptions::call_tracer(with_log);
    let frame = client.debug_trace_transaction(hash, options).await.expect("a trace");
    let frame = frame.try_into_call_frame().expect("a frame");
    assert_eq!((frame.from, frame.to), (owner, Some(*token.address())));
    assert_eq!(frame.gas_used, U256::from(receipt.gas_used));
    assert_eq!(frame.logs.len(), 1);

    let diff = difference(&client, hash).await;
    assert_eq!(
        diff.pre[&owner].nonce.unwrap_or_default() + 1,
        diff.post[&owner].nonce.expect("it grew")
    );
    // The balances of both; the receiver had none.
    let changed = |state: &AccountState| state.storage.len();
    assert_eq!(changed(&diff.pre[token.address()]), 1);
    assert_eq!(changed(&diff.post[token.address()]), 2);
}

async fn default_trace(client: &impl Provider, hash: B256) -> DefaultFrame {
    let options = GethDebugTracingOptions::default();
    let trace = client.debug_trace_transaction(hash, options).await.expect("a trace");
    trace.try_into_default_frame().expect("struct logs")
}

async fn difference(client: &impl Provider, hash: B256) -> DiffMode {
    let config = PreStateConfig { diff_mode: Some(true), ..PreStateConfig::default() };
    let options = GethDebugTracingOptions::prestate_tracer(config);
    let trace = client.debug_trace_transaction(hash, options).await.expect("a trace");
    let PreStateFrame::Diff(diff) = trace.try_into_pre_state_frame().expect("states") else {
        panic!("a difference was asked for");
    };
    diff
}
