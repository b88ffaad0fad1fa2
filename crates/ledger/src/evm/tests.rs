use super::mix::{self, Mix, Shape};
use super::*;
use alloy_consensus::{TxEip1559, TxEip2930, TxLegacy};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use alloy_primitives::{Address, Bytes as EvmBytes, TxKind, U256, keccak256};
use borsh::BorshDeserialize;
use bytes::Bytes;
use quorate_crypto::IdentitySecret;
use quorate_crypto::mutants::{Mutant, assert_noticed};
use quorate_storage::history::MemoryHistory;
use quorate_storage::{Executor, ExecutorConfig, MemoryStore};
use quorate_types::machine::{Block, Executed};
use quorate_types::{Body, Height, NetworkId, Payload, ReplicaId, Request};

mod forks;
mod golden;
mod indexing;
mod proofs;
mod simulating;
mod simulations;
mod tracing;

const CHAIN: u64 = 1_337;
const RICH: &str = "rich";

/// The block that would come at once.
const NEXT: CallBlock = CallBlock::Next(0);

/// The deployer by CREATE2 that most tools expect: signed by nobody, for every chain
/// (github.com/Arachnid/deterministic-deployment-proxy).
const DEPLOYER: &str = "f8a58085174876e800830186a08080b853604580600e600039806000f350fe7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf31ba02222222222222222222222222222222222222222222222222222222222222222a02222222222222222222222222222222222222222222222222222222222222222";

/// ★ What names no chain is executed where the genesis says so, and nowhere else.
#[test]
fn an_unprotected_transaction_is_taken_where_the_genesis_says_so() {
    let raw: EvmBytes = DEPLOYER.parse().expect("hexadecimal");
    let (raw, deployed) = (Bytes::from(raw), "4e59b44847b379578588920ca78fbf26c0b4956c");
    let deployed: Address = deployed.parse().expect("an address");
    for takes_unprotected in [true, false] {
        let funded = alloy_genesis::GenesisAccount::default().with_balance(ether(1));
        let mut genesis = Genesis { takes_unprotected, ..genesis() };
        assert_eq!(Genesis::parse(&genesis.to_json()).expect("parsed"), genesis);
        let any = Genesis { takes_unprotected: true, ..Genesis::new(9) };
        let read = Recovered::read(&raw, any.rules(1));
        genesis.accounts.insert(read.expect("a transaction").sender, funded);
        let outcomes = Ledger::new(genesis).execute(std::slice::from_ref(&raw));
        if takes_unprotected {
            assert_eq!(applied(&outcomes[0]).created, Some(deployed));
        } else {
            let because = refusal(&outcomes[0]);
            assert_eq!(because, "invalid chain id: the transaction names none, this chain is 1337");
        }
    }
    let other = payment(0, deployed, U256::from(1));
    let other = signer(RICH).sign(TxEip1559 { chain_id: CHAIN + 1, ..other });
    let unprotected = Genesis { takes_unprotected: true, ..genesis() };
    let read = Recovered::read(&other, unprotected.rules(1));
    assert!(read.is_err(), "it names another");
}

/// A call in a block, with nothing else than it is.
fn run(call: Call, block: CallBlock) -> DryRun {
    DryRun { call, block, overrides: Overrides::default() }
}

/// A call without anything, of nobody.
fn call_of(to: Address) -> Call {
    Call { to: Some(to), ..Call::default() }
}

/// A ledger with one client, through whose requests everything comes.
struct Ledger {
    executor: Executor,
    client: IdentitySecret,
    sequence: u64,
}

impl Ledger {
    fn new(genesis: Genesis) -> Self {
        let store = Box::new(MemoryStore::new());
        Self::over(store, genesis)
    }

    fn over(store: Box<dyn quorate_storage::Store>, genesis: Genesis) -> Self {
        Self::opened(store, Evm::new(genesis))
    }

    fn of(service: Evm) -> Self {
        Self::opened(Box::new(MemoryStore::new()), service)
    }

    fn opened(store: Box<dyn quorate_storage::Store>, service: Evm) -> Self {
        let opened = Executor::open(store, Box::new(service), ExecutorConfig::default());
        let (executor, executed) = opened.expect("opens");
        let sequence = executed.map_or(0, |executed| executed.height().0);
        let mut executor = executor;
        executor.keep_history(Arc::new(MemoryHistory::default()));
        Self { executor, client: IdentitySecret::from_seed([7; 32]), sequence }
    }

    fn execute_at(&mut self, proposed_at_ms: u64, transactions: &[Bytes]) -> Vec<Outcome> {
        let request =
            Request::sign(&self.client, NetworkId::default(), self.sequence, transactions);
        let body = Arc::new(Body::seal(ReplicaId(0), self.sequence, &[request.expect("fits")]));
        self.sequence += 1;
        let payload = Payload::new(Height(self.sequence), proposed_at_ms, vec![body.reference]);
        let block = Block { payload, bodies: vec![body], decided: Bytes::from("proof") };
        let Executed { answers, .. } = self.executor.execute(&block).expect("executes");
        answers.into_iter().next().expect("one request").results.to_vec()
    }

