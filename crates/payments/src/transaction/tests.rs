use super::*;
use crate::testing::{ALICE, BOB, MALLORY, TestNetwork, key, nowhere, secret, to};

/// Checks a transaction's form in the test network.
fn form(testnet: &TestNetwork, tx: &Transaction) -> Result<(), Invalid> {
    tx.check_form(&testnet.network)
}

/// Alice's coin of 10, made by an issue, as a quorum certified it.
fn certified(testnet: &TestNetwork) -> Coin {
    let tx = testnet.issue(1, &[to(BOB, 1), to(ALICE, 10), to(MALLORY, 3)]);
    testnet.coins(&tx).remove(1)
}

fn with_proof(coin: &Coin, change: impl FnOnce(&mut Proof)) -> Coin {
    let mut coin = coin.clone();
    let Origin::Certified(proof) = &mut coin.origin else { panic!("a certified coin") };
    change(proof);
    coin
}

fn with_value(coin: &Coin, value: u64) -> Coin {
    Coin { output: Output { value, ..coin.output }, ..coin.clone() }
}

#[test]
fn a_transaction_of_genesis_and_certified_coins_is_sound() {
    let testnet = TestNetwork::new();
    let mut coins = testnet.endowed(ALICE);
    coins.push(certified(&testnet));
    let tx = testnet.spend(ALICE, &coins, &[to(BOB, 60), to(ALICE, 10)]);
    assert_eq!(form(&testnet, &tx), Ok(()));
}

#[test]
fn there_are_1_to_64_inputs() {
    let testnet = TestNetwork::new();
    let none = testnet.spend(ALICE, &[], &[to(BOB, 1)]);
    assert_eq!(form(&testnet, &none), Err(Invalid::Inputs));
    let issue = testnet.issue(1, &vec![to(ALICE, 1); 64]);
    let more = testnet.issue(2, &[to(ALICE, 1)]);
    let mut coins = testnet.coins(&issue);
    assert_eq!(form(&testnet, &testnet.spend(ALICE, &coins, &[to(BOB, 64)])), Ok(()));
    coins.extend(testnet.coins(&more));
    let parents: Vec<_> =
        testnet.spend(ALICE, &coins, &[]).certificates().map(|(input, _)| input.tx).collect();
    assert_eq!(parents.len(), 2, "of 65 inputs: each parent is checked once");
    let many = testnet.spend(ALICE, &coins, &[to(BOB, 65)]);
    assert_eq!(form(&testnet, &many), Err(Invalid::Inputs));
}

#[test]
fn there_are_1_to_64_outputs() {
    let testnet = TestNetwork::new();
    let coins = &testnet.endowed(ALICE);
    assert_eq!(form(&testnet, &testnet.spend(ALICE, coins, &[])), Err(Invalid::Outputs));
    assert_eq!(form(&testnet, &testnet.issue(1, &[])), Err(Invalid::Outputs));
    let outputs = vec![to(BOB, 1); 65];
    assert_eq!(form(&testnet, &testnet.issue(1, &outputs)), Err(Invalid::Outputs));
    assert_eq!(form(&testnet, &testnet.issue(1, &outputs[1..])), Ok(()));
}

#[test]
fn an_output_is_worth_at_least_1() {
    let testnet = TestNetwork::new();
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60), to(BOB, 0)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::ZeroValue));
    assert_eq!(form(&testnet, &testnet.issue(1, &[to(BOB, 0)])), Err(Invalid::ZeroValue));
}

/// A coin is not worth twice what it is.
#[test]
fn an_input_is_named_once() {
    let testnet = TestNetwork::new();
    let coin = testnet.endowed(ALICE).remove(0);
    let tx = testnet.spend(ALICE, &[coin.clone(), coin], &[to(BOB, 20)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::InputOrder));
}

#[test]
fn inputs_are_in_ascending_order() {
    let testnet = TestNetwork::new();
    let mut tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, 60)]);
    let Source::Spend(inputs) = &mut tx.source else { unreachable!("a spend") };
    inputs.swap(0, 2);
    assert_eq!(form(&testnet, &tx), Err(Invalid::InputOrder));
}

