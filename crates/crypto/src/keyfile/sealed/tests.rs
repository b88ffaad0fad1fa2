use super::*;
use crate::SchemeKind;
use crate::keyfile::StoredKeys;
use crate::keyfile::lock::SealCost;
use std::fs;

/// Made once by this code and opened by `tests/vectors/sealed_keys.py`, which shares none of it.
const KNOWN: &str = include_str!("../../../tests/vectors/sealed_keys_v2.toml");

/// The same keys as a file of format 1, which older versions wrote.
const KNOWN_1: &str = include_str!("../../../tests/vectors/sealed_keys_v1.toml");

const CHEAP: SealCost = SealCost { memory_kib: 64, passes: 1, lanes: 1 };

fn passphrase(text: &str) -> Passphrase {
    Passphrase::new(Zeroizing::new(text.to_owned())).unwrap()
}

fn right() -> Passphrase {
    passphrase("correct horse battery staple")
}

/// Counts up from zero: for tests, where files must come out the same each time.
fn counting() -> impl FnMut(&mut [u8]) {
    let mut next = 0;
    move |bytes| {
        for byte in bytes {
            *byte = next;
            next += 1;
        }
    }
}

fn sealed(kind: SchemeKind) -> (KeyFile, String) {
    let keys = KeyFile::from_seed(kind, &[5; 32]);
    let text = seal(&keys, &right(), CHEAP, &mut counting(), Path::new("keys")).unwrap();
    (keys, text.to_string())
}

fn parse(text: &str) -> Result<SealedKeys, KeyFileError> {
    SealedKeys::parse(text, Path::new("keys"))
}

fn open(text: &str) -> Result<KeyFile, KeyFileError> {
    parse(text)?.open(&right())
}

#[test]
fn the_format_is_pinned() {
    let keys = KeyFile::from_seed(SchemeKind::Bls, &[5; 32]);
    let cost = SealCost { memory_kib: 1024, passes: 2, lanes: 4 };
    let text = seal(&keys, &right(), cost, &mut counting(), Path::new("keys")).unwrap();
    assert_eq!(*text, KNOWN);
    let opened = open(KNOWN).unwrap();
    assert_eq!(opened.identity.seed(), keys.identity.seed());
    assert_eq!(opened.voting.to_bytes(), keys.voting.to_bytes());
}

#[test]
fn a_file_of_format_1_opens_and_shows_no_proof() {
    let keys = KeyFile::from_seed(SchemeKind::Bls, &[5; 32]);
    let stored = parse(KNOWN_1).unwrap();
    let unproven = PublicKeys { identity_proof: PossessionProof(Vec::new()), ..keys.public() };
    assert_eq!(*stored.public(), unproven);
    assert_eq!(stored.open(&right()).unwrap().public(), keys.public());
    let proof = format!("identity_proof = \"{}\"\n", keys.public().identity_proof);
    let mixed = KNOWN_1.replace("public_voting", &format!("{proof}public_voting"));
    assert!(parse(&mixed).is_err(), "format 1 has no such line");
    let without = KNOWN.replace(&proof, "");
    assert!(parse(&without).is_err(), "format 2 has it");
    let empty = KNOWN.replace(&proof, "identity_proof = \"\"\n");
    assert!(parse(&empty).is_err(), "and says something");
}

#[test]
fn the_default_cost_is_that_of_rfc_9106() {
    let SealCost { memory_kib, passes, lanes } = SealCost::default();
    assert_eq!((memory_kib, passes, lanes), (65_536, 3, 4));
    SealCost::default().check(Path::new("keys")).unwrap();
}

#[test]
fn a_sealed_file_opens_with_its_passphrase_only() {
    let folder = tempfile::tempdir().unwrap();
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::BlsThreshold] {
        let path = folder.path().join(kind.to_string());
        let keys = KeyFile::from_seed(kind, &[7; 32]);
        keys.write_sealed(&path, &right(), CHEAP, &mut counting()).unwrap();
        assert!(matches!(KeyFile::read(&path), Err(KeyFileError::Sealed { .. })));
        let stored = StoredKeys::read(&path).unwrap();
        assert_eq!(stored.public(), keys.public());
        let StoredKeys::Sealed(stored) = stored else { panic!("{stored:?}") };
        assert_eq!(stored.cost(), CHEAP);
        assert_eq!(stored.open(&right()).unwrap().public(), keys.public());
        for wrong in ["correct horse battery stapl", "Correct horse battery staple", "x"] {
            let error = stored.open(&passphrase(wrong)).unwrap_err();
            assert!(matches!(error, KeyFileError::Passphrase { .. }), "{error}");
        }
    }
}

#[test]
fn every_bit_of_the_file_counts() {
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls] {
        let (_, text) = sealed(kind);
        open(&text).unwrap();
        // All bits of the header's values and of the seal; reading refuses most before the cipher.
        for at in 0..text.len() {
            for bit in 0..7 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let altered = String::from_utf8(bytes).unwrap();
                let opened = open(&altered);
                assert!(opened.is_err(), "byte {at} bit {bit}: {altered}");
            }
        }
    }
}

#[test]
fn bytes_added_or_missing_are_noticed() {
    let (_, text) = sealed(SchemeKind::Ed25519);
    for end in 0..text.len() {
        assert!(open(&text[..end]).is_err(), "cut at {end}");
    }
    for (at, _) in text.match_indices('\n') {
        for insert in ["\n", " ", "\r", "# a comment\n"] {
            let mut longer = text.clone();
            longer.insert_str(at, insert);
            assert!(open(&longer).is_err(), "{insert:?} at {at}");
        }
    }
    assert!(open(&format!("{text}\n")).is_err());
    assert!(open(&text.replace('\n', "\r\n")).is_err());
}

