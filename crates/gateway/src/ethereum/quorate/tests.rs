use super::*;
use alloy_primitives::Address;
use quorate_crypto::mutants::assert_noticed;
use quorate_ledger::evm::{Evm, Genesis};
use quorate_storage::{MemoryStore, Store};
use quorate_types::service::{BlockContext, Service};

/// ★ An answer of another block, be it true, is none.
#[test]
fn an_answer_is_of_the_block_that_was_asked_for() {
    let mut store = MemoryStore::new();
    let mut state = store.begin().expect("begun");
    let mut service = Evm::new(Genesis::new(7));
    service.keep_provable(1 << 20);
    service.genesis(&mut *state).expect("written");
    let mut headers = vec![];
    for height in [Height(1), Height(2)] {
        let block = BlockContext { height, proposed_at_ms: 1_000 };
        service.execute(&mut *state, block, &[]).expect("executed");
        let root = service.root(&*state).expect("a root");
        headers.push(Header { height, state: root, ..Header::default() });
    }
    let [first, second] = &headers[..] else { unreachable!("two were executed") };
    let of = |height| ProofOf { address: Address::ZERO, slots: vec![], height }.encode();
    let ask = |question: &[u8]| service.query(&*state, question).expect("read").expect("proven");
    let known = |height| {
        let found = headers.iter().find(|header| header.height.0 == height);
        found.copied().ok_or_else(|| "there is no certificate".to_owned())
    };
    let (named, newest) = (of(Some(1)), of(None));
    let (of_first, of_second) = (ask(&named), ask(&newest));
    assert_eq!(check_proof(&newest, second, &of_second, known), Ok(()));
    assert_eq!(check_proof(&named, second, &of_first, known), Ok(()));
    assert_eq!(check_proof(&named, first, &of_first, |_| unreachable!("it came along")), Ok(()));
    assert!(check_proof(&named, second, &of_second, known).is_err(), "of another block");
    assert!(check_proof(&newest, second, &of_first, known).is_err(), "it is not the newest");
    let unknown = |_| Err("there is no certificate".to_owned());
    let refused = check_proof(&named, second, &of_first, unknown);
    assert_eq!(refused, Err("there is no certificate".to_owned()));
}

#[test]
fn mutants_are_noticed() {
    assert_noticed(Mutant::EvmProofOfAnyBlock, an_answer_is_of_the_block_that_was_asked_for);
}
