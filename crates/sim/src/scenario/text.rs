//! Forms in which the parts of a scenario are written in a file.

use super::Scenario;
use crate::faults::{Fault, Schedule};
use quorate_types::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Reasons for which a scenario's file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Not TOML, an unknown field, or a value of the wrong kind.
    #[error("it is no scenario: {0}")]
    Malformed(String),
    /// Parts of it contradict each other.
    #[error("its parts do not fit together: {0}")]
    Inconsistent(String),
}

/// A scenario of any kind as a file.
pub(crate) fn write(scenario: &impl Serialize) -> String {
    toml::to_string(scenario).expect("every field has a form in TOML")
}

/// Reads a scenario of any kind, whose parts `check` holds together.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    check: impl FnOnce(&T) -> Result<(), String>,
) -> Result<T, TextError> {
    let scenario: T =
        toml::from_str(text).map_err(|error| TextError::Malformed(error.to_string()))?;
    check(&scenario).map_err(TextError::Inconsistent)?;
    Ok(scenario)
}

impl Scenario {
    /// As a file that [`Scenario::from_toml`] reads back: the same run, event for event.
    ///
    /// # Panics
    /// Never: every scenario can be written.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write(self)
    }

    /// Reads a file. What it does not name is as in [`Scenario::calm`] with four members.
    ///
    /// # Errors
    /// When it is no scenario or its parts do not fit together.
    pub fn from_toml(text: &str) -> Result<Self, TextError> {
        read(text, Self::check)
    }

    fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let members = self.replicas;
        ensure(members >= 1 && self.clients >= 1, "there is a replica and a client")?;
        ensure(self.weights.members() == members, "weights has an entry for each replica")?;
        ensure(self.behaviours.len() == members, "behaviours has an entry for each replica")?;
        ensure(self.clock_rates.len() == members, "clock_rates has an entry for each replica")?;
        ensure(!self.clock_rates.contains(&0), "a clock's rate is not 0")?;
        let hosts = self.hosts();
        let endpoints = hosts + self.clients;
        ensure(endpoints <= crate::network::Network::ENDPOINTS_MAX, "at most 64 endpoints")?;
        let known = |fault: &Fault| fault.host().is_none_or(|host| host < hosts);
        ensure(
            self.schedule.iter().all(|(_, fault)| known(fault)),
            "faults befall hosts there are",
        )?;
        self.settings.validate().map_err(|error| error.to_string())?;
        self.changes.iter().try_for_each(|change| change.check(self))
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self::calm(0, 4)
    }
}

/// Each fault with the time at which it begins.
pub(crate) mod schedule {
    use super::{Deserialize, Deserializer, Fault, Schedule, Serialize, Serializer, Time};

    #[derive(Serialize, Deserialize)]
    struct Entry {
        at_us: u64,
        #[serde(flatten)]
        fault: Fault,
    }

    pub(crate) fn serialize<S: Serializer>(schedule: &Schedule, to: S) -> Result<S::Ok, S::Error> {
        let entry = |(at, fault): &(Time, Fault)| Entry { at_us: at.0, fault: fault.clone() };
        to.collect_seq(schedule.iter().map(entry))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Schedule, D::Error> {
        let entries = Vec::<Entry>::deserialize(from)?;
        Ok(entries.into_iter().map(|entry| (Time(entry.at_us), entry.fault)).collect())
    }
}
