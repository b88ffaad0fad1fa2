//! Four machines on a network without delays, every input and output of which is written down.

use crate::words::Names;
use quorate_consensus::{
    Input, Liveness, Message, Output, ProposalKey, ProposeRequest, Protocol, ProtocolConfig,
    ProtocolKind, Verifier,
};
use quorate_crypto::{IdentitySecret, KeyCache, KeyFile, Policy, SchemeKind, VotingSecret, hash};
use quorate_types::{
    AgreedSettings, BodyRef, Committee, CommitteeFile, Epoch, Machine, Member, Payload, Peer,
    Recipients, ReplicaId, Time, Verified,
};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const MEMBERS: u8 = 4;
/// Member that crashes: primary of view 1 of windowed protocols, leader of view 2 of chained ones.
const CRASHING: u16 = 1;
/// Timers that ring at most before the request is decided.
const RINGS_MAX: usize = 60;

/// Rule for messages from one member to another that are lost.
pub(crate) type Loses = fn(u16, u16, &Message) -> bool;

struct Node {
    machine: Protocol,
    verifier: Arc<Verifier>,
    request: Option<ProposeRequest>,
    has_decided: bool,
    is_up: bool,
}

struct Envelope {
    from: u16,
    to: u16,
    message: Message,
}

pub(crate) struct Cluster {
    nodes: Vec<Node>,
    wire: VecDeque<Envelope>,
    now: Time,
    loses: Loses,
    names: Names,
    lines: String,
    /// Step that is written once the next one differs.
    last: Step,
    /// Outputs of the input that is being handled.
    outputs: Vec<String>,
}

/// Members with the same input, and what their machines do then.
#[derive(Default)]
struct Step {
    members: Vec<String>,
    input: String,
    outputs: Vec<String>,
}

fn identity(member: u8) -> IdentitySecret {
    IdentitySecret::from_seed([member + 1; 32])
}

fn voting(member: u8) -> VotingSecret {
    VotingSecret::from_seed(SchemeKind::Stub, &[member + 101; 32])
}

fn committee() -> Committee {
    let member = |member: u8| {
        let keys = KeyFile { identity: identity(member), voting: voting(member) };
        Member::new(&keys.public(), String::new())
    };
    let file = CommitteeFile {
        name: "transcripts".into(),
        network: None,
        epoch: Epoch(1),
        scheme: SchemeKind::Stub.to_string(),
        redundancy: 0,
        settings: AgreedSettings::default(),
        groups: None,
        from_state: None,
        members: (0..MEMBERS).map(member).collect(),
    };
    Committee::load_simulated(&file, KeyCache::Off).expect("a sound committee")
}

fn node(protocol: ProtocolKind, id: u8) -> Node {
    let verifier = Verifier::new(Arc::new(committee()), protocol, ProposalKey::Identity);
    let verifier = Arc::new(verifier);
    let config = ProtocolConfig {
        id: ReplicaId(u16::from(id)),
        identity: Arc::new(identity(id)),
        voting: Arc::new(voting(id)),
        verifier: Arc::clone(&verifier),
        timeout: Duration::from_secs(1),
        vote_wait: Duration::ZERO,
        policy: Policy::Aggregate,
        clock_drift_max_ms: 1_000,
        wall_origin_ms: 0,
        signs: true,
        liveness: Liveness::default(),
    };
    let machine = Protocol::new(config);
    Node { machine, verifier, request: None, has_decided: false, is_up: true }
}

/// The one request that clients send.
fn body() -> BodyRef {
    BodyRef { author: ReplicaId(0), sequence: 1, digest: hash(b"A") }
}

impl Cluster {
    pub(crate) fn new(protocol: ProtocolKind, loses: Loses) -> Self {
        let mut cluster = Self {
            nodes: (0..MEMBERS).map(|id| node(protocol, id)).collect(),
            wire: VecDeque::new(),
            now: Time(0),
            loses,
            names: Names::new(body()),
            lines: String::new(),
            last: Step::default(),
            outputs: Vec::new(),
        };
        for id in cluster.members() {
            let (slots, decided, stored) = (Vec::new(), Vec::new(), BTreeSet::new());
            let start = Input::Recovered { safety: None, slots, executed: None, decided, stored };
            cluster.feed(id, "start", start);
        }
        cluster
    }

    pub(crate) fn title(&mut self, title: &str) {
        let rest = "# \"2, 3 < …\" is an input of members 2 and 3, \"2 < 1: …\" a message from \
                    member 1; below is what the\n# machine does then. Inputs without outputs and \
                    statuses (nothing is sent again here) are left out.\n";
        self.lines.insert_str(0, &format!("# {title}\n{rest}\n"));
    }

    pub(crate) fn transcript(&mut self) -> &str {
        self.write_step();
        &self.lines
    }

    fn members(&self) -> impl Iterator<Item = u16> + use<> {
        0..u16::from(MEMBERS)
    }

    fn node(&mut self, id: u16) -> &mut Node {
        &mut self.nodes[usize::from(id)]
    }

    /// Everybody learns of the request.
    pub(crate) fn submit(&mut self) {
        self.members().for_each(|id| self.feed(id, "request A", Input::Work(true)));
    }

