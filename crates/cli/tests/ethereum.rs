//! The EVM ledger as a client sees it that others wrote: alloy, against validators that are real
//! processes.

use crate::common::operators::Operators;
use crate::common::{self, Net, json, stderr, wait_for};
use alloy::consensus::Transaction;
use alloy::network::TransactionBuilder;
use alloy::primitives::{Address, B256, Bytes, U64, U256, keccak256};
use alloy::providers::{Provider, ProviderBuilder, WsConnect};
use alloy::rpc::types::{BlockNumberOrTag, Filter, Header, TransactionReceipt, TransactionRequest};
use alloy::signers::local::PrivateKeySigner;
use quorate_gateway::receipt::ReceiptFile;
use quorate_ledger::evm::{TransactionResult, mix};
use quorate_node::config::load_committee;
use quorate_types::executed::ExecutionCertificate;
use quorate_types::{History, Outcome};
use serde_json::{Value, json as value};
use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::block_in_place;

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
}

fn ledger() -> Net {
    let net = Net::start_with(4, "ed25519", &["--service", "evm", "--durability", "os"], |_| {});
    net.wait_connected();
    net
}

/// A client of validator `index` with the key of an account.
fn provider(net: &Net, index: usize, account: usize) -> impl Provider + Clone + use<> {
    let signer: PrivateKeySigner = net.accounts[account].parse().expect("a key");
    let url = format!("http://{}", net.gateways[index]).parse().expect("an address");
    ProviderBuilder::new().wallet(signer).connect_http(url)
}

async fn send(provider: &impl Provider, request: TransactionRequest) -> TransactionReceipt {
    let pending = provider.send_transaction(request).await.expect("taken");
    pending.get_receipt().await.expect("a receipt")
}

fn pay(to: Address, value: u64) -> TransactionRequest {
    TransactionRequest::default().with_to(to).with_value(U256::from(value))
}

#[test]
fn a_contract_is_deployed_and_used() {
    let net = ledger();
    runtime().block_on(async {
        let client = provider(&net, 0, 0);
        assert_eq!(client.get_chain_id().await.expect("answers"), 7_770);
        let creation = TransactionRequest::default().with_deploy_code(mix::token_creation());
        let created = send(&client, creation).await;
        let token = created.contract_address.expect("a contract");
        let code = client.get_code_at(token).await.expect("answers");
        assert_eq!(code, mix::Artefact::token().deployed_bytecode);

        let to = Address::repeat_byte(7);
        let input = mix::transfer(to, U256::from(42));
        let request = TransactionRequest::default().with_to(token).with_input(input.clone());
        let paid = send(&client, request).await;
        assert!(paid.status());
        let filter = Filter::new().address(token).from_block(0).topic2(to.into_word());
        let logs = client.get_logs(&filter).await.expect("answers");
        assert_eq!(logs.len(), 1);
        assert_eq!(logs[0].transaction_hash, Some(paid.transaction_hash));
        assert_eq!(logs[0].topics()[0], keccak256("Transfer(address,address,uint256)"));

        // Whoever has nothing is told why, at once.
        let poor = TransactionRequest::default().with_from(to).with_to(Address::ZERO);
        let error = client.call(poor.with_value(U256::from(1))).await.expect_err("no funds");
        assert!(error.to_string().contains("insufficient funds"), "{error}");
        let input = mix::transfer(Address::repeat_byte(1), U256::from(43));
        let request = TransactionRequest::default().with_from(to).with_to(token).with_input(input);
        let error = client.estimate_gas(request).await.expect_err("too little");
        let payload = error.as_error_resp().expect("an answer");
        assert_eq!(payload.code, 3);
        let data: Bytes = payload.try_data_as().expect("data").expect("bytes");
        assert_eq!(data[..4], keccak256("InsufficientBalance(address,uint256,uint256)")[..4]);
    });
}

