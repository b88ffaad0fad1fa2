//! `quorate committee found`: the committee file of a new network that goes on from another one's
//! state.

use super::draft::{assignment, read_groups};
use super::{change_file, entry};
use crate::commands::committee_scheme;
use crate::commands::state::{Look, checked};
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::{KeyCache, SchemeKind};
use quorate_engine::check_next_settings;
use quorate_node::config::{check_next_host, read_committee_file};
use quorate_node::testnet::committee_text;
use quorate_types::{Committee, CommitteeFile, Epoch};
use serde_json::json;
use std::path::PathBuf;

/// Found a new network on the state of one that lost too many members
///
/// Writes a committee file whose section `from_state` names the old network, the height, the root
/// and the snapshot. They are part of the new network's identity, so that who has this file begins
/// with that state or not at all. Settings, scheme and redundancy are those of the old network,
/// where nothing else is said. The state is verified first.
///
/// The entries are members' public parts as `quorate keys show` prints them, each with its address.
/// Make new keys: what a validator notes beside a key is of one network alone. The old network must
/// not come back: whoever still has disks of it switches them off for good.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// File of the state, as `quorate state export` wrote it
    #[arg(long, value_name = "STATE")]
    from_state: PathBuf,
    /// The committee file that founded the old network
    #[arg(long, value_name = "GENESIS")]
    committee: PathBuf,
    /// The genesis file, if the service has one
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Entries of the new members, one a file, in their order
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    members: Vec<PathBuf>,
    /// A name for people; by default the old one's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Set what members agree on, as under `settings` in a committee file; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Vote with another scheme: ed25519, bls or bls-threshold
    #[arg(long, value_name = "S", value_parser = committee_scheme)]
    scheme: Option<SchemeKind>,
    /// Take the keys of the groups from FILE: the committee file that `quorate keys dkg` wrote
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Number of members more than faults alone ask for
    #[arg(long, value_name = "C")]
    redundancy: Option<u64>,
    /// Committee file to write; it is never overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let first = read_committee_file(&self.committee).map_err(Failure::usage)?;
        let state = checked(&self.from_state, &first, self.genesis.as_deref())?;
        let former = state.last_file(&first);
        let file =
            CommitteeFile { from_state: Some(state.state.from_state()), ..self.founding(former)? };
        let committee = Committee::load(&file, KeyCache::On).map_err(Failure::usage)?;
        check_next_settings(&file, &committee).map_err(Failure::usage)?;
        check_next_host(&former.settings, &file.settings).map_err(Failure::usage)?;
        change_file::write_new(&self.out, &committee_text(&file))?;
        let (look, network) = (Look::of(&state.state, state.by), committee.network());
        if self.json {
            let network = network.to_string();
            output::json(&json!({ "network": network, "from_state": look }));
            return Ok(());
        }
        let (out, from) = (self.out.display(), self.from_state.display());
        let (members, program) = (committee.size(), output::program());
        output::line(&format!(
            "{look}\n\nFounded network {network} on it, of {members} members: {out}.\n\
             Each member has this file and the state, and before its first start:\n\n  \
             {program} state import {from} --config CONFIG"
        ));
        Ok(())
    }

    /// The file but for the state: what the old network's last one says, with other members.
    fn founding(&self, former: &CommitteeFile) -> Result<CommitteeFile, Failure> {
        let mut file = CommitteeFile {
            name: self.name.clone().unwrap_or_else(|| former.name.clone()),
            network: None,
            epoch: Epoch(1),
            groups: self.groups.as_deref().map(read_groups).transpose()?,
            redundancy: self.redundancy.unwrap_or(former.redundancy),
            members: Vec::with_capacity(self.members.len()),
            ..former.clone()
        };
        if let Some(scheme) = self.scheme {
            file.scheme = scheme.to_string();
        }
        for (name, value) in &self.set {
            file.settings.set(name, value.clone()).map_err(Failure::usage)?;
        }
        for (index, path) in self.members.iter().enumerate() {
            let member = entry::read(path)?;
            entry::check_address(index, &member.address)?;
            file.members.push(member);
        }
        Ok(file)
    }
}
