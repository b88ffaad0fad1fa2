//! Settings that all members have alike: taken from the committee file, and refused elsewhere.

use super::fields::{self, AGREED};
use super::{ConfigError, NodeConfig};
use quorate_crypto::hash;
use quorate_engine::{NextFileCheck, UnknownSetting};
use quorate_ledger::payments::ReleaseService;
use quorate_payments::Network;
use quorate_types::{AgreedSettings, CommitteeFile, Versions};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

impl NodeConfig {
    /// Takes over what all members have alike. Ranges are checked by [`NodeConfig::validate`].
    ///
    /// # Errors
    /// The first setting whose value is unknown.
    pub fn agree(&mut self, agreed: &AgreedSettings) -> Result<(), UnknownSetting> {
        let clients = UnknownSetting::parse("clients", &agreed.clients)?;
        self.replica.agree(agreed)?;
        self.clients = clients;
        self.service.clone_from(&agreed.service);
        self.genesis_digest.clone_from(&agreed.genesis_digest);
        self.execution_version = agreed.execution_version;
        self.trusting_period_days = agreed.trusting_period_days;
        Ok(())
    }

    /// What [`NodeConfig::agree`] takes over, as a committee file has it.
    #[must_use]
    pub fn agreed(&self) -> AgreedSettings {
        AgreedSettings {
            service: self.service.clone(),
            genesis_digest: self.genesis_digest.clone(),
            execution_version: self.execution_version,
            clients: self.clients.to_string(),
            trusting_period_days: self.trusting_period_days,
            ..self.replica.agreed()
        }
    }

    /// Checks that the text of a genesis file is the one that all members have.
    ///
    /// # Errors
    /// When the committee file names another digest, or none.
    pub fn check_genesis(&self, text: &str) -> Result<(), ConfigError> {
        let found = genesis_digest(&self.service, text);
        if self.genesis_digest.as_ref() == Some(&found) {
            return Ok(());
        }
        let (path, agreed) = (self.committee.clone(), self.genesis_digest.clone());
        Err(ConfigError::Genesis { path, agreed, found })
    }

    /// File in which a field stands, and its section if it is a setting of the replica; `path` is
    /// this configuration's.
    pub(super) fn place_of<'a>(
        &'a self,
        setting: &str,
        path: &'a Path,
    ) -> (&'a Path, &'static str) {
        if fields::is_agreed(setting) { (&self.committee, AGREED) } else { (path, "replica") }
    }
}

/// Checks that validators which run under the present settings start with the next ones, and go on
/// with their state.
///
/// # Errors
/// In words, the first setting with which they would not.
pub fn check_next_host(present: &AgreedSettings, next: &AgreedSettings) -> Result<(), String> {
    if (&present.service, &present.genesis_digest) != (&next.service, &next.genesis_digest) {
        return Err(
            "'service' and 'genesis_digest' stay as they are: the state goes on into the next \
                    epoch, and no other service can read it"
                .to_owned(),
        );
    }
    // Not whether this program has the version: members that lack it judge as the others do.
    if next.execution_version < present.execution_version {
        return Err(format!(
            "'execution_version' is {}, and version {} executed before: it never goes back, for \
             rules of an earlier version may not read the state that later ones made",
            next.execution_version, present.execution_version
        ));
    }
    let file = Path::new("committee.toml");
    let mut config = NodeConfig::new(file.to_owned(), PathBuf::new(), PathBuf::new());
    config.agree(present).map_err(|reason| reason.to_string())?;
    config.comparison = !config.replica.comparison.departures().is_empty();
    config.agree(next).map_err(|reason| reason.to_string())?;
    config.validate(file).map_err(|reason| reason.to_string())
}

/// What members of an epoch ask of the next one's file as hosts.
#[derive(Debug)]
pub(crate) struct HostCheck {
    pub(crate) present: AgreedSettings,
    /// Versions of the service that this program has.
    pub(crate) versions: Versions,
}