    fn execute(&mut self, transactions: &[Bytes]) -> Vec<Outcome> {
        self.execute_at(1_000 * self.sequence, transactions)
    }

    fn ask<T: BorshDeserialize>(&mut self, query: &Query) -> Result<T, String> {
        Ok(T::try_from_slice(&self.answer(query)?).expect("the question's answer"))
    }

    fn answer(&mut self, query: &Query) -> Result<Bytes, String> {
        let view = self.executor.view().expect("a view");
        let reader = self.executor.reader().expect("a reader");
        view.query(reader.as_ref(), &query.encode()).expect("reads")
    }

    /// Asks of the state as it was after a height.
    fn ask_past<T: BorshDeserialize>(&mut self, height: u64, query: &Query) -> Result<T, String> {
        let answer = self.answer_past(height, query)?;
        Ok(T::try_from_slice(&answer).expect("the question's answer"))
    }

    fn answer_past(&mut self, height: u64, query: &Query) -> Result<Bytes, String> {
        let view = self.executor.view().expect("a view");
        let (reader, history) = (self.executor.reader(), self.executor.history());
        let (reader, history) = (reader.expect("a reader"), history.expect("one is kept"));
        let query = query.encode();
        view.query_past(&*history, Height(height), reader.as_ref(), &query).expect("reads")
    }

    fn balance(&mut self, of: Address) -> U256 {
        self.ask::<Account>(&Query::Account(of)).expect("an account").balance
    }

    fn state(&self) -> Digest {
        self.executor.executed().expect("a height").header.state
    }
}

fn signer(name: &str) -> Signer {
    Signer::derived(name).0
}

fn ether(count: u64) -> U256 {
    U256::from(count) * U256::from(10).pow(U256::from(18))
}

fn genesis() -> Genesis {
    let mut genesis = Genesis::new(CHAIN);
    let rich = alloy_genesis::GenesisAccount::default().with_balance(ether(1_000));
    genesis.accounts.insert(signer(RICH).address(), rich);
    genesis
}

fn payment(nonce: u64, to: Address, value: U256) -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN,
        nonce,
        gas_limit: 21_000,
        max_fee_per_gas: 10,
        max_priority_fee_per_gas: 3,
        to: TxKind::Call(to),
        value,
        ..TxEip1559::default()
    }
}

fn applied(outcome: &Outcome) -> TransactionResult {
    match outcome {
        Outcome::Applied(bytes) => TransactionResult::read(bytes).expect("a result"),
        Outcome::Refused(reason) => panic!("refused: {}", String::from_utf8_lossy(reason)),
    }
}

fn refusal(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Applied(_) => panic!("it was applied"),
        Outcome::Refused(reason) => String::from_utf8_lossy(reason).into_owned(),
    }
}

#[test]
fn terms_that_no_block_meets_are_known_before() {
    let rich = signer(RICH);
    let genesis = Genesis { base_fee: 7, ..genesis() };
    let good = payment(0, Address::repeat_byte(1), U256::from(1));
    let created = TxEip1559 { to: TxKind::Create, gas_limit: 25_000_000, ..good.clone() };
    let data = TxEip1559 { input: vec![0xff; 100].into(), ..good.clone() };
    let cases = [
        (
            TxEip1559 { gas_limit: 20_999, ..good.clone() },
            "intrinsic gas too low: gas 20999, minimum needed 21000",
        ),
        (data.clone(), "intrinsic gas too low: gas 21000, minimum needed 22600"),
        (
            TxEip1559 { gas_limit: 23_000, ..data },
            "intrinsic gas too low: gas 23000, minimum needed 25000",
        ),
        (
            TxEip1559 { max_fee_per_gas: 6, max_priority_fee_per_gas: 0, ..good.clone() },
            "max fee per gas less than block base fee",
        ),
        (
            TxEip1559 { max_priority_fee_per_gas: 11, ..good.clone() },
            "max priority fee per gas higher than max fee per gas",
        ),
        (
            TxEip1559 { gas_limit: TRANSACTION_GAS_MAX + 1, ..good.clone() },
            "exceeds the gas limit of a transaction, 30000000",
        ),
        (
            TxEip1559 { input: vec![0; 49_153].into(), ..created.clone() },
            "max initcode size exceeded",
        ),
    ];
    let mut ledger = Ledger::new(genesis.clone());
    for (transaction, because) in cases {
        let raw = rich.sign(transaction);
        let read = Recovered::read(&raw, genesis.rules(1)).expect("a transaction");
        assert_eq!(read.check_terms(&genesis, 0), Err(because.to_owned()));
        refusal(&ledger.execute(&[raw])[0]);
    }
    for (nonce, transaction) in (0..).zip([good, created]) {
        let raw = rich.sign(TxEip1559 { nonce, ..transaction });
        assert_eq!(
            Recovered::read(&raw, genesis.rules(1))
                .expect("a transaction")
                .check_terms(&genesis, 0),
            Ok(())
        );
        applied(&ledger.execute(&[raw])[0]);
    }
}

