use super::*;

const KINDS: &[SchemeKind] = &[
    SchemeKind::Ed25519,
    SchemeKind::Bls,
    SchemeKind::BlsThreshold,
    #[cfg(feature = "stub")]
    SchemeKind::Stub,
];

#[test]
fn secrets_survive_their_encoding() {
    for kind in KINDS {
        let secret = VotingSecret::from_seed(*kind, &[6; 32]);
        let bytes = secret.to_bytes();
        let expected = if *kind == SchemeKind::BlsThreshold { 96 } else { 32 };
        assert_eq!(bytes.len(), expected);
        let read = VotingSecret::from_bytes(*kind, &bytes).unwrap();
        assert_eq!(read.kind(), *kind);
        assert_eq!(read.public(), secret.public());
        assert_eq!(read.sign(b"m"), secret.sign(b"m"));
        let found = expected - 1;
        let error = KeyError::Length { kind: *kind, what: "secret key", expected, found };
        assert_eq!(VotingSecret::from_bytes(*kind, &bytes[1..]).unwrap_err(), error);
    }
}

#[test]
fn secrets_are_not_shown() {
    for kind in KINDS {
        let secret = VotingSecret::from_seed(*kind, &[0xab; 32]);
        let shown = format!("{secret:?}");
        assert!(!shown.contains(&hex::encode(&secret.to_bytes()[..4])), "{shown}");
        assert!(!shown.contains("abab"), "{shown}");
        assert!(shown.contains(&kind.to_string()), "{shown}");
    }
}

#[test]
fn public_keys_and_proofs_are_written_in_hexadecimal() {
    let secret = VotingSecret::from_seed(SchemeKind::Bls, &[6; 32]);
    let (key, proof) = (secret.public(), secret.prove_possession());
    assert_eq!((key.0.len(), proof.0.len()), (96, 48));
    assert_eq!(key.to_string().parse(), Ok(key));
    assert_eq!(proof.to_string().parse(), Ok(proof));
    assert_eq!("0g".parse::<VotingKey>(), Err(KeyError::Hex));
    assert_eq!("".parse(), Ok(PossessionProof(vec![])));
}
