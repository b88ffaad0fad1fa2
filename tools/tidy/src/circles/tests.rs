use super::find;
use crate::source::Source;
use crate::tree::Tree;

/// Circles among the files of one package, each by its files, and the names that tie them.
fn circles(files: &[(&str, &str)]) -> Vec<(Vec<String>, Vec<String>)> {
    let source = |(path, text): &(&str, &str)| {
        Source::new(format!("crates/a/src/{path}"), (*text).to_owned())
    };
    let tree = Tree { sources: files.iter().map(source).collect(), ..Tree::default() };
    let name = |file: String| file.trim_start_matches("crates/a/src/").to_owned();
    find(&tree)
        .into_iter()
        .map(|circle| {
            let names = circle.edges.into_iter().flat_map(|(_, _, names)| names).collect();
            (circle.files.into_iter().map(name).collect(), names)
        })
        .collect()
}

fn circle(files: &[&str], names: &[&str]) -> Vec<(Vec<String>, Vec<String>)> {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    vec![(owned(files), owned(names))]
}

#[test]
fn siblings_that_import_one_another_are_a_circle() {
    let files = [
        ("lib.rs", "mod b; mod c;"),
        ("b.rs", "use crate::c::C; pub struct B(C);"),
        ("c.rs", "use super::b; pub struct C; fn f() -> b::B { todo() }"),
    ];
    assert_eq!(circles(&files), circle(&["b.rs", "c.rs"], &["C", "B"]));
}

#[test]
fn a_name_that_a_parent_hands_on_counts_for_its_definition() {
    let files = [
        ("lib.rs", "mod b; mod c; pub use b::B; pub use c::{C, D as E};"),
        ("b.rs", "use crate::E; pub struct B(E);"),
        ("c.rs", "use crate::*; pub struct C(B); pub struct D;"),
    ];
    assert_eq!(circles(&files), circle(&["b.rs", "c.rs"], &["E", "B"]));
}

#[test]
fn a_child_is_part_of_its_parent() {
    let files = [
        ("lib.rs", "mod a; "),
        ("a.rs", "mod b; pub struct A; fn f() { b::g() }"),
        ("a/b.rs", "use super::A; pub fn g(_: A) {}"),
    ];
    assert_eq!(circles(&files), Vec::new());
}

#[test]
fn a_parent_is_in_a_circle_with_what_its_children_import() {
    let files = [
        ("lib.rs", "mod a; mod c;"),
        ("a.rs", "mod b; pub struct A; fn f() { b::g() }"),
        ("a/b.rs", "pub fn g() { crate::c::h() }"),
        ("c.rs", "use crate::a::A; pub fn h() {}"),
    ];
    assert_eq!(circles(&files), circle(&["a.rs", "a/b.rs", "c.rs"], &["g", "h", "A"]));
}

#[test]
fn what_tests_comments_and_strings_name_is_no_import() {
    let files = [
        ("lib.rs", "mod b; mod c;"),
        ("b.rs", "use crate::c::C; #[cfg(test)] mod tests { use crate::c::f; }"),
        ("c.rs", "// crate::b::B\npub struct C; #[cfg(test)] use crate::b; fn f() { \"b::B\"; }"),
    ];
    assert_eq!(circles(&files), Vec::new());
}

#[test]
fn methods_of_a_type_in_a_file_of_their_own_are_no_import() {
    let files = [
        ("lib.rs", "mod state; mod normal;"),
        ("state.rs", "pub struct State; fn run(state: State) { state.on_vote(); }"),
        ("normal.rs", "use crate::state::State; impl State { pub fn on_vote(&self) {} }"),
    ];
    assert_eq!(circles(&files), Vec::new());
}