/// By Otterscan's methods and those for tokens, page by page.
#[test]
fn what_accounts_and_tokens_did_is_found() {
    let net = ledger();
    runtime().block_on(async {
        let client = provider(&net, 0, 0);
        let ask = async |method: &'static str, params: Value| -> Value {
            client.raw_request(method.into(), params).await.expect("answers")
        };
        let creation = TransactionRequest::default().with_deploy_code(mix::token_creation());
        let created = send(&client, creation).await;
        let token = created.contract_address.expect("a contract");
        let holder = Address::repeat_byte(7);
        let input = mix::transfer(holder, U256::from(42));
        let request = TransactionRequest::default().with_to(token).with_input(input);
        let paid = send(&client, request).await;
        let [creation, transfer] =
            [&created, &paid].map(|receipt| value!(receipt.transaction_hash));

        let newest = ask("ots_searchTransactionsBefore", value!([token, 0, 1])).await;
        assert_eq!((&newest["txs"][0]["hash"], &newest["firstPage"]), (&transfer, &value!(true)));
        assert_eq!(newest["receipts"][0]["status"], "0x1");
        assert!(newest["receipts"][0]["timestamp"].is_u64(), "{newest}");
        let before = value!([token, paid.block_number, 1]);
        let last = ask("ots_searchTransactionsBefore", before).await;
        assert_eq!((&last["txs"][0]["hash"], &last["lastPage"]), (&creation, &value!(true)));
        let after = value!([token, created.block_number, 1]);
        let next = ask("ots_searchTransactionsAfter", after).await;
        assert_eq!((&next["txs"], &next["firstPage"]), (&newest["txs"], &value!(true)));

        let by = ask("ots_getContractCreator", value!([token])).await;
        assert_eq!(by, value!({ "hash": creation, "creator": created.from }));
        let found = ask("ots_getTransactionBySenderAndNonce", value!([created.from, 1])).await;
        assert_eq!(found, transfer);
        let none = ask("ots_getTransactionBySenderAndNonce", value!([created.from, 2])).await;
        assert_eq!(none, Value::Null);

        let page = value!([{ "token": token, "limit": "0x1" }]);
        let transfers = ask("quorate_getTokenTransfers", page).await;
        assert_eq!(transfers["logs"][0]["transactionHash"], transfer);
        let page = value!([{ "token": token, "before": transfers["next"] }]);
        let minted = ask("quorate_getTokenTransfers", page).await;
        assert_eq!(minted["logs"][0]["transactionHash"], creation);
        assert_eq!(
            (minted["logs"].as_array().map(Vec::len), &minted["next"]),
            (Some(1), &Value::Null)
        );
        let of = ask("quorate_getTokenTransfers", value!([{ "account": holder }])).await;
        assert_eq!(of["logs"], transfers["logs"]);
        let holders = ask("quorate_getTokenHolders", value!([{ "token": token }])).await;
        let all = holders["holders"].as_array().expect("a list");
        assert_eq!(all.len(), 2);
        assert!(all.contains(&value!({ "account": holder, "balance": "0x2a" })), "{holders}");
        assert_eq!(ask("quorate_getIndex", value!([])).await, value!({ "fromBlock": "0x1" }));

        let details = ask("ots_getBlockDetails", value!([paid.block_number])).await;
        assert_eq!(details["block"]["transactionCount"], 1);
        let shown = ask("ots_getBlockTransactions", value!([paid.block_number, 0, 10])).await;
        assert_eq!(shown["fullblock"]["transactions"][0]["input"], "0xa9059cbb");
        assert_eq!(shown["receipts"][0]["logs"], Value::Null);
        let calls = ask("ots_traceTransaction", value!([transfer])).await;
        assert_eq!((&calls[0]["type"], &calls[0]["depth"]), (&value!("CALL"), &value!(0)));
        assert_eq!(ask("ots_getTransactionError", value!([transfer])).await, "0x");
        assert_eq!(ask("ots_hasCode", value!([token, "latest"])).await, true);
    });
}

#[test]
fn a_dead_validator_is_missed_by_nobody_and_catches_up() {
    let mut net = ledger();
    let runtime = runtime();
    let to = Address::repeat_byte(9);
    net.processes.kill(3).expect("killed");
    let last = runtime.block_on(async {
        let client = provider(&net, 1, 1);
        for value in 1..=5 {
            assert!(send(&client, pay(to, value)).await.status());
        }
        send(&client, pay(to, 6)).await
    });
    net.processes.start_one(3).expect("started");
    let client = provider(&net, 3, 2);
    let height = last.block_number.expect("executed");
    let block = wait_for("the validator to have the block", || {
        runtime.block_on(async { client.get_block_by_number(height.into()).await.ok().flatten() })
    });
    assert_eq!(Some(block.header.hash), last.block_hash);
    runtime.block_on(async {
        assert_eq!(client.get_balance(to).await.expect("answers"), U256::from(21));
        assert!(send(&client, pay(to, 4)).await.status());
        let finalized = client.get_block_by_number(BlockNumberOrTag::Finalized).await;
        let finalized = finalized.expect("answers").expect("there").header.number;
        assert_eq!(client.get_block_number().await.expect("answers"), finalized);
    });
}

