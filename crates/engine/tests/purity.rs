//! The pure crates own no clock, socket or thread: nothing that could is among their dependencies;
//! nor among those of the crates that run them in virtual time.

use std::process::Command;

const PURE: [&str; 7] = [
    "quorate-crypto",
    "quorate-types",
    "quorate-consensus",
    "quorate-payments",
    "quorate-engine",
    "quorate-deterministic",
    "quorate-model",
];
const IMPURE: [&str; 8] =
    ["tokio", "mio", "async-std", "rustls", "quinn", "socket2", "hyper", "futures"];

#[test]
fn pure_crates_depend_on_nothing_that_does_io() {
    for package in PURE {
        let tree = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
        let tree = String::from_utf8(tree.stdout).expect("names are text");
        let names: Vec<&str> = tree.lines().filter_map(|l| l.split_whitespace().next()).collect();
        assert!(names.contains(&package), "the tree of {package} is empty");
        for impure in IMPURE {
            assert!(!names.contains(&impure), "{package} depends on {impure}");
        }
    }
}
