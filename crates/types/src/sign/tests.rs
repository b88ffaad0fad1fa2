use super::{Kind, statement};
use crate::{ChainId, Epoch};
use quorate_crypto::{IDENTITY_POSSESSION, IdentitySecret};

/// A signature for one kind, chain or epoch is refused for every other (★).
#[test]
fn no_statement_is_good_as_another() {
    let secret = IdentitySecret::from_seed([1; 32]);
    let places =
        [(ChainId([1; 32]), Epoch(1)), (ChainId([2; 32]), Epoch(1)), (ChainId([1; 32]), Epoch(2))];
    let made: Vec<(Kind, ChainId, Epoch)> = Kind::ALL
        .into_iter()
        .flat_map(|kind| places.map(|(chain, epoch)| (kind, chain, epoch)))
        .collect();
    for (kind, chain, epoch) in &made {
        let signature = secret.sign(&statement(*kind, *chain, *epoch, &7u64));
        for (as_kind, on, at) in &made {
            let taken =
                secret.public().verify(&statement(*as_kind, *on, *at, &7u64), &signature).is_ok();
            let same = (kind, chain, epoch) == (as_kind, on, at);
            assert_eq!(taken, same, "{kind:?} {epoch} as {as_kind:?} {at}");
        }
    }
}

#[test]
fn no_label_is_a_prefix_of_another() {
    for one in Kind::ALL {
        assert!(one.label().ends_with('/'));
        for other in Kind::ALL {
            assert!(one == other || !other.label().starts_with(one.label()), "{one:?} {other:?}");
        }
        // What proves that an identity is held is made below these kinds, of the same prefix.
        let possession = IDENTITY_POSSESSION.strip_prefix("quorate/v1/").expect("ours");
        assert!(possession.ends_with('/'));
        assert!(!possession.starts_with(one.label()) && !one.label().starts_with(possession));
    }
}

#[test]
fn golden_statement() {
    let bytes = statement(Kind::JolteonTimeout, ChainId([0xab; 32]), Epoch(0x0102), &(3u64, 4u64));
    let expected = [
        b"quorate/v1/TIMEOUT/jolteon/".as_slice(),
        &[0xab; 32],
        &[0, 0, 0, 0, 0, 0, 1, 2],
        &[3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(bytes, expected);
}