impl NextFileCheck for HostCheck {
    fn check(&self, next: &CommitteeFile) -> Result<(), String> {
        check_next_host(&self.present, &next.settings)?;
        let AgreedSettings { service, execution_version, .. } = &next.settings;
        if let Err(lacks) = self.versions.check(service, *execution_version) {
            tracing::warn!(
                epoch = %next.epoch,
                "a change of the committee waits to be ordered, and in its epoch {lacks}: {UPGRADE}; \
                 otherwise this validator stops where that epoch begins"
            );
        }
        Ok(())
    }
}

/// Remedy of who lacks a version.
pub(crate) const UPGRADE: &str = "install a newer version of the program and start it again";

/// Digest of a service's genesis file, as a committee file has it. Of a payment network's file it
/// is the network's identity, where there is one: addresses may change without changing it.
pub fn genesis_digest(service: &str, text: &str) -> String {
    let network = (service == ReleaseService::NAME).then(|| toml::from_str(text).ok()).flatten();
    match network.and_then(|file| Network::load(&file).ok()) {
        Some(network) => hex::encode(network.id().0),
        None => hash(text.as_bytes()).to_hex(),
    }
}

/// Reads a configuration, without what the committee file says. Its paths are as they are written.
pub(super) fn read_config(path: &Path) -> Result<NodeConfig, ConfigError> {
    let what = "configuration file";
    let text = super::read_text(what, path)?;
    // What is no TOML is refused below, with its line.
    if let Ok(table) = text.parse::<Table>()
        && let Some(field) = agreed_in(&table)
    {
        return Err(ConfigError::Agreed { path: path.to_owned(), field });
    }
    super::parse_toml(what, path, &text)
}

/// Reads a committee file, and leaves its keys unchecked.
///
/// # Errors
/// When it cannot be read, or has a setting that is each member's own.
pub fn read_committee_file(path: &Path) -> Result<CommitteeFile, ConfigError> {
    let what = "committee file";
    let text = super::read_text(what, path)?;
    if let Ok(table) = text.parse::<Table>()
        && let Some((field, section)) = local_in(&table)
    {
        return Err(ConfigError::Local { path: path.to_owned(), field, section });
    }
    super::parse_toml(what, path, &text)
}

/// The first field of a configuration, in any section, that belongs into a committee file.
fn agreed_in(table: &Table) -> Option<String> {
    let sections = table.values().filter_map(Value::as_table);
    let mut names = table.keys().chain(sections.flat_map(Table::keys));
    names.find(|name| fields::is_agreed(name)).cloned()
}

/// The first agreed setting of a committee file that belongs into a configuration, and its section
/// there.
fn local_in(table: &Table) -> Option<(String, &'static str)> {
    let settings = table.get(AGREED).and_then(Value::as_table)?;
    settings.keys().find_map(|name| Some((name.clone(), fields::local_section(name)?)))
}

/// Why a configuration may not have a field.
pub(super) fn is_agreed_by_all(field: &str) -> String {
    format!("'{field}' is agreed by all members: it stands in [{AGREED}] of the committee file")
}

/// Why a committee file may not have a field.
pub(super) fn is_each_members(field: &str, section: &str) -> String {
    let place = in_section(section);
    format!("'{field}' is each member's own: it stands in its configuration file, {place}")
}

/// Place of a field in a configuration file, in words.
pub(super) fn in_section(section: &str) -> String {
    match section {
        "" => "above all sections".to_owned(),
        name => format!("in the section [{name}]"),
    }
}

/// What is wrong with a genesis file of this digest.
pub(super) fn is_another_genesis(agreed: Option<&str>, found: &str) -> String {
    match agreed {
        Some(agreed) => format!(
            "'genesis_digest' is {agreed}, and the genesis file here has the digest {found}: every \
             member has the same one"
        ),
        None => format!(
            "'genesis_digest' is missing: members of service = \"evm\" or \"payments\" agree on their \
             genesis file, and the one here has the digest {found}"
        ),
    }
}
