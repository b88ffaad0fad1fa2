//! Alerts: what an operator should do something about, in words, and what.
//!
//! They are judged by what this validator sees alone. `docs/OPERATING.md` explains each at length;
//! `packaging/prometheus` has those that need a longer memory.

use crate::health::{Health, MemberContact, MemberStatus, Unready};
use crate::shown::NodeStatus;
use quorate_engine::WitnessState;
use quorate_storage::RoomLevel;
use quorate_types::ReplicaId;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Seconds of which given-up views are counted.
const VIEWS_PAST: usize = 60;
/// So many of them in that time are an alert.
const VIEWS_GIVEN_UP_MAX: u64 = 3;
/// A rule that a member broke is told for so long after the last time.
const BROKEN_RULE_MS: u64 = 600_000;
/// So many certificates in a row without its vote, and a member is named.
const ABSENCES_MAX: usize = 100;

/// How much an alert matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// The committee, or this validator in it, does not do what it is for.
    Critical,
    /// It does, and less than it should, or not for long.
    Warning,
    /// It is as it should be, and worth knowing.
    Notice,
}

/// Alert that holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Alert {
    /// Name by which it is known from one look to the next.
    pub(super) name: String,
    pub(super) level: Level,
    /// What was found.
    pub(super) what: String,
    /// What to do about it.
    pub(super) todo: &'static str,
    /// Since when it holds, in milliseconds since 1970.
    pub(super) since_ms: u64,
}

/// What earlier looks found.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Since when each alert holds.
    since: BTreeMap<String, u64>,
    /// Views given up in all, at each of the last looks.
    given_up: VecDeque<u64>,
    /// Last decided height at which each member was not heard, or not connected.
    away_at: BTreeMap<ReplicaId, u64>,
    /// How often a member broke a rule, and when that last grew.
    broken: BTreeMap<(ReplicaId, &'static str), (u64, u64)>,
}

impl Recent {
    /// Everything that holds now, what matters most first.
    pub(super) fn judge(&mut self, now: &NodeStatus, health: &Health, at_ms: u64) -> Vec<Alert> {
        let mut alerts = Vec::new();
        alerts.extend(health.unready.iter().map(|reason| unready(health, reason)));
        alerts.extend(standing(now));
        alerts.extend(quorum_at_risk(now));
        alerts.extend(now.members.iter().filter_map(silent));
        alerts.extend(self.absent(now));
        alerts.extend(self.views_given_up(now));
        alerts.extend(proven(now));
        alerts.extend(self.rules_broken(now, at_ms));
        let was = std::mem::take(&mut self.since);
        for alert in &mut alerts {
            alert.since_ms = was.get(&alert.name).copied().unwrap_or(at_ms);
            self.since.insert(alert.name.clone(), alert.since_ms);
        }
        alerts.sort_by_key(|alert| alert.level);
        alerts
    }

    /// Members that are there and whose votes do not arrive, of so many heights that were decided
    /// since they came.
    fn absent(&mut self, now: &NodeStatus) -> Vec<Alert> {
        let decided = now.replica.decided.0;
        let mut alerts = Vec::new();
        for member in &now.members {
            if member.contact.is_some_and(|contact| contact.silent || !contact.connected) {
                self.away_at.insert(member.id, decided);
            }
            let away_at = self.away_at.get(&member.id).copied().unwrap_or_default();
            let since = decided.saturating_sub(away_at);
            if member.absences >= ABSENCES_MAX && since >= ABSENCES_MAX as u64 {
                alerts.push(no_votes(member));
            }
        }
        alerts
    }

    /// Views that were given up within a minute.
    fn views_given_up(&mut self, now: &NodeStatus) -> Option<Alert> {
        let total = now.replica.view_changes;
        self.given_up.push_back(total);
        if self.given_up.len() > VIEWS_PAST {
            self.given_up.pop_front();
        }
        let count = total.saturating_sub(*self.given_up.front()?);
        if count < VIEWS_GIVEN_UP_MAX {
            return None;
        }
        let mut leaders: Vec<ReplicaId> = now.given_up.iter().map(|one| one.leader).collect();
        leaders.sort_unstable();
        leaders.dedup();
        let of: Vec<String> = leaders.iter().map(ToString::to_string).collect();
        let what = format!(
            "{count} views were given up within a minute; the last ones were led by {}",
            of.join(", ")
        );
        let todo = "One leader again and again: it is down or slow, look at it. All in turn: timeout_ms \
                    is below eight round trips, or the disks take as long.";
        Some(warning("views-given-up", what, todo))
    }

    /// Rules that members broke a short while ago.
    fn rules_broken(&mut self, now: &NodeStatus, at_ms: u64) -> Vec<Alert> {
        let mut alerts = Vec::new();
        for (member, rule, total, seen) in now.replica.misbehaviour.iter() {
            let known = self.broken.entry((member, rule.name())).or_default();
            if total > known.0 {
                *known = (total, at_ms);
            }
            if at_ms.saturating_sub(known.1) < BROKEN_RULE_MS {
                let name = format!("rule-{}-{member}", rule.name());
                let what = format!("{member} broke the rule {}: {seen}", rule.name());
                let todo = "Ask its operator: it has another version or setting, or it lies. The log \
                            has what was seen.";
                alerts.push(warning(&name, what, todo));
            }
        }
        alerts
    }
}

