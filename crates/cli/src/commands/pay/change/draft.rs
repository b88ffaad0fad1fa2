//! `quorate pay change entry` and `draft`: the next network file.

use super::super::place::NetworkPlace;
use super::Loaded;
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::StoredKeys;
use quorate_node::payments::{read_network_file, write_change};
use quorate_payments::change::Change;
use quorate_payments::{AuthorityEntry, NetworkFile};
use std::fs;
use std::path::{Path, PathBuf};

/// Print the entry of an authority, for a draft
#[derive(Debug, Args)]
pub(super) struct Entry {
    /// Key file of the authority; its public keys are read, without a passphrase
    #[arg(long, value_name = "KEYFILE")]
    key: PathBuf,
    /// Address at which payers reach a shard of it: host:port, once for each shard in their order
    #[arg(long = "address", value_name = "ADDRESS", required = true)]
    addresses: Vec<String>,
}

/// Write the change to a next network file, signed by nobody
///
/// Indices are those of the present file, from 0; who is removed leaves no gap. The schemes' keys
/// are as they were: a network of dealt threshold keys (bls-threshold) needs new ones for
/// everybody, which are not drafted here.
#[derive(Debug, Args)]
pub(super) struct Draft {
    /// File to write
    change: PathBuf,
    #[command(flatten)]
    network: NetworkPlace,
    /// Replace the authority of an index by another, as in 3=entry.toml
    #[arg(long, value_name = "INDEX=ENTRY", value_parser = replacement)]
    replace: Vec<(usize, PathBuf)>,
    /// Remove the authority of an index
    #[arg(long, value_name = "INDEX")]
    remove: Vec<usize>,
    /// Add an authority, behind those that are there
    #[arg(long, value_name = "ENTRY")]
    add: Vec<PathBuf>,
}

fn replacement(text: &str) -> Result<(usize, PathBuf), String> {
    let (index, path) = text.split_once('=').ok_or("write INDEX=ENTRY")?;
    let index = index.parse().map_err(|_| format!("'{index}' is no index"))?;
    Ok((index, path.into()))
}

impl Entry {
    pub(super) fn run(&self) -> CommandResult {
        let keys = StoredKeys::read(&self.key).map_err(Failure::usage)?;
        let entry = AuthorityEntry::new(&keys.public(), self.addresses.clone());
        output::text(&toml::to_string(&entry).expect("a plain struct is a table"));
        Ok(())
    }
}

impl Draft {
    pub(super) fn run(&self) -> CommandResult {
        let present = self.network.load(Path::new("."))?;
        let newest = self
            .network
            .path(Path::new("."))
            .and_then(|path| read_network_file(&path, present.epoch()).map_err(Failure::usage))?;
        let mut next = newest.next_epoch(present.id());
        self.edit(&mut next)?;
        if self.change.exists() {
            return Err(Failure::usage(format!("{} exists", self.change.display())));
        }
        present.load_next(&next).map_err(Failure::usage)?;
        write_change(&self.change, &Change::draft(next)).map_err(|error| {
            Failure::usage(format!("cannot write {}: {error}", self.change.display()))
        })?;
        output::line(&Loaded::read(&self.change, &self.network)?.describe());
        Ok(())
    }

    fn edit(&self, next: &mut NetworkFile) -> CommandResult {
        let count = next.authorities.len();
        let named = self.replace.iter().map(|(index, _)| *index).chain(self.remove.iter().copied());
        if let Some(beyond) = named.into_iter().find(|index| *index >= count) {
            return Err(Failure::usage(format!(
                "there is no authority {beyond}: they are numbered 0 to {}",
                count - 1
            )));
        }
        for (index, path) in &self.replace {
            next.authorities[*index] = read_entry(path)?;
        }
        let mut index = 0;
        next.authorities.retain(|_| {
            index += 1;
            !self.remove.contains(&(index - 1))
        });
        for path in &self.add {
            next.authorities.push(read_entry(path)?);
        }
        Ok(())
    }
}

fn read_entry(path: &Path) -> Result<AuthorityEntry, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error| {
        Failure::usage(format!("{} is no authority's entry: {error}", path.display()))
    })
}
