//! A validator that lies, for laboratories: what it says in the place of what its machine says.
//!
//! In builds with the feature `liar` alone, which no release has. The machine, its log and its
//! connections are those of an honest validator; whoever lies stands between machine and
//! connections, and has a thread of its own for what is said late and for what nobody asked for.

use crate::NodeError;
use crate::log::Outgoing;
use crate::threads::Threads;
use crate::transport::Network;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use parking_lot::Mutex;
use quorate_engine::{Incoming, Message};
use quorate_types::machine::Effect;
use quorate_types::{Event, Recipients, ReplicaId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// Messages of a flood that are made at once, while the machine may have to wait for its words.
const FLOOD: usize = 16;

/// Frames that may wait for a member before a flood leaves it out: more would push out what the
/// machine says.
const WAITING_MAX: usize = 512;

/// Longest nap of the thread while it has nothing to say.
const NAP: Duration = Duration::from_millis(2);

/// Words of a member that lies.
pub trait Liar: Send {
    /// A checked message of another member came.
    fn hear(&mut self, message: &Incoming);

    /// Returns what leaves in the place of a message, each with how much later.
    fn speak(&mut self, to: Recipients, message: Message) -> Vec<(Duration, Recipients, Message)>;

    /// Returns so many messages for all members that nobody asked for; none if it floods nobody.
    fn flood(&mut self, count: usize) -> Vec<Message>;
}

/// Voice of a validator that begins to lie when it is told to. Cloning shares it.
#[derive(Clone)]
pub struct Voice {
    liar: Arc<Mutex<Box<dyn Liar>>>,
    lies: Arc<AtomicBool>,
    later: Sender<(Instant, Outgoing)>,
    due: Receiver<(Instant, Outgoing)>,
}

impl Voice {
    /// Voice that tells the truth until the process gets SIGUSR1.
    ///
    /// # Errors
    /// When the system gives no thread or no signal handler.
    pub fn on_signal(liar: Box<dyn Liar>) -> Result<Self, NodeError> {
        let (later, due) = unbounded();
        let lies = Arc::new(AtomicBool::new(false));
        begin_on_signal(Arc::clone(&lies))
            .map_err(|source| NodeError::Start { what: "signal handler", source })?;
        Ok(Self { liar: Arc::new(Mutex::new(liar)), lies, later, due })
    }

    fn lies(&self) -> bool {
        self.lies.load(Ordering::Relaxed)
    }

    pub(crate) fn hear(&self, event: &Event<Incoming>) {
        if let Event::Message { message, .. } = event {
            self.liar.lock().hear(message);
        }
    }

    /// Returns the effects in the place of one of the machine's.
    pub(crate) fn instead_of(&self, effect: Effect<Message>) -> Vec<Effect<Message>> {
        let Effect::Send { to, message, lane, waits } = effect else { return vec![effect] };
        if !self.lies() {
            return vec![Effect::Send { to, message, lane, waits }];
        }
        let said = self.liar.lock().speak(to, message);
        said.into_iter().filter_map(|(late, to, message)| self.at_once(late, to, message)).collect()
    }

    /// What is late goes to the thread: it waits for no disk.
    fn at_once(&self, late: Duration, to: Recipients, message: Message) -> Option<Effect<Message>> {
        let lane = message.lane();
        if late.is_zero() {
            return Some(Effect::Send { to, lane, waits: message.waits(), message });
        }
        let outgoing = Outgoing { to, lane, frame: message.frame() };
        let _ = self.later.send((Instant::now() + late, outgoing));
        None
    }

    /// Starts the thread that says what is late, and floods.
    pub(crate) fn start(
        &self,
        threads: &Threads,
        network: &Arc<Network>,
    ) -> Result<Self, NodeError> {
        let (voice, network) = (self.clone(), Arc::clone(network));
        threads.spawn_unjoined("liar", Box::new(move || voice.run(&network)))?;
        Ok(self.clone())
    }

    fn run(&self, network: &Network) {
        let mut late = VecDeque::new();
        loop {
            let flooded = self.lies() && self.flood(network);
            match self.due.recv_timeout(if flooded { Duration::ZERO } else { NAP }) {
                Ok(one) => late.push_back(one),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while late.front().is_some_and(|(at, _)| *at <= Instant::now()) {
                late.pop_front().into_iter().for_each(|(_, outgoing)| network.send(outgoing));
            }
        }
    }

    /// Fills the queues of all whose connections take more. `false`: none does.
    fn flood(&self, network: &Network) -> bool {
        let open: Vec<ReplicaId> = network.open_to(WAITING_MAX);
        if open.is_empty() {
            return false;
        }
        let flood = self.liar.lock().flood(FLOOD);
        for message in &flood {
            let (lane, frame) = (message.lane(), message.frame());
            for member in &open {
                let frame = frame.clone();
                network.send(Outgoing { to: Recipients::One(*member), lane, frame });
            }
        }
        !flood.is_empty()
    }
}

fn begin_on_signal(lies: Arc<AtomicBool>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut begin = {
        let _inside = runtime.enter();
        signal(SignalKind::user_defined1())?
    };
    let wait = move || {
        runtime.block_on(begin.recv());
        tracing::warn!("from now on this validator lies");
        lies.store(true, Ordering::Relaxed);
    };
    Builder::new().name("begin-to-lie".into()).spawn(wait).map(drop)
}