    pub(crate) fn crash_leader(&mut self) {
        self.write_step();
        writeln!(self.lines, "-- {CRASHING} crashes").expect("memory");
        self.node(CRASHING).is_up = false;
    }

    /// Delivers messages until there are none.
    pub(crate) fn deliver(&mut self) {
        while let Some(Envelope { from, to, message }) = self.wire.pop_front() {
            if !self.node(to).is_up || !self.node(from).is_up {
                continue;
            }
            let text = format!("{from}: {}", self.names.message(&message));
            let sender = ReplicaId(from);
            let verifier = Arc::clone(&self.node(to).verifier);
            let checked = Verified::check(message, Peer::Replica(sender), verifier.as_ref());
            // What is of an earlier view by now is refused.
            if let Ok(message) = checked {
                let message = Box::new(message);
                self.feed(to, &text, Input::Message { from: sender, message });
            }
        }
    }

    /// Rings timers and delivers messages until all members that are up have decided.
    pub(crate) fn run_until_decided(&mut self) {
        for _ in 0..RINGS_MAX {
            self.deliver();
            if self.all_decided() {
                return;
            }
            self.ring();
        }
        panic!("nothing is decided:\n{}", self.lines);
    }

    pub(crate) fn assert_decided(&self) {
        assert!(self.all_decided(), "nothing is decided:\n{}", self.lines);
    }

    fn all_decided(&self) -> bool {
        self.nodes.iter().filter(|node| node.is_up).all(|node| node.has_decided)
    }

    fn ring(&mut self) {
        let up = self.nodes.iter().filter(|node| node.is_up);
        let next = up.filter_map(|node| node.machine.next_timeout()).min();
        self.now = next.expect("somebody waits").max(self.now);
        let text = format!("timer at {} ms", self.now.as_millis());
        for id in self.members() {
            let now = self.now;
            let node = self.node(id);
            if node.is_up && node.machine.next_timeout().is_some_and(|at| at <= now) {
                node.machine.handle_timeout(now);
                self.record(id, &text);
            }
        }
    }

    fn feed(&mut self, id: u16, text: &str, input: Input) {
        let now = self.now;
        self.node(id).machine.handle(now, input);
        self.record(id, text);
    }

    /// Carries out what follows from an input, and writes both down.
    fn record(&mut self, id: u16, text: &str) {
        self.drain(id);
        let outputs = std::mem::take(&mut self.outputs);
        if !outputs.is_empty() {
            if self.last.input != text || self.last.outputs != outputs {
                self.write_step();
                self.last = Step { members: Vec::new(), input: text.to_owned(), outputs };
            }
            self.last.members.push(id.to_string());
        }
        self.hand_over_payload(id);
    }

    fn write_step(&mut self) {
        let Step { members, input, outputs } = std::mem::take(&mut self.last);
        if !members.is_empty() {
            writeln!(self.lines, "{} < {input}", members.join(", ")).expect("memory");
            outputs.iter().for_each(|it| writeln!(self.lines, "    {it}").expect("memory"));
        }
    }

    /// Hands the request to a leader that wants a payload, until it is decided.
    fn hand_over_payload(&mut self, id: u16) {
        let node = self.node(id);
        let Some(request) = node.request.take() else { return };
        let is_ordered = node.has_decided || request.carried.contains(&body());
        if is_ordered && !request.at_once {
            node.request = Some(request);
            return;
        }
        let bodies = if is_ordered { Vec::new() } else { vec![body()] };
        let text = if is_ordered { "payload: empty" } else { "payload: A" };
        let payload = Payload::new(request.height, self.now.as_millis() + 1, bodies);
        self.names.payload(&payload);
        let ProposeRequest { view, parent, .. } = request;
        self.feed(id, text, Input::Payload { view, parent, payload });
    }

    fn drain(&mut self, id: u16) {
        while let Some(output) = self.node(id).machine.poll() {
            self.apply(id, output);
        }
    }

    fn apply(&mut self, id: u16, output: Output) {
        let now = self.now;
        if let Some(text) = self.names.output(&output) {
            self.outputs.push(text);
        }
        match output {
            Output::Send { to, message } => self.send(id, to, &message),
            Output::Combine(job) => self.node(id).machine.handle(now, Input::Combined(job.run())),
            Output::RequestPayload(request) => self.node(id).request = Some(request),
            Output::RequestBodies { block, .. } => {
                self.node(id).machine.handle(now, Input::Stored(block));
            }
            Output::Decided(decided) => {
                self.node(id).has_decided |= decided.payload.bodies.contains(&body());
                if self.node(id).has_decided {
                    self.node(id).machine.handle(now, Input::Work(false));
                }
            }
            _ => {}
        }
    }

    fn send(&mut self, from: u16, to: Recipients, message: &Message) {
        let receivers: Vec<u16> = match to {
            Recipients::All => self.members().filter(|it| *it != from).collect(),
            Recipients::One(one) => vec![one.0],
            Recipients::Client(_) => Vec::new(),
        };
        for to in receivers {
            if !Names::is_status(message) && !(self.loses)(from, to, message) {
                self.wire.push_back(Envelope { from, to, message: message.clone() });
            }
        }
    }
}
