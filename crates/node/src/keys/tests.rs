use super::*;
use quorate_crypto::{SchemeKind, SealCost};
use std::fs;
use std::os::unix::fs::PermissionsExt;

struct Place {
    folder: tempfile::TempDir,
    config: NodeConfig,
}

impl Place {
    /// A key file that `open sesame` opens.
    fn sealed() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.toml");
        let cost = SealCost { memory_kib: 64, passes: 1, lanes: 1 };
        let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
        let random = &mut |bytes: &mut [u8]| bytes.fill(7);
        keys.write_sealed(&key, &words("open sesame"), cost, random).unwrap();
        let config = NodeConfig::new("committee".into(), key, "data".into());
        Self { folder, config }
    }

    fn passphrase_file(&mut self, text: &str, mode: u32) {
        let path = self.folder.path().join("words");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        self.config.passphrase_file = Some(path);
    }
}

fn words(text: &str) -> Passphrase {
    Passphrase::from_file(text.as_bytes()).unwrap()
}

#[test]
fn a_sealed_key_takes_the_passphrase_of_its_file() {
    let mut place = Place::sealed();
    for mode in [0o400, 0o600, 0o440, 0o640] {
        place.passphrase_file("open sesame\n", mode);
        let keys = load(&place.config, &mut |_| panic!("nobody is asked")).unwrap();
        let expected = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
        assert_eq!(keys.public(), expected.public());
        fs::remove_file(place.folder.path().join("words")).unwrap();
    }
}

#[test]
fn a_sealed_key_without_a_file_asks() {
    let place = Place::sealed();
    let mut asked = 0;
    let mut ask = |path: &Path| {
        assert_eq!(path, place.config.key);
        asked += 1;
        Some(words("open sesame"))
    };
    load(&place.config, &mut ask).unwrap();
    assert_eq!(asked, 1);
    let error = load(&place.config, &mut |_| None).unwrap_err();
    assert!(matches!(error, NodeError::NoPassphrase { .. }), "{error}");
}

#[test]
fn an_open_key_takes_no_passphrase() {
    let mut place = Place::sealed();
    place.config.key = place.folder.path().join("open.toml");
    KeyFile::from_seed(SchemeKind::Bls, &[5; 32]).write(&place.config.key).unwrap();
    load(&place.config, &mut |_| panic!("nobody is asked")).unwrap();
}

#[test]
fn the_wrong_passphrase_is_named_as_such() {
    let mut place = Place::sealed();
    place.passphrase_file("open barley\n", 0o600);
    let error = load(&place.config, &mut |_| None).unwrap_err().to_string();
    assert!(
        error.contains("the passphrase does not open") && error.contains("key.toml"),
        "{error}"
    );
}

#[test]
fn a_passphrase_file_is_private_and_one_line() {
    for (text, mode, expected) in [
        ("open sesame\n", 0o644, "open to others (mode 0644)"),
        ("open sesame\n", 0o660, "open to others (mode 0660)"),
        ("", 0o600, "it is empty"),
        ("open\nsesame\n", 0o600, "more than one line"),
        (&"x".repeat(5_000), 0o600, "more than 1024 bytes"),
    ] {
        let mut place = Place::sealed();
        place.passphrase_file(text, mode);
        let error = load(&place.config, &mut |_| None).unwrap_err();
        assert!(matches!(error, NodeError::Passphrase(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let mut place = Place::sealed();
    place.config.passphrase_file = Some(place.folder.path().join("nowhere"));
    let error = load(&place.config, &mut |_| None).unwrap_err().to_string();
    assert!(
        error.contains("cannot read the passphrase file") && error.contains("nowhere"),
        "{error}"
    );
}

#[test]
fn a_credential_is_guarded_by_systemd_and_not_by_its_mode() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(CREDENTIAL);
    fs::write(&path, "open sesame").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(read_passphrase(&path, Origin::Credential).unwrap().is_same(&words("open sesame")));
    read_passphrase(&path, Origin::Environment).unwrap_err();
}

/// A committee of the member with these keys alone.
fn naming(keys: &KeyFile) -> (Committee, CommitteeFile) {
    let file = CommitteeFile {
        name: "one".into(),
        network: None,
        epoch: quorate_types::Epoch(1),
        scheme: keys.public().scheme.to_string(),
        redundancy: 0,
        settings: quorate_types::AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: vec![quorate_types::Member::new(&keys.public(), "localhost:1".into())],
    };
    (Committee::load(&file, quorate_crypto::KeyCache::Off).unwrap(), file)
}

/// New keys of the same identity.
fn rotated(keys: &KeyFile, seed: u8) -> KeyFile {
    KeyFile { voting: KeyFile::from_seed(SchemeKind::Bls, &[seed; 32]).voting, ..keys.clone() }
}

/// The operator moves the new file over the old one while the validator runs, and rotates again.
#[test]
fn keys_that_took_the_place_of_others_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key.toml");
    let first = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    let (second, third) = (rotated(&first, 6), rotated(&first, 7));
    let config = NodeConfig::new("committee".into(), key.clone(), "data".into());
    first.write(&key).unwrap();
    let keyring = Keyring::load(&config, &mut |_| None).unwrap();
    second.write(&next_key_file(&key)).unwrap();
    let in_force = |named: &KeyFile| {
        let (committee, file) = naming(named);
        keyring.in_force(&config, &committee, &file).unwrap().public().voting
    };
    assert_eq!(in_force(&second), second.public().voting, "it lies beside");
    fs::rename(next_key_file(&key), &key).unwrap();
    third.write(&next_key_file(&key)).unwrap();
    for keys in [&first, &second, &third] {
        assert_eq!(in_force(keys), keys.public().voting);
    }
    assert_eq!(in_force(&rotated(&first, 8)), first.public().voting, "nobody has it");
}

#[test]
fn a_typed_passphrase_opens_what_follows() {
    let place = Place::sealed();
    let first = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    let second = rotated(&first, 6);
    let cost = SealCost { memory_kib: 64, passes: 1, lanes: 1 };
    let random = &mut |bytes: &mut [u8]| bytes.fill(8);
    let next = next_key_file(&place.config.key);
    second.write_sealed(&next, &words("open sesame"), cost, random).unwrap();
    let mut asked = 0;
    let keyring = Keyring::load(&place.config, &mut |_| {
        asked += 1;
        Some(words("open sesame"))
    });
    let (committee, file) = naming(&second);
    let keys = keyring.unwrap().in_force(&place.config, &committee, &file).unwrap();
    assert_eq!((keys.public().voting, asked), (second.public().voting, 1));
}
