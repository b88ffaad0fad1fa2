//! The wish that a process stops, from its own code or from a signal.

use crate::NodeError;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use tokio::signal::unix::{SignalKind, signal};

/// Asks a validator to stop. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Shutdown {
    trigger: Sender<()>,
    pub(crate) triggered: Receiver<()>,
    asked: Arc<AtomicBool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        Self::new()
    }
}

impl Shutdown {
    /// A shutdown that only [`Shutdown::trigger`] triggers.
    #[must_use]
    pub fn new() -> Self {
        let (trigger, triggered) = bounded(1);
        Self { trigger, triggered, asked: Arc::default() }
    }

    /// A shutdown that SIGTERM and SIGINT trigger too, for the rest of the process.
    ///
    /// # Errors
    /// When the system gives no thread or no signal handler.
    pub fn on_signals() -> Result<Self, NodeError> {
        let start = |source| NodeError::Start { what: "signal handler", source };
        let shutdown = Self::new();
        let trigger = shutdown.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(start)?;
        let (mut terminate, mut interrupt) = {
            let _inside = runtime.enter();
            (
                signal(SignalKind::terminate()).map_err(start)?,
                signal(SignalKind::interrupt()).map_err(start)?,
            )
        };
        let wait = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = terminate.recv() => {}
                    _ = interrupt.recv() => {}
                }
            });
            trigger.trigger();
        };
        Builder::new().name("signals".into()).spawn(wait).map_err(start)?;
        Ok(shutdown)
    }

    /// Waits until somebody asks to stop.
    pub fn wait(&self) {
        let _ = self.triggered.recv();
    }

    /// Returns `true` once somebody has asked to stop.
    #[must_use]
    pub fn is_triggered(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Asks the validator to stop.
    pub fn trigger(&self) {
        self.asked.store(true, Ordering::Relaxed);
        let _ = self.trigger.try_send(());
    }
}
