//! A validator of the ceremony's committee, a client that submits this member's steps, and the
//! phases' timeouts.

use super::progress::Progress;
use super::written::Written;
use super::{Given, generated};
use crate::failure::Failure;
use quorate_crypto::{Digest, IdentitySecret};
use quorate_ledger::keygen::{Ceremony, KeyGeneration, Participant, Phase, Step};
use quorate_node::config::load_committee;
use quorate_node::http::StatusDoor;
use quorate_node::testnet::system_random;
use quorate_node::transport::Limits;
use quorate_node::{
    CallResult, Client, ClientConfig, Completed, NodeError, SessionSpec, Shutdown, Validator,
};
use quorate_types::ReplicaId;
use quorate_types::service::{BlockContext, Operation, Outcome, Service, State, StateError};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Interval at which the clock is read.
const TICK: Duration = Duration::from_millis(100);

/// Time that a member stays once all have their keys, so that others learn of it too.
const FAREWELL: Duration = Duration::from_millis(500);

/// Takes part until this member's keys are written and the others have theirs, or a phase times
/// out.
pub(super) fn generate(given: &Given<'_>, participant: &Participant) -> Result<Written, Failure> {
    let mut progress = Progress::default();
    progress.say(format!(
        "member {} of {}: waiting for the others",
        participant.member(),
        given.generators.plan.members()
    ));
    let host = Host::start(given, participant.member())?;
    let mut part = Part::new(given, participant);
    let result = part.play(&host, &mut progress);
    let stopped = host.stop();
    if part.is_hopeless {
        progress.say("no start can give this member keys any more: its secrets are removed".into());
        given.place.forget_or_say();
    }
    let written = result?;
    stopped?;
    Ok(written)
}

/// The service, telling how it stands whenever that changes.
struct Watched {
    service: KeyGeneration,
    tell: Sender<Ceremony>,
}

impl Watched {
    fn tell(&self) {
        // Fails when nobody listens any more: the process is about to end.
        let _ = self.tell.send(self.service.ceremony().clone());
    }
}

impl Service for Watched {
    fn name(&self) -> &'static str {
        self.service.name()
    }

    fn open(&mut self, state: &dyn State) -> Result<(), StateError> {
        self.service.open(state)?;
        self.tell();
        Ok(())
    }

    fn admit(&self, operation: Operation<'_>) -> Result<(), String> {
        self.service.admit(operation)
    }

    fn execute(
        &mut self,
        state: &mut dyn State,
        block: BlockContext,
        operations: &[Operation<'_>],
    ) -> Result<Vec<Outcome>, StateError> {
        let outcomes = self.service.execute(state, block, operations)?;
        if !operations.is_empty() {
            self.tell();
        }
        Ok(outcomes)
    }

    fn root(&self, state: &dyn State) -> Result<Digest, StateError> {
        self.service.root(state)
    }
}

/// Validator that runs meanwhile, and its client.
struct Host {
    told: Receiver<Ceremony>,
    client: Client,
    shutdown: Shutdown,
    validator: JoinHandle<Result<(), NodeError>>,
}

impl Host {
    fn start(given: &Given<'_>, member: u16) -> Result<Self, Failure> {
        let config = given.place.ceremony_config(&given.generators)?;
        let (tell, told) = channel();
        let service = KeyGeneration::new(Arc::clone(&given.generators.plan));
        let service = Box::new(Watched { service, tell });
        let limits = Limits::default();
        let shutdown = Shutdown::on_signals().map_err(Failure::run)?;
        let door = StatusDoor::load(&config).map_err(Failure::run)?;
        let keyring = given.keys.clone().into();
        let validator = Validator::start_with_keys(&config, (&keyring, &door), service, limits)
            .map_err(Failure::run)?;
        let committee = load_committee(&config.committee, config.replica.comparison.key_cache)
            .map_err(Failure::run)?;
        // Steps are signed by their members: whoever hands them in need not be known.
        let session = SessionSpec::fresh(new_identity(), ReplicaId(member));
        let client = Client::connect(&ClientConfig::new(Arc::new(committee), vec![session]))
            .map_err(Failure::run)?;
        let stopping = shutdown.clone();
        let run = move || validator.wait(&stopping).map(drop);
        let validator =
            Builder::new().name("validator".to_owned()).spawn(run).map_err(Failure::run)?;
        Ok(Self { told, client, shutdown, validator })
    }

    fn stop(self) -> Result<(), Failure> {
        drop(self.client);
        self.shutdown.trigger();
        match self.validator.join() {
            Ok(result) => result.map_err(Failure::run),
            Err(_) => Err(Failure::run("the validator's thread panicked")),
        }
    }
}

