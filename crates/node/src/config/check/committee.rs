//! Checks of the committee file.

use super::nearest::nearest;
use super::source::Source;
use super::values::expected;
use super::{IsService, Notes, addresses};
use crate::config::agreed::is_each_members;
use crate::config::fields::{AGREED, COMMITTEE, FieldDefault, Section, is_agreed, local_section};
use crate::config::{ConfigError, NodeConfig, UPGRADE, for_comparisons};
use quorate_types::{
    AgreedSettings, Committee, CommitteeError, CommitteeFile, Versions, WeightsError,
};
use toml::{Table, Value};

/// Notes what is wrong with the committee file that a configuration names, and takes over what all
/// members agree on.
pub(super) fn check(
    source: &Source,
    (config, service): (&mut NodeConfig, IsService<'_>),
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
    agree(&committee, (config, service), notes);
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

/// Takes over the settings that are sound, and notes what is wrong with the others.
fn agree(
    committee: &Source,
    (config, service): (&mut NodeConfig, IsService<'_>),
    notes: &mut Notes,
) {
    let mut sound = sound_types(committee, notes);
    loop {
        let agreed: AgreedSettings =
            sound.clone().try_into().expect("only values that fit were kept");
        let Err((name, problem)) = take_over(config, &agreed) else { break };
        notes.error(committee.at(AGREED, name), problem, "");
        // A default clashes with no other default: whatever is refused is in the file.
        assert!(sound.remove(name).is_some(), "the default of '{name}' is refused");
    }
    match service(&config.service) {
        Ok(versions) => check_version(committee, config, versions, notes),
        Err(reason) => {
            notes.error(committee.at(AGREED, "service"), format!("'service': {reason}"), "");
        }
    }
}

/// Notes a version that the program lacks: it does not start with this file.
fn check_version(committee: &Source, config: &NodeConfig, has: Versions, notes: &mut Notes) {
    if let Err(lacks) = has.check(&config.service, config.execution_version) {
        let problem = format!("'execution_version': {lacks}");
        notes.error(committee.at(AGREED, "execution_version"), problem, UPGRADE);
    }
}

/// Settings whose values have the types that they must have.
fn sound_types(committee: &Source, notes: &mut Notes) -> Table {
    let mut sound = Table::new();
    let values = committee.table.get(AGREED).and_then(Value::as_table);
    let known = COMMITTEE.iter().filter(|section| section.name == AGREED);
    for field in known.flat_map(|section| section.fields) {
        let Some(value) = values.and_then(|values| values.get(field.name)) else { continue };
        let alone = Table::from_iter([(field.name.to_owned(), value.clone())]);
        match alone.try_into::<AgreedSettings>() {
            Ok(_) => drop(sound.insert(field.name.to_owned(), value.clone())),
            Err(error) => {
                let message = error.message().lines().next().unwrap_or_default().to_owned();
                let problem = format!("'{}' is {value}: {message}", field.name);
                notes.error(committee.at(AGREED, field.name), problem, expected(field));
            }
        }
    }
    sound
}

/// Takes settings over, or says which of them is refused and why.
fn take_over(
    config: &mut NodeConfig,
    agreed: &AgreedSettings,
) -> Result<(), (&'static str, String)> {
    config.agree(agreed).map_err(|unknown| (unknown.name(), unknown.to_string()))?;
    match config.validate(&config.committee) {
        Err(ConfigError::Replica { source, .. }) if is_agreed(source.name()) => {
            Err((source.name(), source.to_string()))
        }
        Err(ConfigError::Comparison { setting, .. }) if is_agreed(setting) => {
            Err((setting, for_comparisons(setting)))
        }
        Err(ConfigError::Field { field, value, rule, .. }) if is_agreed(field) => {
            Err((field, format!("'{field}' is {value}; {rule}")))
        }
        // What is wrong in the configuration itself was noted before.
        _ => Ok(()),
    }
}

fn check_names(committee: &Source, notes: &mut Notes) {
    let [file, settings, groups, from_state, each_member] = COMMITTEE else {
        unreachable!("five sections")
    };
    check_section(committee, file, "", &committee.table, notes);
    for section in [settings, groups, from_state] {
        if let Some(values) = committee.table.get(section.name).and_then(Value::as_table) {
            check_section(committee, section, section.name, values, notes);
        }
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
            let (problem, hint) = unknown(section, key);
            notes.error(committee.at(place, key), problem, hint);
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

/// Problem and hint for a key that a section does not have.
fn unknown(section: &Section, key: &str) -> (String, String) {
    if section.name == AGREED
        && let Some(home) = local_section(key)
    {
        return (is_each_members(key, home), "move it there, in each member's file".to_owned());
    }
    let problem = format!("unknown field `{key}`");
    if is_agreed(key) {
        return (problem, format!("it belongs in the section [{AGREED}]"));
    }
    let hint = match nearest(key, section.fields.iter().map(|field| field.name)) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "docs/CONFIG.md lists the fields of a committee file".to_owned(),
    };
    (problem, hint)
}
