use super::*;

const DIGEST: [u8; 32] = [7; 32];

fn secret() -> EcdsaSecret {
    EcdsaSecret::from_bytes([1; 32]).expect("in range")
}

#[test]
fn who_signed_is_recovered() {
    let signature = secret().sign(&DIGEST);
    assert_eq!(recover(&DIGEST, &signature), Ok(secret().public()));
    assert_ne!(recover(&[8; 32], &signature), Ok(secret().public()));
    let flipped = EcdsaSignature { is_odd: !signature.is_odd, ..signature };
    assert_ne!(recover(&DIGEST, &flipped), Ok(secret().public()));
}

/// The key 1 is the generator, whose coordinates SEC 2 gives.
#[test]
fn the_key_one_is_the_generator() {
    let mut one = [0; 32];
    one[31] = 1;
    let public = EcdsaSecret::from_bytes(one).expect("in range").public();
    assert_eq!(
        hex::encode(public),
        "79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798\
         483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8"
    );
}

#[test]
fn the_mutant_is_noticed() {
    mutants::assert_noticed(Mutant::EvmTwinSignature, the_twin_of_a_signature_is_refused);
}

/// `(r, n - s)` with the other parity is a signature by the same key.
#[test]
fn the_twin_of_a_signature_is_refused() {
    let order = hex::decode("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141");
    let order: [u8; 32] = order.expect("hex").try_into().expect("32 bytes");
    let signature = secret().sign(&DIGEST);
    let mut twin = EcdsaSignature { is_odd: !signature.is_odd, ..signature };
    let mut borrow = 0;
    for index in (0..32).rev() {
        let difference =
            i16::from(order[index]) - i16::from(signature.scalars[32 + index]) - borrow;
        borrow = i16::from(difference < 0);
        twin.scalars[32 + index] = difference.rem_euclid(256) as u8;
    }
    assert_eq!(recover(&DIGEST, &twin), Err(SignatureError::Encoding));
}

#[test]
fn bytes_that_are_no_scalars_are_refused() {
    let zero = EcdsaSignature { scalars: [0; 64], is_odd: false };
    assert!(recover(&DIGEST, &zero).is_err());
    let beyond = EcdsaSignature { scalars: [0xff; 64], is_odd: false };
    assert_eq!(recover(&DIGEST, &beyond), Err(SignatureError::Encoding));
    assert!(EcdsaSecret::from_bytes([0; 32]).is_none());
}

#[test]
fn secrets_are_not_shown() {
    assert_eq!(format!("{:?}", secret()), "EcdsaSecret");
}

#[cfg(feature = "count")]
#[test]
fn recoveries_are_counted() {
    let signature = secret().sign(&DIGEST);
    crate::counts::take();
    for _ in 0..2 {
        recover(&DIGEST, &signature).expect("a signature");
        crate::counts::add_recovery();
    }
    assert_eq!(crate::counts::take().secp256k1_recover, 4);
}
