//! How the parts of a scenario are written in a file.

use super::Scenario;
use crate::faults::{Fault, Schedule};
use crate::mutants::{self, Mutant};
use quorate_types::Time;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Why a scenario's file is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// Not TOML, an unknown field, or a value of the wrong kind.
    #[error("it is no scenario: {0}")]
    Malformed(String),
    /// Parts of it contradict each other.
    #[error("its parts do not fit together: {0}")]
    Inconsistent(String),
}

impl Scenario {
    /// As a file that [`Scenario::from_toml`] reads back: the same run, event for event.
    ///
    /// # Panics
    /// Never: every scenario can be written.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every field has a form in TOML")
    }

    /// Reads a file. What it does not name is as in [`Scenario::calm`] with four members.
    ///
    /// # Errors
    /// When it is no scenario or its parts do not fit together.
    pub fn from_toml(text: &str) -> Result<Self, TextError> {
        let scenario: Self =
            toml::from_str(text).map_err(|error| TextError::Malformed(error.to_string()))?;
        scenario.check().map_err(TextError::Inconsistent)?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
        let members = self.replicas;
        ensure(members >= 1 && self.clients >= 1, "there is a replica and a client")?;
        ensure(self.weights.members() == members, "weights has an entry for each replica")?;
        ensure(self.behaviours.len() == members, "behaviours has an entry for each replica")?;
        ensure(self.clock_rates.len() == members, "clock_rates has an entry for each replica")?;
        ensure(!self.clock_rates.contains(&0), "a clock's rate is not 0")?;
        let hosts = members + self.twins();
        let endpoints = hosts + self.clients;
        ensure(endpoints <= crate::network::Network::ENDPOINTS_MAX, "at most 64 endpoints")?;
        let known = |fault: &Fault| fault.host().is_none_or(|host| host < hosts);
        ensure(
            self.schedule.iter().all(|(_, fault)| known(fault)),
            "faults befall hosts there are",
        )?;
        self.settings.validate().map_err(|error| error.to_string())
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self::calm(0, 4)
    }
}

/// A span as microseconds.
pub(crate) mod micros {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        u64::try_from(span.as_micros()).expect("a run is minutes").serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

/// A range as its two ends.
pub(crate) mod range {
    use super::{Deserialize, Deserializer, RangeInclusive, Serialize, Serializer};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(
        range: &RangeInclusive<u64>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        [*range.start(), *range.end()].serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<RangeInclusive<u64>, D::Error> {
        let [start, end] = <[u64; 2]>::deserialize(from)?;
        let ordered = start <= end;
        ordered.then_some(start..=end).ok_or_else(|| D::Error::custom("a range ascends"))
    }
}

/// A set of endpoints as their numbers.
pub(crate) mod side {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use crate::network::Side;
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(side: &Side, to: S) -> Result<S::Ok, S::Error> {
        let inside: Vec<u32> = (0..Side::BITS).filter(|bit| side >> bit & 1 == 1).collect();
        inside.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Side, D::Error> {
        let inside = Vec::<u32>::deserialize(from)?;
        let bit = |endpoint: u32| {
            let bit = 1_u64.checked_shl(endpoint);
            bit.ok_or_else(|| D::Error::custom("an endpoint's number is less than 64"))
        };
        inside.into_iter().try_fold(0, |side, endpoint| Ok(side | bit(endpoint)?))
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

/// The name of a rule.
pub(crate) mod mutant {
    use super::{Deserialize, Deserializer, Mutant, Serializer, mutants};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(
        mutant: &Option<Mutant>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match mutant {
            Some(mutant) => to.serialize_some(&format!("{mutant:?}")),
            None => to.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Mutant>, D::Error> {
        let Some(name) = Option::<String>::deserialize(from)? else { return Ok(None) };
        let found = mutants::ALL.into_iter().find(|mutant| format!("{mutant:?}") == name);
        found.map(Some).ok_or_else(|| D::Error::custom(format!("no rule is called '{name}'")))
    }
}
