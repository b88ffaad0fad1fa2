//! Simpler scenarios of payments, as [`crate::shrink`] does it for committees.

use super::liar::Behaviour;
use super::{Report, Scenario, run};
use crate::Failure;
use crate::network::Conditions;
use crate::scenario::text::TextError;
use crate::shrink::{Pass, Shrinks, half, halved, keep_faults_of, parts};
use quorate_crypto::Digest;
use quorate_payments::PayScheme;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Size of a scenario, as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// Number of authorities, faulty ones included.
    pub authorities: usize,
    /// Authorities that do not behave.
    pub faulty: usize,
    /// Faults in its schedule.
    pub faults: usize,
    /// Payers that keep the rules.
    pub payers: usize,
    /// Payments that they want to make.
    pub payments: usize,
    /// Crashes, backups and losses of their books.
    pub mishaps: usize,
    /// Payers that try to have more than is theirs.
    pub thieves: usize,
    /// Attempts of thieves, each at a time of its own.
    pub crimes: usize,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authorities, faulty, faults, payers, payments, mishaps, thieves, crimes } = self;
        write!(
            f,
            "{authorities} authorities ({faulty} faulty), {faults} faults, {payers} payers with \
             {payments} payments and {mishaps} mishaps, {thieves} thieves with {crimes} crimes"
        )
    }
}

impl Shrinks for Scenario {
    type Size = Size;
    type Report = Report;

    const PASSES: &'static [Pass<Self>] = &[
        Pass { name: "faults", propose: fewer_faults },
        Pass { name: "mishaps", propose: fewer_mishaps },
        Pass { name: "behaviours", propose: fewer_liars },
        Pass { name: "crimes", propose: fewer_crimes },
        Pass { name: "payments", propose: fewer_payments },
        Pass { name: "owners", propose: fewer_owners },
        Pass { name: "network", propose: calmer_network },
        Pass { name: "authorities", propose: fewer_hosts },
        Pass { name: "settings", propose: plainer_settings },
        Pass { name: "time", propose: shorter },
    ];

    fn size(&self) -> Size {
        Size {
            authorities: self.authorities,
            faulty: self.faulty(),
            faults: self.schedule.len(),
            payers: self.payers,
            payments: self.wishes.len(),
            mishaps: self.payer_crashes.len() + self.backups.len() + self.mishaps.len(),
            thieves: self.thieves,
            crimes: self.crimes.len(),
        }
    }

    fn run(&self) -> Report {
        run(self)
    }

    fn failure(report: &Report) -> Option<&Failure> {
        report.verdict.as_ref().err()
    }

    fn trace_hash(report: &Report) -> Digest {
        report.trace_hash
    }

    /// No more authorities are faulty than are tolerated, or than were.
    fn is_survivable(&self, before: &Self) -> bool {
        let excess = |one: &Self| one.faulty().saturating_sub((one.authorities - 1) / 3);
        excess(self) <= excess(before)
    }

    fn plain(&self) -> Self {
        self.clone()
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn replay(&self) -> String {
        Scenario::replay(self)
    }

    fn to_toml(&self) -> String {
        Scenario::to_toml(self)
    }

    fn from_file(text: &str, name: String) -> Result<Self, TextError> {
        Ok(Self { file: Some(name), ..Self::from_toml(text)? })
    }
}

/// A copy with something changed, in which everything befalls somebody that there is.
fn with(scenario: &Scenario, change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut simpler = scenario.clone();
    change(&mut simpler);
    let Scenario { payers, thieves, .. } = simpler;
    simpler.wishes.retain(|(_, payer)| *payer < payers);
    simpler.payer_crashes.retain(|(_, payer, _)| *payer < payers);
    simpler.backups.retain(|(_, payer)| *payer < payers);
    simpler.mishaps.retain(|(_, payer, ..)| *payer < payers);
    simpler.crimes.retain(|(_, thief)| *thief < thieves);
    let hosts = simpler.hosts();
    keep_faults_of(&mut simpler.schedule, hosts);
    simpler
}

fn fewer_faults(scenario: &Scenario) -> Vec<Scenario> {
    let without = |part| with(scenario, |s| drop(s.schedule.drain(part)));
    parts(scenario.schedule.len()).map(without).collect()
}

