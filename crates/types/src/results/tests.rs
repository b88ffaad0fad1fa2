use super::Results;
use crate::Outcome;
use bytes::Bytes;
use quorate_crypto::hash;

fn outcomes() -> Vec<Outcome> {
    vec![Outcome::Applied(Bytes::from_static(b"ab")), Outcome::Refused(Bytes::new())]
}

/// The encoding is that of a list of outcomes, and the digest is over it.
#[test]
fn golden_bytes() {
    let results = Results::new(outcomes());
    let encoded = [2, 0, 0, 0, 0, 2, 0, 0, 0, b'a', b'b', 1, 0, 0, 0, 0];
    assert_eq!(borsh::to_vec(&results).unwrap(), encoded);
    assert_eq!(borsh::to_vec(&outcomes()).unwrap(), encoded);
    assert_eq!(results.digest(), hash(&encoded));
    assert_eq!(results[..], outcomes());
}

/// What is decoded has the digest of what came, whatever was sent.
#[test]
fn decoded_results_have_a_digest_of_their_own() {
    let encoded = borsh::to_vec(&Results::new(outcomes())).unwrap();
    for at in [4, 9, 11] {
        let mut changed = encoded.clone();
        changed[at] ^= 1;
        let found: Results = borsh::from_slice(&changed).unwrap();
        assert_eq!(found.digest(), hash(&changed), "byte {at}");
        assert_ne!(found, Results::new(outcomes()), "byte {at}");
    }
}
