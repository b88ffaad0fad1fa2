//! `quorate committee draft`: the next epoch's file, from the one in force.

mod threshold_keys;

use super::in_force::{InForce, Source};
use super::{Loaded, change_file, entry};
use crate::failure::{CommandResult, Failure};
use crate::output;
use clap::Args;
use quorate_crypto::SchemeKind;
use quorate_types::{Change, CommitteeFile, Groups, Height, Member, SignedChange};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use threshold_keys::ThresholdKeys;

/// Draft a change: the next epoch's committee file, from the one in force and what is to differ
///
/// Writes the change to --out, without any signature, and shows what differs.
///
/// WHO is a member of the committee in force: its index, as `r2` or `2`, or the beginning of its
/// identity key, 8 hexadecimal digits or more. Those that are added have the indices behind.
/// Whoever stays keeps its place in the order, and moves up for those that leave.
///
/// FILE is a member's public entry as `quorate keys show` prints it, a table of `members`, with its
/// address in the place of host:port. One that replaces a member has its weight, and its address if
/// its own is left open.
///
/// Threshold keys are of a whole committee. With --threshold-keys the draft begins with the members
/// and settings for which `quorate keys dkg --next` generated, and puts the keys in after all other
/// options; members and their order are then those that generated. Of keys that a dealer made, all
/// members are replaced at once, and --groups names the file with the groups' keys.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    source: Source,
    /// File to write the change to; it is never overwritten
    #[arg(long, value_name = "CHANGE")]
    out: PathBuf,
    /// Add the member whose entry is in FILE; may be repeated
    #[arg(long, value_name = "FILE")]
    add: Vec<PathBuf>,
    /// Remove a member; may be repeated
    #[arg(long, value_name = "WHO")]
    remove: Vec<String>,
    /// Put the member whose entry is in FILE in the place of another; may be repeated
    #[arg(long, value_name = "WHO=FILE", value_parser = assignment)]
    replace: Vec<(String, String)>,
    /// Give a member another weight; may be repeated
    #[arg(long, value_name = "WHO=W", value_parser = weight)]
    weight: Vec<(String, u64)>,
    /// Give a member another address; may be repeated
    #[arg(long, value_name = "WHO=HOST:PORT", value_parser = assignment)]
    address: Vec<(String, String)>,
    /// Set what members agree on, as under `settings` in a committee file; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Order by another protocol: short for --set protocol=P
    #[arg(long, value_name = "P")]
    protocol: Option<String>,
    /// Execute by another version of the service's rules, which only goes up: short for
    /// --set execution_version=V. Whoever accepts the change has it installed
    #[arg(long, value_name = "V")]
    version: Option<u64>,
    /// Vote with another scheme: ed25519, bls or bls-threshold
    #[arg(long, value_name = "S", value_parser = crate::commands::committee_scheme)]
    scheme: Option<SchemeKind>,
    /// Take the threshold keys that the members generated, by the transcript that
    /// `quorate keys dkg --next` wrote; every step of it is checked
    #[arg(long, value_name = "TRANSCRIPT", conflicts_with_all = ["scheme", "groups"])]
    threshold_keys: Option<PathBuf>,
    /// Take the keys of the groups from FILE: the committee file that a dealer wrote
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
    /// Number of members more than faults alone ask for
    #[arg(long, value_name = "C")]
    redundancy: Option<u64>,
    /// The lowest height that may order the change; the states of those who accept it may be 10,000
    /// heights behind
    #[arg(long, value_name = "H", default_value_t = 0, value_parser = height)]
    not_before: u64,
    /// The highest height that may; by default any of the epoch
    #[arg(long, value_name = "H", value_parser = height)]
    expires: Option<u64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What an option gives to whom or what.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    let (to, value) = text.split_once('=').ok_or("an equals sign is missing")?;
    Ok((to.to_owned(), value.to_owned()))
}

fn weight(text: &str) -> Result<(String, u64), String> {
    let (who, weight) = assignment(text)?;
    let weight = weight.parse().map_err(|_| format!("'{weight}' is no weight"))?;
    Ok((who, weight))
}

/// A height that a text file can hold.
fn height(text: &str) -> Result<u64, String> {
    let height: Option<i64> = text.parse().ok();
    let height = height.and_then(|height| u64::try_from(height).ok());
    height.ok_or_else(|| "a height is a number from 0 to 9223372036854775807".to_owned())
}

impl Options {
    pub(super) fn run(&self) -> CommandResult {
        let in_force = self.source.load()?;
        let change = Change {
            network: in_force.committee.network(),
            epoch: in_force.file.epoch,
            file: self.next_file(&in_force)?,
            not_before: Height(self.not_before),
            expires: self.expires.map_or(change_file::NEVER, Height),
        };
        let next = in_force.check(&change).map_err(Failure::usage)?;
        let signed = SignedChange { change, approvals: Vec::new(), acceptances: Vec::new() };
        change_file::create(&self.out, &signed)?;
        let said = self.next_steps();
        Loaded { in_force, signed, next }.print(Some(&said), self.json);
        Ok(())
    }

