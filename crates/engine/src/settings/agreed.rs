//! Settings that members have alike: from the committee file, and to it.

use super::Settings;
use quorate_types::AgreedSettings;
use std::fmt::Display;
use std::str::FromStr;

/// A setting of a committee file whose value is no word that is known here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting '{name}': {reason}")]
pub struct UnknownSetting {
    name: &'static str,
    reason: String,
}

impl UnknownSetting {
    /// Reads the value of the setting `name`.
    ///
    /// # Errors
    /// When it is no value of that type.
    pub fn parse<T: FromStr<Err: Display>>(name: &'static str, text: &str) -> Result<T, Self> {
        text.parse().map_err(|reason: T::Err| Self { name, reason: reason.to_string() })
    }

    /// The setting whose value is refused.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }
}

impl Settings {
    /// Takes over what all members have alike: every field that a committee file has, but for
    /// those of services and clients, which are the host's. Ranges are checked by
    /// [`Settings::validate`].
    ///
    /// # Errors
    /// The first setting whose value is unknown; nothing is taken over then.
    pub fn agree(&mut self, agreed: &AgreedSettings) -> Result<(), UnknownSetting> {
        let AgreedSettings {
            service: _,
            genesis_digest: _,
            execution_version: _,
            clients: _,
            trusting_period_days: _,
            protocol,
            leader_reputation,
            leader_tenure,
            inline_bodies,
            availability,
            execution_certificates,
            snapshot_every,
            heartbeat_ms,
            clock_drift_max_ms,
            proposal_key,
            truncation,
        } = agreed;
        let protocol = UnknownSetting::parse("protocol", protocol)?;
        let availability = UnknownSetting::parse("availability", availability)?;
        let proposal_key = UnknownSetting::parse("proposal_key", proposal_key)?;
        let truncation = UnknownSetting::parse("truncation", truncation)?;

        self.protocol = protocol;
        self.leader_reputation = *leader_reputation;
        self.leader_tenure = *leader_tenure;
        self.inline_bodies = *inline_bodies;
        self.availability = availability;
        self.execution_certificates = *execution_certificates;
        self.snapshot_every = *snapshot_every;
        self.heartbeat_ms = *heartbeat_ms;
        self.clock_drift_max_ms = *clock_drift_max_ms;
        self.comparison.proposal_key = proposal_key;
        self.comparison.truncation = truncation;
        Ok(())
    }

    /// What [`Settings::agree`] takes over, as a committee file has it. The host's fields are at
    /// their defaults.
    #[must_use]
    pub fn agreed(&self) -> AgreedSettings {
        AgreedSettings {
            protocol: self.protocol.to_string(),
            leader_reputation: self.leader_reputation,
            leader_tenure: self.leader_tenure,
            inline_bodies: self.inline_bodies,
            availability: self.availability.to_string(),
            execution_certificates: self.execution_certificates,
            snapshot_every: self.snapshot_every,
            heartbeat_ms: self.heartbeat_ms,
            clock_drift_max_ms: self.clock_drift_max_ms,
            proposal_key: self.comparison.proposal_key.to_string(),
            truncation: self.comparison.truncation.to_string(),
            ..AgreedSettings::default()
        }
    }
}