#[test]
fn all_three_kinds_of_transaction_pay() {
    let (rich, poor) = (signer(RICH), signer("poor"));
    let mut ledger = Ledger::new(Genesis { fees_to: Address::repeat_byte(9), ..genesis() });
    let to = TxKind::Call(poor.address());
    let legacy = TxLegacy {
        chain_id: Some(CHAIN),
        nonce: 0,
        gas_price: 5,
        gas_limit: 21_000,
        to,
        value: ether(1),
        input: EvmBytes::new(),
    };
    let item = AccessListItem { address: poor.address(), storage_keys: vec![B256::ZERO] };
    let listed = TxEip2930 {
        chain_id: CHAIN,
        nonce: 1,
        gas_price: 5,
        gas_limit: 30_000,
        to,
        value: ether(1),
        access_list: AccessList(vec![item]),
        input: EvmBytes::new(),
    };
    let transactions =
        [rich.sign(legacy), rich.sign(listed), rich.sign(payment(2, poor.address(), ether(1)))];
    let results: Vec<_> = ledger.execute(&transactions).iter().map(applied).collect();
    assert!(results.iter().all(|result| result.success));
    let gas: Vec<_> = results.iter().map(|result| result.gas_used).collect();
    assert_eq!(gas, [21_000, 25_300, 21_000], "2,400 for an address, 1,900 for a slot");
    assert_eq!(ledger.balance(poor.address()), ether(3));
    let fees = U256::from(5 * 21_000 + 5 * 25_300 + 3 * 21_000);
    assert_eq!(ledger.balance(Address::repeat_byte(9)), fees);
    assert_eq!(ledger.balance(rich.address()), ether(997) - fees);
}

#[test]
fn a_contract_is_created_called_and_logs() {
    let rich = signer(RICH);
    let mut ledger = Ledger::new(genesis());
    let creation = TxEip1559 {
        gas_limit: 3_000_000,
        to: TxKind::Create,
        input: mix::token_creation(),
        ..payment(0, Address::ZERO, U256::ZERO)
    };
    let created = applied(&ledger.execute(&[rich.sign(creation)])[0]);
    let token = created.created.expect("a contract");
    assert_eq!(token, rich.address().create(0));
    let code: EvmBytes = ledger.ask(&Query::Code(token)).expect("code");
    assert_eq!(code, mix::Artefact::token().deployed_bytecode);

    let to = Address::repeat_byte(5);
    let transfer = TxEip1559 {
        gas_limit: 100_000,
        input: mix::transfer(to, U256::from(42)),
        ..payment(1, token, U256::ZERO)
    };
    let result = applied(&ledger.execute(&[rich.sign(transfer)])[0]);
    assert!(result.success);
    let of = Call {
        to: Some(token),
        data: mix::call("balanceOf(address)", &[to.into_word()]),
        ..Call::default()
    };
    let called: Called = ledger.ask(&Query::Call(run(of, NEXT))).expect("a call");
    let Called::Success { output, .. } = called else { panic!("{called:?}") };
    assert_eq!(U256::from_be_slice(&output), U256::from(42));

    let transfers = keccak256("Transfer(address,address,uint256)");
    let filter = LogFilter {
        heights: (0, 100),
        addresses: vec![token],
        topics: vec![vec![transfers], Vec::new(), vec![to.into_word()]],
    };
    let found: Vec<FoundLog> = ledger.ask(&Query::Logs(filter.clone())).expect("logs");
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].height, found[0].index, found[0].transaction), (2, 0, result.transaction));
    let anywhere = LogFilter { addresses: Vec::new(), ..filter.clone() };
    assert_eq!(ledger.ask::<Vec<FoundLog>>(&Query::Logs(anywhere)).expect("logs"), found);
    let elsewhere = LogFilter { addresses: vec![to], ..filter };
    assert!(ledger.ask::<Vec<FoundLog>>(&Query::Logs(elsewhere)).expect("logs").is_empty());
}

#[test]
fn what_is_invalid_is_refused_with_its_reason_and_changes_nothing() {
    let (rich, poor) = (signer(RICH), signer("poor"));
    let mut ledger = Ledger::new(genesis());
    let good = payment(0, poor.address(), ether(1));
    let transactions = [
        Bytes::from("no transaction"),
        rich.sign(TxEip1559 { chain_id: CHAIN + 1, ..good.clone() }),
        rich.sign(TxEip1559 { nonce: 1, ..good.clone() }),
        rich.sign(TxEip1559 { gas_limit: 20_000, ..good.clone() }),
        rich.sign(TxEip1559 { gas_limit: TRANSACTION_GAS_MAX + 1, ..good.clone() }),
        rich.sign(TxEip1559 { value: ether(2_000), ..good.clone() }),
        rich.sign(good.clone()),
        rich.sign(good),
    ];
    let outcomes = ledger.execute(&transactions);
    let reasons: Vec<_> = outcomes[..6].iter().chain(&outcomes[7..]).map(refusal).collect();
    let expected = [
        "this is no transaction",
        "invalid chain id: the transaction names 1338, this chain is 1337",
        "nonce 1 too high, expected 0",
        "call gas cost (21000) exceeds the gas limit (20000)",
        "transaction gas limit (30000001) is greater than the cap (30000000)",
        "lack of funds",
        "nonce 0 too low, expected 1",
    ];
    for (reason, expected) in reasons.iter().zip(expected) {
        assert!(reason.starts_with(expected), "{reason:?} does not say {expected:?}");
    }
    assert!(applied(&outcomes[6]).success);
    assert_eq!(ledger.balance(poor.address()), ether(1));
    let block: Option<FoundBlock> =
        ledger.ask(&Query::Block { at: BlockAt::Height(1), transactions: true }).expect("a block");
    assert_eq!(block.expect("there").transactions.len(), 1, "what is refused is in no block");
}

