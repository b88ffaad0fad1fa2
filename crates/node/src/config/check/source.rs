//! A TOML file and the lines on which its values stand.

use super::Notes;
use std::path::{Path, PathBuf};
use toml::Table;
use toml::de::{DeTable, DeValue};

/// A file that is TOML.
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) table: Table,
    /// Position of each key: section (empty for none, with its index for lists), key, line.
    places: Vec<(String, String, usize)>,
}

impl Source {
    /// Reads a file; says why when it cannot be read or is no TOML.
    pub(super) fn read(path: &Path, what: &str, notes: &mut Notes) -> Option<Self> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                let hint = match error.kind() {
                    std::io::ErrorKind::NotFound if what == "configuration file" => {
                        "check the path"
                    }
                    std::io::ErrorKind::NotFound => {
                        "check the path: a relative one is meant from the folder of the file that \
                         names it"
                    }
                    std::io::ErrorKind::PermissionDenied => {
                        "run this as the user that the validator runs as, or let that user read it"
                    }
                    _ => "",
                };
                notes.error((path, None), format!("the {what} cannot be read: {error}"), hint);
                return None;
            }
        };
        let (parsed, errors) = DeTable::parse_recoverable(&text);
        let mut unreadable = errors.len();
        for error in errors {
            let line = error.span().map(|span| line_at(&text, span.start));
            notes.error((path, line), error.message().trim().replace('\n', "; "), "");
        }
        let table = toml::from_str::<Table>(&text).unwrap_or_else(|error| {
            if unreadable == 0 {
                notes.error((path, None), error.message(), "");
                unreadable = 1;
            }
            Table::new()
        });
        if unreadable > 0 {
            return None;
        }
        let mut places = Vec::new();
        note_places(&text, parsed.get_ref(), "", &mut places);
        Some(Self { path: path.to_owned(), table, places })
    }

    /// The line of a key, or of its section.
    pub(super) fn line(&self, section: &str, key: &str) -> Option<usize> {
        let find = |section: &str, key: &str| {
            self.places.iter().find(|(s, k, _)| s == section && k == key).map(|(_, _, line)| *line)
        };
        find(section, key).or_else(|| find("", section))
    }

    /// The file and the line of a key.
    pub(super) fn at(&self, section: &str, key: &str) -> (&Path, Option<usize>) {
        (&self.path, self.line(section, key))
    }

    /// Tells whether a key is present in a section.
    pub(super) fn has(&self, section: &str, key: &str) -> bool {
        self.places.iter().any(|(s, k, _)| s == section && k == key)
    }
}

fn note_places(
    text: &str,
    table: &DeTable<'_>,
    section: &str,
    places: &mut Vec<(String, String, usize)>,
) {
    for (key, value) in table {
        let line = line_at(text, key.span().start);
        places.push((section.to_owned(), key.get_ref().to_string(), line));
        match value.get_ref() {
            DeValue::Table(inner) if section.is_empty() => {
                note_places(text, inner, key.get_ref(), places);
            }
            DeValue::Array(items) if section.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    let name = format!("{}[{index}]", key.get_ref());
                    places.push((String::new(), name.clone(), line_at(text, item.span().start)));
                    if let DeValue::Table(inner) = item.get_ref() {
                        note_places(text, inner, &name, places);
                    }
                }
            }
            _ => {}
        }
    }
}

fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
