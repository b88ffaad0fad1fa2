//! Checks of the committee file.

use super::nearest::nearest;
use super::source::Source;
use super::{Notes, addresses};
use crate::config::NodeConfig;
use crate::config::fields::{COMMITTEE, FieldDefault, Section};
use quorate_types::{Committee, CommitteeError, CommitteeFile, WeightsError};
use toml::{Table, Value};

/// Notes what is wrong with the committee file that a configuration names.
pub(super) fn check(
    source: &Source,
    config: &NodeConfig,
    notes: &mut Notes,
) -> (Option<CommitteeFile>, Option<Committee>) {
    let before = notes.0.len();
    let Some(committee) = Source::read(&config.committee, "committee file", notes) else {
        // The line that names it is where to look first.
        if let Some(finding) = notes.0.get_mut(before)
            && finding.line.is_none()
        {
            (finding.file, finding.line) = (source.path.clone(), source.line("", "committee"));
            finding.problem = format!("{}: {}", config.committee.display(), finding.problem);
        }
        return (None, None);
    };
    check_names(&committee, notes);
    if notes.0.len() > before {
        return (None, None);
    }
    let file: CommitteeFile = match committee.table.clone().try_into() {
        Ok(file) => file,
        Err(error) => {
            let message = error.message().replace('\n', "; ");
            notes.error((&committee.path, None), message, "");
            return (None, None);
        }
    };
    addresses::members(&committee, &file, notes);
    match Committee::load(&file, config.replica.comparison.key_cache) {
        Ok(loaded) => {
            let protocol = config.replica.protocol;
            if let Err(error) = protocol.check_committee(loaded.weights(), loaded.scheme_kind()) {
                notes.error(committee.at("", "members"), error.to_string(), "");
            }
            (Some(file), Some(loaded))
        }
        Err(error) => {
            let section = match &error {
                CommitteeError::Member { member, .. } => format!("members[{member}]"),
                CommitteeError::SameIdentity(_, member)
                | CommitteeError::IdentityVotes { voting: member, .. } => {
                    format!("members[{member}]")
                }
                CommitteeError::Weights(
                    WeightsError::Zero(member) | WeightsError::Dictator { member, .. },
                ) => format!("members[{member}]"),
                CommitteeError::Scheme(_) => "scheme".to_owned(),
                CommitteeError::Groups(_) if file.groups.is_none() => "scheme".to_owned(),
                CommitteeError::Groups(_) | CommitteeError::Group(..) => "groups".to_owned(),
                _ => "members".to_owned(),
            };
            let hint = "every member prints its entry with `quorate keys show FILE`; all hold the \
                        same bytes of this file";
            notes.error(committee.at("", &section), error.to_string(), hint);
            (Some(file), None)
        }
    }
}

fn check_names(committee: &Source, notes: &mut Notes) {
    let [file, groups, each_member] = COMMITTEE else { unreachable!("three sections") };
    check_section(committee, file, "", &committee.table, notes);
    if let Some(values) = committee.table.get("groups").and_then(Value::as_table) {
        check_section(committee, groups, "groups", values, notes);
    }
    let members = committee.table.get("members").and_then(Value::as_array);
    for (index, member) in members.into_iter().flatten().enumerate() {
        let place = format!("members[{index}]");
        if let Some(values) = member.as_table() {
            check_section(committee, each_member, &place, values, notes);
        }
    }
}

fn check_section(
    committee: &Source,
    section: &Section,
    place: &str,
    values: &Table,
    notes: &mut Notes,
) {
    for key in values.keys() {
        if !section.fields.iter().any(|field| field.name == key) {
            let near = nearest(key, section.fields.iter().map(|field| field.name));
            let hint = near.map_or_else(
                || "docs/CONFIG.md lists the fields of a committee file".to_owned(),
                |known| format!("did you mean `{known}`?"),
            );
            notes.error(committee.at(place, key), format!("unknown field `{key}`"), hint);
        }
    }
    for field in section.fields {
        if field.default == FieldDefault::Required && !values.contains_key(field.name) {
            let whose = if place.is_empty() { String::new() } else { format!("{place}: ") };
            let problem = format!("{whose}'{}' is missing", field.name);
            notes.error(committee.at("", place), problem, field.meaning);
        }
    }
}