#[test]
fn a_block_holds_no_more_gas_than_its_limit() {
    let rich = signer(RICH);
    let limit = TRANSACTION_GAS_MAX;
    let mut ledger = Ledger::new(Genesis { gas_limit: limit, ..genesis() });
    let greedy = |nonce| TxEip1559 {
        gas_limit: limit - 20_000,
        ..payment(nonce, rich.address(), U256::ZERO)
    };
    let outcomes = ledger.execute(&[rich.sign(greedy(0)), rich.sign(greedy(1))]);
    assert!(
        applied(&outcomes[0]).success,
        "what it may use counts, not what those before might have"
    );
    assert_eq!(refusal(&outcomes[1]), "exceeds block gas limit");
    assert!(
        applied(&ledger.execute(&[rich.sign(greedy(1))])[0]).success,
        "there is room in the next"
    );
}

#[test]
fn a_transaction_has_one_form() {
    let rich = signer(RICH);
    let good = rich.sign(payment(0, rich.address(), U256::ZERO));
    // A length may not be longer than it need be, and nothing may be around it or behind.
    assert_eq!(good[1], 0xf8, "a list whose length takes a byte");
    let longer = [&[2, 0xf9, 0][..], &good[2..]].concat();
    let followed = [&good[..], &[0]].concat();
    let wrapped = [&[0xb8, u8::try_from(good.len()).expect("short")][..], &good].concat();
    for other in [longer, followed, wrapped] {
        let outcomes = Ledger::new(genesis()).execute(&[other.into()]);
        assert!(refusal(&outcomes[0]).starts_with("this is no transaction"), "{outcomes:?}");
    }
    assert!(applied(&Ledger::new(genesis()).execute(&[good])[0]).success);
}

#[test]
fn another_chains_transaction_is_refused() {
    let rich = signer(RICH);
    let foreign = TxEip1559 { chain_id: CHAIN + 1, ..payment(0, rich.address(), U256::ZERO) };
    let outcomes = Ledger::new(genesis()).execute(&[rich.sign(foreign)]);
    assert!(refusal(&outcomes[0]).starts_with("invalid chain id"));
}

#[test]
fn a_transaction_is_executed_once() {
    let (rich, poor) = (signer(RICH), signer("poor"));
    let mut ledger = Ledger::new(genesis());
    let payment = rich.sign(payment(0, poor.address(), ether(1)));
    ledger.execute(&[payment.clone(), payment.clone()]);
    ledger.execute(&[payment]);
    assert_eq!(ledger.balance(poor.address()), ether(1));
}

#[test]
fn a_proof_of_another_state_proves_nothing() {
    let rich = signer(RICH);
    let mut ledger = Ledger::new(genesis());
    ledger.execute(&[rich.sign(payment(0, Address::repeat_byte(1), ether(1)))]);
    let before = ledger.state();
    ledger.execute(&[rich.sign(payment(1, Address::repeat_byte(1), ether(1)))]);
    let of = ProofOf { address: Address::repeat_byte(1), slots: vec![U256::from(3)], height: None };
    let asked = ledger.executor.answer(&of.encode()).expect("asks").expect("a height");
    let proven = asked.answer.expect("an answer");
    let shown = verify_account(ledger.state(), &of, &proven).expect("holds");
    assert_eq!(shown.account.expect("an account").balance, ether(2));
    assert_eq!(shown.slots[0].0, U256::ZERO);
    assert_eq!(verify_account(before, &of, &proven), Err(ProofFailure::OtherState));
    let other = ProofOf { address: Address::repeat_byte(2), ..of };
    assert!(verify_account(ledger.state(), &other, &proven).is_err());
}

#[test]
fn mutants_are_noticed() {
    assert_noticed(Mutant::EvmUnboundedBlock, a_block_holds_no_more_gas_than_its_limit);
    assert_noticed(Mutant::EvmAnyChain, another_chains_transaction_is_refused);
    let unprotected = an_unprotected_transaction_is_taken_where_the_genesis_says_so;
    assert_noticed(Mutant::EvmAnyChain, unprotected);
    assert_noticed(Mutant::EvmAnyNonce, a_transaction_is_executed_once);
    assert_noticed(Mutant::EvmReadOfAnother, senders_recovered_ahead_are_those_recovered_in_time);
    assert_noticed(Mutant::EvmTrustProof, a_proof_of_another_state_proves_nothing);
}

