//! Several configurations against one another: what each alone looks right and together is wrong.

use super::{Checked, Notes};
use crate::NodeConfig;
use quorate_types::Committee;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(super) fn compare(all: &mut [Checked]) {
    let mut notes = Notes::default();
    shared(
        all,
        "the same key",
        &mut notes,
        |checked| checked.facts.identity.clone(),
        |first| {
            format!(
                "two validators with one key vote against each other, and prove it: keep this key \
                 in {first} alone"
            )
        },
    );
    shared(
        all,
        "the same data_dir",
        &mut notes,
        |checked| Some(data_dir(checked)?.display().to_string()),
        |_| "give each validator a folder of its own".to_owned(),
    );
    for address in [Listens::Peers, Listens::Http] {
        shared(
            all,
            address.what(),
            &mut notes,
            |checked| address.of(checked),
            |_| "give each validator on one machine ports of its own".to_owned(),
        );
    }
    differing(all, "committee file", &mut notes, |checked| {
        checked
            .facts
            .committee
            .as_ref()
            .map(Committee::network)
            .map(|network| hex::encode(network.0))
    });
    differing(all, "emulation", &mut notes, |checked| {
        let is_member = |config: &&NodeConfig| !config.learner;
        let config = checked.facts.config.as_ref().filter(is_member);
        config.map(|config| format!("{:?}", config.emulation))
    });
    for finding in notes.0 {
        if let Some(checked) = all.iter_mut().find(|checked| checked.file == finding.file) {
            checked.findings.push(finding);
        }
    }
}

#[derive(Clone, Copy)]
enum Listens {
    Peers,
    Http,
}

impl Listens {
    fn what(self) -> &'static str {
        match self {
            Self::Peers => "the same address for peers",
            Self::Http => "the same address for status",
        }
    }

    fn of(self, checked: &Checked) -> Option<String> {
        match self {
            Self::Peers => checked.facts.listen.clone(),
            Self::Http => checked.facts.config.as_ref().map(|config| config.http.clone()),
        }
    }
}

/// The folder by its real name, as far as it exists.
fn data_dir(checked: &Checked) -> Option<PathBuf> {
    let data = &checked.facts.config.as_ref()?.data_dir;
    let real = |folder: &Path| {
        let rest = data.strip_prefix(folder).ok()?;
        Some(folder.canonicalize().ok()?.join(rest))
    };
    Some(data.ancestors().find_map(real).unwrap_or_else(|| data.clone()))
}

/// Reports values that only one validator may have.
fn shared(
    all: &[Checked],
    what: &str,
    notes: &mut Notes,
    of: impl Fn(&Checked) -> Option<String>,
    hint: impl Fn(&str) -> String,
) {
    let mut owners: BTreeMap<String, &Path> = BTreeMap::new();
    for checked in all {
        let Some(value) = of(checked) else { continue };
        match owners.get(&value) {
            Some(first) if **first != checked.file => {
                let first = first.display().to_string();
                notes.error((&checked.file, None), format!("{what} as {first}"), hint(&first));
            }
            Some(_) => {}
            None => {
                owners.insert(value, &checked.file);
            }
        }
    }
}

/// Reports values that all validators must have alike.
fn differing(
    all: &[Checked],
    what: &str,
    notes: &mut Notes,
    of: impl Fn(&Checked) -> Option<String>,
) {
    let mut values = all.iter().filter_map(|checked| of(checked).map(|value| (checked, value)));
    let Some((first, expected)) = values.next() else { return };
    for (checked, value) in values {
        if value != expected {
            let problem = format!("another {what} than {}", first.file.display());
            notes.error((&checked.file, None), problem, "all members of a committee have the same");
        }
    }
}
