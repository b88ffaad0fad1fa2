use super::*;
use quorate_crypto::hash;
use quorate_payments::TxId;
use std::convert::Infallible;

/// In one part or in many: all of them, each once, in order.
#[test]
fn parts_are_one_order() {
    let names: Vec<TxId> = (0..1_000_u64).map(|one| TxId(hash(&(one / 2).to_le_bytes()))).collect();
    let mut expected = names.clone();
    expected.sort_unstable();
    expected.dedup();
    for parts in [1, 2, 7, 300] {
        let mut all = Vec::new();
        let read = |push: &mut dyn FnMut(TxId)| {
            names.iter().for_each(|one| push(*one));
            Ok::<(), Infallible>(())
        };
        let mut handed = 0;
        let Ok(()) = in_parts(parts, place_of, read, |part| {
            handed += 1;
            all.extend(part);
            Ok(())
        });
        assert_eq!((handed, &all), (parts, &expected));
    }
}
