//! Tells the binary which commit it was built from: a figure without one cannot be repeated.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rustc-env=QUORATE_COMMIT={}", commit().unwrap_or_else(|| "unknown".to_owned()));
    // Without one of these, a commit or a change to a source would leave the old answer behind.
    for path in ["../../.git/HEAD", "../../.git/logs/HEAD", "../../crates", "../../Cargo.lock"] {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
}

fn commit() -> Option<String> {
    let arguments = ["describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"];
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}