/// What was read ahead, in whatever order, changes no outcome.
#[test]
fn senders_recovered_ahead_are_those_recovered_in_time() {
    let mut mix = Mix::new(CHAIN, Shape::Mixed, 10, 1);
    let genesis = mix.genesis();
    let transactions: Vec<Bytes> = (0..200).map(|_| mix.next_transaction()).collect();
    let mut plain = Ledger::new(genesis.clone());
    let service = Evm::new(genesis);
    let preparation = service.preparation().expect("senders");
    transactions.iter().rev().for_each(|bytes| preparation.prepare(bytes));
    preparation.prepare(&Bytes::from("no transaction"));
    let (executor, _) =
        Executor::open(Box::new(MemoryStore::new()), Box::new(service), ExecutorConfig::default())
            .expect("opens");
    let mut ahead = Ledger { executor, client: IdentitySecret::from_seed([7; 32]), sequence: 0 };
    let outcomes = plain.execute(&transactions);
    assert_eq!(ahead.execute(&transactions), outcomes);
    assert_eq!(ahead.state(), plain.state());
    let failed: Vec<_> = outcomes.iter().map(applied).filter(|result| !result.success).collect();
    assert!(failed.is_empty(), "the mix fails: {failed:?}");
}

/// Ethereum's own libraries agree with the header: its hash, and the roots over what was stored.
#[test]
fn a_blocks_header_covers_its_transactions_and_receipts() {
    let mut mix = Mix::new(CHAIN, Shape::Mixed, 10, 2);
    let mut ledger = Ledger::new(mix.genesis());
    let transactions: Vec<Bytes> = (0..150).map(|_| mix.next_transaction()).collect();
    ledger.execute_at(5_432, &transactions);
    ledger.execute_at(6_000, &[mix.next_transaction()]);
    let mut block = |height| {
        let query = Query::Block { at: BlockAt::Height(height), transactions: true };
        ledger.ask::<Option<FoundBlock>>(&query).expect("a block").expect("there")
    };
    let FoundBlock { block: first, transactions: stored } = block(1);
    let header = first.header().expect("a header");
    assert_eq!(header.hash_slow(), first.hash);
    assert_eq!((header.timestamp, header.number), (5, 1));
    assert_eq!(header.parent_hash, block(0).block.hash);
    assert_eq!(block(2).block.header().expect("a header").parent_hash, first.hash);
    assert_eq!(header.gas_used, stored.last().expect("150").cumulative_gas);
    let envelopes: Vec<_> = stored.iter().map(|tx| tx.envelope().expect("decodes")).collect();
    let root = alloy_consensus::proofs::calculate_transaction_root(&envelopes);
    assert_eq!(header.transactions_root, root);
    let receipts: Vec<_> =
        stored.iter().map(|tx| alloy_consensus::ReceiptEnvelope::Eip1559(tx.receipt())).collect();
    assert_eq!(header.receipts_root, alloy_consensus::proofs::calculate_receipt_root(&receipts));
    let logs: Vec<_> = stored.iter().flat_map(|tx| tx.receipt().receipt.logs).collect();
    assert_eq!(header.logs_bloom, alloy_primitives::logs_bloom(&logs));
    let hash = stored[140].hash;
    let found: Option<FoundTransaction> = ledger.ask(&Query::Transaction(hash)).expect("asks");
    let found = found.expect("there");
    assert_eq!(
        (found.location, found.transaction),
        (TransactionLocation { height: 1, index: 140 }, stored[140].clone())
    );
}

#[test]
fn a_call_says_why_it_fails_and_an_estimate_is_enough() {
    let mut mix = Mix::new(CHAIN, Shape::Transfers, 3, 3);
    let mut ledger = Ledger::new(mix.genesis());
    ledger.execute(&[mix.next_transaction()]);
    let call = Call {
        from: Address::repeat_byte(1),
        to: Some(mix::TOKEN),
        data: mix::transfer(Address::repeat_byte(2), U256::from(1)),
        ..Call::default()
    };
    let Called::Reverted { output } =
        ledger.ask(&Query::Call(run(call.clone(), NEXT))).expect("a call")
    else {
        panic!("who has nothing pays")
    };
    let selector = keccak256("InsufficientBalance(address,uint256,uint256)");
    assert_eq!(output[..4], selector[..4]);
    let estimated: Result<u64, Called> =
        ledger.ask(&Query::Estimate(run(call.clone(), NEXT))).expect("an estimate");
    assert_eq!(estimated, Err(Called::Reverted { output }));

    let holder = Signer::derived("quorate mix 3 0").0.address();
    let call = Call { from: holder, ..call };
    let estimate: Result<u64, Called> =
        ledger.ask(&Query::Estimate(run(call.clone(), NEXT))).expect("an estimate");
    let estimate = estimate.expect("it succeeds");
    let listed = Call { access_list: vec![(mix::TOKEN, vec![B256::ZERO])], ..call.clone() };
    let called: Called = ledger.ask(&Query::Call(run(listed, NEXT))).expect("a call");
    assert!(matches!(called, Called::Success { .. }), "{called:?}");
    let with = |gas| Call { gas: Some(gas), ..call.clone() };
    let called: Called = ledger.ask(&Query::Call(run(with(estimate), NEXT))).expect("a call");
    assert!(matches!(called, Called::Success { .. }), "{called:?}");
    let unbounded: Called = ledger.ask(&Query::Call(run(with(u64::MAX), NEXT))).expect("a call");
    assert!(matches!(unbounded, Called::Success { .. }), "{unbounded:?}");
    let called: Called =
        ledger.ask(&Query::Call(run(with(estimate * 9 / 10), NEXT))).expect("a call");
    assert!(!matches!(called, Called::Success { .. }), "the estimate is far too high");
}

