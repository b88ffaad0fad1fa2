//! Ethereum's rules by name, and when a chain changes them.

use alloy_genesis::ChainConfig;
use alloy_primitives::Address;
use quorate_crypto::mutants::{self, Mutant};
use revm::precompile::Precompiles;
use revm::primitives::hardfork::SpecId;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// Rules of Ethereum's machine, named for the fork that began them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// August 2021: fees by EIP-1559.
    London,
    /// September 2022: no more work to prove.
    Paris,
    /// April 2023: withdrawals, and PUSH0.
    Shanghai,
    /// March 2024: transient storage, blobs.
    Cancun,
    /// May 2025: delegations (EIP-7702), curves of BLS12-381, calldata's floor.
    Prague,
    /// December 2025: bounds on gas and on MODEXP, P-256, CLZ.
    Osaka,
}

/// A name that no fork has here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no fork '{0}' here: use London, Paris, Shanghai, Cancun, Prague or Osaka")]
pub struct UnknownFork(String);

impl FromStr for Fork {
    type Err = UnknownFork;

    fn from_str(name: &str) -> Result<Self, UnknownFork> {
        let all =
            [Self::London, Self::Paris, Self::Shanghai, Self::Cancun, Self::Prague, Self::Osaka];
        let found = all.into_iter().find(|fork| format!("{fork:?}").eq_ignore_ascii_case(name));
        found.ok_or_else(|| UnknownFork(name.to_owned()))
    }
}

impl Fork {
    /// Contracts that are part of the rules, by their names (EIP-7910).
    #[must_use]
    pub fn precompiles(self) -> BTreeMap<String, Address> {
        let contracts = Precompiles::new(self.spec().into()).inner().iter();
        contracts.map(|(at, contract)| (contract.id().name().to_owned(), *at)).collect()
    }

    /// Rules as the machine names them.
    pub(super) fn spec(self) -> SpecId {
        match self {
            Self::London => SpecId::LONDON,
            Self::Paris => SpecId::MERGE,
            Self::Shanghai => SpecId::SHANGHAI,
            Self::Cancun => SpecId::CANCUN,
            Self::Prague => SpecId::PRAGUE,
            Self::Osaka => SpecId::OSAKA,
        }
    }
}

/// Forks of a chain, each at the first block of this time or later, in seconds since the Unix
/// epoch; `None`: never. Before all of them the rules are Cancun's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkSchedule {
    /// Time from which on delegations are known, and calldata has a floor.
    pub prague: Option<u64>,
    /// Time from which on a transaction has 2^24 gas at most; no earlier than Prague's.
    pub osaka: Option<u64>,
}

impl Default for ForkSchedule {
    /// Prague from the first block on.
    fn default() -> Self {
        Self { prague: Some(0), osaka: None }
    }
}

impl ForkSchedule {
    /// Rules of a block of this time.
    #[must_use]
    pub fn at(self, time: u64) -> Fork {
        let has = |fork: Option<u64>| {
            fork.is_some_and(|from| from <= time || mutants::active(Mutant::EvmNewestFork))
        };
        match self {
            Self { osaka, .. } if has(osaka) => Fork::Osaka,
            Self { prague, .. } if has(prague) => Fork::Prague,
            _ => Fork::Cancun,
        }
    }

    /// Rules of the first block, and those that follow them, each with the time from which on they
    /// hold.
    #[must_use]
    pub fn activations(self) -> Vec<(u64, Fork)> {
        let times = [Some(0), self.prague, self.osaka].into_iter().flatten();
        let times: BTreeSet<u64> = times.collect();
        times.into_iter().map(|time| (time, self.at(time))).collect()
    }

    /// Reads the forks of a chain that begins at this time. A file that names none means Prague's
    /// rules.
    ///
    /// # Errors
    /// When they are rules that are not here, or out of order.
    pub(super) fn read(config: &ChainConfig, begin: u64) -> Result<Self, &'static str> {
        check_before_cancun(config, begin)?;
        let refuse = |refused: bool, rule| if refused { Err(rule) } else { Ok(()) };
        // Those between (BPO) are about blobs alone.
        refuse(
            config.amsterdam_time.is_some() || config.bogota_time.is_some(),
            "config names forks after Osaka, whose rules are not here: leave amsterdamTime and those \
             after it out",
        )?;
        let from = |time: Option<u64>| time.map(|time| if time <= begin { 0 } else { time });
        let (prague, osaka) = (from(config.prague_time), from(config.osaka_time));
        let is_ordered = osaka.is_none_or(|osaka| prague.is_some_and(|prague| prague <= osaka));
        refuse(!is_ordered, "osakaTime must not be before pragueTime, nor without it")?;
        let names_none = [config.shanghai_time, config.cancun_time, prague, osaka];
        let names_none = names_none.iter().all(Option::is_none);
        Ok(if names_none { Self::default() } else { Self { prague, osaka } })
    }

    /// Writes them as [`ForkSchedule::read`] reads them; nothing where they are the default.
    pub(super) fn write(self, config: &mut ChainConfig) {
        if self != Self::default() {
            (config.shanghai_time, config.cancun_time) = (Some(0), Some(0));
            (config.prague_time, config.osaka_time) = (self.prague, self.osaka);
        }
    }
}