#[test]
fn sums_do_not_wrap_around() {
    let testnet = TestNetwork::new();
    let outputs = [to(ALICE, u64::MAX), to(ALICE, 11)];
    let tx = testnet.spend(ALICE, &testnet.endowed(ALICE)[..1], &outputs);
    assert_eq!(form(&testnet, &tx), Err(Invalid::Overflow));
    let issue = testnet.issue(1, &outputs);
    assert_eq!(form(&testnet, &issue), Err(Invalid::Overflow));
    let coins: Vec<Coin> = testnet.endowed(ALICE);
    let dear = [with_value(&coins[0], u64::MAX), coins[1].clone()];
    let tx = testnet.spend(ALICE, &dear, &[to(BOB, 19)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::Overflow));
}

#[test]
fn inputs_and_outputs_are_worth_the_same() {
    let testnet = TestNetwork::new();
    for outputs in [59, 61] {
        let tx = testnet.spend(ALICE, &testnet.endowed(ALICE), &[to(BOB, outputs)]);
        assert_eq!(form(&testnet, &tx), Err(Invalid::Conservation { inputs: 60, outputs }));
    }
}

#[test]
fn only_the_issuer_issues() {
    let testnet = TestNetwork::new();
    let tx = Transaction::issue(&testnet.network, &secret(MALLORY), 1, vec![to(MALLORY, 9)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::NotTheIssuer));
    assert_eq!(form(&testnet, &testnet.issue(1, &[to(MALLORY, 9)])), Ok(()));
}

#[test]
fn a_genesis_input_is_in_the_genesis_set_as_stated() {
    let testnet = TestNetwork::new();
    let coin = testnet.endowed(ALICE).remove(0);
    let dear = with_value(&coin, 11);
    let tx = testnet.spend(ALICE, &[dear], &[to(BOB, 11)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::NotInGenesis(coin.id)));
    let others = testnet.spend(MALLORY, std::slice::from_ref(&coin), &[to(BOB, 10)]);
    assert_eq!(form(&testnet, &others), Err(Invalid::NotInGenesis(coin.id)));
    let id = nowhere();
    let tx = testnet.spend(ALICE, &[Coin { id, ..coin }], &[to(BOB, 10)]);
    assert_eq!(form(&testnet, &tx), Err(Invalid::NotInGenesis(id)));
}

/// Another's output, another place, another worth, or a path too short: none opens the name.
#[test]
fn an_input_is_what_its_transaction_made() {
    let testnet = TestNetwork::new();
    let coin = certified(&testnet);
    let spend = |coin: &Coin| {
        testnet.spend(ALICE, std::slice::from_ref(coin), &[to(BOB, coin.output.value)])
    };
    let theft = testnet.spend(MALLORY, std::slice::from_ref(&coin), &[to(MALLORY, 10)]);
    let shorter = with_proof(&coin, |proof| proof.opening.path.siblings.truncate(1));
    let longer = with_proof(&coin, |proof| proof.opening.path.siblings.push(Digest::ZERO));
    let elsewhere = with_proof(&coin, |proof| proof.opening.path.index = 2);
    let others = with_proof(&coin, |proof| proof.opening.payer = key(ALICE));
    let fewer = with_proof(&coin, |proof| proof.opening.path.count = 2);
    let dear = with_value(&coin, 11);
    for tx in [theft]
        .into_iter()
        .chain([shorter, longer, elsewhere, others, fewer, dear].iter().map(spend))
    {
        assert_eq!(form(&testnet, &tx), Err(Invalid::Path(coin.id)));
    }
}