/// A ledger with a contract of this code, called once at this time.
fn called_once(code: &'static [u8], at_ms: u64) -> (Ledger, Call) {
    let contract = Address::repeat_byte(0xc0);
    let mut genesis = genesis();
    let account = alloy_genesis::GenesisAccount::default().with_code(Some(code.into()));
    genesis.accounts.insert(contract, account);
    let mut ledger = Ledger::new(genesis);
    let call = TxEip1559 { gas_limit: 100_000, ..payment(0, contract, U256::ZERO) };
    let outcomes = ledger.execute_at(at_ms, &[signer(RICH).sign(call)]);
    assert!(applied(&outcomes[0]).success);
    let call = Call { from: signer(RICH).address(), to: Some(contract), ..Call::default() };
    (ledger, call)
}

#[test]
fn a_call_sees_the_block_that_would_come_now_or_the_one_that_it_names() {
    // (TIMESTAMP << 64) + NUMBER
    let code = &[0x42, 0x60, 64, 0x1b, 0x43, 0x01, 0x5f, 0x52, 0x60, 32, 0x5f, 0xf3];
    let (mut ledger, call) = called_once(code, 50_000);
    let mut seen = |block| match ledger.ask(&Query::Call(run(call.clone(), block))).expect("a call")
    {
        Called::Success { output, .. } => {
            let words = U256::from_be_slice(&output).into_limbs();
            (words[1], words[0])
        }
        called => panic!("{called:?}"),
    };
    assert_eq!(seen(CallBlock::Next(110_999)), (110, 2));
    assert_eq!(seen(CallBlock::Next(7_000)), (50, 2), "no block is older than its parent");
    assert_eq!(seen(CallBlock::Newest), (50, 1));
}

/// A pair of Uniswap's second version is such a contract: it adds up prices once a second.
#[test]
fn an_estimate_is_enough_for_who_comes_seconds_later() {
    // if (TIMESTAMP != slot 0) slot 0 = TIMESTAMP
    let code = &[0x42, 0x5f, 0x54, 0x14, 0x60, 11, 0x57, 0x42, 0x5f, 0x55, 0x00, 0x5b, 0x00];
    let (mut ledger, call) = called_once(code, 50_000);
    let mut estimate = |block| {
        let query = Query::Estimate(run(call.clone(), block));
        ledger.ask::<Result<u64, Called>>(&query).expect("an estimate").expect("it succeeds")
    };
    let (at_once, in_its_own) = (estimate(CallBlock::Next(50_000)), estimate(CallBlock::Newest));
    assert!(at_once > in_its_own + 2_000, "{at_once} of which {in_its_own} are for the second");
    let with = Call { gas: Some(at_once), ..call.clone() };
    for at_ms in [50_000, 51_000, 60_000] {
        let query = Query::Call(run(with.clone(), CallBlock::Next(at_ms)));
        let called: Called = ledger.ask(&query).expect("a call");
        assert!(matches!(called, Called::Success { .. }), "at {at_ms}: {called:?}");
    }
}

#[test]
fn a_plain_transfer_needs_what_it_uses() {
    let mut ledger = Ledger::new(genesis());
    let call = Call {
        from: signer(RICH).address(),
        to: Some(Address::repeat_byte(9)),
        value: U256::ONE,
        ..Call::default()
    };
    let mut ask = |call: Call| {
        ledger.ask::<Result<u64, Called>>(&Query::Estimate(run(call, NEXT))).expect("an estimate")
    };
    assert_eq!(ask(call.clone()), Ok(21_000));
    let listed = Call { access_list: vec![(mix::TOKEN, Vec::new())], ..call.clone() };
    assert!(ask(listed).expect("it succeeds") > 21_000);
    let poor = Call { from: Address::repeat_byte(8), ..call };
    let Err(Called::Invalid { reason }) = ask(poor) else { panic!("who has nothing pays") };
    assert!(reason.starts_with("insufficient funds for gas * price + value"), "{reason}");
}

