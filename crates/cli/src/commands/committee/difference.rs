//! The difference that a change makes, in words.

use super::change_file::NEVER;
use super::in_force::InForce;
use super::installed;
use quorate_node::config::check::Thresholds;
use quorate_types::change::newcomers;
use quorate_types::{Change, Committee, CommitteeFile, ReplicaId};
use serde::Serialize;
use std::fmt;

/// What a change changes.
#[derive(Debug, Serialize)]
pub(super) struct Difference {
    digest: String,
    network: String,
    epoch: u64,
    not_before: u64,
    /// `None` where it expires with the epoch.
    expires: Option<u64>,
    /// Members that are new, by their index in the next committee.
    comes: Vec<Who>,
    /// Members that are there no more, by their index in the present one.
    leaves: Vec<Who>,
    /// Everything else, each by what it is of.
    changes: Vec<Altered>,
    before: Thresholds,
    after: Thresholds,
    /// Warning about the weights of the next committee.
    caution: Option<String>,
    /// Version of what is executed that this program lacks.
    lacks: Option<String>,
}

#[derive(Debug, Serialize)]
struct Who {
    member: u16,
    identity: String,
    address: String,
    weight: u64,
}

/// A value that is another one.
#[derive(Debug, Serialize)]
struct Altered {
    /// A member by its index before, a setting by its name, or `committee`.
    of: String,
    what: &'static str,
    from: String,
    to: String,
}

impl Difference {
    pub(super) fn of(ends: &InForce, next: &Committee, change: &Change) -> Self {
        let InForce { committee: present, file } = ends;
        let mut changes = of_committee(file, &change.file);
        for (index, to) in stayers(present, next) {
            changes.extend(of_member((index, to), file, &change.file));
        }
        changes.extend(of_settings(file, &change.file));
        let who = |file: &CommitteeFile, member: ReplicaId| Who::of(file, member);
        Self {
            digest: change.digest().to_hex(),
            network: change.network.to_string(),
            epoch: change.epoch.0,
            not_before: change.not_before.0,
            expires: Some(change.expires).filter(|height| *height != NEVER).map(|height| height.0),
            comes: newcomers(present, next).into_iter().map(|id| who(&change.file, id)).collect(),
            leaves: newcomers(next, present).into_iter().map(|id| who(file, id)).collect(),
            changes,
            before: thresholds(present),
            after: thresholds(next),
            caution: next.weights().warning().map(|warning| warning.to_string()),
            lacks: installed::lacks(&change.file.settings).map(|lacks| lacks.to_string()),
        }
    }
}

impl Who {
    fn of(file: &CommitteeFile, member: ReplicaId) -> Self {
        let entry = &file.members[member.index()];
        let (identity, address) = (entry.identity.clone(), entry.address.clone());
        Self { member: member.0, identity, address, weight: entry.weight }
    }
}

/// Members of both, each by its index before and after.
fn stayers(present: &Committee, next: &Committee) -> Vec<(ReplicaId, ReplicaId)> {
    let stays = |member: ReplicaId| {
        let identity = present.identity(member)?;
        Some((member, next.find(identity)?))
    };
    present.members().filter_map(stays).collect()
}

fn of_member(
    (before, after): (ReplicaId, ReplicaId),
    present: &CommitteeFile,
    next: &CommitteeFile,
) -> Vec<Altered> {
    let [from, to] = [&present.members[before.index()], &next.members[after.index()]];
    let values = [
        ("index", before.to_string(), after.to_string()),
        ("voting key", from.voting.clone(), to.voting.clone()),
        ("weight", from.weight.to_string(), to.weight.to_string()),
        ("address", from.address.clone(), to.address.clone()),
    ];
    altered(&before.to_string(), values)
}

fn of_committee(present: &CommitteeFile, next: &CommitteeFile) -> Vec<Altered> {
    let groups = |file: &CommitteeFile| {
        file.groups.as_ref().map_or_else(String::new, |keys| keys.slow.clone())
    };
    let values = [
        ("name", present.name.clone(), next.name.clone()),
        ("scheme", present.scheme.clone(), next.scheme.clone()),
        ("redundancy", present.redundancy.to_string(), next.redundancy.to_string()),
        ("group key", groups(present), groups(next)),
    ];
    altered("committee", values)
}

fn altered<const N: usize>(of: &str, values: [(&'static str, String, String); N]) -> Vec<Altered> {
    let differing = values.into_iter().filter(|(_, from, to)| from != to);
    differing.map(|(what, from, to)| Altered { of: of.to_owned(), what, from, to }).collect()
}

fn of_settings(present: &CommitteeFile, next: &CommitteeFile) -> Vec<Altered> {
    let differing = present.settings.differences(&next.settings).into_iter();
    differing
        .map(|(name, from, to)| Altered { of: name.to_owned(), what: "setting", from, to })
        .collect()
}

fn thresholds(committee: &Committee) -> Thresholds {
    Thresholds {
        members: committee.size(),
        weight: committee.weights().total(),
        faulty: committee.faulty_max(),
        quorum: committee.quorum(),
        weak: committee.weak(),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { digest, network, epoch, not_before, .. } = self;
        writeln!(f, "Change  {digest}\nNetwork {network}")?;
        write!(f, "Epoch {epoch} ends, and epoch {} begins. ", epoch + 1)?;
        match self.expires {
            Some(expires) => writeln!(f, "Heights {not_before} to {expires} may order it.\n")?,
            None => writeln!(f, "Any height from {not_before} on may order it.\n")?,
        }
        self.comes.iter().try_for_each(|who| who.write(f, "comes"))?;
        self.leaves.iter().try_for_each(|who| who.write(f, "leaves"))?;
        self.changes.iter().try_for_each(|altered| writeln!(f, "  {altered}"))?;
        if self.comes.is_empty() && self.leaves.is_empty() && self.changes.is_empty() {
            writeln!(f, "  nothing differs but the epoch")?;
        }
        self.write_bounds(f)?;
        self.caution.iter().try_for_each(|caution| write!(f, "\n\nMind: {caution}."))?;
        self.lacks.iter().try_for_each(|lacks| {
            write!(f, "\n\nMind: {lacks}. Whoever accepts the change installs a newer one first.")
        })
    }
}

impl Difference {
    fn write_bounds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = [&self.before, &self.after];
        write!(f, "\n{:<15}{:>8}{:>8}", "", "before", "after")?;
        for (what, from, to) in [
            ("members", before.members as u64, after.members as u64),
            ("weight", before.weight, after.weight),
            ("may be faulty", before.faulty, after.faulty),
            ("quorum", before.quorum, after.quorum),
        ] {
            write!(f, "\n  {what:<13}{from:>8}{to:>8}")?;
        }
        Ok(())
    }
}

impl Who {
    fn write(&self, f: &mut fmt::Formatter<'_>, verb: &str) -> fmt::Result {
        let Self { member, identity, address, weight } = self;
        writeln!(f, "  r{member} {verb}: {identity}\n    at {address}, weight {weight}")
    }
}

impl fmt::Display for Altered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, what, from, to } = self;
        let (from, to) = (shown(from), shown(to));
        write!(f, "{of}, {what}: {from} → {to}")
    }
}

/// Most characters of a value that is shown whole: an Ed25519 key.
const SHOWN_MAX: usize = 64;

/// A value for people: of threshold keys the first digits, for the change's digest covers them all.
fn shown(value: &str) -> String {
    match value.get(..16) {
        _ if value.is_empty() => "none".to_owned(),
        Some(first) if value.len() > SHOWN_MAX => format!("{first}…"),
        _ => value.to_owned(),
    }
}
