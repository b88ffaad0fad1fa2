//! Blocks that are not, beside those that come of the same transactions.

use super::*;
use alloy_eips::eip7702::Authorization;

/// Returns the address that it runs for.
const WHO: &[u8] = &[0x30, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];

fn simulated(calls: Vec<SimulatedCall>) -> SimulatedBlock {
    SimulatedBlock { overrides: Overrides::default(), calls }
}

fn ask(
    ledger: &mut Ledger,
    simulated: Simulated,
) -> Result<Vec<SimulationResult>, SimulationFailure> {
    ledger.ask(&Query::Simulate(simulated)).expect("an answer")
}

fn call_from(from: Address, to: Address, data: EvmBytes) -> SimulatedCall {
    let call = Call { from, data, ..call_of(to) };
    SimulatedCall { call: Call { priority_fee: Some(0), ..call }, nonce: None }
}

/// What is simulated in blocks is what comes of blocks: gas, logs, roots of receipts.
#[test]
fn a_simulation_is_what_would_come() {
    let mut mix = Mix::new(CHAIN, Shape::Transfers, 5, 9);
    let genesis = mix.genesis();
    let blocks: Vec<Vec<Bytes>> =
        (0..3).map(|_| (0..4).map(|_| mix.next_transaction()).collect()).collect();
    let rules = genesis.rules(1);
    let call = |raw: &Bytes| {
        use alloy_consensus::Transaction as _;
        let read = Recovered::read(raw, rules).expect("a transaction");
        let tx = &read.envelope;
        let call = Call {
            from: read.sender,
            to: tx.to(),
            gas: Some(tx.gas_limit()),
            value: tx.value(),
            data: tx.input().clone(),
            ..call_of(Address::ZERO)
        };
        let call = Call { priority_fee: Some(0), ..call };
        SimulatedCall { call, nonce: Some(tx.nonce()) }
    };
    let simulation = Simulated {
        blocks: blocks.iter().map(|block| simulated(block.iter().map(call).collect())).collect(),
        ..Simulated::default()
    };
    let mut ledger = Ledger::new(genesis);
    let results = ask(&mut ledger, simulation).expect("simulates");
    assert_eq!(results.len(), blocks.len());
    for (block, result) in blocks.iter().zip(&results) {
        let outcomes = ledger.execute(block);
        let counts = [outcomes.len(), result.calls.len(), result.found.transactions.len()];
        assert_eq!(counts, [block.len(); 3]);
        for ((outcome, call), stored) in
            outcomes.iter().zip(&result.calls).zip(&result.found.transactions)
        {
            assert_eq!(applied(outcome).gas_used, call.gas_used);
            assert_eq!(stored.gas_used, call.gas_used);
            assert!(matches!(call.called, Called::Success { .. }), "{call:?}");
        }
        let height = result.found.block.header().expect("a header").number;
        let query = Query::Block { at: BlockAt::Height(height), transactions: true };
        let real: Option<FoundBlock> = ledger.ask(&query).expect("a block");
        let real = real.expect("it was executed");
        let logs = |found: &FoundBlock| -> Vec<StoredLog> {
            found.transactions.iter().flat_map(|stored| stored.logs.clone()).collect()
        };
        assert_eq!(logs(&result.found), logs(&real));
        let headers = [&result.found, &real].map(|found| found.block.header().expect("a header"));
        assert_eq!(headers[0].receipts_root, headers[1].receipts_root);
        assert_eq!(headers[0].logs_bloom, headers[1].logs_bloom);
    }
}

#[test]
fn blocks_follow_one_another_and_gaps_are_filled() {
    // NUMBER, TIMESTAMP and the hash of the block before.
    const SEES: &[u8] = &[
        0x43, 0x5f, 0x52, 0x42, 0x60, 0x20, 0x52, 0x60, 0x01, 0x43, 0x03, 0x40, 0x60, 0x40, 0x52,
        0x60, 0x60, 0x5f, 0xf3,
    ];
    let at = Address::repeat_byte(0xc0);
    let mut genesis = genesis();
    let code = alloy_genesis::GenesisAccount::default().with_code(Some(SEES.into()));
    genesis.accounts.insert(at, code);
    let mut ledger = Ledger::new(genesis);
    ledger.execute_at(5_000, &[signer(RICH).sign(payment(0, Address::ZERO, U256::ZERO))]);
    let look = || call_from(Address::ZERO, at, EvmBytes::new());
    let later = BlockOverride { number: Some(U256::from(5)), ..BlockOverride::default() };
    let blocks = vec![
        simulated(vec![look()]),
        SimulatedBlock {
            overrides: Overrides { block: later, ..Overrides::default() },
            calls: vec![look()],
        },
    ];
    let results =
        ask(&mut ledger, Simulated { blocks, ..Simulated::default() }).expect("simulates");
    let headers: Vec<_> =
        results.iter().map(|result| result.found.block.header().expect("a header")).collect();
    let numbers: Vec<u64> = headers.iter().map(|header| header.number).collect();
    assert_eq!(numbers, [2, 3, 4, 5]);
    assert!(headers.windows(2).all(|two| two[1].parent_hash == two[0].hash_slow()));
    let seen = |index: usize| match &results[index].calls[0].called {
        Called::Success { output, .. } => output.clone(),
        called => panic!("{called:?}"),
    };
    let of = |number: u64, time: u64, hash: B256| {
        let words = [U256::from(number), U256::from(time), hash.into()];
        words.map(|word: U256| word.to_be_bytes::<32>()).concat()
    };
    assert_eq!(seen(0)[..], of(2, 5 + 12, headers[0].parent_hash));
    assert_eq!(seen(3)[..], of(5, 5 + 4 * 12, headers[2].hash_slow()));
}

