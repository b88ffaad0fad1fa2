use super::*;
use quorate_crypto::hash;

fn input(number: u8) -> OutputId {
    OutputId { tx: TxId(hash(&[number])), index: 0 }
}

fn locked(tx: u8, sequence: u64) -> Locked {
    Locked { tx: TxId(hash(&[tx])), sequence }
}

#[test]
fn an_input_is_locked_once_and_for_ever() {
    let spent = SpentSet::with_capacity(4);
    spent.insert(input(1), locked(10, 0));
    spent.insert(input(1), locked(11, 1));
    assert_eq!(spent.get(input(1)), Some(locked(10, 0)));
    assert_eq!((spent.len(), spent.is_empty()), (1, false));
}

#[test]
fn inputs_are_judged_all_together() {
    let spent = SpentSet::default();
    spent.insert(input(1), locked(10, 0));
    spent.insert(input(2), locked(10, 0));
    let standing = |tx: u8, inputs: &[u8]| {
        let inputs: Vec<_> = inputs.iter().map(|one| input(*one)).collect();
        spent.standing(locked(tx, 0).tx, &inputs)
    };
    assert_eq!(standing(10, &[1, 2]), Standing::Mine);
    assert_eq!(standing(11, &[3, 4]), Standing::Free);
    assert_eq!(standing(11, &[3, 2]), Standing::Taken(input(2), locked(10, 0)));
    let mut seen = Vec::new();
    spent.visit(|input, locked| seen.push((input, locked)));
    assert_eq!(seen.len(), 2);
}
