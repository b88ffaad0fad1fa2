use super::*;
use crate::scheme::tests::{Committee, MESSAGE, secret};

/// Anyone can make anyone's share: the reason this is no scheme for a network.
#[test]
fn shares_follow_from_public_keys() {
    let secret = secret(SchemeKind::Stub, 0);
    let key: [u8; 32] = secret.public().0.try_into().unwrap();
    assert_eq!(secret.sign(MESSAGE), Share(tag(&key, MESSAGE).to_vec()));
}

#[test]
fn a_share_does_not_pass_for_a_certificate() {
    let committee = Committee::new(SchemeKind::Stub, 4);
    let certificate = Certificate {
        signers: Bitmap::from_indices(4, [0]),
        aggregate: Aggregate(committee.secrets[0].sign(MESSAGE).0),
    };
    assert_eq!(committee.scheme.verify(MESSAGE, &certificate), Err(SignatureError::Mismatch));
}

#[cfg(feature = "count")]
#[test]
fn checks_are_counted() {
    let committee = Committee::new(SchemeKind::Stub, 4);
    let certificate = committee.certificate(MESSAGE, 0..3);
    let share = committee.secrets[0].sign(MESSAGE);
    crate::counts::take();
    for _ in 0..2 {
        committee.scheme.verify(MESSAGE, &certificate).unwrap();
        committee.scheme.verify_share(MESSAGE, 0, &share).unwrap();
    }
    assert_eq!(crate::counts::take().stub_verify, 4);
}