    fn next_steps(&self) -> String {
        let (out, quorate) = (self.out.display(), output::program());
        let options = format!("{} --key KEYFILE", self.source.options());
        let mut text = format!(
            "Wrote it to {out}. Every newcomer accepts it, and a quorum of the next committee:\n\n  \
             {quorate} committee accept {out} {options} --executed HEIGHT\n\n\
             A quorum of the present committee signs it:\n\n  \
             {quorate} committee sign {out} {options}"
        );
        if self.expires.is_none() {
            text.push_str(
                "\n\nMind: it expires with the epoch alone. Once it is signed, whoever has it may bring \
                 it\nuntil then (--expires).",
            );
        }
        text
    }

    fn next_file(&self, in_force: &InForce) -> Result<CommitteeFile, Failure> {
        let generated = self.threshold_keys.as_deref();
        let generated = generated.map(|path| ThresholdKeys::read(path, in_force)).transpose()?;
        let mut file = match &generated {
            Some(generated) => generated.generators().clone(),
            None => in_force.file.next_epoch(in_force.committee.network()),
        };
        file.members = self.next_members(&file.members)?;
        if let Some(scheme) = self.scheme {
            file.scheme = scheme.to_string();
            file.groups = file.groups.filter(|_| scheme == SchemeKind::BlsThreshold);
        }
        if let Some(path) = &self.groups {
            file.groups = Some(read_groups(path)?);
        }
        file.redundancy = self.redundancy.unwrap_or(file.redundancy);
        for (name, value) in &self.set {
            file.settings.set(name, value.clone()).map_err(Failure::usage)?;
        }
        if let Some(protocol) = &self.protocol {
            file.settings.protocol.clone_from(protocol);
        }
        if let Some(version) = self.version {
            file.settings.execution_version = version;
        }
        if let Some(generated) = generated {
            generated.put_into(&mut file)?;
        }
        Ok(file)
    }

    fn next_members(&self, present: &[Member]) -> Result<Vec<Member>, Failure> {
        let find = |who: &String| find(present, who);
        let leaving: BTreeSet<usize> = self.remove.iter().map(find).collect::<Result<_, _>>()?;
        let mut members = present.to_owned();
        for (who, file) in &self.replace {
            let index = find_staying(&members, &leaving, who)?;
            members[index] = entry::in_place_of(&members[index], entry::read(Path::new(file))?);
        }
        for file in &self.add {
            members.push(entry::read(file)?);
        }
        for (who, weight) in &self.weight {
            let index = find_staying(&members, &leaving, who)?;
            members[index].weight = *weight;
        }
        for (who, address) in &self.address {
            let index = find_staying(&members, &leaving, who)?;
            members[index].address.clone_from(address);
        }
        for (index, member) in members.iter().enumerate() {
            entry::check_address(index, &member.address)?;
        }
        let staying = members.into_iter().enumerate().filter(|(index, _)| !leaving.contains(index));
        Ok(staying.map(|(_, member)| member).collect())
    }
}

/// The member that an option names, if it does not leave.
fn find_staying(
    members: &[Member],
    leaving: &BTreeSet<usize>,
    who: &str,
) -> Result<usize, Failure> {
    let index = find(members, who)?;
    if leaving.contains(&index) {
        return Err(Failure::usage(format!(
            "member {index} is removed: nothing else becomes of it"
        )));
    }
    Ok(index)
}

/// Fewest digits by which an identity is named.
const DIGITS_MIN: usize = 8;

/// The member that an option names: by its index, or by the beginning of its identity.
fn find(members: &[Member], who: &str) -> Result<usize, Failure> {
    let index: Option<usize> = who.strip_prefix('r').unwrap_or(who).parse().ok();
    if let Some(index) = index.filter(|_| who.len() < DIGITS_MIN) {
        let last = members.len() - 1;
        let is_there = index <= last;
        return is_there.then_some(index).ok_or_else(|| {
            Failure::usage(format!("there is no member {index}: their indices are 0 to {last}"))
        });
    }
    let digits = who.to_ascii_lowercase();
    let is_named = |(_, member): &(usize, &Member)| member.identity.starts_with(&digits);
    let mut named = members.iter().enumerate().filter(is_named).map(|(index, _)| index);
    match (named.next(), named.next()) {
        _ if who.len() < DIGITS_MIN => Err(Failure::usage(format!(
            "'{who}' names no member: give its index, or the first {DIGITS_MIN} digits or more of its \
             identity key"
        ))),
        (Some(index), None) => Ok(index),
        (None, _) => Err(Failure::usage(format!("no member's identity key begins with '{who}'"))),
        (Some(one), Some(other)) => Err(Failure::usage(format!(
            "the identity keys of members {one} and {other} begin with '{who}': give more digits"
        ))),
    }
}

/// A committee file, of which the groups' keys count.
#[derive(Debug, Deserialize)]
struct GroupsText {
    groups: Groups,
}

pub(super) fn read_groups(path: &Path) -> Result<Groups, Failure> {
    let refused = |reason: String| {
        Failure::usage(format!("{} holds no groups' keys: {reason}", path.display()))
    };
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let file: GroupsText = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
    Ok(file.groups)
}

#[cfg(test)]
mod tests;