#[test]
fn public_keys_in_the_header_cannot_be_exchanged() {
    let (keys, text) = sealed(SchemeKind::Ed25519);
    let other = KeyFile::from_seed(SchemeKind::Ed25519, &[6; 32]);
    let (ours, theirs) = (keys.public().identity, other.public().identity);
    let altered = text.replace(&ours.to_string(), &theirs.to_string());
    assert_ne!(altered, text);
    assert_eq!(parse(&altered).unwrap().public().identity, theirs);
    assert!(matches!(open(&altered), Err(KeyFileError::Passphrase { .. })));
}

#[test]
fn salt_and_nonce_are_fresh_each_time() {
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    let mut random = counting();
    let path = Path::new("keys");
    let first = seal(&keys, &right(), CHEAP, &mut random, path).unwrap();
    let second = seal(&keys, &right(), CHEAP, &mut random, path).unwrap();
    let (first, second) = (parse(&first).unwrap(), parse(&second).unwrap());
    assert_ne!(first.lock.salt, second.lock.salt);
    assert_ne!(first.lock.nonce, second.lock.nonce);
    assert_ne!(first.sealed, second.sealed);
}

#[test]
pub(crate) fn a_costly_file_is_refused_before_anything_is_allocated() {
    let (_, text) = sealed(SchemeKind::Ed25519);
    let asking = |memory: &str, passes: &str, lanes: &str| {
        let text = text.replace("memory_kib = \"64\"", &format!("memory_kib = \"{memory}\""));
        let text = text.replace("passes = \"1\"", &format!("passes = \"{passes}\""));
        parse(&text.replace("lanes = \"1\"", &format!("lanes = \"{lanes}\"")))
    };
    for (memory, passes, lanes) in [
        ("4294967295", "1", "1"),
        ("1048577", "1", "1"),
        ("64", "17", "1"),
        ("64", "4294967295", "1"),
        ("64", "1", "65"),
        ("1048576", "5", "1"),
    ] {
        match asking(memory, passes, lanes) {
            Err(KeyFileError::Cost { .. }) => {}
            other => panic!("{memory} {passes} {lanes}: {other:?}"),
        }
    }
    asking("1048576", "4", "64").unwrap();
    asking("64", "16", "1").unwrap();
    for unreadable in ["4294967296", "-1", "", "64 "] {
        let error = asking(unreadable, "1", "1").unwrap_err();
        assert!(matches!(error, KeyFileError::Format { .. }), "{error}");
    }
    // Argon2 itself needs a pass, a lane, and eight blocks for each lane.
    for (memory, passes, lanes) in
        [("7", "1", "1"), ("64", "0", "1"), ("64", "1", "0"), ("64", "1", "9")]
    {
        let error = asking(memory, passes, lanes).unwrap().open(&right()).unwrap_err();
        assert!(matches!(error, KeyFileError::Format { .. }), "{error}");
    }
}

/// The seal's length follows from the scheme, so that no file has room for more or less than its
/// keys.
#[test]
fn the_seal_is_as_long_as_the_keys() {
    let (_, text) = sealed(SchemeKind::BlsThreshold);
    assert!(open(&text).is_ok());
    let other = text.replace("bls-threshold", "bls");
    let error = open(&other).unwrap_err().to_string();
    assert!(error.contains("`sealed` must be 160 hexadecimal digits"), "{error}");
}

#[test]
fn other_versions_are_named() {
    let (_, text) = sealed(SchemeKind::Ed25519);
    for (from, to) in [
        ("quorate-sealed-keys-2", "quorate-sealed-keys-3"),
        ("argon2id", "scrypt"),
        ("xchacha20-poly1305", "aes-256-gcm"),
    ] {
        let error = parse(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(from) && error.contains("a newer version wrote it"), "{error}");
    }
}

#[test]
fn replacing_changes_the_file_at_once_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let keys = KeyFile::from_seed(SchemeKind::Bls, &[5; 32]);
    keys.write(&path).unwrap();
    keys.replace_sealed(&path, &right(), CHEAP, &mut counting()).unwrap();
    assert!(StoredKeys::read(&path).unwrap().is_sealed());
    keys.replace(&path).unwrap();
    assert_eq!(KeyFile::read(&path).unwrap().public(), keys.public());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    // What an interrupted replacement left is a secret too: it is not overwritten.
    fs::write(folder.path().join("keys.new"), "old").unwrap();
    assert!(matches!(keys.replace(&path), Err(KeyFileError::Exists { .. })));
    assert_eq!(KeyFile::read(&path).unwrap().public(), keys.public());
}

#[test]
fn a_passphrase_is_one_line_of_text() {
    use crate::PassphraseError::{Empty, Lines, Long, NotText, Short};
    for (bytes, expected) in [
        (&b""[..], Empty),
        (b"\n", Empty),
        (b"two\nlines\n", Lines),
        (b"\xff\xfe", NotText),
        (&[b'x'; 1025], Long),
    ] {
        assert_eq!(Passphrase::from_file(bytes).unwrap_err(), expected);
    }
    for bytes in [&b"a phrase"[..], b"a phrase\n", b"a phrase\r\n"] {
        let read = Passphrase::from_file(bytes).unwrap();
        assert!(read.is_same(&passphrase("a phrase")));
        read.check_new().unwrap();
    }
    assert!(!passphrase("a phrase ").is_same(&passphrase("a phrase")));
    assert_eq!(passphrase("seven77").check_new().unwrap_err(), Short);
    assert_eq!(format!("{:?}", right()), "Passphrase(…)");
}
