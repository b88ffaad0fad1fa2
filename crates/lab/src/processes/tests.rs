use super::Processes;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A script that can be run. Another process writes what is run: a file that we write ourselves is
/// for a moment also open in any child that another test starts meanwhile, and cannot be run then
/// (`ETXTBSY`).
fn executable(place: &Path, script: &str) -> PathBuf {
    let (text, executable) = (place.join("script"), place.join("stand-in"));
    fs::write(&text, format!("#!/bin/sh\n{script}\n")).expect("written");
    let mut install = Command::new("install");
    let installed = install.args(["-m", "700"]).args([&text, &executable]).status();
    assert!(installed.expect("install runs").success());
    executable
}

/// A "validator" that says something and then lives as long as its standard input.
fn stand_in(script: &str) -> (tempfile::TempDir, Processes) {
    let place = tempfile::tempdir().expect("a folder");
    let executable = executable(place.path(), script);
    let configs: Vec<PathBuf> = (0..2)
        .map(|index| {
            let folder = place.path().join(format!("validator-{index}"));
            fs::create_dir_all(&folder).expect("a folder");
            folder.join("config.toml")
        })
        .collect();
    let processes = Processes::start(&executable, &configs).expect("started");
    (place, processes)
}

fn wait_for<T>(mut what: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(found) = what() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn validators_end_when_they_are_let_go() {
    let (_place, mut processes) = stand_in("cat > /dev/null; echo gone");
    assert!(processes.find_exited().is_none());
    processes.stop();
    assert_eq!(processes.log_tail(0, 5), "gone");
    assert_eq!(processes.log_tail(1, 5), "gone");
}

#[test]
fn a_validator_that_ends_by_itself_is_found_with_its_last_words() {
    let (_place, mut processes) = stand_in("echo one; echo two; echo three; exit 7");
    let (index, status) = wait_for(|| processes.find_exited());
    assert_eq!(status.code(), Some(7));
    assert_eq!(processes.log_tail(index, 2), "two\nthree");
}

/// The state letter of a process, as proc(5) has it.
fn state(id: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("a process");
    stat.rsplit_once(')').expect("a name").1.trim_start()[..1].to_owned()
}

#[test]
fn the_paused_are_there_and_do_nothing_until_they_are_resumed() {
    let (_place, mut processes) = stand_in("cat > /dev/null; echo gone");
    let id = processes.id(0).expect("it runs");
    processes.pause(0).expect("paused");
    wait_for(|| (state(id) == "T").then_some(()));
    assert!(processes.find_exited().is_none());
    processes.resume(0).expect("resumed");
    wait_for(|| (state(id) != "T").then_some(()));
    processes.stop();
    assert_eq!(processes.log_tail(0, 5), "gone");
}

#[test]
fn the_killed_are_not_found_and_can_start_again() {
    let (_place, mut processes) = stand_in("cat > /dev/null");
    processes.kill(0).expect("killed");
    assert!(processes.find_exited().is_none());
    assert_eq!(processes.id(0), None);
    processes.start_one(0).expect("started again");
    assert!(processes.id(0).is_some());
}