/// What a call names as its price is what the machine shows, asks for and takes.
#[test]
fn a_call_with_a_price_pays_it() {
    // GASPRICE, and BALANCE of the caller
    let code = &[0x3a, 0x5f, 0x52, 0x33, 0x31, 0x60, 32, 0x52, 0x60, 64, 0x5f, 0xf3];
    let contract = Address::repeat_byte(0xc0);
    let mut genesis = Genesis { base_fee: 7, ..genesis() };
    let account = alloy_genesis::GenesisAccount::default().with_code(Some(code[..].into()));
    genesis.accounts.insert(contract, account);
    let mut ledger = Ledger::new(genesis);
    let rich = Call { from: signer(RICH).address(), gas: Some(100_000), ..call_of(contract) };
    let mut ask = |call: Call| ledger.ask::<Called>(&Query::Call(run(call, NEXT))).expect("a call");
    let seen = |called: Called| match called {
        Called::Success { output, .. } => {
            (U256::from_be_slice(&output[..32]), U256::from_be_slice(&output[32..]))
        }
        called => panic!("{called:?}"),
    };
    let why = |called: Called| match called {
        Called::Invalid { reason } => reason,
        called => panic!("{called:?}"),
    };
    let all = ether(1_000);
    assert_eq!(seen(ask(rich.clone())), (U256::ZERO, all), "without a price nothing is paid");
    let legacy = Call { max_fee: 9, ..rich.clone() };
    assert_eq!(seen(ask(legacy.clone())), (U256::from(9), all - U256::from(900_000)));
    let fees = Call { max_fee: 20, priority_fee: Some(2), ..rich.clone() };
    assert_eq!(seen(ask(fees.clone())), (U256::from(9), all - U256::from(900_000)));
    assert_eq!(
        why(ask(Call { max_fee: 6, ..rich.clone() })),
        "max fee per gas less than block base fee"
    );
    let tip = Call { max_fee: 8, priority_fee: Some(9), ..rich.clone() };
    assert_eq!(why(ask(tip)), "max priority fee per gas higher than max fee per gas");
    let nobody = Call { from: Address::repeat_byte(8), ..legacy };
    for gas in [None, Some(100_000)] {
        let refused = why(ask(Call { gas, ..nobody.clone() }));
        assert!(refused.starts_with("insufficient funds for gas * price + value"), "{refused}");
    }
    // Unless it names its gas, it has what its sender can pay for.
    let price = all.to::<u128>() / 50_000;
    let dear = Call { max_fee: price, gas: None, ..rich };
    assert_eq!(seen(ask(dear.clone())).0, U256::from(price));

    let mut estimate = |call: Call| {
        ledger.ask::<Result<u64, Called>>(&Query::Estimate(run(call, NEXT))).expect("an estimate")
    };
    let free = estimate(Call { max_fee: 0, ..dear.clone() }).expect("it succeeds");
    assert_eq!(estimate(dear.clone()), Ok(free));
    assert_eq!(estimate(Call { gas: Some(30_000_000), ..dear.clone() }), Ok(free));
    for (from, value) in
        [(nobody.from, U256::ZERO), (dear.from, all), (dear.from, all * U256::from(2))]
    {
        let reason = "insufficient funds for transfer".to_owned();
        assert_eq!(estimate(Call { from, value, ..dear.clone() }), Err(Called::Invalid { reason }));
    }
    let reason = "gas required exceeds allowance (21010)".to_owned();
    let few = Call { gas: Some(21_010), max_fee: 0, ..dear.clone() };
    assert_eq!(estimate(few), Err(Called::Invalid { reason }), "and nothing is paid");
    // Too little to run it, and to begin.
    for payable in [21_010, 20_000] {
        let price = all.to::<u128>() / payable;
        let reason = format!("gas required exceeds allowance ({payable})");
        let dearer = Call { max_fee: price, ..dear.clone() };
        assert_eq!(estimate(dearer), Err(Called::Invalid { reason }));
    }
}

/// A thousand large logs take as much memory as a hundred thousand small ones.
#[test]
fn an_answer_about_logs_is_bounded_in_bytes() {
    const BYTES: u32 = 64 * 1024;
    // LOG0(0, 64 KiB)
    let code = &[0x62, 0x01, 0x00, 0x00, 0x5f, 0xa0];
    let contract = Address::repeat_byte(0xc0);
    let mut genesis = genesis();
    let account = alloy_genesis::GenesisAccount::default().with_code(Some(code[..].into()));
    genesis.accounts.insert(contract, account);
    let mut ledger = Ledger::new(genesis);
    let fits = LOGS_BYTES_MAX as u64 / u64::from(BYTES + 256);
    let logging = |nonce| {
        let gas_limit = 1_000_000;
        signer(RICH).sign(TxEip1559 { gas_limit, ..payment(nonce, contract, U256::ZERO) })
    };
    let find = |ledger: &mut Ledger| {
        let filter = LogFilter { heights: (0, 300), ..LogFilter::default() };
        ledger.ask::<Vec<FoundLog>>(&Query::Logs(filter))
    };
    for nonce in 0..fits {
        assert!(applied(&ledger.execute(&[logging(nonce)])[0]).success);
    }
    assert_eq!(find(&mut ledger).expect("logs").len() as u64, fits);
    ledger.execute(&[logging(fits)]);
    assert_eq!(find(&mut ledger), Err("query returned more than 4194304 bytes".into()));

    // One block that has more is read in pages.
    let all: Vec<_> = (fits + 1..=2 * fits + 1).map(logging).collect();
    ledger.execute(&all);
    let (mut from, mut indices) = (Some(0), Vec::new());
    while let Some(first) = from {
        let filter = LogFilter { heights: (fits + 2, fits + 2), ..LogFilter::default() };
        let query = Query::LogPage { filter, from: first };
        let page: LogPage = ledger.ask(&query).expect("a page");
        assert!(page.logs.len() as u64 <= fits);
        indices.extend(page.logs.iter().map(|log| u64::from(log.index)));
        from = page.next.map(|(height, index)| {
            assert_eq!(height, fits + 2);
            index
        });
    }
    assert_eq!(indices, (0..=fits).collect::<Vec<_>>());
    // And so are many blocks, each log once.
    let (mut next, mut places) = (Some((0, 0)), Vec::new());
    while let Some((height, from)) = next {
        let filter = LogFilter { heights: (height, 1_000), ..LogFilter::default() };
        let page: LogPage = ledger.ask(&Query::LogPage { filter, from }).expect("a page");
        places.extend(page.logs.iter().map(|log| (log.height, log.index)));
        next = page.next;
    }
    let in_blocks = (2..=fits + 1).map(|height| (height, 0));
    let in_last = (0..=fits as u32).map(|index| (fits + 2, index));
    places.retain(|(height, _)| *height > 1);
    assert_eq!(places, in_blocks.chain(in_last).collect::<Vec<_>>());
}

