//! Delegations (EIP-7702), and rules that change with a block's time.

use super::*;
use alloy_consensus::TxEip7702;
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use quorate_crypto::counts;
use quorate_types::put_in_force;

/// Returns the address that it runs for.
const WHO: &[u8] = &[0x30, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];
const WHO_AT: Address = Address::repeat_byte(0xd1);

/// Counts leading zeroes, an instruction of Osaka's (EIP-7939).
const CLZ: &[u8] = &[0x60, 0x01, 0x1e, 0x5f, 0x52, 0x60, 0x20, 0x5f, 0xf3];
const CLZ_AT: Address = Address::repeat_byte(0xc1);

const PRAGUE: u64 = 100;
const OSAKA: u64 = 200;

fn with_code(mut genesis: Genesis, at: Address, code: &'static [u8]) -> Genesis {
    let account = alloy_genesis::GenesisAccount::default().with_code(Some(code.into()));
    genesis.accounts.insert(at, account);
    genesis
}

fn by_version(genesis: Genesis, version: u64) -> Ledger {
    let mut service = Evm::new(genesis);
    put_in_force(&mut service, version).expect("one of its versions");
    Ledger::of(service)
}

/// A delegation of an account of this chain with this nonce.
fn delegation(of: &Signer, nonce: u64, to: Address) -> SignedAuthorization {
    of.authorize(Authorization { chain_id: U256::from(CHAIN), address: to, nonce })
}

fn carrying(nonce: u64, authorization_list: Vec<SignedAuthorization>) -> TxEip7702 {
    TxEip7702 {
        chain_id: CHAIN,
        nonce,
        gas_limit: 200_000,
        max_fee_per_gas: 10,
        max_priority_fee_per_gas: 3,
        to: Address::repeat_byte(9),
        authorization_list,
        ..TxEip7702::default()
    }
}

fn returned(ledger: &mut Ledger, from: Address) -> EvmBytes {
    match ledger.ask(&Query::Call(run(call_of(from), NEXT))).expect("a call") {
        Called::Success { output, .. } => output,
        called => panic!("{called:?}"),
    }
}

fn code_of(ledger: &mut Ledger, at: Address) -> EvmBytes {
    ledger.ask(&Query::Code(at)).expect("code")
}

#[test]
fn an_account_runs_the_code_that_it_delegates_to() {
    let (rich, owner) = (signer(RICH), signer("owner"));
    let at = owner.address();
    let mut ledger = by_version(with_code(genesis(), WHO_AT, WHO), 2);
    let twice = [
        rich.sign(carrying(0, vec![delegation(&owner, 0, Address::repeat_byte(1))])),
        rich.sign(carrying(1, vec![delegation(&owner, 1, WHO_AT)])),
    ];
    assert!(ledger.execute(&twice).iter().all(|outcome| applied(outcome).success));
    assert_eq!(code_of(&mut ledger, at)[..], [&[0xef, 0x01, 0x00], &WHO_AT[..]].concat());
    assert_eq!(returned(&mut ledger, at)[..], at.into_word()[..]);
    let account: Account = ledger.ask(&Query::Account(at)).expect("an account");
    assert_eq!(account.nonce, 2, "each delegation uses a nonce of its account");

    // Its owner still sends by itself, and takes the delegation back.
    let own = rich.sign(TxEip1559 { gas_limit: 50_000, ..payment(2, at, ether(1)) });
    let back = owner.sign(carrying(2, vec![delegation(&owner, 3, Address::ZERO)]));
    assert!(ledger.execute(&[own, back]).iter().all(|outcome| applied(outcome).success));
    assert!(code_of(&mut ledger, at).is_empty());
    assert!(returned(&mut ledger, at).is_empty());
}

/// ★ Members whose committee executes by the first version refuse what those before them refused.
#[test]
fn the_first_version_takes_no_delegations() {
    let transaction = signer(RICH).sign(carrying(0, vec![delegation(&signer("owner"), 0, WHO_AT)]));
    let mut ledger = Ledger::new(with_code(genesis(), WHO_AT, WHO));
    let because =
        "transactions of type 4 are not taken: use legacy (EIP-155), EIP-2930 or EIP-1559";
    assert_eq!(refusal(&ledger.execute(&[transaction])[0]), because);
}

