//! Settings that all members of an epoch must have alike.

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::{self, ErrorKind, Read, Write};
use std::str::FromStr;

/// Section `[settings]` of a committee file: what members would part over if each said its own.
///
/// Names of kinds are text here, and ranges are not checked: the engine and the node turn them into
/// their own types.
///
/// **Encoded and hashed** are the settings that are not at their defaults, by name. So a setting
/// that comes with a later version, at a default that keeps to what was done before, leaves every
/// network and every hand-over its name; and a default never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgreedSettings {
    /// Name of the replicated service.
    pub service: String,
    /// Digest of the genesis file's bytes, 64 hexadecimal digits, where the service has such a
    /// file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub genesis_digest: Option<String>,
    /// Version of the rules by which the service executes: what would bring the same block to
    /// another root is another version ([`Versions`](crate::Versions)).
    pub execution_version: u64,
    /// Clients that are let in: `open`, `listed` or `service`.
    pub clients: String,
    /// Name of the protocol that orders.
    pub protocol: String,
    /// Leaders whose last turns decided nothing are passed over.
    pub leader_reputation: bool,
    /// Views in a row that a member leads.
    pub leader_tenure: u64,
    /// Leaders carry their own bodies inside proposals.
    pub inline_bodies: bool,
    /// Condition of a vote on the bodies that a block names: `stored` or `certified`.
    pub availability: String,
    /// Members sign what each height came to.
    pub execution_certificates: bool,
    /// Heights between two snapshots of the state.
    pub snapshot_every: u64,
    /// Milliseconds from one height to the next at most, be there anything to order or not; 0: only
    /// when there is.
    pub heartbeat_ms: u64,
    /// Milliseconds that a proposal may be stamped ahead of a voter's clock.
    pub clock_drift_max_ms: u64,
    /// Days for which members' keys are trusted after the last that is known of their epoch:
    /// whoever slept longer takes no hand-over from peers.
    pub trusting_period_days: u64,
    /// Key that signs proposals: `identity` or `voting`.
    pub proposal_key: String,
    /// Parts of the chain that travel with messages: `ids`, `heights` or `off`.
    pub truncation: String,
}

