//! `quorate keys rotate`: a new voting key for a member that keeps its identity.

use crate::failure::{CommandResult, Failure};
use crate::passphrase;
use clap::Args;
use quorate_crypto::{KeyFile, SchemeKind, SealCost, StoredKeys};
use quorate_node::keys::next_key_file;
use quorate_node::testnet::system_random;
use std::path::PathBuf;

/// Make a new voting key for a member that keeps its identity, of another scheme if asked
///
/// Writes `NAME.next.toml` beside NAME.toml, sealed under the same passphrase if NAME.toml is
/// sealed, and prints the member's new entry. The file takes over by itself in the epoch whose
/// committee file names its voting key: draft a change with `quorate committee draft --replace`.
/// Move it over NAME.toml once that epoch has begun.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The member's present key file
    file: PathBuf,
    /// The voting scheme, ed25519 or bls; by default that of the present key
    #[arg(long, value_parser = super::super::scheme)]
    scheme: Option<SchemeKind>,
    /// Take the passphrase of a sealed file from the first line of FILE instead of asking
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Print the new public parts as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let stored = StoredKeys::read(&self.file).map_err(Failure::usage)?;
        let scheme = self.scheme.unwrap_or(stored.public().scheme);
        let fresh = KeyFile::generate(scheme, &mut system_random).map_err(Failure::usage)?;
        let next = next_key_file(&self.file);
        let keys = match stored {
            StoredKeys::Open(keys) => {
                let keys = KeyFile { identity: keys.identity, ..fresh };
                keys.write(&next).map_err(Failure::usage)?;
                keys
            }
            StoredKeys::Sealed(sealed) => {
                let named = self.passphrase_file.as_deref();
                let passphrase = passphrase::existing(&self.file, named)?;
                let keys = sealed.open(&passphrase).map_err(Failure::usage)?;
                let keys = KeyFile { identity: keys.identity, ..fresh };
                keys.write_sealed(&next, &passphrase, SealCost::default(), &mut system_random)
                    .map_err(Failure::usage)?;
                keys
            }
        };
        super::print(&keys.public(), self.json);
        Ok(())
    }
}
