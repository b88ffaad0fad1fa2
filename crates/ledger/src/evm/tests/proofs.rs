//! Proofs of blocks before the newest.

use super::*;

/// Adds one to its first slot, `SSTORE(0, SLOAD(0) + 1)`, and clears its second.
const COUNTER: &[u8] = &[0x5f, 0x54, 0x60, 1, 0x01, 0x5f, 0x55, 0x5f, 0x60, 1, 0x55, 0x00];

/// Sets the first slot of what it creates: `SSTORE(0, 5)`.
const CREATION: &[u8] = &[0x60, 5, 0x5f, 0x55];

const CONTRACT: Address = Address::repeat_byte(0xc0);

/// A ledger with a counter that keeps so many bytes for proofs.
fn counting(provable_bytes: u64) -> Ledger {
    let mut genesis = genesis();
    let storage = [(B256::with_last_byte(1), B256::with_last_byte(7))].into();
    let account = alloy_genesis::GenesisAccount::default()
        .with_code(Some(COUNTER.into()))
        .with_storage(Some(storage));
    genesis.accounts.insert(CONTRACT, account);
    let mut service = Evm::new(genesis);
    service.keep_provable(provable_bytes);
    Ledger::of(service)
}

impl Ledger {
    fn prove(&self, of: &ProofOf) -> Result<Proven, String> {
        self.executor.answer(&of.encode()).expect("asks").expect("a height").answer
    }
}

fn of(address: Address, height: Option<u64>) -> ProofOf {
    ProofOf { address, slots: vec![U256::ZERO, U256::from(1)], height }
}

#[test]
fn a_question_is_read_as_it_is_written() {
    for height in [None, Some(0), Some(u64::MAX)] {
        let of = of(CONTRACT, height);
        assert_eq!(ProofOf::decode(&of.encode()), Ok(of));
    }
    let mut long = of(CONTRACT, Some(1)).encode();
    long.push(0);
    assert!(ProofOf::decode(&long).is_err());
    let many = ProofOf { slots: vec![U256::ZERO; PROVEN_SLOTS_MAX + 1], ..of(CONTRACT, Some(1)) };
    assert!(ProofOf::decode(&many.encode()).is_err());
}

/// ★ What is proven of a block is what was after it, under what the committee certified of it.
#[test]
fn accounts_and_slots_of_earlier_blocks_are_proven() {
    let (rich, mut ledger) = (signer(RICH), counting(1 << 20));
    let mut states = vec![];
    for nonce in 0..6 {
        let call = TxEip1559 { gas_limit: 100_000, ..payment(nonce, CONTRACT, ether(1)) };
        let outcomes = ledger.execute(&[rich.sign(call)]);
        assert!(applied(&outcomes[0]).success);
        states.push(ledger.state());
    }
    let newest = verify_account(
        states[5],
        &of(CONTRACT, None),
        &ledger.prove(&of(CONTRACT, None)).expect("proven"),
    );
    for (height, state) in (1..).zip(&states) {
        for address in [CONTRACT, rich.address(), Address::repeat_byte(0xee)] {
            let of = of(address, Some(height));
            let proven = ledger.prove(&of).expect("proven");
            let shown = verify_account(*state, &of, &proven).expect("it holds");
            let account = shown.account.clone().unwrap_or_default();
            let was: Account = ledger.ask_past(height, &Query::Account(address)).expect("kept");
            assert_eq!(account, was);
            let at = Query::Block { at: BlockAt::Height(height), transactions: false };
            let block: Option<FoundBlock> = ledger.ask(&at).expect("a block");
            assert_eq!(shown.block, block.expect("it is there").block.hash);
            if address == CONTRACT {
                assert_eq!(account.balance, ether(height));
                let slots: Vec<_> = shown.slots.iter().map(|(value, _)| *value).collect();
                assert_eq!(slots, [U256::from(height), U256::ZERO]);
            }
            for (other, state) in (1..).zip(&states) {
                assert_eq!(verify_account(*state, &of, &proven).is_ok(), other == height);
            }
        }
    }
    let named = ledger.prove(&of(CONTRACT, Some(6))).expect("the newest by its number");
    assert_eq!(verify_account(states[5], &of(CONTRACT, Some(6)), &named), newest);
    let genesis = ledger.prove(&of(CONTRACT, Some(0))).expect("the genesis");
    let genesis = AccountProof::try_from_slice(&genesis.answer).expect("a proof");
    assert_eq!([genesis.slots[0].0, genesis.slots[1].0], [U256::ZERO, U256::from(7)]);
    let refused = ledger.prove(&of(CONTRACT, Some(7))).expect_err("not there yet");
    assert_eq!(refused, "block 7 is not executed yet");
}

/// Storage that a constructor set is of no account before it, and nobody reads it.
#[test]
fn a_contract_is_proven_from_its_creation_on() {
    let (rich, mut ledger) = (signer(RICH), counting(1 << 20));
    ledger.execute(&[rich.sign(payment(0, CONTRACT, U256::ZERO))]);
    let before = ledger.state();
    let created = rich.address().create(1);
    let creation = TxEip1559 { gas_limit: 100_000, ..payment(1, created, U256::ZERO) };
    let creation = TxEip1559 { to: TxKind::Create, input: CREATION.into(), ..creation };
    assert_eq!(applied(&ledger.execute(&[rich.sign(creation)])[0]).created, Some(created));
    for (height, state, value) in [(1, before, None), (2, ledger.state(), Some(5))] {
        let of = of(created, Some(height));
        let proven = ledger.prove(&of).expect("proven");
        let shown = verify_account(state, &of, &proven).expect("it holds");
        assert_eq!(shown.account.is_some(), value.is_some());
        assert_eq!(shown.slots[0].0, U256::from(value.unwrap_or_default()));
    }
}

#[test]
fn blocks_whose_nodes_are_gone_are_not_proven() {
    let pay = |nonce| [signer(RICH).sign(payment(nonce, CONTRACT, U256::ZERO))];
    let mut ledger = counting(0);
    (0..3).for_each(|nonce| drop(ledger.execute(&pay(nonce))));
    let refused = ledger.prove(&of(CONTRACT, Some(2))).expect_err("nothing is kept");
    assert_eq!(refused, "the member asked has proofs from block 3 on: none of block 2");
    assert!(ledger.prove(&of(CONTRACT, Some(3))).is_ok());
    let mut ledger = counting(20_000);
    (0..60).for_each(|nonce| drop(ledger.execute(&pay(nonce))));
    assert!(ledger.prove(&of(CONTRACT, Some(1))).is_err());
    assert!(ledger.prove(&of(CONTRACT, Some(58))).is_ok());
}
