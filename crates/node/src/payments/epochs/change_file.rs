//! A change as a text file: the next network file, and the signatures so far.

use crate::durable;
use crate::payments::AuthorityConfigError;
use crate::payments::config::read_toml;
use crate::testnet::system_random;
use quorate_crypto::{IdentityKey, Signature};
use quorate_payments::NetworkFile;
use quorate_payments::change::Change;
use quorate_types::Epoch;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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

/// Writes a change where there is none, durably and whole, with this date. Of several processes
/// that do so at once one does, and `false` is what the others learn.
///
/// # Errors
/// When the file system refuses.
pub(in crate::payments) fn publish_change(
    path: &Path,
    change: &Change,
    date: SystemTime,
) -> io::Result<bool> {
    let mut name = [0; 8];
    system_random(&mut name);
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(format!(".{}.new", hex::encode(name)));
    let fresh = Path::new(&fresh);
    let write = || {
        let mut file = File::create_new(fresh)?;
        file.write_all(encode(change)?.as_bytes())?;
        file.set_modified(date)?;
        file.sync_all()
    };
    let published = write().and_then(|()| fs::hard_link(fresh, path));
    let _ = fs::remove_file(fresh);
    match published {
        Ok(()) => durable::sync_folder_of(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

fn encode(change: &Change) -> io::Result<String> {
    let signatures = change.signatures.iter();
    let signatures = signatures.map(|(key, one)| (key.to_string(), hex::encode(one.0))).collect();
    let text = ChangeText { signatures, next: change.next.clone() };
    let content = toml::to_string(&text).map_err(io::Error::other)?;
    Ok(format!("{HEADER}{content}"))
}
