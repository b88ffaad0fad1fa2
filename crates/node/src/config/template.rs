//! The commented form of a configuration, and the reference that docs/CONFIG.md holds.
//!
//! Values come from the struct itself, comments from [`super::fields`].

use super::NodeConfig;
use super::fields::{self, AGREED, Field, FieldDefault, Section};
use quorate_types::AgreedSettings;
use quorate_wan::Emulation;
use std::fmt::Write as _;
use toml::Table;

/// Columns of a comment's line.
const COLUMNS: usize = 80;

/// Columns of a line of the reference.
const REFERENCE_COLUMNS: usize = 118;

const OPENING: &str = "\
# Configuration of one Quorate validator. `quorate config check FILE` checks it.
# Relative paths are meant from the folder of this file. A field that is left
# out has its default. What all members agree on (service, protocol and more)
# stands in [settings] of the committee file.
";

const REFERENCE_OPENING: &str = "\
# Configuration

Every field of a validator's configuration file and of the committee file, with unit, range, default and consequence.
What all members must have alike stands in the committee file, under `[settings]`; what is each one's own in its
configuration file. Neither is taken in the other's place.
`quorate config reference` prints this page, `quorate config template` a file with every default,
`quorate config show FILE` what a file amounts to, and `quorate config check FILE…` everything that is wrong or unwise in
it. Relative paths are meant from the folder of the file that holds them.
";

const COMPARISON_OPENING: &str = "\
Fields of the same section, for comparisons with papers: benches, simulations and experiments do with them as a paper \
does, or leave out one of its optimisations. A validator refuses each that is not at its default, unless its \
configuration says comparison = true; templates leave them out.";

pub(super) fn annotate(config: &NodeConfig) -> String {
    let table = Table::try_from(config).expect("a plain struct is a table");
    let defaults = defaults();
    let mut text = String::from(OPENING);
    for section in fields::CONFIG {
        if !section.optional.is_empty() && !table.contains_key(section.name) {
            continue;
        }
        open_section(&mut text, section);
        let (values, defaults) = (values_of(&table, section), values_of(&defaults, section));
        for field in section.fields {
            let (value, default) = (values.get(field.name), defaults.get(field.name));
            if field.for_comparisons && value == default {
                continue;
            }
            annotate_field(&mut text, field, value, default);
        }
    }
    text
}

fn open_section(text: &mut String, section: &Section) {
    if section.name.is_empty() {
        return;
    }
    text.push('\n');
    for line in wrap(section.optional, COLUMNS - 2) {
        writeln!(text, "# {line}").expect("memory");
    }
    writeln!(text, "[{}]", section.name).expect("memory");
}

fn annotate_field(
    text: &mut String,
    field: &Field,
    value: Option<&toml::Value>,
    default: Option<&toml::Value>,
) {
    text.push('\n');
    for line in wrap(field.meaning, COLUMNS - 2) {
        writeln!(text, "# {line}").expect("memory");
    }
    for line in wrap(&format!("({})", field.facts(default)), COLUMNS - 2) {
        writeln!(text, "# {line}").expect("memory");
    }
    match value {
        Some(value) => writeln!(text, "{} = {value}", field.name),
        None => writeln!(text, "# {} = {}", field.name, example(field)),
    }
    .expect("memory");
}

/// A value for a field that has none by default.
fn example(field: &Field) -> &'static str {
    match field.kind {
        _ if field.name == "gateway" => "\"127.0.0.1:9200\"",
        _ if field.name == "gateway_token_file" => "\"token\"",
        _ if field.name == "gateway_tokens_file" => "\"tokens.toml\"",
        _ if field.name == "http_token_file" => "\"http.token\"",
        _ if field.name == "http_tokens_file" => "\"http-tokens.toml\"",
        _ if field.name == "clients_file" => "\"clients.toml\"",
        _ if field.name == "tls_cert" => "\"cert.pem\"",
        _ if field.name == "tls_key" => "\"cert.key\"",
        fields::Kind::Address => "\"0.0.0.0:7000\"",
        _ if field.name == "genesis" => "\"../genesis.json\"",
        fields::Kind::Path => "\"passphrase\"",
        fields::Kind::Flag => "false",
        fields::Kind::Number { .. } => "1",
        fields::Kind::Keys => "[]",
        _ => "\"…\"",
    }
}

