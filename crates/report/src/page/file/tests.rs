use super::{FileError, parse, read, write};
use crate::Report;
use crate::page::{Run, name_runs, tests::report};
use serde_json::json;
use std::path::Path;

fn written(name: &str, runs: &[Run]) -> Vec<Report> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new folder").join(name);
    write(&path, runs).expect("written");
    read(&path).expect("read back")
}

fn refusal(text: &str) -> String {
    parse(Path::new("some.file"), text).expect_err("no result").to_string()
}

#[test]
fn what_is_written_is_read_back() {
    let one = name_runs(vec![report("bls")], &[]);
    let two = name_runs(vec![report("bls"), report("ed25519")], &[]);
    for name in ["page.html", "result.json"] {
        assert_eq!(written(name, &one), [report("bls")], "{name}");
        assert_eq!(written(name, &two), [report("bls"), report("ed25519")], "{name}");
    }
}

#[test]
fn other_formats_are_named_with_what_to_do() {
    let mut old = serde_json::to_value(report("bls")).expect("plain data");
    old.as_object_mut().expect("an object").remove("format");
    let text = refusal(&old.to_string());
    assert!(text.contains("some.file holds a result of format 1"), "{text}");
    assert!(text.ends_with("measure again"), "{text}");
    old["format"] = json!(999);
    let text = refusal(&old.to_string());
    assert!(
        text.contains("format 999") && text.ends_with("read it with a newer quorate"),
        "{text}"
    );
}

#[test]
fn other_files_are_refused_with_a_reason() {
    for (text, reason) in [
        ("", "EOF while parsing"),
        ("not json", "expected"),
        ("[]", "there is no result in it"),
        ("{}", "it says nothing of committed operations"),
        ("[1]", "it says nothing of committed operations"),
        ("<html></html>", "there is no result inside the page"),
        ("{\"committed_tps\": 1, \"format\": 2}", "missing field"),
    ] {
        let refusal = refusal(text);
        assert!(refusal.starts_with("some.file is neither a report page nor"), "{refusal}");
        assert!(refusal.contains(reason), "{text}: {refusal}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = read(Path::new("/nowhere/result.json")).expect_err("no such file");
    assert!(matches!(error, FileError::Unreadable { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere/result.json"), "{error}");
}