#[test]
fn what_a_block_takes_for_granted_stays_for_those_after_it() {
    let (poor, to) = (Address::repeat_byte(0xaa), Address::repeat_byte(0xbb));
    let mut ledger = Ledger::new(genesis());
    let mut pay = call_from(poor, to, EvmBytes::new());
    pay.call.value = ether(1);
    let with = AccountOverride { balance: Some(ether(3)), ..AccountOverride::default() };
    let first = SimulatedBlock {
        overrides: Overrides { accounts: vec![(poor, with)], ..Overrides::default() },
        calls: vec![pay.clone()],
    };
    let of = |second: Vec<SimulatedCall>| Simulated {
        blocks: vec![first.clone(), simulated(second)],
        trace_transfers: true,
        ..Simulated::default()
    };
    let results = ask(&mut ledger, of(vec![pay.clone(), pay.clone()])).expect("three of three");
    let logs = |result: &SimulationResult| -> usize {
        result.calls.iter().map(|call| call.logs.len()).sum()
    };
    assert_eq!(results.iter().map(logs).collect::<Vec<_>>(), [1, 2]);
    let bloom = results[0].found.block.header().expect("a header").logs_bloom;
    assert!(bloom.is_zero(), "the machine logged nothing");
    let log = &results[0].calls[0].logs[0];
    assert_eq!(log.address, Address::repeat_byte(0xee));
    assert_eq!(log.topics[1..], [poor.into_word(), to.into_word()]);
    let failure = ask(&mut ledger, of(vec![pay.clone(); 3])).expect_err("it has no fourth");
    assert_eq!(failure.code, -38_014, "{failure:?}");
    let account: Account = ledger.ask(&Query::Account(to)).expect("an account");
    assert_eq!(account, Account::default(), "nothing of it is kept");
}