#[test]
fn delegations_that_nobody_signed_are_passed_over() {
    let (rich, owner) = (signer(RICH), signer("owner"));
    let good = delegation(&owner, 0, WHO_AT);
    let order = "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
    let order: U256 = order.parse().expect("a number");
    let signed =
        |parity, s| SignedAuthorization::new_unchecked(good.inner().clone(), parity, good.r(), s);
    let elsewhere = Authorization { chain_id: U256::from(CHAIN + 1), ..good.inner().clone() };
    let bad = vec![
        signed(2, good.s()),
        signed(1 - good.y_parity(), order - good.s()),
        signed(good.y_parity(), U256::ZERO),
        owner.authorize(elsewhere),
        delegation(&owner, 1, WHO_AT),
    ];
    let mut ledger = by_version(genesis(), 2);
    let carrying = TxEip7702 { gas_limit: 1_000_000, ..carrying(0, bad) };
    assert!(applied(&ledger.execute(&[rich.sign(carrying)])[0]).success);
    assert!(code_of(&mut ledger, owner.address()).is_empty());
}

/// Whose delegations are is recovered for whoever can pay: others are refused all the same.
#[test]
fn who_cannot_pay_has_nothing_recovered() {
    let (poor, owner) = (signer("poor"), signer("owner"));
    let many = || (0..40).map(|nonce| delegation(&owner, nonce, WHO_AT)).collect::<Vec<_>>();
    let mut ledger = by_version(genesis(), 2);
    let rich = signer(RICH);
    let recovered = |ledger: &mut Ledger, transaction: TxEip7702, of: &Signer| {
        let raw = of.sign(transaction);
        counts::take();
        let outcome = ledger.execute(&[raw]).remove(0);
        (matches!(outcome, Outcome::Applied(_)), counts::take().secp256k1_recover)
    };
    let vast = |nonce: u64, gas_limit: u64| TxEip7702 { gas_limit, ..carrying(nonce, many()) };
    assert_eq!(recovered(&mut ledger, vast(0, 2_000_000), &poor), (false, 1));
    assert_eq!(recovered(&mut ledger, vast(0, 21_000), &rich), (false, 1));
    assert_eq!(recovered(&mut ledger, vast(7, 2_000_000), &rich), (false, 1));
    assert_eq!(recovered(&mut ledger, vast(0, 2_000_000), &rich), (true, 41));
}

#[test]
fn an_estimate_with_delegations_is_enough() {
    let (rich, owner) = (signer(RICH), signer("owner"));
    let mut ledger = by_version(with_code(genesis(), WHO_AT, WHO), 2);
    let authorizations = vec![delegation(&owner, 0, WHO_AT)];
    let call = Call {
        from: rich.address(),
        authorizations: authorizations.clone(),
        ..call_of(owner.address())
    };
    let query = Query::Estimate(run(call, NEXT));
    let gas: Result<u64, Called> = ledger.ask(&query).expect("an estimate");
    let gas_limit = gas.expect("enough");
    assert!(gas_limit > 21_000 + 25_000, "{gas_limit}: an account that is empty costs 25,000");
    let with = TxEip7702 { gas_limit, to: owner.address(), ..carrying(0, authorizations) };
    assert!(applied(&ledger.execute(&[rich.sign(with)])[0]).success);
    assert_eq!(returned(&mut ledger, owner.address())[..], owner.address().into_word()[..]);
}

