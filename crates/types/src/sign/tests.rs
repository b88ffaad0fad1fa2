use super::{Kind, Scope, statement};
use crate::{EpochId, NetworkId};
use quorate_crypto::{IDENTITY_POSSESSION, IdentitySecret};

/// A signature for one kind, network or epoch is refused for every other (★).
#[test]
fn no_statement_is_good_as_another() {
    let secret = IdentitySecret::from_seed([1; 32]);
    let scopes = [1, 2].into_iter().flat_map(|network| {
        // Zeros are the scope of a whole network: no epoch's statement is good as one of those.
        [0, 1, 2]
            .map(|epoch| Scope { network: NetworkId([network; 32]), epoch: EpochId([epoch; 32]) })
    });
    let made: Vec<(Kind, Scope, Vec<u8>)> = scopes
        .flat_map(|scope| Kind::ALL.map(|kind| (kind, scope, statement(kind, scope, &7u64))))
        .collect();
    for (kind, scope, said) in &made {
        let signature = secret.sign(said);
        assert!(secret.public().verify(said, &signature).is_ok());
        for (as_kind, within, read) in &made {
            // Signatures cover every byte, so statements that differ share none.
            let same = (kind, scope) == (as_kind, within);
            assert_eq!(said == read, same, "{kind:?} in {scope:?} as {as_kind:?} in {within:?}");
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
    let scope = Scope { network: NetworkId([0xab; 32]), epoch: EpochId([0xcd; 32]) };
    let bytes = statement(Kind::JolteonTimeout, scope, &(3u64, 4u64));
    let expected = [
        b"quorate/v1/TIMEOUT/jolteon/".as_slice(),
        &[0xab; 32],
        &[0xcd; 32],
        &[3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    assert_eq!(bytes, expected);
}
