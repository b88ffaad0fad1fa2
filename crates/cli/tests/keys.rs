//! Sealed key files, as an operator meets them.

use crate::common::{json, quorate, stderr, stdout, text, works};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use tempfile::TempDir;

const RIGHT: &str = "correct horse battery staple";

fn words(place: &Path, name: &str, text: &str) -> PathBuf {
    let path = place.join(name);
    fs::write(&path, format!("{text}\n")).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
    path
}

/// Runs a command that must be refused, and returns what it says.
fn refusal(arguments: &[&str]) -> String {
    let output = quorate(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    stderr(&output)
}

fn secrets(key: &Path) -> String {
    let content = fs::read_to_string(key).expect("a key file");
    content.lines().filter(|line| line.starts_with("identity =")).collect()
}

#[test]
fn keys_are_sealed_opened_and_sealed_anew() {
    let place = tempfile::tempdir().expect("a folder");
    let key = place.path().join("key.toml");
    let (key_text, old) = (text(&key), words(place.path(), "old", RIGHT));
    let new = words(place.path(), "new", "another passphrase");
    let made = json(&["keys", "generate", key_text, "--scheme", "bls", "--json"]);
    let clear = secrets(&key);
    assert!(clear.len() > 64);

    works(&["keys", "encrypt", key_text, "--passphrase-file", text(&old)]);
    assert_eq!(secrets(&key), "", "nothing is in the clear");
    let mode = fs::metadata(&key).expect("a key file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(json(&["keys", "show", key_text, "--json"]), made, "public without a passphrase");
    let said = refusal(&["keys", "encrypt", key_text, "--passphrase-file", text(&old)]);
    assert!(said.contains("sealed already"), "{said}");

    let change = ["keys", "passphrase", key_text, "--passphrase-file"];
    works(&[&change[..], &[text(&old), "--new-passphrase-file", text(&new)]].concat());
    let said = refusal(&["keys", "verify", key_text, "--passphrase-file", text(&old)]);
    assert!(said.contains("the passphrase does not open"), "{said}");
    works(&["keys", "verify", key_text, "--passphrase-file", text(&new)]);

    works(&["keys", "decrypt", key_text, "--passphrase-file", text(&new)]);
    assert_eq!(secrets(&key), clear);
    let said = refusal(&["keys", "decrypt", key_text, "--passphrase-file", text(&new)]);
    assert!(said.contains("is not sealed"), "{said}");
}

#[test]
fn new_keys_are_sealed_from_the_start() {
    let place = tempfile::tempdir().expect("a folder");
    let key = place.path().join("key.toml");
    let right = words(place.path(), "words", RIGHT);
    let generate = ["keys", "generate", text(&key), "--encrypt"];
    let output = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(generate)
        .env("QUORATE_PASSPHRASE_FILE", &right)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("[[members]]"));
    works(&["keys", "verify", text(&key), "--passphrase-file", text(&right)]);
    let said = refusal(&generate);
    assert!(said.contains("exists already"), "{said}");
}

#[test]
fn passphrases_that_protect_nothing_are_refused() {
    let place = tempfile::tempdir().expect("a folder");
    let key = place.path().join("key.toml");
    let generate = ["keys", "generate", text(&key), "--encrypt", "--passphrase-file"];
    for (passphrase, expected) in [
        ("short", "fewer than 8 characters"),
        ("", "it is empty"),
        ("two\nlines", "more than one line"),
    ] {
        let file = words(place.path(), "words", passphrase);
        let said = refusal(&[&generate[..], &[text(&file)]].concat());
        assert!(said.contains(expected), "{said}");
    }
    let open = words(place.path(), "words", RIGHT);
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("changed");
    let said = refusal(&[&generate[..], &[text(&open)]].concat());
    assert!(said.contains("open to others"), "{said}");
    // Nobody to ask, and no file.
    let said = refusal(&generate[..4]);
    assert!(said.contains("no terminal") && said.contains("--passphrase-file"), "{said}");
    assert!(!key.exists());
}

/// A validator alone in its committee, with a sealed key.
fn sealed_validator() -> (TempDir, PathBuf, PathBuf) {
    let place = tempfile::tempdir().expect("a folder");
    let net = place.path().join("net");
    let base = quorate_node::ports::free_ports(2).expect("free ports").to_string();
    works(&["testnet", text(&net), "-n", "1", "--base-port", &base]);
    let right = words(place.path(), "words", RIGHT);
    let key = net.join("validator-0/key.toml");
    works(&["keys", "encrypt", text(&key), "--passphrase-file", text(&right)]);
    (place, net.join("validator-0/config.toml"), right)
}

#[test]
fn a_validator_with_a_sealed_key_runs() {
    let (_place, config, right) = sealed_validator();
    let mut validator = Command::new(env!("CARGO_BIN_EXE_quorate"))
        .args(["run", "--json", "--exit-with-parent", "--config", text(&config)])
        .env("QUORATE_PASSPHRASE_FILE", &right)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let mut first = String::new();
    let mut output = BufReader::new(validator.stdout.take().expect("piped"));
    output.read_line(&mut first).expect("a line");
    assert_eq!(first.trim(), "{", "it runs and says where");
    drop(validator.stdin.take());
    assert!(validator.wait().expect("ended").success());
}

#[test]
fn a_validator_whose_key_does_not_open_says_why() {
    let (place, config, _right) = sealed_validator();
    let said = refusal(&["run", "--config", text(&config)]);
    for way in ["passphrase_file", "QUORATE_PASSPHRASE_FILE", "quorate-passphrase"] {
        assert!(said.contains(way), "{said}");
    }
    let wrong = words(place.path(), "wrong", "correct horse battery stable");
    let said = refusal(&["run", "--config", text(&config), "--passphrase-file", text(&wrong)]);
    assert!(said.contains("the passphrase does not open"), "{said}");
    let said = refusal(&["run", "--config", text(&config), "--passphrase-file", "/nowhere"]);
    assert!(said.contains("cannot read the passphrase file /nowhere"), "{said}");
}

/// A command at a terminal, which `script` (util-linux) provides.
struct Terminal {
    child: Child,
    output: ChildStdout,
    /// All that was shown so far.
    shown: String,
    /// Part of it that was waited for.
    seen: usize,
}

impl Terminal {
    fn run(arguments: &[&str]) -> Self {
        let command = [&[env!("CARGO_BIN_EXE_quorate")], arguments].concat().join(" ");
        let mut child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`script` of util-linux is installed");
        let output = child.stdout.take().expect("piped");
        Self { child, output, shown: String::new(), seen: 0 }
    }

    /// Waits until `prompt` is shown, and types a line.
    fn answer(&mut self, prompt: &str, line: &str) {
        self.wait_for(prompt);
        let keyboard = self.child.stdin.as_mut().expect("piped");
        keyboard.write_all(format!("{line}\n").as_bytes()).expect("typed");
    }

    fn wait_for(&mut self, text: &str) {
        let mut bytes = [0; 256];
        loop {
            if let Some(at) = self.shown[self.seen..].find(text) {
                self.seen += at + text.len();
                return;
            }
            let count = self.output.read(&mut bytes).expect("read");
            assert!(count > 0, "{text:?} was not shown: {}", self.shown);
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    }

    /// The exit code, and all that was shown.
    fn end(mut self) -> (Option<i32>, String) {
        self.output.read_to_string(&mut self.shown).expect("read");
        (self.child.wait().expect("ended").code(), self.shown)
    }
}

#[test]
fn a_terminal_is_asked_without_echo_and_twice_for_something_new() {
    let place = tempfile::tempdir().expect("a folder");
    let key = place.path().join("key.toml");
    let mut terminal = Terminal::run(&["keys", "generate", text(&key), "--encrypt"]);
    terminal.answer("New passphrase of", "short");
    terminal.wait_for("fewer than 8 characters");
    terminal.answer("New passphrase of", RIGHT);
    terminal.answer("The same again:", "correct horse battery stable");
    terminal.wait_for("The two differ.");
    terminal.answer("New passphrase of", RIGHT);
    terminal.answer("The same again:", RIGHT);
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(0), "{shown}");
    assert!(!shown.contains("correct horse"), "it was echoed: {shown}");

    let mut terminal = Terminal::run(&["keys", "verify", text(&key)]);
    terminal.answer("Passphrase of", "not that one");
    let (code, shown) = terminal.end();
    assert_eq!(code, Some(2), "{shown}");
    assert!(shown.contains("the passphrase does not open"), "{shown}");
    let mut terminal = Terminal::run(&["keys", "verify", text(&key)]);
    terminal.answer("Passphrase of", RIGHT);
    assert_eq!(terminal.end().0, Some(0));
}

/// A voting key for the next epoch is of the same identity, and as secret as the present one.
#[test]
fn a_new_voting_key_keeps_identity_and_seal_of_another_file() {
    let place = tempfile::tempdir().expect("a folder");
    let [key, next] = ["key.toml", "key.next.toml"].map(|name| place.path().join(name));
    let words = words(place.path(), "words", RIGHT);
    let sealed = ["--passphrase-file", text(&words)];
    works(&[&["keys", "generate", text(&key), "--encrypt"], &sealed[..]].concat());
    let generate = ["keys", "generate", text(&next), "--scheme", "bls", "--identity", text(&key)];
    works(&[&generate[..], &sealed].concat());
    works(&[&["keys", "verify", text(&next)], &sealed[..]].concat());
    assert_eq!(secrets(&next), "", "nothing is in the clear");
    let [present, following] =
        [&key, &next].map(|key| json(&["keys", "show", text(key), "--json"]));
    assert_eq!(present["identity"], following["identity"]);
    assert_eq!(following["scheme"], "bls");
    assert!(refusal(&generate).contains("exists already"));
    let plain = refusal(&[&["keys", "generate", "new"], &sealed[..]].concat());
    assert!(plain.contains("--encrypt") && plain.contains("--identity"), "{plain}");
}
