//! Names, types and ranges of a configuration file.

use super::Notes;
use super::nearest::nearest;
use super::source::Source;
use crate::config::agreed::{in_section, is_agreed_by_all};
use crate::config::fields::{CONFIG, Field, FieldDefault, Kind, Section, is_agreed, local_section};
use crate::config::{ConfigError, NodeConfig, folder_of, for_comparisons};
use toml::{Table, Value};

/// Notes what is wrong with any value, and gives the configuration with defaults in those places
/// and in those of the committee file. Its paths are resolved.
pub(super) fn check(source: &Source, notes: &mut Notes) -> NodeConfig {
    let mut sound = required();
    for (key, value) in &source.table {
        match (CONFIG.iter().find(|section| !section.name.is_empty() && section.name == key), value)
        {
            (Some(section), Value::Table(values)) => {
                for (key, value) in values {
                    check_type(source, section, key, value, &mut sound, notes);
                }
            }
            _ => check_type(source, &CONFIG[0], key, value, &mut sound, notes),
        }
    }
    for field in CONFIG[0].fields {
        if field.default == FieldDefault::Required && !source.table.contains_key(field.name) {
            let problem = format!("'{}' is missing", field.name);
            notes.error((&source.path, None), problem, format!("add it: {}", field.meaning));
        }
    }
    check_ranges(source, &mut sound, notes);
    let mut config: NodeConfig = sound.try_into().expect("only values that fit were kept");
    config.resolve(folder_of(&source.path));
    config
}

/// Keeps a value that a validator could read, and notes any other.
fn check_type(
    source: &Source,
    section: &Section,
    key: &str,
    value: &Value,
    sound: &mut Table,
    notes: &mut Notes,
) {
    let place = source.at(section.name, key);
    let Some(field) = section.fields.iter().find(|field| field.name == key) else {
        let (problem, hint) = unknown(section, key);
        notes.error(place, problem, hint);
        return;
    };
    let mut tried = required();
    insert(&mut tried, section, key, value);
    if let Err(error) = tried.try_into::<NodeConfig>() {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        notes.error(place, format!("'{key}' is {value}: {message}"), expected(field));
        return;
    }
    insert(sound, section, key, value);
}

pub(super) fn expected(field: &Field) -> String {
    format!("it takes {}", field.kind)
}

/// Problem and hint for a key that no section has.
fn unknown(section: &Section, key: &str) -> (String, String) {
    if is_agreed(key) {
        let hint = "move it there: all members have the same bytes of that file";
        return (is_agreed_by_all(key), hint.to_owned());
    }
    let problem = format!("unknown field `{key}`");
    let here = section.fields.iter().map(|field| field.name);
    let sections = CONFIG.iter().map(|section| section.name).filter(|name| !name.is_empty());
    let sections = sections.filter(|_| section.name.is_empty());
    if let Some(elsewhere) = local_section(key) {
        return (problem, format!("it belongs {}", in_section(elsewhere)));
    }
    let hint = match nearest(key, here.chain(sections)) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "`quorate config template` shows all fields".to_owned(),
    };
    (problem, hint)
}

/// Takes out values beyond their range until the rest is accepted.
fn check_ranges(source: &Source, sound: &mut Table, notes: &mut Notes) {
    let mut replaced = false;
    loop {
        let config: NodeConfig = sound.clone().try_into().expect("only values that fit were kept");
        let Err(error) = config.validate(&source.path) else { return };
        let (section, name, problem) = match &error {
            ConfigError::Field { field, value, rule, .. } => {
                let section = local_section(field).unwrap_or_default();
                (section, *field, format!("'{field}' is {value}; {rule}"))
            }
            ConfigError::Comparison { setting, .. } => {
                ("replica", *setting, for_comparisons(setting))
            }
            ConfigError::Replica { source, .. } => ("replica", source.name(), source.to_string()),
            ConfigError::Emulation { source, .. } => ("", "emulation", source.to_string()),
            // Validation has no other errors: it opens no file.
            other => {
                notes.error((&source.path, None), other.to_string(), "");
                return;
            }
        };
        let known =
            CONFIG.iter().flat_map(|section| section.fields).find(|field| field.name == name);
        // A default that clashes with a value in the file is no finding of its own.
        if source.has(section, name) || !replaced {
            // The problem names the range; of a number it does not name the unit.
            let hint = match known.map(|field| field.kind) {
                Some(Kind::Number { unit, .. }) => format!("it counts {unit}"),
                _ => String::new(),
            };
            notes.error(source.at(section, name), problem, hint);
        }
        replaced = true;
        let place = if section.is_empty() {
            Some(&mut *sound)
        } else {
            sound.get_mut(section).and_then(Value::as_table_mut)
        };
        // A default is refused because of another value, which is in the file.
        if place.is_none_or(|place| place.remove(name).is_none())
            && sound.remove("replica").is_none()
        {
            // It is refused because something is absent, which nothing here can mend.
            return;
        }
    }
}

fn insert(table: &mut Table, section: &Section, key: &str, value: &Value) {
    let place = if section.name.is_empty() {
        table
    } else {
        let inner = table.entry(section.name).or_insert_with(|| Value::Table(Table::new()));
        inner.as_table_mut().expect("sections are tables")
    };
    place.insert(key.to_owned(), value.clone());
}

/// The least that a configuration needs.
fn required() -> Table {
    let required = CONFIG[0].fields.iter().filter(|field| field.default == FieldDefault::Required);
    required.map(|field| (field.name.to_owned(), Value::from("missing"))).collect()
}
