//! A load under way: a sample each second, the wait for the last answers, the result.

use super::clients::Clients;
use super::{NetLoad, NetLoadError};
use crate::bench::Progress;
use crate::bench::evidence::{Evidence, Sample, ValidatorState, on_this_machine};
use crate::bench::watch::Watch;
use crate::http::Door;
use crate::load::measure::{Recorder, Schedule};
use crate::machine::{host, own_cpu_seconds};
use crate::status::{ValidatorStatus, ask_all, recovered};
use parking_lot::Mutex;
use quorate_report::Report;
use quorate_report::results::{Beside, LoadOrigin, Measurement};
use quorate_types::History;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest nap: how late an interruption may be noticed.
const NAP: Duration = Duration::from_millis(20);

/// Time for a validator's answer: less than the time between two looks.
const TIMEOUT: Duration = Duration::from_millis(800);

/// Parts of a load under way.
pub(super) struct Given<'a> {
    pub(super) of: &'a NetLoad,
    pub(super) clients: &'a Clients,
    pub(super) progress: &'a Progress,
    pub(super) interrupted: &'a AtomicBool,
    pub(super) schedule: Schedule,
    pub(super) recorder: Arc<Mutex<Recorder>>,
}

/// A load under way.
pub(super) struct Drive<'a> {
    given: Given<'a>,
    started: SystemTime,
    epoch: u64,
    watch: Option<Watch>,
    samples: Vec<Sample>,
    states: Vec<ValidatorState>,
    last: Vec<Option<ValidatorStatus>>,
}

impl<'a> Drive<'a> {
    /// Begins to look at what is under way.
    pub(super) fn new(given: Given<'a>) -> Self {
        let NetLoad { status, load, .. } = given.of;
        given.progress.begin(title(given.of), load);
        let start = given.schedule.start;
        Self {
            started: SystemTime::now() + start.saturating_duration_since(Instant::now()),
            epoch: epoch(&given.clients.client.history()),
            watch: (!status.is_empty()).then(|| Watch::start(status, start)),
            samples: Vec::new(),
            states: vec![ValidatorState::Healthy; status.len()],
            last: Vec::new(),
            given,
        }
    }

    /// Looks at everything once a second until all was offered.
    pub(super) fn under_load(&mut self) -> Result<(), NetLoadError> {
        for second in 0..=self.given.of.load.span().as_secs() {
            self.sleep_until(self.given.schedule.start + Duration::from_secs(second))?;
            self.given.clients.check()?;
            self.sample(second);
            self.given.progress.show(&self.samples, &self.states);
        }
        Ok(())
    }

    fn sample(&mut self, second: u64) {
        let looks = self.look();
        let warmup_s = self.given.of.load.warmup_s;
        let into_window = second as f64 - warmup_s as f64;
        for (id, state) in self.states.iter_mut().enumerate() {
            let is_healthy = *state == ValidatorState::Healthy;
            if is_healthy && is_silent(&self.samples, id, looks[id].as_ref()) {
                *state = ValidatorState::Silent(into_window);
            }
        }
        let (answered, lately) = {
            let mut recorder = self.given.recorder.lock();
            (recorder.answered(), recorder.lately())
        };
        let client_cpu_seconds = own_cpu_seconds().unwrap_or(0.0);
        self.samples.push(Sample { second, looks, answered, lately, client_cpu_seconds });
    }

    fn look(&self) -> Vec<Option<ValidatorStatus>> {
        recovered(ask_all(&self.given.of.status, TIMEOUT).into_iter().map(Result::ok).collect())
    }

    /// Waits for the last answers, within the time for them.
    pub(super) fn drain(&mut self) -> Result<(), NetLoadError> {
        self.given.progress.say("waiting for the last answers");
        let deadline = Instant::now() + Duration::from_secs(self.given.of.load.drain_s);
        while !self.given.recorder.lock().is_settled() && Instant::now() < deadline {
            self.sleep_until(Instant::now() + NAP)?;
            self.given.clients.check()?;
        }
        self.last = self.look();
        Ok(())
    }

    fn sleep_until(&self, moment: Instant) -> Result<(), NetLoadError> {
        loop {
            if self.given.interrupted.load(Ordering::Relaxed) {
                return Err(NetLoadError::Interrupted);
            }
            let left = moment.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(NAP));
        }
    }

    /// What was measured.
    pub(super) fn conclude(self) -> Report {
        let history = self.given.clients.client.history();
        let recorder = self.given.recorder.lock();
        let tracks = self.watch.map(Watch::finish).unwrap_or_default();
        let origin = origin(self.given.of, self.started, (self.epoch, epoch(&history)));
        let evidence = Evidence {
            load: &self.given.of.load,
            measurement: Measurement::Load(origin),
            config: on_this_machine(describe(self.given.of, &history)),
            samples: &self.samples,
            last: &self.last,
            states: &self.states,
            counted: recorder.counted,
            warmup: recorder.whole_warmup(),
            latency: recorder.latency(),
            goodput_tps: recorder.goodput_tps(),
            stations_us: BTreeMap::new(),
            disk_bytes: None,
            over_time: &recorder.over_time(),
            tracks: &tracks,
            started: self.started,
            offered: recorder.offered(),
            events: &[],
            beside: Beside::default(),
        };
        evidence.report()
    }
}

/// Whether a validator gave no answer twice in a row, or counts from the beginning again. One late
/// answer says nothing of it.
fn is_silent(before: &[Sample], id: usize, now: Option<&ValidatorStatus>) -> bool {
    let Some(now) = now else {
        return before.last().is_some_and(|sample| sample.looks[id].is_none());
    };
    let was = before.iter().rev().find_map(|sample| sample.looks[id].as_ref());
    was.is_some_and(|was| now.operations < was.operations)
}

fn title(of: &NetLoad) -> String {
    let share = of.share.map_or(String::new(), |share| format!(" {share}"));
    let members = of.history.committee().size();
    format!("quorate load{share} · {} · {members} validators", of.service)
}

fn epoch(history: &History) -> u64 {
    history.committee().epoch().0
}

fn origin(of: &NetLoad, started: SystemTime, epochs: (u64, u64)) -> LoadOrigin {
    let since = started.duration_since(UNIX_EPOCH).unwrap_or_default();
    LoadOrigin {
        host: host(),
        share: of.share,
        seed: of.load.seed,
        started_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        network: hex::encode(of.history.committee().network().0),
        epochs,
        service: of.service.to_string(),
    }
}

fn describe(of: &NetLoad, history: &History) -> Value {
    let committee = history.committee();
    let mut described = of.load.to_json();
    let own = json!({
        "validators": committee.size(),
        "scheme": committee.scheme_kind().to_string(),
        "service": of.service.to_string(),
        "mix": (of.service == crate::ServiceKind::Evm).then_some("ether"),
        "share": of.share.map(|share| share.to_string()),
        "host": host(),
        "listed": of.vouching.is_some(),
        "keys": (of.service == crate::ServiceKind::Kv).then_some(of.load.keys),
        "accounts": (of.service == crate::ServiceKind::Evm).then_some(of.accounts),
        "status": of.status.iter().map(Door::name).collect::<Vec<_>>(),
    });
    if let (Value::Object(all), Value::Object(own)) = (&mut described, own) {
        all.extend(own);
    }
    described
}

#[cfg(test)]
mod tests;