/// The lone difference to a name is none of the certificates', since several are good.
#[test]
fn a_name_covers_all_but_signatures() {
    let testnet = TestNetwork::new();
    let (network, coin) = (testnet.network.id(), certified(&testnet));
    let parent = testnet.issue(1, &[to(BOB, 1), to(ALICE, 10), to(MALLORY, 3)]);
    let other = testnet.certificate_by(&parent, 1..4).expect("a quorum");
    let shown = with_proof(&coin, |proof| proof.certificate = other);
    assert_ne!(shown, coin);
    let id = |coin: &Coin, outputs: &[Output]| {
        testnet.spend(ALICE, std::slice::from_ref(coin), outputs).id(network)
    };
    let first = id(&coin, &[to(BOB, 4), to(ALICE, 6)]);
    assert_eq!(id(&shown, &[to(BOB, 4), to(ALICE, 6)]), first);
    let mut tx = testnet.spend(ALICE, std::slice::from_ref(&coin), &[to(BOB, 4), to(ALICE, 6)]);
    tx.signature = Signature([1; 64]);
    assert_eq!(tx.id(network), first);
    assert_ne!(id(&coin, &[to(ALICE, 6), to(BOB, 4)]), first, "the outputs' order");
    assert_ne!(id(&coin, &[to(BOB, 5), to(ALICE, 5)]), first, "their values");
    assert_ne!(id(&coin, &[to(BOB, 10)]), first, "their number");
    assert_ne!(id(&testnet.endowed(ALICE)[0], &[to(BOB, 4), to(ALICE, 6)]), first, "the inputs");
    let other = TestNetwork::with(crate::PayScheme::Merkle, 4, 1);
    assert_ne!(tx.id(other.network.id()), first, "the network");
    tx.payer = key(BOB);
    assert_ne!(tx.id(network), first, "the payer");
}

#[test]
fn a_serial_number_is_a_name_that_nothing_else_has() {
    let testnet = TestNetwork::new();
    let lock = |serial| testnet.issue(serial, &[to(ALICE, 1)]).locks();
    assert_eq!(lock(1), testnet.issue(1, &[to(BOB, 7)]).locks(), "whatever is issued");
    assert_ne!(lock(1), lock(2));
    assert_eq!(lock(1).len(), 1);
}

/// Redeemed money stays so: no key fits what it was paid to.
#[test]
fn burnt_money_has_no_owner() {
    assert_eq!(Output::BURNT.0.len(), 32);
    assert!(Output::BURNT.0.is_ascii());
    assert_eq!(
        Output::BURNT.prepare().map(|_| ()),
        Err(quorate_crypto::SignatureError::Key),
        "these bytes encode no point"
    );
}

#[test]
fn a_coin_is_believed_by_what_it_shows_alone() {
    let testnet = TestNetwork::new();
    let coin = certified(&testnet);
    assert_eq!(coin.check(&testnet.network), Ok(()));
    let genesis = testnet.endowed(ALICE).remove(0);
    assert_eq!(genesis.check(&testnet.network), Ok(()));
    let dear = with_value(&genesis, 11);
    assert_eq!(dear.check(&testnet.network), Err(Invalid::NotInGenesis(genesis.id)));
    assert_eq!(with_value(&coin, 11).check(&testnet.network), Err(Invalid::Path(coin.id)));
    let other = testnet.certificate(&testnet.issue(2, &[to(ALICE, 10)]));
    let forged = with_proof(&coin, |proof| proof.certificate = other);
    assert_eq!(forged.check(&testnet.network), Err(Invalid::Certificate(coin.id)));
}

mod equivocation {
    use super::*;

    fn two(testnet: &TestNetwork) -> Equivocation {
        let coins = testnet.endowed(MALLORY);
        let core = |coins: &[Coin], outputs: &[Output]| {
            testnet.spend(MALLORY, coins, outputs).core(testnet.network.id())
        };
        Equivocation {
            first: core(&coins[..1], &[to(ALICE, 5)]),
            second: core(&coins, &[to(BOB, 12)]),
        }
    }

    #[test]
    fn two_transactions_over_one_coin_prove_it() {
        let testnet = TestNetwork::new();
        assert!(two(&testnet).is_proven(&testnet.network));
    }

