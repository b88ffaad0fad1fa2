//! `quorate kv token`: what it leaves of a file that others read, link to and change as well.

use crate::common::{json, quorate, stderr, stdout, text};
use quorate_crypto::hash;
use rustix::process::{getgid, getuid};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn names(file: &Path) -> Vec<String> {
    let listed = json(&["kv", "--json", "token", "list", text(file)]);
    let users = listed["tokens"].as_array().expect("a list").iter();
    users.map(|user| user["name"].as_str().expect("a name").to_owned()).collect()
}

fn change(arguments: &[&str]) {
    let output = quorate(&[&["kv", "token"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
}

/// Files of a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

#[test]
fn a_change_keeps_owner_mode_and_link() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path().join("secrets");
    fs::create_dir(&folder).expect("made");
    let (file, link) = (folder.join("users"), place.path().join("tokens.toml"));
    change(&["add", text(&file), "first"]);
    assert_eq!(fs::metadata(&file).expect("a file").mode() & 0o7777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    // Whoever may give a file away gives it to somebody else.
    let owner = if getuid().is_root() { (1, 2) } else { (getuid().as_raw(), getgid().as_raw()) };
    chown(&file, Some(owner.0), Some(owner.1)).expect("given");
    symlink("secrets/users", &link).expect("linked");

    change(&["add", text(&link), "second"]);
    change(&["remove", text(&link), "first"]);
    assert_eq!(names(&file), ["second"]);
    assert!(link.is_symlink(), "the link is still one");
    let found = fs::metadata(&file).expect("a file");
    assert_eq!((found.uid(), found.gid()), owner);
    assert_eq!(found.mode() & 0o7777, 0o640);
    assert_eq!(files(&folder), [file], "nothing is left beside it");
}

#[test]
fn changes_at_once_lose_nobody() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("tokens.toml");
    let add = |number: u32| -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.args(["kv", "token", "add", text(&file), &format!("user-{number:02}")]);
        command.stdout(Stdio::null()).spawn().expect("the binary runs")
    };
    let adding: Vec<Child> = (0..24).map(add).collect();
    for mut child in adding {
        assert!(child.wait().expect("ended").success());
    }
    let mut found = names(&file);
    found.sort();
    let expected: Vec<String> = (0..24).map(|number| format!("user-{number:02}")).collect();
    assert_eq!(found, expected);
}

#[test]
fn what_a_gateway_would_refuse_is_not_written() {
    let place = tempfile::tempdir().expect("a folder");
    let file = place.path().join("tokens.toml");
    let refused = |arguments: &[&str], because: &str| {
        let output = quorate(&[&["kv", "token"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
        assert!(stderr(&output).contains(because), "{}", stderr(&output));
    };
    refused(&["add", text(&file), ""], "user 1 has no name");
    assert!(!file.exists());
    change(&["add", text(&file), "till"]);
    refused(&["add", text(&file), "till"], "has a user 'till'");
    refused(&["remove", text(&file), "auditor"], "has no user 'auditor'");
    let before = fs::read_to_string(&file).expect("a file");
    let user = |name| {
        let digest = hash(b"token").to_hex();
        format!("[[tokens]]\nname = \"{name}\"\nhash = \"{digest}\"\nrights = \"read\"\n")
    };
    fs::write(&file, format!("{before}\n{}{}", user("a"), user("b"))).expect("written");
    refused(&["list", text(&file)], "'a' and 'b' have the same token");
    fs::write(&file, before + &"# more\n".repeat(600_000)).expect("written");
    refused(&["list", text(&file)], "it is longer than 4 MiB");
}
