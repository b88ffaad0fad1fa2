//! A change as a text file: the next network file, and the signatures so far.

use crate::durable;
use crate::payments::AuthorityConfigError;
use crate::payments::config::read_toml;
use quorate_crypto::{IdentityKey, Signature};
use quorate_payments::NetworkFile;
use quorate_payments::change::Change;
use quorate_types::Epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

const HEADER: &str = "\
# A change of a Quorate payment network to its next epoch. Signatures cover everything under [next]:
# who edits that drafts it anew. Authorities and wallets follow once the whole file is beside their
# network file, under the name of its epoch.
";

/// The change as it stands in a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeText {
    /// Signatures by identity key, both in hexadecimal.
    #[serde(default)]
    signatures: BTreeMap<String, String>,
    next: NetworkFile,
}

/// Place of the change to an epoch: beside the network file.
#[must_use]
pub fn change_beside(network: &Path, epoch: Epoch) -> PathBuf {
    network.with_extension(format!("epoch-{}.toml", epoch.0))
}

/// Reads a change, of which nothing is believed but that it is one.
///
/// # Errors
/// When it cannot be read.
pub fn read_change(path: &Path) -> Result<Change, AuthorityConfigError> {
    let text: ChangeText = read_toml(path)?;
    let mut change = Change::draft(text.next);
    for (key, signature) in &text.signatures {
        let (key, signature) = parse(key, signature).ok_or_else(|| {
            let reason = format!("the signature of {key} is none: hexadecimal digits are missing");
            AuthorityConfigError::Parse { path: path.to_owned(), reason }
        })?;
        change.signatures.insert(key, signature);
    }
    Ok(change)
}

fn parse(key: &str, signature: &str) -> Option<(IdentityKey, Signature)> {
    let bytes = hex::decode(signature).ok()?.try_into().ok()?;
    Some((key.parse().ok()?, Signature(bytes)))
}

/// Writes a change, in the place of the file that is there.
///
/// # Errors
/// When the file system refuses.
pub fn write_change(path: &Path, change: &Change) -> io::Result<()> {
    durable::replace(path, encode(change)?.as_bytes())
}

/// Writes a change where no file is, as others may at the same time.
pub(super) fn create_change(path: &Path, change: &Change) -> io::Result<()> {
    durable::create(path, encode(change)?.as_bytes())
}

fn encode(change: &Change) -> io::Result<String> {
    let signatures = change.signatures.iter();
    let signatures = signatures.map(|(key, one)| (key.to_string(), hex::encode(one.0))).collect();
    let text = ChangeText { signatures, next: change.next.clone() };
    let content = toml::to_string(&text).map_err(io::Error::other)?;
    Ok(format!("{HEADER}{content}"))
}