    #[test]
    fn two_issues_under_one_serial_number_prove_it() {
        let testnet = TestNetwork::new();
        let core =
            |serial, value| testnet.issue(serial, &[to(ALICE, value)]).core(testnet.network.id());
        let proof = Equivocation { first: core(1, 5), second: core(1, 6) };
        assert!(proof.is_proven(&testnet.network));
        let innocent = Equivocation { first: core(1, 5), second: core(2, 6) };
        assert!(!innocent.is_proven(&testnet.network), "two serial numbers");
    }

    #[test]
    fn nobody_else_can_make_one_up() {
        let testnet = TestNetwork::new();
        let proof = two(&testnet);
        let forged = |change: &dyn Fn(&mut Equivocation)| {
            let mut forged = proof.clone();
            change(&mut forged);
            !forged.is_proven(&testnet.network)
        };
        assert!(forged(&|it| it.second = it.first.clone()), "one transaction twice");
        assert!(forged(&|it| it.first.signature = Signature([0; 64])), "unsigned");
        assert!(forged(&|it| it.second.signature = it.first.signature), "another's signature");
        assert!(forged(&|it| it.first.outputs = Digest::ZERO), "other outputs");
        assert!(forged(&|it| it.first.payer = key(ALICE)), "somebody else");
        assert!(forged(&|it| it.first.kind = CoreKind::Issue(1)), "a serial number of its own");
        assert!(forged(&|it| it.first.kind = CoreKind::Refund), "a refund");
        let locks = proof.second.locks.clone();
        assert!(forged(&|it| it.first.locks = locks.clone()), "other inputs");
        let coins = testnet.endowed(MALLORY);
        let other = testnet.spend(MALLORY, &coins[1..], &[to(BOB, 7)]).core(testnet.network.id());
        assert!(forged(&|it| it.second = other.clone()) || proof.first.locks[0] == other.locks[0]);
        let foreign = TestNetwork::with(crate::PayScheme::Merkle, 4, 1);
        assert!(!proof.is_proven(&foreign.network), "another network");
    }
}

/// Formats that two builds must agree on.
mod golden {
    use super::*;
    use quorate_types::sign;

    fn spend(testnet: &TestNetwork) -> Transaction {
        testnet.spend(ALICE, &testnet.endowed(ALICE)[..1], &[to(BOB, 4), to(ALICE, 6)])
    }

    #[test]
    fn a_network_has_this_name() {
        assert_eq!(
            hex::encode(TestNetwork::new().network.id().0),
            "56c1e0064b8b288409f9ede215d786985abf86ab8150f6a943af4f5500a3d00f"
        );
    }

    #[test]
    fn a_transaction_has_this_name() {
        let testnet = TestNetwork::new();
        let network = testnet.network.id();
        let found = [spend(&testnet), testnet.issue(1, &[to(BOB, 4)])].map(|tx| tx.id(network));
        let pinned = [
            "29bbc345d1a09fa3974f61b856edb8158d87107150a2023ee9ee9bff6c8f89cc",
            "94e19cee0f38c318122a4da6e9058bcc959c048a564c329fce80b158ba63876f",
        ];
        assert_eq!(found.map(|id| id.to_string()), pinned);
    }

    #[test]
    fn an_output_and_a_serial_number_have_these_names() {
        let testnet = TestNetwork::new();
        let found = [testnet.endowed(ALICE)[1].id, testnet.issue(1, &[to(BOB, 4)]).locks()[0]];
        let pinned = [
            "7e2e15267b9ac119c975384ac096a5440c4e9a5cd1d7e61316e2581fb37a872e:1",
            "ac1a2bed3f060f8a59839aa98f96067b4440bba7d789709a2e448e613b391001:0",
        ];
        assert_eq!(found.map(|id| id.to_string()), pinned);
        let tx = spend(&testnet);
        let coins = tx.coins(testnet.network.id(), &testnet.certificate(&tx));
        assert_eq!(coins[1].id.to_string(), format!("{}:1", tx.id(testnet.network.id())));
    }

