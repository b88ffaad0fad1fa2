use super::*;
use quorate_storage::{LogConfig, Owner, RealDisk};

#[test]
fn a_key_is_marked_for_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let marker = Marker::beside(&folder.path().join("key.toml"));
    let (network, other) = (NetworkId([1; 32]), NetworkId([2; 32]));
    assert_eq!(marker.read(network).unwrap(), None);
    marker.write(network, KeyStatus::Used).unwrap();
    assert_eq!(marker.read(network).unwrap(), Some(KeyStatus::Used));
    assert_eq!(marker.read(other).unwrap(), None);
    marker.write(network, KeyStatus::Lost).unwrap();
    assert_eq!(marker.read(network).unwrap(), Some(KeyStatus::Lost));
}

/// ★ Whatever else is in the folder: without the start of a log there is nothing that knows the
/// votes.
#[test]
fn a_folder_without_a_log_is_a_lost_log() {
    let folder = tempfile::tempdir().unwrap();
    let (data, network) = (folder.path().join("log"), NetworkId([1; 32]));
    let marker = Marker::beside(&folder.path().join("key.toml"));
    let is_lost = || marker.is_lost(network, &data).unwrap();
    assert!(!is_lost(), "a first start");
    let open = || {
        let disk = |name| Box::new(RealDisk::open(&folder.path().join(name)).unwrap());
        Journal::open(disk("log"), disk("bodies"), &Owner::nobody(), LogConfig::default(), None)
            .unwrap()
            .0
    };
    open().begin().unwrap();
    marker.write(network, KeyStatus::Used).unwrap();
    assert!(!is_lost(), "it was begun, if nothing more");

    let segment = data.join("log-000000000001");
    let bytes = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, vec![0; bytes.len()]).unwrap();
    assert!(is_lost(), "zeroes are no log");
    std::fs::remove_file(&segment).unwrap();
    std::fs::create_dir(data.join("lost+found")).unwrap();
    assert!(data.join("lock").exists() && is_lost(), "other files are no log");
    open();
    assert!(is_lost(), "nor is a new one that promised nothing");
    std::fs::write(&segment, bytes).unwrap();
    assert!(!is_lost());
}

#[test]
fn a_lost_log_is_missed() {
    mutants::assert_noticed(Mutant::SignAfterLoss, a_folder_without_a_log_is_a_lost_log);
}

/// ★ Notes that a key has already are not left behind.
#[test]
fn notes_that_a_key_has_already_are_not_left_behind() {
    let place = tempfile::tempdir().expect("a folder");
    let at = |name: &str| place.path().join(name);
    let (key, noted) = (at("key.toml"), at("notes/key.toml"));
    let refused = |noted: &Path| match check_notes(&key, noted) {
        Ok(()) => false,
        Err(NodeError::NotesElsewhere { .. }) => true,
        Err(other) => panic!("{other}"),
    };
    std::fs::create_dir_all(at("notes")).expect("made");
    for name in ["key.used", "key.guard"] {
        std::fs::write(at(name), "").expect("written");
        assert!(!refused(&key));
        assert!(refused(&noted), "{name} is beside the key alone");
        std::fs::rename(at(name), at("notes").join(name)).expect("moved");
        assert!(!refused(&noted));
    }
}

#[test]
fn a_validator_that_leaves_notes_behind_is_noticed() {
    let test = notes_that_a_key_has_already_are_not_left_behind;
    mutants::assert_noticed(Mutant::LeaveNotesBehind, test);
}