/// Part of this member in the ceremony.
struct Part<'a> {
    given: &'a Given<'a>,
    participant: &'a Participant,
    /// `true` while a step was submitted and is not answered yet.
    is_busy: bool,
    /// Since when the present phase lasts, as far as this process saw.
    phase: (Phase, Instant),
    written: Option<(Written, Instant)>,
    all_done_since: Option<Instant>,
    next_tag: u64,
    /// `true` once the order says that this member gets no keys, however often it starts.
    is_hopeless: bool,
}

impl<'a> Part<'a> {
    fn new(given: &'a Given<'a>, participant: &'a Participant) -> Self {
        Self {
            given,
            participant,
            is_busy: false,
            phase: (Phase::Joining, Instant::now()),
            written: None,
            all_done_since: None,
            next_tag: 0,
            is_hopeless: false,
        }
    }

    fn play(&mut self, host: &Host, progress: &mut Progress) -> Result<Written, Failure> {
        let mut latest: Option<Ceremony> = None;
        while !host.validator.is_finished() {
            match host.told.recv_timeout(TICK) {
                Ok(ceremony) => latest = Some(host.told.try_iter().last().unwrap_or(ceremony)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let Some(ceremony) = &latest else { continue };
            progress.show(ceremony);
            self.hear(host, progress);
            self.act(host, ceremony)?;
            if let Some(written) = self.farewell(ceremony) {
                return Ok(written);
            }
        }
        // Whoever has its keys may leave at any time.
        let written = self.written.take().map(|(written, _)| written);
        written.ok_or_else(|| Failure::run("stopped before there were keys; run it again to go on"))
    }

    /// Reads the results of this member's steps. Refusals are told, and nothing else: what counts
    /// is the state.
    fn hear(&mut self, host: &Host, progress: &mut Progress) {
        for completion in host.client.completions().try_iter() {
            if let CallResult::Completed(Completed { outcome: Outcome::Refused(reason), .. }) =
                completion.result
            {
                progress.say(format!("not taken: {}", String::from_utf8_lossy(&reason)));
            }
            self.is_busy = false;
        }
    }

    fn act(&mut self, host: &Host, ceremony: &Ceremony) -> Result<(), Failure> {
        if self.phase.0 != ceremony.phase() {
            self.phase = (ceremony.phase(), Instant::now());
        }
        self.is_hopeless = self.written.is_none() && self.participant.gets_no_keys(ceremony);
        if self.participant.is_left_out(ceremony) {
            return Err(self.given.not_joined(ceremony, self.participant.member()));
        }
        if ceremony.result().is_some() && self.written.is_none() {
            let written = self.given.write(self.participant, ceremony)?;
            self.written = Some((written, Instant::now()));
        }
        match self.due(ceremony)? {
            Some(step) if !self.is_busy => self.submit(host, &step),
            _ => {}
        }
        Ok(())
    }

    /// Step that is due now.
    fn due(&self, ceremony: &Ceremony) -> Result<Option<Step>, Failure> {
        let member = self.participant.member();
        if self.is_busy {
            return Ok(None);
        }
        if ceremony.phase() == Phase::Over {
            let done = Step::Done(generated(ceremony)?.digest);
            return Ok((!ceremony.did_its_part(member)).then_some(done));
        }
        if let Some(step) = self.participant.next_step(ceremony) {
            return Ok(Some(step));
        }
        let timeout = match ceremony.phase() {
            Phase::Joining => self.given.join_timeout(),
            _ => self.given.timeout(),
        };
        let (phase, since) = self.phase;
        let closes = ceremony.did_its_part(member)
            && !ceremony.wants_to_close(member)
            && since.elapsed() >= timeout;
        Ok(closes.then_some(Step::Close(phase)))
    }

    fn submit(&mut self, host: &Host, step: &Step) {
        let operation = self.participant.sign(step).encode();
        self.next_tag += 1;
        self.is_busy = host.client.submit(0, self.next_tag, operation).is_ok();
    }

    /// The files written, once nobody needs this member any more.
    fn farewell(&mut self, ceremony: &Ceremony) -> Option<Written> {
        let (_, since) = self.written.as_ref()?;
        if ceremony.done().len() == ceremony.joined().len() {
            self.all_done_since.get_or_insert_with(Instant::now);
        }
        let all_left = self.all_done_since.is_some_and(|since| since.elapsed() >= FAREWELL);
        if all_left || since.elapsed() >= self.given.linger() {
            return self.written.take().map(|(written, _)| written);
        }
        None
    }
}

fn new_identity() -> IdentitySecret {
    let mut seed = Zeroizing::new([0; 32]);
    system_random(&mut seed[..]);
    IdentitySecret::from_seed(*seed)
}