/// Reason for which a setting is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No setting has this name.
    #[error("there is no setting '{name}': members agree on {}", AgreedSettings::names().join(", "))]
    Unknown {
        /// Name that was given.
        name: String,
    },
    /// The value is not of the setting's type.
    #[error("setting '{name}': '{value}' is no value of its type: {reason}")]
    Value {
        /// Name of the setting.
        name: String,
        /// Value that was given.
        value: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Default for AgreedSettings {
    fn default() -> Self {
        Self {
            service: "ordered-log".into(),
            genesis_digest: None,
            execution_version: 1,
            clients: "open".into(),
            protocol: "jolteon".into(),
            leader_reputation: true,
            leader_tenure: 1,
            inline_bodies: false,
            availability: "stored".into(),
            execution_certificates: false,
            snapshot_every: 1_024,
            heartbeat_ms: 0,
            clock_drift_max_ms: 5_000,
            trusting_period_days: 180,
            proposal_key: "identity".into(),
            truncation: "ids".into(),
        }
    }
}

impl AgreedSettings {
    /// Names and values of the settings that are not at their defaults, in the order of the fields.
    #[must_use]
    pub fn departures(&self) -> Vec<(&'static str, String)> {
        let differing = Self::default().differences(self).into_iter();
        differing.map(|(name, _, own)| (name, own)).collect()
    }

    /// Names of the settings in which another differs, each with the value here and there, in the
    /// order of the fields.
    #[must_use]
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let pairs = self.values().into_iter().zip(other.values());
        let both = pairs.map(|((name, own), (_, other))| (name, own, other));
        both.filter(|(_, own, other)| own != other).collect()
    }

    /// Names of all settings, in the order of the fields.
    #[must_use]
    pub fn names() -> Vec<&'static str> {
        Self::default().values().into_iter().map(|(name, _)| name).collect()
    }

    fn values(&self) -> [(&'static str, String); 16] {
        let Self {
            service,
            genesis_digest,
            execution_version,
            clients,
            protocol,
            leader_reputation,
            leader_tenure,
            inline_bodies,
            availability,
            execution_certificates,
            snapshot_every,
            heartbeat_ms,
            clock_drift_max_ms,
            trusting_period_days,
            proposal_key,
            truncation,
        } = self;
        [
            ("service", service.clone()),
            ("genesis_digest", genesis_digest.clone().unwrap_or_default()),
            ("execution_version", execution_version.to_string()),
            ("clients", clients.clone()),
            ("protocol", protocol.clone()),
            ("leader_reputation", leader_reputation.to_string()),
            ("leader_tenure", leader_tenure.to_string()),
            ("inline_bodies", inline_bodies.to_string()),
            ("availability", availability.clone()),
            ("execution_certificates", execution_certificates.to_string()),
            ("snapshot_every", snapshot_every.to_string()),
            ("heartbeat_ms", heartbeat_ms.to_string()),
            ("clock_drift_max_ms", clock_drift_max_ms.to_string()),
            ("trusting_period_days", trusting_period_days.to_string()),
            ("proposal_key", proposal_key.clone()),
            ("truncation", truncation.clone()),
        ]
    }

    /// Sets the setting of this name. Ranges, and names of kinds, are not checked.
    ///
    /// # Errors
    /// When there is none, or the value is not of its type; nothing is set then.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), SettingError> {
        match name {
            "service" => self.service = value,
            "genesis_digest" => self.genesis_digest = Some(value),
            "execution_version" => self.execution_version = parse(name, &value)?,
            "clients" => self.clients = value,
            "protocol" => self.protocol = value,
            "leader_reputation" => self.leader_reputation = parse(name, &value)?,
            "leader_tenure" => self.leader_tenure = parse(name, &value)?,
            "inline_bodies" => self.inline_bodies = parse(name, &value)?,
            "availability" => self.availability = value,
            "execution_certificates" => self.execution_certificates = parse(name, &value)?,
            "snapshot_every" => self.snapshot_every = parse(name, &value)?,
            "heartbeat_ms" => self.heartbeat_ms = parse(name, &value)?,
            "clock_drift_max_ms" => self.clock_drift_max_ms = parse(name, &value)?,
            "trusting_period_days" => self.trusting_period_days = parse(name, &value)?,
            "proposal_key" => self.proposal_key = value,
            "truncation" => self.truncation = value,
            _ => return Err(SettingError::Unknown { name: name.to_owned() }),
        }
        Ok(())
    }
}

fn parse<T: FromStr<Err: Display>>(name: &str, value: &str) -> Result<T, SettingError> {
    value.parse().map_err(|reason: T::Err| SettingError::Value {
        name: name.to_owned(),
        value: value.to_owned(),
        reason: reason.to_string(),
    })
}

impl BorshSerialize for AgreedSettings {
    fn serialize<W: Write>(&self, to: &mut W) -> io::Result<()> {
        BorshSerialize::serialize(&self.departures(), to)
    }
}

impl BorshDeserialize for AgreedSettings {
    fn deserialize_reader<R: Read>(from: &mut R) -> io::Result<Self> {
        let listed = Vec::<(String, String)>::deserialize_reader(from)?;
        let mut settings = Self::default();
        for (name, value) in &listed {
            settings.set(name, value.clone()).map_err(|_| refused(name))?;
        }
        // One encoding for each: what is signed and hashed is what was sent.
        let expected = settings.departures();
        let expected = expected.iter().map(|(name, value)| (*name, value.as_str()));
        if !expected.eq(listed.iter().map(|(name, value)| (name.as_str(), value.as_str()))) {
            return Err(refused("settings"));
        }
        Ok(settings)
    }
}

fn refused(name: &str) -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        format!("the agreed setting '{name}' is encoded wrongly"),
    )
}

#[cfg(test)]
mod tests;