    /// Without epoch: what an owner signed holds as long as the network.
    #[test]
    fn an_owner_signs_this() {
        let testnet = TestNetwork::new();
        let statement = owner_statement(&testnet.network, spend(&testnet).id(testnet.network.id()));
        assert_eq!(
            hex::encode(&statement),
            "\
             71756f726174652f76312f54582d4f574e45522f56c1e0064b8b288409f9ede215d786985abf86ab\
             8150f6a943af4f5500a3d00f00000000000000000000000000000000000000000000000000000000\
             0000000029bbc345d1a09fa3974f61b856edb8158d87107150a2023ee9ee9bff6c8f89cc"
        );
    }

    #[test]
    fn an_authority_signs_this() {
        let testnet = TestNetwork::new();
        let id = spend(&testnet).id(testnet.network.id());
        let statement = sign::statement(Kind::TxVote, testnet.network.scope(), &id);
        assert_eq!(
            hex::encode(&statement),
            "\
             71756f726174652f76312f54582d564f54452f56c1e0064b8b288409f9ede215d786985abf86ab81\
             50f6a943af4f5500a3d00fee6adfa4268a6cffd019810b1eb4ceec664ec2ffa09848cc631dfaedfa\
             55297929bbc345d1a09fa3974f61b856edb8158d87107150a2023ee9ee9bff6c8f89cc"
        );
        let vote = testnet.vote(0, &spend(&testnet));
        let share = testnet.keys[0].voting.sign(&statement);
        assert_eq!(vote, crate::Vote::Share(share));
    }

    #[test]
    fn a_transaction_is_encoded_so() {
        let testnet = TestNetwork::new();
        let bytes = borsh::to_vec(&spend(&testnet)).expect("into memory");
        assert_eq!(
            hex::encode(&bytes),
            "\
             d62f016a1efd1e4fdf793eb42cd84471e1ba9f0cf04d1287b5cc71f616287cb800010000007e2e15\
             267b9ac119c975384ac096a5440c4e9a5cd1d7e61316e2581fb37a872e00000a0000000000000000\
             0200000034b4d9043156cb6dcf0beb0a2949b7559c940d2bcb6dbe8c53a9b30278e3a74604000000\
             00000000d62f016a1efd1e4fdf793eb42cd84471e1ba9f0cf04d1287b5cc71f616287cb806000000\
             000000000ecfb63b7d6122c6409353c927a24da86eebbe4683071f688e893fbbe820f8619186001b\
             a3d8b1aa3da56b5026232c14ec49622d3f465459d9c40169345a2308"
        );
        let read: Transaction = borsh::from_slice(&bytes).expect("what was written");
        assert_eq!(read, spend(&testnet));
    }
}

/// Locks and evidence on disks had the serial number, if there was one, where the kind is now.
#[test]
fn kinds_are_encoded_as_serial_numbers_were() {
    for (kind, serial) in [(CoreKind::Spend, None), (CoreKind::Issue(7), Some(7_u64))] {
        let (new, old) = (borsh::to_vec(&kind), borsh::to_vec(&serial));
        assert_eq!(new.expect("in memory"), old.expect("in memory"), "{kind:?}");
    }
    assert_eq!(borsh::to_vec(&CoreKind::Refund).expect("in memory"), [2]);
}

/// Each rule left out is noticed by the check that stands for it.
mod mutants {
    use super::*;
    use quorate_crypto::mutants::assert_noticed;

    #[test]
    fn every_rule_of_form_is_missed() {
        assert_noticed(Mutant::PayDuplicateInputs, an_input_is_named_once);
        assert_noticed(Mutant::PayOverflow, sums_do_not_wrap_around);
        assert_noticed(Mutant::PayInflate, inputs_and_outputs_are_worth_the_same);
        assert_noticed(Mutant::PayAnyIssuer, only_the_issuer_issues);
        assert_noticed(Mutant::PayTrustPath, an_input_is_what_its_transaction_made);
    }
}
