//! A fixed history: what a height comes to does not depend on how it is executed.

use super::*;

/// Sets slot `a` to `b`, the two words of its input.
const KEEPER: Address = Address::repeat_byte(0x5e);
/// Account without anything, which Ethereum forgets once it is touched (EIP-161).
const HOLLOW: Address = Address::repeat_byte(0xee);

fn word(value: u64) -> B256 {
    U256::from(value).into()
}

fn with_keeper(mut genesis: Genesis) -> Genesis {
    let rich = GenesisAccount::default().with_balance(ether(1_000));
    let code = EvmBytes::from_static(&[0x60, 0x20, 0x35, 0x60, 0, 0x35, 0x55, 0]);
    let slots = [(word(1), word(7)), (word(2), word(9))].into();
    let keeper = GenesisAccount::default().with_code(Some(code)).with_storage(Some(slots));
    genesis.accounts.insert(signer(RICH).address(), rich);
    genesis.accounts.insert(KEEPER, keeper);
    genesis.accounts.insert(HOLLOW, GenesisAccount::default());
    genesis
}

/// Transactions of one account, each after the one before.
struct Sender {
    signer: Signer,
    nonce: u64,
}

impl Sender {
    fn send(&mut self, transaction: TxEip1559) -> Bytes {
        let nonce = self.nonce;
        self.nonce += 1;
        self.signer.sign(TxEip1559 { nonce, gas_limit: 200_000, ..transaction })
    }

    fn set(&mut self, slot: u64, value: u64) -> Bytes {
        let input = [word(slot), word(value)].concat().into();
        let free =
            TxEip1559 { max_fee_per_gas: 0, max_priority_fee_per_gas: 0, ..TxEip1559::default() };
        self.send(TxEip1559 { chain_id: CHAIN, input, to: TxKind::Call(KEEPER), ..free })
    }

    /// Creates a contract that sets a slot and is gone with its transaction (EIP-6780).
    fn create_and_destroy(&mut self) -> Bytes {
        let input = EvmBytes::from_static(&[0x60, 1, 0x60, 0, 0x55, 0x33, 0xff]);
        self.send(TxEip1559 { to: TxKind::Create, input, ..payment(0, HOLLOW, U256::from(5)) })
    }
}

/// Transactions of the first heights: everything that a value or an account can go through within
/// one and from one to the next. Those of a mix follow.
fn heights() -> Vec<Vec<Bytes>> {
    let mut rich = Sender { signer: signer(RICH), nonce: 0 };
    let mut heights = vec![
        vec![Bytes::from("nothing")],
        vec![rich.set(1, 8), rich.set(1, 7)],
        vec![rich.set(3, 5), rich.set(3, 0), rich.set(2, 0)],
        vec![rich.set(2, 4), rich.set(2, 0), rich.set(2, 6), rich.set(1, 1)],
        vec![rich.create_and_destroy(), rich.set(1, 1)],
    ];
    let to_nobody = payment(0, HOLLOW, U256::ZERO);
    heights.push(vec![rich.send(to_nobody.clone())]);
    heights.push(vec![rich.send(to_nobody.clone()), rich.send(payment(0, HOLLOW, ether(1)))]);
    let too_poor = payment(rich.nonce, HOLLOW, ether(100_000));
    heights.push(vec![rich.signer.sign(too_poor), rich.set(9, 9), Bytes::from("nothing")]);
    heights.push(vec![rich.set(9, 0), rich.send(payment(0, Address::ZERO, ether(1)))]);
    let mut mix = Mix::new(CHAIN, Shape::Mixed, 10, 6);
    heights.extend((0..20).map(|_| (0..25).map(|_| mix.next_transaction()).collect()));
    heights
}

/// Root of each height, and how many of its transactions took effect. The roots change when what is
/// stored or hashed changes, and then every replica of a network must change with them.
#[test]
fn golden_roots() {
    let genesis = with_keeper(Mix::new(CHAIN, Shape::Mixed, 10, 6).genesis());
    let mut ledger = Ledger::new(genesis);
    let mut roots = String::new();
    for transactions in heights() {
        let outcomes = ledger.execute(&transactions);
        let succeeded =
            |outcome: &&Outcome| matches!(outcome, Outcome::Applied(_)) && applied(outcome).success;
        let (good, all) = (outcomes.iter().filter(succeeded).count(), outcomes.len());
        roots += &format!("{} {good}/{all}\n", ledger.state().to_hex());
    }
    assert_eq!(roots, include_str!("golden_roots.txt"));
}
