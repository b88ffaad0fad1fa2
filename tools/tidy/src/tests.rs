//! The tree is tidy: one test for each check, and tests of what the checks stand on.

use crate::checks::ALL;
use crate::finding::Finding;
use crate::tree::Tree;
use std::path::Path;
use std::sync::LazyLock;

static TREE: LazyLock<Tree> =
    LazyLock::new(|| Tree::read(Path::new(crate::ROOT)).expect("the tree can be read"));

/// Fails with all findings of a check, if it has any.
fn holds(name: &str) {
    let check = ALL.iter().find(|check| check.name == name).expect("a check of that name");
    let findings = (check.run)(&TREE);
    let lines: Vec<String> =
        findings.iter().map(|Finding { place, advice }| format!("{place}: {advice}")).collect();
    assert!(lines.is_empty(), "{} findings:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn lines_fit_into_a_hundred_columns() {
    holds("columns");
}

#[test]
fn functions_fit_on_a_screen() {
    holds("functions");
}

#[test]
fn documentation_begins_with_a_noun_or_a_verb() {
    holds("interrogatives");
}

#[test]
fn documentation_says_more_than_the_name() {
    holds("short-docs");
}

#[test]
fn nothing_is_public_for_tests_alone() {
    holds("unused");
}

#[test]
fn no_number_is_written_down_twice() {
    holds("constants");
}

#[test]
fn tags_have_names() {
    holds("tags");
}

#[test]
fn decisions_are_numbered_listed_and_there() {
    holds("decisions");
}

#[test]
fn links_lead_somewhere() {
    holds("links");
}

#[test]
fn every_file_belongs_to_a_program() {
    holds("modules");
}

#[test]
fn documents_name_what_is_there() {
    holds("names");
}

#[test]
fn the_first_screen_is_short_and_its_results_are_committed_ones() {
    holds("readme");
}

#[test]
fn files_import_one_another_in_no_circle() {
    holds("circles");
}

#[test]
fn every_check_has_a_test() {
    let own = include_str!("tests.rs");
    for check in ALL {
        assert!(own.contains(&format!("holds(\"{}\")", check.name)), "{} has none", check.name);
    }
}