fn fewer_mishaps(scenario: &Scenario) -> Vec<Scenario> {
    let crashes = parts(scenario.payer_crashes.len())
        .map(|part| with(scenario, |s| drop(s.payer_crashes.drain(part))));
    let mishaps =
        parts(scenario.mishaps.len()).map(|part| with(scenario, |s| drop(s.mishaps.drain(part))));
    let backups =
        parts(scenario.backups.len()).map(|part| with(scenario, |s| drop(s.backups.drain(part))));
    crashes.chain(mishaps).chain(backups).collect()
}

fn fewer_liars(scenario: &Scenario) -> Vec<Scenario> {
    let honest = |one: usize| with(scenario, |s| s.behaviours[one] = Behaviour::Honest);
    let lies = |one: &usize| scenario.behaviours[*one] != Behaviour::Honest;
    (0..scenario.authorities).filter(lies).map(honest).collect()
}

fn fewer_crimes(scenario: &Scenario) -> Vec<Scenario> {
    let without = |part| with(scenario, |s| drop(s.crimes.drain(part)));
    parts(scenario.crimes.len()).map(without).collect()
}

fn fewer_payments(scenario: &Scenario) -> Vec<Scenario> {
    let without = |part| with(scenario, |s| drop(s.wishes.drain(part)));
    parts(scenario.wishes.len()).map(without).collect()
}

fn fewer_owners(scenario: &Scenario) -> Vec<Scenario> {
    let thieves = (0..scenario.thieves).map(|count| with(scenario, |s| s.thieves = count));
    let payers = (2..scenario.payers).map(|count| with(scenario, |s| s.payers = count));
    thieves.chain(payers).collect()
}

fn calmer_network(scenario: &Scenario) -> Vec<Scenario> {
    let calm = Conditions {
        base_us: 500..=5_000,
        jitter_us: 0,
        loss_percent: 0,
        duplicate_percent: 0,
        reorder_percent: 0,
        corrupt_permille: 0,
        spell_us: 0,
    };
    vec![
        with(scenario, |s| s.conditions = calm.clone()),
        with(scenario, |s| s.conditions.loss_percent = 0),
        with(scenario, |s| s.conditions.duplicate_percent = 0),
        with(scenario, |s| s.conditions.reorder_percent = 0),
        with(scenario, |s| s.conditions.corrupt_permille = 0),
        with(scenario, |s| s.conditions.jitter_us = 0),
        with(scenario, |s| s.conditions.base_us = calm.base_us.clone()),
    ]
}

/// Fewer authorities, the first ones; and all keys in one shard.
fn fewer_hosts(scenario: &Scenario) -> Vec<Scenario> {
    let keep = |authorities: usize, shards: u16| {
        with(scenario, |s| {
            (s.authorities, s.shards) = (authorities, shards);
            s.behaviours.truncate(authorities);
            let hosts = s.hosts();
            s.follow_us.truncate(hosts);
        })
    };
    let fewer = (4..scenario.authorities).map(|count| keep(count, scenario.shards));
    fewer.chain([keep(scenario.authorities, 1)]).collect()
}

fn plainer_settings(scenario: &Scenario) -> Vec<Scenario> {
    vec![
        with(scenario, |s| s.real_signatures = false),
        with(scenario, |s| s.scheme = PayScheme::Plain),
        with(scenario, |s| s.order_us = 5_000),
        with(scenario, |s| s.follow_us.fill(1_000)),
        with(scenario, |s| s.patience = Duration::from_secs(20)),
    ]
}

/// Half the time for faults, without what began later; and each fault for half as long.
fn shorter(scenario: &Scenario) -> Vec<Scenario> {
    const LEAST: Duration = Duration::from_millis(100);
    let mut simpler = Vec::new();
    if scenario.fault_phase >= 2 * LEAST {
        simpler.push(with(scenario, |s| {
            s.fault_phase = half(s.fault_phase);
            let end = quorate_types::Time::default() + s.fault_phase;
            s.schedule.retain(|(at, _)| *at < end);
        }));
    }
    for index in 0..scenario.schedule.len() {
        let halved = halved(&scenario.schedule[index].1);
        simpler.extend(halved.map(|fault| with(scenario, |s| s.schedule[index].1 = fault)));
    }
    simpler
}
