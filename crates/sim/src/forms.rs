//! Forms of single values in files: for fields of scenarios, plans and faults.

use crate::mutants::{self, Mutant};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::RangeInclusive;
use std::time::Duration;

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

/// A set of endpoints, a bit each, as their numbers.
pub(crate) mod side {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use serde::de::Error as _;

    pub(crate) fn serialize<S: Serializer>(side: &u64, to: S) -> Result<S::Ok, S::Error> {
        let inside: Vec<u32> = (0..u64::BITS).filter(|bit| side >> bit & 1 == 1).collect();
        inside.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let inside = Vec::<u32>::deserialize(from)?;
        let bit = |endpoint: u32| {
            let bit = 1_u64.checked_shl(endpoint);
            bit.ok_or_else(|| D::Error::custom("an endpoint's number is less than 64"))
        };
        inside.into_iter().try_fold(0, |side, endpoint| Ok(side | bit(endpoint)?))
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
