//! Simpler scenarios of payments, as [`crate::shrink`] does it for committees.

use super::liar::Behaviour;
use super::{Report, Scenario, run};
use crate::Failure;
use crate::network::Conditions;
use crate::scenario::text::TextError;
use crate::shrink::{self, Pass, Shrinks, calmer, keep_faults_of, with, without};
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
    /// Changes of the authorities.
    pub changes: usize,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { authorities, faulty, faults, payers, payments, mishaps, .. } = self;
        let Self { thieves, crimes, changes, .. } = self;
        write!(
            f,
            "{authorities} authorities ({faulty} faulty), {changes} changes, {faults} faults, \
             {payers} payers with {payments} payments and {mishaps} mishaps, {thieves} thieves with \
             {crimes} crimes"
        )
    }
}

impl Shrinks for Scenario {
    type Size = Size;
    type Report = Report;

    const PASSES: &'static [Pass<Self>] = &[
        Pass { name: "changes", propose: fewer_changes },
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
            changes: self.changes.len(),
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
        self.excess() <= before.excess()
    }

    fn fit(&mut self) {
        let Self { payers, thieves, .. } = *self;
        self.wishes.retain(|(_, payer)| *payer < payers);
        self.payer_crashes.retain(|(_, payer, _)| *payer < payers);
        self.backups.retain(|(_, payer)| *payer < payers);
        self.mishaps.retain(|(_, payer, ..)| *payer < payers);
        self.crimes.retain(|(_, thief)| *thief < thieves);
        let hosts = self.hosts();
        keep_faults_of(&mut self.schedule, hosts);
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

/// No change, or the first one alone; without a loss; and faster.
fn fewer_changes(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = vec![with(scenario, Scenario::remove_changes)];
    if scenario.changes.len() > 1 {
        simpler.push(with(scenario, Scenario::remove_last_change));
    }
    for at in 0..scenario.changes.len() {
        simpler.push(with(scenario, |s| s.changes[at].lost = None));
        simpler.push(with(scenario, |s| s.changes[at].begin_us = 20_000));
        simpler.push(with(scenario, |s| s.changes[at].follow_us = 50_000));
    }
    simpler
}

fn fewer_faults(scenario: &Scenario) -> Vec<Scenario> {
    without(scenario, |s| &mut s.schedule)
}

fn fewer_mishaps(scenario: &Scenario) -> Vec<Scenario> {
    let mut simpler = without(scenario, |s| &mut s.payer_crashes);
    simpler.extend(without(scenario, |s| &mut s.mishaps));
    simpler.extend(without(scenario, |s| &mut s.backups));
    simpler
}

fn fewer_liars(scenario: &Scenario) -> Vec<Scenario> {
    let honest = |one: usize| with(scenario, |s| s.behaviours[one] = Behaviour::Honest);
    let lies = |one: &usize| scenario.behaviours[*one] != Behaviour::Honest;
    (0..scenario.all_authorities()).filter(lies).map(honest).collect()
}

fn fewer_crimes(scenario: &Scenario) -> Vec<Scenario> {
    without(scenario, |s| &mut s.crimes)
}

fn fewer_payments(scenario: &Scenario) -> Vec<Scenario> {
    without(scenario, |s| &mut s.wishes)
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
    calmer(scenario, &calm, |s| &mut s.conditions)
}

/// Fewer authorities, the first ones, where none of them changes; and all keys in one shard.
fn fewer_hosts(scenario: &Scenario) -> Vec<Scenario> {
    let keep = |authorities: usize, shards: u16| {
        with(scenario, |s| {
            (s.authorities, s.shards) = (authorities, shards);
            s.behaviours.truncate(authorities);
            let hosts = s.hosts();
            s.follow_us.truncate(hosts);
        })
    };
    let has_changes = !scenario.changes.is_empty();
    let fewer = (4..scenario.authorities).filter(|_| !has_changes);
    let fewer = fewer.map(|count| keep(count, scenario.shards));
    fewer.chain([with(scenario, Scenario::keep_one_shard)]).collect()
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

fn shorter(scenario: &Scenario) -> Vec<Scenario> {
    shrink::shorter(scenario, |s| (&mut s.fault_phase, &mut s.schedule))
}
