//! Secrets that commands make: tokens, and the files that hold them.

use crate::failure::{CommandResult, Failure};
use quorate_node::testnet::system_random;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// A token of 32 random bytes, in hexadecimal.
pub(crate) fn new_token() -> String {
    let mut bytes = [0; 32];
    system_random(&mut bytes);
    hex::encode(bytes)
}

/// Writes a file that only its owner may read; never overwrites.
pub(crate) fn write_new(path: &Path, text: &str) -> CommandResult {
    let mut options = OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
}