#[test]
fn old_transactions_are_forgotten_and_headers_are_not() {
    let mut mix = Mix::new(CHAIN, Shape::Transfers, 3, 4);
    let mut ledger = Ledger::new(Genesis { history_blocks: 256, ..mix.genesis() });
    let first = mix.next_transaction();
    ledger.execute(std::slice::from_ref(&first));
    let hash = keccak256(&first);
    let kept = |ledger: &mut Ledger| {
        ledger.ask::<Option<FoundTransaction>>(&Query::Transaction(hash)).expect("asks").is_some()
    };
    for _ in 0..255 {
        ledger.execute(&[Bytes::from("nothing")]);
    }
    assert!(kept(&mut ledger));
    ledger.execute(&[Bytes::from("nothing")]);
    assert!(!kept(&mut ledger));
    let query = Query::Block { at: BlockAt::Height(1), transactions: true };
    let block = ledger.ask::<Option<FoundBlock>>(&query).expect("asks").expect("there");
    assert_eq!((block.block.transactions, block.transactions.len()), (1, 0));
    let filter = LogFilter { heights: (0, 300), addresses: vec![mix::TOKEN], topics: Vec::new() };
    assert!(ledger.ask::<Vec<FoundLog>>(&Query::Logs(filter)).expect("logs").is_empty());
    assert_eq!(ledger.ask::<Head>(&Query::Head).expect("asks").oldest, 2);
}

#[test]
fn a_restart_finds_the_same_state() {
    let store = MemoryStore::new();
    let mut mix = Mix::new(CHAIN, Shape::Mixed, 5, 5);
    let genesis = mix.genesis();
    let mut ledger = Ledger::over(Box::new(store.clone()), genesis.clone());
    let transactions: Vec<Bytes> = (0..100).map(|_| mix.next_transaction()).collect();
    ledger.execute(&transactions);
    let state = ledger.state();
    drop(ledger);
    let mut again = Ledger::over(Box::new(store), genesis);
    assert_eq!(again.state(), state);
    assert!(applied(&again.execute(&[mix.next_transaction()])[0]).success);
}

#[test]
fn a_genesis_file_is_read_as_ethereums_tools_write_it() {
    let text = r#"{
        "config": { "chainId": 4321, "historyBlocks": 1000, "londonBlock": 0 },
        "gasLimit": "0x2faf080", "difficulty": "0x0", "timestamp": "0x10", "coinbase": "0x0000000000000000000000000000000000000009",
        "alloc": { "f39fd6e51aad88f6f4ce6ab8827279cfffb92266": { "balance": "0x56bc75e2d63100000" } }
    }"#;
    let genesis = Genesis::parse(text).expect("reads");
    assert_eq!((genesis.chain_id, genesis.history_blocks, genesis.timestamp), (4_321, 1_000, 16));
    assert_eq!(genesis.accounts.values().next().expect("one").balance, ether(100));
    assert_eq!(Genesis::parse(&genesis.to_json()).expect("reads"), genesis);
    for (from, to, says) in [
        ("0x2faf080", "0x10", "gasLimit must be at least"),
        ("4321", "0", "chainId must be at least 1"),
        ("1000", "10", "historyBlocks must be at least 256"),
        ("\"config\"", "\"konfig\"", "config names no chainId"),
        ("\"0x10\"", "\"soon\"", "this is no genesis"),
        ("\"0x10\"", "\"0xffffffffffffffff\"", "timestamp must be in seconds"),
        ("100000\" }", "100000\", \"code\": \"0xef\" }", "code must not begin with 0xef"),
        ("\"londonBlock\": 0", "\"londonBlock\": 5", "must all be at block 0"),
        ("\"londonBlock\": 0", "\"cancunTime\": 17", "must not be after its timestamp"),
        (
            "100000\" }",
            "100000\", \"storage\": { \"0x01\": \"0x01\" } }",
            "must have code or a nonce (EIP-7610)",
        ),
    ] {
        let error = Genesis::parse(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(says), "{error}");
    }
}
