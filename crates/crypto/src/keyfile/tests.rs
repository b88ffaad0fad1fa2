use super::files::create_private;
use super::*;
use std::fs;
use std::io::Write;
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn read_text(text: &str) -> Result<KeyFile, KeyFileError> {
    let directory = directory();
    let path = directory.path().join("keys");
    create_private(&path).unwrap().write_all(text.as_bytes()).unwrap();
    KeyFile::read(&path)
}

fn problem(text: &str) -> String {
    match read_text(text) {
        Err(KeyFileError::Format { problem, .. }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_key_file_is_read_as_it_was_written() {
    for kind in [SchemeKind::Ed25519, SchemeKind::Bls, SchemeKind::BlsThreshold] {
        let directory = directory();
        let path = directory.path().join("keys");
        let keys = KeyFile::from_seed(kind, &[5; 32]);
        keys.write(&path).unwrap();
        let read = KeyFile::read(&path).unwrap();
        assert_eq!(read.identity.public(), keys.identity.public());
        assert_eq!(read.voting.public(), keys.voting.public());
        assert_eq!(read.voting.kind(), kind);
    }
}

#[test]
fn the_format_is_pinned() {
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    let expected = format!(
        "# Secret keys of a Quorate replica. Whoever reads this file can sign as this replica.\n\
         scheme = \"ed25519\"\nidentity = \"{}\"\nvoting = \"{}\"\n",
        hex::encode(&keys.identity.seed()[..]),
        hex::encode(&keys.voting.to_bytes()[..]),
    );
    assert_eq!(*keys.text(), expected);
}

#[test]
fn identity_and_vote_have_unrelated_secrets() {
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    assert_ne!(keys.identity.public().0.to_vec(), keys.voting.public().0);
    assert_ne!(keys.identity.seed()[..], [5; 32]);
}

#[test]
fn generating_asks_for_randomness() {
    let generate =
        |byte| KeyFile::generate(SchemeKind::Ed25519, &mut |seed| seed.fill(byte)).unwrap();
    assert_ne!(generate(1).identity.public(), generate(2).identity.public());
    let known = KeyFile::from_seed(SchemeKind::Ed25519, &[1; 32]);
    assert_eq!(generate(1).identity.public(), known.identity.public());
}

/// A member that made its own share would have one of no polynomial.
#[test]
fn keys_that_are_dealt_are_not_generated() {
    let kind = SchemeKind::BlsThreshold;
    let error = KeyFile::generate(kind, &mut |seed| seed.fill(1)).unwrap_err();
    assert_eq!(error, KeyError::Dealt { kind });
}

#[test]
fn keys_are_never_overwritten() {
    let directory = directory();
    let path = directory.path().join("keys");
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    keys.write(&path).unwrap();
    let other = KeyFile::from_seed(SchemeKind::Ed25519, &[6; 32]);
    assert!(matches!(other.write(&path), Err(KeyFileError::Exists { .. })));
    assert_eq!(KeyFile::read(&path).unwrap().identity.public(), keys.identity.public());
}

#[cfg(unix)]
#[test]
fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let directory = directory();
    let path = directory.path().join("keys");
    KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]).write(&path).unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    for shared in [0o644, 0o640, 0o604, 0o620, 0o601, 0o660] {
        fs::set_permissions(&path, fs::Permissions::from_mode(shared)).unwrap();
        match KeyFile::read(&path) {
            Err(KeyFileError::Permissions { mode, .. }) => assert_eq!(mode, shared),
            other => panic!("{other:?}"),
        }
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    assert!(KeyFile::read(&path).is_ok());
}

/// As a cluster mounts a secret: root's, for a group to read.
#[cfg(unix)]
#[test]
fn a_group_may_read_what_root_keeps_for_it_and_nobody_may_write() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let directory = directory();
    let path = directory.path().join("keys");
    KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]).write(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    let is_root_s = fs::metadata(&path).unwrap().uid() == 0;
    assert_eq!(KeyFile::read(&path).is_ok(), is_root_s);
    if is_root_s {
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        assert!(matches!(KeyFile::read(&path), Err(KeyFileError::Permissions { .. })));
    }
}

#[test]
fn a_missing_file_is_named() {
    let directory = directory();
    let error = KeyFile::read(&directory.path().join("nowhere")).unwrap_err();
    assert!(error.to_string().starts_with("opening the key file "), "{error}");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

#[test]
fn errors_point_at_the_line_and_repeat_no_secret() {
    let seed = "ab".repeat(32);
    assert_eq!(problem(""), "it lacks the line `scheme = …`");
    assert_eq!(problem("scheme = \"bls\"\n"), "it lacks the line `identity = …`");
    assert_eq!(problem(&format!("\nidentity {seed}")), "line 2 is not `name = \"value\"`");
    assert_eq!(problem(&format!("identity = {seed}")), "line 1 is not `name = \"value\"`");
    assert_eq!(problem(&format!("other = \"{seed}\"")), "line 1 has an unknown name");
    let twice = format!("voting = \"{seed}\"\nvoting = \"{seed}\"");
    assert_eq!(problem(&twice), "line 2 repeats a name");
    let rest = format!("identity = \"{seed}\"\nvoting = \"{seed}\"\n");
    assert!(
        problem(&format!("scheme = \"rsa\"\n{rest}")).starts_with("\"rsa\" is not a signature")
    );
    let short = format!("scheme = \"bls\"\nidentity = \"abc\"\nvoting = \"{seed}\"\n");
    assert_eq!(problem(&short), "`identity` must be 64 hexadecimal digits");
    let dealt = format!("scheme = \"bls-threshold\"\n{rest}");
    assert_eq!(problem(&dealt), "`voting` must be 192 hexadecimal digits");
    assert_eq!(problem(&"#".repeat(5000)), "it exceeds 4096 bytes");
}

#[test]
fn an_unusable_key_is_refused() {
    let text = format!(
        "scheme = \"bls\"\nidentity = \"{}\"\nvoting = \"{}\"\n",
        "ab".repeat(32),
        "00".repeat(32)
    );
    assert!(matches!(read_text(&text), Err(KeyFileError::Key { source: KeyError::Secret, .. })));
}

#[test]
fn secrets_are_not_shown() {
    let keys = KeyFile::from_seed(SchemeKind::Bls, &[5; 32]);
    let shown = format!("{keys:?}");
    assert!(!shown.contains(&hex::encode(&keys.identity.seed()[..4])), "{shown}");
    assert!(!shown.contains(&hex::encode(&keys.voting.to_bytes()[..4])), "{shown}");
}

#[test]
fn a_file_of_no_more_than_its_largest_size_is_read() {
    let text = |bytes: u64| "#".repeat(usize::try_from(bytes).expect("few"));
    let exceeds = format!("it exceeds {} bytes", files::FILE_BYTES_MAX);
    assert_eq!(problem(&text(files::FILE_BYTES_MAX + 1)), exceeds);
    assert_ne!(problem(&text(files::FILE_BYTES_MAX)), exceeds);
}

#[test]
fn the_directory_that_is_synced_is_the_files() {
    let gone = directory().path().join("keys");
    assert!(files::sync_directory(&gone).is_err());
    files::sync_directory(Path::new("keys")).expect("the current directory");
}

#[test]
fn keys_say_whether_they_are_sealed() {
    let keys = KeyFile::from_seed(SchemeKind::Ed25519, &[5; 32]);
    assert!(!StoredKeys::Open(keys).is_sealed());
}
