//! Dry runs of what is not: other accounts, other blocks, declared accesses, past states.

use super::*;

/// (NUMBER, TIMESTAMP, COINBASE, BASEFEE, GASLIMIT, PREVRANDAO) as six words.
const SEES_BLOCK: &[u8] = &[
    0x43, 0x5f, 0x52, 0x42, 0x60, 0x20, 0x52, 0x41, 0x60, 0x40, 0x52, 0x48, 0x60, 0x60, 0x52, 0x45,
    0x60, 0x80, 0x52, 0x44, 0x60, 0xa0, 0x52, 0x60, 0xc0, 0x5f, 0xf3,
];

/// Returns slot 0, slot 1 and the caller's balance.
const SEES_STATE: &[u8] = &[
    0x5f, 0x54, 0x5f, 0x52, 0x60, 0x01, 0x54, 0x60, 0x20, 0x52, 0x33, 0x31, 0x60, 0x40, 0x52, 0x60,
    0x60, 0x5f, 0xf3,
];

const CONTRACT: Address = Address::repeat_byte(0xc0);

fn words(called: Called) -> Vec<U256> {
    let Called::Success { output, .. } = called else { panic!("{called:?}") };
    output.chunks(32).map(U256::from_be_slice).collect()
}

fn word(value: u64) -> B256 {
    B256::from(U256::from(value))
}

#[test]
fn a_block_is_what_it_is_taken_for() {
    let mut ledger = called_once(SEES_BLOCK, 50_000).0;
    let block = BlockOverride {
        number: Some(U256::from(9)),
        time: Some(8),
        coinbase: Some(Address::with_last_byte(7)),
        base_fee: Some(6),
        gas_limit: Some(5),
        random: Some(word(4)),
    };
    let overrides = Overrides { block, ..Overrides::default() };
    let query = Query::Call(DryRun { overrides, ..run(call_of(CONTRACT), NEXT) });
    let seen = words(ledger.ask(&query).expect("a call"));
    assert_eq!(seen, [9_u64, 8, 7, 6, 5, 4].map(U256::from));
}

#[test]
fn accounts_are_what_they_are_taken_for() {
    // A state with slots 0 and 1 of the contract.
    let mut genesis = genesis();
    let storage = [(word(0), word(11)), (word(1), word(22))].into_iter().collect();
    let account = alloy_genesis::GenesisAccount::default()
        .with_code(Some(SEES_STATE.into()))
        .with_storage(Some(storage));
    genesis.accounts.insert(CONTRACT, account);
    let mut ledger = Ledger::new(genesis);
    let caller = Address::repeat_byte(0xca);
    let mut seen = |accounts: Vec<(Address, AccountOverride)>| {
        let overrides = Overrides { accounts, ..Overrides::default() };
        let call = Call { from: caller, ..call_of(CONTRACT) };
        let query = Query::Call(DryRun { overrides, ..run(call, NEXT) });
        words(ledger.ask(&query).expect("a call"))
    };
    let usual = AccountOverride::default();
    assert_eq!(seen(Vec::new()), [11_u64, 22, 0].map(U256::from));
    let one = AccountOverride { slots: vec![(word(1), word(33))], ..usual.clone() };
    assert_eq!(seen(vec![(CONTRACT, one)]), [11_u64, 33, 0].map(U256::from));
    let all = AccountOverride { storage: Some(vec![(word(1), word(33))]), ..usual.clone() };
    assert_eq!(seen(vec![(CONTRACT, all)]), [0_u64, 33, 0].map(U256::from));
    let rich = AccountOverride { balance: Some(U256::from(77)), ..usual.clone() };
    assert_eq!(seen(vec![(caller, rich)]), [11_u64, 22, 77].map(U256::from));
    let other = AccountOverride { code: Some(SEES_BLOCK.to_vec().into()), ..usual };
    assert_eq!(seen(vec![(CONTRACT, other)]).len(), 6);
    assert_eq!(seen(Vec::new()), [11_u64, 22, 0].map(U256::from), "nothing of it is kept");
}

/// A contract that nobody deployed is called, and a plain transfer to it is none.
#[test]
fn code_is_where_it_is_taken_to_be() {
    let mut ledger = Ledger::new(genesis());
    let there = Address::repeat_byte(0xdd);
    let code = Some(EvmBytes::from_static(&[0x5f, 0x5f, 0xfd]));
    let with = AccountOverride { code, ..AccountOverride::default() };
    let overrides = Overrides { accounts: vec![(there, with)], ..Overrides::default() };
    let query = Query::Estimate(DryRun { overrides, ..run(call_of(there), NEXT) });
    let estimate: Result<u64, Called> = ledger.ask(&query).expect("an answer");
    assert_eq!(estimate, Err(Called::Reverted { output: EvmBytes::new() }));
    let estimate = ledger.ask(&Query::Estimate(run(call_of(there), NEXT)));
    assert_eq!(estimate, Ok(Ok::<u64, Called>(21_000)));
}

/// With the list that it is given a transfer of tokens touches nothing else, for less gas.
#[test]
fn an_access_list_has_what_is_touched() {
    let mut mix = Mix::new(CHAIN, Shape::Transfers, 3, 3);
    let mut ledger = Ledger::new(mix.genesis());
    ledger.execute(&[mix.next_transaction()]);
    let holder = Signer::derived("quorate mix 3 0").0.address();
    let data = mix::transfer(Address::repeat_byte(2), U256::from(1));
    let call = Call { from: holder, data, ..call_of(mix::TOKEN) };
    let query = Query::AccessList(run(call.clone(), NEXT));
    let accessed: Accessed = ledger.ask(&query).expect("a list");
    assert!(matches!(accessed.called, Called::Success { .. }), "{accessed:?}");
    let [(TOKEN, slots)] = &accessed.list[..] else { panic!("{accessed:?}") };
    assert_eq!(slots.len(), 2, "two balances");
    let with = Call { access_list: accessed.list.clone(), ..call };
    let Called::Success { gas_used, .. } =
        ledger.ask(&Query::Call(run(with, NEXT))).expect("a call")
    else {
        panic!("it succeeded")
    };
    assert_eq!(gas_used, accessed.gas_used);
    const TOKEN: Address = mix::TOKEN;
}

/// Balances and calls at each height are what they were there, long after.
#[test]
fn past_states_are_read_and_called() {
    // slot 0 = NUMBER; then it is returned.
    let code = &[0x5f, 0x54, 0x5f, 0x52, 0x43, 0x5f, 0x55, 0x60, 0x20, 0x5f, 0xf3];
    let (mut ledger, call) = called_once(code, 50_000);
    let to = Address::repeat_byte(9);
    for nonce in 1..30 {
        let mine = TxEip1559 { gas_limit: 100_000, ..payment(2 * nonce - 1, CONTRACT, U256::ZERO) };
        let rich = signer(RICH);
        let paid = payment(2 * nonce, to, U256::from(5));
        ledger.execute_at(60_000 + nonce, &[rich.sign(mine), rich.sign(paid)]);
    }
    for height in 1..=30 {
        let account: Account = ledger.ask_past(height, &Query::Account(to)).expect("an account");
        assert_eq!(account.balance, U256::from(5 * (height - 1)), "at {height}");
        let query = Query::Call(run(call.clone(), CallBlock::Newest));
        let seen = words(ledger.ask_past(height, &query).expect("a call"));
        assert_eq!(seen, [U256::from(height)], "at {height}");
    }
}