/// ★ Members change the rules at one block, that whose time says so: whatever their clocks show.
#[test]
fn the_rules_are_those_of_a_blocks_time() {
    let mut genesis = with_code(genesis(), CLZ_AT, CLZ);
    genesis.forks = ForkSchedule { prague: Some(PRAGUE), osaka: Some(OSAKA) };
    assert_eq!(Genesis::parse(&genesis.to_json()).expect("its own"), genesis);
    let rich = signer(RICH);
    let mut ledger = by_version(genesis, 2);
    let owner = signer("owner");
    let mut nonce = 0;
    let mut block_at = |at: u64| {
        let counts = TxEip1559 { gas_limit: 100_000, ..payment(nonce, CLZ_AT, U256::ZERO) };
        // Zeroes, a token each, of which the floor is 10 (EIP-7623).
        let long = TxEip1559 {
            gas_limit: 100_000,
            input: vec![0; 1_000].into(),
            ..payment(nonce + 1, owner.address(), U256::from(1))
        };
        let after = nonce + 2 + u64::from(at >= PRAGUE);
        let vast = TxEip1559 { gas_limit: 20_000_000, ..payment(after, CLZ_AT, U256::ZERO) };
        let delegates = carrying(nonce + 2, vec![delegation(&owner, 7, WHO_AT)]);
        let outcomes = ledger.execute_at(
            1_000 * at + 999,
            &[rich.sign(counts), rich.sign(long), rich.sign(delegates), rich.sign(vast)],
        );
        let is_applied = |outcome: &Outcome| matches!(outcome, Outcome::Applied(_));
        nonce += outcomes.iter().filter(|outcome| is_applied(outcome)).count() as u64;
        let long = applied(&outcomes[1]).gas_used;
        (applied(&outcomes[0]).success, long, is_applied(&outcomes[2]), outcomes[3].clone())
    };
    let floors = (21_000 + 4 * 1_000, 21_000 + 10 * 1_000);
    for (at, has_clz, long, delegates) in [
        (1, false, floors.0, false),
        (PRAGUE - 1, false, floors.0, false),
        (PRAGUE, false, floors.1, true),
        (OSAKA - 1, false, floors.1, true),
        (OSAKA, true, floors.1, true),
    ] {
        let (clz, gas, taken, vast) = block_at(at);
        assert_eq!((clz, gas, taken), (has_clz, long, delegates), "at {at}");
        assert_eq!(matches!(vast, Outcome::Refused(_)), has_clz, "at {at}: {vast:?}");
    }
}

#[test]
fn a_dry_run_is_by_the_rules_of_its_block() {
    let mut genesis = with_code(genesis(), CLZ_AT, CLZ);
    genesis.forks = ForkSchedule { prague: Some(0), osaka: Some(OSAKA) };
    let mut ledger = by_version(genesis, 2);
    ledger.execute_at(1_000, &[signer(RICH).sign(payment(0, Address::ZERO, U256::ZERO))]);
    let mut called = |at_ms: u64, time: Option<u64>| {
        let block = BlockOverride { time, ..BlockOverride::default() };
        let overrides = Overrides { block, ..Overrides::default() };
        let run = DryRun { overrides, ..run(call_of(CLZ_AT), CallBlock::Next(at_ms)) };
        let called: Called = ledger.ask(&Query::Call(run)).expect("a call");
        matches!(called, Called::Success { .. })
    };
    assert!(!called(1_000 * OSAKA - 1, None));
    assert!(called(1_000 * OSAKA, None));
    assert!(called(0, Some(OSAKA)));
    assert!(!called(1_000 * OSAKA, Some(OSAKA - 1)));
}

#[test]
fn forks_of_a_genesis_want_the_second_version() {
    let forks = ForkSchedule { prague: Some(0), osaka: Some(OSAKA) };
    let mut service = Evm::new(Genesis { forks, ..genesis() });
    let lacks = put_in_force(&mut service, 1).expect_err("it would pass them over");
    let said = "the committee executes 'evm' by version 1, and this program has version 2 alone";
    assert_eq!(lacks.to_string(), said);
    assert_eq!(Evm::new(genesis()).versions(), Evm::VERSIONS);
}

#[test]
fn mutants_are_noticed() {
    assert_noticed(Mutant::EvmEarlyDelegations, the_first_version_takes_no_delegations);
    assert_noticed(Mutant::EvmNewestFork, the_rules_are_those_of_a_blocks_time);
}