/// Refuses a chain that would begin by rules before Cancun's.
fn check_before_cancun(config: &ChainConfig, begin: u64) -> Result<(), &'static str> {
    let blocks = [
        config.homestead_block,
        config.eip150_block,
        config.eip155_block,
        config.eip158_block,
        config.byzantium_block,
        config.constantinople_block,
        config.petersburg_block,
        config.istanbul_block,
        config.berlin_block,
        config.london_block,
    ];
    if blocks.iter().flatten().any(|block| *block > 0) {
        return Err("forks by block must all be at block 0: the rules are Cancun's or later ones");
    }
    let times = [config.shanghai_time, config.cancun_time];
    let is_late = |time: u64| time > begin;
    let ends_before = config.shanghai_time.is_some()
        && config.cancun_time.is_none()
        && config.prague_time.is_none_or(is_late);
    if times.into_iter().flatten().any(is_late) || ends_before {
        return Err(
            "shanghaiTime and cancunTime must not be after its timestamp, nor the last of its forks: \
             the rules are Cancun's or later ones",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_000;

    fn read(forks: &str) -> Result<ForkSchedule, &'static str> {
        let config = serde_json::from_str(&format!(r#"{{ "chainId": 7{forks} }}"#));
        ForkSchedule::read(&config.expect("a config"), BEGIN)
    }

    #[test]
    fn each_fork_begins_at_its_time() {
        let forks = r#", "cancunTime": 0, "pragueTime": 1500, "osakaTime": 2000"#;
        let schedule = read(forks).expect("in order");
        let at = [BEGIN, 1_499, 1_500, 1_999, 2_000, u64::MAX].map(|time| schedule.at(time));
        let [cancun, prague, osaka] = [Fork::Cancun, Fork::Prague, Fork::Osaka];
        assert_eq!(at, [cancun, cancun, prague, prague, osaka, osaka]);
        assert_eq!(read(r#", "cancunTime": 5"#).expect("one").at(u64::MAX), Fork::Cancun);
    }

    #[test]
    fn activations_are_the_times_at_which_rules_change() {
        let [cancun, prague, osaka] = [Fork::Cancun, Fork::Prague, Fork::Osaka];
        let both = ForkSchedule { prague: Some(1_500), osaka: Some(2_000) };
        assert_eq!(both.activations(), [(0, cancun), (1_500, prague), (2_000, osaka)]);
        let at_once = ForkSchedule { prague: Some(7), osaka: Some(7) };
        assert_eq!(at_once.activations(), [(0, cancun), (7, osaka)]);
        assert_eq!(ForkSchedule::default().activations(), [(0, prague)]);
    }

    #[test]
    fn rules_have_the_precompiled_contracts_of_their_fork() {
        let has = |fork: Fork, name: &str| fork.precompiles().contains_key(name);
        assert_eq!(Fork::London.precompiles()["ECREC"], Address::with_last_byte(1));
        assert!(!has(Fork::Cancun, "BLS12_G1ADD") && has(Fork::Prague, "BLS12_G1ADD"));
        assert!(!has(Fork::Prague, "P256VERIFY") && has(Fork::Osaka, "P256VERIFY"));
    }

    #[test]
    fn without_forks_the_rules_are_pragues() {
        for forks in ["", r#", "londonBlock": 0"#, r#", "shanghaiTime": 0, "pragueTime": 1000"#] {
            assert_eq!(read(forks), Ok(ForkSchedule::default()), "{forks}");
        }
        assert_eq!(ForkSchedule::default().at(0), Fork::Prague);
    }

    #[test]
    fn forks_that_are_not_here_are_refused_with_the_reason() {
        for (forks, because) in [
            (r#", "londonBlock": 1"#, "block 0"),
            (r#", "shanghaiTime": 1001, "pragueTime": 2000"#, "timestamp"),
            (r#", "cancunTime": 1001, "pragueTime": 2000"#, "timestamp"),
            (r#", "shanghaiTime": 0"#, "the last of its forks"),
            (r#", "shanghaiTime": 0, "pragueTime": 2000"#, "the last of its forks"),
            (r#", "osakaTime": 0"#, "nor without it"),
            (r#", "pragueTime": 2000, "osakaTime": 1999"#, "osakaTime must not be before"),
            (r#", "pragueTime": 0, "amsterdamTime": 9000"#, "amsterdamTime"),
        ] {
            let said = read(forks).expect_err("not here");
            assert!(said.contains(because), "{forks}: {said}");
        }
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        for (prague, osaka) in
            [(Some(0), None), (None, None), (Some(0), Some(0)), (Some(7_000), Some(7_000))]
        {
            let (schedule, mut config) = (ForkSchedule { prague, osaka }, ChainConfig::default());
            schedule.write(&mut config);
            assert_eq!(ForkSchedule::read(&config, BEGIN).expect("its own"), schedule);
        }
    }
}