/// Values in force, marked where they are not the default: those of the file, and those that all
/// members agree on.
pub(super) fn effective(config: &NodeConfig) -> String {
    let table = Table::try_from(config).expect("a plain struct is a table");
    let defaults = defaults();
    let mut text = String::new();
    for section in fields::CONFIG {
        if !section.optional.is_empty() && !table.contains_key(section.name) {
            continue;
        }
        if !section.name.is_empty() {
            write!(text, "\n[{}]\n", section.name).expect("memory");
        }
        let (values, defaults) = (values_of(&table, section), values_of(&defaults, section));
        state_values(&mut text, section, &values, &defaults);
    }
    for section in fields::COMMITTEE.iter().filter(|section| section.name == AGREED) {
        let committee = config.committee.display();
        write!(text, "\n# Agreed by all members, in {committee}\n[{AGREED}]\n").expect("memory");
        state_values(&mut text, section, &agreed(&config.agreed()), &agreed_defaults());
    }
    text
}

fn state_values(text: &mut String, section: &Section, values: &Table, defaults: &Table) {
    for field in section.fields {
        if field.for_comparisons && values.get(field.name) == defaults.get(field.name) {
            continue;
        }
        let Some(value) = values.get(field.name) else {
            if let FieldDefault::Words(words) = field.default {
                writeln!(text, "# {}: {words}", field.name).expect("memory");
            }
            continue;
        };
        let mark = match defaults.get(field.name) {
            Some(default) if default != value => format!("  # default: {default}"),
            _ => String::new(),
        };
        writeln!(text, "{} = {value}{mark}", field.name).expect("memory");
    }
}

fn agreed(settings: &AgreedSettings) -> Table {
    Table::try_from(settings).expect("a plain struct is a table")
}

fn agreed_defaults() -> Table {
    agreed(&AgreedSettings::default())
}

/// The page of all fields.
pub(super) fn reference() -> String {
    let mut text = String::from(REFERENCE_OPENING);
    text.push_str("\n## A validator's configuration file\n");
    let defaults = defaults();
    for section in fields::CONFIG {
        describe(&mut text, section, "", &values_of(&defaults, section));
    }
    text.push_str("\n## The committee file\n");
    for section in fields::COMMITTEE {
        let brackets = if section.name == "members" { "[" } else { "" };
        let defaults = if section.name == AGREED { agreed_defaults() } else { Table::new() };
        describe(&mut text, section, brackets, &defaults);
    }
    text
}

fn describe(text: &mut String, section: &Section, brackets: &str, defaults: &Table) {
    let closing = if brackets.is_empty() { "" } else { "]" };
    let name = match section.name {
        "" => String::new(),
        name => format!(": `[{brackets}{name}{closing}]`"),
    };
    write!(text, "\n### {}{name}\n\n", section.title).expect("memory");
    if !section.optional.is_empty() {
        let about = wrap(section.optional, REFERENCE_COLUMNS).join("\n");
        write!(text, "{about}\n\n").expect("memory");
    }
    let (compared, usual): (Vec<&Field>, Vec<&Field>) =
        section.fields.iter().partition(|field| field.for_comparisons);
    describe_fields(text, &usual, defaults);
    if !compared.is_empty() {
        let about = wrap(COMPARISON_OPENING, REFERENCE_COLUMNS).join("\n");
        write!(text, "\n#### Settings for comparisons\n\n{about}\n\n").expect("memory");
        describe_fields(text, &compared, defaults);
    }
}

fn describe_fields(text: &mut String, fields: &[&Field], defaults: &Table) {
    for field in fields {
        let facts = field.facts(defaults.get(field.name));
        let entry = format!("**`{}`** ({facts}). {}", field.name, field.meaning);
        for (index, line) in wrap(&entry, REFERENCE_COLUMNS - 2).iter().enumerate() {
            let bullet = if index == 0 { "-" } else { " " };
            writeln!(text, "{bullet} {line}").expect("memory");
        }
    }
}

/// The values that hold when only the three paths, or no more than a section's name, are given.
pub(super) fn defaults() -> Table {
    let mut config = NodeConfig::new("../committee.toml".into(), "key.toml".into(), "data".into());
    config.emulation = Some(Emulation::default());
    let mut table = Table::try_from(config).expect("a plain struct is a table");
    for field in fields::CONFIG[0].fields {
        if field.default == FieldDefault::Required {
            table.remove(field.name);
        }
    }
    table
}

fn values_of(table: &Table, section: &Section) -> Table {
    if section.name.is_empty() {
        return table.clone();
    }
    table.get(section.name).and_then(toml::Value::as_table).cloned().unwrap_or_default()
}

/// Breaks a text between words.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