/// Nonces that come in the wrong order, to different validators.
#[test]
fn transactions_wait_for_those_before_them() {
    let net = ledger();
    runtime().block_on(async {
        let (first, second) = (provider(&net, 0, 3), provider(&net, 2, 3));
        let to = Address::repeat_byte(8);
        let numbered = |nonce| pay(to, 1).with_nonce(nonce).with_gas_limit(21_000);
        let late = second.send_transaction(numbered(2)).await.expect("taken");
        let later = second.send_transaction(numbered(1)).await.expect("taken");
        let status: Value = second.raw_request("txpool_status".into(), ()).await.expect("answers");
        assert_eq!(status["queued"], "0x2");
        assert!(send(&first, numbered(0)).await.status());
        for pending in [late, later] {
            assert!(pending.get_receipt().await.expect("a receipt").status());
        }
        assert_eq!(second.get_balance(to).await.expect("answers"), U256::from(3));
        let error = second.send_transaction(numbered(1)).await.expect_err("it is used");
        assert!(error.to_string().contains("nonce too low"), "{error}");
    });
}

/// The committee's answer reaches this validator's gateway some 100 ms before its own execution
/// does.
#[test]
fn what_a_far_validator_was_sent_is_never_out_of_sight() {
    let regions = "ap-southeast-2,us-east-1,us-east-1,us-east-1";
    let net = Net::start_with(4, "ed25519", &["--service", "evm", "--wan", regions], |_| {});
    net.wait_connected();
    runtime().block_on(async {
        let client = provider(&net, 0, 6);
        let from = net.accounts[6].parse::<PrivateKeySigner>().expect("a key").address();
        for nonce in 0..3 {
            let sent = client.send_transaction(pay(Address::repeat_byte(6), 1)).await;
            let hash = *sent.expect("taken").tx_hash();
            let mut receipt = None;
            while receipt.is_none() {
                let pending = client.get_transaction_count(from).pending().await;
                assert_eq!(pending.expect("answers"), nonce + 1);
                let transaction = client.get_transaction_by_hash(hash).await.expect("answers");
                assert_eq!(transaction.expect("in sight").nonce(), nonce);
                receipt = client.get_transaction_receipt(hash).await.expect("answers");
            }
            assert!(receipt.expect("executed").status());
        }
    });
}

