use super::*;

const SEED: [u8; 32] = [1; 32];

fn reader(byte: u8) -> EnvelopeSecret {
    EnvelopeSecret::derive(&[byte; 32], b"tests")
}

#[test]
fn only_the_reader_opens_it_and_only_in_its_context() {
    let (reader, other) = (reader(7), reader(8));
    let envelope = reader.public().seal(&SEED, b"here", b"it").expect("a key");
    assert_eq!(reader.open(&envelope, b"here").as_deref().map(Vec::as_slice), Some(&b"it"[..]));
    assert_eq!(reader.open(&envelope, b"there"), None);
    assert_eq!(other.open(&envelope, b"here"), None);
    assert_ne!(EnvelopeSecret::derive(&[7; 32], b"other").public(), reader.public());
}

#[test]
fn an_altered_envelope_does_not_open() {
    let reader = reader(7);
    let envelope = reader.public().seal(&SEED, b"here", b"it").expect("a key");
    for at in 0..32 + envelope.ciphertext.len() {
        let mut altered = envelope.clone();
        match altered.ciphertext.get_mut(at.wrapping_sub(32)) {
            Some(byte) => *byte ^= 1,
            None => altered.encapsulated[at] ^= 1,
        }
        assert_eq!(reader.open(&altered, b"here"), None, "byte {at}");
    }
    let short = Envelope { ciphertext: Vec::new(), ..envelope };
    assert_eq!(reader.open(&short, b"here"), None);
}

#[test]
fn sealing_again_gives_the_same_and_anything_else_takes_another_key() {
    let key = reader(7).public();
    let sealed = key.seal(&SEED, b"here", b"it").expect("a key");
    assert_eq!(key.seal(&SEED, b"here", b"it").expect("a key"), sealed);
    let others = [
        key.seal(&[2; 32], b"here", b"it"),
        key.seal(&SEED, b"there", b"it"),
        key.seal(&SEED, b"here", b"us"),
        reader(8).public().seal(&SEED, b"here", b"it"),
    ];
    for other in others {
        assert_ne!(other.expect("a key").encapsulated, sealed.encapsulated);
    }
}

#[test]
fn nothing_is_sealed_for_a_point_of_small_order() {
    assert_eq!(EnvelopeKey([0; 32]).seal(&SEED, b"here", b"it"), None);
}

#[test]
fn secrets_are_not_shown() {
    let secret = reader(0xab);
    let key = format!("EnvelopeKey({})", hex::encode(&secret.public().0[..4]));
    assert_eq!(format!("{:?}", secret.public()), key);
    assert_eq!(format!("{secret:?}"), format!("EnvelopeSecret({key})"));
    let sealed = secret.public().seal(&[1; 32], b"context", b"message").expect("a sound key");
    assert_eq!(format!("{sealed:?}"), format!("Envelope({} bytes)", sealed.ciphertext.len()));
}
