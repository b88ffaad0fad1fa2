use super::*;
use std::fs;

const CHEAP: SealCost = SealCost { memory_kib: 64, passes: 1, lanes: 1 };

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned())).unwrap()
}

fn secret() -> SecretFile {
    SecretFile::generate(&mut |bytes| bytes.fill(7))
}

#[test]
fn a_secret_in_the_clear_is_its_digits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed");
    secret().write(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "07".repeat(32));
    assert_eq!(SecretFile::read(&path, None).unwrap().secret()[..], [7; 32]);
    assert!(matches!(secret().write(&path), Err(KeyFileError::Exists { .. })));
}

#[test]
fn a_sealed_secret_opens_with_its_passphrase_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed");
    let right = passphrase("correct horse battery staple");
    secret().write_sealed(&path, &right, CHEAP, &mut |bytes| bytes.fill(1)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains(&"07".repeat(32)), "{text}");
    assert_eq!(SecretFile::read(&path, Some(&right)).unwrap().secret()[..], [7; 32]);
    assert!(matches!(SecretFile::read(&path, None), Err(KeyFileError::Sealed { .. })));
    let wrong = passphrase("correct horse battery stable");
    let refused = SecretFile::read(&path, Some(&wrong));
    assert!(matches!(refused, Err(KeyFileError::Passphrase { .. })), "{refused:?}");
}

#[test]
fn every_bit_of_a_sealed_secret_counts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("seed");
    let right = passphrase("correct horse battery staple");
    secret().write_sealed(&path, &right, CHEAP, &mut |bytes| bytes.fill(1)).unwrap();
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut altered = sound.clone();
        altered[at] ^= 1;
        fs::write(&path, altered).unwrap();
        assert!(SecretFile::read(&path, Some(&right)).is_err(), "byte {at}");
    }
}

/// ★ Logs and errors show values by their debug form: that of a secret shows nothing of it.
#[test]
fn a_secret_is_not_shown() {
    assert_eq!(format!("{:?}", secret()), "SecretFile(…)");
}

/// The commitment tells one secret from another: without it a file that two passphrases open would
/// hold two secrets.
#[test]
fn a_commitment_is_of_one_secret() {
    let other = SecretFile::generate(&mut |bytes| bytes.fill(8));
    assert_eq!(secret().commitment(), secret().commitment());
    assert_ne!(secret().commitment(), other.commitment());
    assert_eq!(secret().commitment().len(), 64, "a hash in hexadecimal digits");
}