/// Sends until one is shown with what the committee signed: what had to be sent again has no such
/// receipt.
async fn certified(
    client: &impl Provider,
    request: TransactionRequest,
) -> (TransactionReceipt, Value) {
    for _ in 0..20 {
        let paid = send(client, request.clone()).await;
        // The committee's signatures may come after this validator's own execution.
        for _ in 0..20 {
            let shown: Value = client
                .raw_request("quorate_getReceipt".into(), (paid.transaction_hash,))
                .await
                .expect("answers");
            if !shown.is_null() {
                return (paid, shown);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    panic!("no receipt of twenty payments")
}

#[test]
fn what_the_committee_signed_needs_no_trust() {
    let net = ledger();
    let committee = load_committee(&net.folder().join("committee.toml"), Default::default());
    let committee = Arc::new(committee.expect("a committee"));
    runtime().block_on(async {
        let client = provider(&net, 0, 4);
        let to = Address::repeat_byte(6);
        let (paid, shown) = certified(&client, pay(to, 5)).await;
        let height = paid.block_number.expect("executed");
        let file: ReceiptFile =
            serde_json::from_value(shown["receipt"].clone()).expect("a receipt");
        let receipt = file.verify(&History::new(Arc::clone(&committee))).expect("it holds");
        let operation: U64 = serde_json::from_value(shown["operation"].clone()).expect("a number");
        let Outcome::Applied(result) = &receipt.reply.results[operation.to::<usize>()] else {
            panic!("it was executed")
        };
        let result = TransactionResult::read(result).expect("a result");
        assert_eq!((result.transaction, result.success), (paid.transaction_hash, true));

        // Whoever answers may be behind.
        loop {
            let proof: Value = client
                .raw_request("eth_getProof".into(), (to, [U256::ZERO], "latest"))
                .await
                .expect("answers");
            let bytes = proof["certificate"]["certificate"].clone();
            let bytes: Bytes = serde_json::from_value(bytes).expect("bytes");
            let certificate: ExecutionCertificate = borsh::from_slice(&bytes).expect("decoded");
            certificate.check(&committee).expect("it holds");
            if certificate.header.height.0 >= height {
                assert_eq!(
                    proof["balance"],
                    value!(client.get_balance(to).await.expect("answers"))
                );
                break;
            }
        }
    });
}

#[test]
fn new_blocks_and_logs_are_told_of() {
    let net = ledger();
    runtime().block_on(async {
        let client = provider(&net, 0, 5);
        let url = format!("ws://{}", net.gateways[0]);
        let socket =
            ProviderBuilder::new().connect_ws(WsConnect::new(url)).await.expect("connects");
        let mut blocks = socket.subscribe_blocks().await.expect("subscribes");
        let created = TransactionRequest::default().with_deploy_code(mix::token_creation());
        let receipt = send(&client, created).await;
        let token = receipt.contract_address.expect("a contract");
        loop {
            let header = blocks.recv().await.expect("a block");
            if Some(header.hash) == receipt.block_hash {
                break;
            }
            assert!(header.number < receipt.block_number.expect("executed"), "it was left out");
        }
        let filter = Filter::new().address(token);
        let mut logs = socket.subscribe_logs(&filter).await.expect("subscribes");
        let input = mix::transfer(Address::repeat_byte(1), U256::from(1));
        let paid =
            send(&client, TransactionRequest::default().with_to(token).with_input(input)).await;
        let told = logs.recv().await.expect("a log");
        assert_eq!(told.transaction_hash, Some(paid.transaction_hash));
    });
}

/// The server, its connections, subscriptions and filters outlive the epoch: no block is left out,
/// and the first of the next epoch is told of to whoever subscribed in the one before.
#[test]
fn json_rpc_goes_on_over_the_end_of_an_epoch() {
    let net = ledger();
    let mut operators = Operators::of(net.folder(), &net.configs);
    runtime().block_on(async {
        let client = provider(&net, 0, 7);
        let url = format!("ws://{}", net.gateways[0]);
        let socket =
            ProviderBuilder::new().connect_ws(WsConnect::new(url)).await.expect("connects");
        let mut blocks = socket.subscribe_blocks().await.expect("subscribes");
        let filter = socket.new_block_filter().await.expect("a filter");
        let to = Address::repeat_byte(7);
        let before = send(&client, pay(to, 1)).await.block_number.expect("executed");
        operators.change(&["--protocol", "hotstuff"], &[]);
        operators.watch();
        // All runs of the epoch before are over: whoever is answered reads the next one.
        wait_for("the validator's next run", || {
            let described = socket.raw_request::<_, Value>("quorate_committee".into(), ());
            let described = block_in_place(|| Handle::current().block_on(described)).ok()?;
            let balance = socket.get_balance(to).into_future();
            let read = block_in_place(|| Handle::current().block_on(balance));
            (described["epoch"] == "0x2" && described["protocol"] == "hotstuff" && read.is_ok())
                .then_some(())
        });
        let after = send(&client, pay(to, 2)).await.block_number.expect("executed");
        let mut told = Vec::new();
        while told.last().is_none_or(|block: &Header| block.number != after) {
            told.push(blocks.recv().await.expect("a block"));
        }
        let numbers: Vec<u64> = told.iter().map(|block| block.number).collect();
        assert_eq!(numbers, (numbers[0]..=after).collect::<Vec<_>>(), "each once");
        assert!(numbers.contains(&before), "{numbers:?}, without {before}");
        // The filter may be younger than the subscription, and is asked later than it.
        let awaited: Vec<B256> =
            told.iter().skip_while(|block| block.number < before).map(|block| block.hash).collect();
        let polled: Vec<B256> =
            socket.get_filter_changes(filter).await.expect("the filter is kept");
        let from = polled.iter().position(|hash| *hash == awaited[0]).expect("the block before");
        assert!(polled[from..].starts_with(&awaited), "{polled:?}, without {awaited:?}");
        assert_eq!(polled.iter().collect::<BTreeSet<_>>().len(), polled.len(), "each once");
    });
}

#[test]
fn what_is_wrong_with_a_ledgers_files_is_said() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("net");
    let folder = folder.to_str().expect("a plain path");
    json(&["testnet", folder, "--service", "evm", "--json"]);
    let genesis = place.path().join("net/genesis.json");
    let config = place.path().join("net/validator-0/config.toml");
    let run = || common::quorate(&["run", "--config", config.to_str().expect("a plain path")]);
    let agreed = std::fs::read_to_string(&genesis).expect("a genesis file");
    std::fs::write(&genesis, format!("{agreed}\n")).expect("written");
    let said = stderr(&run());
    assert!(said.contains("every member has the same one"), "{said}");
    std::fs::write(&genesis, "{}").expect("written");
    let output = run();
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("'genesis': the genesis's config names no chainId"), "{said}");
    common::edit(&config, "genesis = ", "# genesis = ");
    let said = stderr(&run());
    assert!(
        said.contains("the service 'evm' needs a genesis file: name it as 'genesis'"),
        "{said}"
    );
}