/// Transfers that came about are logged, of whatever kind, and no others.
#[test]
fn transfers_of_frames_that_fail_are_not_logged() {
    /// Pays 1 wei to the account whose address repeats this byte, by this instruction.
    fn pays(to: u8, instruction: u8) -> Vec<u8> {
        let zeroes = [0x5f; 4];
        [&zeroes[..], &[0x60, 1, 0x73], &[to; 20], &[0x5a, instruction, 0]].concat()
    }
    const CALL: u8 = 0xf1;
    const CALLCODE: u8 = 0xf2;
    let at = |byte| Address::repeat_byte(byte);
    let mut genesis = genesis();
    let destroys = [&[0x73][..], &[0x0d; 20], &[0xff]].concat();
    for (byte, code) in [
        (0xa1, pays(0xb1, CALL)),
        (0xa2, pays(0x0b, CALL)),
        (0xa3, pays(0x0c, CALLCODE)),
        (0xa4, destroys),
        (0xb1, vec![0x5f, 0x5f, 0xfd]),
    ] {
        let account = alloy_genesis::GenesisAccount::default()
            .with_code(Some(code.into()))
            .with_balance(U256::from(9));
        genesis.accounts.insert(at(byte), account);
    }
    let mut ledger = Ledger::new(genesis);
    let calls = [0xa1, 0xa2, 0xa3, 0xa4].map(|to| call_from(at(0xee), at(to), EvmBytes::new()));
    let blocks = vec![simulated(calls.to_vec())];
    let simulation = Simulated { blocks, trace_transfers: true, ..Simulated::default() };
    let results = ask(&mut ledger, simulation).expect("simulates");
    let ends = results[0].calls.iter().map(|call| -> Vec<_> {
        assert!(matches!(call.called, Called::Success { .. }), "{call:?}");
        call.logs.iter().map(|log| (log.topics[1], log.topics[2])).collect()
    });
    let of = |from, to| vec![(at(from).into_word(), at(to).into_word())];
    let expected = [Vec::new(), of(0xa2, 0x0b), Vec::new(), of(0xa4, 0x0d)];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[test]
fn what_a_block_is_told_its_gas_limit_stays() {
    let mut ledger = Ledger::new(genesis());
    let small = BlockOverride {
        gas_limit: Some(50_000),
        coinbase: Some(Address::repeat_byte(7)),
        ..BlockOverride::default()
    };
    let overrides = Overrides { block: small, ..Overrides::default() };
    let first = SimulatedBlock { overrides, calls: Vec::new() };
    let blocks = vec![first, simulated(Vec::new())];
    let results = ask(&mut ledger, Simulated { blocks, ..Simulated::default() });
    for result in results.expect("simulates") {
        let header = result.found.block.header().expect("a header");
        let told = (header.gas_limit, header.beneficiary, header.mix_hash);
        assert_eq!(told, (50_000, Address::repeat_byte(7), B256::ZERO));
    }
}

#[test]
fn what_cannot_be_simulated_says_why() {
    let rich = signer(RICH).address();
    let mut ledger = Ledger::new(genesis());
    ledger.execute_at(5_000, &[signer(RICH).sign(payment(0, Address::ZERO, U256::ZERO))]);
    let mut code = |overrides: BlockOverride, calls: Vec<SimulatedCall>, validation: bool| {
        let overrides = Overrides { block: overrides, ..Overrides::default() };
        let blocks = vec![SimulatedBlock { overrides, calls }];
        let simulation = Simulated { blocks, validation, ..Simulated::default() };
        ask(&mut ledger, simulation).map(drop).map_err(|failure| failure.code)
    };
    let plain = BlockOverride::default;
    let call = |nonce: Option<u64>, gas: Option<u64>| {
        let call = Call { from: rich, gas, ..call_of(Address::ZERO) };
        let call = Call { priority_fee: Some(0), ..call };
        vec![SimulatedCall { call, nonce }]
    };
    let number = |number: u64| BlockOverride { number: Some(U256::from(number)), ..plain() };
    assert_eq!(code(number(1), Vec::new(), false), Err(-38_020));
    assert_eq!(code(number(1 + SIMULATED_BLOCKS_MAX + 1), Vec::new(), false), Err(-38_026));
    assert_eq!(code(BlockOverride { time: Some(5), ..plain() }, Vec::new(), false), Err(-38_021));
    assert_eq!(code(plain(), call(Some(7), None), false), Ok(()));
    assert_eq!(code(plain(), call(Some(7), None), true), Err(-38_011));
    assert_eq!(code(plain(), call(None, Some(20_000)), false), Err(-38_013));
    let small = BlockOverride { gas_limit: Some(50_000), ..plain() };
    assert_eq!(code(small, call(None, Some(50_001)), false), Err(-38_015));
    let dear = BlockOverride { base_fee: Some(10), ..plain() };
    assert_eq!(code(dear, call(None, None), true), Err(-38_012));
}

#[test]
fn a_simulated_delegation_is_one() {
    let (rich, owner) = (signer(RICH), signer("owner"));
    let at = Address::repeat_byte(0xd1);
    let mut genesis = genesis();
    let code = alloy_genesis::GenesisAccount::default().with_code(Some(WHO.into()));
    genesis.accounts.insert(at, code);
    let mut ledger = Ledger::new(genesis);
    let authorization = Authorization { chain_id: U256::from(CHAIN), address: at, nonce: 0 };
    let mut with = call_from(rich.address(), owner.address(), EvmBytes::new());
    with.call.authorizations = vec![owner.authorize(authorization)];
    let blocks = vec![simulated(vec![with])];
    let results = ask(&mut ledger, Simulated { blocks, ..Simulated::default() });
    let result = &results.expect("simulates")[0];
    let Called::Success { output, .. } = &result.calls[0].called else { panic!("{result:?}") };
    assert_eq!(output[..], owner.address().into_word()[..]);
    assert_eq!(result.found.transactions[0].raw[0], 4, "of EIP-7702's type");
}

#[test]
fn all_calls_share_one_budget_of_gas() {
    // Loops until its gas is used up.
    let at = Address::repeat_byte(0xc0);
    let mut genesis = genesis();
    let code =
        alloy_genesis::GenesisAccount::default().with_code(Some(vec![0x5b, 0x5f, 0x56].into()));
    genesis.accounts.insert(at, code);
    let mut ledger = Ledger::new(genesis);
    let burn = call_from(Address::ZERO, at, EvmBytes::new());
    let count = usize::try_from(SIMULATED_GAS_MAX / TRANSACTION_GAS_MAX).expect("a few");
    let mut code = |calls: usize| {
        let blocks = (0..calls).map(|_| simulated(vec![burn.clone()])).collect();
        let results = ask(&mut ledger, Simulated { blocks, ..Simulated::default() });
        results.map(|results| results.len()).map_err(|failure| failure.code)
    };
    assert_eq!(code(count), Ok(count));
    assert_eq!(code(count + 1), Err(-38_015));
}