fn alert(name: &str, level: Level, what: String, todo: &'static str) -> Alert {
    Alert { name: name.to_owned(), level, what, todo, since_ms: 0 }
}

fn critical(name: &str, what: String, todo: &'static str) -> Alert {
    alert(name, Level::Critical, what, todo)
}

fn warning(name: &str, what: String, todo: &'static str) -> Alert {
    alert(name, Level::Warning, what, todo)
}

/// Reason for which clients should ask another validator.
fn unready(health: &Health, reason: &Unready) -> Alert {
    let (name, level, todo) = match reason {
        Unready::Listening => {
            ("starting", Level::Notice, "Wait some seconds: it listens for the other members.")
        }
        Unready::NoQuorum => (
            "no-quorum",
            Level::Critical,
            "Bring back as many of the silent members as are lacking: until then nothing is decided.",
        ),
        Unready::Stalled(_) => (
            "stalled",
            Level::Critical,
            "With a quorum heard, views fail: see below whose. Without one: bring members back.",
        ),
        Unready::CatchingUp(_) => (
            "catching-up",
            Level::Warning,
            "Let it. A height that stands still is in who does not answer; if it never arrives, this \
             machine is too slow for the load.",
        ),
        Unready::NotSigning => (
            "not-signing",
            Level::Critical,
            "It counts as faulty. Its log says why; after a lost disk it gets new keys in a change of \
             the committee.",
        ),
        Unready::Diverged(_) => (
            "diverged",
            Level::Critical,
            "Keep its data folder: a defect, a damaged disk or another version of the service. It \
             answers nobody until a snapshot has replaced its state.",
        ),
    };
    alert(name, level, sentence(&health.words(reason)), todo)
}

/// Words with a capital at their beginning.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// What this validator's own state asks for.
fn standing(now: &NodeStatus) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let disk = &now.disk;
    let mb = |bytes: u64| bytes >> 20;
    match disk.level {
        RoomLevel::Enough => {}
        RoomLevel::Low => alerts.push(warning(
            "disk",
            format!(
                "The disk is nearly full: {} MiB are free, of {} MiB that should be",
                mb(disk.free_bytes),
                mb(disk.low_bytes)
            ),
            "Make room, without touching data_dir. Clients are refused until there is some.",
        )),
        RoomLevel::Out => alerts.push(critical(
            "disk",
            format!(
                "The disk is full: {} MiB are free, and {} bytes wait to be written",
                mb(disk.free_bytes),
                disk.needed_bytes
            ),
            "Make room, without touching data_dir: it takes no part until then, and goes on by itself.",
        )),
    }
    if now.must_not_stop {
        alerts.push(warning(
            "must-not-stop",
            "This validator must not stop: the next committee fetches what it begins with from here"
                .to_owned(),
            "Leave it running until this is gone.",
        ));
    }
    let witnesses = &now.replica.witnesses;
    if witnesses.state == WitnessState::Waiting {
        alerts.push(warning(
            "waits-for-witnesses",
            format!(
                "It signs nothing yet: members that weigh {} of {} have shown what it signed before",
                witnesses.answered, witnesses.needed
            ),
            "It asks since it started. If this stays, too few others run or reach its address.",
        ));
    }
    alerts
}

/// The committee stops with the next member. A learner hears too little to say so.
fn quorum_at_risk(now: &NodeStatus) -> Option<Alert> {
    let quorum = now.config.quorum;
    let is_heard = |member: &&MemberStatus| member.contact.is_some_and(|contact| !contact.silent);
    let others = now.members.iter().filter(is_heard);
    let heaviest = others.map(|member| member.weight).max()?;
    let left = now.heard_weight.saturating_sub(heaviest);
    (now.has_quorum && now.heard < now.config.members && left < quorum).then(|| {
        let what = format!(
            "One more member away and the committee stops: {} of {} are heard, {quorum} are needed",
            now.heard_weight, now.config.weight_total
        );
        warning("quorum-at-risk", what, "Bring the silent members back before anything else.")
    })
}

fn silent(member: &MemberStatus) -> Option<Alert> {
    let MemberContact { connected, silent, .. } = member.contact?;
    silent.then(|| {
        let id = member.id;
        let (what, todo) = if connected {
            (
                "though it is connected",
                "Its machine is up and its process does not answer: stopped, swapping, or in a \
                 debugger. Look with ps and at the log there.",
            )
        } else {
            (
                "and not connected",
                "It is down or cut off: start it, and look at its firewall and address.",
            )
        };
        let what = format!("{id} is silent, {what}");
        warning(&format!("silent-{id}"), what, todo)
    })
}

fn no_votes(member: &MemberStatus) -> Alert {
    let id = member.id;
    warning(
        &format!("no-votes-{id}"),
        format!("No vote of {id} is in the last {} certificates", member.absences),
        "It follows only, has diverged, or is always the last: look at its own dashboard. It is no \
         reserve while others are away.",
    )
}

/// What two signatures prove, since the start.
fn proven(now: &NodeStatus) -> Vec<Alert> {
    let evidence = now.replica.evidence.iter();
    let alerts = evidence.map(|(member, rule, _)| {
        critical(
            &format!("proven-{}-{member}", rule.name()),
            format!("It is proven that {member} broke the rule {}", rule.name()),
            "It lies, or its key is in two places: its operator must stop it. The proof is in evidence, \
             in data_dir; quorate evidence verify checks it, show it to the others.",
        )
    });
    alerts.collect()
}

#[cfg(test)]
mod tests;
