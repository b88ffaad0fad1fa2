//! Dependencies of a service of one's own: no Ethereum, no signatures that anybody can forge, and
//! not more packages without somebody deciding so.

use std::process::Command;

/// Packages that only the EVM ledger and its JSON-RPC may bring along, by how their names begin.
const ETHEREUM: [&str; 3] = ["alloy", "revm", "jsonrpsee"];

/// Crates that a service of one's own is built on, with cargo's words for how docs/services.md has
/// them, and the most packages that they come to.
const OURS: [(&[&str], usize); 3] = [
    (&["quorate-types"], 80),
    (&["quorate-node"], 159),
    (&["quorate-gateway", "--no-default-features"], 161),
];

/// A line for each package: its name, version and features.
fn packages(of: &[&str]) -> Vec<String> {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "-e", "normal", "--prefix", "none", "-f", "{p} [{f}]", "-p"])
        .args(of)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).expect("names are text");
    let mut lines: Vec<String> =
        tree.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect();
    lines.sort();
    lines.dedup();
    assert!(lines.iter().any(|line| line.starts_with(of[0])), "the tree of {of:?} is empty");
    lines
}

#[test]
fn a_service_of_ones_own_brings_no_ethereum_along() {
    for (package, _) in OURS {
        for line in packages(package) {
            let ethereum = ETHEREUM.iter().any(|name| line.starts_with(name));
            assert!(!ethereum, "{package:?} depends on {line}");
        }
    }
}

#[test]
fn a_service_of_ones_own_stays_small() {
    for (package, most) in OURS {
        let count = packages(package).len();
        assert!(count <= most, "{package:?} comes to {count} packages, {most} were agreed on");
    }
}

/// Without the simulator's feature a validator's code has no scheme that anybody can forge: no file
/// can name it, and no key of it can be made.
#[test]
fn no_validator_is_built_with_forgeable_signatures() {
    let command: &[&str] = &["quorate-cli", "--no-default-features"];
    for package in OURS.map(|(package, _)| package).into_iter().chain([command]) {
        let lines = packages(package);
        let crypto = lines.iter().find(|line| line.starts_with("quorate-crypto "));
        let features = crypto.expect("ours").split_once('[').expect("a list").1;
        assert!(!features.contains("stub"), "{package:?}: quorate-crypto [{features}");
    }
}
